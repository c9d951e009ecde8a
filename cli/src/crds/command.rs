//! `hypershift crds ...`: arguments, and what is done with them.

mod sources;

use std::{
    fs,
    io::{self, Write},
    path::PathBuf,
};

use anyhow::Context;
use api::group::{GroupPair, GroupTable};
use clap::{Args, Subcommand};

use super::{
    ContractLabel, Conversion, Derivation, Derived, Descriptions, SkipReason, Versions,
    output::{self, Format},
};
use crate::{Usage, progress::Progress};
pub use sources::Sources;

const EXAMPLES: &str = include_str!("command/examples.txt");

/// What can be done with CRDs.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Derive private CRDs from standard Cluster API CRDs
    Derive(Box<Derive>),
}

/// Arguments of `hypershift crds derive`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Derive {
    #[command(flatten)]
    sources: Sources,
    #[command(flatten)]
    rules: Rules,
    #[command(flatten)]
    target: Target,
}

/// How CRDs are derived.
#[derive(Debug, Args)]
struct Rules {
    /// Pair one more standard group with a private one
    #[arg(long, value_name = "STANDARD=PRIVATE")]
    group_pair: Vec<GroupPair>,

    /// Versions to keep; needed when a CRD serves several and there is no conversion webhook
    #[arg(long, value_enum)]
    versions: Option<Versions>,

    /// Conversion between versions: none, or webhook=NAMESPACE/SERVICE[:PORT]
    #[arg(long, value_name = "CONVERSION", default_value_t = Conversion::None)]
    conversion: Conversion,

    /// PEM certificates of the authority of the conversion webhook
    #[arg(long, value_name = "FILE")]
    conversion_ca: Option<PathBuf>,

    /// Contract label for CRDs that need one and have none
    #[arg(long, value_name = "KEY=VERSION[_VERSION...]")]
    contract_label: Vec<ContractLabel>,

    /// Remove the descriptions from schemas
    #[arg(long)]
    strip_descriptions: bool,
}

/// What becomes of the outcome.
#[derive(Debug, Args)]
struct Target {
    /// Output format
    #[arg(long, value_enum, default_value_t = Format::Yaml)]
    format: Format,

    /// Write one file per CRD to this directory instead of all to standard output
    #[arg(long, value_name = "DIR")]
    output: Option<PathBuf>,

    /// Suppress progress output
    #[arg(long, short)]
    quiet: bool,
}

/// Runs a command on CRDs.
pub fn run(command: Command) -> anyhow::Result<()> {
    match command {
        Command::Derive(derive) => derive.run(),
    }
}

// === impl Derive ===

impl Derive {
    fn run(&self) -> anyhow::Result<()> {
        let progress = Progress::new(self.target.quiet);
        let derivation = self.rules.derivation()?;
        let batches = self.sources.read(&derivation.table, progress)?;
        let derived = derivation.run(batches)?;
        report(&derived, progress);
        self.target.write(&derived, progress)
    }
}

// === impl Rules ===

impl Rules {
    fn derivation(&self) -> anyhow::Result<Derivation> {
        let mut table = GroupTable::default();
        for pair in &self.group_pair {
            table = table
                .with(pair.clone())
                .map_err(|error| Usage::new(&error))?;
        }
        Ok(Derivation {
            table,
            versions: self.versions,
            conversion: self.conversion()?,
            descriptions: self.descriptions(),
            contract_labels: self.contract_label.clone(),
        })
    }

    fn conversion(&self) -> anyhow::Result<Conversion> {
        let Some(path) = &self.conversion_ca else {
            return Ok(self.conversion.clone());
        };
        let Conversion::Webhook(webhook) = self.conversion.clone() else {
            let message = "--conversion-ca needs --conversion webhook=NAMESPACE/SERVICE";
            return Err(Usage::new(&message).into());
        };
        let pem = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
        let webhook = webhook
            .with_ca(&pem)
            .with_context(|| format!("cannot use {}", path.display()))?;
        Ok(Conversion::Webhook(webhook))
    }

    fn descriptions(&self) -> Descriptions {
        if self.strip_descriptions {
            return Descriptions::Strip;
        }
        Descriptions::Keep
    }
}

// === impl Target ===

impl Target {
    fn write(&self, derived: &Derived, progress: Progress) -> anyhow::Result<()> {
        if let Some(directory) = &self.output {
            let files = output::files(directory, &derived.crds, self.format)?;
            progress.say(&format!(
                "wrote {} files to {}",
                files.len(),
                directory.display()
            ));
            return Ok(());
        }
        let text = output::stream(&derived.crds, self.format)?;
        match io::stdout().write_all(text.as_bytes()) {
            // The reader has seen enough, as `head` does.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            result => result.context("cannot write to standard output"),
        }
    }
}

fn report(derived: &Derived, progress: Progress) {
    let mut others = 0;
    for warning in &derived.warnings {
        progress.say(&format!("warning: {warning}"));
    }
    for skipped in &derived.skipped {
        match &skipped.reason {
            SkipReason::NotACrd => others += 1,
            SkipReason::UnpairedGroup(_) => progress.say(&format!("left out: {skipped}")),
        }
    }
    if others > 0 {
        progress.say(&format!("left out: {others} objects that are not CRDs"));
    }
    progress.say(&format!("derived {} private CRDs", derived.crds.len()));
}

#[cfg(test)]
mod tests;
