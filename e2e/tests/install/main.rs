//! `hypershift install` and `uninstall` before a real API server: what is refused changes nothing, what is done twice
//! changes nothing the second time, what is killed is finished by the next run, and the platform's own Cluster API never
//! notices.
//!
//! Most of it needs no kubelet, so that nothing waits for pods; [`nodes`] has one.

mod command;
mod killed;
mod nodes;
mod refused;
mod removed;
mod stored;

use anyhow::{Context, Result, ensure};
use api::group::Side;
use e2e::client::Resource;
use e2e::progress::Progress;
use e2e::service_account::ensure_namespace;
use e2e::testbed::Testbed;
use serde_json::{Value, json};

use command::Hypershift;

/// Objects of the platform's Cluster API.
const PLATFORM: &str = "platform";
const CLUSTERS: Resource<'_> = Resource::new("cluster.x-k8s.io/v1beta2", "clusters");
const DEPLOYMENTS: Resource<'_> = Resource::new("apps/v1", "deployments");

#[tokio::test]
async fn an_installation_is_whole_repeatable_and_leaves_the_platform_alone() -> Result<()> {
    let mut testbed = Testbed::start("install", Progress::detect()).await?;
    let outcome = scenario(&mut testbed).await;
    testbed.finish(outcome)
}

async fn scenario(testbed: &mut Testbed) -> Result<()> {
    testbed.install_crds(Side::Standard).await?;
    create_platform(testbed).await?;
    let hypershift =
        Hypershift::build(testbed.control_plane.admin_kubeconfig(), &testbed.progress).await?;
    let platform = stored::platform(testbed).await?;

    step(testbed, "refusing what may not be done");
    refused::without_rights(testbed, &hypershift).await?;

    step(
        testbed,
        "killing it in the middle, three times, and finishing",
    );
    killed::at_any_point(testbed, &hypershift).await?;
    is_complete(testbed).await?;
    stored::platform_is(testbed, &platform).await?;

    step(testbed, "installing again");
    again_changes_nothing(testbed, &hypershift).await?;
    a_change_is_foretold_and_made(testbed, &hypershift).await?;

    step(testbed, "refusing what would take or lose something");
    refused::names_of_others(testbed, &hypershift).await?;
    refused::pruned_fields(testbed, &hypershift).await?;
    refused::the_way_back(testbed, &hypershift).await?;
    stored::platform_is(testbed, &platform).await?;

    testbed.start_controller_manager().await?;
    step(testbed, "uninstalling, with somebody's objects there");
    removed::but_for_what_is_somebodys(testbed, &hypershift).await?;
    step(testbed, "uninstalling the rest");
    removed::to_the_last_object(testbed, &hypershift).await?;
    stored::platform_is(testbed, &platform).await
}

fn step(testbed: &Testbed, what: &str) {
    testbed.progress.note(what);
}

async fn create_platform(testbed: &Testbed) -> Result<()> {
    ensure_namespace(&testbed.admin, PLATFORM).await?;
    let cluster = json!({
        "apiVersion": CLUSTERS.api_version,
        "kind": "Cluster",
        "metadata": { "namespace": PLATFORM, "name": "its-own" },
        "spec": { "paused": true },
    });
    testbed.admin.apply(&[cluster]).await
}

/// The operator is there with its proxy; operator-legacy is not, since no hosted cluster needs it.
async fn is_complete(testbed: &Testbed) -> Result<()> {
    let admin = &testbed.admin;
    let operator = admin
        .get(&DEPLOYMENTS.named(command::NAMESPACE, "operator"))
        .await?;
    let pod = &operator["spec"]["template"]["spec"];
    let sidecar = &pod["initContainers"][0];
    ensure!(
        sidecar["name"] == "kube-apiserver-proxy" && sidecar["restartPolicy"] == "Always",
        "the proxy is no native sidecar: {sidecar}"
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
    let foretold = hypershift.install(&["--dry-run"]).await?.succeeded()?;
    for line in foretold.lines() {
        let calm = line.ends_with(": unchanged") || line.starts_with("left out: ");
        ensure!(calm, "a dry run of the same announces {line:?}");
    }
    stored::unchanged(testbed, &before).await
}

async fn a_change_is_foretold_and_made(testbed: &Testbed, hypershift: &Hypershift) -> Result<()> {
    let image = "registry.example.com/hypershift-operator:v2";
    let flag = format!("--hypershift-image={image}");
    let before = stored::revisions(testbed).await?;
    let foretold = hypershift
        .install(&["--dry-run", &flag])
        .await?
        .succeeded()?;
    let expected = "spec.template.spec.containers[0].image: registry.example.com/hypershift-operator:v1 -> \
                    registry.example.com/hypershift-operator:v2";
    ensure!(foretold.contains(expected), "the dry run says:\n{foretold}");
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
