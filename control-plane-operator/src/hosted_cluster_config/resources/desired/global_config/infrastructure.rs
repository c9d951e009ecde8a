//! The object `Infrastructure`: platform, endpoints and topology.

use control_plane_component::facts::url;
use serde_json::{Map, Value, json};

use super::super::input::Input;
use super::super::object::{Object, with_spec};
use super::{API, CLUSTER};

pub(super) fn build(input: &Input<'_>) -> Object {
    let platform = input.platform();
    let mut spec = json!({ "platformSpec": { "type": platform } });
    let mut platform_status = json!({ "type": platform });
    let (section, settings, status) = sections(input);
    if let Some(settings) = settings {
        spec["platformSpec"][section] = settings;
    }
    if let Some(status) = status {
        platform_status[section] = status;
    }
    match platform {
        "Azure" => spec["cloudConfig"] = json!({ "name": "cloud.conf" }),
        "OpenStack" => {
            spec["cloudConfig"] = json!({ "name": "cloud-provider-config", "key": "cloud.conf" });
        }
        _ => {}
    }
    let (external, internal) = urls(input);
    let topology = if input.has_redundant_infrastructure() {
        "HighlyAvailable"
    } else {
        "SingleReplica"
    };
    let mut object = with_spec(API, "Infrastructure", "", CLUSTER, spec);
    object["status"] = json!({
        "apiServerURL": external,
        "apiServerInternalURI": internal,
        "etcdDiscoveryDomain": input.base_domain(),
        "infrastructureName": input.text("/infraID"),
        "controlPlaneTopology": "External",
        "infrastructureTopology": topology,
        "platform": platform,
        "platformStatus": platform_status,
    });
    Object::merge(object)
}

/// External and internal URL of the API server.
fn urls(input: &Input<'_>) -> (String, String) {
    let endpoint = &input.hcp["status"]["controlPlaneEndpoint"];
    let port = endpoint["port"]
        .as_i64()
        .and_then(|port| i32::try_from(port).ok());
    let port = port.unwrap_or(6443);
    let host = endpoint["host"].as_str().unwrap_or("");
    let external = match input.text("/kubeAPIServerDNSName") {
        "" => host,
        name => name,
    };
    let internal = if input.is_private() {
        format!("api.{}.hypershift.local", input.name())
    } else {
        host.to_owned()
    };
    (url(external, port), url(&internal, port))
}

/// The platform's name as a field, its settings, and its status.
fn sections(input: &Input<'_>) -> (&'static str, Option<Value>, Option<Value>) {
    let of = |field: &str| input.text(&format!("/platform/{field}"));
    match input.platform() {
        "AWS" => {
            let tags = input.list("/platform/aws/resourceTags").iter();
            // Tags of Kubernetes are set by the EBS driver itself.
            let tags = tags.filter(|tag| !starts_with(&tag["key"], "kubernetes.io"));
            let tags: Vec<_> = tags.cloned().collect();
            let status = json!({ "region": of("aws/region"), "resourceTags": tags });
            ("aws", Some(json!({})), Some(status))
        }
        "Azure" => {
            let cloud = Some(of("azure/cloud")).filter(|it| !it.is_empty());
            let cloud = cloud.unwrap_or("AzurePublicCloud");
            let group = of("azure/resourceGroup");
            let status = json!({ "cloudName": cloud, "resourceGroupName": group });
            ("azure", None, Some(status))
        }
        "PowerVS" => {
            let fields = ["region", "zone", "cisInstanceCRN", "resourceGroup"];
            let fields = fields.map(|it| (it.to_owned(), json!(of(&format!("powervs/{it}")))));
            let status: Map<String, Value> = fields.into_iter().collect();
            ("powervs", None, Some(Value::Object(status)))
        }
        "OpenStack" => {
            let status = json!({
                "cloudName": "openstack",
                "loadBalancer": { "type": "UserManaged" },
                "apiServerInternalIPs": [],
                "ingressIPs": [],
            });
            ("openstack", Some(json!({})), Some(status))
        }
        "GCP" => {
            let labels = input.list("/platform/gcp/resourceLabels").iter();
            let labels = labels.filter(|label| !starts_with(&label["key"], "kubernetes-io"));
            let labels = labels.map(|label| {
                let value = label["value"].as_str().unwrap_or("");
                json!({ "key": label["key"], "value": value })
            });
            let status = json!({
                "projectID": of("gcp/project"),
                "region": of("gcp/region"),
                "resourceLabels": labels.collect::<Vec<_>>(),
            });
            ("gcp", None, Some(status))
        }
        _ => ("", None, None),
    }
}

fn starts_with(value: &Value, prefix: &str) -> bool {
    value.as_str().is_some_and(|text| text.starts_with(prefix))
}
