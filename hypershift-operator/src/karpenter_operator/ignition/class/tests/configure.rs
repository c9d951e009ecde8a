//! One class from its release to its status: what is written, and in which order.

use super::*;
use crate::karpenter_operator::classes::{CURRENT, SUPPORTED_SKEW, VERSION_RESOLVED};
use crate::karpenter_operator::ignition::configure;
use crate::names::node_pool as pool_names;

const CLASS: &str = "/apis/karpenter.hypershift.openshift.io/v1/openshiftec2nodeclasses/a";
const KUBELET: &str = "/api/v1/namespaces/clusters-one/configmaps/karpenter-kubelet-a";

/// A class whose nodes have release 4.20.1.
fn class(spec: &Value, current: Option<&str>) -> OpenshiftEc2NodeClass {
    let mut class = fixtures::class("a", spec);
    let status =
        json!({ "version": "4.20.1", "releaseImage": "images.example.com/release:4.20.1" });
    class.status = serde_json::from_value(status).unwrap();
    if let Some(hash) = current {
        class.metadata.annotations = Some([(CURRENT.to_owned(), hash.to_owned())].into());
    }
    class
}

/// A Secret of a pool, with a token.
fn secret(name: &str, owner: &str) -> Secret {
    let secret = json!({
        "metadata": {
            "name": name, "namespace": fixtures::NAMESPACE,
            "annotations": { NODE_POOL.key(): owner },
        },
        "data": { "token": "dG9rZW4=" },
    });
    serde_json::from_value(secret).unwrap()
}

/// Both API servers: these writes are expected in this order. Nothing is there but the class.
fn server(class: &OpenshiftEc2NodeClass, writes: impl IntoIterator<Item = Expect>) -> Scenario {
    let found = Expect::get(CLASS).answer(Answer::ok(&json!(class)));
    Scenario::new(writes).always([found]).lenient()
}

fn written(expect: Expect) -> Expect {
    expect.answer(Answer::ok(&json!({ "metadata": { "name": "x" } })))
}

/// The writes so far.
fn writes(scenario: &Scenario) -> Vec<String> {
    let seen = scenario.seen().into_iter();
    seen.filter(|it| !it.starts_with("GET ")).collect()
}

/// The hash of class `a`, and the names of its Secrets.
fn names_of(shared: &Shared) -> (String, String, String) {
    let hash = planned("a", &json!({}), shared).unwrap().hash().to_owned();
    let pool = pool_name("a");
    let token = pool_names::token(&pool, &hash);
    let user_data = pool_names::user_data(&pool, &hash);
    (hash, token, user_data)
}

/// Users of the hosted cluster may write the annotation: what it says is neither read nor written.
#[tokio::test]
async fn secrets_are_written_before_the_class_names_them() {
    let mut shared = shared("us-east-1");
    // Another class has Secrets, too.
    shared.secrets = vec![
        secret("token-b-karpenter-0a1b2c3d", "clusters-one/b-karpenter"),
        secret("user-data-b-karpenter-0a1b2c3d", "clusters-one/b-karpenter"),
    ];
    let (hash, token, user_data) = names_of(&shared);
    for (name, current, is_named) in [
        ("none yet", None, true),
        ("an older configuration", Some("00000000"), true),
        ("that of another class", Some("b-karpenter-0a1b2c3d"), true),
        ("its own", Some(hash.as_str()), false),
    ] {
        let class = class(&json!({}), current);
        let (label, value) = MANAGED;
        let labels = json!({ "metadata": { "labels": { label: value, AMIS[0]: "ami-0123" } } });
        let naming = json!({ "metadata": { "uid": "uid-a", "annotations": { CURRENT: hash } } });
        let status = json!({ "status": {
            "version": "4.20.3",
            "releaseImage": "images.example.com/release:4.20.3",
            "conditions": [
                { "type": VERSION_RESOLVED, "status": "True" },
                { "type": SUPPORTED_SKEW, "status": "True" },
            ],
        } });
        let mut expected = vec![
            Expect::post(SECRETS).body(labels.clone()),
            Expect::patch(&format!("{SECRETS}/{token}")).body(labels.clone()),
            Expect::patch(&format!("{SECRETS}/{user_data}")).body(labels),
        ];
        if is_named {
            expected.push(Expect::patch(CLASS).body(naming));
        }
        expected.push(Expect::patch(&format!("{CLASS}/status")).body(status));
        let count = expected.len();
        let scenario = server(&class, expected.into_iter().map(written));
        let ctx = fixtures::context(&scenario);
        let is_settled = configure(&ctx, &class, &shared).await.unwrap();
        assert!(is_settled, "{name}");
        let writes = writes(&scenario);
        assert_eq!(writes.len(), count, "{name}: {writes:#?}");
        scenario.finish();
    }
}

/// Check T09: Secrets of NodePools and of other classes are in the same namespace. The ignition server renews the token of a
/// configuration: it is created once.
#[tokio::test]
async fn secrets_are_those_of_the_owner() {
    let (_, token, user_data) = names_of(&shared("us-east-1"));
    let (own, other) = ("clusters-one/a-karpenter", "clusters-one/b-karpenter");
    for (name, found, is_written) in [
        ("its own token", secret(&token, own), true),
        ("the token of another class", secret(&token, other), false),
        (
            "the user data of another class",
            secret(&user_data, other),
            false,
        ),
        (
            "the token of a NodePool",
            secret(&token, "clusters/a-karpenter"),
            false,
        ),
    ] {
        let mut shared = shared("us-east-1");
        shared.secrets = vec![found];
        let class = class(&json!({}), None);
        let scenario = server(&class, []);
        let ctx = fixtures::context(&scenario);
        let result = configure(&ctx, &class, &shared).await;
        assert_eq!(result.is_ok(), is_written, "{name}: {result:?}");
        let status = format!("PATCH {CLASS}/status");
        let expected = if is_written {
            vec![
                format!("PATCH {SECRETS}/{token}"),
                format!("PATCH {SECRETS}/{user_data}"),
                format!("PATCH {CLASS}"),
                status,
            ]
        } else {
            vec![status]
        };
        assert_eq!(writes(&scenario), expected, "{name}");
    }
}

/// Nodes of a class can be replaced while its version cannot be used.
#[tokio::test]
async fn a_class_whose_version_is_refused_keeps_its_configuration() {
    let mut shared = shared("us-east-1");
    // It is asked by HTTPS only, so it is not asked.
    shared.update_service = Some("http://updates.example.com/graph".to_owned());
    for (name, version, is_supported) in [
        ("no version", "latest", true),
        ("not found", "4.20.2", true),
        ("newer than the control plane", "4.20.4", false),
        ("newer by a minor version", "4.21.0", false),
        ("older than three minor versions", "4.16.9", false),
        ("back by a minor version", "4.19.9", false),
    ] {
        let class = class(&json!({ "version": version }), Some("0a1b2c3d"));
        let skew = if is_supported { "True" } else { "False" };
        let status = json!({ "status": {
            "version": "4.20.1",
            "releaseImage": "images.example.com/release:4.20.1",
            "conditions": [
                { "type": VERSION_RESOLVED, "status": "False", "reason": "ResolutionFailed" },
                { "type": SUPPORTED_SKEW, "status": skew },
            ],
        } });
        let status = Expect::patch(&format!("{CLASS}/status")).body(status);
        let scenario = server(&class, [written(status)]);
        let ctx = fixtures::context(&scenario);
        let is_settled = configure(&ctx, &class, &shared).await.unwrap();
        assert!(!is_settled, "{name}");
        assert_eq!(
            writes(&scenario),
            [format!("PATCH {CLASS}/status")],
            "{name}"
        );
        scenario.finish();
    }
}

/// Also if the program was killed there: the class names what there is.
#[tokio::test]
async fn a_configuration_that_is_not_written_is_not_named() {
    let shared = shared("us-east-1");
    let class = class(&json!({}), Some("0a1b2c3d"));
    let status = json!({ "status": { "version": "4.20.1" } });
    let scenario = server(
        &class,
        [
            Expect::post(SECRETS).answer(Answer::error(403, "Forbidden")),
            written(Expect::patch(&format!("{CLASS}/status")).body(status)),
        ],
    );
    let ctx = fixtures::context(&scenario);
    let error = configure(&ctx, &class, &shared).await.unwrap_err();
    assert!(
        error
            .to_string()
            .contains("Secret clusters-one/token-a-karpenter"),
        "{error}"
    );
    let expected = [format!("POST {SECRETS}"), format!("PATCH {CLASS}/status")];
    assert_eq!(writes(&scenario), expected);
    scenario.finish();
}

/// New nodes have the former version until the class names their configuration. A class that is gone needs no name.
#[tokio::test]
async fn a_class_that_cannot_name_its_configuration_has_a_status() {
    let shared = shared("us-east-1");
    let (_, token, user_data) = names_of(&shared);
    let class = class(&json!({}), Some("00000000"));
    for (code, reason, version) in [(403, "Forbidden", "4.20.1"), (404, "NotFound", "4.20.3")] {
        let status = json!({ "status": {
            "version": version,
            "conditions": [
                { "type": VERSION_RESOLVED, "status": "True" },
                { "type": SUPPORTED_SKEW, "status": "True" },
            ],
        } });
        let scenario = server(
            &class,
            [
                written(Expect::post(SECRETS)),
                written(Expect::patch(&format!("{SECRETS}/{token}"))),
                written(Expect::patch(&format!("{SECRETS}/{user_data}"))),
                Expect::patch(CLASS).answer(Answer::error(code, reason)),
                written(Expect::patch(&format!("{CLASS}/status")).body(status)),
            ],
        );
        let ctx = fixtures::context(&scenario);
        let result = configure(&ctx, &class, &shared).await;
        assert_eq!(result.is_ok(), code == 404, "{reason}: {result:?}");
        if let Err(error) = result {
            let expected = "failed to write OpenshiftEC2NodeClass a";
            assert_eq!(error.to_string(), expected);
        }
        scenario.finish();
    }
}

/// The finalizer changes the version of the class, which is named in the same pass all the same.
#[tokio::test]
async fn a_class_with_settings_of_kubelets_is_named_in_the_same_pass() {
    let class = class(&json!({ "kubelet": { "maxPods": 100 } }), None);
    let scenario = server(&class, []);
    let ctx = fixtures::context(&scenario);
    assert!(configure(&ctx, &class, &shared("us-east-1")).await.unwrap());
    let writes = writes(&scenario).into_iter();
    let others: Vec<_> = writes.filter(|it| !it.contains("/secrets")).collect();
    let expected = [
        format!("PATCH {CLASS}"),
        format!("PATCH {KUBELET}"),
        format!("PATCH {CLASS}"),
        format!("PATCH {CLASS}/status"),
    ];
    assert_eq!(others, expected);
}
