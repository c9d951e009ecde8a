//! Which configuration a class gets, and the order of writes.

use k8s_openapi::ByteString;
use support::testing::{Answer, Expect, Scenario};

use super::*;
use crate::karpenter_operator::classes::{READY, VERSION_RESOLVED};
use crate::karpenter_operator::fixtures;

const HASH: &str = "0a1b2c3d";
const HCP: &str =
    "/apis/hypershift.openshift.io/v1beta1/namespaces/clusters-one/hostedcontrolplanes/one";
const POLICIES: &str = "/apis/admissionregistration.k8s.io/v1";
const CLASSES: &str = "/apis/karpenter.hypershift.openshift.io/v1/openshiftec2nodeclasses";
const EC2: &str = "/apis/karpenter.k8s.aws/v1/ec2nodeclasses";
const SECRETS: &str = "/api/v1/namespaces/clusters-one/secrets";
const SUBNETS: &str = "/api/v1/namespaces/clusters-one/configmaps/karpenter-subnets";

fn class(name: &str, hash: Option<&str>) -> OpenshiftEc2NodeClass {
    let mut class = fixtures::class(name, &json!({ "tags": { "team": "red" } }));
    if let Some(hash) = hash {
        class
            .annotations_mut()
            .insert(CURRENT.to_owned(), hash.to_owned());
    }
    let status = json!({ "conditions": [{
        "type": VERSION_RESOLVED, "status": "True", "reason": "r", "message": "",
        "lastTransitionTime": "2030-01-01T00:00:00Z",
    }] });
    class.status = serde_json::from_value(status).unwrap();
    class
}

fn secret(name: &str, owner: &str) -> Secret {
    let secret = json!({ "metadata": {
        "name": name, "namespace": fixtures::NAMESPACE,
        "annotations": { NODE_POOL.key(): owner },
        "labels": { AMIS[0]: "ami-1", AMIS[1]: "ami-2" },
    } });
    let mut secret: Secret = serde_json::from_value(secret).unwrap();
    let data = ByteString(format!("data of {name}").into_bytes());
    secret.data = Some([(VALUE.to_owned(), data)].into());
    secret
}

fn own(class: &str) -> Secret {
    let name = names::user_data(&pool_name(class), HASH);
    secret(&name, &format!("clusters-one/{class}-karpenter"))
}

#[test]
fn a_class_gets_user_data_and_images_of_its_configuration() {
    let hcp = fixtures::control_plane();
    let secrets = [own("b"), own("a")];
    let object = wanted(&class("a", Some(HASH)), &hcp, &secrets, true)
        .object
        .unwrap();
    let spec = &object["spec"];
    assert_eq!(
        spec["userData"],
        format!("data of user-data-a-karpenter-{HASH}")
    );
    assert_eq!(
        spec["amiSelectorTerms"],
        json!([{ "id": "ami-1" }, { "id": "ami-2" }])
    );
    assert_eq!(spec["instanceProfile"], "one-x7k2p-worker-profile");
    assert_eq!(spec["tags"]["team"], "red");
}

/// Check T09: users of the hosted cluster choose the annotation of a class, and Secrets of others are in the same namespace.
#[test]
fn user_data_of_others_is_not_given_away() {
    let foreign = |owner: &str| {
        let name = names::user_data(&pool_name("a"), HASH);
        secret(&name, owner)
    };
    for (name, hash, secrets, has_place, expected) in [
        ("its own", Some(HASH), vec![own("a")], true, None),
        ("none yet", None, vec![own("a")], true, Some(WAITING)),
        (
            "not written yet",
            Some("00000000"),
            vec![own("a")],
            true,
            Some(WAITING),
        ),
        (
            "of a NodePool",
            Some(HASH),
            vec![foreign("clusters/a-karpenter")],
            true,
            Some(WAITING),
        ),
        (
            "of another class",
            Some(HASH),
            vec![foreign("clusters-one/b-karpenter")],
            true,
            Some(WAITING),
        ),
        (
            "a name of another class",
            Some("b-karpenter-0a1b2c3d"),
            vec![own("b")],
            true,
            Some(WAITING),
        ),
        (
            "no place",
            Some(HASH),
            vec![own("a")],
            false,
            Some("TooManyClasses"),
        ),
    ] {
        let hcp = fixtures::control_plane();
        let wanted = wanted(&class("a", hash), &hcp, &secrets, has_place);
        let found = wanted.object.err().map(|it| it.reason);
        assert_eq!(found, expected, "{name}");
    }
}

fn list<T: serde::Serialize>(path: &str, items: &[T]) -> Expect {
    let items: Vec<_> = items.iter().map(|it| json!(it)).collect();
    Expect::get(path).answer(Answer::list(&items))
}

fn absent(path: &str) -> Expect {
    Expect::get(path).answer(Answer::error(404, "NotFound"))
}

fn write(path: &str, kind: &Value) -> [Expect; 2] {
    let written = Expect::patch(path).answer(Answer::ok(kind));
    [absent(path), written]
}

/// What is read before classes are written.
fn beginning(classes: &[OpenshiftEc2NodeClass], secrets: &[Secret], live: &[Value]) -> Vec<Expect> {
    let hcp = Expect::get(HCP).answer(Answer::ok(&json!(fixtures::control_plane())));
    let object = json!({ "metadata": { "name": "x" } });
    let mut calls = vec![hcp, fixtures::namespace()];
    for (plural, name) in [
        (
            "validatingadmissionpolicies",
            "karpenter.ec2nodeclass.hypershift.io",
        ),
        (
            "validatingadmissionpolicybindings",
            "karpenter-binding.ec2nodeclass.hypershift.io",
        ),
    ] {
        calls.extend(write(&format!("{POLICIES}/{plural}/{name}"), &object));
    }
    calls.extend([
        list(CLASSES, classes),
        list(SECRETS, secrets),
        list(EC2, live),
    ]);
    calls
}

/// Also if the program was killed after any of these calls: the next pass begins again.
#[tokio::test]
async fn the_policy_is_written_before_the_first_class() {
    let class = class("a", Some(HASH));
    let object = json!({ "metadata": { "name": "x" } });
    let live = json!({
        "apiVersion": "karpenter.k8s.aws/v1", "kind": "EC2NodeClass", "metadata": { "name": "a" },
        "status": {
            "subnets": [{ "id": "subnet-01", "zone": "us-east-1a" }],
            "conditions": [{ "type": READY, "status": "True", "reason": "Ready" }],
        },
    });
    let mut calls = beginning(std::slice::from_ref(&class), &[own("a")], &[live]);
    calls.extend(write(&format!("{EC2}/a"), &object));
    let ready = json!({ "status": {
        "conditions": [{ "type": READY, "status": "True" }],
        "subnets": [{ "id": "subnet-01" }],
    } });
    calls.extend([
        Expect::get(&format!("{CLASSES}/a")).answer(Answer::ok(&json!(class))),
        Expect::patch(&format!("{CLASSES}/a/status"))
            .body(ready)
            .answer(Answer::ok(&json!(class))),
        absent(SUBNETS),
    ]);
    calls.extend(write(SUBNETS, &object));
    let scenario = Scenario::new(calls);
    let action = pass(&fixtures::context(&scenario)).await.unwrap();
    assert_eq!(action, Action::await_change());
    scenario.finish();
}

#[tokio::test]
async fn a_class_without_user_data_is_reported_and_evaluated_again() {
    let class = class("a", None);
    let object = json!({ "metadata": { "name": "x" } });
    let mut calls = beginning(std::slice::from_ref(&class), &[], &[]);
    let waits = json!({ "status": { "conditions": [{ "type": READY, "status": "False", "reason": WAITING }] } });
    calls.extend([
        Expect::get(&format!("{CLASSES}/a")).answer(Answer::ok(&json!(class))),
        Expect::patch(&format!("{CLASSES}/a/status"))
            .body(waits)
            .answer(Answer::ok(&json!(class))),
        absent(SUBNETS),
    ]);
    calls.extend(write(SUBNETS, &object));
    let scenario = Scenario::new(calls);
    let action = pass(&fixtures::context(&scenario)).await.unwrap();
    assert_eq!(action, Action::requeue(AGAIN));
    scenario.finish();
}
