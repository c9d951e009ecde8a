//! Releases from before private types: their control-plane-operator is replaced where the cluster is on private types, and
//! nowhere else. Without anything to replace it by, nothing is made.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use api::annotations::SCOPE;
use api::group::CapiTypes;
use serde_json::{Value, json};
use testbed::cargo::command_line;
use testbed::client::ApiClient;
use testbed::operator::SOON;
use testbed::simulation::{self, Releases};
use testbed::terminal;
use testbed::testbed::Testbed;
use testbed::wait;
use tokio::process::Command;

use crate::hosted_clusters_api::cluster::{Cluster, DEPLOYMENTS, gone};
use crate::hosted_clusters_api::fixture::NAMESPACE;

/// The image in the table.
const OVERRIDE: &str = "images.example.com/control-plane-operator:for-4.14";
const PROXY: &str = "images.example.com/capi-proxy:v1";
/// The version that is in the table, and one that is not.
const KNOWN: &str = "4.14.9";
const UNKNOWN: &str = "4.15.3";

/// Old releases, in a registry, and the table of who runs them.
pub(crate) struct OldReleases {
    known: String,
    unknown: String,
    registry: String,
    pub(crate) table: PathBuf,
}

// === impl OldReleases ===

impl OldReleases {
    pub(crate) async fn push(releases: &Releases, directory: &Path) -> Result<Self> {
        Ok(Self {
            known: releases.push_old(KNOWN).await?,
            unknown: releases.push_old(UNKNOWN).await?,
            registry: releases.address(),
            table: table(directory)?,
        })
    }
}

/// Writes the table that operators are started with.
fn table(directory: &Path) -> Result<PathBuf> {
    let path = directory.join("control-plane-operator-overrides.yaml");
    let entry = format!("{{version: {KNOWN}, cpoImage: '{OVERRIDE}'}}");
    std::fs::write(
        &path,
        format!("platforms: {{aws: {{overrides: [{entry}]}}}}\n"),
    )?;
    Ok(path)
}

/// One on each side, and one that cannot be.
pub(crate) async fn live(testbed: &Testbed, old: &OldReleases) -> Result<()> {
    let admin = &testbed.admin;
    let private = cluster("aged", CapiTypes::Private);
    let standard = cluster("aged-legacy", CapiTypes::Standard);
    let lost = cluster("aged-alone", CapiTypes::Private);
    create(admin, &private, &old.known).await?;
    create(admin, &standard, &old.known).await?;
    create(admin, &lost, &old.unknown).await?;
    is_replaced(admin, &private).await.context(private.name)?;
    is_its_own(admin, &standard).await.context(standard.name)?;
    is_planned(testbed, &standard, old).await.context("plan")?;
    says_so(admin, &lost).await.context(lost.name)?;
    for cluster in [private, standard, lost] {
        admin.delete(&cluster.path()).await?;
        let namespace = format!("/api/v1/namespaces/{}", cluster.namespace());
        gone(admin, [cluster.path(), namespace]).await?;
    }
    Ok(())
}

fn cluster(name: &'static str, capi_types: CapiTypes) -> Cluster {
    Cluster { name, capi_types }
}

async fn create(admin: &ApiClient, of: &Cluster, release: &str) -> Result<()> {
    let mut objects = simulation::desired(of.name, release)?;
    objects.retain(|object| object["kind"] != "NodePool");
    for object in &mut objects {
        if object["kind"] == "HostedCluster" && of.capi_types == CapiTypes::Standard {
            object["metadata"]["annotations"] = json!({ SCOPE: "legacy" });
        }
    }
    admin.apply(&objects).await
}

/// The operator of the table runs, with the variable for private types, and the proxies are there.
async fn is_replaced(admin: &ApiClient, cluster: &Cluster) -> Result<()> {
    cluster.is_made(admin).await?;
    let pod = pod(admin, cluster, "control-plane-operator").await?;
    let container = &pod["containers"][0];
    ensure!(container["image"] == OVERRIDE, "{}", container["image"]);
    let variable = |name: &str| {
        let mut variables = container["env"].as_array().into_iter().flatten();
        variables
            .find(|it| it["name"] == name)
            .map(|it| &it["value"])
    };
    ensure!(
        variable("CAPI_TYPES") == Some(&json!("private")),
        "{container}"
    );
    ensure!(
        variable("CONTROL_PLANE_OPERATOR_IMAGE") == Some(&json!(OVERRIDE)),
        "{container}"
    );
    ensure!(
        variable("IMAGE_CAPI_PROXY") == Some(&json!(PROXY)),
        "{container}"
    );
    for name in ["cluster-api", "capi-provider"] {
        let pod = self::pod(admin, cluster, name).await?;
        ensure!(
            pod.to_string().contains(PROXY),
            "{name} has no proxy: {pod}"
        );
    }
    Ok(())
}

/// The release's own operator runs, and there is no proxy.
async fn is_its_own(admin: &ApiClient, cluster: &Cluster) -> Result<()> {
    cluster.is_made(admin).await?;
    let pod = pod(admin, cluster, "control-plane-operator").await?;
    let image = pod["containers"][0]["image"].as_str().unwrap_or_default();
    ensure!(image.contains("/payload/hypershift@sha256:"), "{image}");
    for name in ["control-plane-operator", "cluster-api", "capi-provider"] {
        let pod = self::pod(admin, cluster, name).await?;
        ensure!(
            !pod.to_string().contains(PROXY),
            "{name} has a proxy: {pod}"
        );
    }
    Ok(())
}

/// `hypershift migrate plan` says beforehand what the operator would say: here no operator is installed, so the flags count.
async fn is_planned(testbed: &Testbed, cluster: &Cluster, old: &OldReleases) -> Result<()> {
    let registry = format!("INSECURE_REGISTRIES={}", old.registry);
    let reads = ["--additional-operator-env-vars", &registry];
    let table = old.table.display().to_string();
    let replaces = ["--control-plane-operator-overrides", &table];
    let hypershift = command_line(&testbed.progress).await?;
    let plans = async |more: &[&str]| {
        let mut command = Command::new(&hypershift);
        command.args(["migrate", "plan", "--namespace", NAMESPACE]);
        command.args(["--name", cluster.name]).args(more);
        terminal::run(&mut command, testbed.control_plane.admin_kubeconfig()).await
    };
    // From here, the registry cannot be read without declaring that it has no TLS.
    let (code, said) = plans(&[]).await?;
    ensure!(
        code == 0 && said.contains("note (release)"),
        "{code}: {said}"
    );
    let (code, said) = plans(&reads).await?;
    let expected = format!("control-plane-operator of its release {KNOWN}");
    ensure!(
        code == 2 && said.contains("BLOCKS (release)") && said.contains(&expected),
        "{code}: {said}"
    );
    let (code, said) = plans(&[reads, replaces].concat()).await?;
    ensure!(code == 0 && !said.contains("(release)"), "{code}: {said}");
    Ok(())
}

/// What is missing is reported, and nothing is created.
async fn says_so(admin: &ApiClient, cluster: &Cluster) -> Result<()> {
    let expected = format!("control-plane-operator of its release {UNKNOWN}");
    let kind = "SupportedHostedCluster";
    cluster.reports(admin, kind, "False", &expected).await?;
    let ways = "--control-plane-operator-overrides";
    cluster.reports(admin, kind, "False", ways).await?;
    let namespace = format!("/api/v1/namespaces/{}", cluster.namespace());
    ensure!(
        admin.find(&namespace).await?.is_none(),
        "{namespace} is made without an operator for it"
    );
    Ok(())
}

async fn pod(admin: &ApiClient, cluster: &Cluster, name: &str) -> Result<Value> {
    let path = DEPLOYMENTS.named(&cluster.namespace(), name);
    let found = wait::until(&path, SOON, async || admin.get(&path).await).await?;
    Ok(found["spec"]["template"]["spec"].clone())
}
