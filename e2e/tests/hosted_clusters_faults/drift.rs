//! O06: what the control-plane-operator has made is restored after another client changed or deleted it, and what
//! cannot be restored is reported.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use testbed::client::{ApiClient, Patch, Resource};
use testbed::{conditions, crds, fixtures, wait};

use crate::hosted_clusters_faults::canonical::Snapshot;
use crate::hosted_clusters_faults::fixture::{
    CONTROL_PLANE, CONTROL_PLANES, DEPLOYMENTS, Fixture, NAME, STATEFUL_SETS,
};
use crate::hosted_clusters_faults::life;
use crate::hosted_clusters_faults::replicas::Replicas;

/// How long until it is restored, or reported.
const WITHIN: Duration = Duration::from_mins(1);
const CRD: &str = "controlplanecomponents.hypershift.openshift.io";
const CRDS: Resource<'_> = Resource::new("apiextensions.k8s.io/v1", "customresourcedefinitions");
const SECRETS: Resource<'_> = Resource::new("v1", "secrets");
const CONFIG_MAPS: Resource<'_> = Resource::new("v1", "configmaps");
const SERVICES: Resource<'_> = Resource::new("v1", "services");
const BINDINGS: Resource<'_> = Resource::new("rbac.authorization.k8s.io/v1", "rolebindings");

pub(crate) async fn scenario(
    fixture: &Fixture<'_>,
    replicas: &mut Replicas<'_>,
    made: &Snapshot,
) -> Result<()> {
    let step = fixture
        .testbed
        .progress
        .step("what others change of a control plane is restored");
    let admin = &fixture.testbed.admin;
    for (kind, name) in [(&DEPLOYMENTS, "kube-scheduler"), (&STATEFUL_SETS, "etcd")] {
        other_image(admin, &kind.named(CONTROL_PLANE, name)).await?;
    }
    for path in [
        SECRETS.named(CONTROL_PLANE, "etcd-client-tls"),
        CONFIG_MAPS.named(CONTROL_PLANE, "kas-config"),
        SERVICES.named(CONTROL_PLANE, "kube-apiserver"),
        DEPLOYMENTS.named(CONTROL_PLANE, "kube-controller-manager"),
        BINDINGS.named(CONTROL_PLANE, "control-plane-operator"),
    ] {
        another(admin, &path).await?;
    }
    no_owner(admin, &CONFIG_MAPS.named(CONTROL_PLANE, "kas-config")).await?;
    step.done();
    let step = fixture.testbed.progress.step("a missing CRD is reported");
    missing_kind(admin).await?;
    life::until(fixture, replicas, async || {
        life::is_made(admin, "4.21.9").await
    })
    .await?;
    let found = life::snapshot(fixture).await?;
    found.is(made)?;
    step.done();
    Ok(())
}

async fn other_image(admin: &ApiClient, path: &str) -> Result<()> {
    let expected = admin.get(path).await?;
    let mut containers = expected["spec"]["template"]["spec"]["containers"].clone();
    containers[0]["image"] = json!("elsewhere.example.com/x");
    let changed = json!({ "spec": { "template": { "spec": { "containers": containers } } } });
    admin.patch(path, Patch::Merge, &changed).await?;
    is_back(admin, path, |found| {
        found["spec"]["template"] == expected["spec"]["template"]
    })
    .await
}

/// It is deleted and recreated.
async fn another(admin: &ApiClient, path: &str) -> Result<()> {
    let uid = admin.get(path).await?["metadata"]["uid"].clone();
    admin.delete(path).await?;
    is_back(admin, path, |found| found["metadata"]["uid"] != uid).await
}

async fn no_owner(admin: &ApiClient, path: &str) -> Result<()> {
    let owner = |object: &Value| object["metadata"]["ownerReferences"].clone();
    let expected = owner(&admin.get(path).await?);
    ensure!(!expected.is_null(), "{path} has no owner");
    let orphaned = json!({ "metadata": { "ownerReferences": null } });
    admin.patch(path, Patch::Merge, &orphaned).await?;
    is_back(admin, path, |found| owner(found) == expected).await
}

async fn is_back(admin: &ApiClient, path: &str, is_so: impl Fn(&Value) -> bool) -> Result<()> {
    wait::until(&format!("{path} to be as it was"), WITHIN, async || {
        let found = admin.get(path).await?;
        ensure!(is_so(&found), "{found}");
        Ok(())
    })
    .await
}

/// The CRD of components is deleted, and recreated.
async fn missing_kind(admin: &ApiClient) -> Result<()> {
    let path = format!("{}/{CRD}", CRDS.all());
    admin.delete(&path).await?;
    wait::until("the missing kind to be reported", WITHIN, async || {
        let found = admin
            .get(&CONTROL_PLANES.named(CONTROL_PLANE, NAME))
            .await?;
        let condition = conditions::find(&found, "Degraded").context("there is no condition")?;
        let message = condition["message"].as_str().unwrap_or_default();
        ensure!(
            condition["status"] == "True" && message.contains("ControlPlaneComponent"),
            "{condition}"
        );
        Ok(())
    })
    .await?;
    let file = fixtures::install_manifests().join(format!("../crds/{CRD}.yaml"));
    crds::install(admin, &fixtures::load(&file)?).await
}
