//! The object `Network`: address ranges of pods and Services.

use serde_json::{Value, json};

use super::super::error::Error;
use super::super::input::Input;
use super::super::object::{Desired, Object};
use super::config;

pub(super) fn build(input: &Input<'_>, desired: &mut Desired) {
    let (object, errors) = object(input);
    desired.errors.extend(errors);
    desired.add(object);
}

/// The object with all valid networks, and what is wrong with the others.
pub(super) fn object(input: &Input<'_>) -> (Object, Vec<Error>) {
    let mut errors = Vec::new();
    let clusters = input.list("/networking/clusterNetwork").iter();
    let mut networks = Vec::new();
    for network in clusters {
        match prefix(network) {
            Some(prefix) => {
                networks.push(json!({ "cidr": network["cidr"], "hostPrefix": prefix }));
            }
            None => errors.push(Error::invalid(
                "Network cluster",
                format!("clusterNetwork {} is not a valid CIDR", network["cidr"]),
            )),
        }
    }
    let services = input.cidrs("/networking/serviceNetwork");
    let mut spec = json!({
        "clusterNetwork": networks,
        "networkType": input.text("/networking/networkType"),
        "serviceNetwork": services,
    });
    if let Some(found) = input.configuration("network") {
        for field in ["externalIP", "serviceNodePortRange"] {
            spec[field] = found[field].clone();
        }
    }
    let mut object = config("Network", spec.clone());
    if input.configuration("proxy").is_some() {
        object.value["status"] = status(input, &spec);
    }
    (object, errors)
}

/// The network operator sets the status after it has probed the MTU, for which it waits for the status of the proxy, which
/// needs the networks.
fn status(input: &Input<'_>, spec: &Value) -> Value {
    let live = input
        .live_config("Network")
        .map_or(&Value::Null, |it| &it["status"]);
    let mut status = json!({});
    for field in ["clusterNetwork", "serviceNetwork"] {
        if live[field].as_array().is_none_or(Vec::is_empty) {
            status[field] = spec[field].clone();
        }
    }
    status
}

/// The prefix of a node's pod range, if the network is valid.
fn prefix(network: &Value) -> Option<i64> {
    let (address, bits) = network["cidr"].as_str()?.split_once('/')?;
    let address: std::net::IpAddr = address.parse().ok()?;
    bits.parse::<u8>().ok()?;
    Some(match network["hostPrefix"].as_i64() {
        Some(prefix) if prefix != 0 => prefix,
        _ if address.is_ipv6() => 64,
        _ => 23,
    })
}
