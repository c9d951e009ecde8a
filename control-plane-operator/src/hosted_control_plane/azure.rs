//! What Azure says of a hosted cluster: whether Secrets can be encrypted with the key of the cluster, and whether the network of
//! the nodes is in one region.
//!
//! It is asked rarely, and beside the passes: a cloud that does not respond delays none.

mod kms;
mod locations;

use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use api::conditions::ClusterCondition as Type;
use api::hypershift::v1beta1::HostedControlPlane;
use api::hypershift::v1beta1::platform::PlatformType;
use api::hypershift::v1beta1::platform::azure::identity::AzureManagedIdentity;
use control_plane_component::azure::certificate;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::{Value, json};
use support::apply::Applier;
use support::azure::{AuthType, Cloud, Source};
use support::azure_resources::name_of;
use support::error::chain;
use support::shutdown::Drain;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use super::status::{Evaluation, existing_condition};
use super::status_part;
use locations::Found;

/// Field manager of this part of the status.
const MANAGER: &str = "control-plane-operator-azure";
/// The pauses: after a failure, and after a success.
const PAUSES: (Duration, Duration) = (Duration::from_secs(30), Duration::from_mins(5));

/// What is wrong with the network of the nodes, for the passes, which report it with the rest of the configuration.
#[derive(Debug, Default)]
pub(super) struct Network(Mutex<Option<String>>);

/// Asks until shutdown. What is found of the network is written to `network`.
pub(super) async fn run<F>(
    client: &kube::Client,
    network: &Network,
    hcp: F,
    mut changes: watch::Receiver<u64>,
    mut drain: Drain,
) where
    F: Fn() -> Option<HostedControlPlane>,
{
    let applier = Applier::new(client.clone(), MANAGER);
    loop {
        let asked = async {
            match hcp() {
                Some(hcp) if is_on_azure(&hcp) => {
                    sleep(check(&applier, network, &hcp).await).await;
                }
                Some(_) => sleep(PAUSES.1).await,
                None => {
                    if let Ok(Err(_)) = timeout(PAUSES.0, changes.changed()).await {
                        // The cache is gone.
                        sleep(PAUSES.0).await;
                    }
                }
            }
        };
        tokio::select! {
            () = asked => {}
            () = drain.begun() => return,
        }
    }
}

fn is_on_azure(hcp: &HostedControlPlane) -> bool {
    hcp.spec.platform.type_ == PlatformType::Azure
}

/// Asks once. Returns the pause before the next time.
async fn check(applier: &Applier, network: &Network, hcp: &HostedControlPlane) -> Duration {
    let located = locations::ask(hcp).await;
    let found = kms::ask(hcp).await;
    let is_good = found.is_good() && matches!(located, Found::NotAsked | Found::Same);
    network.record(located);
    if let Some(desired) = status(hcp, found.evaluation(), &Time(Timestamp::now()))
        && let Err(error) = status_part::write(applier, hcp, desired).await
    {
        let problem = chain(&error);
        tracing::warn!(problem, "Failed to write what Azure says to the status");
        return PAUSES.0;
    }
    if is_good { PAUSES.1 } else { PAUSES.0 }
}

/// The part of the status to apply, if it differs from what is there. Pure.
fn status(hcp: &HostedControlPlane, evaluation: Evaluation, now: &Time) -> Option<Value> {
    let condition = evaluation.condition(hcp, now);
    let before = existing_condition(hcp, Type::ValidAzureKmsConfig);
    (before != Some(&condition)).then(|| json!({ "conditions": [condition] }))
}

/// Tokens for a scope, of a managed identity whose certificate is in a directory. The error says why it cannot be used.
fn source(
    directory: &str,
    identity: &AzureManagedIdentity,
    scope: &str,
    cloud: Cloud,
) -> Result<Source, String> {
    let path = certificate(identity).map_err(|error| error.to_string())?;
    let file = Path::new(directory).join(name_of(&path));
    // Without content, the identity would be that of the machine.
    let content = std::fs::read(&file)
        .map_err(|error| format!("failed to read {}: {error}", file.display()))?;
    if content.trim_ascii().is_empty() {
        return Err(format!("{} is empty", file.display()));
    }
    let authority = cloud.endpoints().authority;
    let variable = |name: &str| (name == "AZURE_AUTHORITY_HOST").then(|| authority.to_owned());
    let type_ = AuthType::ManagedIdentity;
    let source = support::azure::source(Some(&file), type_, scope, &variable);
    source.map_err(|error| error.to_string())
}

// === impl Network ===

impl Network {
    /// What is wrong with it, if anything is known to be.
    pub(super) fn problem(&self) -> Option<String> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Of an outage nothing follows: what was known stays.
    fn record(&self, found: Found) {
        let problem = match found {
            Found::NotAsked | Found::Same => None,
            Found::Problem(problem) => Some(problem),
            Found::Unavailable(problem) => {
                tracing::warn!(problem, "Failed to read the network from Azure");
                return;
            }
        };
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = problem;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_of_the_network_outlasts_an_outage() {
        let network = Network::default();
        let problem = || Found::Problem("two regions".to_owned());
        for (found, expected) in [
            (Found::Unavailable("busy".to_owned()), None),
            (problem(), Some("two regions")),
            (Found::Unavailable("busy".to_owned()), Some("two regions")),
            (Found::Same, None),
            (problem(), Some("two regions")),
            (Found::NotAsked, None),
        ] {
            network.record(found.clone());
            assert_eq!(network.problem().as_deref(), expected, "{found:?}");
        }
    }

    fn hcp() -> HostedControlPlane {
        let text = include_str!(
            "../../../control-plane-component/tests/data/base/hosted-control-plane.yaml"
        );
        let mut hcp: Value = serde_saphyr::from_str(text).unwrap();
        hcp["status"] = json!({
            "ready": true,
            "initialized": true,
            "externalManagedControlPlane": true,
        });
        serde_json::from_value(hcp).unwrap()
    }

    #[test]
    fn a_condition_is_written_when_it_changes() {
        let mut hcp = hcp();
        let now = Time("2030-01-31T12:00:00Z".parse().unwrap());
        let good = || Evaluation::yes(Type::ValidAzureKmsConfig);
        let written = status(&hcp, good(), &now).unwrap();
        assert_eq!(written["conditions"][0]["type"], "ValidAzureKMSConfig");
        let conditions = serde_json::from_value(written["conditions"].clone()).unwrap();
        hcp.status.as_mut().unwrap().conditions = conditions;
        let later = Time("2030-01-31T13:00:00Z".parse().unwrap());
        assert_eq!(status(&hcp, good(), &later), None);
        let bad = Evaluation::no(Type::ValidAzureKmsConfig, "AzureError", "refused");
        let written = status(&hcp, bad, &later).unwrap();
        assert_eq!(written["conditions"][0]["status"], "False");
    }
}
