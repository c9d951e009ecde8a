//! The command line of `hypershift doctor`.

use std::io::{self, Write};
use std::path::PathBuf;

use anyhow::Context;
use api::group::GroupTable;
use clap::{Args, ValueEnum};

use super::report::Detail;
use super::{Report, examine, observe};
use crate::crds::source::cluster::Access;

/// What `hypershift doctor` takes.
#[derive(Debug, Args)]
#[command(
    after_help = "Exit status: 0 no errors were found, 1 the cluster cannot be examined, 2 errors were found, 64 invalid \
                        usage.\n\nThe command changes nothing in the cluster."
)]
pub struct Doctor {
    /// Kubeconfig file [default: $KUBECONFIG, ~/.kube/config, or the pod's service account]
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,

    /// Context of the kubeconfig [default: the current context]
    #[arg(long, value_name = "NAME")]
    context: Option<String>,

    /// Namespace of the operators
    #[arg(long, value_name = "NAMESPACE", default_value = "hypershift")]
    namespace: String,

    /// Output format
    #[arg(long, short, value_enum, default_value_t = Format::Text)]
    output: Format,

    /// List all CRDs, hosted clusters and operators, and not only those that a finding is about
    #[arg(long, short)]
    verbose: bool,
}

/// The form of the report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Human-readable text
    Text,
    /// One JSON document, with all objects
    Json,
}

/// Errors were found; they are in the report.
#[derive(Debug, thiserror::Error)]
#[error("errors were found: see the report")]
pub struct Unwell;

/// Looks at a cluster and examines what is found; nothing is changed.
pub async fn diagnose(
    access: &Access,
    namespace: &str,
    table: &GroupTable,
) -> anyhow::Result<Report> {
    let observation = observe::observe(access, namespace, table).await?;
    Ok(examine(&observation, table))
}

// === impl Doctor ===

impl Doctor {
    /// Examines the cluster and prints the report.
    pub fn run(&self) -> anyhow::Result<()> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .context("cannot start the asynchronous runtime")?;
        let table = GroupTable::default();
        let access = Access {
            kubeconfig: self.kubeconfig.clone(),
            context: self.context.clone(),
        };
        let report = runtime.block_on(diagnose(&access, &self.namespace, &table))?;
        self.print(&report)?;
        if report.has_errors() {
            return Err(Unwell.into());
        }
        Ok(())
    }

    fn detail(&self) -> Detail {
        if self.verbose {
            return Detail::All;
        }
        Detail::Findings
    }

    fn print(&self, report: &Report) -> anyhow::Result<()> {
        let text = match self.output {
            Format::Text => report.text(self.detail()).to_string(),
            Format::Json => serde_json::to_string_pretty(report).context("cannot write JSON")?,
        };
        match writeln!(io::stdout(), "{text}") {
            // The reader has seen enough, as `head` does.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            result => result.context("cannot write to standard output"),
        }
    }
}
