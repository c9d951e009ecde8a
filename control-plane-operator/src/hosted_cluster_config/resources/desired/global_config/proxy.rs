//! The cluster-wide proxy and its CA bundle.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::super::input::Input;
use super::super::object::{Desired, Key, Object, config_map};
use super::copied;

/// Annotation of a Proxy that has its spec from the HostedCluster.
const COPIED: &str = "hypershift.io/hosted-cluster-proxy-config";
const NAMESPACE: &str = "openshift-config";
/// Names and addresses within the cluster.
const LOCAL: [&str; 5] = ["127.0.0.1", "localhost", ".svc", ".cluster.local", ".local"];
/// Metadata service of AWS and Azure.
const METADATA: &str = "169.254.169.254";

pub(super) fn build(input: &Input<'_>, desired: &mut Desired) {
    trusted_ca(input, desired);
    desired.add(object(input));
}

fn object(input: &Input<'_>) -> Object {
    let live = input.live_config("Proxy").unwrap_or(&Value::Null);
    let mut object = copied(input, "Proxy", "proxy", &json!({}));
    if input.configuration("proxy").is_some() {
        object.value["metadata"]["annotations"] = json!({ COPIED: "true" });
    } else if live["metadata"]["annotations"].get(COPIED).is_some() {
        object.value["metadata"]["annotations"] = json!({ COPIED: null });
        for field in super::fields(&live["spec"]).keys() {
            object.value["spec"][field] = Value::Null;
        }
    }
    object
}

/// The object with the status that the network operator computes in the hosted cluster.
pub(super) fn with_status(input: &Input<'_>) -> Object {
    let mut object = object(input);
    object.value["status"] = status(input);
    object
}

fn status(input: &Input<'_>) -> Value {
    let of = |field: &str| input.text(&format!("/configuration/proxy/{field}"));
    let urls = ["httpProxy", "httpsProxy"].map(|field| (field, of(field)));
    let mut status = json!({});
    for (field, url) in urls.iter().filter(|(_, url)| !url.is_empty()) {
        status[field] = json!(url);
    }
    if status != json!({}) {
        status["noProxy"] = json!(exemptions(input));
    }
    status
}

/// What is reached without the proxy: names and addresses of the cluster and its cloud, and those of the user.
fn exemptions(input: &Input<'_>) -> String {
    let networks = ["machineNetwork", "clusterNetwork", "serviceNetwork"];
    let networks = networks.map(|it| input.cidrs(&format!("/networking/{it}")));
    let mut all: BTreeSet<_> = LOCAL.into_iter().chain(networks.concat()).collect();
    if input.is_on(&["AWS", "Azure"]) {
        all.insert(METADATA);
    }
    let region = input.text("/platform/aws/region");
    let names = match region {
        "us-east-1" => ".ec2.internal".to_owned(),
        region => format!(".{region}.compute.internal"),
    };
    if input.is_on(&["AWS"]) && !region.is_empty() {
        all.insert(&names);
    }
    let users = input.text("/configuration/proxy/noProxy").split(',');
    all.extend(users.map(str::trim).filter(|it| !it.is_empty()));
    all.into_iter().collect::<Vec<_>>().join(",")
}

fn trusted_ca(input: &Input<'_>, desired: &mut Desired) {
    let name = name(input);
    let live = input.live_config("Proxy").unwrap_or(&Value::Null);
    let is_copied = live["metadata"]["annotations"].get(COPIED).is_some();
    let old = live["spec"]["trustedCA"]["name"].as_str().unwrap_or("");
    if is_copied && !old.is_empty() && old != name {
        let old = Key::new("v1", "ConfigMap", NAMESPACE, old);
        desired.add(Object::delete(&old));
    }
    if !name.is_empty() {
        let object = format!("ConfigMap {NAMESPACE}/{name}");
        let source = input.source(&object, "ConfigMap", name);
        desired
            .attempt(source.map(|source| {
                Object::enforce(config_map(NAMESPACE, name, source["data"].clone()))
            }));
    }
}

/// Name of the ConfigMap with the CA bundle, in both clusters.
pub(in super::super) fn name<'a>(input: &Input<'a>) -> &'a str {
    input.text("/configuration/proxy/trustedCA/name")
}
