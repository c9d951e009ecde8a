//! One reconcile of a pool against an API server that counts requests.

use k8s_openapi::api::core::v1::LocalObjectReference;
use payload::Releases;
use prometheus_client::registry::Registry;
use serde_json::json;
use support::testing::{Answer, Expect, Scenario};

use super::*;
use crate::config::Config;
use crate::context::Context;
use crate::metrics::Metrics;
use ownership::Scope;

const HYPERSHIFT: &str = "/apis/hypershift.openshift.io/v1beta1/namespaces/clusters";

fn untyped(object: &impl serde::Serialize) -> DynamicObject {
    serde_json::from_value(json!(object)).unwrap()
}

fn pools(scenario: &Scenario) -> Arc<Pools> {
    let config = Config::for_tests(Scope::Private);
    let releases = Releases::new(config.releases.clone()).unwrap();
    let metrics = Metrics::new(&mut Registry::default());
    let client = scenario.client();
    let ctx = Context::for_tests(&config, client, releases, &metrics);
    Arc::new(Pools::new(Arc::new(ctx)))
}

/// The pull secret is missing, so that no registry is contacted; it is watched.
#[tokio::test]
async fn an_unchanged_pool_is_reconciled_without_requests() {
    let mut pool = fixtures::pool();
    pool.metadata.resource_version = Some("7".to_owned());
    pool.spec.tuning_config = vec![LocalObjectReference {
        name: "latency".to_owned(),
    }];
    let mut updated = pool.clone();
    updated.metadata.resource_version = Some("8".to_owned());
    let mut cluster = fixtures::cluster();
    let private = (
        api::annotations::PRIVATE_CAPI_TYPES.to_owned(),
        "true".to_owned(),
    );
    cluster.metadata.annotations = Some([private].into());
    let namespace = json!({ "metadata": {
        "name": "clusters-dev", "annotations": { "hypershift.openshift.io/cluster": "clusters/dev" },
    } });
    let list = |path: &str| {
        let path = format!("/api/v1/namespaces/clusters-dev/{path}");
        Expect::get(&path).answer(Answer::list(&[]))
    };
    let scenario = Scenario::new([])
        .always([
            Expect::get(&format!("{HYPERSHIFT}/nodepools/workers"))
                .answer(Answer::ok(&json!(pool))),
            Expect::patch(&format!("{HYPERSHIFT}/nodepools/workers/status"))
                .answer(Answer::ok(&json!(updated))),
            Expect::get(&format!("{HYPERSHIFT}/hostedclusters/dev"))
                .answer(Answer::ok(&json!(cluster))),
            Expect::get("/api/v1/namespaces/clusters-dev").answer(Answer::ok(&namespace)),
            list("secrets"),
            list("configmaps"),
        ])
        .lenient();
    let pools = pools(&scenario);
    let cache = &pools.ctx.cache;
    let found = Arc::new(untyped(&pool));
    cache.sync(&[
        (cache::NODE_POOLS, &found),
        (cache::POOL_INPUTS, &untyped(&cluster)),
    ]);
    let requests = async || {
        let before = scenario.seen().len();
        let pass = reconcile(Arc::clone(&found), Arc::clone(&pools));
        assert_eq!(pass.await.unwrap(), Action::requeue(RETRY_INTERVAL));
        scenario.seen().len() - before
    };
    let see_updated = || {
        let event = kube::runtime::watcher::Event::Apply(untyped(&updated));
        cache.see(cache::NODE_POOLS, &Ok(event));
    };
    let see = |watch: &str, namespace: &str, name: &str| {
        let metadata = json!({ "namespace": namespace, "name": name, "resourceVersion": "9" });
        let event = kube::runtime::watcher::Event::Apply(untyped(&json!({ "metadata": metadata })));
        cache.see(watch, &Ok(event));
    };
    assert!(requests().await > 5, "it is new: {:?}", scenario.seen());
    see_updated();
    assert_eq!(requests().await, 0, "its own status is no change");
    see(cache::CONFIG_MAPS, "clusters", "other");
    see(cache::CONFIG_MAPS, "clusters-other", "new");
    assert_eq!(requests().await, 0, "others have changed");
    for (watch, namespace, name) in [
        (cache::SECRETS, "clusters", "pull-secret"),
        (cache::CONFIG_MAPS, "clusters-dev", "new"),
        (cache::CONFIG_MAPS, "clusters", "latency"),
        (cache::POOL_INPUTS, "clusters", "dev"),
        (cache::NODE_POOLS, "clusters", "workers"),
    ] {
        see(watch, namespace, name);
        assert!(requests().await > 5, "{watch} {namespace}/{name}");
        see_updated();
        assert_eq!(requests().await, 0, "{watch} {namespace}/{name}");
    }
    scenario.finish();
}

/// Check T01: reading a release takes minutes, and the namespace may have been deleted and created for another cluster.
#[tokio::test]
async fn the_owner_of_the_namespace_is_confirmed_before_the_first_write() {
    for (owner, uid, is_paused, expected) in [
        ("clusters/dev", "ns", false, "PATCH"),
        ("clusters/dev", "new", false, ""),
        ("clusters-x/dev", "ns", false, ""),
        ("clusters/dev", "ns", true, "PATCH"),
        ("clusters-x/dev", "ns", true, ""),
    ] {
        let name = format!("{owner} {uid} {is_paused}");
        let mut facts = fixtures::facts();
        if is_paused {
            facts.workload = Some(fixtures::workload(1));
        }
        let mut conditions = Conditions::new(Vec::new(), Some(3), facts.now);
        let (mut found, _) = validate::validate(&facts, &mut conditions);
        let plan = plan::plan(&facts, &found, &conditions, "a-token");
        found.is_paused = is_paused;
        let annotations = json!({ "hypershift.openshift.io/cluster": owner });
        let namespace = json!({ "metadata": { "name": "clusters-dev", "uid": uid, "annotations": annotations } });
        let get = Expect::get("/api/v1/namespaces/clusters-dev").answer(Answer::ok(&namespace));
        // The first write fails, and ends the pass.
        let scenario = Scenario::new([get]);
        assert!(
            write(&facts, &found, plan.as_ref(), None, &pools(&scenario))
                .await
                .is_err(),
            "{name}"
        );
        let seen = scenario.seen();
        let writes: Vec<_> = seen
            .iter()
            .skip(1)
            .map(|it| it.split(' ').next().unwrap())
            .collect();
        assert_eq!(writes.concat(), expected, "{name}: {seen:?}");
    }
}

#[test]
fn an_image_that_is_being_read_is_looked_for_soon() {
    let mut facts = fixtures::facts();
    let seconds = Duration::from_secs;
    for (retry_after, expected) in [
        (None, RETRY_INTERVAL),
        (Some(Duration::ZERO), RETRY_SOON),
        (Some(seconds(4)), seconds(4)),
        (Some(seconds(99)), RETRY_INTERVAL),
    ] {
        facts.release = Err(facts::Unread {
            reason: "ReadInProgress".to_owned(),
            message: String::new(),
            retry_after,
        });
        let action = again(&facts, Err(Blocked::Soon));
        assert_eq!(action, Action::requeue(expected), "{retry_after:?}");
    }
}
