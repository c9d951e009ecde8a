//! Runs the controllers: after changes, periodically, and with backoff after failures.

use std::time::Duration;

use futures::StreamExt as _;
use futures::future::LocalBoxFuture;
use k8s_openapi::api::core::v1::ObjectReference;
use kube::Api;
use kube::api::DynamicObject;
use kube::core::PartialObjectMeta;
use kube::runtime::events::Recorder;
use kube::runtime::watcher::Config;
use support::controller::{Action, DEADLINE, Manager, ObjectKey, Reconciler, Settings, Wake};
use support::error::chain;
use support::health::Check;
use support::shutdown::Drain;
use support::watch::watch_failed;

use super::error::Error;
use crate::watches::{self, Lenient};

/// Changes often come in bursts.
const DEBOUNCE: Duration = Duration::from_millis(200);

/// A controller: its pass, and the object of its Events.
struct Controller<'a, P> {
    pass: P,
    recorder: &'a Recorder,
    object: &'a ObjectReference,
}

/// Where Events of the controllers go.
pub(super) struct Subject {
    pub(super) recorder: Recorder,
    pub(super) object: ObjectReference,
}

/// Runs a controller while this process leads.
pub(super) async fn run_controller<F>(
    name: &'static str,
    wake: &Wake,
    manager: &Manager,
    subject: &Subject,
    drain: Drain,
    pass: impl Fn() -> F,
) where
    F: Future<Output = Result<Action, Error>>,
{
    let settings = Settings {
        controller: name,
        kind: "HostedControlPlane",
        concurrency: 1,
        debounce: DEBOUNCE,
        deadline: DEADLINE,
    };
    let controller = Controller {
        pass,
        recorder: &subject.recorder,
        object: &subject.object,
    };
    let ready = std::future::ready(());
    manager
        .run(settings, &controller, wake.requests(name), ready, drain)
        .await;
}

// === impl Controller ===

impl<P, F> Reconciler for Controller<'_, P>
where
    P: Fn() -> F,
    F: Future<Output = Result<Action, Error>>,
{
    type Error = Error;

    async fn reconcile(&self, _: &ObjectKey) -> Result<Action, Error> {
        (self.pass)().await
    }

    fn events(&self, _: &ObjectKey) -> Option<(Recorder, ObjectReference)> {
        Some((self.recorder.clone(), self.object.clone()))
    }
}

/// Triggers controllers when an object of a kind changes. Nothing of it is kept, and one that cannot be read does not fail the
/// watch of the others: users of the hosted cluster write some of them.
pub(super) fn run_watch(
    api: Api<Lenient<PartialObjectMeta<DynamicObject>>>,
    config: Config,
    wakes: Vec<Wake>,
    check: Check,
) -> LocalBoxFuture<'static, ()> {
    Box::pin(async move {
        let mut events = std::pin::pin!(watches::watch(api, config));
        while let Some(event) = events.next().await {
            match event {
                Ok(_) => {
                    check.pass();
                    wakes.iter().for_each(Wake::wake);
                }
                Err(error) if watch_failed(&error) => check.fail(chain(&error)),
                Err(error) => tracing::debug!(error = chain(&error), "Watch failed"),
            }
        }
    })
}
