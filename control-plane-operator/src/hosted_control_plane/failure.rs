//! Reports repeated failures as a condition of the HostedControlPlane.

use api::conditions::{ClusterCondition, CommonReason};
use api::hypershift::v1beta1::HostedControlPlane;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::api::ApiResource;
use serde_json::json;
use support::apply::Applier;
use support::error::chain;

use super::status::Verdict;

/// Field manager of the one condition: a pass that succeeds takes it back, with all others.
const MANAGER: &str = "control-plane-operator-failure";
/// Failures in a row before the condition is set: conflicts and short outages are not reported.
const PATIENCE: u32 = 3;

/// Passes that have failed in a row.
pub(super) struct Failures {
    applier: Applier,
    in_a_row: u32,
}

// === impl Failures ===

impl Failures {
    pub(super) fn new(client: kube::Client) -> Self {
        Self {
            applier: Applier::new(client, MANAGER),
            in_a_row: 0,
        }
    }

    /// A pass has succeeded.
    pub(super) fn over(&mut self) {
        self.in_a_row = 0;
    }

    /// A pass has failed. The status is updated at best effort.
    pub(super) async fn add(&mut self, hcp: Option<&HostedControlPlane>, error: &str) {
        self.in_a_row = self.in_a_row.saturating_add(1);
        let Some(hcp) = hcp.filter(|_| self.in_a_row >= PATIENCE) else {
            return;
        };
        if let Err(error) = self.tell(hcp, error).await {
            tracing::debug!(error = chain(&error), "Failed to update status");
        }
    }

    async fn tell(
        &self,
        hcp: &HostedControlPlane,
        error: &str,
    ) -> Result<(), support::apply::Error> {
        let verdict = Verdict {
            status: "True",
            ..Verdict::no(
                ClusterCondition::Degraded,
                CommonReason::ReconciliationError.as_str(),
                error.to_owned(),
            )
        };
        let condition = verdict.condition(hcp, &Time(Timestamp::now()));
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
        let told = json!({ "status": { "conditions": [{
            "type": "Degraded", "status": "True", "reason": "ReconciliationError",
        }] } });
        let scenario = Scenario::new([
            Expect::get(&path).answer(Answer::ok(&object)),
            Expect::patch(&format!("{path}/status"))
                .body(told)
                .answer(Answer::ok(&object)),
        ]);
        let mut failures = Failures::new(scenario.client());
        let error = "failed to list Secrets of namespace clusters-one";
        failures.add(Some(&hcp), error).await;
        failures.add(Some(&hcp), error).await;
        failures.over();
        for _ in 0..PATIENCE {
            failures.add(Some(&hcp), error).await;
        }
        scenario.finish();
    }
}
