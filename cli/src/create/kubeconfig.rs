//! `create kubeconfig`: what users of hosted clusters need to reach them.

mod merge;
mod port_forward;

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use api::hypershift::v1beta1::hosted_cluster::HostedCluster;
use clap::Args;
use kube::api::ListParams;
use serde_json::Value;
use tempfile::NamedTempFile;

use crate::hosted::{Hosted, refused};
use crate::install::display::{Display, print};
use crate::install::{TargetArgs, runtime};
use merge::Entry;

/// The key of the kubeconfig in its Secret.
const KEY: &str = "kubeconfig";

/// Flags of `create kubeconfig`.
#[derive(Debug, Args)]
#[command(
    after_help = include_str!("kubeconfig.txt")
)]
pub(crate) struct Kubeconfig {
    /// Namespace of the hosted clusters
    #[arg(long, value_name = "NAME", default_value = "clusters")]
    namespace: String,

    /// Name of the hosted cluster [default: all in the namespace, with one context each]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,

    /// For clusters with private access only: use `https://localhost` as the server, for kubectl port-forward; how to run it is
    /// printed to standard error
    #[arg(long)]
    port_forward: bool,

    /// Write to this file (mode 0600) instead of standard output
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,

    #[command(flatten)]
    target: TargetArgs,
}

// === impl Kubeconfig ===

impl Kubeconfig {
    /// Prints it.
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        let text = runtime()?.block_on(self.text())?;
        match &self.output {
            Some(path) => write_private(path, &text),
            None => print(&text),
        }
    }

    async fn text(&self) -> anyhow::Result<String> {
        let hosted = Hosted::connect(&self.target.access()).await?;
        if let Some(name) = &self.name {
            let cluster = hosted.cluster(&self.namespace, name).await?;
            return self.of(&hosted, &cluster).await;
        }
        let clusters = hosted
            .clusters(&self.namespace)
            .list(&ListParams::default())
            .await;
        let clusters = clusters.map_err(|error| {
            refused(&error).context(format!("cannot list HostedClusters of {}", self.namespace))
        })?;
        let mut entries = Vec::new();
        for cluster in &clusters.items {
            let name = cluster.metadata.name.clone().unwrap_or_default();
            match self.of(&hosted, cluster).await {
                Ok(text) => entries.push(Entry {
                    kubeconfig: parsed(&text, &name)?,
                    name: format!("{}-{name}", self.namespace),
                }),
                Err(why) => Display::new(false).say(&format!("left out: {why}")),
            }
        }
        if entries.is_empty() {
            bail!(
                "no hosted cluster of namespace {} has a kubeconfig",
                self.namespace
            );
        }
        Ok(serde_saphyr::to_string(&merge::merge(&entries))?)
    }

    async fn of(&self, hosted: &Hosted, cluster: &HostedCluster) -> anyhow::Result<String> {
        let name = cluster.metadata.name.as_deref().unwrap_or_default();
        let named = format!("HostedCluster {}/{name}", self.namespace);
        let reference = cluster
            .status
            .as_ref()
            .and_then(|status| status.kubeconfig.as_ref());
        let reference = reference.with_context(|| {
            format!("{named} has no kubeconfig yet: its API server is not published; wait for it")
        })?;
        let found = hosted
            .secrets(&self.namespace)
            .get_opt(&reference.name)
            .await;
        let secret = found
            .map_err(|error| {
                refused(&error).context(format!("cannot read Secret {}", reference.name))
            })?
            .with_context(|| {
                format!(
                    "{named} names Secret {}, which is not there",
                    reference.name
                )
            })?;
        let bytes = secret.data.unwrap_or_default().remove(KEY);
        let bytes = bytes.with_context(|| format!("Secret {} has no {KEY}", reference.name))?;
        let text = String::from_utf8(bytes.0)
            .with_context(|| format!("Secret {} is not text", reference.name))?;
        if !self.port_forward || !port_forward::is_private(cluster)? {
            return Ok(text);
        }
        let control_plane = api::names::control_plane_namespace(&self.namespace, name);
        let port = port_forward::port(hosted, &control_plane).await?;
        Display::new(false).say(&port_forward::hint(&named, &control_plane, port));
        let forwarded = port_forward::forwarded(parsed(&text, name)?, port);
        Ok(serde_saphyr::to_string(&forwarded)?)
    }
}

fn parsed(text: &str, cluster: &str) -> anyhow::Result<Value> {
    serde_saphyr::from_str(text)
        .map_err(|_| anyhow::anyhow!("the kubeconfig of {cluster} is not YAML"))
}

/// Writes a file with mode 0600, completely or not at all.
fn write_private(path: &Path, text: &str) -> anyhow::Result<()> {
    let directory = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    fs::create_dir_all(directory)
        .with_context(|| format!("cannot make {}", directory.display()))?;
    // Temporary files are their owner's alone.
    let written = NamedTempFile::new_in(directory).and_then(|mut file| {
        file.write_all(text.as_bytes())?;
        Ok(file.persist(path)?)
    });
    written
        .map(drop)
        .with_context(|| format!("cannot write {}", path.display()))
}
