//! `dump`: everything about a hosted cluster as files, for troubleshooting.
//!
//! Values of Secrets are left out: what is dumped is sent around.

mod directory;
mod objects;
mod redact;

use std::path::PathBuf;

use anyhow::Context;
use clap::{Args, Subcommand};
use kube::Client;
use kube::api::ListParams;
use kube::config::{KubeConfigOptions, Kubeconfig};

use crate::hosted::{Hosted, refused};
use crate::install::display::Display;
use crate::install::{TargetArgs, runtime};
use directory::Directory;
use objects::Scope;

/// What can be dumped.
#[derive(Debug, Subcommand)]
pub(crate) enum Dump {
    /// Dump a hosted cluster: its objects, those of its control plane in all API groups, logs and events
    Cluster(Cluster),
}

/// Flags of `dump cluster`.
#[derive(Debug, Args)]
pub(crate) struct Cluster {
    /// Name of the hosted cluster
    #[arg(long, value_name = "NAME")]
    name: String,

    /// Namespace of the hosted cluster
    #[arg(long, value_name = "NAME", default_value = "clusters")]
    namespace: String,

    /// Directory to write to; it must be empty, or not exist yet
    #[arg(long, value_name = "DIR")]
    artifact_dir: PathBuf,

    /// Also dump this namespace of Agents
    #[arg(long, value_name = "NAME")]
    agent_namespace: Option<String>,

    /// Also dump the objects in the hosted cluster
    #[arg(long = "dump-guest-cluster")]
    guest: bool,

    /// Also write all files of the dump to hypershift-dump.tar.gz in the directory
    #[arg(
        long,
        value_name = "BOOL",
        num_args = 0..=1,
        require_equals = true,
        default_value_t = false,
        default_missing_value = "true",
        action = clap::ArgAction::Set
    )]
    archive_dump: bool,

    /// User to impersonate for all requests to the management cluster
    #[arg(long = "as", value_name = "USER")]
    impersonate: Option<String>,

    /// Suppress progress output
    #[arg(long, short)]
    quiet: bool,

    #[command(flatten)]
    target: TargetArgs,
}

/// Runs `dump`.
pub(crate) fn run(dump: &Dump) -> anyhow::Result<()> {
    match dump {
        Dump::Cluster(cluster) => runtime()?.block_on(cluster.dump()),
    }
}

// === impl Cluster ===

impl Cluster {
    async fn dump(&self) -> anyhow::Result<()> {
        let display = Display::new(self.quiet);
        let impersonate = self.impersonate.as_deref();
        let hosted = Hosted::connect_as(&self.target.access(), impersonate).await?;
        let directory = Directory::create(&self.artifact_dir)?;
        self.dump_own(&hosted, &directory).await?;
        let control_plane = api::names::control_plane_namespace(&self.namespace, &self.name);
        let mut namespaces = vec![control_plane];
        namespaces.extend(self.agent_namespace.clone());
        for namespace in &namespaces {
            let mut step = display.step(&format!("namespace {namespace}"));
            let scope = Scope::Namespace(namespace);
            let count = objects::dump(hosted.client(), scope, &directory, &mut step).await?;
            let logs = objects::logs(hosted.client(), namespace, &directory, &mut step).await?;
            step.done(&format!("{count} objects, {logs} logs"));
        }
        if self.guest {
            self.dump_guest(&hosted, &directory, &display).await?;
        }
        if self.archive_dump {
            let archive = directory.archive()?;
            display.say(&format!("archive: {}", archive.display()));
        }
        display.say(&format!("written to {}", self.artifact_dir.display()));
        Ok(())
    }

    /// The objects that users write.
    async fn dump_own(&self, hosted: &Hosted, directory: &Directory) -> anyhow::Result<()> {
        let cluster = hosted.cluster_object(&self.namespace, &self.name).await?;
        directory.object(
            Some(&self.namespace),
            "hostedclusters",
            &serde_json::to_value(cluster)?,
        )?;
        let pools = hosted.pool_objects(&self.namespace, &self.name).await;
        for pool in pools.map_err(|error| refused(&error).context("failed to list NodePools"))? {
            directory.object(
                Some(&self.namespace),
                "nodepools",
                &serde_json::to_value(pool)?,
            )?;
        }
        Ok(())
    }

    async fn dump_guest(
        &self,
        hosted: &Hosted,
        directory: &Directory,
        display: &Display,
    ) -> anyhow::Result<()> {
        let mut step = display.step("the hosted cluster's own objects");
        let guest = self.connect(hosted).await?;
        let inside = directory.below("guest")?;
        let count = objects::dump(&guest, Scope::Everything, &inside, &mut step).await?;
        step.done(&format!("{count} objects"));
        Ok(())
    }

    async fn connect(&self, hosted: &Hosted) -> anyhow::Result<Client> {
        let cluster = hosted.cluster(&self.namespace, &self.name).await?;
        let reference = cluster.status.and_then(|status| status.kubeconfig);
        let reference = reference.context("the hosted cluster has no kubeconfig yet")?;
        let secret = hosted.secrets(&self.namespace).get(&reference.name).await;
        let secret =
            secret.map_err(|error| refused(&error).context("cannot read the kubeconfig"))?;
        let text = secret.data.unwrap_or_default().remove("kubeconfig");
        let text = text.context("the Secret with the kubeconfig has no kubeconfig")?;
        let text = String::from_utf8(text.0).context("the kubeconfig is not text")?;
        let kubeconfig = Kubeconfig::from_yaml(&text)
            .map_err(|_| anyhow::anyhow!("the kubeconfig of the hosted cluster cannot be read"))?;
        let config =
            kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
        let client = support::client::connect(config)?;
        // Asked first, so that a cluster that cannot be reached is said in one line.
        let nodes: kube::Api<k8s_openapi::api::core::v1::Node> = kube::Api::all(client.clone());
        nodes
            .list_metadata(&ListParams::default().limit(1))
            .await
            .map_err(|error| refused(&error).context("the hosted cluster cannot be reached"))?;
        Ok(client)
    }
}
