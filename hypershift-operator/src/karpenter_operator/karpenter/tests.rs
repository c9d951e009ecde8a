//! What is written for Karpenter, in which order, and when its machines end.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use support::testing::{Answer, Expect, Scenario};

use super::*;
use crate::karpenter_operator::fixtures;

const HCP: &str =
    "/apis/hypershift.openshift.io/v1beta1/namespaces/clusters-one/hostedcontrolplanes/one";
const TAINT: &str = "/api/v1/namespaces/clusters-one/configmaps/set-karpenter-taint";

/// The path of the Cluster of Cluster API.
fn cluster() -> String {
    let resource = fixtures::context(&Scenario::new([])).capi.cluster();
    let (version, plural) = (resource.api_version, resource.plural);
    format!("/apis/{version}/namespaces/clusters-one/{plural}/one-x7k2p")
}

fn read(hcp: &HostedControlPlane) -> Expect {
    Expect::get(HCP).answer(Answer::ok(&json!(hcp)))
}

#[tokio::test]
async fn machines_end_with_the_control_plane_or_with_its_cluster() {
    let mut ending = ObjectMeta::default();
    fixtures::delete(&mut ending);
    let (live, deleted) = (json!({ "metadata": {} }), json!({ "metadata": ending }));
    for (name, hcp_is_deleted, cluster_is, expected) in [
        ("both live", false, Some(Answer::ok(&live)), false),
        ("the cluster ends", false, Some(Answer::ok(&deleted)), true),
        (
            "no cluster",
            false,
            Some(Answer::error(404, "NotFound")),
            false,
        ),
        ("the control plane ends", true, None, true),
    ] {
        let mut hcp = fixtures::control_plane();
        if hcp_is_deleted {
            fixtures::delete(&mut hcp.metadata);
        }
        let calls = cluster_is.map(|answer| Expect::get(&cluster()).answer(answer));
        let scenario = Scenario::new(calls);
        let ctx = fixtures::context(&scenario);
        assert_eq!(is_ending(&ctx, &hcp).await.unwrap(), expected, "{name}");
        scenario.finish();
    }
}

/// A machine that was made without the finalizer would outlive the cluster.
#[tokio::test]
async fn the_finalizer_is_added_before_anything_else() {
    let hcp = fixtures::control_plane();
    let finalizer = json!({ "metadata": { "resourceVersion": "7", "finalizers": [names::KARPENTER_FINALIZER] } });
    let scenario = Scenario::new([
        read(&hcp),
        Expect::get(&cluster()).answer(Answer::error(404, "NotFound")),
        fixtures::namespace(),
        Expect::patch(HCP)
            .body(finalizer)
            .answer(Answer::error(409, "Conflict")),
    ]);
    pass(&fixtures::context(&scenario)).await.unwrap_err();
    scenario.finish();
}

#[tokio::test]
async fn a_paused_control_plane_is_not_changed() {
    let mut hcp = fixtures::control_plane();
    hcp.spec.paused_until = Some("true".to_owned());
    let absent = Expect::get(&cluster()).answer(Answer::error(404, "NotFound"));
    let scenario = Scenario::new([read(&hcp), absent]);
    let action = pass(&fixtures::context(&scenario)).await.unwrap();
    assert_eq!(action, Action::await_change());
    scenario.finish();
}

#[tokio::test]
async fn the_taint_is_written_to_its_own_config_map_only() {
    let hcp = fixtures::control_plane();
    let ours = json!({ "metadata": {
        "name": names::KARPENTER_TAINT, "annotations": { names::CLUSTER: "clusters/one" },
    } });
    let others = json!({ "metadata": { "name": names::KARPENTER_TAINT } });
    for (found, is_written) in [(&ours, true), (&others, false)] {
        let get = || Expect::get(TAINT).answer(Answer::ok(found));
        let written = Expect::patch(TAINT)
            .body(ours.clone())
            .answer(Answer::ok(&ours));
        let mut calls = vec![fixtures::namespace(), get()];
        if is_written {
            calls.extend([get(), written]);
        }
        let scenario = Scenario::new(calls);
        let done = write_taint(&fixtures::context(&scenario), &hcp).await;
        assert_eq!(done.is_ok(), is_written, "{done:?}");
        scenario.finish();
    }
}

#[test]
fn nodes_join_with_the_taint() {
    let map = taint(fixtures::NAMESPACE, &fixtures::control_plane()).unwrap();
    let manifest: Value = serde_json::from_str(map["data"]["config"].as_str().unwrap()).unwrap();
    let taints = &manifest["spec"]["kubeletConfig"]["registerWithTaints"];
    assert_eq!(taints[0]["key"], "karpenter.sh/unregistered");
    assert_eq!(taints[0]["effect"], "NoExecute");
}

#[test]
fn the_first_class_uses_subnets_and_security_groups_of_the_cluster() {
    let class = first_class("one-x7k2p").unwrap();
    assert_eq!(class.metadata.name.as_deref(), Some("default"));
    let spec = &class.data["spec"];
    let subnets = json!([{ "tags": {
        "kubernetes.io/role/internal-elb": "1", "kubernetes.io/cluster/one-x7k2p": "*",
    } }]);
    assert_eq!(spec["subnetSelectorTerms"], subnets);
    let groups = json!([{ "tags": { "karpenter.sh/discovery": "one-x7k2p" } }]);
    assert_eq!(spec["securityGroupSelectorTerms"], groups);
}

const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const CLASSES: &str = "/apis/karpenter.hypershift.openshift.io/v1/openshiftec2nodeclasses";

fn definition(name: &str) -> Value {
    json!({ "metadata": { "name": name }, "spec": { "group": "karpenter.sh" } })
}

/// The kinds are there before the first class, and ours before those that Karpenter reads.
#[tokio::test]
async fn kinds_are_written_in_order() {
    let names = [
        "openshiftec2nodeclasses.karpenter.hypershift.openshift.io",
        "nodepools.karpenter.sh",
        "nodeclaims.karpenter.sh",
    ];
    let calls = names.iter().flat_map(|name| {
        let path = format!("{CRDS}/{name}");
        let body = json!({ "metadata": { "name": name } });
        let written = Expect::patch(&path)
            .body(body)
            .answer(Answer::ok(&definition(name)));
        let missing = Answer::error(404, "NotFound");
        [Expect::get(&path).answer(missing), written]
    });
    let scenario = Scenario::new(calls);
    let of_karpenter = names[1..].iter().map(|name| definition(name)).collect();
    write_kinds(&fixtures::context(&scenario), of_karpenter)
        .await
        .unwrap();
    scenario.finish();
}

/// The hosted cluster may not respond yet, or refuse a kind: the next pass begins again.
#[tokio::test]
async fn a_kind_that_is_refused_ends_the_pass() {
    let path = format!("{CRDS}/openshiftec2nodeclasses.karpenter.hypershift.openshift.io");
    for (code, reason) in [
        (403, "Forbidden"),
        (422, "Invalid"),
        (503, "ServiceUnavailable"),
    ] {
        let scenario = Scenario::new([
            Expect::get(&path).answer(Answer::error(404, "NotFound")),
            Expect::patch(&path).answer(Answer::error(code, reason)),
        ]);
        let of_karpenter = vec![definition("nodepools.karpenter.sh")];
        let error = write_kinds(&fixtures::context(&scenario), of_karpenter)
            .await
            .unwrap_err();
        assert!(
            error.to_string().contains("CustomResourceDefinition"),
            "{error}"
        );
        scenario.finish();
    }
}

/// The class is the user's once it exists, also one that another replica has just created.
#[tokio::test]
async fn the_first_class_is_created_once() {
    let one = format!("{CLASSES}/default");
    let class = json!(first_class("one-x7k2p").unwrap());
    let found = Answer::ok(&class);
    let missing = || Answer::error(404, "NotFound");
    let body = json!({
        "metadata": { "name": "default" },
        "spec": { "securityGroupSelectorTerms": [{ "tags": { "karpenter.sh/discovery": "one-x7k2p" } }] },
    });
    for (name, read, created, is_ok) in [
        ("it exists", found.clone(), None, true),
        ("it is created", missing(), Some(found), true),
        (
            "another one is quicker",
            missing(),
            Some(Answer::error(409, "AlreadyExists")),
            true,
        ),
        (
            "its kind is not served yet",
            missing(),
            Some(missing()),
            false,
        ),
        (
            "it cannot be read",
            Answer::error(403, "Forbidden"),
            None,
            false,
        ),
    ] {
        let mut calls = vec![Expect::get(&one).answer(read)];
        calls.extend(created.map(|answer| Expect::post(CLASSES).body(body.clone()).answer(answer)));
        let scenario = Scenario::new(calls);
        let ctx = fixtures::context(&scenario);
        let written = write_first_class(&ctx, "one-x7k2p").await;
        assert_eq!(written.is_ok(), is_ok, "{name}: {written:?}");
        scenario.finish();
    }
}

/// A binary that was built without the kinds of Karpenter says so, and writes nothing to the hosted cluster.
#[tokio::test]
async fn nothing_is_written_to_the_hosted_cluster_without_kinds_of_karpenter() {
    let scenario = Scenario::new([]).lenient();
    let written = write_guest(&fixtures::context(&scenario), &fixtures::control_plane()).await;
    let is_built_with_them = karpenter_crds::read().is_ok();
    assert_eq!(written.is_ok(), is_built_with_them, "{written:?}");
    assert_eq!(!scenario.seen().is_empty(), is_built_with_them);
    if is_built_with_them {
        let last = scenario.seen().pop();
        assert_eq!(last, Some(format!("POST {CLASSES}")));
    }
}
