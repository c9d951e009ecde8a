//! Global configuration of the hosted cluster, from the HostedCluster's.

mod bootstrap;
mod infrastructure;
mod network;
pub(super) mod proxy;

use serde_json::{Value, json};

use super::error::Error;
use super::input::Input;
use super::object::{Desired, Key, Object, config_map, fields, with_spec};
pub(crate) use bootstrap::documents;

const API: &str = "config.openshift.io/v1";
const OPERATOR_API: &str = "operator.openshift.io/v1";
/// Name of all objects.
const CLUSTER: &str = "cluster";
/// Name of the ConfigMap with the configuration of an installation.
const INSTALL_CONFIG: &str = "cluster-config-v1";

pub(super) fn build(input: &Input<'_>, desired: &mut Desired) {
    let endpoint = &input.hcp["status"]["controlPlaneEndpoint"]["host"];
    if endpoint.as_str().is_none_or(str::is_empty) {
        let error = Error::missing("global configuration", "the address of the API server");
        desired.errors.push(error);
        return;
    }
    desired.add(infrastructure::build(input));
    desired.add(dns(input));
    desired.add(copied(input, "Image", "image", &json!({})));
    desired.add(ingress(input));
    network::build(input, desired);
    proxy::build(input, desired);
    mirrors(input, desired);
    desired.attempt(install_config(input));
    desired.add(cloud_credential(input));
    let issuer = json!({ "serviceAccountIssuer": input.text("/issuerURL") });
    desired.add(copied(input, "Authentication", "authentication", &issuer));
    desired.add(copied(input, "APIServer", "apiServer", &json!({})));
}

/// An object of the global configuration.
fn config(kind: &str, spec: Value) -> Object {
    Object::merge(with_spec(API, kind, "", CLUSTER, spec))
}

/// An object with the user's configuration as spec, and further fields. Without configuration, other fields stay.
fn copied(input: &Input<'_>, kind: &str, field: &str, further: &Value) -> Object {
    let live = input
        .live_config(kind)
        .map_or(&Value::Null, |it| &it["spec"]);
    let mut spec = fields(further);
    if let Some(found) = input.configuration(field) {
        spec = fields(found);
        spec.extend(fields(further));
        for key in fields(live).keys().filter(|key| !is_default(kind, key)) {
            spec.entry(key.clone()).or_insert(Value::Null);
        }
    }
    config(kind, Value::Object(spec))
}

/// Fields that the API server sets.
fn is_default(kind: &str, field: &str) -> bool {
    (kind, field) == ("APIServer", "audit")
}

fn dns(input: &Input<'_>) -> Object {
    let base_domain = if input.is_on(&["IBMCloud"]) {
        input.text("/dns/baseDomain").to_owned()
    } else {
        input.base_domain()
    };
    let mut spec = json!({ "baseDomain": base_domain });
    for (field, id) in [
        ("publicZone", "/dns/publicZoneID"),
        ("privateZone", "/dns/privateZoneID"),
    ] {
        if !input.text(id).is_empty() {
            spec[field] = json!({ "id": input.text(id) });
        }
    }
    let role = "/platform/aws/sharedVPC/rolesRef/ingressARN";
    if input.is_on(&["AWS"]) && input.spec("/platform/aws/sharedVPC").is_some() {
        let role = json!({ "privateZoneIAMRole": input.text(role) });
        spec["platform"] = json!({ "type": "AWS", "aws": role });
    }
    config("DNS", spec)
}

fn ingress(input: &Input<'_>) -> Object {
    let live = input.live_config("Ingress").map(|it| &it["spec"]["domain"]);
    let given = input.configuration("ingress").map(|it| &it["domain"]);
    let known = given.or(live).and_then(Value::as_str).unwrap_or("");
    let domain = match known {
        "" => input.ingress_domain(),
        known => known.to_owned(),
    };
    copied(input, "Ingress", "ingress", &json!({ "domain": domain }))
}

fn mirrors(input: &Input<'_>, desired: &mut Desired) {
    let old = "operator.openshift.io/v1alpha1";
    let old = Key::new(old, "ImageContentSourcePolicy", "", CLUSTER);
    desired.add(Object::delete(&old).chained("image mirrors"));
    let sources = input.list("/imageContentSources").iter();
    let mirrors: Vec<_> = sources
        .map(|it| json!({ "source": it["source"], "mirrors": it["mirrors"] }))
        .collect();
    let spec = json!({ "imageDigestMirrors": mirrors });
    let mut set = with_spec(API, "ImageDigestMirrorSet", "", CLUSTER, spec);
    set["metadata"]["labels"] = json!({ "machineconfiguration.openshift.io/role": "worker" });
    desired.add(Object::enforce(set).chained("image mirrors"));
}

/// What components read from the configuration of an installation.
fn install_config(input: &Input<'_>) -> Result<Object, Error> {
    let data = json!({ "install-config": install_config_text(input)? });
    Ok(Object::enforce(config_map(
        "kube-system",
        INSTALL_CONFIG,
        data,
    )))
}

fn install_config_text(input: &Input<'_>) -> Result<String, Error> {
    let region = |platform: &str| input.text(&format!("/platform/{platform}/region"));
    let platform = match input.platform() {
        "AWS" => json!({ "aws": { "region": region("aws") } }),
        "GCP" => {
            let project = input.text("/platform/gcp/project");
            json!({ "gcp": { "projectID": project, "region": region("gcp") } })
        }
        _ => json!({ "none": {} }),
    };
    let networks = input.cidrs("/networking/machineNetwork");
    let networks: Vec<_> = networks
        .iter()
        .map(|cidr| json!({ "cidr": cidr }))
        .collect();
    let config = json!({
        "apiVersion": "v1",
        "controlPlane": { "replicas": 1 },
        "networking": { "machineNetwork": networks },
        "platform": platform,
    });
    serde_saphyr::to_string(&config)
        .map_err(|error| Error::invalid(format!("ConfigMap {INSTALL_CONFIG}"), error.to_string()))
}

fn cloud_credential(input: &Input<'_>) -> Object {
    let live = input.live(OPERATOR_API, "CloudCredential", "", CLUSTER);
    let spec = json!({ "managementState": managed(live), "credentialsMode": "Manual" });
    Object::merge(with_spec(
        OPERATOR_API,
        "CloudCredential",
        "",
        CLUSTER,
        spec,
    ))
}

/// The management state of an operator, which users may change.
pub(super) fn managed(live: Option<&Value>) -> &str {
    let state = live.and_then(|live| live["spec"]["managementState"].as_str());
    state.filter(|state| !state.is_empty()).unwrap_or("Managed")
}
