//! Endpoints of the Service `kubernetes`: the address on which each node's proxy of the API server listens.
//!
//! The API servers do not write them, because they only know their pod IPs in the management cluster.

use serde_json::{Value, json};

use super::input::Input;
use super::object::{Desired, Key, Object, bare};

const SERVICE: &str = "kubernetes";
const NAMESPACE: &str = "default";
const IPV4_ADDRESS: &str = "172.20.0.1";
const IPV6_ADDRESS: &str = "fd00::1";
const PORT: i64 = 6443;

pub(super) fn build(input: &Input<'_>, desired: &mut Desired) {
    let (address, port) = (address(input), port(input));
    let mut endpoints = bare(&Key::new("v1", "Endpoints", NAMESPACE, SERVICE));
    endpoints["metadata"]["labels"] = json!({ "endpointslice.kubernetes.io/skip-mirror": "true" });
    endpoints["subsets"] = json!([{ "addresses": [{ "ip": address }], "ports": [&port] }]);
    let key = Key::new("discovery.k8s.io/v1", "EndpointSlice", NAMESPACE, SERVICE);
    let mut slice = bare(&key);
    slice["metadata"]["labels"] = json!({ "kubernetes.io/service-name": SERVICE });
    slice["addressType"] = json!(if address.contains(':') {
        "IPv6"
    } else {
        "IPv4"
    });
    slice["endpoints"] = json!([{ "addresses": [address], "conditions": { "ready": true } }]);
    slice["ports"] = json!([port]);
    desired.extend([endpoints, slice].map(Object::enforce));
}

fn address<'a>(input: &Input<'a>) -> &'a str {
    let services = input.cidrs("/networking/serviceNetwork");
    match input.text("/networking/apiServer/advertiseAddress") {
        "" if services.first().is_some_and(|cidr| cidr.contains(':')) => IPV6_ADDRESS,
        "" => IPV4_ADDRESS,
        address => address,
    }
}

fn port(input: &Input<'_>) -> Value {
    let port = input
        .spec("/networking/apiServer/port")
        .and_then(Value::as_i64);
    json!({ "name": "https", "port": port.unwrap_or(PORT), "protocol": "TCP" })
}
