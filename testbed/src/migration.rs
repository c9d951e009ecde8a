//! Migrations between the two types of the group table: clusters to move, what must be equal afterwards, crashes.

pub mod crash;
pub mod object_snapshot;
pub mod raised;
pub mod timing;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use api::group::GroupTable;
use kube::config::{KubeConfigOptions, Kubeconfig};
use migration::groups::Direction;
use migration::journal::{Failure, Journal};
use migration::machine::Task;
use migration_executor::{
    Advance, Counts, Error, Executor, FaultInjector, Hooks, Options, Progress, Scope,
};
use serde_json::Value;

/// How long to wait before looking again at what was not done yet.
const MOMENT: Duration = Duration::from_millis(50);

/// Hooks without controllers: every task is done.
#[derive(Debug, Clone, Copy)]
pub struct Still;

/// How a migration ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// Everything is of the target types.
    Moved(Counts),
    /// Everything is as it was.
    RolledBack(String),
    /// Fault injection ended it.
    Aborted,
}

/// How a migration is carried out.
#[derive(Debug, Clone)]
pub struct Manner {
    /// How many writes are under way at a time.
    pub parallel: usize,
    /// Ends it.
    pub fault_injector: Option<Arc<dyn FaultInjector>>,
    /// Whether a migration that is under way is undone.
    pub undo: bool,
}

impl Default for Manner {
    fn default() -> Self {
        Self {
            parallel: 16,
            fault_injector: None,
            undo: false,
        }
    }
}

impl Hooks for Still {
    async fn perform(&self, _: Task, _: &Journal) -> Result<Progress, Failure> {
        Ok(Progress::Done)
    }
}

/// A client for an executor, as the user of a kubeconfig.
pub async fn client(kubeconfig: &Path) -> Result<kube::Client> {
    let read = Kubeconfig::read_from(kubeconfig)
        .with_context(|| format!("cannot read {}", kubeconfig.display()))?;
    let options = KubeConfigOptions::default();
    let mut config = kube::Config::from_custom_kubeconfig(read, &options)
        .await
        .with_context(|| format!("cannot use {}", kubeconfig.display()))?;
    config.default_retry = false;
    kube::Client::try_from(config).context("cannot make a client")
}

/// An executor of one namespace.
pub async fn executor(client: &kube::Client, namespace: &str, manner: &Manner) -> Result<Executor> {
    let scope = Scope {
        namespaces: vec![namespace.to_owned()],
        table: GroupTable::default(),
    };
    let options = Options {
        parallel: manner.parallel,
        patience: Duration::from_mins(1),
        fault_injector: manner.fault_injector.clone(),
        ..Options::default()
    };
    Ok(Executor::open(client.clone(), scope, &options).await?)
}

/// Begins a migration, or continues with the one under way, until it has ended; `look` checks after every step.
pub async fn migrate(
    client: &kube::Client,
    namespace: &str,
    direction: Direction,
    manner: &Manner,
    look: impl Fn(&Executor) -> Result<()>,
) -> Result<End> {
    let mut executor = executor(client, namespace, manner).await?;
    let entered = match executor.under_way() {
        Some(_) => executor.resume().await,
        None => executor.begin(direction, Value::Null, Value::Null).await,
    };
    if let Some(end) = aborted(entered)? {
        return Ok(end);
    }
    if manner.undo {
        let requested = Failure::new(
            migration::failure::Reason::Conflict,
            "requested by the test",
        );
        // Past the commit it is completed.
        match executor.fail(requested).await {
            Ok(()) | Err(Error::Failed(_)) => {}
            Err(error) => return aborted(Err(error))?.context("invariant: it is an error"),
        }
    }
    loop {
        let step = match executor.advance(&Still).await {
            Ok(step) => step,
            Err(error) => return aborted(Err(error))?.context("invariant: it is an error"),
        };
        look(&executor)?;
        match step {
            Advance::Stepped(_) => {}
            Advance::Waiting(..) => tokio::time::sleep(MOMENT).await,
            Advance::Blocked(what) => bail!("the migration is blocked: {what}"),
            Advance::Done => return Ok(End::Moved(executor.counts())),
            Advance::RolledBack(failure) => return Ok(End::RolledBack(failure.to_string())),
        }
    }
}

/// Whether fault injection ended it.
fn aborted(outcome: Result<(), Error>) -> Result<Option<End>> {
    match outcome {
        Ok(()) => Ok(None),
        Err(Error::Aborted) => Ok(Some(End::Aborted)),
        Err(error) => Err(error.into()),
    }
}
