//! Clusters at rest that are made without any controller: objects as stock managers leave them, as many as requested.

use std::collections::HashMap;
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::client::ApiClient;
use crate::fixtures;
use crate::service_account::ensure_namespace;
use crate::wait;

/// How many machines are made at a time.
const AT_A_TIME: usize = 8;

/// kube-controller-manager may have just been started.
const SETTLED_WITHIN: Duration = Duration::from_mins(1);

/// UIDs of the objects made so far, by kind and name.
type Known = HashMap<(String, String), String>;

/// Makes a cluster of `machines` workers, in the standard groups.
pub async fn raise(admin: &ApiClient, namespace: &str, name: &str, machines: usize) -> Result<()> {
    raise_with(admin, namespace, name, machines, |_| {}).await
}

/// The same, after `change` was made to the objects that the cluster consists of, less its machines.
pub async fn raise_with(
    admin: &ApiClient,
    namespace: &str,
    name: &str,
    machines: usize,
    change: impl Fn(&mut Value),
) -> Result<()> {
    ensure_namespace(admin, namespace).await?;
    has_its_own(admin, namespace).await?;
    let count = machines.to_string();
    let values = [
        ("NAMESPACE", namespace),
        ("NAME", name),
        ("MACHINES", &count),
    ];
    let mut objects = fixtures::render("migration/cluster", &values)?;
    objects.iter_mut().for_each(change);
    let known = make(admin, objects, Known::new()).await?;
    let mut tasks = JoinSet::new();
    for index in 0..machines {
        let machine = format!("{name}-workers-a-{index:04}");
        let values = [
            ("NAMESPACE", namespace),
            ("NAME", name),
            ("MACHINE", &machine),
        ];
        let objects = fixtures::render("migration/machine", &values)?;
        let (admin, known) = (admin.clone(), known.clone());
        tasks.spawn(async move { make(&admin, objects, known).await });
        if tasks.len() >= AT_A_TIME {
            tasks
                .join_next()
                .await
                .context("invariant: there are tasks")???;
        }
    }
    while let Some(made) = tasks.join_next().await {
        made??;
    }
    Ok(())
}

/// Waits for what every namespace is given by kube-controller-manager, so that it does not come later.
async fn has_its_own(admin: &ApiClient, namespace: &str) -> Result<()> {
    let within = format!("/api/v1/namespaces/{namespace}");
    let own = ["configmaps/kube-root-ca.crt", "serviceaccounts/default"];
    wait::until("the namespace's own objects", SETTLED_WITHIN, async || {
        for name in own {
            admin.get(&format!("{within}/{name}")).await?;
        }
        Ok(())
    })
    .await
}

/// Creates objects in their order, with the UIDs of their owners, and then their status.
async fn make(admin: &ApiClient, objects: Vec<Value>, mut known: Known) -> Result<Known> {
    for mut object in objects {
        fill_owners(&mut object, &known)?;
        let status = object["status"].take();
        if let Some(fields) = object.as_object_mut() {
            fields.remove("status");
        }
        let path = admin.path_of(&object).await?;
        let (collection, _) = path.rsplit_once('/').context("a path without a slash")?;
        let mut made = admin.create(collection, &object).await?;
        known.insert(id(&made), text(&made["metadata"]["uid"]));
        if !status.is_null() {
            made["status"] = status;
            admin.replace(&format!("{path}/status"), &made).await?;
        }
    }
    Ok(known)
}

fn fill_owners(object: &mut Value, known: &Known) -> Result<()> {
    let owners = object
        .pointer_mut("/metadata/ownerReferences")
        .and_then(Value::as_array_mut);
    for owner in owners.into_iter().flatten() {
        let id = (text(&owner["kind"]), text(&owner["name"]));
        let uid = known
            .get(&id)
            .with_context(|| format!("{id:?} is not made yet"))?;
        owner["uid"] = json!(uid);
    }
    Ok(())
}

fn id(object: &Value) -> (String, String) {
    (text(&object["kind"]), text(&object["metadata"]["name"]))
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
