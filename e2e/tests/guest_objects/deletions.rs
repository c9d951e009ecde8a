//! Objects that the operator deletes: those of earlier releases, and those that settings no longer ask for.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Result, bail, ensure};
use control_plane_operator::hosted_cluster_config::resources::desired::{
    Key, LEGACY, Mode, Object, STEPS,
};
use serde_json::{Value, json};
use testbed::crds;

use super::facts::{self, Facts};
use super::guest::Guest;
use super::pass;
use super::profiles::Profile;

/// Number of deletions of the reference.
const COUNT: usize = 14;

/// Creates all of them, runs a pass, and returns the identities of those that are gone.
pub(crate) async fn run(guest: &Guest, profile: &mut Profile) -> Result<BTreeSet<String>> {
    let keys = keys(profile);
    let mut gone = BTreeSet::new();
    for key in &keys {
        ensure!(guest.read(key).await?.is_none(), "{key} exists");
        // Some kinds may only be created by the control plane.
        let object = pass::labelled(object(key)?);
        guest.operator.apply(&[object]).await?;
        ensure!(guest.read(key).await?.is_some(), "{key} does not exist");
    }
    pass::run(guest, profile).await?;
    for key in &keys {
        let left = guest.read(key).await?;
        let is_gone = left.is_none_or(|it| it["metadata"]["deletionTimestamp"].is_string());
        if is_gone {
            gone.insert(facts::identity(&object(key)?));
        } else {
            guest.complain(format!("{key} was not deleted"));
        }
    }
    Ok(gone)
}

/// Fails unless each deletion of the reference was among those that happened, of any profile.
pub(crate) fn are_complete(
    facts: &BTreeMap<String, Facts>,
    happened: &BTreeSet<String>,
) -> Result<()> {
    let expected = facts.iter().filter(|(_, it)| it["@mode"] == "delete");
    let expected: Vec<_> = expected.map(|(id, _)| id).collect();
    ensure!(expected.len() == COUNT, "{} deletions", expected.len());
    let missing: Vec<_> = expected
        .into_iter()
        .filter(|id| !happened.contains(*id))
        .collect();
    ensure!(missing.is_empty(), "not deleted: {missing:#?}");
    Ok(())
}

fn keys(profile: &Profile) -> Vec<Key> {
    let input = profile.input();
    let steps = STEPS.iter().chain([&LEGACY]);
    let objects = steps.flat_map(|step| step.build(&input).objects);
    objects
        .filter(|object| object.mode == Mode::Delete)
        .map(|object: Object| object.key())
        .collect()
}

/// A small object of the kind.
fn object(key: &Key) -> Result<Value> {
    let mut object = json!({
        "apiVersion": key.api_version,
        "kind": key.kind,
        "metadata": { "name": key.name },
    });
    if !key.namespace.is_empty() {
        object["metadata"]["namespace"] = json!(key.namespace);
    }
    let labels = json!({ "app": key.name });
    match key.kind.as_str() {
        "CatalogSource" => object["spec"] = json!({ "sourceType": "grpc" }),
        "ClusterRoleBinding" => {
            let group = "rbac.authorization.k8s.io";
            object["roleRef"] = json!({ "apiGroup": group, "kind": "ClusterRole", "name": "view" });
        }
        "ConfigMap" | "Secret" => {}
        "CustomResourceDefinition" => {
            let Some((plural, group)) = key.name.split_once('.') else {
                bail!("{key} has no group");
            };
            let kind = plural.trim_end_matches('s').to_uppercase();
            object = crds::of_any_object(group, "v1", &kind, plural, "Cluster");
        }
        "Deployment" => {
            object["spec"] = json!({
                "replicas": 0,
                "selector": { "matchLabels": labels },
                "template": {
                    "metadata": { "labels": labels },
                    "spec": { "containers": [{ "name": "a", "image": "a" }] },
                },
            });
        }
        "ImageContentSourcePolicy" => object["spec"] = json!({}),
        "PodMonitor" => {
            object["spec"] = json!({ "selector": {}, "podMetricsEndpoints": [{ "port": "a" }] });
        }
        kind => bail!("there is no object of kind {kind}"),
    }
    Ok(object)
}
