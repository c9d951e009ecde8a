//! `console-logs`: what machines of a hosted cluster wrote to their consoles, for machines that do not become nodes.

mod instances;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::{Args, Subcommand};

use crate::hosted::Hosted;
use crate::infra::aws::{Aws as Cloud, Call, Calls as _, CredentialArgs, place};
use crate::install::display::Display;
use crate::install::{TargetArgs, runtime};
use instances::{Instance, console, file_names, read};

/// How the session of a role is called in audit logs of AWS.
const SESSION: &str = "hypershift-console-logs";

/// Where the machines are.
#[derive(Debug, Subcommand)]
pub(crate) enum ConsoleLogs {
    /// Get the console logs of the running instances of a hosted cluster on Amazon EC2
    #[command(after_help = include_str!("console_logs/aws.txt"))]
    Aws(Aws),
}

/// Flags of `console-logs aws`.
#[derive(Debug, Args)]
pub(crate) struct Aws {
    /// Name of the hosted cluster
    #[arg(long, value_name = "NAME")]
    name: String,

    /// Namespace of the hosted cluster
    #[arg(long, short, value_name = "NAME", default_value = "clusters")]
    namespace: String,

    /// Directory to write to: a file for each instance, with the name that its tag has
    #[arg(long, value_name = "DIR")]
    output_dir: PathBuf,

    #[command(flatten)]
    credentials: CredentialArgs,

    /// Suppress progress output
    #[arg(long, short)]
    quiet: bool,

    #[command(flatten)]
    target: TargetArgs,
}

/// Runs `console-logs`.
pub(crate) fn run(logs: &ConsoleLogs) -> anyhow::Result<()> {
    match logs {
        ConsoleLogs::Aws(aws) => runtime()?.block_on(Box::pin(aws.run())),
    }
}

// === impl Aws ===

impl Aws {
    async fn run(&self) -> anyhow::Result<()> {
        let display = Display::new(self.quiet);
        let hosted = Hosted::connect(&self.target.access()).await?;
        let cluster = hosted.cluster(&self.namespace, &self.name).await?;
        let (region, infra_id) = place(&cluster)?;
        let cloud = self.credentials.connect(region, SESSION)?;
        let instances = running(&cloud, infra_id).await?;
        if instances.is_empty() {
            display.say(&format!(
                "HostedCluster {}/{} has no running instances in {region}",
                self.namespace, self.name
            ));
            return Ok(());
        }
        fs::create_dir_all(&self.output_dir)
            .with_context(|| format!("cannot make {}", self.output_dir.display()))?;
        let mut failed = Vec::new();
        for (instance, file) in instances.iter().zip(file_names(&instances)) {
            let path = self.output_dir.join(file);
            let line = match save(&cloud, instance, &path).await {
                Ok(size) => format!("{size} bytes in {}", path.display()),
                // One may be gone by now: the others are of use.
                Err(error) => {
                    failed.push(instance.id.as_str());
                    format!("{error:#}")
                }
            };
            display.say(&format!("instance {}: {line}", instance.id));
        }
        if failed.is_empty() {
            return Ok(());
        }
        bail!(
            "failed to get the console logs of {}: run the command again",
            failed.join(", ")
        )
    }
}

/// Writes the console log of an instance to a file; returns its size in bytes.
async fn save(cloud: &Cloud, instance: &Instance, path: &Path) -> anyhow::Result<usize> {
    let call = Call::ec2("GetConsoleOutput").with("InstanceId", instance.id.as_str());
    let text = console(&cloud.call(&call).await?);
    let text = text.context("the console log is not base64")?;
    fs::write(path, &text).with_context(|| format!("failed to write {}", path.display()))?;
    Ok(text.len())
}

async fn running(cloud: &Cloud, infra_id: &str) -> anyhow::Result<Vec<Instance>> {
    let first = Call::ec2("DescribeInstances")
        .filter(&format!("tag:kubernetes.io/cluster/{infra_id}"), "owned")
        .filter("instance-state-name", "running");
    let mut call = first.clone();
    let mut instances = Vec::new();
    loop {
        let page = read(&cloud.call(&call).await?);
        instances.extend(page.instances);
        let Some(token) = page.next else {
            return Ok(instances);
        };
        call = first.clone().with("NextToken", token);
    }
}
