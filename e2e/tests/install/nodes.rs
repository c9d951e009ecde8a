//! An installation that runs: images of this tree, as pods on a real kubelet, from the previous release to the end.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use api::annotations::MIGRATION_HOLD;
use api::group::CapiTypes;
use serde_json::{Value, json};
use testbed::client::Resource;
use testbed::images::Image;
use testbed::node::{NodeTestbed, supported};
use testbed::registry::Registry;
use testbed::service_account::ensure_namespace;
use testbed::{crds, fixtures, wait};

use crate::install::command::{Hypershift, NAMESPACE};
use crate::install::{DEPLOYMENTS, upgrade};

const PODS: Resource<'_> = Resource::new("v1", "pods");
const CLUSTERS: Resource<'_> = Resource::new("cluster.x-k8s.io/v1beta2", "clusters");
const HOSTED_CLUSTERS: Resource<'_> =
    Resource::new("hypershift.openshift.io/v1beta1", "hostedclusters");
/// Generous: a busy machine is no failure.
pub(crate) const WITHIN: Duration = Duration::from_mins(3);

/// The images that are installed.
pub(crate) struct Images {
    operator: String,
    proxy: String,
}

/// Check O01.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn installed_operators_treat_existing_clusters_as_legacy() -> Result<()> {
    if let Err(reason) = supported() {
        eprintln!("skipped: {reason}");
        return Ok(());
    }
    let testbed = NodeTestbed::builder("install-nodes")
        .images(&[Image::HypershiftOperator, Image::CapiProxy])
        .start()
        .await?;
    let outcome = scenario(&testbed).await;
    testbed.finish(outcome)
}

async fn scenario(testbed: &NodeTestbed) -> Result<()> {
    let hypershift = Hypershift::build(testbed.kubeconfig(), &testbed.progress).await?;
    let new = Images::by_digest(testbed)?;
    // Until the upgrade.
    let images = Images::by_tag();
    crds::install(
        &testbed.admin,
        &crds::cluster_api(CapiTypes::Standard).await?,
    )
    .await?;

    let step = testbed
        .progress
        .step("installing, and waiting for the pods");
    images.install(&hypershift, &[]).await?.succeeded()?;
    all_run(testbed, "operator").await?;
    ensure!(
        deployment(testbed, "operator-legacy").await?.is_none(),
        "operator-legacy is there, and is not needed"
    );
    step.done();

    let before = made(testbed).await?;
    images.install(&hypershift, &[]).await?.succeeded()?;
    ensure!(before == made(testbed).await?, "a second run has written");

    let step = testbed
        .progress
        .step("installing again, with a hosted cluster of the standard groups");
    create_legacy(testbed).await?;
    images.install(&hypershift, &[]).await?.succeeded()?;
    all_run(testbed, "operator-legacy").await?;
    is_marked_legacy(testbed).await?;
    step.done();

    let step = testbed.progress.step("upgrading from the previous release");
    upgrade::from_the_previous_release(testbed, &hypershift, &new).await?;
    step.done();
    let images = new;

    let step = testbed.progress.step("failing to install, with a reason");
    a_failure_is_explained(&images, &hypershift).await?;
    images.install(&hypershift, &[]).await?.succeeded()?;
    step.done();

    let step = testbed
        .progress
        .step("uninstalling beside a hosted cluster");
    what_a_hosted_cluster_needs_is_kept(testbed, &hypershift).await?;
    step.done();
    Ok(())
}

// === impl Images ===

impl Images {
    /// Those of this tree.
    fn by_digest(testbed: &NodeTestbed) -> Result<Self> {
        Ok(Self {
            operator: testbed.image(Image::HypershiftOperator)?.to_owned(),
            proxy: testbed.image(Image::CapiProxy)?.to_owned(),
        })
    }

    /// By other references.
    fn by_tag() -> Self {
        Self {
            operator: Registry::reference(Image::HypershiftOperator.name()),
            proxy: Registry::reference(Image::CapiProxy.name()),
        }
    }

    pub(crate) async fn install(
        &self,
        hypershift: &Hypershift,
        flags: &[&str],
    ) -> Result<crate::install::command::Run> {
        let operator = format!("--hypershift-image={}", self.operator);
        let proxy = format!("--capi-proxy-image={}", self.proxy);
        let usual = [
            "install",
            "--private-capi-types",
            "--private-crds-from=module=sigs.k8s.io/cluster-api",
            &proxy,
        ];
        let mut all = usual.to_vec();
        if !flags
            .iter()
            .any(|flag| flag.starts_with("--hypershift-image"))
        {
            all.push(&operator);
        }
        all.extend(flags);
        hypershift.run(&all).await
    }
}

async fn deployment(testbed: &NodeTestbed, name: &str) -> Result<Option<Value>> {
    let path = DEPLOYMENTS.named(NAMESPACE, name);
    testbed.admin.find(&path).await
}

/// Every pod of a Deployment is ready, and no container was ever started again.
pub(crate) async fn all_run(testbed: &NodeTestbed, name: &str) -> Result<()> {
    let path = format!("{}?labelSelector=name%3D{name}", PODS.within(NAMESPACE));
    let pods = testbed.admin.list(&path).await?;
    ensure!(pods.len() == 2, "{name} has {} pods", pods.len());
    for pod in &pods {
        testbed::node::condition(pod, "Ready")?;
        for list in ["initContainerStatuses", "containerStatuses"] {
            let statuses = pod["status"][list].as_array();
            for status in statuses.into_iter().flatten() {
                ensure!(status["restartCount"] == 0, "restarted: {status}");
            }
        }
    }
    Ok(())
}

/// What the installation made, with the version of each.
pub(crate) async fn made(testbed: &NodeTestbed) -> Result<Vec<String>> {
    let mut made = Vec::new();
    for collection in [
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
        "/apis/rbac.authorization.k8s.io/v1/clusterroles",
        "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
        "/apis/rbac.authorization.k8s.io/v1/roles",
        "/apis/rbac.authorization.k8s.io/v1/rolebindings",
        "/apis/scheduling.k8s.io/v1/priorityclasses",
        "/apis/networking.k8s.io/v1/networkpolicies",
        "/apis/apps/v1/deployments",
        "/api/v1/namespaces",
        "/api/v1/serviceaccounts",
        "/api/v1/services",
    ] {
        let label = "labelSelector=app.kubernetes.io%2Fmanaged-by%3Dhypershift-install";
        let objects = testbed.admin.list(&format!("{collection}?{label}")).await?;
        ensure!(!objects.is_empty(), "none of {collection}");
        made.extend(objects.iter().map(|object| {
            let metadata = &object["metadata"];
            format!(
                "{collection}/{} {}",
                metadata["name"], metadata["resourceVersion"]
            )
        }));
    }
    Ok(made)
}

/// A hosted cluster that was there before, as another release has made it: without annotations, with its objects in
/// the standard groups. It is no whole cluster, and is not to be migrated.
async fn create_legacy(testbed: &NodeTestbed) -> Result<()> {
    let admin = &testbed.admin;
    for namespace in ["clusters", "clusters-old"] {
        ensure_namespace(admin, namespace).await?;
    }
    let cluster = json!({
        "apiVersion": CLUSTERS.api_version,
        "kind": "Cluster",
        "metadata": { "namespace": "clusters-old", "name": "old" },
        "spec": { "paused": true },
    });
    admin.apply(&[cluster]).await?;
    let mut hosted = fixtures::render("install/hosted-cluster", &[("NAME", "old")])?;
    for object in &mut hosted {
        if object["kind"] == "HostedCluster" {
            object["metadata"]["annotations"] = json!({ MIGRATION_HOLD: "true" });
        }
    }
    admin.apply(&hosted).await
}

/// Its operator has also reported on it: it writes nothing more.
async fn is_marked_legacy(testbed: &NodeTestbed) -> Result<()> {
    let path = HOSTED_CLUSTERS.named("clusters", "old");
    wait::until("the hosted cluster to be marked", WITHIN, async || {
        let hosted = testbed.admin.get(&path).await?;
        let annotations = &hosted["metadata"]["annotations"];
        ensure!(
            annotations["hypershift.openshift.io/scope"] == "legacy",
            "its annotations are {annotations}"
        );
        // Its namespace has no owner.
        let conditions = hosted["status"]["conditions"].as_array();
        let mut conditions = conditions.into_iter().flatten();
        ensure!(
            conditions.any(|it| it["type"] == "ValidConfiguration" && it["status"] == "False"),
            "its status is {}",
            hosted["status"]
        );
        Ok(())
    })
    .await
}

async fn a_failure_is_explained(images: &Images, hypershift: &Hypershift) -> Result<()> {
    let missing = images
        .operator
        .split_once('@')
        .map_or(images.operator.as_str(), |(name, _)| name);
    let flag = format!("--hypershift-image={missing}:missing");
    let run = images
        .install(hypershift, &[&flag, "--timeout=20s"])
        .await?;
    for words in [
        "Deployment hypershift/operator is not available after 20 s",
        "container operator waits: ",
        "last warning: Pod operator-",
    ] {
        ensure!(run.failed_with(words), "no {words:?} in {run:?}");
    }
    Ok(())
}

async fn what_a_hosted_cluster_needs_is_kept(
    testbed: &NodeTestbed,
    hypershift: &Hypershift,
) -> Result<()> {
    let remarks = hypershift.run(&["uninstall"]).await?.remarks()?;
    for words in [
        "Namespace hypershift: keep: there are hosted clusters, for example clusters/old",
        "PriorityClass hypershift-etcd: keep: pods of hosted clusters name it",
        "CustomResourceDefinition hostedclusters.hypershift.openshift.io: keep: it has objects",
    ] {
        ensure!(remarks.contains(words), "no {words:?} in {remarks}");
    }
    for name in ["operator", "operator-legacy"] {
        ensure!(deployment(testbed, name).await?.is_none(), "{name} is left");
    }
    let pods = testbed.admin.list(&PODS.within(NAMESPACE)).await?;
    ensure!(pods.is_empty(), "pods are left: {}", pods.len());
    let hosted = HOSTED_CLUSTERS.named("clusters", "old");
    testbed
        .admin
        .get(&hosted)
        .await
        .context("the hosted cluster is gone")?;
    Ok(())
}
