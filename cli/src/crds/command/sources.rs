//! Where `crds derive` reads from: its arguments, and the reading.

use std::path::PathBuf;

use anyhow::Context;
use api::group::GroupTable;
use clap::{ArgGroup, Args};

use crate::{
    Usage,
    crds::{
        Batch,
        source::{
            self, SourceError,
            cluster::Access,
            module::Module,
            url::{PlainHttp, Url},
        },
    },
    progress::Progress,
};

/// Sources; at least one must be named.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("source").required(true).multiple(true)
    .args(["from_embedded", "from_module", "from_file", "from_url", "from_cluster"]))]
pub struct Sources {
    /// The CRDs that this binary carries: Cluster API's core, kubeadm and Dev providers, AWS, GCP, KubeVirt, Azure,
    /// OpenStack, and IBM Cloud with Power Virtual Servers, at the versions that this release is tested with, without
    /// descriptions
    #[arg(long)]
    from_embedded: bool,

    /// Go module with CRDs in config/crd directories; without a version, the one that this release is tested with.
    /// Needs the go command
    #[arg(long, value_name = "MODULE[@VERSION]")]
    from_module: Vec<Module>,

    /// File or directory with CRDs, or - for standard input
    #[arg(long, value_name = "FILE|DIR|-")]
    from_file: Vec<PathBuf>,

    /// URL of a manifest; plain HTTP to this machine only
    #[arg(long, value_name = "URL")]
    from_url: Vec<String>,

    /// The CRDs of a cluster
    #[arg(long)]
    from_cluster: bool,

    /// Kubeconfig file of --from-cluster
    #[arg(long, value_name = "FILE", requires = "from_cluster")]
    kubeconfig: Option<PathBuf>,

    /// Context of --from-cluster
    #[arg(long, value_name = "NAME", requires = "from_cluster")]
    context: Option<String>,

    /// Allow plain HTTP to other machines
    #[arg(long, requires = "from_url")]
    allow_http: bool,
}

// === impl Sources ===

impl Sources {
    /// Reads all of them, in the order of the binary's own, modules, files, URLs, cluster.
    pub(super) fn read(
        &self,
        table: &GroupTable,
        progress: Progress,
    ) -> anyhow::Result<Vec<Batch>> {
        let urls = self.urls()?;
        let mut batches = Vec::new();
        if self.from_embedded {
            batches.push(source::embedded::read().map_err(SourceError::from)?);
        }
        for module in &self.from_module {
            progress.say(&format!("reading Go module {module}"));
            batches.push(source::module::read(module)?);
        }
        for path in &self.from_file {
            batches.push(source::file::read(path)?);
        }
        if !urls.is_empty() || self.from_cluster {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .context("cannot start the asynchronous runtime")?;
            batches.extend(runtime.block_on(self.read_remote(&urls, table, progress))?);
        }
        Ok(batches)
    }

    async fn read_remote(
        &self,
        urls: &[Url],
        table: &GroupTable,
        progress: Progress,
    ) -> Result<Vec<Batch>, SourceError> {
        let mut batches = Vec::new();
        for url in urls {
            progress.say(&format!("fetching {url}"));
            batches.push(source::url::read(url, self.plain_http()).await?);
        }
        if self.from_cluster {
            progress.say("reading the cluster's CRDs");
            let access = Access {
                kubeconfig: self.kubeconfig.clone(),
                context: self.context.clone(),
            };
            batches.push(source::cluster::read(&access, table).await?);
        }
        Ok(batches)
    }

    /// Parsed here and not by the parser of arguments, which repeats what it refuses, passwords included.
    fn urls(&self) -> Result<Vec<Url>, Usage> {
        let parse = |text: &String| {
            let url: Url = text.parse().map_err(|error| Usage::new(&error))?;
            url.check(self.plain_http())
                .map_err(|error| Usage::new(&error))?;
            Ok(url)
        };
        self.from_url.iter().map(parse).collect()
    }

    fn plain_http(&self) -> PlainHttp {
        if self.allow_http {
            return PlainHttp::Anywhere;
        }
        PlainHttp::Loopback
    }
}
