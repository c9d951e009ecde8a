//! The real Operator Lifecycle Manager in a control plane: it installs an operator of our catalog into the hosted cluster,
//! and what the operator requires holds an upgrade. The catalog is in the control plane, or in the hosted cluster.

mod placement;

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use api::group::CapiTypes;
use serde_json::json;
use testbed::client::{Patch, Resource};
use testbed::conditions::find;
use testbed::hosted::{self, CONTROL_PLANES, Cluster, DEPLOYMENTS, Fixture, Guest};
use testbed::node::{NodeTestbed, condition};
use testbed::payload::catalog;
use testbed::wait;

use crate::hosted_cluster::aggregated;

const CONFIG: &str = "config.openshift.io/v1";
const OPERATORS: &str = "operators.coreos.com/v1alpha1";
const SUBSCRIPTIONS: Resource<'_> = Resource::new(OPERATORS, "subscriptions");
const CSVS: Resource<'_> = Resource::new(OPERATORS, "clusterserviceversions");
const PACKAGES: Resource<'_> =
    Resource::new("packages.operators.coreos.com/v1", "packagemanifests");
const CATALOGS: &str = "openshift-marketplace";
const NAMESPACE: &str = "openshift-operators";
/// Annotations with the images of all default catalogs.
const IMAGES: [&str; 3] = ["certified", "community", "redhat"];
/// The release's minor version, which has a catalog.
const VERSION: &str = "4.22";
/// The next one, to which the operator does not allow an upgrade.
const NEWER: &str = "4.23.0";
/// How long the upgrade is watched while it is held: several reconciles.
const HELD: Duration = Duration::from_mins(1);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "long: cargo xtask soak catalogs"]
async fn operators_are_installed_from_catalogs_in_the_control_plane() -> Result<()> {
    hosted::play(NodeTestbed::builder("olm-management"), management).await
}

async fn management(fixture: &Fixture) -> Result<()> {
    let image = catalog::push(&fixture.testbed, VERSION).await?;
    let images = IMAGES.map(|catalog| {
        let key = format!("hypershift.openshift.io/{catalog}-operators-catalog-image");
        format!("--annotations={key}={image}")
    });
    let mut flags = vec!["--olm-catalog-placement=management"];
    flags.extend(images.iter().map(String::as_str));
    let (cluster, guest) = created(fixture, &flags).await?;
    placement::is_management(fixture, &cluster, &guest).await?;
    aggregated::apis_answer(fixture, &guest).await?;
    installs_the_operator(fixture, &guest).await?;
    holds_upgrades(fixture, &cluster, &guest).await?;
    cluster.destroy().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "long: cargo xtask soak catalogs"]
async fn operators_are_installed_from_catalogs_in_the_hosted_cluster() -> Result<()> {
    hosted::play(NodeTestbed::builder("olm-guest"), guest).await
}

async fn guest(fixture: &Fixture) -> Result<()> {
    catalog::push(&fixture.testbed, VERSION).await?;
    let key = "hypershift.openshift.io/olm-catalogs-is-registry-overrides";
    let registries = format!("--annotations={key}={}", catalog::registries());
    let flags = ["--olm-catalog-placement=guest", &registries];
    let (cluster, guest) = created(fixture, &flags).await?;
    placement::is_guest(fixture, &cluster, &guest).await?;
    installs_the_operator(fixture, &guest).await?;
    cluster.destroy().await
}

async fn created<'a>(fixture: &'a Fixture, flags: &[&str]) -> Result<(Cluster<'a>, Guest)> {
    fixture.install(CapiTypes::Private, &[]).await?;
    let cluster = Cluster::new(fixture, "demo", CapiTypes::Private);
    let workers = ["--node-pool-replicas=1"];
    cluster.create(&[&workers, flags].concat()).await?;
    let guest = cluster.comes_up().await?;
    cluster.has_workers(&guest, 1).await?;
    // Pods reach the API server and catalogs by their Services.
    guest.has_a_network(fixture).await?;
    Ok((cluster, guest))
}

/// The package is offered, and a Subscription of it becomes a Deployment that runs.
async fn installs_the_operator(fixture: &Fixture, guest: &Guest) -> Result<()> {
    let client = &guest.client;
    fixture
        .stage("the catalog's package is offered", async || {
            client
                .get(&PACKAGES.named(CATALOGS, catalog::PACKAGE))
                .await
        })
        .await?;
    let subscription = json!({
        "apiVersion": OPERATORS, "kind": "Subscription",
        "metadata": { "name": catalog::PACKAGE, "namespace": NAMESPACE },
        "spec": {
            "name": catalog::PACKAGE, "channel": catalog::CHANNEL,
            "source": "redhat-operators", "sourceNamespace": CATALOGS,
        },
    });
    client
        .create(&SUBSCRIPTIONS.within(NAMESPACE), &subscription)
        .await?;
    fixture
        .stage("the operator is installed", async || {
            let csv = client.get(&CSVS.named(NAMESPACE, catalog::CSV)).await?;
            ensure!(csv["status"]["phase"] == "Succeeded", "{}", csv["status"]);
            Ok(())
        })
        .await?;
    condition(
        &client
            .get(&DEPLOYMENTS.named(NAMESPACE, catalog::DEPLOYMENT))
            .await?,
        "Available",
    )
}

/// The operator declares that it does not support the next minor version. OLM reports that, and the HostedCluster stays at
/// its release, with the reason.
async fn holds_upgrades(fixture: &Fixture, cluster: &Cluster<'_>, guest: &Guest) -> Result<()> {
    let refusal = fixture
        .stage(
            "OLM reports that the cluster cannot be upgraded",
            async || {
                let path = format!("/apis/{CONFIG}/clusteroperators/operator-lifecycle-manager");
                let found = guest.client.get(&path).await?;
                let refusal = find(&found, "Upgradeable").context("no condition")?;
                ensure!(refusal["status"] == "False", "{refusal}");
                Ok(refusal.clone())
            },
        )
        .await?;
    let message = refusal["message"].as_str().unwrap_or_default().to_owned();
    ensure!(message.contains(catalog::CSV), "{message}");
    aggregate(fixture, guest, &message).await?;
    fixture
        .stage("the HostedCluster reports the reason", async || {
            let seen = cluster.seen().await?;
            let carried = find(&seen, "ClusterVersionUpgradeable").context("no condition")?;
            ensure!(carried["status"] == "False", "{carried}");
            let text = carried["message"].as_str().unwrap_or_default();
            ensure!(text.contains(catalog::CSV), "{text}");
            Ok(())
        })
        .await?;
    is_held(fixture, cluster).await
}

/// An upgrade is held with the reason, and stays held.
async fn is_held(fixture: &Fixture, cluster: &Cluster<'_>) -> Result<()> {
    let admin = &fixture.testbed.admin;
    let control_plane = CONTROL_PLANES.named(&cluster.namespace(), cluster.name());
    let before = admin.get(&control_plane).await?["spec"]["releaseImage"].clone();
    let newer = fixture
        .pushed
        .release(&fixture.testbed.registry, NEWER)
        .await?;
    let desired = json!({ "spec": { "release": { "image": newer.image } } });
    admin.patch(&cluster.path(), Patch::Merge, &desired).await?;
    let is_blocked = async || -> Result<()> {
        let seen = cluster.seen().await?;
        let progressing = find(&seen, "Progressing").context("no condition")?;
        ensure!(progressing["status"] == "False", "{progressing}");
        ensure!(progressing["reason"] == "Blocked", "{progressing}");
        let text = progressing["message"].as_str().unwrap_or_default();
        ensure!(text.contains(catalog::CSV), "{text}");
        let version = &seen["status"]["version"]["desired"]["version"];
        ensure!(*version != NEWER, "it is being upgraded");
        let release = &admin.get(&control_plane).await?["spec"]["releaseImage"];
        ensure!(*release == before, "the control plane is of {release}");
        Ok(())
    };
    fixture
        .stage("the upgrade is held, with the reason", &is_blocked)
        .await?;
    // Another reconcile must not forget the reason.
    let touched = json!({ "metadata": { "annotations": { "example.com/touched": "" } } });
    admin.patch(&cluster.path(), Patch::Merge, &touched).await?;
    let step = fixture.testbed.progress.step("the upgrade stays held");
    wait::throughout("the upgrade is held", HELD, &is_blocked).await?;
    step.done();
    Ok(())
}

/// What the cluster-version-operator does, whose program is a stand-in: the ClusterVersion has the refusals of
/// `ClusterOperators`. It is otherwise that of a cluster whose first release is complete.
async fn aggregate(fixture: &Fixture, guest: &Guest, message: &str) -> Result<()> {
    let path = format!("/apis/{CONFIG}/clusterversions/version/status");
    let text = format!(
        "Cluster operator operator-lifecycle-manager should not be upgraded between minor versions: {message}"
    );
    let time = "2026-01-01T00:00:00Z";
    let condition = |kind: &str, status: &str, reason: &str, message: &str| {
        json!({
            "type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": time,
        })
    };
    let (version, image) = (&fixture.release.version, &fixture.release.image);
    let status = json!({ "status": {
        "observedGeneration": 1,
        "versionHash": "none",
        "availableUpdates": [],
        "desired": { "version": version, "image": image },
        "history": [{
            "state": "Completed", "version": version, "image": image, "verified": false,
            "startedTime": time, "completionTime": time,
        }],
        "conditions": [
            condition("Available", "True", "AsExpected", "Done applying"),
            condition("Failing", "False", "AsExpected", ""),
            condition("Progressing", "False", "AsExpected", ""),
            condition("ReleaseAccepted", "True", "PayloadLoaded", ""),
            condition("Upgradeable", "False", "IncompatibleOperatorsInstalled", &text),
        ],
    } });
    guest
        .client
        .patch(&path, Patch::Merge, &status)
        .await
        .map(drop)
}
