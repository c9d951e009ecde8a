//! Whether the backends can convert: a manager's webhook server answers before the caches are there that it looks
//! references up in, so only a conversion shows it.

use std::sync::Arc;
use std::time::Duration;

use api::group::{GroupTable, Side};
use serde_json::{Value, json};

use super::convert::{Converter, Failure};
use super::delegate::{Backends, Reached};
use super::metrics::Metrics;
use super::route::BackendId;
use crate::readiness::Problem;

/// The pause after a failure.
const RETRY: Duration = Duration::from_millis(250);
/// What controller-runtime says as long as nothing can be looked up. Any other answer, even that the sample cannot be
/// converted, is one of a manager that is up.
const NOT_STARTED: &str = "cache is not started";

/// Whether the shim is of use.
#[derive(Debug)]
pub(super) struct Readiness {
    problem: Problem,
    metrics: Metrics,
}

/// A review that a backend answers as soon as it can convert, and the kind that is in it.
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
            problem: Problem::new("the backends have not been asked yet"),
            metrics,
        }
    }

    /// Why the shim is not ready.
    pub(super) fn problem(&self) -> Option<String> {
        self.problem.get()
    }

    /// The shim is ending.
    pub(super) fn ending(&self) {
        self.set(Some("the shim is ending".to_owned()));
    }

    /// Keeps asking, until dropped.
    pub(super) async fn keep_asking(
        &self,
        converter: Arc<Converter<Backends>>,
        interval: Duration,
    ) {
        loop {
            let problem = self.ask(&converter).await.err();
            let pause = if problem.is_some() { RETRY } else { interval };
            self.set(problem);
            tokio::time::sleep(pause.min(interval)).await;
        }
    }

    /// Every backend is reached; when one was not before, or was reconnected, those with kinds that refer to others have
    /// to convert one.
    async fn ask(&self, converter: &Converter<Backends>) -> Result<(), String> {
        let mut doubtful = self.problem().is_some();
        for id in 0..converter.routes.backends().len() {
            let reached = converter.ask.reach(BackendId(id)).await;
            doubtful |= reached.map_err(|error| error.to_string())? == Reached::Reconnected;
        }
        if doubtful {
            try_out(converter).await?;
        }
        Ok(())
    }

    fn set(&self, problem: Option<String>) {
        self.metrics.ready(problem.is_none());
        self.problem.set(problem);
    }
}

async fn try_out(converter: &Converter<Backends>) -> Result<(), String> {
    for probe in probes(converter.rules.table()) {
        if converter.routes.find(&probe.group, probe.kind).is_none() {
            continue;
        }
        let answer = converter.answer(&probe.review).await;
        match answer.map_err(|error| error.to_string())?.result {
            Err(Failure::Object(message)) if !message.contains(NOT_STARTED) => {}
            Err(failure) => return Err(failure.to_string()),
            Ok(_) => {}
        }
    }
    Ok(())
}

/// A Cluster that refers to another kind, and a control plane that does.
fn probes(table: &GroupTable) -> Vec<Probe> {
    let named = |label: &str| {
        let mut pairs = table.pairs().iter().map(|pair| pair.name(Side::Private));
        pairs.find(|name| name.starts_with(label))
    };
    // The group that all others are named after.
    let Some(core) = table.pairs().first().map(|pair| pair.name(Side::Private)) else {
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
