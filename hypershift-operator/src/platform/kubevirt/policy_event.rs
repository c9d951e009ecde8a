//! The Event on an infrastructure cluster about its NetworkPolicy: administrators of that cluster see no HostedCluster.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::api::{GetParams, PostParams};
use serde_json::{Value, json};
use support::error::chain;
use support::reconcile::is_missing;

use super::client::{InfraCluster, LONGEST_BODY};

/// What the names of these Events begin with.
const PREFIX: &str = "virt-launcher-netpol-rbac-";
/// The longest message of an Event.
const LONGEST: usize = 1_000;

/// A problem with the policy.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Warning<'a> {
    pub(crate) infra_id: &'a str,
    /// The name of the policy.
    pub(crate) policy: &'a str,
    pub(crate) reason: &'a str,
    pub(crate) message: &'a str,
}

/// Writes the Event, unless the same is there: it is there as long as Events are kept. A failure is logged, because the
/// HostedCluster has a condition with the same information.
pub(crate) async fn write(infra: &InfraCluster, warning: Warning<'_>) {
    let name = warning.name();
    if let Err(error) = written(infra, warning, &name).await {
        let (namespace, error) = (infra.namespace(), chain(&error));
        tracing::debug!(
            namespace,
            name,
            error,
            "Failed to write Event on infrastructure cluster"
        );
    }
}

async fn written(infra: &InfraCluster, warning: Warning<'_>, name: &str) -> kube::Result<()> {
    let params = PostParams::default();
    let get = requests(infra).get(name, &GetParams::default());
    let request = match infra.send::<Value>(get, LONGEST_BODY).await {
        Ok(live) if warning.is_in(&live) => return Ok(()),
        Ok(live) => {
            let event = warning.event(infra.namespace(), Timestamp::now(), &live);
            requests(infra).replace(name, &params, event.to_string().into_bytes())
        }
        Err(error) if is_missing(&error) => {
            let event = warning.event(infra.namespace(), Timestamp::now(), &Value::Null);
            requests(infra).create(&params, event.to_string().into_bytes())
        }
        Err(error) => return Err(error),
    };
    infra.send::<Value>(request, LONGEST_BODY).await.map(drop)
}

fn requests(infra: &InfraCluster) -> kube::core::Request {
    let namespace = infra.namespace();
    kube::core::Request::new(format!("/api/v1/namespaces/{namespace}/events"))
}

// === impl Warning ===

impl Warning<'_> {
    fn name(&self) -> String {
        format!("{PREFIX}{}", self.infra_id)
    }

    fn message(&self) -> String {
        self.message.chars().take(LONGEST).collect()
    }

    /// Whether this Event says the same.
    fn is_in(&self, live: &Value) -> bool {
        live["reason"] == self.reason && live["message"] == self.message().as_str()
    }

    /// The Event, in place of this one.
    fn event(&self, namespace: &str, now: Timestamp, live: &Value) -> Value {
        let time = json!(Time(now));
        let mut event = json!({
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": { "name": self.name(), "namespace": namespace },
            "involvedObject": {
                "apiVersion": "networking.k8s.io/v1",
                "kind": "NetworkPolicy",
                "namespace": namespace,
                "name": self.policy,
            },
            "type": "Warning",
            "reason": self.reason,
            "message": self.message(),
            "source": { "component": "hypershift-operator" },
            "firstTimestamp": time,
            "lastTimestamp": time,
            "count": 1 + live["count"].as_u64().unwrap_or_default(),
        });
        if live.is_object() {
            event["firstTimestamp"] = live["firstTimestamp"].clone();
            event["metadata"]["resourceVersion"] = live["metadata"]["resourceVersion"].clone();
        }
        event
    }
}

#[cfg(test)]
mod tests {
    use support::testing::{Answer, Expect, Scenario};

    use super::*;

    const EVENTS: &str = "/api/v1/namespaces/machines/events";

    #[tokio::test]
    async fn an_event_is_written_once_for_a_problem() {
        let path = format!("{EVENTS}/virt-launcher-netpol-rbac-one-x7k2p");
        let live = |reason: &str| {
            Answer::ok(&json!({
                "metadata": { "resourceVersion": "7" },
                "reason": reason, "message": "it responds with status 403",
                "firstTimestamp": "2030-01-31T11:00:00Z", "count": 2,
            }))
        };
        let reason = "InfraClusterNetworkReadFailed";
        let policy = json!({ "kind": "NetworkPolicy", "name": "virt-launcher-one-x7k2p" });
        let new =
            json!({ "reason": reason, "type": "Warning", "involvedObject": policy, "count": 1 });
        let again = json!({
            "metadata": { "resourceVersion": "7" },
            "reason": reason, "firstTimestamp": "2030-01-31T11:00:00Z", "count": 3,
        });
        let done = || Answer::ok(&json!({}));
        for calls in [
            vec![
                Expect::get(&path).answer(Answer::error(404, "NotFound")),
                Expect::post(EVENTS).body(new).answer(done()),
            ],
            vec![
                Expect::get(&path).answer(live("InfraClusterNetworkPolicyCreateFailed")),
                Expect::put(&path).body(again).answer(done()),
            ],
            vec![Expect::get(&path).answer(live(reason))],
            vec![Expect::get(&path).answer(Answer::error(403, "Forbidden"))],
        ] {
            let scenario = Scenario::new(calls);
            let infra = InfraCluster::local(scenario.client(), "machines");
            let warning = Warning {
                infra_id: "one-x7k2p",
                policy: "virt-launcher-one-x7k2p",
                reason,
                message: "it responds with status 403",
            };
            write(&infra, warning).await;
            scenario.finish();
        }
    }
}
