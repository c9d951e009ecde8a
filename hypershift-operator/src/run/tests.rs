//! The loops of a leader that are not controllers: each pass has a deadline, a watchdog and metrics.

use support::controller::DEADLINE;
use support::testing::{Scenario, hung_client};
use tokio::time::{sleep, timeout};

use super::*;
use crate::metrics::exposition;

struct Fixture {
    registry: Registry,
    health: Arc<Health>,
    ctx: Context,
    migrations: Migrations,
    namespace: String,
}

impl Fixture {
    fn new(client: kube::Client) -> Self {
        let mut registry = Registry::default();
        let config = Config::for_tests(Scope::Private);
        let health = Health::new(&mut registry);
        let releases = Releases::new(config.releases.clone()).unwrap();
        let metrics = Metrics::new(&mut Registry::default());
        let controllers = Manager::new(&mut registry, &health);
        let ctx = Context::new(&config, client, releases, &metrics, &controllers, 1);
        let migration = Arc::new(migration::Metrics::new(&mut Registry::default()));
        Self {
            registry,
            health,
            ctx,
            migrations: Migrations::new(config.migration.clone(), &migration),
            namespace: config.namespace,
        }
    }

    #[track_caller]
    fn assert_metric(&self, line: &str) {
        let scraped = exposition::of(&self.registry);
        assert!(scraped.contains(line), "{line} is not in:\n{scraped}");
    }
}

/// Check T03.
#[tokio::test(start_paused = true)]
async fn a_hung_pass_of_each_loop_is_aborted_and_retried() {
    let fixture = Fixture::new(hung_client());
    let Fixture {
        health,
        ctx,
        migrations,
        namespace,
        ..
    } = &fixture;
    let scan = health.check("scan", "not scanned yet");
    let resynced = health.check("resync", "not evaluated yet");
    let (_signal, drain) = shutdown::channel();
    let mut until = drain.clone();
    let (sender, _receiver) = mpsc::unbounded_channel();
    let period = Duration::from_secs(30);
    let manager = &ctx.controllers;
    let loops = [
        startup::run(ctx, &scan, &mut until).map(drop).boxed_local(),
        resync::run(ctx, migrations, sender, period, &resynced, drain.clone()).boxed_local(),
        migration::run(ctx, migrations, drain.clone()).boxed_local(),
        conversion::run(&ctx.client, namespace, manager, drain.clone()).boxed_local(),
        supported_versions::run(&ctx.client, namespace, manager, drain.clone()).boxed_local(),
    ];
    let names = [
        "scan",
        "resync",
        "migration",
        "conversion",
        "supported-versions",
    ];
    let observed = async {
        sleep(DEADLINE / 2).await;
        let ages = health.watchdog().ages();
        for name in names {
            assert!(ages[name] > DEADLINE / 3, "{name}: {ages:?}");
        }
        sleep(DEADLINE / 2 + period).await;
        let problem = "reconcile aborted after its deadline of 480s";
        let expected = ["resync", "scan"].map(|check| format!("{check}: {problem}"));
        assert_eq!(health.problems(), expected);
        // Migrations are selected again after each evaluation of all clusters.
        migrations.update_candidates(&[]);
        sleep(DEADLINE + period).await;
    };
    tokio::select! {
        _ = join_all(loops) => panic!("they run until the shutdown"),
        () = observed => {}
    }
    for name in names {
        let labels = format!("controller=\"{name}\",reason=\"DeadlineExceeded\"");
        fixture.assert_metric(&format!("reconcile_failures_total{{{labels}}} 2"));
    }
}

#[tokio::test(start_paused = true)]
async fn counts_for_fleet_metrics_are_passes() {
    let fixture = Fixture::new(Scenario::new([]).client());
    fixture.ctx.cache.sync(&[]);
    let fleet_metrics = FleetMetrics::new(&mut Registry::default());
    let (_signal, drain) = shutdown::channel();
    let counting = fleet_metrics::run(&fixture.ctx, &fleet_metrics, drain);
    let ended = timeout(Duration::from_secs(1), counting).await;
    assert!(ended.is_err(), "it runs until the shutdown");
    fixture.assert_metric("reconcile_duration_seconds_count{controller=\"fleet-metrics\"} 1");
    assert!(
        fixture
            .health
            .watchdog()
            .ages()
            .contains_key("fleet-metrics")
    );
}
