//! The status of the FeatureGate: the features of each version that a component of the hosted cluster may still run.
//!
//! During an upgrade, components of the earlier version look for its features. Which versions these are is in the history of
//! the ClusterVersion: all up to the last one that was complete.

use std::collections::BTreeSet;

use kube::Api;
use kube::api::{ApiResource, DynamicObject, GroupVersionKind};
use serde_json::{Value, json};
use support::reconcile::is_missing;

const VERSION_KIND: (&str, &str) = ("ClusterVersion", "clusterversions");
const VERSION: &str = "version";

/// The rendered features, and those of other versions that are still in use.
pub(super) fn merged(rendered: &Value, live: &Value, version: Option<&Value>) -> Value {
    let entries = |object: &Value| {
        let found = object["status"]["featureGates"].as_array();
        found.cloned().unwrap_or_default()
    };
    let mut all = entries(rendered);
    let used = version.map(versions);
    for entry in entries(live) {
        let is_known = all.iter().any(|it| it["version"] == entry["version"]);
        let name = entry["version"].as_str().unwrap_or_default();
        let is_used = used.as_ref().is_none_or(|used| used.contains(name));
        if !is_known && is_used {
            all.push(entry);
        }
    }
    let mut status = rendered["status"].clone();
    status["featureGates"] = json!(all);
    status
}

/// The versions of a ClusterVersion: the desired one, and its history up to the first entry that is complete.
fn versions(version: &Value) -> BTreeSet<&str> {
    let status = &version["status"];
    let mut versions: BTreeSet<_> = status["desired"]["version"].as_str().into_iter().collect();
    for entry in status["history"].as_array().into_iter().flatten() {
        versions.extend(entry["version"].as_str());
        if entry["state"] == "Completed" {
            break;
        }
    }
    versions
}

/// Reads the live FeatureGate, and the ClusterVersion if there is one.
pub(super) async fn read(
    client: &kube::Client,
    resource: &ApiResource,
    name: &str,
) -> kube::Result<(Value, Option<Value>)> {
    let gates: Api<DynamicObject> = Api::all_with(client.clone(), resource);
    let live = gates.get_opt(name).await?;
    let (kind, plural) = VERSION_KIND;
    let kind = GroupVersionKind::gvk(&resource.group, &resource.version, kind);
    let resource = ApiResource::from_gvk_with_plural(&kind, plural);
    let versions: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
    let version = match versions.get_opt(VERSION).await {
        Err(error) if is_missing(&error) => None,
        found => found?,
    };
    let data = |object: DynamicObject| object.data;
    Ok((live.map(data).unwrap_or_default(), version.map(data)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gate(versions: &[&str]) -> Value {
        let entries = versions
            .iter()
            .map(|version| json!({ "version": version, "enabled": [] }));
        json!({ "status": { "featureGates": entries.collect::<Vec<_>>() } })
    }

    fn history(entries: &[(&str, &str)]) -> Value {
        let entries = entries
            .iter()
            .map(|(version, state)| json!({ "version": version, "state": state }));
        json!({ "status": {
            "desired": { "version": "4.22.0" },
            "history": entries.collect::<Vec<_>>(),
        } })
    }

    #[test]
    fn features_of_versions_in_use_are_kept() {
        let live = ["4.19.0", "4.20.0", "4.21.0"];
        let upgrading = [
            ("4.22.0", "Partial"),
            ("4.21.0", "Partial"),
            ("4.20.0", "Completed"),
            ("4.19.0", "Completed"),
        ];
        let complete = [("4.22.0", "Completed"), ("4.21.0", "Completed")];
        for (version, expected) in [
            (None, vec!["4.22.0", "4.19.0", "4.20.0", "4.21.0"]),
            (
                Some(history(&upgrading)),
                vec!["4.22.0", "4.20.0", "4.21.0"],
            ),
            (Some(history(&complete)), vec!["4.22.0"]),
            (Some(json!({})), vec!["4.22.0"]),
        ] {
            let merged = merged(&gate(&["4.22.0"]), &gate(&live), version.as_ref());
            let found: Vec<_> = merged["featureGates"]
                .as_array()
                .unwrap()
                .iter()
                .map(|entry| entry["version"].as_str().unwrap())
                .collect();
            assert_eq!(found, expected, "{version:?}");
        }
    }

    #[test]
    fn rendered_features_replace_live_ones_of_the_version() {
        let rendered =
            json!({ "status": { "featureGates": [{ "version": "1", "enabled": ["new"] }] } });
        let merged = merged(&rendered, &gate(&["1"]), None);
        assert_eq!(merged, rendered["status"]);
    }
}
