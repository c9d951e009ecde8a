//! `hypershift-operator recover-etcd`: repairs one failed member of a hosted cluster's etcd.
//!
//! ```text
//! status: observe ──> evaluate (pure) ──> print
//! run:    observe ──> evaluate ──> add the member if it is missing ──> delete its volume and its pod ──> wait
//! ```
//!
//! The `StatefulSet` creates pod and volume again, and the member gets its data from the others. It only acts while the
//! others have a quorum; a cluster without one needs a snapshot.

mod evaluation;
mod observe;

use std::fmt;
use std::time::Duration;

use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use kube::Api;
use kube::core::ObjectMeta;
use support::apply;
use support::error::chain;
use tokio::time::{Instant, sleep};

use crate::args::{RecoverEtcdArgs, RecoverEtcdCommand};
use crate::error::Fatal;
use crate::program::{self, Signal};
use evaluation::State;
use observe::{Control, Observed};

/// Time between two looks at a member that is being repaired.
const POLL_INTERVAL: Duration = Duration::from_secs(30);
/// How long a member may take to become healthy.
const TIMEOUT: Duration = Duration::from_mins(5);

/// The repair failed.
#[derive(Debug, thiserror::Error)]
enum Error {
    #[error("failed to list the members of etcd at {endpoint}")]
    Members {
        endpoint: String,
        source: support::etcd::Error,
    },
    #[error(transparent)]
    ForeignUrl(#[from] support::etcd::ForeignUrl),
    #[error("failed to get {object}")]
    Get { object: String, source: kube::Error },
    #[error("failed to repair etcd in namespace {namespace}: {problem}")]
    NotRecoverable { namespace: String, problem: String },
    #[error("failed to delete {object}")]
    Delete { object: String, source: kube::Error },
    #[error("failed to delete {object}: it does not belong to StatefulSet etcd")]
    Foreign { object: String },
    #[error("failed to add member {member} to etcd")]
    Add {
        member: String,
        source: support::etcd::Error,
    },
    #[error(
        "member {member} of etcd did not become healthy within {TIMEOUT:?}: check the log of pod {namespace}/{member}"
    )]
    Unhealthy { namespace: String, member: String },
}

/// The state as it is printed.
struct Printed<'a>(&'a State);

/// Runs the command.
pub(crate) fn run(args: &RecoverEtcdArgs) -> Result<(), Fatal> {
    let (RecoverEtcdCommand::Status(flags) | RecoverEtcdCommand::Run(flags)) = &args.command;
    program::run(&flags.logging, Signal::Fails, async {
        let config = support::client::config(&flags.api_server).await?;
        let client = support::client::connect(&config).map_err(Fatal::Connect)?;
        let control = Control::new(flags, client);
        let done = match args.command {
            RecoverEtcdCommand::Status(_) => status(&control).await,
            RecoverEtcdCommand::Run(_) => recover(&control).await,
        };
        done.map_err(|error| Fatal::Program(Box::new(error)))
    })
}

#[expect(clippy::print_stdout, reason = "the result of the command")]
async fn status(control: &Control) -> Result<(), Error> {
    let observed = control.observe().await?;
    println!("{}", Printed(&observed.state()));
    Ok(())
}

/// Repairs what can be repaired.
async fn recover(control: &Control) -> Result<(), Error> {
    let observed = control.observe().await?;
    let refused = |problem: &str| Error::NotRecoverable {
        namespace: control.namespace.clone(),
        problem: problem.to_owned(),
    };
    let (member, is_missing) = match observed.state() {
        State::Healthy => {
            tracing::info!("All members are healthy");
            return Ok(());
        }
        State::Broken(problem) => return Err(refused(&problem)),
        State::Failing(member) => (member, false),
        State::Missing(member) => (member, true),
    };
    evaluation::may_repair(
        &observed.rollout,
        &observed.failing,
        &observed.members,
        member,
    )
    .map_err(|problem| refused(&problem))?;
    let repair = Repair::check(control, &observed, member).await?;
    if is_missing {
        add(control, member).await?;
    }
    let previous = repair.pod.as_ref().and_then(|pod| pod.uid.clone());
    repair.delete(control, member).await?;
    wait(control, member, previous).await
}

async fn add(control: &Control, member: &str) -> Result<(), Error> {
    let added = match control.connect(&control.endpoint) {
        Ok(connection) => connection.add_member(&control.peer_url(member)).await,
        Err(error) => Err(error),
    };
    added.map_err(|source| Error::Add {
        member: member.to_owned(),
        source,
    })?;
    tracing::info!(member, "Added the member");
    Ok(())
}

/// The objects of a member, which are deleted.
struct Repair {
    pod: Option<ObjectMeta>,
    claim: Option<ObjectMeta>,
}

// === impl Repair ===

impl Repair {
    /// Reads the objects and checks whose they are, before anything is changed.
    async fn check(control: &Control, observed: &Observed, member: &str) -> Result<Self, Error> {
        let get = |object: String| move |source| Error::Get { object, source };
        let (pod_id, claim_id) = (control.pod_id(member), control.claim_id(member));
        let pod = control.api::<Pod>().get_opt(member).await;
        let pod = pod.map_err(get(pod_id.clone()))?.map(|pod| pod.metadata);
        let claims = control.api::<PersistentVolumeClaim>();
        let claim = claims.get_opt(&claim_name(member)).await;
        let claim = claim.map_err(get(claim_id.clone()))?.map(|it| it.metadata);
        if pod.as_ref().is_some_and(|pod| !observed.owns(pod)) {
            return Err(Error::Foreign { object: pod_id });
        }
        // StatefulSets give the labels of their selector to claims, and no owner.
        let has_label = |claim: &ObjectMeta| {
            let label = claim.labels.as_ref().and_then(|labels| labels.get("app"));
            label.map(String::as_str) == Some("etcd")
        };
        if claim.as_ref().is_some_and(|claim| !has_label(claim)) {
            return Err(Error::Foreign { object: claim_id });
        }
        Ok(Self { pod, claim })
    }

    /// Deletes the objects. The volume stays until the pod that uses it is gone.
    async fn delete(&self, control: &Control, member: &str) -> Result<(), Error> {
        let failed = |object: String| move |source| Error::Delete { object, source };
        let claims = control.api::<PersistentVolumeClaim>();
        let deleted = delete(&claims, self.claim.as_ref()).await;
        deleted.map_err(failed(control.claim_id(member)))?;
        let deleted = delete(&control.api::<Pod>(), self.pod.as_ref()).await;
        deleted.map_err(failed(control.pod_id(member)))?;
        tracing::info!(member, "Deleted the pod and the volume of the member");
        Ok(())
    }
}

fn claim_name(member: &str) -> String {
    format!("data-{member}")
}

/// Deletes an object, if it is still the one that was read.
async fn delete<K>(api: &Api<K>, read: Option<&ObjectMeta>) -> kube::Result<()>
where
    K: Clone + serde::de::DeserializeOwned + fmt::Debug,
{
    let Some(read) = read else {
        return Ok(());
    };
    match apply::delete(api, read).await {
        // Another client was quicker.
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
        done => done,
    }
}

/// Waits until the new pod of the member serves, and the cluster has it.
async fn wait(control: &Control, member: &str, previous: Option<String>) -> Result<(), Error> {
    let until = Instant::now() + TIMEOUT;
    loop {
        let is_new = control.pod_uid(member).await != previous;
        match control.observe().await {
            Ok(observed) if is_new && observed.is_healthy(member) => {
                tracing::info!(member, "The member is healthy");
                return Ok(());
            }
            Ok(_) => tracing::info!(member, "Waiting for the member to become healthy"),
            // The other members may elect a leader meanwhile.
            Err(error) => tracing::warn!(error = chain(&error), "Failed to observe etcd"),
        }
        if Instant::now() + POLL_INTERVAL > until {
            return Err(Error::Unhealthy {
                namespace: control.namespace.clone(),
                member: member.to_owned(),
            });
        }
        sleep(POLL_INTERVAL).await;
    }
}

impl fmt::Display for Printed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            State::Healthy => f.write_str("healthy"),
            State::Missing(member) => write!(f, "missing member: {member}"),
            State::Failing(member) => write!(f, "failing pod: {member}"),
            State::Broken(_) => f.write_str("broken: NOT RECOVERABLE"),
        }
    }
}

#[cfg(test)]
mod tests;
