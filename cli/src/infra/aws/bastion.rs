//! A bastion: what its parts are called, and what is read of keys and routes. Pure.

use std::net::Ipv4Addr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use support::aws::Element;

use super::scope::Scope;

/// The port of SSH.
pub(super) const PORT: &str = "22";
/// Kinds of keys that EC2 takes.
const KEYS: [&str; 2] = ["ssh-rsa", "ssh-ed25519"];
/// The smallest instances that all regions have.
pub(super) const INSTANCE_TYPE: &str = "t3.micro";
const EVERYWHERE: &str = "0.0.0.0/0";

/// What is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BastionRequest {
    pub(crate) key: PublicKey,
    /// Address ranges from which SSH is let in.
    pub(crate) from: Vec<String>,
    /// Whether to wait until it runs.
    pub(crate) wait: bool,
}

/// A public SSH key: its kind and the key itself, without a comment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PublicKey(String);

/// The name of the instance and of the key pair, which upstream uses, too.
pub(super) fn name(scope: &Scope) -> String {
    scope.named("bastion")
}

/// The name of the security group, which upstream uses, too.
pub(super) fn group(scope: &Scope) -> String {
    scope.named("bastion-sg")
}

/// Whether a security group lets in connections to a port from an address range.
pub(super) fn lets_in(group: &Element, port: &str, cidr: &str) -> bool {
    let permissions = group.items("ipPermissions").iter();
    let mut rules = permissions.filter(|it| {
        let ports = [it.text_at("fromPort"), it.text_at("toPort")];
        it.text_at("ipProtocol") == "tcp" && ports == [port; 2]
    });
    rules.any(|it| {
        let mut ranges = it.items("ipRanges").iter();
        ranges.any(|range| range.text_at("cidrIp") == cidr)
    })
}

/// Whether a subnet has a route to the internet. Its route table is the one that is associated with it, or else the main one
/// of the VPC.
pub(super) fn reaches_internet(subnet: &str, tables: &[Element]) -> bool {
    let associated = |name: &str, value: &str| {
        tables.iter().find(|table| {
            let mut associations = table.items("associationSet").iter();
            associations.any(|it| it.text_at(name) == value)
        })
    };
    let table = associated("subnetId", subnet).or_else(|| associated("main", "true"));
    table.is_some_and(|table| {
        let mut routes = table.items("routeSet").iter();
        routes.any(|route| {
            route.text_at("destinationCidrBlock") == EVERYWHERE
                && route.text_at("gatewayId").starts_with("igw-")
                && route.text_at("state") != "blackhole"
        })
    })
}

/// An IPv4 address range as EC2 writes it, of an address or a range.
pub(super) fn cidr(text: &str) -> Result<String, String> {
    let wrong = || format!("{text:?} is not a valid CIDR of IPv4 (for example 192.0.2.0/24)");
    let (address, bits) = text.split_once('/').unwrap_or((text, "32"));
    let address: Ipv4Addr = address.parse().map_err(|_| wrong())?;
    let bits: u32 = bits.parse().map_err(|_| wrong())?;
    let host_bits = 32_u32.checked_sub(bits).ok_or_else(wrong)?;
    let mask = u32::MAX.checked_shl(host_bits).unwrap_or(0);
    let base = Ipv4Addr::from(u32::from(address) & mask);
    Ok(format!("{base}/{bits}"))
}

// === impl PublicKey ===

impl PublicKey {
    /// The first key of a text in the format of OpenSSH, if EC2 takes keys of its kind.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let mut lines = text.lines().map(str::trim);
        let line = lines.find(|line| !line.is_empty() && !line.starts_with('#'))?;
        let mut words = line.split_whitespace();
        let (kind, key) = (words.next()?, words.next()?);
        let blob = STANDARD.decode(key).ok()?;
        let is_key = KEYS.contains(&kind) && !blob.is_empty();
        is_key.then(|| Self(format!("{kind} {key}")))
    }

    /// What an import has.
    pub(super) fn material(&self) -> String {
        STANDARD.encode(&self.0)
    }

    /// Whether a text is the same key, with whatever comment.
    pub(super) fn is(&self, text: &str) -> bool {
        Self::parse(text).as_ref() == Some(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Element {
        Element::parse(text).unwrap()
    }

    #[test]
    fn ranges_are_written_as_ec2_does() {
        for (text, expected) in [
            ("192.0.2.7", Some("192.0.2.7/32")),
            ("192.0.2.7/24", Some("192.0.2.0/24")),
            ("10.1.2.3/0", Some("0.0.0.0/0")),
            ("192.0.2.7/33", None),
            ("192.0.2/24", None),
            ("2001:db8::1", None),
            ("", None),
        ] {
            assert_eq!(cidr(text).ok().as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn keys_are_compared_without_comments() {
        let key = PublicKey::parse("# mine\n\nssh-rsa AAAA me@host\n").unwrap();
        assert_eq!(key, PublicKey::parse("ssh-rsa AAAA").unwrap());
        assert!(key.is("ssh-rsa AAAA a-x1-bastion"));
        assert!(!key.is("ssh-rsa AAAB") && !key.is(""));
        assert_eq!(key.material(), STANDARD.encode("ssh-rsa AAAA"));
        for other in [
            "-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA\n",
            "ecdsa-sha2-nistp256 AAAA",
            "ssh-rsa",
            "ssh-rsa !",
            "",
        ] {
            assert_eq!(PublicKey::parse(other), None, "{other}");
        }
    }

    #[test]
    fn subnets_reach_the_internet_by_their_own_or_the_main_route_table() {
        let table = |association: &str, destination: &str, gateway: &str, state: &str| {
            parse(&format!(
                "<item><routeSet><item><destinationCidrBlock>{destination}</destinationCidrBlock><gatewayId>{gateway}\
                 </gatewayId><state>{state}</state></item></routeSet><associationSet><item>{association}</item>\
                 </associationSet></item>"
            ))
        };
        let own = "<subnetId>s-1</subnetId>";
        let main = "<main>true</main>";
        let all = EVERYWHERE;
        for (tables, expected) in [
            (vec![table(own, all, "igw-1", "active")], true),
            (vec![table(main, all, "igw-1", "active")], true),
            (vec![table(own, all, "igw-1", "blackhole")], false),
            (vec![table(own, all, "vgw-1", "active")], false),
            (vec![table(own, "10.0.0.0/8", "igw-1", "active")], false),
            (
                vec![
                    table(main, all, "igw-1", "active"),
                    table(own, "10.0.0.0/16", "local", "active"),
                ],
                false,
            ),
            (vec![], false),
        ] {
            assert_eq!(reaches_internet("s-1", &tables), expected, "{tables:?}");
        }
    }

    #[test]
    fn rules_are_recognized() {
        let group = parse(
            "<item><ipPermissions><item><ipProtocol>tcp</ipProtocol><fromPort>22</fromPort><toPort>22</toPort><ipRanges>\
             <item><cidrIp>192.0.2.1/32</cidrIp></item></ipRanges></item><item><ipProtocol>udp</ipProtocol>\
             <fromPort>22</fromPort><toPort>22</toPort><ipRanges><item><cidrIp>192.0.2.2/32</cidrIp></item></ipRanges>\
             </item></ipPermissions></item>",
        );
        assert!(lets_in(&group, PORT, "192.0.2.1/32"));
        assert!(!lets_in(&group, PORT, "192.0.2.2/32"));
    }
}
