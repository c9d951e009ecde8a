//! The README, followed to the letter on a cluster with nodes.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;
use testbed::client::Resource;
use testbed::embedded;
use testbed::images::{Image, StaticProgram, build_static};
use testbed::node::{NodeTestbed, supported};
use testbed::wait;
use tokio::process::Command;

const CHAPTER: &str = "## The first hour";
const NAMESPACE: &str = "hypershift";
/// Kinds with objects that a second installation must not touch, by their paths.
const UNTOUCHED: [&str; 7] = [
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
    "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
    "/apis/scheduling.k8s.io/v1/priorityclasses",
    "/api/v1/namespaces/hypershift/serviceaccounts",
    "/api/v1/namespaces/hypershift/services",
    "/api/v1/namespaces/hypershift/configmaps",
];
const PODS: Resource<'_> = Resource::new("v1", "pods");

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn readme_quick_start_works() -> Result<()> {
    if let Err(reason) = supported() {
        println!("skipped: {reason}");
        return Ok(());
    }
    let testbed = NodeTestbed::builder("readme")
        .images(&[Image::HypershiftOperator, Image::CapiProxy])
        .start()
        .await?;
    let outcome = scenario(&testbed).await;
    testbed.finish(outcome)
}

async fn scenario(testbed: &NodeTestbed) -> Result<()> {
    let reader = Reader::new(testbed).await?;
    let blocks = blocks(&std::fs::read_to_string(root().join("README.md"))?);
    let [dry_run, install, api, owner, end] = &blocks[..] else {
        bail!("the chapter has {} blocks of commands", blocks.len());
    };
    reader.follow(dry_run).await?;
    ensure!(
        testbed
            .admin
            .find("/api/v1/namespaces/hypershift")
            .await?
            .is_none(),
        "the dry run has made something"
    );
    reader.follow(install).await?;
    nothing_restarts(testbed).await?;
    twice_changes_nothing(testbed, &reader, install).await?;
    let said = reader.follow(api).await?;
    ensure!(
        said.contains("autoScaling") && said.contains("clusterName cannot change"),
        "{said}"
    );
    let said = reader.follow(owner).await?;
    ensure!(said.contains("clusters/example"), "{said}");
    reader.follow(end).await?;
    nothing_is_left(testbed).await
}

/// A user who types what the README says.
struct Reader<'t> {
    testbed: &'t NodeTestbed,
    path: OsString,
}

// === impl Reader ===

impl<'t> Reader<'t> {
    async fn new(testbed: &'t NodeTestbed) -> Result<Self> {
        // As it is released: the private CRDs are in it.
        embedded::fill().await?;
        let hypershift = StaticProgram {
            package: "cli",
            name: "hypershift",
        };
        let hypershift = build_static(&hypershift, &testbed.progress).await?;
        let own = [hypershift.as_path(), testbed.kubectl()].map(directory);
        let path = std::env::var_os("PATH").unwrap_or_default();
        let path = std::env::join_paths(own.into_iter().chain(std::env::split_paths(&path)))?;
        Ok(Self { testbed, path })
    }

    /// Runs a block; gives what is printed.
    async fn follow(&self, block: &str) -> Result<String> {
        let step = self
            .testbed
            .progress
            .step(format!("following:\n{}", block.trim_end()));
        let output = Command::new("bash")
            // A pipe or a line that fails ends it, and so does a variable that the README does not mention.
            .args(["-euo", "pipefail", "-c", &format!("exec 2>&1\n{block}")])
            .current_dir(root())
            .env("PATH", &self.path)
            .env("KUBECONFIG", self.testbed.kubeconfig())
            .env(
                "OPERATOR_IMAGE",
                self.testbed.image(Image::HypershiftOperator)?,
            )
            .env("PROXY_IMAGE", self.testbed.image(Image::CapiProxy)?)
            .stdin(Stdio::null())
            .kill_on_drop(true)
            .output()
            .await
            .context("cannot run bash")?;
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        ensure!(
            output.status.success(),
            "{}:\n{block}\nsays:\n{said}",
            output.status
        );
        step.done();
        Ok(said)
    }
}

fn directory(program: &Path) -> PathBuf {
    program.parent().unwrap_or(Path::new("/")).to_owned()
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The commands of the chapter, a text for each block that is marked as shell.
fn blocks(readme: &str) -> Vec<String> {
    let chapter = readme.split(CHAPTER).nth(1).unwrap_or_default();
    let chapter = chapter.split("\n## ").next().unwrap_or_default();
    let blocks = chapter.split("```sh\n").skip(1);
    blocks
        .filter_map(|block| Some(block.split("```").next()?.to_owned()))
        .collect()
}

async fn nothing_restarts(testbed: &NodeTestbed) -> Result<()> {
    let pods = testbed.admin.list(&PODS.within(NAMESPACE)).await?;
    ensure!(pods.len() == 2, "{} pods", pods.len());
    for pod in &pods {
        let statuses =
            ["initContainerStatuses", "containerStatuses"].map(|key| &pod["status"][key]);
        let containers: Vec<&Value> = statuses
            .into_iter()
            .filter_map(Value::as_array)
            .flatten()
            .collect();
        ensure!(
            containers.len() == 1,
            "an operator pod has one container: {containers:?}"
        );
        for container in containers {
            ensure!(
                container["restartCount"] == 0 && container["ready"] == true,
                "{container}"
            );
        }
    }
    Ok(())
}

async fn twice_changes_nothing(
    testbed: &NodeTestbed,
    reader: &Reader<'_>,
    install: &str,
) -> Result<()> {
    let before = versions(testbed).await?;
    let pods = names(testbed).await?;
    reader.follow(install).await?;
    ensure!(
        before == versions(testbed).await?,
        "installing again has written something"
    );
    ensure!(
        pods == names(testbed).await?,
        "installing again has replaced pods"
    );
    Ok(())
}

async fn versions(testbed: &NodeTestbed) -> Result<Vec<(String, String)>> {
    let mut versions = Vec::new();
    for path in UNTOUCHED {
        for object in testbed.admin.list(path).await? {
            let text = |key: &str| object["metadata"][key].to_string();
            versions.push((format!("{path}/{}", text("name")), text("resourceVersion")));
        }
    }
    Ok(versions)
}

async fn names(testbed: &NodeTestbed) -> Result<Vec<String>> {
    let pods = testbed.admin.list(&PODS.within(NAMESPACE)).await?;
    Ok(pods
        .iter()
        .map(|pod| pod["metadata"]["uid"].to_string())
        .collect())
}

/// No CRD of ours has objects any more, so everything is removed.
async fn nothing_is_left(testbed: &NodeTestbed) -> Result<()> {
    wait::until(
        "the installation to be gone",
        std::time::Duration::from_mins(1),
        async || {
            let crds = testbed.admin.list(UNTOUCHED[0]).await?;
            let names: Vec<&str> = crds
                .iter()
                .filter_map(|crd| crd["metadata"]["name"].as_str())
                .collect();
            ensure!(
                !names.iter().any(|name| name.contains("hypershift")),
                "{names:?}"
            );
            ensure!(
                testbed
                    .admin
                    .find("/api/v1/namespaces/hypershift")
                    .await?
                    .is_none()
            );
            Ok(())
        },
    )
    .await
}

#[test]
fn blocks_of_the_chapter_are_found() {
    let readme = "## A\n```sh\nno\n```\n## The first hour\n```\nno\n```\n```sh\none\ntwo\n```\ntext\n```sh\nthree\n```\n## B\n```sh\nno\n```\n";
    assert_eq!(blocks(readme), ["one\ntwo\n", "three\n"]);
}
