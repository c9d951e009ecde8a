//! Runs a controller: after changes, periodically, and with backoff after failures.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::ObjectReference;
use kube::api::DynamicObject;
use kube::runtime::events::Recorder;
use kube::runtime::reflector::Store;
use kube::{Resource as _, ResourceExt as _};
use support::controller::{
    Action, DEADLINE, Manager, ObjectKey, Reconciler, Settings, Wake, record_generation,
};
use support::shutdown;

use super::control_plane;
use super::error::Error;

/// Changes often come in bursts.
const DEBOUNCE: Duration = Duration::from_millis(200);

/// A controller: its reconcile function, resync period and subject.
struct Controller<'a, P> {
    pass: P,
    period: Duration,
    subject: &'a Subject,
}

/// When a controller runs.
#[derive(Clone, Copy)]
pub(super) struct Schedule<'a> {
    pub(super) name: &'static str,
    pub(super) wake: &'a Wake,
    /// Resync period.
    pub(super) period: Duration,
}

/// The HostedControlPlane of all controllers, for logs and Events.
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

/// Runs a controller while the process is the leader.
pub(super) async fn run_controller<F>(
    schedule: Schedule<'_>,
    manager: &Manager,
    subject: &Subject,
    pass: impl Fn() -> F,
) where
    F: Future<Output = Result<(), Error>>,
{
    let settings = Settings {
        controller: schedule.name,
        kind: "HostedControlPlane",
        concurrency: 1,
        debounce: DEBOUNCE,
        deadline: DEADLINE,
    };
    // It is aborted at the end of the term, which is safe because each write is atomic.
    let (_signal, drain) = shutdown::channel();
    let controller = Controller {
        pass,
        period: schedule.period,
        subject,
    };
    let requests = schedule.wake.requests(schedule.name);
    let ready = std::future::ready(());
    manager
        .run(settings, &controller, requests, ready, drain)
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

    /// A subject without a HostedControlPlane.
    fn subject(scenario: &Scenario) -> Subject {
        Subject {
            name: "a".to_owned(),
            found: Writer::new(control_plane::resource()).as_reader(),
            recorder: tool::recorder(&scenario.client(), "test"),
        }
    }

    fn schedule(wake: &Wake) -> Schedule<'_> {
        Schedule {
            name: "test",
            wake,
            period: PERIOD,
        }
    }

    fn manager() -> Manager {
        let mut registry = Registry::default();
        let health = Health::new(&mut registry);
        Manager::new(&mut registry, &health)
    }

    #[tokio::test(start_paused = true)]
    async fn changes_are_debounced() {
        let wake = Wake::new();
        let passes = AtomicU32::new(0);
        let pass = || {
            passes.fetch_add(1, Ordering::SeqCst);
            async { Ok(()) }
        };
        let manager = manager();
        let scenario = Scenario::new([]);
        let subject = subject(&scenario);
        let controller = run_controller(schedule(&wake), &manager, &subject, pass);
        let changes = async {
            sleep(Duration::from_secs(1)).await;
            for _ in 0..100 {
                wake.wake();
            }
            sleep(Duration::from_secs(10)).await;
        };
        tokio::select! {
            () = controller => {}
            () = changes => {}
        }
        assert_eq!(passes.load(Ordering::SeqCst), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn failures_are_retried_with_backoff() {
        let wake = Wake::new();
        let passes = AtomicU32::new(0);
        let pass = || {
            passes.fetch_add(1, Ordering::SeqCst);
            async { Err(Error::waiting("the test")) }
        };
        let manager = manager();
        let scenario = Scenario::new([]);
        let subject = subject(&scenario);
        let controller = run_controller(schedule(&wake), &manager, &subject, pass);
        assert!(timeout(Duration::from_secs(8), controller).await.is_err());
        // At 0, 1, 3 and 7 seconds.
        assert_eq!(passes.load(Ordering::SeqCst), 4);
    }
}
