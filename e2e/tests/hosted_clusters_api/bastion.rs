//! `hcp create bastion aws` and `hcp destroy bastion aws` in a network that exists. `hcp` is killed once during each, and run
//! again.

use std::net::Ipv4Addr;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use testbed::calls::Hold;
use testbed::cloud::{Cloud, CloudRelay, Instance};
use testbed::payload::REGION;
use tokio::process::Command;

use crate::hosted_clusters_api::aws_from_nothing::INFRA_ID;

/// A public SSH key (Ed25519).
pub(crate) const KEY: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f user@example.com\n";
/// The calls that write at which it is killed.
const CREATED: (Hold, &str) = (Hold::AfterWrite(4), "RunInstances");
const DESTROYED: (Hold, &str) = (Hold::AfterWrite(1), "TerminateInstances");

/// The program with an account.
struct Bastion<'a> {
    program: &'a Path,
    cloud: &'a Cloud,
    relay: CloudRelay,
    key: String,
}

/// Creates the bastion and destroys it. There is one instance, and then nothing.
pub(crate) async fn comes_and_goes(program: &Path, cloud: &Cloud, work_dir: &Path) -> Result<()> {
    let key = work_dir.join("bastion.pub");
    std::fs::write(&key, KEY)?;
    let bastion = Bastion {
        program,
        cloud,
        relay: CloudRelay::start(&cloud.url()).await?,
        key: key.display().to_string(),
    };
    let before = cloud.contents().await?;
    bastion.is_created().await.context("creation")?;
    bastion.is_destroyed().await.context("destruction")?;
    let after = cloud.contents().await?;
    ensure!(before == after, "{after:#?}\nbefore it: {before:#?}");
    Ok(())
}

// === impl Bastion ===

impl Bastion<'_> {
    async fn is_created(&self) -> Result<()> {
        self.is_killed(self.create(), CREATED).await?;
        let first = self.running().await?;
        ensure!(first.len() == 1, "{first:?} run after the first attempt");
        for _ in 0..2 {
            let address = succeeds(&mut self.create()).await?;
            let address = address.trim();
            let parsed = address.parse::<Ipv4Addr>();
            parsed.with_context(|| format!("{address:?} is not an address"))?;
            let running = self.running().await?;
            ensure!(running == first, "{running:?} in place of {first:?}");
        }
        Ok(())
    }

    async fn is_destroyed(&self) -> Result<()> {
        self.is_killed(self.destroy(), DESTROYED).await?;
        // The second time, there is nothing to destroy.
        for _ in 0..2 {
            succeeds(&mut self.destroy()).await?;
            let running = self.running().await?;
            ensure!(running.is_empty(), "{running:?}");
        }
        Ok(())
    }

    async fn is_killed(&self, mut command: Command, (hold, action): (Hold, &str)) -> Result<()> {
        let calls = self.relay.calls().kill_at(&mut command, hold).await?;
        let last = calls.last().map(|call| call.name.as_str());
        ensure!(last == Some(action), "it was killed at {last:?}");
        Ok(())
    }

    /// The identifiers of the instances that run.
    async fn running(&self) -> Result<Vec<String>> {
        let mut instances = self.cloud.instances().await?;
        instances.retain(Instance::runs);
        Ok(instances.into_iter().map(|it| it.id).collect())
    }

    fn create(&self) -> Command {
        let mut create = self.command("create");
        create.args(["--ssh-from", "192.0.2.0/24", "--ssh-key-file", &self.key]);
        create
    }

    fn destroy(&self) -> Command {
        self.command("destroy")
    }

    fn command(&self, verb: &str) -> Command {
        let mut command = Command::new(self.program);
        command
            .args([verb, "bastion", "aws", "--infra-id", INFRA_ID])
            .args(["--region", REGION])
            .env("AWS_ENDPOINT_URL", self.relay.url())
            .env("AWS_ACCESS_KEY_ID", "a")
            .env("AWS_SECRET_ACCESS_KEY", "s");
        command
    }
}

/// Runs a command that needs no cluster; gives its standard output.
async fn succeeds(command: &mut Command) -> Result<String> {
    let output = command.kill_on_drop(true).output().await?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "hcp failed: {said}");
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
