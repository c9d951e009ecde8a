//! Metrics of rotations; docs/metrics.md lists them. Only the leader reports the state.

use api::conditions::{ClusterCondition, EncryptionReason};
use api::hypershift::v1beta1::secret_encryption::status::{
    EncryptionMigrationState, SecretEncryptionStatus,
};
use kube::ResourceExt as _;
use kube::api::DynamicObject;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

use super::FIELD;
use super::rotation::{Change, Report};

/// States of a rotation, and the one without.
const STATES: [&str; 4] = ["ReadOnlyDeploy", "WritePromote", "Migrating", IDLE];
const IDLE: &str = "idle";

/// Metrics of rotations.
#[derive(Debug, Clone)]
pub(in super::super) struct Metrics {
    state: Family<StateLabels, Gauge>,
    duration: Family<Labels, Histogram, fn() -> Histogram>,
    failures: Family<Labels, Counter>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Labels {
    namespace: String,
    name: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct StateLabels {
    namespace: String,
    name: String,
    state: &'static str,
}

// === impl Metrics ===

impl Default for Metrics {
    fn default() -> Self {
        let histogram: fn() -> Histogram = || Histogram::new(exponential_buckets(30.0, 2.0, 10));
        Self {
            state: Family::default(),
            duration: Family::new_with_constructor(histogram),
            failures: Family::default(),
        }
    }
}

impl Metrics {
    /// Metrics without series.
    pub(in super::super) fn new(registry: &mut Registry) -> Self {
        let metrics = Self::default();
        registry.register(
            "hypershift_encryption_migration_state",
            "Whether a rotation of the encryption key has this state",
            metrics.state.clone(),
        );
        registry.register(
            "hypershift_encryption_migration_duration_seconds",
            "Duration of complete rotations of the encryption key",
            metrics.duration.clone(),
        );
        registry.register(
            "hypershift_encryption_migration_failures",
            "Rotations of the encryption key whose objects could not be rewritten",
            metrics.failures.clone(),
        );
        metrics
    }

    /// Ends a term: the next leader reports the state.
    pub(in super::super) fn clear(&self) {
        self.state.clear();
    }

    /// Reports a pass on a HostedControlPlane.
    pub(super) fn record(&self, object: &DynamicObject, change: Option<&Change>) {
        let labels = Labels {
            namespace: object.namespace().unwrap_or_default(),
            name: object.name_any(),
        };
        let known = object.data["status"][FIELD].clone();
        let known: SecretEncryptionStatus = serde_json::from_value(known).unwrap_or_default();
        let status = change.map_or(&known, |change| &change.encryption);
        self.set_state(&labels, state(status));
        let Some(Report::Is(_, reason, _)) = change.map(|change| &change.report) else {
            return;
        };
        match reason {
            EncryptionReason::Completed if known.target_key.is_some() => {
                let duration = self.duration.get_or_create(&labels);
                duration.observe(seconds(status));
            }
            EncryptionReason::Failed if !has_failed(object) => {
                self.failures.get_or_create(&labels).inc();
            }
            _ => {}
        }
    }

    fn set_state(&self, Labels { namespace, name }: &Labels, current: &str) {
        for state in STATES {
            let labels = StateLabels {
                namespace: namespace.clone(),
                name: name.clone(),
                state,
            };
            let gauge = self.state.get_or_create(&labels);
            gauge.set(i64::from(state == current));
        }
    }
}

fn state(status: &SecretEncryptionStatus) -> &'static str {
    let current = status.history.first();
    let current = current.filter(|_| status.target_key.is_some());
    match current.map(|current| current.state) {
        Some(EncryptionMigrationState::ReadOnlyDeploy) => "ReadOnlyDeploy",
        Some(EncryptionMigrationState::WritePromote) => "WritePromote",
        Some(EncryptionMigrationState::Migrating) => "Migrating",
        Some(EncryptionMigrationState::Completed | EncryptionMigrationState::Interrupted)
        | None => IDLE,
    }
}

fn seconds(status: &SecretEncryptionStatus) -> f64 {
    let times = status.history.first().and_then(|current| {
        let ended = current.completion_time.as_ref()?;
        Some(ended.0.duration_since(current.started_time.0))
    });
    times.map_or(0.0, |duration| duration.as_secs_f64())
}

/// Whether the failure was already reported.
fn has_failed(object: &DynamicObject) -> bool {
    let conditions = object.data["status"]["conditions"].as_array();
    let mut conditions = conditions.into_iter().flatten();
    conditions.any(|condition| {
        condition["type"] == ClusterCondition::EtcdDataEncryptionUpToDate.as_str()
            && condition["reason"] == EncryptionReason::Failed.as_str()
    })
}

#[cfg(test)]
mod tests {
    use api::conditions::Status;
    use prometheus_client::encoding::text::encode;
    use serde_json::{Value, json};

    use super::*;

    fn encryption(state: &str, ended: Option<&str>) -> Value {
        let key = json!({ "provider": "AWS", "aws": { "arn": "arn:a" } });
        let reference = json!({ "provider": "AWS", "fingerprint": "f" });
        json!({ "activeKey": key, "targetKey": ended.map_or(key.clone(), |_| Value::Null), "history": [{
            "state": state, "startedTime": "2030-01-01T00:00:00Z", "completionTime": ended,
            "from": reference, "to": reference,
        }] })
    }

    fn object(encryption: &Value, reason: &str) -> DynamicObject {
        let type_ = ClusterCondition::EtcdDataEncryptionUpToDate.as_str();
        serde_json::from_value(json!({
            "metadata": { "name": "a", "namespace": "ns" },
            "status": { FIELD: encryption, "conditions": [{ "type": type_, "reason": reason }] },
        }))
        .unwrap()
    }

    fn change(encryption: Value, reason: EncryptionReason) -> Change {
        Change {
            encryption: serde_json::from_value(encryption).unwrap(),
            report: Report::Is(Status::False, reason, String::new()),
        }
    }

    #[test]
    fn rotations_are_counted_once() {
        let mut registry = Registry::default();
        let metrics = Metrics::new(&mut registry);
        let text = || {
            let mut text = String::new();
            encode(&mut text, &registry).unwrap();
            text
        };
        let migrating = encryption("Migrating", None);
        let failed = change(migrating.clone(), EncryptionReason::Failed);
        metrics.record(&object(&migrating, "ReEncryptionInProgress"), Some(&failed));
        metrics.record(&object(&migrating, "ReEncryptionFailed"), Some(&failed));
        let labels = r#"namespace="ns",name="a""#;
        let name = "hypershift_encryption_migration";
        let found = text();
        for line in [
            format!("{name}_failures_total{{{labels}}} 1"),
            format!("{name}_state{{{labels},state=\"Migrating\"}} 1"),
            format!("{name}_state{{{labels},state=\"idle\"}} 0"),
        ] {
            assert!(found.contains(&line), "{line}: {found}");
        }
        let done = encryption("Completed", Some("2030-01-01T00:01:00Z"));
        let completed = change(done.clone(), EncryptionReason::Completed);
        metrics.record(&object(&migrating, "ReEncryptionFailed"), Some(&completed));
        metrics.record(&object(&done, "ReEncryptionCompleted"), None);
        let found = text();
        for line in [
            format!("{name}_duration_seconds_sum{{{labels}}} 60.0"),
            format!("{name}_duration_seconds_count{{{labels}}} 1"),
            format!("{name}_state{{{labels},state=\"Migrating\"}} 0"),
            format!("{name}_state{{{labels},state=\"idle\"}} 1"),
        ] {
            assert!(found.contains(&line), "{line}: {found}");
        }
        metrics.clear();
        assert!(!text().contains("state=\"idle\""));
    }

    #[test]
    fn metrics_of_rotations_are_documented() {
        let page = include_str!("../../../../docs/metrics.md");
        for name in ["state", "duration_seconds", "failures"] {
            let name = format!("`hypershift_encryption_migration_{name}`");
            assert!(page.contains(&name), "{name} is not in docs/metrics.md");
        }
    }
}
