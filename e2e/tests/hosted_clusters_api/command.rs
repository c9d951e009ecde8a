//! A cluster that is made and destroyed by `hcp`.

use std::path::Path;

use anyhow::{Result, ensure};
use testbed::cargo::Program;
use testbed::terminal;
use testbed::testbed::Testbed;
use tokio::process::Command;

use crate::hosted_clusters_api::cluster::HOSTED_CLUSTERS;
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

/// Runs it, and gives what it says.
pub(crate) async fn done(command: &mut Command, kubeconfig: &Path) -> Result<String> {
    let (code, said) = terminal::run(command, kubeconfig).await?;
    ensure!(code == 0, "hcp failed ({code}): {said}");
    Ok(said)
}
