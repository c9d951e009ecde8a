//! A bastion: what its parts are called, and what is read of keys, images, routes and instances. Pure.

use std::net::Ipv4Addr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use support::aws::Element;

use super::call::Call;
use super::scope::{Scope, tags};

/// The port of SSH.
pub(super) const PORT: &str = "22";
/// The smallest instances that all regions have.
const INSTANCE_TYPE: &str = "t3.micro";
/// Kinds of keys that EC2 takes.
const KEYS: [&str; 2] = ["ssh-rsa", "ssh-ed25519"];
/// The beginning and the end of the names of images of Amazon Linux 2023. Minimal ones and those of ECS have other names.
const IMAGE: [&str; 2] = ["al2023-ami-2023.", "-x86_64"];
/// Where EC2 looks up the image if none is listed.
const IMAGE_PARAMETER: &str =
    "resolve:ssm:/aws/service/ami-amazon-linux-latest/al2023-ami-kernel-default-x86_64";
/// States of instances that are of no use any more.
const GONE: [&str; 2] = ["shutting-down", "terminated"];
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

/// An instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Instance {
    pub(crate) id: String,
    pub(super) state: String,
    /// Its public address; empty as long as it has none.
    pub(crate) address: String,
}

/// What a new instance is made of.
#[derive(Debug)]
pub(super) struct Parts<'a> {
    pub(super) image: &'a str,
    pub(super) subnet: &'a str,
    /// The security group.
    pub(super) group: &'a str,
    /// The identifier of the key pair, which is another one after each destruction.
    pub(super) key: &'a str,
    /// How many instances with the key pair have been terminated.
    pub(super) generation: u32,
}

/// The name of the instance and of the key pair, which upstream uses, too.
pub(super) fn name(scope: &Scope) -> String {
    scope.named("bastion")
}

/// The name of the security group, which upstream uses, too.
pub(super) fn group(scope: &Scope) -> String {
    scope.named("bastion-sg")
}

/// Looks for the instances.
pub(super) fn describe(scope: &Scope) -> Call {
    Call::ec2("DescribeInstances")
        .filter(&format!("tag:{}", scope.cluster_tag()), "owned")
        .filter("tag:Name", &name(scope))
}

/// Looks for one instance.
pub(super) fn one(id: &str) -> Call {
    Call::ec2("DescribeInstances").list("InstanceId", [id])
}

/// Looks for images.
pub(super) fn images() -> Call {
    Call::ec2("DescribeImages")
        .list("Owner", ["amazon"])
        .filter("name", &IMAGE.join("*"))
        .filter("state", "available")
}

/// Starts an instance. EC2 starts one for each token, so that there are not two after a lost response.
pub(super) fn run(scope: &Scope, parts: &Parts<'_>) -> Call {
    let Parts {
        image,
        subnet,
        group,
        key,
        generation,
    } = parts;
    Call::ec2("RunInstances")
        .with("ImageId", *image)
        .with("InstanceType", INSTANCE_TYPE)
        .with("MinCount", "1")
        .with("MaxCount", "1")
        .with("KeyName", name(scope))
        .with("ClientToken", format!("{key}-{generation}"))
        .with("MetadataOptions.HttpTokens", "required")
        .with("NetworkInterface.1.DeviceIndex", "0")
        .with("NetworkInterface.1.AssociatePublicIpAddress", "true")
        .with("NetworkInterface.1.SubnetId", *subnet)
        .with("NetworkInterface.1.SecurityGroupId.1", *group)
        .tagged("instance", &scope.tags(&name(scope)))
}

/// The newest image of a response.
pub(super) fn newest(response: &Element) -> String {
    let [start, end] = IMAGE;
    // Services may ignore filters that they do not know.
    let is_it = |it: &&Element| {
        let name = it.text_at("name");
        name.starts_with(start) && name.ends_with(end)
    };
    let images = response.items("imagesSet").iter().filter(is_it);
    let newest = images.max_by(|a, b| a.text_at("creationDate").cmp(b.text_at("creationDate")));
    newest
        .map_or(IMAGE_PARAMETER, |it| it.text_at("imageId"))
        .to_owned()
}

/// All instances of a response.
fn items(response: &Element) -> impl Iterator<Item = &Element> {
    let reservations = response.items("reservationSet").iter();
    reservations.flat_map(|it| it.items("instancesSet"))
}

/// The bastions of a response, in a fixed order, without those that are terminated.
pub(super) fn instances(scope: &Scope, response: &Element) -> Vec<Instance> {
    let is_it = |it: &&Element| {
        let tags = tags(it.items("tagSet"));
        scope.owns(&tags) && tags.get("Name") == Some(&name(scope))
    };
    let mut found: Vec<_> = items(response).filter(is_it).map(Instance::read).collect();
    found.retain(|it| it.state != "terminated");
    found.sort_by(|a, b| a.id.cmp(&b.id));
    found
}

/// The only instance of a response.
pub(super) fn instance(response: &Element) -> Option<Instance> {
    items(response).next().map(Instance::read)
}

/// Whether a security group lets in SSH from an address range.
pub(super) fn lets_in(group: &Element, cidr: &str) -> bool {
    let permissions = group.items("ipPermissions").iter();
    let mut ssh = permissions.filter(|it| {
        let ports = [it.text_at("fromPort"), it.text_at("toPort")];
        it.text_at("ipProtocol") == "tcp" && ports == [PORT; 2]
    });
    ssh.any(|it| {
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

// === impl Instance ===

impl Instance {
    fn read(item: &Element) -> Self {
        Self {
            id: item.text_at("instanceId").to_owned(),
            state: item.text_at("instanceState/name").to_owned(),
            address: item.text_at("ipAddress").to_owned(),
        }
    }

    /// One that was created just now.
    pub(super) fn new(id: &str) -> Self {
        Self {
            id: id.to_owned(),
            state: "pending".to_owned(),
            address: String::new(),
        }
    }

    /// Whether it is or will be of use.
    pub(super) fn is_alive(&self) -> bool {
        !GONE.contains(&self.state.as_str())
    }

    /// Whether users can log in, as far as EC2 knows.
    pub(super) fn is_ready(&self) -> bool {
        self.state == "running" && !self.address.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::super::call::Tags;
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
    fn the_newest_image_of_amazon_linux_is_used() {
        let image = |id: &str, name: &str, date: &str| {
            format!(
                "<item><imageId>{id}</imageId><name>{name}</name><creationDate>{date}</creationDate></item>"
            )
        };
        let of = |images: &[String]| {
            newest(&parse(&format!(
                "<R><imagesSet>{}</imagesSet></R>",
                images.concat()
            )))
        };
        let images = [
            image(
                "ami-1",
                "al2023-ami-2023.8.1-kernel-6.1-x86_64",
                "2026-01-02T00:00:00.000Z",
            ),
            image(
                "ami-2",
                "al2023-ami-2023.9.1-kernel-6.1-x86_64",
                "2026-03-02T00:00:00.000Z",
            ),
            image(
                "ami-3",
                "al2023-ami-2023.9.1-kernel-6.1-arm64",
                "2026-04-02T00:00:00.000Z",
            ),
            image(
                "ami-4",
                "al2023-ami-minimal-2023.9.1-x86_64",
                "2026-04-02T00:00:00.000Z",
            ),
        ];
        assert_eq!(of(&images), "ami-2");
        assert_eq!(of(&[]), IMAGE_PARAMETER);
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
        assert!(lets_in(&group, "192.0.2.1/32"));
        assert!(!lets_in(&group, "192.0.2.2/32"));
    }

    #[test]
    fn other_instances_are_not_bastions() {
        let scope = Scope::new("a-x1", "a", "us-east-1", Tags::new()).unwrap();
        let instance = |id: &str, state: &str, cluster: &str, name: &str| {
            format!(
                "<item><instanceId>{id}</instanceId><instanceState><name>{state}</name></instanceState><tagSet>\
                 <item><key>kubernetes.io/cluster/{cluster}</key><value>owned</value></item>\
                 <item><key>Name</key><value>{name}</value></item></tagSet></item>"
            )
        };
        let all = [
            instance("i-2", "running", "a-x1", "a-x1-bastion"),
            instance("i-1", "shutting-down", "a-x1", "a-x1-bastion"),
            instance("i-3", "terminated", "a-x1", "a-x1-bastion"),
            instance("i-4", "running", "a-x1", "a-x1-worker"),
            instance("i-5", "running", "b-x2", "a-x1-bastion"),
        ];
        let response = format!(
            "<R><reservationSet><item><instancesSet>{}</instancesSet></item></reservationSet></R>",
            all.concat()
        );
        let found = instances(&scope, &parse(&response));
        let ids: Vec<_> = found
            .iter()
            .map(|it| (it.id.as_str(), it.is_alive()))
            .collect();
        assert_eq!(ids, [("i-1", false), ("i-2", true)]);
    }
}
