//! Reports repeated failures as a condition of the HostedControlPlane.

use api::conditions::{ClusterCondition, CommonReason};
use api::hypershift::v1beta1::HostedControlPlane;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::api::ApiResource;
use serde_json::json;
use support::apply::Applier;
use support::error::chain;

use super::status::Evaluation;

/// Field manager of the condition `Degraded`; a successful reconcile replaces it.
const MANAGER: &str = "control-plane-operator-failure";
/// Consecutive failures before the condition is set, so that conflicts and short outages are not reported.
const FAILURE_THRESHOLD: u32 = 3;

/// Counts consecutive failures.
pub(super) struct Failures {
    applier: Applier,
    consecutive: u32,
}

// === impl Failures ===

impl Failures {
    pub(super) fn new(client: kube::Client) -> Self {
        Self {
            applier: Applier::new(client, MANAGER),
            consecutive: 0,
        }
    }

    /// Records a successful reconcile.
    pub(super) fn reset(&mut self) {
        self.consecutive = 0;
    }

    /// Records a failed reconcile. The status is updated on a best-effort basis.
    pub(super) async fn record(&mut self, hcp: Option<&HostedControlPlane>, error: &str) {
        self.consecutive = self.consecutive.saturating_add(1);
        let Some(hcp) = hcp.filter(|_| self.consecutive >= FAILURE_THRESHOLD) else {
            return;
        };
        if let Err(error) = self.update_status(hcp, error).await {
            tracing::debug!(error = chain(&error), "Failed to update status");
        }
    }

    async fn update_status(
        &self,
        hcp: &HostedControlPlane,
        error: &str,
    ) -> Result<(), support::apply::Error> {
        let evaluation = Evaluation {
            status: "True",
            ..Evaluation::no(
                ClusterCondition::Degraded,
                CommonReason::ReconciliationError.as_str(),
                error.to_owned(),
            )
        };
        let condition = evaluation.condition(hcp, &Time(Timestamp::now()));
        let resource = ApiResource::erase::<HostedControlPlane>(&());
        let object = json!({
            "metadata": { "name": hcp.metadata.name, "namespace": hcp.metadata.namespace },
            "status": { "conditions": [condition] },
        });
        self.applier.apply_status(&resource, object).await.map(drop)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;
    use support::testing::{Answer, Expect, Scenario};

    use super::*;

    fn control_plane() -> (HostedControlPlane, Value) {
        let text = include_str!(
            "../../../control-plane-component/tests/data/base/hosted-control-plane.yaml"
        );
        let object = serde_saphyr::from_str(text).unwrap();
        (serde_saphyr::from_str(text).unwrap(), object)
    }

    /// Check O06.
    #[tokio::test]
    async fn repeated_failures_are_reported() {
        let (hcp, object) = control_plane();
        let text = |at: &str| object.pointer(at).and_then(Value::as_str).unwrap();
        let (namespace, name) = (text("/metadata/namespace"), text("/metadata/name"));
        let group = "/apis/hypershift.openshift.io/v1beta1";
        let path = format!("{group}/namespaces/{namespace}/hostedcontrolplanes/{name}");
        let expected = json!({ "status": { "conditions": [{
            "type": "Degraded", "status": "True", "reason": "ReconciliationError",
        }] } });
        let scenario = Scenario::new([
            Expect::get(&path).answer(Answer::ok(&object)),
            Expect::patch(&format!("{path}/status"))
                .body(expected)
                .answer(Answer::ok(&object)),
        ]);
        let mut failures = Failures::new(scenario.client());
        let error = "failed to list Secrets of namespace clusters-one";
        failures.record(Some(&hcp), error).await;
        failures.record(Some(&hcp), error).await;
        failures.reset();
        for _ in 0..FAILURE_THRESHOLD {
            failures.record(Some(&hcp), error).await;
        }
        scenario.finish();
    }
}
