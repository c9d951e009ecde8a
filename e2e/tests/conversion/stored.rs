//! Objects in numbers, and one among them that cannot be converted (C01, C02).

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use testbed::client::Resource;

use crate::conversion::fixture::{Fixture, NAMESPACE};

const GROUP: &str = "cluster.hypershift.openshift.io";
pub(crate) const NEW: Resource<'_> =
    Resource::new("cluster.hypershift.openshift.io/v1beta2", "clusters");
pub(crate) const OLD: Resource<'_> =
    Resource::new("cluster.hypershift.openshift.io/v1beta1", "clusters");
/// Objects behind the API server.
const STORED: usize = 99;

/// A Cluster that refers to a kind.
pub(crate) fn cluster(version: &str, name: &str, kind: &str) -> Value {
    json!({
        "apiVersion": format!("{GROUP}/{version}"),
        "kind": "Cluster",
        "metadata": {
            "namespace": NAMESPACE,
            "name": name,
            "labels": {"cluster.x-k8s.io/cluster-name": name},
            "finalizers": ["cluster.cluster.x-k8s.io"],
        },
        "spec": {"controlPlaneRef": reference(version, kind)},
    })
}

fn reference(version: &str, kind: &str) -> Value {
    let group = format!("controlplane.{GROUP}");
    if version == "v1beta1" {
        return json!({"apiVersion": format!("{group}/{version}"), "kind": kind, "name": "a"});
    }
    json!({"apiGroup": group, "kind": kind, "name": "a"})
}

/// The shim alone: every third object is of the desired version already.
/// Check C01.
pub(crate) async fn conversion_keeps_counts_and_versions(fixture: &Fixture) -> Result<()> {
    let shim = fixture.shim()?;
    for count in [1, 100, 5000] {
        let objects: Vec<Value> = (0..count)
            .map(|index| {
                let version = if index % 3 == 2 { "v1beta1" } else { "v1beta2" };
                let mut object = cluster(version, &format!("c-{index}"), "KubeadmControlPlane");
                object["metadata"]["uid"] = json!(format!("uid-{index}"));
                object
            })
            .collect();
        let desired = format!("{GROUP}/v1beta1");
        let response = shim.convert(&objects, &desired).await;
        let converted = response
            .with_context(|| format!("{count} objects"))?
            .objects();
        ensure!(converted.len() == count, "{} of {count}", converted.len());
        for (object, converted) in objects.iter().zip(&converted) {
            same_metadata(object, converted)?;
            let version = &converted["apiVersion"];
            ensure!(*version == desired, "the version is {version}");
            let owner = &converted["spec"]["controlPlaneRef"]["apiVersion"];
            let expected = format!("controlplane.{GROUP}/v1beta");
            ensure!(
                owner
                    .as_str()
                    .is_some_and(|owner| owner.starts_with(&expected)),
                "the reference is {owner}"
            );
        }
    }
    Ok(())
}

/// The API server restores metadata by itself, so the test above checks the responses of the shim alone.
/// Check C01.
pub(crate) async fn lists_are_converted_by_the_api_server(fixture: &Fixture) -> Result<()> {
    let admin = &fixture.testbed.admin;
    for index in 0..STORED {
        let version = if index % 2 == 0 { "v1beta2" } else { "v1beta1" };
        let object = cluster(version, &format!("c-{index:02}"), "KubeadmControlPlane");
        let resource = if index % 2 == 0 { NEW } else { OLD };
        admin.create(&resource.within(NAMESPACE), &object).await?;
    }
    let new = admin.list(&NEW.within(NAMESPACE)).await?;
    let old = admin.list(&OLD.within(NAMESPACE)).await?;
    ensure!(
        new.len() == STORED && old.len() == STORED,
        "{} and {} objects",
        new.len(),
        old.len()
    );
    for (new, old) in new.iter().zip(&old) {
        same_metadata(new, old)?;
        ensure!(
            old["apiVersion"] == OLD.api_version,
            "{}",
            old["apiVersion"]
        );
        let (group, kind) = (
            &new["spec"]["controlPlaneRef"]["apiGroup"],
            &old["spec"]["controlPlaneRef"]["apiVersion"],
        );
        ensure!(
            group == &format!("controlplane.{GROUP}")
                && kind
                    .as_str()
                    .is_some_and(|text| text.starts_with(&format!("controlplane.{GROUP}/"))),
            "references are {group} and {kind}"
        );
    }
    let one = admin.get(&OLD.named(NAMESPACE, "c-00")).await?;
    ensure!(one["metadata"]["name"] == "c-00", "one object alone: {one}");
    Ok(())
}

fn same_metadata(before: &Value, after: &Value) -> Result<()> {
    let bare = |object: &Value| {
        let mut metadata = object["metadata"].clone();
        if let Some(metadata) = metadata.as_object_mut() {
            metadata.retain(|field, value| {
                !["labels", "annotations"].contains(&field.as_str()) && !value.is_null()
            });
        }
        metadata
    };
    let (before, after) = (bare(before), bare(after));
    ensure!(before == after, "metadata was {before} and is {after}");
    Ok(())
}

/// It refers to a kind that does not exist, so that no older version of it can be written.
/// Check C02.
pub(crate) async fn one_invalid_object_is_named(fixture: &Fixture) -> Result<()> {
    let admin = &fixture.testbed.admin;
    let bad = cluster("v1beta2", "bad", "NobodysControlPlane");
    admin.create(&NEW.within(NAMESPACE), &bad).await?;
    let Err(error) = admin.list(&OLD.within(NAMESPACE)).await else {
        anyhow::bail!("a list with an object in it that cannot be converted");
    };
    let error = format!("{error:#}");
    ensure!(
        error.contains(&format!("Cluster {NAMESPACE}/bad: ")),
        "the object is not named: {error}"
    );
    // Each other one, and all of them as they are stored.
    admin.get(&OLD.named(NAMESPACE, "c-42")).await?;
    let stored = admin.list(&NEW.within(NAMESPACE)).await?;
    ensure!(stored.len() == STORED + 1, "{} objects", stored.len());
    // The number of calls is not checked: the API server's cache makes calls, too.
    let metrics = fixture.shims.metrics().await?;
    let mut counted = metrics
        .lines()
        .filter_map(|line| line.split_once("reviews_total{result=\"object\"} "));
    ensure!(
        counted.any(|(_, count)| count != "0"),
        "not counted:\n{metrics}"
    );
    let merge = json!({"metadata": {"finalizers": null}});
    let path = NEW.named(NAMESPACE, "bad");
    admin
        .patch(&path, testbed::client::Patch::Merge, &merge)
        .await?;
    admin.delete(&path).await?;
    admin.list(&OLD.within(NAMESPACE)).await.map(drop)
}
