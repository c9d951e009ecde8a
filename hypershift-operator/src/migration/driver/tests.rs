//! Preflight of a migration against a mock API server.

use std::sync::Arc;

use api::annotations::{
    MIGRATION_IN_PROGRESS, MIGRATION_ROLLBACK, PRIVATE_CAPI_TYPES, ROLLBACK_REQUESTED, SCOPE,
};
use payload::Releases;
use prometheus_client::registry::Registry;
use serde_json::{Value, json};
use support::shutdown;
use support::testing::{Answer, Expect, Scenario};

use super::*;
use crate::config::Config;
use crate::metrics::Metrics;

const ONE: &str = "/apis/hypershift.openshift.io/v1beta1/namespaces/clusters/hostedclusters/one";
const NAMESPACE: &str = "/api/v1/namespaces/clusters-one";

async fn ended(work: Work, annotations: &Value, owner: Option<&str>) -> Ended {
    let cluster = json!({ "metadata": {
        "namespace": "clusters", "name": "one", "uid": "u", "resourceVersion": "7", "annotations": annotations,
    } });
    let annotated = owner.map(|owner| json!({ "hypershift.openshift.io/cluster": owner }));
    let namespace = json!({ "metadata": { "name": "clusters-one", "annotations": annotated } });
    // All other requests fail the test: Roles, the journal, annotations.
    let scenario = Scenario::new([]).always([
        Expect::get(ONE).answer(Answer::ok(&cluster)),
        Expect::get(NAMESPACE).answer(Answer::ok(&namespace)),
        // In a namespace without an owner, objects are read before it is refused.
        Expect::get("/apis/apiextensions.k8s.io/v1/customresourcedefinitions")
            .answer(Answer::list(&[])),
    ]);
    let config = Config::for_tests(ownership::Scope::Private);
    let releases = Releases::new(config.releases.clone()).unwrap();
    let metrics = Metrics::new(&mut Registry::default());
    let ctx = Context::for_tests(&config, scenario.client(), releases, &metrics);
    let id = Id {
        namespace: "clusters".to_owned(),
        name: "one".to_owned(),
    };
    let migration_metrics = Arc::new(crate::migration::Metrics::new(&mut Registry::default()));
    let migrations = Migrations::new(config.migration.clone(), &migration_metrics);
    let (_signal, drain) = shutdown::channel();
    let ended = run_once(&ctx, &migrations, &id, work, &drain)
        .await
        .unwrap();
    scenario.finish();
    ended
}

/// T01: neither a request nor a forged lock gives a migration rights in a namespace of another cluster.
#[tokio::test]
async fn no_migration_begins_in_a_namespace_of_another_cluster() {
    let legacy = json!({ SCOPE: "legacy" });
    let locked = json!({ SCOPE: "legacy", MIGRATION_IN_PROGRESS: "true" });
    let both = json!({ PRIVATE_CAPI_TYPES: "true", MIGRATION_IN_PROGRESS: "true" });
    let rollback = json!({ PRIVATE_CAPI_TYPES: "true", MIGRATION_ROLLBACK: ROLLBACK_REQUESTED });
    for owner in [Some("clusters-x/one"), None] {
        for (work, annotations) in [
            (Work::Forward, &legacy),
            (Work::Again, &legacy),
            (Work::Resume, &locked),
            (Work::Resume, &both),
            (Work::Reverse, &rollback),
        ] {
            let ended = ended(work, annotations, owner).await;
            assert!(
                matches!(ended, Ended::NotNeeded),
                "{work:?} {owner:?} {ended:?}"
            );
        }
    }
}
