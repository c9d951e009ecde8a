//! `hcp create cluster` and `hcp destroy cluster` of a cloud, from an account that has nothing for the cluster, against a fake of
//! the cloud. `hcp` is killed once during each, and run again.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use testbed::calls::Hold;
use testbed::cargo::Program;
use testbed::cloud_proxy::CloudProxy;
use testbed::testbed::Testbed;
use tokio::process::Command;

use crate::hosted_clusters_api::cluster::{HOSTED_CLUSTERS, NODE_POOLS, SECRETS};
use crate::hosted_clusters_api::command::{BINARY_VARIABLE, done};
use crate::hosted_clusters_api::fixture::NAMESPACE;

/// A cloud, and how `hcp` is run for it.
pub(crate) struct Scenario {
    /// The platform in commands.
    pub(crate) platform: &'static str,
    /// The name of the cluster.
    pub(crate) name: &'static str,
    pub(crate) proxy: CloudProxy,
    /// Credentials in the environment.
    pub(crate) variables: Vec<(&'static str, String)>,
    /// Flags of `create cluster`, beside those of all platforms.
    pub(crate) create: Vec<String>,
    /// Flags of `destroy cluster`, beside those of all platforms.
    pub(crate) destroy: Vec<String>,
    /// The write of a creation, and that of a destruction, after which `hcp` is killed.
    pub(crate) killed_at: [usize; 2],
}

/// A scenario that runs.
struct Run<'a> {
    scenario: &'a Scenario,
    testbed: &'a Testbed,
    kubeconfig: &'a Path,
    program: PathBuf,
    release: &'a str,
    pull_secret: PathBuf,
}

// === impl Scenario ===

impl Scenario {
    /// Creates and destroys the cluster twice: with interruptions, and then without, to compare what there is.
    pub(crate) async fn runs(
        &self,
        testbed: &Testbed,
        release: &str,
        kubeconfig: &Path,
        fits: impl Fn(&Value, &[String]) -> Result<()>,
    ) -> Result<()> {
        let pull_secret = testbed
            .path()
            .join(format!("{}-pull-secret.json", self.name));
        std::fs::write(
            &pull_secret,
            r#"{"auths": {"r.example.com": {"auth": "bm86Ym9keQ=="}}}"#,
        )?;
        let program = Program::dev("cli", "hcp");
        let run = Run {
            scenario: self,
            testbed,
            kubeconfig,
            program: program.find(BINARY_VARIABLE, &testbed.progress).await?,
            release,
            pull_secret,
        };
        let before = self.proxy.snapshot();
        let interrupted = run.is_interrupted(&before, &fits).await;
        let interrupted = interrupted.context("with interruptions")?;
        let at_once = run.runs_at_once(&before, &fits).await;
        let at_once = at_once.context("without interruptions")?;
        ensure!(
            interrupted.len() == at_once.len(),
            "with interruptions: {interrupted:#?}\nwithout: {at_once:#?}"
        );
        Ok(())
    }
}

// === impl Run ===

impl Run<'_> {
    /// Gives what there was in the cloud with the cluster.
    async fn is_interrupted(
        &self,
        before: &[String],
        fits: &impl Fn(&Value, &[String]) -> Result<()>,
    ) -> Result<Vec<String>> {
        let scenario = self.scenario;
        let infra_id = format!("{}-x1", scenario.name);
        let [creation, destruction] = scenario.killed_at;
        self.is_killed(self.create(&infra_id), creation)
            .await
            .context("the creation")?;
        let path = self.path();
        let found = self.testbed.admin.find(&path).await?;
        ensure!(found.is_none(), "there is a HostedCluster already");
        let some = scenario.proxy.snapshot();
        ensure!(some != before, "nothing was created");
        let there = self.is_created(&infra_id, fits).await?;
        ensure!(some.len() < there.len(), "it was killed too late");
        self.is_killed(self.destroy(), destruction)
            .await
            .context("the destruction")?;
        // Without it, the second command would not know what to destroy.
        let found = self.testbed.admin.find(&path).await?;
        ensure!(found.is_some(), "the HostedCluster is gone too early");
        let left = scenario.proxy.snapshot();
        ensure!(left.len() < there.len(), "nothing was destroyed");
        ensure!(left != before, "it was killed too late");
        self.is_destroyed(before).await?;
        Ok(there)
    }

    /// The same without interruptions, with another name of the infrastructure.
    async fn runs_at_once(
        &self,
        before: &[String],
        fits: &impl Fn(&Value, &[String]) -> Result<()>,
    ) -> Result<Vec<String>> {
        let infra_id = format!("{}-x2", self.scenario.name);
        let there = self.is_created(&infra_id, fits).await?;
        self.is_destroyed(before).await?;
        Ok(there)
    }

    async fn is_created(
        &self,
        infra_id: &str,
        fits: &impl Fn(&Value, &[String]) -> Result<()>,
    ) -> Result<Vec<String>> {
        done(&mut self.create(infra_id), self.kubeconfig).await?;
        let cluster = self.testbed.admin.get(&self.path()).await?;
        let found = &cluster["spec"]["infraID"];
        ensure!(found == infra_id, "{found} is not {infra_id}");
        ensure!(!self.pools().await?.is_empty(), "there is no NodePool");
        let there = self.scenario.proxy.snapshot();
        fits(&cluster, &there)?;
        Ok(there)
    }

    async fn is_destroyed(&self, before: &[String]) -> Result<()> {
        done(&mut self.destroy(), self.kubeconfig).await?;
        let found = self.testbed.admin.find(&self.path()).await?;
        ensure!(found.is_none(), "the HostedCluster is still there");
        let pools = self.pools().await?;
        ensure!(pools.is_empty(), "{} NodePools are left", pools.len());
        let secrets = self.testbed.admin.list(&SECRETS.within(NAMESPACE)).await?;
        let prefix = format!("{}-", self.scenario.name);
        let names = secrets
            .iter()
            .filter_map(|it| it["metadata"]["name"].as_str());
        let secrets: Vec<_> = names.filter(|name| name.starts_with(&prefix)).collect();
        ensure!(secrets.is_empty(), "{secrets:?} are left");
        let left = self.scenario.proxy.snapshot();
        ensure!(left == before, "{left:#?}\nbefore it: {before:#?}");
        Ok(())
    }

    /// Runs a command that is killed when the cloud has received a write.
    async fn is_killed(&self, mut command: Command, write: usize) -> Result<()> {
        command.arg("--kubeconfig").arg(self.kubeconfig);
        let calls = self.scenario.proxy.calls();
        let killed = calls.kill_at(&mut command, Hold::AfterWrite(write)).await;
        killed.map(drop)
    }

    fn create(&self, infra_id: &str) -> Command {
        let mut command = self.command("create");
        command
            .args(["--infra-id", infra_id, "--base-domain", "example.com"])
            .args(["--release-image", self.release])
            .arg("--pull-secret")
            .arg(&self.pull_secret)
            .args(&self.scenario.create);
        command
    }

    fn destroy(&self) -> Command {
        let mut command = self.command("destroy");
        // No control plane runs that would do it.
        command
            .arg("--destroy-cloud-resources=false")
            .args(&self.scenario.destroy);
        command
    }

    fn command(&self, verb: &str) -> Command {
        let scenario = self.scenario;
        let mut command = Command::new(&self.program);
        command.args([verb, "cluster", scenario.platform, "--name", scenario.name]);
        scenario.proxy.configure(&mut command);
        for (name, value) in &scenario.variables {
            command.env(name, value);
        }
        command
    }

    fn path(&self) -> String {
        HOSTED_CLUSTERS.named(NAMESPACE, self.scenario.name)
    }

    async fn pools(&self) -> Result<Vec<Value>> {
        let mut pools = self
            .testbed
            .admin
            .list(&NODE_POOLS.within(NAMESPACE))
            .await?;
        pools.retain(|pool| pool["spec"]["clusterName"] == self.scenario.name);
        Ok(pools)
    }
}

/// Words of a command line.
pub(crate) fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

/// Fails unless a field of the cluster names something that is in the cloud.
pub(crate) fn names_what_is_there(
    cluster: &Value,
    pointers: &[&str],
    there: &[String],
) -> Result<()> {
    for pointer in pointers {
        let named = cluster.pointer(pointer).and_then(Value::as_str);
        let named = named.with_context(|| format!("the cluster has no {pointer}"))?;
        // IDs of Azure are the same in any case.
        let is_it = |line: &String| {
            let (line, named) = (line.to_ascii_lowercase(), named.to_ascii_lowercase());
            line.contains(&named)
        };
        ensure!(
            there.iter().any(is_it),
            "{pointer} {named} is not in {there:#?}"
        );
    }
    Ok(())
}
