//! Who gets a namespace that does not exist yet.

use serde_json::json;
use support::testing::{Answer, Expect, Scenario};

use super::*;

const PATH: &str = "/api/v1/namespaces/clusters-a-b";

fn found(owner: Option<&str>) -> Answer {
    let annotations = owner.map(|owner| json!({ CLUSTER: owner }));
    Answer::ok(&json!({ "metadata": {
        "name": "clusters-a-b", "uid": "u", "annotations": annotations,
    }}))
}

/// HostedCluster `clusters/a-b` claims its namespace.
async fn claimed(calls: impl IntoIterator<Item = Expect>) -> Result<ControlPlaneNamespace, Error> {
    let scenario = Scenario::new(calls);
    let claimed = claim(&scenario.client(), "clusters", "a-b").await;
    scenario.finish();
    claimed
}

#[tokio::test]
async fn an_absent_namespace_is_created_with_its_owner() {
    let created = json!({ "metadata": {
        "name": "clusters-a-b",
        "annotations": { CLUSTER: "clusters/a-b" },
        "labels": { MANAGED_BY: OPERATOR },
    }});
    let claimed = claimed([
        Expect::get(PATH).answer(Answer::error(404, "NotFound")),
        Expect::post("/api/v1/namespaces").body(created),
        Expect::get(PATH).answer(found(Some("clusters/a-b"))),
    ]);
    assert_eq!(&*claimed.await.unwrap(), "clusters-a-b");
}

#[tokio::test]
async fn a_namespace_created_by_another_cluster_is_not_claimed() {
    for owner in [Some("clusters-a/b"), None] {
        let result = claimed([
            Expect::get(PATH).answer(Answer::error(404, "NotFound")),
            Expect::post("/api/v1/namespaces").answer(Answer::error(409, "AlreadyExists")),
            Expect::get(PATH).answer(found(owner)),
        ]);
        let error = result.await.unwrap_err();
        assert!(matches!(error, Error::ForeignNamespace { .. }), "{error}");
        let result = claimed([Expect::get(PATH).answer(found(owner))]);
        result.await.unwrap_err();
    }
}
