//! Changes of users: those of enforced fields are taken back, others are kept.

use anyhow::{Context, Result, bail, ensure};
use control_plane_operator::hosted_cluster_config::resources::desired::Mode;
use serde_json::{Map, Value, json};
use testbed::client::{Patch, status_code};
use testbed::wait;

use super::bootstrap::SOON;
use super::guest::Guest;
use super::pass::{self, Found};
use super::profiles::Profile;

/// A label of users, which is kept on every object.
const OWN: &str = "example.com/own";
/// Kinds whose spec only the control plane may change: policy `mirror`.
const PROTECTED: [&str; 1] = ["ImageDigestMirrorSet"];
/// Fields that say when an object was written, and by whom.
const BOOKKEEPING: [&str; 3] = ["generation", "managedFields", "resourceVersion"];
/// Annotation that counts the changes of a `DaemonSet`'s pod template.
const TEMPLATE_GENERATION: &str = "deprecated.daemonset.template.generation";

/// How many objects were changed.
#[derive(Debug, Default)]
pub(crate) struct Changed {
    pub(crate) taken_back: usize,
    pub(crate) kept: usize,
}

/// Changes all objects, and runs a pass.
pub(crate) async fn run(guest: &Guest, profile: &mut Profile) -> Result<Changed> {
    let before = pass::objects(guest, profile).await?;
    for it in &before {
        let done = change(guest, it).await;
        guest.check(done.with_context(|| format!("changing {}", it.object.key())));
    }
    pass::run(guest, profile).await?;
    let mut changed = Changed::default();
    for it in &before {
        let key = it.object.key();
        let live = guest.read(&key).await?;
        let live = live.unwrap_or_default();
        let own = &live["metadata"]["labels"][OWN];
        if own != "kept" {
            guest.complain(format!("the user's label of {key} is {own}"));
        }
        match it.object.mode {
            Mode::Enforce => {
                guest.check(is_as_before(&it.value, &live).with_context(|| key.to_string()));
                changed.taken_back += 1;
            }
            Mode::Merge | Mode::Create => {
                let patch = own_fields(&it.value);
                if !contains(&live, &patch) {
                    guest.complain(format!("{key} does not have {patch}: {live}"));
                }
                changed.kept += 1;
            }
            Mode::Delete => bail!("{key} is to be deleted"),
        }
    }
    Ok(changed)
}

async fn change(guest: &Guest, it: &Found) -> Result<()> {
    let mut change = match it.object.mode {
        Mode::Enforce => other_content(&it.value)?,
        Mode::Merge | Mode::Create | Mode::Delete => own_fields(&it.value),
    };
    let kind = it.value["kind"].as_str().unwrap_or_default();
    let path = guest.user.path_of(&it.value).await?;
    if PROTECTED.contains(&kind) {
        is_refused(guest, &path, &change).await?;
        change = json!({});
    }
    if let Some(status) = change.as_object_mut().and_then(|it| it.remove("status")) {
        let status = json!({ "status": status });
        let path = format!("{path}/status");
        guest.user.patch(&path, Patch::Merge, &status).await?;
    }
    change["metadata"]["labels"][OWN] = json!("kept");
    guest.user.patch(&path, Patch::Merge, &change).await?;
    Ok(())
}

/// A policy is in force a moment after it was written.
async fn is_refused(guest: &Guest, path: &str, change: &Value) -> Result<()> {
    let what = format!("changes of {path} to be refused");
    let dry_run = format!("{path}?dryRun=All");
    wait::until(&what, SOON, async || {
        match guest.user.patch(&dry_run, Patch::Merge, change).await {
            Err(error) if status_code(&error) == Some(422) => Ok(()),
            Err(error) => Err(error),
            Ok(_) => wait::not_yet("it is accepted"),
        }
    })
    .await
}

/// Another content of an enforced object.
fn other_content(object: &Value) -> Result<Value> {
    let kind = object["kind"].as_str().unwrap_or_default();
    Ok(match kind {
        "APIService" => json!({ "spec": { "versionPriority": 7 } }),
        "CatalogSource" => json!({ "spec": { "displayName": "own" } }),
        "ClusterOperator" => json!({ "status": { "versions": [] } }),
        "ClusterRole" | "Role" => json!({ "rules": [
            { "apiGroups": [""], "resources": ["pods"], "verbs": ["delete"] },
        ] }),
        "ClusterRoleBinding" | "RoleBinding" => json!({ "subjects": [
            { "apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "own" },
        ] }),
        "ConfigMap" => json!({ "data": { "own": "x" } }),
        "CustomResourceDefinition" => json!({ "spec": { "names": { "shortNames": ["own"] } } }),
        "DaemonSet" => json!({ "spec": { "template": {
            "metadata": { "labels": { "own": "x" } },
            "spec": { "hostPID": true, "nodeSelector": { "own": "x" } },
        } } }),
        "EndpointSlice" => json!({ "ports": [{ "name": "own", "port": 1, "protocol": "TCP" }] }),
        "Endpoints" => json!({ "subsets": [] }),
        "ImageDigestMirrorSet" => json!({ "spec": { "imageDigestMirrors": [
            { "source": "a.example.com/a", "mirrors": ["b.example.com/a"] },
        ] } }),
        "MutatingWebhookConfiguration" => json!({ "webhooks": [] }),
        "PrometheusRule" => json!({ "spec": { "groups": [] } }),
        "Secret" => json!({ "data": { "own": "eA==" } }),
        kind => bail!("there is no change of kind {kind}"),
    })
}

/// Fields that belong to users, beside the label.
fn own_fields(object: &Value) -> Value {
    let api_version = object["apiVersion"].as_str().unwrap_or_default();
    let kind = object["kind"].as_str().unwrap_or_default();
    let spec = match (api_version, kind) {
        ("config.openshift.io/v1", "ClusterVersion") => json!({ "overrides": [{
            "group": "apps", "kind": "Deployment", "name": "a", "namespace": "b", "unmanaged": true,
        }] }),
        ("operator.openshift.io/v1", "CloudCredential" | "Network") => {
            json!({ "logLevel": "Debug" })
        }
        ("operator.openshift.io/v1", "CSISnapshotController" | "ClusterCSIDriver" | "Storage") => {
            json!({ "unsupportedConfigOverrides": { "own": "x" } })
        }
        ("operator.openshift.io/v1", "IngressController") => json!({ "replicas": 7 }),
        ("imageregistry.operator.openshift.io/v1", "Config") => json!({ "replicas": 7 }),
        ("monitoring.coreos.com/v1", "ServiceMonitor") => json!({ "sampleLimit": 7 }),
        ("apps/v1", "Deployment") => json!({ "minReadySeconds": 7 }),
        ("v1", "Service") => json!({ "sessionAffinity": "ClientIP" }),
        ("v1", "ConfigMap") => return json!({ "data": { "own": "x" } }),
        _ => return json!({}),
    };
    json!({ "spec": spec })
}

fn contains(value: &Value, part: &Value) -> bool {
    match (value, part) {
        (Value::Object(fields), Value::Object(part)) => part.iter().all(|(key, part)| {
            let value = fields.get(key).unwrap_or(&Value::Null);
            contains(value, part)
        }),
        (value, part) => value == part,
    }
}

fn is_as_before(before: &Value, after: &Value) -> Result<()> {
    let (before, after) = (content(before), content(after));
    for field in before.keys().chain(after.keys()) {
        let of = |object: &Map<String, Value>| object.get(field).cloned().unwrap_or_default();
        let (before, after) = (of(&before), of(&after));
        ensure!(before == after, "{field} was {before} and is {after}");
    }
    Ok(())
}

fn content(object: &Value) -> Map<String, Value> {
    let mut object = object.clone();
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.retain(|field, _| !BOOKKEEPING.contains(&field.as_str()));
        if let Some(labels) = metadata.get_mut("labels").and_then(Value::as_object_mut) {
            labels.remove(OWN);
        }
        if let Some(annotations) = metadata
            .get_mut("annotations")
            .and_then(Value::as_object_mut)
        {
            annotations.remove(TEMPLATE_GENERATION);
        }
    }
    // Controllers of the API server report what they have seen meanwhile.
    let is_reported = ["APIService", "CustomResourceDefinition"]
        .iter()
        .any(|kind| object["kind"] == *kind);
    if is_reported {
        object["status"] = Value::Null;
    }
    object.as_object().cloned().unwrap_or_default()
}
