//! Catalogs of operators, and the API of their packages.

use serde_json::{Value, json};

use super::aggregated_apis;
use super::error::Error;
use super::input::Input;
use super::object::{Desired, Key, Object, with_spec};

const CONFIG: &str = "config.openshift.io/v1";
const API: &str = "operators.coreos.com/v1alpha1";
const NAMESPACE: &str = "openshift-marketplace";
/// A catalog that older releases had.
const RETIRED: &str = "redhat-marketplace";
/// Catalogs: name, display name, priority.
const CATALOGS: [(&str, &str, i32); 3] = [
    ("certified-operators", "Certified Operators", -200),
    ("community-operators", "Community Operators", -400),
    ("redhat-operators", "Red Hat Operators", -100),
];
const DISABLED: &str = "disableAllDefaultSources";

pub(super) fn build(input: &Input<'_>, desired: &mut Desired) {
    desired.add(hub(input));
    let key = |name: &str| Key::new(API, "CatalogSource", NAMESPACE, name);
    let live = input.live_config("OperatorHub");
    if live.is_some_and(|live| live["spec"][DISABLED] == true) {
        desired.extend(CATALOGS.map(|(name, ..)| Object::delete(&key(name))));
    } else {
        for catalog in CATALOGS {
            desired.attempt(source(input, catalog));
        }
    }
    desired.add(Object::delete(&key(RETIRED)));
    aggregated_apis::package_server(input, desired);
}

/// The user's choice of sources, which is in the HostedCluster unless catalogs run in the hosted cluster.
fn hub(input: &Input<'_>) -> Object {
    let hub = |spec| Object::merge(with_spec(CONFIG, "OperatorHub", "", "cluster", spec));
    let given = input.configuration("operatorhub");
    let is_disabled = given.map(|given| given[DISABLED] == true);
    if !input.has_management_catalogs() {
        let initial = json!({ "spec": { DISABLED: is_disabled.unwrap_or(false) } });
        return hub(json!({})).initially(initial);
    }
    if let Some(is_disabled) = is_disabled {
        return hub(json!({ DISABLED: is_disabled }));
    }
    let live = input
        .live_config("OperatorHub")
        .and_then(|live| live["spec"].as_object());
    let live = live.into_iter().flat_map(serde_json::Map::keys);
    hub(live.map(|key| (key.clone(), Value::Null)).collect())
}

fn source(
    input: &Input<'_>,
    (name, display_name, priority): (&str, &str, i32),
) -> Result<Object, Error> {
    let mut spec = json!({
        "sourceType": "grpc",
        "displayName": display_name,
        "publisher": "Red Hat",
        "priority": priority,
        "grpcPodConfig": { "securityContextConfig": "restricted" },
        "updateStrategy": { "registryPoll": { "interval": "10m" } },
    });
    if input.has_management_catalogs() {
        spec["address"] = json!(format!("{name}:50051"));
    } else {
        let image = input.settings.catalog_images.get(name);
        let object = format!("CatalogSource {NAMESPACE}/{name}");
        spec["image"] = json!(image.ok_or_else(|| Error::missing(object, "the catalog's image"))?);
    }
    let mut value = with_spec(API, "CatalogSource", NAMESPACE, name, spec);
    value["metadata"]["annotations"] = json!({
        "target.workload.openshift.io/management": r#"{"effect": "PreferredDuringScheduling"}"#,
    });
    Ok(Object::enforce(value))
}
