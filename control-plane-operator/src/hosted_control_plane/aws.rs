//! What AWS says of a hosted cluster, in the roles of the cluster: whether it accepts the cluster's tokens, whether Secrets can
//! be encrypted with the cluster's key, and the security group of the cluster's nodes.
//!
//! ```text
//!  hosted cluster ──token──> STS ──credentials──> EC2: identity, security group
//!                 ──token──> STS ──credentials──> KMS
//!                                    │
//!                                    └─> conditions, and the ID of the group (pure) ──> status
//! ```
//!
//! It is asked rarely, and beside the passes: a cloud that does not respond delays none.

pub(crate) mod access;
mod identity;
mod kms;
mod security_group;

use std::time::Duration;

use api::conditions::ClusterCondition as Type;
use api::hypershift::v1beta1::HostedControlPlane;
use api::hypershift::v1beta1::platform::PlatformType;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use serde_json::{Value, json};
use support::apply::Applier;
use support::error::chain;
use support::shutdown::Drain;
use tokio::sync::watch;
use tokio::time::timeout;

use super::deletion;
use super::status::{Evaluation, existing_condition};
use super::status_part;
use access::Access;

/// Field manager of these parts of the status.
const MANAGER: &str = "control-plane-operator-aws";
/// The pauses: after a failure, and after a success.
const PAUSES: (Duration, Duration) = (Duration::from_secs(30), Duration::from_mins(5));

/// Asks until shutdown.
pub(super) async fn run<F>(
    client: &kube::Client,
    namespace: &str,
    creates_security_group: bool,
    hcp: F,
    mut changes: watch::Receiver<u64>,
    mut drain: Drain,
) where
    F: Fn() -> Option<HostedControlPlane>,
{
    let mut checks = Checks {
        access: Access::new(client.clone(), namespace),
        applier: Applier::new(client.clone(), MANAGER),
        creates_security_group,
    };
    loop {
        let asked = async {
            let pause = match hcp().filter(is_on_aws) {
                Some(hcp) => checks.check(&hcp).await,
                None => PAUSES.0,
            };
            rest(pause, &hcp, &mut changes).await;
        };
        tokio::select! {
            () = asked => {}
            () = drain.begun() => return,
        }
    }
}

/// Waits; a deletion and an API server that is available now do not wait for the next time.
async fn rest<F>(pause: Duration, hcp: &F, changes: &mut watch::Receiver<u64>)
where
    F: Fn() -> Option<HostedControlPlane>,
{
    let state = || {
        hcp().map(|it| {
            let is_deleting = it.metadata.deletion_timestamp.is_some();
            (is_deleting, is_api_server_available(&it))
        })
    };
    let before = state();
    let other_state = async {
        // It fails only when the cache is gone.
        while changes.changed().await.is_ok() && state() == before {}
    };
    // In most cases, the pause passes without such a change.
    let _ = timeout(pause, other_state).await;
}

fn is_on_aws(hcp: &HostedControlPlane) -> bool {
    let platform = &hcp.spec.platform;
    platform.type_ == PlatformType::Aws && platform.aws.is_some()
}

/// Whether the API server issues tokens.
fn is_api_server_available(hcp: &HostedControlPlane) -> bool {
    let about = existing_condition(hcp, Type::KubeApiServerAvailable);
    about.is_some_and(|it| it.status == "True")
}

/// What became of the security group.
type GroupResult = Result<security_group::Outcome, security_group::Failed>;

/// What is asked, and how the results are written.
struct Checks {
    access: Access,
    applier: Applier,
    /// Whether node pools wait for the security group.
    creates_security_group: bool,
}

// === impl Checks ===

impl Checks {
    /// Asks once. Returns when to ask again.
    async fn check(&mut self, hcp: &HostedControlPlane) -> Duration {
        let (identity, key, group) = if is_api_server_available(hcp) {
            self.ask(hcp).await
        } else {
            (identity::Found::NotYet, kms::Found::NotYet, None)
        };
        let is_good =
            identity.is_good() && key.is_good() && group.as_ref().is_none_or(Result::is_ok);
        let mut evaluations = vec![identity.evaluation()];
        evaluations.extend(key.evaluation());
        evaluations.extend(group.as_ref().map(security_group::evaluation));
        let id = group.and_then(Result::ok).and_then(|it| it.id);
        let desired = status(hcp, evaluations, id, &Time(Timestamp::now()));
        if let Some(desired) = desired
            && let Err(error) = status_part::write(&self.applier, hcp, desired).await
        {
            let problem = chain(&error);
            tracing::warn!(problem, "Failed to write what AWS says to the status");
            return PAUSES.0;
        }
        // A group that other resources use now can be deleted soon.
        let is_deleting = hcp.metadata.deletion_timestamp.is_some();
        if is_good && !is_deleting {
            PAUSES.1
        } else {
            PAUSES.0
        }
    }

    async fn ask(
        &mut self,
        hcp: &HostedControlPlane,
    ) -> (identity::Found, kms::Found, Option<GroupResult>) {
        let identity = identity::ask(hcp, &mut self.access).await;
        let key = kms::ask(hcp, &mut self.access).await;
        let group = match &identity {
            identity::Found::Works(ec2) => {
                let creates = self.creates_security_group;
                security_group::ensure(hcp, ec2, self.applier.client(), creates).await
            }
            _ => None,
        };
        (identity, key, group)
    }
}

/// The conditions of which this is the only writer. Those that were not evaluated now stay as they are.
const CONDITIONS: [Type; 4] = [
    Type::ValidAwsIdentityProvider,
    Type::ValidAwsKmsConfig,
    Type::AwsDefaultSecurityGroupCreated,
    Type::AwsDefaultSecurityGroupDeleted,
];

/// The parts of the status to apply, if they differ from what is there. The ID of the group stays until it is deleted. Pure.
fn status(
    hcp: &HostedControlPlane,
    evaluations: Vec<Evaluation>,
    group: Option<String>,
    now: &Time,
) -> Option<Value> {
    let known = hcp.status.iter().flat_map(|it| &it.conditions);
    let known: Vec<_> = known
        .filter(|it| CONDITIONS.iter().any(|about| about.as_str() == it.type_))
        .cloned()
        .collect();
    let evaluated = evaluations.into_iter().map(|it| it.condition(hcp, now));
    let mut conditions: Vec<Condition> = evaluated.collect();
    let kept = known
        .iter()
        .filter(|it| conditions.iter().all(|new| new.type_ != it.type_));
    let kept: Vec<_> = kept.cloned().collect();
    conditions.extend(kept);
    conditions.sort_by(|a, b| a.type_.cmp(&b.type_));
    let mut sorted = known;
    sorted.sort_by(|a, b| a.type_.cmp(&b.type_));
    let before = deletion::security_group(hcp);
    let group = group.or_else(|| before.map(str::to_owned));
    if sorted == conditions && group.as_deref() == before {
        return None;
    }
    let mut status = json!({ "conditions": conditions });
    if let Some(group) = group {
        status["platform"] = json!({ "aws": { "defaultWorkerSecurityGroupID": group } });
    }
    Some(status)
}

#[cfg(test)]
mod tests;
