//! Virtual machines of a node pool on OpenStack.

use std::net::IpAddr;

use clap::Args;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::Usage;
use crate::create::cluster::args::{Arch, name_of};

/// The flag of additional ports.
const PORT: &str = "--openstack-node-additional-port";
/// How a port is written.
const FORM: &str = "write network-id:ID[,vnic-type:TYPE][,address-pairs:ADDRESS[-ADDRESS...]][,disable-port-security:true]";
/// How many additional ports a machine may have, and addresses each of them.
const MOST: usize = 10;
/// Longest name.
const LONGEST: usize = 255;
/// Longest name of an availability zone.
const LONGEST_ZONE: usize = 63;

/// Flags of virtual machines.
#[derive(Debug, Clone, Args)]
pub(crate) struct OpenStackNodeArgs {
    /// Flavor of the virtual machines: their processors, memory and disk
    #[arg(long = "openstack-node-flavor", value_name = "NAME", value_parser = name)]
    flavor: String,

    /// Image in the cloud that virtual machines start from [default: that of the release, which is uploaded]
    #[arg(long = "openstack-node-image-name", value_name = "NAME", value_parser = name)]
    image_name: Option<String>,

    /// Availability zone of the virtual machines [default: that of the cloud]
    #[arg(long = "openstack-node-availability-zone", value_name = "NAME", value_parser = zone)]
    availability_zone: Option<String>,

    /// Additional port of each virtual machine: network-id:ID, and optionally vnic-type:TYPE, address-pairs:A-B for
    /// addresses that it may send from, and disable-port-security:true, separated by commas. May be repeated
    #[arg(long = "openstack-node-additional-port", value_name = "FIELDS")]
    additional_port: Vec<String>,
}

// === impl OpenStackNodeArgs ===

impl OpenStackNodeArgs {
    /// `spec.platform` of a NodePool.
    pub(in crate::create) fn platform(&self, arch: Arch) -> Result<Value, Usage> {
        if arch != Arch::Amd64 {
            return Err(Usage::new(&format!(
                "--arch {}: node pools on OpenStack are amd64 only",
                name_of(arch)
            )));
        }
        if self.additional_port.len() > MOST {
            return Err(Usage::new(&format!(
                "{PORT}: there may be at most {MOST}, not {}",
                self.additional_port.len()
            )));
        }
        let ports = self.additional_port.iter().map(|text| port(text));
        let ports = ports.collect::<Result<Vec<_>, _>>()?;
        let mut openstack = json!({ "flavor": self.flavor });
        if let Some(name) = &self.image_name {
            openstack["imageName"] = json!(name);
        }
        if let Some(zone) = &self.availability_zone {
            openstack["availabilityZone"] = json!(zone);
        }
        if !ports.is_empty() {
            openstack["additionalPorts"] = json!(ports);
        }
        Ok(json!({ "type": "OpenStack", "openstack": openstack }))
    }

    /// Whether virtual machines have more ports than the one in the network of the cluster.
    pub(in crate::create) fn has_additional_ports(&self) -> bool {
        !self.additional_port.is_empty()
    }
}

/// The ID of a resource.
pub(super) fn id(text: &str) -> Result<String, String> {
    if text.len() == uuid::fmt::Hyphenated::LENGTH && Uuid::try_parse(text).is_ok() {
        return Ok(text.to_owned());
    }
    Err(format!(
        "{text:?} is not an ID such as 00000000-0000-0000-0000-000000000001"
    ))
}

/// The name of a flavor or an image.
fn name(text: &str) -> Result<String, String> {
    if (1..=LONGEST).contains(&text.len()) {
        return Ok(text.to_owned());
    }
    Err(format!("a name has 1 to {LONGEST} characters"))
}

fn zone(text: &str) -> Result<String, String> {
    if (1..=LONGEST_ZONE).contains(&text.len()) && !text.contains([':', ' ']) {
        return Ok(text.to_owned());
    }
    Err(format!(
        "the name of a zone has 1 to {LONGEST_ZONE} characters, and neither colons nor spaces"
    ))
}

/// A port of the form `network-id:ID[,vnic-type:TYPE][,address-pairs:A-B][,disable-port-security:BOOL]`.
fn port(text: &str) -> Result<Value, Usage> {
    let wrong = |why: &str| Usage::new(&format!("{PORT} {text:?}: {why}; {FORM}"));
    let mut port = json!({});
    for part in text.split(',') {
        let pair = part.split_once(':').filter(|(_, value)| !value.is_empty());
        let (key, value) = pair.ok_or_else(|| wrong(&format!("{part:?} has no value")))?;
        let (field, value) = field(key, value).map_err(|why| wrong(&why))?;
        if !port[field].is_null() {
            return Err(wrong(&format!("{key} is given twice")));
        }
        port[field] = value;
    }
    if port["network"].is_null() {
        return Err(wrong("network-id is missing"));
    }
    if port["portSecurityPolicy"] == "Disabled" && !port["allowedAddressPairs"].is_null() {
        // The cloud refuses both together.
        return Err(wrong(
            "without port security a port may send from any address: leave out address-pairs",
        ));
    }
    Ok(port)
}

/// A field of a port, and its value.
fn field(key: &str, value: &str) -> Result<(&'static str, Value), String> {
    match (key, value) {
        ("network-id", network) => Ok(("network", json!({ "id": id(network)? }))),
        ("vnic-type", kind) => Ok(("vnicType", json!(kind))),
        ("address-pairs", pairs) => Ok(("allowedAddressPairs", address_pairs(pairs)?)),
        ("disable-port-security", "true") => Ok(("portSecurityPolicy", json!("Disabled"))),
        ("disable-port-security", "false") => Ok(("portSecurityPolicy", json!("Enabled"))),
        ("disable-port-security", _) => {
            Err("disable-port-security must be true or false".to_owned())
        }
        _ => Err(format!("there is no field {key}")),
    }
}

/// Addresses and ranges of addresses, with dashes between them.
fn address_pairs(text: &str) -> Result<Value, String> {
    let addresses: Vec<_> = text.split('-').collect();
    if addresses.len() > MOST {
        return Err(format!("address-pairs has more than {MOST} addresses"));
    }
    if let Some(wrong) = addresses.iter().find(|address| !is_address(address)) {
        return Err(format!(
            "{wrong:?} is neither an address nor a range such as 192.0.2.0/24"
        ));
    }
    let pairs = addresses
        .iter()
        .map(|address| json!({ "ipAddress": address }));
    Ok(pairs.collect())
}

fn is_address(text: &str) -> bool {
    let (address, bits) = match text.split_once('/') {
        Some((address, bits)) => (address, Some(bits)),
        None => (text, None),
    };
    let Ok(address) = address.parse::<IpAddr>() else {
        return false;
    };
    let most = if address.is_ipv4() { 32 } else { 128 };
    bits.is_none_or(|bits| bits.parse::<u8>().is_ok_and(|bits| bits <= most))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NETWORK: &str = "network-id:00000000-0000-0000-0000-000000000001";

    #[test]
    fn ports_are_read_by_field() {
        let id = json!({ "id": "00000000-0000-0000-0000-000000000001" });
        for (fields, expected) in [
            ("", json!({ "network": id })),
            (
                ",vnic-type:direct,disable-port-security:true",
                json!({ "network": id, "vnicType": "direct", "portSecurityPolicy": "Disabled" }),
            ),
            (
                ",disable-port-security:false",
                json!({ "network": id, "portSecurityPolicy": "Enabled" }),
            ),
            (
                ",address-pairs:192.0.2.1-2001:db8::/64",
                json!({ "network": id, "allowedAddressPairs": [
                    { "ipAddress": "192.0.2.1" }, { "ipAddress": "2001:db8::/64" },
                ] }),
            ),
        ] {
            let found = port(&format!("{NETWORK}{fields}")).unwrap();
            assert_eq!(found, expected, "{fields}");
        }
    }

    #[test]
    fn invalid_ports_are_refused_with_the_reason() {
        for (fields, words) in [
            ("vnic-type:direct".to_owned(), "network-id is missing"),
            ("network-id:nodes".to_owned(), "is not an ID such as"),
            (format!("{NETWORK},vnic-type"), "has no value"),
            (format!("{NETWORK},vnic-type:"), "has no value"),
            (format!("{NETWORK},{NETWORK}"), "network-id is given twice"),
            (format!("{NETWORK},mtu:1500"), "there is no field mtu"),
            (
                format!("{NETWORK},disable-port-security:yes"),
                "must be true or false",
            ),
            (
                format!("{NETWORK},address-pairs:192.0.2.0/33"),
                "neither an address nor a range",
            ),
            (
                format!("{NETWORK},address-pairs:192.0.2.1,disable-port-security:true"),
                "leave out address-pairs",
            ),
        ] {
            let error = port(&fields).unwrap_err().to_string();
            assert!(error.contains(words), "{fields}: {error}");
        }
    }
}
