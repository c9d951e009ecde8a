//! `hypershift install` and `uninstall` before a real API server: what is refused changes nothing, what is done twice
//! changes nothing the second time, what is killed is finished by the next run.
//!
//! All the while the platform has a Cluster API of its own, of another version (v1.8, which knows no v1beta2), with a
//! manager at work. It never notices: neither the installation, nor stock managers with private types, nor their end.
//!
//! Most of it needs no kubelet, so that nothing waits for pods; [`nodes`] has one.

mod command;
mod hosted;
mod killed;
mod nodes;
mod refused;
mod removed;
mod stored;
mod tenants;
mod upgrade;

use anyhow::{Context, Result, ensure};
use api::group::CapiTypes;
use serde_json::Value;
use testbed::client::Resource;
use testbed::cluster_api::Plan;
use testbed::platform::{self, Platform};
use testbed::progress::Progress;
use testbed::testbed::Testbed;

use command::Hypershift;

/// Objects of the platform's Cluster API.
const PLATFORM: &str = "platform";
const DEPLOYMENTS: Resource<'_> = Resource::new("apps/v1", "deployments");

#[tokio::test]
async fn installation_is_idempotent_and_keeps_platform_objects() -> Result<()> {
    let mut testbed = Testbed::start("install", Progress::detect()).await?;
    let outcome = scenario(&mut testbed).await;
    testbed.finish(outcome)
}

async fn scenario(testbed: &mut Testbed) -> Result<()> {
    let mut platform = platform_with_a_manager(testbed).await?;
    // May do anything, and its requests are distinguished from the test's own.
    let installer = testbed.kubeconfig_of("installer", Some("system:masters"))?;
    let hypershift = Hypershift::build(&installer, &testbed.progress).await?;

    step(testbed, "refusing what may not be done");
    refused::without_rights(testbed, &hypershift).await?;
    refused::too_old(testbed, &hypershift, &installer).await?;

    step(
        testbed,
        "killing it in the middle, three times, and finishing",
    );
    killed::at_any_point(testbed, &hypershift).await?;
    is_complete(testbed).await?;
    platform.is_unchanged(&testbed.control_plane).await?;

    step(testbed, "installing again");
    again_changes_nothing(testbed, &hypershift).await?;
    a_change_is_predicted_and_made(testbed, &hypershift).await?;

    step(testbed, "refusing what would take or lose something");
    refused::names_of_others(testbed, &hypershift).await?;
    refused::pruned_fields(testbed, &hypershift).await?;
    refused::the_way_back(testbed, &hypershift).await?;
    platform.is_unchanged(&testbed.control_plane).await?;

    testbed.start_controller_manager().await?;
    hosted::comes_and_goes(testbed, &mut platform).await?;
    step(testbed, "uninstalling, while there are objects of users");
    removed::but_for_what_is_somebodys(testbed, &hypershift).await?;
    step(testbed, "uninstalling the rest");
    removed::to_the_last_object(testbed, &hypershift).await?;
    let admin = testbed.admin.clone();
    platform.scales(&admin, &testbed.control_plane, 1).await?;
    platform.is_its_own(&testbed.control_plane.audit)
}

fn step(testbed: &Testbed, what: &str) {
    testbed.progress.note(what);
}

/// Standard CRDs of another version, a manager of that version, and a cluster that it looks after.
async fn platform_with_a_manager(testbed: &mut Testbed) -> Result<Platform> {
    let step = testbed.progress.step(format!(
        "the platform's Cluster API {}",
        platform::version()?
    ));
    platform::install_crds(&testbed.admin).await?;
    testbed.has_crds(CapiTypes::Standard);
    let cluster_api = testbed.add(&Plan::platform(&[platform::MANAGER])).await?;
    let manager = cluster_api.usernames().concat();
    let (admin, control_plane) = (&testbed.admin, &testbed.control_plane);
    let platform = Platform::create(admin, control_plane, PLATFORM, &manager).await?;
    step.done_with(&format!("{} objects and CRDs", platform.len()));
    Ok(platform)
}

/// The operator is there, without a proxy; operator-legacy is not, since no hosted cluster needs it.
async fn is_complete(testbed: &Testbed) -> Result<()> {
    let admin = &testbed.admin;
    let operator = admin
        .get(&DEPLOYMENTS.named(command::NAMESPACE, "operator"))
        .await?;
    let pod = &operator["spec"]["template"]["spec"];
    ensure!(
        pod["initContainers"].is_null(),
        "the operator has containers beside it: {}",
        pod["initContainers"]
    );
    let environment = pod["containers"][0]["env"].to_string();
    ensure!(
        !environment.contains("KUBECONFIG"),
        "the operator is pointed at the proxy: {environment}"
    );
    let legacy = DEPLOYMENTS.named(command::NAMESPACE, "operator-legacy");
    ensure!(
        admin.find(&legacy).await?.is_none(),
        "operator-legacy is there"
    );
    admin
        .list("/apis/cluster.hypershift.openshift.io/v1beta2/machines")
        .await
        .context("private machines are not served")?;
    admin
        .list("/apis/hypershift.openshift.io/v1beta1/hostedclusters")
        .await
        .context("hosted clusters are not served")?;
    Ok(())
}

async fn again_changes_nothing(testbed: &Testbed, hypershift: &Hypershift) -> Result<()> {
    let before = stored::revisions(testbed).await?;
    hypershift.install(&[]).await?.succeeded()?;
    stored::unchanged(testbed, &before).await?;
    let predicted = hypershift.install(&["--dry-run"]).await?.succeeded()?;
    for line in predicted.lines() {
        let calm = line.ends_with(": unchanged") || line.starts_with("left out: ");
        ensure!(calm, "a dry run of the same announces {line:?}");
    }
    stored::unchanged(testbed, &before).await
}

async fn a_change_is_predicted_and_made(testbed: &Testbed, hypershift: &Hypershift) -> Result<()> {
    let image = "registry.example.com/hypershift-operator:v2";
    let flag = format!("--hypershift-image={image}");
    let before = stored::revisions(testbed).await?;
    let predicted = hypershift
        .install(&["--dry-run", &flag])
        .await?
        .succeeded()?;
    let expected = "spec.template.spec.containers[0].image: registry.example.com/hypershift-operator:v1 -> \
                    registry.example.com/hypershift-operator:v2";
    ensure!(
        predicted.contains(expected),
        "the dry run says:\n{predicted}"
    );
    stored::unchanged(testbed, &before).await?;

    hypershift.install(&[&flag]).await?.succeeded()?;
    let changed = stored::changed(testbed, &before).await?;
    ensure!(
        changed == ["/registry/deployments/hypershift/operator"],
        "changed: {changed:?}"
    );
    let live = testbed
        .admin
        .get(&DEPLOYMENTS.named(command::NAMESPACE, "operator"))
        .await?;
    let found: &Value = &live["spec"]["template"]["spec"]["containers"][0]["image"];
    ensure!(found == image, "the image is {found}");
    hypershift.install(&[]).await?.succeeded().map(drop)
}
