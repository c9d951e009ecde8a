//! `sync-global-pullsecret` as a process. Its files are those of a node and have no flags, so that what it writes is tested
//! with the real message bus in the unit tests; here, the machine has no pull secret.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Result, ensure};
use testbed::cargo::Program;
use testbed::process::Launch;
use testbed::progress::Progress;
use testbed::work_dir::WorkDir;

use super::running::{Running, fails};

const KUBELET: &str = "/var/lib/kubelet/config.json";

#[tokio::test]
async fn a_node_without_pull_secret_keeps_its_file() -> Result<()> {
    let original = Path::new("/etc/original-pull-secret");
    ensure!(!original.exists(), "this machine is a node");
    let work_dir = Arc::new(WorkDir::open("pull-secret")?);
    let program = Program::dev("control-plane-operator", "control-plane-operator");
    let program = program.build(&Progress::detect()).await?;
    let before = std::fs::read(KUBELET).ok();
    let launch = Launch::new("sync-global-pullsecret", &program).arg("sync-global-pullsecret");
    let mut running = Running::start(&launch, &work_dir)?;
    running.logs("Failed to update the pull secret").await?;
    running
        .logs("/etc/original-pull-secret/.dockerconfigjson")
        .await?;
    running.terminates().await?;
    ensure!(std::fs::read(KUBELET).ok() == before, "it was written");
    let flag = ["sync-global-pullsecret", "--file=a"].map(str::to_owned);
    fails(&program, &flag, &[], 64, "--file").await
}
