//! When a pass runs: after a change, now and then, and again after a failure.

use std::sync::Arc;
use std::time::Duration;

use futures::{Stream, StreamExt as _, stream};
use k8s_openapi::api::core::v1::ObjectReference;
use kube::api::DynamicObject;
use kube::runtime::events::Recorder;
use kube::runtime::reflector::Store;
use kube::{Resource as _, ResourceExt as _};
use support::controller::{
    Action, DEADLINE, Manager, ObjectKey, Reconciler, Settings, record_generation,
};
use support::shutdown;
use tokio::sync::watch;

use super::control_plane;
use super::error::Error;

/// Changes seldom come alone.
const DEBOUNCE: Duration = Duration::from_millis(200);

/// Says that something has changed.
#[derive(Debug, Clone)]
pub(super) struct Wake(watch::Sender<()>);

// === impl Wake ===

impl Wake {
    pub(super) fn new() -> Self {
        Self(watch::Sender::new(()))
    }

    /// Something has changed.
    pub(super) fn wake(&self) {
        self.0.send_replace(());
    }

    /// One request at the beginning, and one for all changes since the last.
    fn requests(&self, name: &str) -> impl Stream<Item = ObjectKey> + use<> {
        let key = ObjectKey::new("", name);
        let first = stream::iter([key.clone()]);
        let changes = (key, self.0.subscribe());
        first.chain(stream::unfold(changes, |(key, mut changes)| async {
            changes.changed().await.ok()?;
            Some((key.clone(), (key, changes)))
        }))
    }
}

/// A pass, how often it runs without a change, and what it is about.
struct Controller<'a, P> {
    pass: P,
    period: Duration,
    subject: &'a Subject,
}

/// The HostedControlPlane that all passes are about, for logs and Events.
pub(super) struct Subject {
    pub(super) name: String,
    pub(super) found: Store<DynamicObject>,
    pub(super) recorder: Recorder,
}

// === impl Subject ===

impl Subject {
    fn get(&self) -> Option<Arc<DynamicObject>> {
        self.found.find(|found| found.name_any() == self.name)
    }
}

/// Runs a pass for as long as the process leads.
pub(super) async fn drive<F>(
    name: &'static str,
    manager: &Manager,
    wake: &Wake,
    period: Duration,
    subject: &Subject,
    pass: impl Fn() -> F,
) where
    F: Future<Output = Result<(), Error>>,
{
    let settings = Settings {
        controller: name,
        kind: "HostedControlPlane",
        concurrency: 1,
        debounce: DEBOUNCE,
        deadline: DEADLINE,
    };
    // It ends with the term: each write is complete by itself.
    let (_signal, drain) = shutdown::channel();
    let controller = Controller {
        pass,
        period,
        subject,
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
    F: Future<Output = Result<(), Error>>,
{
    type Error = Error;

    async fn reconcile(&self, _: &ObjectKey) -> Result<Action, Error> {
        record_generation(self.subject.get().and_then(|it| it.metadata.generation));
        (self.pass)().await?;
        Ok(Action::requeue(self.period))
    }

    fn events(&self, _: &ObjectKey) -> Option<(Recorder, ObjectReference)> {
        let object = self.subject.get()?.object_ref(&control_plane::resource());
        Some((self.subject.recorder.clone(), object))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use kube::runtime::reflector::store::Writer;
    use prometheus_client::registry::Registry;
    use support::health::Health;
    use support::testing::Scenario;
    use tokio::time::{sleep, timeout};

    use super::*;
    use crate::tool;

    const PERIOD: Duration = Duration::from_hours(1);

    /// There is no HostedControlPlane.
    fn subject(scenario: &Scenario) -> Subject {
        Subject {
            name: "a".to_owned(),
            found: Writer::new(control_plane::resource()).as_reader(),
            recorder: tool::recorder(&scenario.client(), "test"),
        }
    }

    fn manager() -> Manager {
        let mut registry = Registry::default();
        let health = Health::new(&mut registry);
        Manager::new(&mut registry, &health)
    }

    #[tokio::test(start_paused = true)]
    async fn many_changes_are_one_pass() {
        let wake = Wake::new();
        let passes = AtomicU32::new(0);
        let pass = || {
            passes.fetch_add(1, Ordering::SeqCst);
            async { Ok(()) }
        };
        let manager = manager();
        let scenario = Scenario::new([]);
        let subject = subject(&scenario);
        let driven = drive("test", &manager, &wake, PERIOD, &subject, pass);
        let changes = async {
            sleep(Duration::from_secs(1)).await;
            for _ in 0..100 {
                wake.wake();
            }
            sleep(Duration::from_secs(10)).await;
        };
        tokio::select! {
            () = driven => {}
            () = changes => {}
        }
        assert_eq!(passes.load(Ordering::SeqCst), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn a_failure_is_tried_again_soon() {
        let wake = Wake::new();
        let passes = AtomicU32::new(0);
        let pass = || {
            passes.fetch_add(1, Ordering::SeqCst);
            async { Err(Error::waiting("the test")) }
        };
        let manager = manager();
        let scenario = Scenario::new([]);
        let subject = subject(&scenario);
        let driven = drive("test", &manager, &wake, PERIOD, &subject, pass);
        assert!(timeout(Duration::from_secs(8), driven).await.is_err());
        // At 0, 1, 3 and 7 seconds.
        assert_eq!(passes.load(Ordering::SeqCst), 4);
    }
}
