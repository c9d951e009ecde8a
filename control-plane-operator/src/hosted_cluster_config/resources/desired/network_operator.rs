//! Configuration of the network operator, so that the cluster's network does not collide with the infrastructure's.

use serde_json::{Map, Value, json};

use super::global_config::managed;
use super::input::Input;
use super::object::{Desired, Object, with_spec};

const API: &str = "operator.openshift.io/v1";
const OVN: &str = "OVNKubernetes";
const SDN: &str = "OpenShiftSDN";
const OPERATOR: &str = "/operatorConfiguration/clusterNetworkOperator";

pub(super) fn build(input: &Input<'_>, desired: &mut Desired) {
    let live = input.live(API, "Network", "", "cluster");
    let mut spec = json!({ "managementState": managed(live) });
    let is_disabled = input.spec(&format!("{OPERATOR}/disableMultiNetwork"));
    if is_disabled == Some(&json!(true)) {
        spec["disableMultiNetwork"] = json!(true);
    }
    let default = live.map_or(&Value::Null, |it| &it["spec"]["defaultNetwork"]);
    let mut network = Map::new();
    let (ovn, sdn) = (
        ovn(input, &default["ovnKubernetesConfig"]),
        sdn(input, default),
    );
    for (field, part) in [("ovnKubernetesConfig", ovn), ("openshiftSDNConfig", sdn)] {
        if part.as_object().is_some_and(|part| !part.is_empty()) {
            network.insert(field.to_owned(), part);
        }
    }
    if !network.is_empty() {
        spec["defaultNetwork"] = Value::Object(network);
    }
    desired.add(Object::merge(with_spec(
        API, "Network", "", "cluster", spec,
    )));
}

fn sdn(input: &Input<'_>, live: &Value) -> Value {
    let port = &live["openshiftSDNConfig"]["vxlanPort"];
    if input.is_on(&["KubeVirt"]) && has_type(input, SDN) && port.is_null() {
        return json!({ "vxlanPort": 9879 });
    }
    json!({})
}

fn ovn(input: &Input<'_>, live: &Value) -> Value {
    let mut config = json!({});
    if !has_type(input, OVN) {
        return config;
    }
    if input.is_on(&["KubeVirt"]) {
        let mut default = |pointer: &str, path: &[&str], value: Value| {
            if live.pointer(pointer).is_none_or(Value::is_null) {
                set(&mut config, path, value);
            }
        };
        default(
            "/v4InternalSubnet",
            &["v4InternalSubnet"],
            json!("100.66.0.0/16"),
        );
        default("/genevePort", &["genevePort"], json!(9880));
        if has_ipv6(input) {
            let path = ["ipv6", "internalJoinSubnet"];
            default("/ipv6/internalJoinSubnet", &path, json!("fd99::/64"));
        }
    }
    if input.is_on(&["PowerVS"]) {
        set(
            &mut config,
            &["gatewayConfig", "routingViaHost"],
            json!(true),
        );
    }
    for path in [
        &["ipv4", "internalJoinSubnet"][..],
        &["ipv4", "internalTransitSwitchSubnet"],
        &["ipv6", "internalJoinSubnet"],
        &["ipv6", "internalTransitSwitchSubnet"],
        &["mtu"],
        &["v4InternalSubnet"],
        &["v6InternalSubnet"],
    ] {
        let pointer = format!("{OPERATOR}/ovnKubernetesConfig/{}", path.join("/"));
        let given = input.spec(&pointer);
        if let Some(given) = given.filter(|given| **given != json!("") && **given != json!(0)) {
            set(&mut config, path, given.clone());
        }
    }
    config
}

fn has_type(input: &Input<'_>, network: &str) -> bool {
    input.text("/networking/networkType") == network
}

fn has_ipv6(input: &Input<'_>) -> bool {
    let networks = ["clusterNetwork", "serviceNetwork", "machineNetwork"].iter();
    networks
        .flat_map(|networks| input.cidrs(&format!("/networking/{networks}")))
        .any(|cidr| cidr.contains(':'))
}

fn set(config: &mut Value, path: &[&str], value: Value) {
    let place = path
        .iter()
        .fold(config, |config, field| &mut config[*field]);
    *place = value;
}
