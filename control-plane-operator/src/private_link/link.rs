//! Links as objects. Pure.

use api::hypershift::v1beta1::HostedControlPlane;
use control_plane_component::Objects;
use control_plane_component::render::owner;
use serde_json::{Value, json};

/// The address of the internal load balancer of a Service, which is not being deleted. The annotation says that it is internal.
pub(super) fn address(
    objects: &Objects,
    service: &str,
    (annotation, internal): (&str, &str),
) -> Option<String> {
    let service = objects.get("", "Service", service)?;
    let metadata = &service["metadata"];
    if metadata["deletionTimestamp"].is_string() || metadata["annotations"][annotation] != internal
    {
        return None;
    }
    let ingress = service["status"]["loadBalancer"]["ingress"].as_array()?;
    let address = ingress.iter().find_map(|it| it["ip"].as_str());
    address.map(str::to_owned)
}

/// The link of a Service.
pub(super) fn link(
    hcp: &HostedControlPlane,
    service: &str,
    finalizers: &[&str],
    spec: &Value,
) -> Value {
    json!({
        "metadata": {
            "namespace": hcp.metadata.namespace,
            "name": service,
            "finalizers": finalizers,
            "ownerReferences": [owner(hcp)],
        },
        "spec": spec,
    })
}

/// Whether a link has the owner and the finalizers of another one, and these fields of its specification.
pub(super) fn has(found: &Value, desired: &Value, fields: &[&str]) -> bool {
    let (live, wanted) = (&found["metadata"], &desired["metadata"]);
    let owners = items(&live["ownerReferences"]);
    let owner = &wanted["ownerReferences"][0]["uid"];
    let finalizers = items(&live["finalizers"]);
    let none = json!([]);
    let is_same = |field: &&str| match (&found["spec"][*field], &desired["spec"][*field]) {
        (Value::Null, wanted) => wanted.is_null() || *wanted == none,
        (live, wanted) => live == wanted,
    };
    owners.iter().any(|it| it["uid"] == *owner)
        && items(&wanted["finalizers"])
            .iter()
            .all(|it| finalizers.contains(it))
        && fields.iter().all(is_same)
}

fn items(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}
