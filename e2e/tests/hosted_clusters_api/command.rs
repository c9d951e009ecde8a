//! A cluster that is made and destroyed by `hcp`.

use std::path::Path;

use anyhow::{Result, ensure};
use testbed::cargo::Program;
use testbed::terminal;
use testbed::testbed::Testbed;
use tokio::process::Command;

use crate::hosted_clusters_api::cluster::{HOSTED_CLUSTERS, NODE_POOLS};
use crate::hosted_clusters_api::control_plane;
use crate::hosted_clusters_api::fixture::{Fixture, NAMESPACE};

/// Environment variable that names a built `hcp`, so that none is built.
pub(crate) const BINARY_VARIABLE: &str = "HYPERSHIFT_HCP";
const NAME: &str = "bare";

/// Creates a cluster, waits until it is available, and destroys it.
pub(crate) async fn runs(testbed: &Testbed, fixture: &Fixture, kubeconfig: &Path) -> Result<()> {
    let program = Program::dev("cli", "hcp");
    let program = program.find(BINARY_VARIABLE, &testbed.progress).await?;
    let secret = testbed.path().join("pull-secret.json");
    std::fs::write(
        &secret,
        r#"{"auths": {"r.example.com": {"auth": "bm86Ym9keQ=="}}}"#,
    )?;
    let mut create = Command::new(&program);
    create
        .args(["create", "cluster", "none", "--name", NAME, "--wait"])
        .args(["--release-image", &fixture.release])
        .args(["--base-domain", "example.com"])
        .args(["--external-api-server-address", "192.0.2.10"])
        .args(["--timeout", "2m"])
        .arg("--pull-secret")
        .arg(&secret);
    let (created, ()) = tokio::try_join!(
        done(&mut create, kubeconfig),
        control_plane::comes_up(&testbed.admin, NAME)
    )?;
    ensure!(!created.is_empty(), "it has said nothing");
    are_reported(testbed, &program, kubeconfig).await?;
    let mut destroy = Command::new(&program);
    destroy.args(["destroy", "cluster", "none", "--name", NAME]);
    done(&mut destroy, kubeconfig).await?;
    let left = testbed
        .admin
        .find(&HOSTED_CLUSTERS.named(NAMESPACE, NAME))
        .await?;
    ensure!(left.is_none(), "it is still there");
    Ok(())
}

/// Further commands, on the cluster that runs: versions, a dump, its kubeconfig, and the destruction of its node pool.
async fn are_reported(testbed: &Testbed, program: &Path, kubeconfig: &Path) -> Result<()> {
    let command = |words: &[&str]| {
        let mut command = Command::new(program);
        command.args(words);
        command
    };
    let said = done(&mut command(&["version"]), kubeconfig).await?;
    for part in ["Client Version: ", "Server Version: "] {
        ensure!(said.contains(part), "{said}");
    }
    let directory = testbed.path().join("dump");
    let mut dump = command(&["dump", "cluster", "--name", NAME]);
    done(dump.arg("--artifact-dir").arg(&directory), kubeconfig).await?;
    let archive = directory.join("hypershift-dump.tar.gz");
    ensure!(archive.metadata()?.len() > 0, "the dump is empty");
    control_plane::is_handed_over(&testbed.admin, NAME).await?;
    let file = testbed.path().join(format!("{NAME}.kubeconfig"));
    let words = ["create", "kubeconfig", "--name", NAME, "--port-forward"];
    done(command(&words).arg("--output").arg(&file), kubeconfig).await?;
    ensure!(file.metadata()?.len() > 0, "the kubeconfig is empty");
    for pool in testbed.admin.list(&NODE_POOLS.within(NAMESPACE)).await? {
        if pool["spec"]["clusterName"] != NAME {
            continue;
        }
        let name = pool["metadata"]["name"].as_str().unwrap_or_default();
        let mut destroy = command(&["destroy", "nodepool", "--name", name]);
        done(&mut destroy, kubeconfig).await?;
        let left = testbed
            .admin
            .find(&NODE_POOLS.named(NAMESPACE, name))
            .await?;
        ensure!(left.is_none(), "NodePool {name} is still there");
    }
    Ok(())
}

/// Runs it, and gives what it says.
pub(crate) async fn done(command: &mut Command, kubeconfig: &Path) -> Result<String> {
    let (code, said) = terminal::run(command, kubeconfig).await?;
    ensure!(code == 0, "hcp failed ({code}): {said}");
    Ok(said)
}
