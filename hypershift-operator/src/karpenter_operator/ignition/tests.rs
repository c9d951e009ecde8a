//! The status of a class, and passes that have nothing to do.

use support::testing::{Answer, Expect, Scenario};

use super::*;
use crate::karpenter_operator::classes::{SUPPORTED_SKEW, VERSION_RESOLVED};
use crate::karpenter_operator::fixtures;

const HCP: &str =
    "/apis/hypershift.openshift.io/v1beta1/namespaces/clusters-one/hostedcontrolplanes/one";
const CLASSES: &str = "/apis/karpenter.hypershift.openshift.io/v1/openshiftec2nodeclasses";
const MAPS: &str = "/api/v1/namespaces/clusters-one/configmaps";
const SECRETS: &str = "/api/v1/namespaces/clusters-one/secrets";
const CLASS: &str = "/apis/karpenter.hypershift.openshift.io/v1/openshiftec2nodeclasses/a";

fn updates(is_resolved: bool) -> [Update; 2] {
    [
        Update::new(VERSION_RESOLVED, is_resolved, "r", "m"),
        Update::new(SUPPORTED_SKEW, true, "r", "m"),
    ]
}

#[test]
fn the_status_has_the_version_of_nodes_that_there_are() {
    let nodes = |version: &str| Nodes {
        hash: "0a1b2c3d".to_owned(),
        image: format!("images.example.com/release:{version}"),
        version: version.to_owned(),
    };
    let (old, new) = (nodes("4.20.1"), nodes("4.20.3"));
    for (name, before, now, expected) in [
        ("none yet", None, None, None),
        ("the first", None, Some(&new), Some("4.20.3")),
        ("another version", Some(&old), Some(&new), Some("4.20.3")),
        (
            "a version that is not found",
            Some(&old),
            None,
            Some("4.20.1"),
        ),
    ] {
        let mut class = fixtures::class("a", &json!({}));
        let fields = before.map(|it| json!({ "releaseImage": it.image, "version": it.version }));
        class.status = fields.map(|it| serde_json::from_value(it).unwrap());
        let status = status(&class, now, &updates(now.is_some()), fixtures::now());
        assert_eq!(status["version"].as_str(), expected, "{name}");
        let image = expected.map(|it| format!("images.example.com/release:{it}"));
        assert_eq!(status["releaseImage"].as_str(), image.as_deref(), "{name}");
        let conditions = status["conditions"].as_array().unwrap();
        let types: Vec<_> = conditions.iter().map(|it| &it["type"]).collect();
        assert_eq!(types, [VERSION_RESOLVED, SUPPORTED_SKEW], "{name}");
    }
}

#[tokio::test]
async fn the_current_configuration_is_named_once() {
    let mut class = fixtures::class("a", &json!({}));
    let written = json!({ "metadata": { "annotations": { CURRENT: "0a1b2c3d" } } });
    let scenario = Scenario::new([Expect::patch(CLASS)
        .body(written)
        .answer(Answer::ok(&json!(class)))]);
    let ctx = fixtures::context(&scenario);
    set_current(&ctx, &class, "0a1b2c3d").await.unwrap();
    class
        .annotations_mut()
        .insert(CURRENT.to_owned(), "0a1b2c3d".to_owned());
    set_current(&ctx, &class, "0a1b2c3d").await.unwrap();
    scenario.finish();
}

/// The finalizer of a class may have changed in the same pass: its version is not a precondition.
#[test]
fn the_current_configuration_is_named_in_any_version_of_a_class() {
    let class = fixtures::class("a", &json!({}));
    let expected =
        json!({ "metadata": { "uid": "uid-a", "annotations": { CURRENT: "0a1b2c3d" } } });
    assert_eq!(current(&class, "0a1b2c3d"), expected);
}

/// What is written needs the pull secret; what is deleted does not.
#[tokio::test]
async fn what_is_left_of_classes_goes_before_others_are_configured() {
    let secret = json!({ "metadata": {
        "name": "token-gone", "uid": "u",
        "annotations": { api::annotations::node_pool::NODE_POOL.key(): "clusters-one/gone-karpenter" },
    } });
    let class = json!(fixtures::class("a", &json!({})));
    let scenario = Scenario::new([
        Expect::get(HCP).answer(Answer::ok(&json!(fixtures::control_plane()))),
        fixtures::namespace(),
        Expect::get(CLASSES).answer(Answer::list(&[class])),
        Expect::get(MAPS).answer(Answer::list(&[])),
        Expect::get(SECRETS).answer(Answer::list(std::slice::from_ref(&secret))),
        Expect::delete(&format!("{SECRETS}/token-gone"))
            .body(json!({ "preconditions": { "uid": "u" } }))
            .answer(Answer::ok(&secret)),
        Expect::get(&format!("{SECRETS}/pull-secret")).answer(Answer::error(404, "NotFound")),
    ]);
    let error = pass(&fixtures::context(&scenario)).await.unwrap_err();
    assert!(
        error.to_string().contains("clusters-one/pull-secret"),
        "{error}"
    );
    scenario.finish();
}

#[tokio::test]
async fn nothing_more_is_read_without_classes() {
    let scenario = Scenario::new([
        Expect::get(HCP).answer(Answer::ok(&json!(fixtures::control_plane()))),
        fixtures::namespace(),
        Expect::get(CLASSES).answer(Answer::list(&[])),
        Expect::get(MAPS).answer(Answer::list(&[])),
        Expect::get(SECRETS).answer(Answer::list(&[])),
    ]);
    let action = pass(&fixtures::context(&scenario)).await.unwrap();
    assert_eq!(action, Action::await_change());
    scenario.finish();
}

#[tokio::test]
async fn nothing_is_read_where_karpenter_is_off_or_paused() {
    let changes: [fn(&mut api::hypershift::v1beta1::HostedControlPlane); 3] = [
        |it| it.spec.auto_node = None,
        |it| it.spec.paused_until = Some("true".to_owned()),
        |it| fixtures::delete(&mut it.metadata),
    ];
    for change in changes {
        let mut hcp = fixtures::control_plane();
        change(&mut hcp);
        let scenario = Scenario::new([Expect::get(HCP).answer(Answer::ok(&json!(hcp)))]);
        let action = pass(&fixtures::context(&scenario)).await.unwrap();
        assert_eq!(action, Action::await_change());
        scenario.finish();
    }
}

/// Check T01: without the proof that the namespace is the cluster's, nothing is written there.
#[tokio::test]
async fn a_namespace_of_another_cluster_is_left_alone() {
    let foreign = json!({ "metadata": {
        "name": fixtures::NAMESPACE, "annotations": { crate::names::CLUSTER: "clusters/two" },
    } });
    let scenario = Scenario::new([
        Expect::get(HCP).answer(Answer::ok(&json!(fixtures::control_plane()))),
        Expect::get("/api/v1/namespaces/clusters-one").answer(Answer::ok(&foreign)),
    ]);
    let error = pass(&fixtures::context(&scenario)).await.unwrap_err();
    assert!(error.to_string().contains("clusters-one"), "{error}");
    scenario.finish();
}
