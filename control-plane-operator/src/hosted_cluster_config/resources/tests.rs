//! Passes against a mock API server.

use kube::api::DynamicObject;
use serde_json::json;
use support::testing::{Answer, Expect, Scenario};

use super::super::NodeClients;
use super::cache::Served;
use super::*;

#[test]
fn csr_approver_binding_depends_on_node_clients() {
    let has_approver = |clients| {
        let objects = own::objects(clients);
        objects
            .iter()
            .any(|object| object.key().name == "csr-approver")
    };
    assert!(has_approver(NodeClients::Everybody));
    assert!(!has_approver(NodeClients::Machines));
}

/// Finding F02: kubelets authorize the user of the API server's client certificate, which is the one that PKI issues.
#[test]
fn api_server_may_use_the_kubelet_api() {
    for clients in [NodeClients::Everybody, NodeClients::Machines] {
        let granted = own::objects(clients).iter().any(|object| {
            let subject = &object.value["subjects"][0];
            object.value["roleRef"]["name"] == "system:kubelet-api-admin"
                && subject["kind"] == "User"
                && subject["name"] == "system:kube-apiserver"
        });
        assert!(granted, "{clients:?}");
    }
}

#[test]
fn failures_are_reported_with_their_cause() {
    let good = condition(&Ok(()));
    assert_eq!((good.status, good.reason), (Status::True, "AsExpected"));
    let bad = condition(&Err(Error::waiting("the address of the API server")));
    assert_eq!((bad.status, bad.reason), (Status::False, "ReconcileError"));
    assert_eq!(bad.message, "waiting for the address of the API server");
    let both = vec![Error::waiting("one"), Error::waiting("another")];
    let bad = condition(&Err(Error::Several(both)));
    assert_eq!(bad.message, "waiting for one; waiting for another");
    let long = condition(&Err(Error::waiting("ä".repeat(1000))));
    assert!(long.message.len() <= 1024 && long.message.ends_with("..."));
}

fn control_plane() -> Value {
    json!({
        "metadata": { "name": "hcp", "annotations": {} },
        "spec": {
            "platform": { "type": "None" }, "dns": { "baseDomain": "example.com" },
            "infraID": "infra", "issuerURL": "https://issuer.example.com",
        },
        "status": { "controlPlaneEndpoint": { "host": "api.example.com", "port": 443 } },
    })
}

fn resources(scenario: &Scenario) -> Resources {
    Resources {
        cache: GuestCache::new(scenario.client()),
        sources: Sources::new().0,
        writer: Writer::new(scenario.client(), "test"),
        releases: Releases::new(payload::Options::default()).unwrap(),
        settings: Settings::default(),
        versions: Release::default(),
        is_legacy_deleted: AtomicBool::new(false),
        password_hash: PasswordHash::default(),
    }
}

/// Runs the steps, and returns the errors.
async fn run(resources: &Resources, steps: &[&str]) -> Vec<String> {
    let (hcp, objects) = (control_plane(), Objects::default());
    let release = Release {
        version: "4.20.0".to_owned(),
        ..Release::default()
    };
    let mut pass = Pass {
        resources,
        hcp: &hcp,
        release: &release,
        objects: &objects,
        random: &[0; 96],
        now: Timestamp::UNIX_EPOCH,
        guest: resources.cache.snapshot(),
        errors: Vec::new(),
    };
    for step in STEPS.iter().filter(|step| steps.contains(&step.name)) {
        pass.run(*step, &resources.settings).await;
    }
    pass.errors.iter().map(|error| chain(error)).collect()
}

fn namespace(name: &str) -> Value {
    json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name } })
}

#[tokio::test]
async fn second_pass_sends_no_requests() {
    let scenario = Scenario::new([]).lenient();
    let mut resources = resources(&scenario);
    resources
        .cache
        .serve(&["v1", "rbac.authorization.k8s.io/v1"]);
    for name in ["kube-system", "openshift-config-managed"] {
        resources.cache.add(namespace(name));
    }
    let steps = ["namespaces", "RBAC", "certificate authorities"];
    assert_eq!(run(&resources, &steps).await, [""; 0]);
    assert!(scenario.seen().len() > 50, "{:?}", scenario.seen());
    let scenario = Scenario::new([]);
    resources.writer = Writer::new(scenario.client(), "test");
    assert_eq!(run(&resources, &steps).await, [""; 0]);
    scenario.finish();
}

#[tokio::test]
async fn kinds_that_are_not_served_are_skipped() {
    let scenario = Scenario::new([]);
    let resources = resources(&scenario);
    resources.cache.serve(&["v1"]);
    resources.cache.not_served("config.openshift.io/v1");
    let steps = ["ClusterVersion", "ClusterOperators"];
    assert_eq!(run(&resources, &steps).await, [""; 0]);
    scenario.finish();
}

#[tokio::test]
async fn objects_without_their_namespace_are_skipped() {
    let scenario = Scenario::new([]);
    let resources = resources(&scenario);
    resources.cache.serve(&["v1"]);
    assert_eq!(run(&resources, &["installation"]).await, [""; 0]);
    scenario.finish();
}

#[tokio::test]
async fn failures_do_not_prevent_other_objects() {
    let path = "/api/v1/namespaces";
    let refused = Expect::post(path).answer(Answer::error(403, "Forbidden"));
    let scenario =
        Scenario::new([Expect::get(&format!("{path}/openshift-apiserver"))
            .answer(Answer::error(404, "NotFound"))])
        .always([refused])
        .lenient();
    let resources = resources(&scenario);
    resources
        .cache
        .serve(&["v1", "rbac.authorization.k8s.io/v1"]);
    resources.cache.add(namespace("kube-system"));
    let errors = run(&resources, &["namespaces", "RBAC"]).await;
    assert_eq!(errors.len(), 11, "{errors:?}");
    assert!(errors[0].starts_with("failed to create Namespace openshift-apiserver: "));
    let roles = scenario.seen();
    let roles = roles
        .iter()
        .filter(|call| call.starts_with("POST") && call.contains("clusterroles"));
    assert!(roles.count() >= 9);
}

#[tokio::test]
async fn objects_without_the_label_are_read_once_and_then_labelled() {
    let live = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": { "name": "openshift-install", "namespace": "openshift-config", "resourceVersion": "3" },
        "data": { "version": "4.1.0" },
    });
    let path = "/api/v1/namespaces/openshift-config/configmaps/openshift-install";
    let scenario = Scenario::new([
        Expect::get(path).answer(Answer::ok(&live)),
        Expect::patch(path)
            .body(json!({ "metadata": { "labels": { "hypershift.openshift.io/managed": "true" } }, "data": { "invoker": "hypershift" } }))
            .answer(Answer::ok(&live)),
    ]);
    let resources = resources(&scenario);
    resources.cache.serve(&["v1"]);
    resources.cache.add(namespace("openshift-config"));
    assert_eq!(run(&resources, &["installation"]).await, [""; 0]);
    scenario.finish();
}

#[tokio::test(start_paused = true)]
async fn kinds_are_watched_when_their_definition_appears() {
    let path = "/apis/config.openshift.io/v1/dnses";
    let object: DynamicObject = serde_json::from_value(json!({
        "apiVersion": "config.openshift.io/v1", "kind": "DNS", "metadata": { "name": "cluster" },
    }))
    .unwrap();
    let found = serde_json::to_value(object).unwrap();
    let scenario = Scenario::new([
        Expect::get(path).answer(Answer::error(404, "NotFound")),
        Expect::get(path).answer(Answer::list(&[found])),
    ])
    .always([Expect::get(&format!("{path}?watch=true")).answer(Answer::error(500, "Unavailable"))]);
    let cache = GuestCache::new(scenario.client());
    let key = desired::Key::new("config.openshift.io/v1", "DNS", "", "cluster");
    let wake = support::controller::Wake::new();
    let watch = cache.run_kind("config.openshift.io/v1", "DNS", wake);
    let changes = async {
        tokio::time::sleep(std::time::Duration::from_mins(1)).await;
        assert_eq!(cache.served(&key), Served::No);
        // Another definition.
        cache.define("images.config.openshift.io".to_owned(), "1".to_owned());
        tokio::time::sleep(std::time::Duration::from_mins(1)).await;
        assert_eq!(scenario.seen().len(), 1);
        cache.define("dnses.config.openshift.io".to_owned(), "1".to_owned());
        tokio::time::sleep(std::time::Duration::from_mins(1)).await;
        assert_eq!(cache.served(&key), Served::Yes);
        assert!(cache.snapshot().get(&key).is_some());
    };
    tokio::select! {
        () = watch => panic!("the watch ended"),
        () = changes => {}
    }
    scenario.finish();
}
