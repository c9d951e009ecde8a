//! Credentials of OpenStack: the user's Secret with settings of the cloud provider.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::super::error::Error;
use super::super::input::Input;
use super::super::object::{Desired, Object, fields, secret};
use super::{CSI_DRIVERS, REGISTRY, is_value};

const PLACES: [(&str, &str); 5] = [
    (CSI_DRIVERS, "openstack-cloud-credentials"),
    (CSI_DRIVERS, "manila-cloud-credentials"),
    ("openshift-manila-csi-driver", "manila-cloud-credentials"),
    REGISTRY,
    (
        "openshift-cloud-network-config-controller",
        "cloud-credentials",
    ),
];
const CONFIG: &str = "cloud.conf";
const CA: &str = "cacert";
const CA_BUNDLE: &str = "ca-bundle.pem";

pub(super) fn build(input: &Input<'_>, desired: &mut Desired) {
    for (namespace, name) in PLACES {
        desired.attempt(credentials(input, namespace, name));
    }
}

fn credentials(input: &Input<'_>, namespace: &str, name: &str) -> Result<Object, Error> {
    let object = format!("Secret {namespace}/{name}");
    let source = input.text("/platform/openstack/identityRef/name");
    let data = &input.source(&object, "Secret", source)?["data"];
    let given = input
        .secret_value(&object, source, CONFIG)
        .unwrap_or_default();
    let ca = input.secret_value(&object, source, CA).ok();
    for field in ["identityRef/cloudName", "externalNetwork/id"] {
        let value = input.text(&format!("/platform/openstack/{field}"));
        if !value.is_empty() && !is_value(value) {
            return Err(Error::invalid(object, format!("{field} has a line break")));
        }
    }
    let config = config(input, &String::from_utf8_lossy(&given), ca.is_some());
    let mut own: Vec<(&str, &[u8])> = vec![(CONFIG, config.as_bytes())];
    if let Some(ca) = &ca {
        own.extend([(CA, ca.as_slice()), (CA_BUNDLE, ca.as_slice())]);
    }
    let value = secret(namespace, name, &own);
    let initial: Value = fields(data)
        .into_iter()
        .filter(|(key, _)| value["data"].get(key).is_none())
        .collect();
    Ok(Object::merge(value).initially(json!({ "data": initial })))
}

fn config(input: &Input<'_>, given: &str, has_ca: bool) -> String {
    let of = |field: &str| input.text(&format!("/platform/openstack/{field}"));
    let mut text = given.to_owned();
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    text.push_str("[Global]\nuse-clouds = true\nclouds-file = /etc/openstack/secret/clouds.yaml\n");
    let _ = writeln!(text, "cloud = {}", of("identityRef/cloudName"));
    if has_ca {
        text.push_str("ca-file = /etc/pki/ca-trust/extracted/pem/ca-bundle.pem\n");
    }
    text.push_str("[LoadBalancer]\nmax-shared-lb = 1\nmanage-security-groups = true\n");
    match of("externalNetwork/id") {
        "" => {}
        network => {
            let _ = writeln!(text, "floating-network-id = {network}");
        }
    }
    let networks = input.cidrs("/networking/machineNetwork").join(",");
    let _ = writeln!(text, "[Networking]\naddress-sort-order = {networks}");
    text
}
