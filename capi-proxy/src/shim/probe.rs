//! Readiness: whether the backends can convert. The webhook server of a manager responds before the caches are synced in
//! which it looks up references, so only a conversion shows it.

use std::sync::Arc;
use std::time::Duration;

use api::group::{CapiTypes, GroupTable};
use serde_json::{Value, json};

use super::convert::{Converter, Failure};
use super::delegate::{Backends, Reached};
use super::metrics::Metrics;
use super::route::BackendId;
use crate::readiness::Problem;

/// Interval of probes after a failure.
const RETRY_INTERVAL: Duration = Duration::from_millis(250);
/// The error of controller-runtime before caches are synced. Any other response, including that the sample cannot be
/// converted, shows that the manager is ready.
const CACHE_NOT_STARTED: &str = "cache is not started";

/// Readiness of the webhook.
#[derive(Debug)]
pub(super) struct Readiness {
    problem: Problem,
    metrics: Metrics,
}

/// A review that succeeds as soon as the backend can convert, and the kind in it.
struct Probe {
    group: String,
    kind: &'static str,
    review: Vec<u8>,
}

// === impl Readiness ===

impl Readiness {
    /// Not ready yet.
    pub(super) fn new(metrics: Metrics) -> Self {
        Self {
            problem: Problem::new("the backends have not been probed yet"),
            metrics,
        }
    }

    /// Why the webhook is not ready.
    pub(super) fn problem(&self) -> Option<String> {
        self.problem.get()
    }

    /// The webhook is shutting down.
    pub(super) fn shutting_down(&self) {
        self.set(Some("the webhook is shutting down".to_owned()));
    }

    /// Probes until dropped.
    pub(super) async fn run_probes(&self, converter: Arc<Converter<Backends>>, interval: Duration) {
        loop {
            let problem = self.probe(&converter).await.err();
            let pause = if problem.is_some() {
                RETRY_INTERVAL
            } else {
                interval
            };
            self.set(problem);
            tokio::time::sleep(pause.min(interval)).await;
        }
    }

    /// Connects to every backend. After a failure or a reconnect, backends of kinds with references must convert a sample.
    async fn probe(&self, converter: &Converter<Backends>) -> Result<(), String> {
        let mut uncertain = self.problem().is_some();
        for id in 0..converter.routes.backends().len() {
            let reached = converter.ask.reach(BackendId(id)).await;
            uncertain |= reached.map_err(|error| error.to_string())? == Reached::Reconnected;
        }
        if uncertain {
            convert_samples(converter).await?;
        }
        Ok(())
    }

    fn set(&self, problem: Option<String>) {
        self.metrics.ready(problem.is_none());
        self.problem.set(problem);
    }
}

async fn convert_samples(converter: &Converter<Backends>) -> Result<(), String> {
    for probe in probes(converter.rules.table()) {
        if converter.routes.find(&probe.group, probe.kind).is_none() {
            continue;
        }
        let response = converter.respond(&probe.review).await;
        match response.map_err(|error| error.to_string())?.result {
            Err(Failure::Object(message)) if !message.contains(CACHE_NOT_STARTED) => {}
            Err(failure) => return Err(failure.to_string()),
            Ok(_) => {}
        }
    }
    Ok(())
}

/// A Cluster and a control plane with references to another kind.
fn probes(table: &GroupTable) -> Vec<Probe> {
    let named = |label: &str| {
        let mut pairs = table
            .pairs()
            .iter()
            .map(|pair| pair.name(CapiTypes::Private));
        pairs.find(|name| name.starts_with(label))
    };
    // The core group.
    let Some(core) = table
        .pairs()
        .first()
        .map(|pair| pair.name(CapiTypes::Private))
    else {
        return Vec::new();
    };
    let reference = json!({"apiGroup": core, "kind": "Cluster", "name": "probe"});
    let mut probes = vec![Probe::new(
        core,
        "Cluster",
        &json!({"controlPlaneRef": reference}),
    )];
    if let Some(group) = named("controlplane.") {
        let machine = json!({"spec": {"infrastructureRef": reference}});
        let spec = json!({"machineTemplate": machine, "version": "v1.0.0"});
        probes.push(Probe::new(group, "KubeadmControlPlane", &spec));
    }
    probes
}

// === impl Probe ===

impl Probe {
    fn new(group: &str, kind: &'static str, spec: &Value) -> Self {
        let review = json!({
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "ConversionReview",
            "request": {
                "uid": "probe",
                "desiredAPIVersion": format!("{group}/v1beta1"),
                "objects": [{
                    "apiVersion": format!("{group}/v1beta2"),
                    "kind": kind,
                    "metadata": {"namespace": "probe", "name": "probe", "uid": "probe"},
                    "spec": spec,
                }],
            },
        });
        Self {
            group: group.to_owned(),
            kind,
            review: review.to_string().into_bytes(),
        }
    }
}
