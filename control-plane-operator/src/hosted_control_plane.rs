//! Reconciles the hosted control plane of a namespace.
//!
//! ```text
//!  cache ──> dereference ──> plan: infrastructure, certificates, components (pure) ──> apply ──> status
//!    ^          (release)                                                                │
//!    └────────────────────────── watches on all that is owned <──────────────────────────┘
//! ```
//!
//! A pass reads from watches, and writes only what differs. Its writes trigger the next pass, until nothing differs.

pub(crate) mod aws;
mod azure;
mod break_glass;
mod cache;
mod catalogs;
mod deletion;
mod error;
mod failure;
mod history;
mod machines;
mod pass;
mod release;
mod retired;
mod secrets;
mod settled;
mod status;
mod status_part;
pub(crate) mod tokens;

use std::time::Duration;

use control_plane_component::Component;
use control_plane_component::settings::Settings as ComponentSettings;
use control_plane_component::write::ObjectWriter;
use futures::future::join5;
use futures::{Stream, StreamExt as _, stream};
use k8s_openapi::api::core::v1::ObjectReference;
use kube::Resource as _;
use kube::runtime::events::Recorder;
use support::controller::{
    Action, DEADLINE, Failure, Manager, ObjectKey, Reconciler, Settings, record_generation,
};
use support::health::Check;
use support::shutdown::Drain;
use tokio::sync::{Mutex, watch};

use crate::openid::Discovery;
use crate::{private_link, tool};
use cache::Cache;
#[cfg(test)]
pub(crate) use cache::kinds;
use error::Error;
use failure::Failures;
pub(crate) use pass::is_paused;
use release::Reader;
use settled::Settled;

/// Field manager of all objects of the control plane.
const MANAGER: &str = "control-plane-operator";
/// Resync periods: until the control plane is available, and afterwards.
const RESYNC: (Duration, Duration) = (Duration::from_secs(15), Duration::from_mins(1));
/// How HostedControlPlanes are reconciled.
const SETTINGS: Settings = Settings {
    controller: "hostedcontrolplane",
    kind: "HostedControlPlane",
    concurrency: 1,
    debounce: Duration::from_millis(50),
    deadline: DEADLINE,
};

/// Dependencies of a leader election term.
pub(crate) struct Operator {
    pub(crate) settings: ComponentSettings,
    pub(crate) namespace: String,
    pub(crate) operate_on: String,
    pub(crate) client: kube::Client,
    pub(crate) releases: payload::Releases,
    /// Whether node pools on AWS wait for the security group that it creates.
    pub(crate) creates_security_group: bool,
    /// All declared components.
    pub(crate) components: &'static [Component],
}

/// Reconciles the one HostedControlPlane of the namespace.
struct Controller<'a> {
    cache: &'a Cache,
    pass: Mutex<pass::Pass<'a>>,
    failures: Mutex<Failures>,
    recorder: Recorder,
}

/// Reconciles until shutdown; a running pass is completed.
pub(crate) async fn run(operator: Operator, manager: &Manager, check: &Check, drain: Drain) {
    let cache = Cache::new(
        &operator.client,
        &operator.namespace,
        &operator.settings,
        operator.components,
    );
    let discovery = Discovery::default();
    let network = azure::Network::default();
    let controller = Controller {
        cache: &cache,
        pass: Mutex::new(pass::Pass {
            writer: ObjectWriter::new(operator.client.clone(), MANAGER, &operator.namespace),
            reader: Reader::new(operator.releases.clone()),
            operator: &operator,
            cache: &cache,
            discovery: &discovery,
            network: &network,
            settled: Settled::default(),
            skip_reason: None,
        }),
        failures: Mutex::new(Failures::new(operator.client.clone())),
        recorder: tool::recorder(&operator.client, MANAGER),
    };
    let ready = async {
        cache.wait_until_synced().await;
        check.pass();
    };
    let requests = requests(cache.changes(), &discovery, &operator.namespace);
    let break_glass = break_glass::run(
        &operator.client,
        &operator.namespace,
        || cache.hosted_control_plane(),
        manager,
        drain.clone(),
    );
    let aws = aws::run(
        &operator.client,
        &operator.namespace,
        operator.creates_security_group,
        || cache.hosted_control_plane(),
        cache.changes(),
        drain.clone(),
    );
    let azure = azure::run(
        &operator.client,
        &network,
        || cache.hosted_control_plane(),
        cache.changes(),
        drain.clone(),
    );
    let view = private_link::View {
        hcp: || cache.hosted_control_plane(),
        objects: || cache.objects(),
        changes: cache.changes(),
        operate_on: &operator.operate_on,
    };
    let private_link = private_link::run(
        &operator.client,
        &operator.namespace,
        view,
        manager,
        drain.clone(),
    );
    let control_plane = manager.run(SETTINGS, &controller, requests, ready, drain);
    tokio::select! {
        () = cache.watch() => {}
        _ = join5(control_plane, break_glass, aws, azure, private_link) => {}
    }
}

/// One initial request, and one for each batch of changes.
fn requests<'a>(
    changes: watch::Receiver<u64>,
    discovery: &'a Discovery,
    namespace: &str,
) -> impl Stream<Item = ObjectKey> + use<'a> {
    let key = ObjectKey::new(namespace, "");
    let first = stream::iter([key.clone()]);
    let later = stream::unfold((key, changes), move |(key, mut changes)| async move {
        tokio::select! {
            // It fails only when the cache is gone.
            next = changes.changed() => next.ok()?,
            () = discovery.changed() => {}
        }
        Some((key.clone(), (key, changes)))
    });
    first.chain(later)
}

// === impl Controller ===

impl Reconciler for Controller<'_> {
    type Error = Error;

    async fn reconcile(&self, _: &ObjectKey) -> Result<Action, Error> {
        let hcp = self.cache.hosted_control_plane();
        record_generation(hcp.and_then(|hcp| hcp.metadata.generation));
        let is_available = self.pass.lock().await.run().await?;
        self.failures.lock().await.reset();
        let (until_available, once_available) = RESYNC;
        Ok(Action::requeue(if is_available {
            once_available
        } else {
            until_available
        }))
    }

    async fn failed(&self, _: &ObjectKey, failure: &Failure<Error>) {
        let hcp = self.cache.hosted_control_plane();
        let error = failure.to_string();
        self.failures
            .lock()
            .await
            .record(hcp.as_ref(), &error)
            .await;
    }

    fn events(&self, _: &ObjectKey) -> Option<(Recorder, ObjectReference)> {
        let hcp = self.cache.hosted_control_plane()?;
        Some((self.recorder.clone(), hcp.object_ref(&())))
    }
}
