//! The runner with a reconciler that records its reconciles, in paused time.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use futures::stream;
use tokio::sync::mpsc;
use tokio::time::sleep;
use tracing::level_filters::LevelFilter;

use super::*;
use crate::shutdown;
use crate::telemetry::tests::Log;

const SETTINGS: Settings = Settings {
    controller: "nodepool",
    kind: "NodePool",
    concurrency: 2,
    debounce: Duration::from_millis(100),
    deadline: Duration::from_mins(1),
};

#[derive(Debug, thiserror::Error)]
#[error("failed to apply Secret a/b")]
struct Failed(Retry);

impl Report for Failed {
    fn reason(&self) -> &'static str {
        "Forbidden"
    }

    fn retry(&self) -> Retry {
        self.0
    }
}

/// Takes a while for each reconcile.
#[derive(Default)]
struct Recorded {
    takes: Duration,
    retry: Option<Retry>,
    action: Option<Duration>,
    at_once: AtomicUsize,
    most_at_once: AtomicUsize,
    passes: Mutex<Vec<(String, Duration)>>,
    reported: AtomicU32,
}

impl Recorded {
    /// Names in the order of their reconciles.
    fn names(&self) -> Vec<String> {
        let passes = self.passes.lock().unwrap();
        passes.iter().map(|(name, _)| name.clone()).collect()
    }
}

impl Reconciler for Recorded {
    type Error = Failed;

    async fn reconcile(&self, key: &ObjectKey) -> Result<Action, Failed> {
        record_generation(Some(3));
        let now = self.at_once.fetch_add(1, Ordering::SeqCst) + 1;
        self.most_at_once.fetch_max(now, Ordering::SeqCst);
        let begun = Instant::now();
        tracing::info!("Applied");
        sleep(self.takes).await;
        self.at_once.fetch_sub(1, Ordering::SeqCst);
        let mut passes = self.passes.lock().unwrap();
        passes.push((key.name.clone(), begun.elapsed()));
        match self.retry {
            Some(retry) => Err(Failed(retry)),
            None => Ok(Action(self.action)),
        }
    }

    async fn failed(&self, _: &ObjectKey, _: &Failure<Failed>) {
        self.reported.fetch_add(1, Ordering::SeqCst);
    }
}

fn key(name: &str) -> ObjectKey {
    ObjectKey::new("clusters", name)
}

fn manager(registry: &mut Registry) -> (Manager, Arc<Health>) {
    let health = Health::new(registry);
    (Manager::new(registry, &health), health)
}

/// Requests these objects at once, and runs for this time.
async fn run(reconciler: &Recorded, names: &[&str], time: Duration) -> String {
    let mut registry = Registry::default();
    let (manager, _health) = manager(&mut registry);
    let (_signal, drain) = shutdown::channel();
    let requests = stream::iter(names.iter().map(|name| key(name)));
    let ready = std::future::ready(());
    let running = manager.run(SETTINGS, reconciler, requests, ready, drain);
    assert!(
        timeout(time, running).await.is_err(),
        "it runs until the drain"
    );
    encoded(&registry)
}

fn encoded(registry: &Registry) -> String {
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, registry).unwrap();
    text
}

#[tokio::test(start_paused = true)]
async fn objects_are_reconciled_concurrently_up_to_a_limit() {
    let reconciler = Recorded {
        takes: Duration::from_secs(1),
        ..Recorded::default()
    };
    run(
        &reconciler,
        &["a", "b", "c", "d", "e"],
        Duration::from_secs(10),
    )
    .await;
    assert_eq!(reconciler.names(), ["a", "b", "c", "d", "e"]);
    assert_eq!(reconciler.most_at_once.load(Ordering::SeqCst), 2);
}

#[tokio::test(start_paused = true)]
async fn requests_for_an_object_are_one_pass_at_a_time() {
    let reconciler = Recorded {
        takes: Duration::from_secs(1),
        ..Recorded::default()
    };
    let (sender, receiver) = mpsc::unbounded_channel();
    let requests = stream::unfold(receiver, |mut receiver| async {
        let key = receiver.recv().await?;
        Some((key, receiver))
    });
    let (manager, _health) = manager(&mut Registry::default());
    let (signal, drain) = shutdown::channel();
    let ready = std::future::ready(());
    let running = manager.run(SETTINGS, &reconciler, requests, ready, drain);
    let changes = async {
        // Many before the reconcile, and many while it runs.
        for _ in 0..20 {
            sender.send(key("a")).unwrap();
            sleep(Duration::from_millis(50)).await;
        }
        sleep(Duration::from_secs(10)).await;
        signal.begin();
    };
    tokio::join!(running, changes);
    assert_eq!(reconciler.names(), ["a", "a"]);
    assert_eq!(reconciler.most_at_once.load(Ordering::SeqCst), 1);
}

#[tokio::test(start_paused = true)]
async fn failures_are_retried_with_backoff_reported_and_counted() {
    let reconciler = Recorded {
        retry: Some(Retry::Backoff),
        ..Recorded::default()
    };
    let metrics = run(&reconciler, &["a"], Duration::from_secs(8)).await;
    // At 0, 1, 3 and 7 seconds.
    assert_eq!(reconciler.names().len(), 4);
    assert_eq!(reconciler.reported.load(Ordering::SeqCst), 4);
    let line = "reconcile_failures_total{controller=\"nodepool\",reason=\"Forbidden\"} 4";
    assert!(metrics.contains(line), "{metrics}");
    let line = "reconcile_duration_seconds_count{controller=\"nodepool\"} 4";
    assert!(metrics.contains(line), "{metrics}");
}

#[tokio::test(start_paused = true)]
async fn conflicts_are_retried_soon() {
    let reconciler = Recorded {
        retry: Some(Retry::AtOnce),
        ..Recorded::default()
    };
    run(&reconciler, &["a"], Duration::from_secs(1)).await;
    assert!(reconciler.names().len() > 5);
}

#[tokio::test(start_paused = true)]
async fn an_object_is_requeued_after_the_time_of_its_action() {
    let reconciler = Recorded {
        action: Some(Duration::from_secs(30)),
        ..Recorded::default()
    };
    run(&reconciler, &["a"], Duration::from_secs(70)).await;
    assert_eq!(reconciler.names().len(), 3);
}

/// Check T03.
#[tokio::test(start_paused = true)]
async fn a_pass_past_its_deadline_is_aborted_and_others_go_on() {
    let reconciler = Recorded {
        takes: Duration::from_hours(1),
        ..Recorded::default()
    };
    let metrics = run(&reconciler, &["a"], Duration::from_secs(62)).await;
    assert!(reconciler.names().is_empty(), "no pass has ended by itself");
    assert_eq!(
        reconciler.at_once.load(Ordering::SeqCst),
        2,
        "it was retried"
    );
    let line = "reconcile_failures_total{controller=\"nodepool\",reason=\"DeadlineExceeded\"} 1";
    assert!(metrics.contains(line), "{metrics}");
}

/// Never yields to the deadline: stands for a reconcile that blocks its thread.
struct Blocked;

impl Reconciler for Blocked {
    type Error = Failed;

    async fn reconcile(&self, _: &ObjectKey) -> Result<Action, Failed> {
        std::future::pending().await
    }
}

/// Check T03.
#[tokio::test(start_paused = true)]
async fn a_pass_that_hangs_fails_liveness() {
    let (manager, health) = manager(&mut Registry::default());
    let runner = Runner {
        manager: &manager,
        settings: SETTINGS,
        reconciler: &Blocked,
        failing: HashMap::new(),
    };
    let mut pass = Box::pin(runner.pass(key("a")));
    // Polled once, and never again, as by a thread that is blocked.
    assert!(futures::poll!(pass.as_mut()).is_pending());
    let limit = SETTINGS.deadline + HANG_LIMIT.saturating_sub(DEADLINE);
    tokio::time::advance(limit).await;
    assert!(health.watchdog().hung().is_empty());
    tokio::time::advance(Duration::from_secs(1)).await;
    let hung = health.watchdog().hung();
    assert!(
        hung[0].starts_with("nodepool: reconcile of clusters/a"),
        "{hung:?}"
    );
}

/// Check T03.
#[tokio::test(start_paused = true)]
async fn a_pass_of_a_loop_past_its_deadline_ends_with_an_error() {
    let log = Log::default();
    let _guard = tracing::subscriber::set_default(log.subscriber(LevelFilter::DEBUG));
    let mut registry = Registry::default();
    let (manager, health) = manager(&mut registry);
    let deadline = Duration::from_mins(1);
    let hung = std::future::pending::<Result<(), Failed>>();
    let age = || health.watchdog().ages()["scan"];
    let begun = Instant::now();
    let (ended, ()) = tokio::join!(manager.pass("scan", deadline, hung), async {
        sleep(deadline / 2).await;
        assert_eq!(age(), deadline / 2);
    });
    let failure = ended.unwrap_err();
    assert!(matches!(failure, Failure::Deadline(limit) if limit == deadline));
    assert_eq!(begun.elapsed(), deadline);
    assert_eq!(age(), Duration::ZERO);
    let metrics = encoded(&registry);
    for line in [
        "reconcile_failures_total{controller=\"scan\",reason=\"DeadlineExceeded\"} 1",
        "reconcile_duration_seconds_count{controller=\"scan\"} 1",
    ] {
        assert!(metrics.contains(line), "{line} is not in:\n{metrics}");
    }
    let events = log.events();
    assert_eq!(events[1]["message"], "Failed to reconcile");
    assert_eq!(events[1]["level"], "WARN");
    assert_eq!(
        events[1]["error"],
        "reconcile aborted after its deadline of 60s"
    );
    assert_eq!(events[1]["span"]["controller"], "scan");
    let ids = events.iter().map(|event| &event["span"]["reconcile_id"]);
    assert!(
        ids.clone()
            .all(|id| id.as_str().unwrap().len() == 16 && id == &events[0]["span"]["reconcile_id"])
    );
}

/// Check T03.
#[tokio::test(start_paused = true)]
async fn a_pass_of_a_loop_that_hangs_fails_liveness() {
    let (manager, health) = manager(&mut Registry::default());
    let hung = std::future::pending::<Result<(), Failed>>();
    let mut pass = Box::pin(manager.pass("scan", DEADLINE, hung));
    // Polled once, and never again, as by a thread that is blocked.
    assert!(futures::poll!(pass.as_mut()).is_pending());
    tokio::time::advance(HANG_LIMIT).await;
    assert!(health.watchdog().hung().is_empty());
    tokio::time::advance(Duration::from_secs(1)).await;
    assert_eq!(
        health.watchdog().hung(),
        ["scan: reconcile has been running for 601s (limit 600s)"]
    );
    drop(pass);
    assert!(health.watchdog().hung().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_pass_of_a_loop_returns_its_result_and_is_counted() {
    let mut registry = Registry::default();
    let (manager, _health) = manager(&mut registry);
    let passed = async { Ok::<_, Failed>(7) };
    assert_eq!(manager.pass("scan", DEADLINE, passed).await.ok(), Some(7));
    let failed = async { Err::<(), _>(Failed(Retry::Backoff)) };
    let failure = manager.pass("scan", DEADLINE, failed).await.unwrap_err();
    assert_eq!(failure.to_string(), "failed to apply Secret a/b");
    let metrics = encoded(&registry);
    for line in [
        "reconcile_failures_total{controller=\"scan\",reason=\"Forbidden\"} 1",
        "reconcile_duration_seconds_count{controller=\"scan\"} 2",
    ] {
        assert!(metrics.contains(line), "{line} is not in:\n{metrics}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_drain_completes_running_passes_and_starts_none() {
    let reconciler = Recorded {
        takes: Duration::from_secs(2),
        action: Some(Duration::ZERO),
        ..Recorded::default()
    };
    let (manager, _health) = manager(&mut Registry::default());
    let (signal, drain) = shutdown::channel();
    let requests = stream::iter([key("a"), key("b"), key("c")]);
    let ready = std::future::ready(());
    let running = manager.run(SETTINGS, &reconciler, requests, ready, drain);
    let begun = Instant::now();
    tokio::join!(running, async {
        sleep(Duration::from_secs(1)).await;
        signal.begin();
    });
    assert_eq!(reconciler.names(), ["a", "b"]);
    assert_eq!(begun.elapsed(), Duration::from_millis(2100));
}

#[tokio::test(start_paused = true)]
async fn no_pass_starts_before_the_cache_is_ready() {
    let reconciler = Recorded::default();
    let (manager, _health) = manager(&mut Registry::default());
    let (signal, drain) = shutdown::channel();
    let requests = stream::iter([key("a")]);
    let ready = sleep(Duration::from_secs(5));
    let running = manager.run(SETTINGS, &reconciler, requests, ready, drain);
    tokio::join!(running, async {
        sleep(Duration::from_secs(4)).await;
        assert!(reconciler.names().is_empty());
        sleep(Duration::from_secs(2)).await;
        signal.begin();
    });
    assert_eq!(reconciler.names(), ["a"]);
}

#[tokio::test(start_paused = true)]
async fn all_lines_of_a_pass_have_its_span_fields() {
    let log = Log::default();
    let _guard = tracing::subscriber::set_default(log.subscriber(LevelFilter::DEBUG));
    let reconciler = Recorded {
        retry: Some(Retry::Backoff),
        ..Recorded::default()
    };
    run(&reconciler, &["a"], Duration::from_millis(500)).await;
    let events = log.events();
    let messages: Vec<_> = events
        .iter()
        .map(|it| it["message"].as_str().unwrap())
        .collect();
    assert_eq!(messages, ["Reconciling", "Applied", "Failed to reconcile"]);
    assert_eq!(events[2]["error"], "failed to apply Secret a/b");
    let id = &events[0]["span"]["reconcile_id"];
    assert_eq!(id.as_str().unwrap().len(), 16);
    for event in &events {
        let span = &event["span"];
        assert_eq!(span["kind"], "NodePool");
        assert_eq!(
            (&span["namespace"], &span["object_name"]),
            (&"clusters".into(), &"a".into())
        );
        assert_eq!(&span["reconcile_id"], id);
    }
    assert_eq!(events[1]["span"]["generation"], 3);
}
