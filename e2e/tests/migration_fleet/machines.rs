//! What stock controllers of Cluster API and of its providers leave of a cluster: what they write to the objects that the
//! operator has made, and what they make themselves, with owners, finalizers and status. None of them runs for the
//! clusters of a fleet.

use anyhow::{Context, Result};
use serde_json::{Value, json};
use testbed::client::{ApiClient, Patch, Resource};
use testbed::fixtures;

use crate::migration_fleet::member::Member;
use crate::migration_fleet::platform::Kinds;

const CORE: &str = "cluster.x-k8s.io/v1beta2";
const CLUSTERS: Resource<'_> = Resource::new(CORE, "clusters");
const MACHINE_DEPLOYMENTS: Resource<'_> = Resource::new(CORE, "machinedeployments");
/// What Cluster API adds to the names of a MachineSet and of a Machine.
const HASH: &str = "k9vtx";
const SUFFIX: &str = "x5z2p";
/// Lists in metadata, to which controllers add.
const LISTS: [&str; 2] = ["ownerReferences", "finalizers"];

/// What the machine of a pool is completed with.
struct Parts<'a> {
    machine_kind: &'a str,
    machine_set: &'a str,
    deployment: &'a Value,
    template: &'a Value,
    provider_id: Value,
}

/// Has a cluster that the operator has made be as if its controllers had run, with one machine.
pub(crate) async fn come_up(admin: &ApiClient, member: &Member) -> Result<()> {
    let Some(Kinds {
        api_version,
        prefix,
    }) = member.platform.kinds()
    else {
        return Ok(());
    };
    let (namespace, infra, pool) = (member.namespace(), member.infra(), member.pool());
    let cluster = admin.get(&CLUSTERS.named(&namespace, &infra)).await?;
    let infrastructure = text(&cluster["spec"]["infrastructureRef"]["name"]);
    let (set, machine) = (format!("{pool}-{HASH}"), format!("{pool}-{HASH}-{SUFFIX}"));
    let mut values = vec![
        ("NAMESPACE", namespace.as_str()),
        ("NAME", member.name.as_str()),
        ("INFRA", infra.as_str()),
        ("INFRASTRUCTURE", api_version),
        ("INFRASTRUCTURE_NAME", infrastructure),
        ("KIND", prefix),
    ];
    leave(admin, fixtures::render("fleet/cluster", &values)?).await?;
    if !member.platform.has_machines() {
        return Ok(());
    }
    let path = MACHINE_DEPLOYMENTS.named(&namespace, &pool);
    let deployment = admin.get(&path).await?;
    let template = template(admin, &deployment, api_version, &namespace).await?;
    values.extend([
        ("POOL", pool.as_str()),
        ("TEMPLATE", text(&template["metadata"]["name"])),
        ("SET", set.as_str()),
        ("MACHINE", machine.as_str()),
    ]);
    let mut objects = fixtures::render("fleet/pool", &values)?;
    let of_provider = format!("fleet/{}-machine", member.platform.name());
    objects.extend(fixtures::render(&of_provider, &values)?);
    let machine_kind = format!("{prefix}Machine");
    let own = objects
        .iter()
        .find(|it| it["kind"] == machine_kind.as_str());
    let provider_id = own.map(|it| it["spec"]["providerID"].clone());
    let parts = Parts {
        machine_kind: &machine_kind,
        machine_set: &set,
        deployment: &deployment,
        template: &template,
        provider_id: provider_id.with_context(|| format!("{of_provider} has no machine"))?,
    };
    for object in &mut objects {
        parts.complete(object);
    }
    leave(admin, objects).await
}

/// Writes what controllers leave, in order: an object is created, or gets what it does not have yet.
async fn leave(admin: &ApiClient, objects: Vec<Value>) -> Result<()> {
    for object in objects {
        let what = format!("{} {}", object["kind"], object["metadata"]["name"]);
        leave_one(admin, object).await.context(what)?;
    }
    Ok(())
}

async fn leave_one(admin: &ApiClient, mut object: Value) -> Result<()> {
    fill_owners(admin, &mut object).await?;
    let fields = object.as_object_mut();
    let status = fields.and_then(|fields| fields.remove("status"));
    let path = admin.path_of(&object).await?;
    match admin.find(&path).await? {
        None => {
            let (collection, _) = path.rsplit_once('/').context("a path without a slash")?;
            admin.create(collection, &object).await?;
        }
        Some(found) => {
            let change = json!({ "metadata": added(&found, &object) });
            admin.patch(&path, Patch::Merge, &change).await?;
        }
    }
    if let Some(status) = status {
        let change = json!({ "status": status });
        let path = format!("{path}/status");
        admin.patch(&path, Patch::Merge, &change).await?;
    }
    Ok(())
}

/// The metadata that an object gets beside what it has.
fn added(found: &Value, object: &Value) -> Value {
    let mut metadata = object["metadata"].clone();
    for list in LISTS {
        let items = |of: &Value| of["metadata"][list].as_array().cloned();
        let (before, more) = (items(found), items(object));
        if let Some(more) = more {
            metadata[list] = before.unwrap_or_default().into_iter().chain(more).collect();
        }
    }
    metadata
}

/// The UIDs of owners, which are there.
async fn fill_owners(admin: &ApiClient, object: &mut Value) -> Result<()> {
    let namespace = object["metadata"]["namespace"].clone();
    let owners = object.pointer_mut("/metadata/ownerReferences");
    let owners = owners.and_then(Value::as_array_mut);
    for owner in owners.into_iter().flatten() {
        let named = json!({
            "apiVersion": owner["apiVersion"],
            "kind": owner["kind"],
            "metadata": { "namespace": namespace, "name": owner["name"] },
        });
        let found = admin.get(&admin.path_of(&named).await?).await?;
        owner["uid"] = found["metadata"]["uid"].clone();
    }
    Ok(())
}

/// The template of the machines of a MachineDeployment.
async fn template(
    admin: &ApiClient,
    deployment: &Value,
    api_version: &str,
    namespace: &str,
) -> Result<Value> {
    let reference = &deployment["spec"]["template"]["spec"]["infrastructureRef"];
    let named = json!({
        "apiVersion": api_version,
        "kind": reference["kind"],
        "metadata": { "namespace": namespace, "name": reference["name"] },
    });
    admin.get(&admin.path_of(&named).await?).await
}

// === impl Parts ===

impl Parts<'_> {
    /// What controllers copy from the MachineDeployment and from the template of machines.
    fn complete(&self, object: &mut Value) {
        let template = &self.deployment["spec"]["template"];
        let kind = text(&object["kind"]).to_owned();
        match kind.as_str() {
            "MachineSet" => {
                let labels = self.labels();
                object["spec"]["selector"] = json!({ "matchLabels": labels });
                object["spec"]["template"] = template.clone();
                object["spec"]["template"]["metadata"]["labels"] = labels.clone();
                object["metadata"]["labels"] = labels;
            }
            "Machine" => {
                object["spec"] = template["spec"].clone();
                let name = object["metadata"]["name"].clone();
                let reference = &mut object["spec"]["infrastructureRef"];
                reference["kind"] = json!(self.machine_kind);
                reference["name"] = name;
                object["spec"]["providerID"] = self.provider_id.clone();
                object["metadata"]["labels"] = self.labels_of_machine();
            }
            kind if kind == self.machine_kind => {
                let mut spec = self.template["spec"]["template"]["spec"].clone();
                for (field, value) in object["spec"].as_object().into_iter().flatten() {
                    spec[field] = value.clone();
                }
                object["spec"] = spec;
                object["metadata"]["labels"] = self.labels_of_machine();
                self.is_cloned(object);
            }
            _ => {}
        }
    }

    /// How a machine shows which template it was made of.
    fn is_cloned(&self, machine: &mut Value) {
        let group = text(&self.template["apiVersion"]);
        let group = group.split('/').next().unwrap_or_default();
        let kind = text(&self.template["kind"]);
        let annotations = &mut machine["metadata"]["annotations"];
        annotations["cluster.x-k8s.io/cloned-from-name"] =
            self.template["metadata"]["name"].clone();
        annotations["cluster.x-k8s.io/cloned-from-groupkind"] = json!(format!("{kind}.{group}"));
    }

    fn labels(&self) -> Value {
        let mut labels = self.deployment["spec"]["template"]["metadata"]["labels"].clone();
        labels["cluster.x-k8s.io/deployment-name"] = self.deployment["metadata"]["name"].clone();
        labels["machine-template-hash"] = json!(HASH);
        labels
    }

    fn labels_of_machine(&self) -> Value {
        let mut labels = self.labels();
        labels["cluster.x-k8s.io/set-name"] = json!(self.machine_set);
        labels
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn controllers_add_to_what_an_object_has() {
        let found = json!({ "metadata": {
            "finalizers": ["a"], "ownerReferences": [{ "name": "one" }], "labels": { "x": "y" },
        } });
        let object = json!({ "metadata": { "name": "n", "ownerReferences": [{ "name": "two" }] } });
        let expected =
            json!({ "name": "n", "ownerReferences": [{ "name": "one" }, { "name": "two" }] });
        assert_eq!(added(&found, &object), expected);
    }
}
