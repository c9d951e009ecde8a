//! Terms with a mock API server, in paused time.

use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};

use prometheus_client::registry::Registry;
use serde_json::{Value, json};

use super::*;
use crate::health::Health;
use crate::shutdown;
use crate::testing::{Answer, Expect, Scenario};

const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/hypershift/leases";
const LEASE: &str = "/apis/coordination.k8s.io/v1/namespaces/hypershift/leases/operator";

fn settings() -> Settings {
    Settings {
        namespace: "hypershift".to_owned(),
        name: "operator".to_owned(),
        identity: "a".to_owned(),
        duration: Duration::from_secs(15),
        renew_deadline: Duration::from_secs(10),
        retry: Duration::from_secs(2),
    }
}

fn elector(scenario: &Scenario) -> (Elector, Arc<Health>) {
    let mut registry = Registry::default();
    let health = Health::new(&mut registry);
    let check = health.check("lease", "has not been read");
    let metrics = Metrics::new(&mut registry);
    let elector = Elector::new(scenario.client(), settings(), metrics, check);
    (elector, health)
}

fn lease(version: &str, holder: Option<&str>, epoch: i32) -> Value {
    json!({
        "metadata": { "name": "operator", "resourceVersion": version },
        "spec": { "holderIdentity": holder, "leaseDurationSeconds": 15, "leaseTransitions": epoch },
    })
}

fn ours(epoch: i32) -> Value {
    json!({ "spec": { "holderIdentity": "a", "leaseTransitions": epoch } })
}

#[tokio::test(start_paused = true)]
async fn a_lease_is_created_renewed_and_released() {
    let scenario = Scenario::new([
        Expect::get(LEASE).answer(Answer::error(404, "NotFound")),
        Expect::post(LEASES)
            .body(ours(1))
            .answer(Answer::ok(&lease("1", Some("a"), 1))),
        Expect::put(LEASE)
            .body(json!({ "metadata": { "resourceVersion": "1" } }))
            .answer(Answer::ok(&lease("2", Some("a"), 1))),
        Expect::put(LEASE)
            .body(json!({ "metadata": { "resourceVersion": "2" }, "spec": { "leaseTransitions": 1 } }))
            .answer(Answer::ok(&lease("3", None, 1))),
    ]);
    let (elector, health) = elector(&scenario);
    let (signal, drain) = shutdown::channel();
    let signal = &signal;
    elector
        .run(drain, |claim| async move {
            assert!(claim.is_held());
            sleep(Duration::from_secs(3)).await;
            signal.begin();
        })
        .await;
    assert!(health.problems().is_empty());
    scenario.finish();
}

/// The answer to the last renewal is not read once the work has ended, but it may have been stored.
#[tokio::test(start_paused = true)]
async fn a_lease_is_released_after_a_conflict_with_its_own_renewal() {
    let scenario = Scenario::new([
        Expect::get(LEASE).answer(Answer::error(404, "NotFound")),
        Expect::post(LEASES).answer(Answer::ok(&lease("1", Some("a"), 1))),
        Expect::put(LEASE)
            .body(json!({ "metadata": { "resourceVersion": "1" } }))
            .answer(Answer::error(409, "Conflict")),
        Expect::get(LEASE).answer(Answer::ok(&lease("2", Some("a"), 1))),
        Expect::put(LEASE)
            .body(json!({ "metadata": { "resourceVersion": "2" } }))
            .answer(Answer::ok(&lease("3", None, 1))),
    ]);
    let (elector, _health) = elector(&scenario);
    let (signal, drain) = shutdown::channel();
    let signal = &signal;
    elector
        .run(drain, |_claim| async move { signal.begin() })
        .await;
    scenario.finish();
}

/// Check O02.
#[tokio::test(start_paused = true)]
async fn a_leader_that_cannot_renew_stops_before_the_lease_expires() {
    let scenario = Scenario::new([
        Expect::get(LEASE).answer(Answer::ok(&lease("1", None, 6))),
        Expect::put(LEASE)
            .body(ours(7))
            .answer(Answer::ok(&lease("2", Some("a"), 7))),
    ])
    .always([
        Expect::put(LEASE).answer(Answer::error(500, "InternalError")),
        Expect::get(LEASE).answer(Answer::error(500, "InternalError")),
    ]);
    let (elector, health) = elector(&scenario);
    let (signal, drain) = shutdown::channel();
    let terms = AtomicI32::new(0);
    let led = Instant::now();
    let work = |mut claim: Claim| {
        let terms = &terms;
        async move {
            terms.store(claim.epoch(), Ordering::Relaxed);
            claim.ended().await;
            assert!(!claim.is_held());
            // It is dropped here, since it does not end by itself.
            std::future::pending::<()>().await;
        }
    };
    tokio::select! {
        () = elector.run(drain, work) => unreachable!("no shutdown has begun"),
        () = sleep(Duration::from_secs(14)) => {}
    }
    drop(signal);
    scenario.finish();
    assert_eq!(terms.load(Ordering::Relaxed), 7);
    assert!(led.elapsed() < Duration::from_secs(15));
    assert!(!health.problems().is_empty());
}
