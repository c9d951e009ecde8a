//! Golden files of all that is built, a directory for each platform and side. `UPDATE_GOLDEN=1` rewrites them.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::{env, fs};

use api::group::Side;
use serde_json::json;

use super::*;
use crate::capi::Capi;
use crate::hosted_cluster::fixture;
use crate::node_pool::canonical;

/// The rows: a platform, a side, and its file.
const ROWS: [(&str, Side, &str); 5] = [
    ("aws", Side::Private, "aws-private"),
    ("aws", Side::Standard, "aws-standard"),
    ("agent", Side::Private, "agent-private"),
    ("kubevirt", Side::Private, "kubevirt-private"),
    ("none", Side::Private, "none-private"),
];

fn facts(platform: &str, side: Side) -> Facts {
    let mut cluster = fixture::hosted_cluster(platform);
    cluster.metadata.annotations = serde_json::from_value(json!({
        "hypershift.openshift.io/restart-date": "2030-01-31",
        "hypershift.openshift.io/private-capi-types": "true",
        "idpoverrides.hypershift.openshift.io/sso": "{}",
        "example.com/owner": "team-a",
    }))
    .unwrap();
    let mut facts = fixture::facts(cluster, side);
    // Without users of its own: what is built must not depend on chance.
    facts.management.chooses_users = true;
    facts
}

fn rendered(platform: &str, side: Side) -> String {
    let mut text = String::new();
    for planned in build(&facts(platform, side)).unwrap() {
        for object in planned.objects {
            let mut body = object.body;
            body["apiVersion"] = json!(object.resource.api_version);
            body["kind"] = json!(object.resource.kind);
            if let Some(status) = object.status {
                body["status"] = status;
            }
            // The order of keys is a matter of how serde_json was built.
            let body: Value = serde_json::from_str(&canonical::text(&body)).unwrap();
            let yaml = serde_saphyr::to_string(&body).unwrap();
            write!(text, "# step {}\n---\n{yaml}", planned.step.as_str()).unwrap();
        }
        for (kind, name) in planned.surplus {
            let step = planned.step.as_str();
            writeln!(text, "# step {step}: no {} {name}", kind.kind).unwrap();
        }
    }
    text
}

#[test]
fn what_is_built_is_what_is_written_down() {
    let directory = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden/hosted-cluster");
    for (platform, side, name) in ROWS {
        let path = directory.join(format!("{name}.yaml"));
        let found = rendered(platform, side);
        if env::var_os("UPDATE_GOLDEN").is_some() {
            fs::create_dir_all(&directory).unwrap();
            fs::write(&path, &found).unwrap();
        }
        let expected = fs::read_to_string(&path).unwrap_or_default();
        assert!(
            found == expected,
            "{} differs: UPDATE_GOLDEN=1 rewrites it",
            path.display()
        );
    }
}

/// The wall between the sides: nothing that is built for one names a group of the other.
#[test]
fn nothing_that_is_built_names_a_group_of_the_other_side() {
    for (platform, side, name) in ROWS {
        let plan = build(&facts(platform, side)).unwrap();
        let other = Capi::new(side.other());
        for object in plan.iter().flat_map(|it| &it.objects) {
            let groups = other.groups();
            assert!(
                !groups.contains(&object.resource.group),
                "{name}: {object:?}"
            );
            let rules = object.body["rules"].as_array().into_iter().flatten();
            for group in rules.flat_map(|rule| rule["apiGroups"].as_array().unwrap()) {
                let group = group.as_str().unwrap().to_owned();
                assert!(!groups.contains(&group), "{name}: {object:?} names {group}");
            }
        }
    }
}

#[test]
fn controllers_of_cluster_api_have_the_proxy_on_the_private_side_only() {
    for (side, expected) in [(Side::Private, true), (Side::Standard, false)] {
        let plan = build(&facts("aws", side)).unwrap();
        for name in [names::CLUSTER_API, names::CAPI_PROVIDER] {
            let mut objects = plan.iter().flat_map(|it| &it.objects);
            let found = objects
                .find(|it| it.resource.kind == "Deployment" && it.name() == name)
                .unwrap();
            let text = found.body.to_string();
            assert_eq!(
                text.contains("kube-apiserver-proxy"),
                expected,
                "{name} {side:?}"
            );
            assert_eq!(
                text.contains("images.example.com/capi-proxy:v1"),
                expected,
                "{name} {side:?}"
            );
        }
    }
}

/// The control plane has a machine-approver and an autoscaler on every platform, and they mount it.
#[test]
fn the_way_to_the_proxy_is_there_without_a_provider() {
    for (platform, side, expected) in [
        ("none", Side::Private, true),
        ("none", Side::Standard, false),
        ("aws", Side::Private, true),
    ] {
        let plan = build(&facts(platform, side)).unwrap();
        let mut objects = plan.iter().flat_map(|it| &it.objects);
        let found = objects
            .any(|it| it.resource.kind == "ConfigMap" && it.name() == "kube-apiserver-proxy");
        assert_eq!(found, expected, "{platform} {side:?}");
    }
}

#[test]
fn o07_a_cluster_on_the_standard_side_does_not_notice_that_the_proxy_is_installed() {
    let built = |image: Option<&str>| {
        let mut facts = facts("aws", Side::Standard);
        facts.images.capi_proxy = image.map(str::to_owned);
        let plan = build(&facts).unwrap();
        let objects = plan.iter().flat_map(|it| &it.objects);
        objects.map(|it| it.body.clone()).collect::<Vec<_>>()
    };
    assert_eq!(built(None), built(Some("images.example.com/capi-proxy:v1")));
}

#[test]
fn the_deployments_that_clean_up_outlive_the_control_plane() {
    let plan = build(&facts("aws", Side::Private)).unwrap();
    let deployments = plan
        .iter()
        .flat_map(|it| &it.objects)
        .filter(|it| it.resource.kind == "Deployment");
    for found in deployments {
        assert!(
            found.body["metadata"]["ownerReferences"].is_null(),
            "{found:?}"
        );
        let kept = found.name() != names::CONTROL_PLANE_OPERATOR;
        assert_eq!(
            found.body["metadata"]["finalizers"].is_array(),
            kept,
            "{found:?}"
        );
    }
}

#[test]
fn without_machine_management_there_is_no_cluster_api() {
    let mut facts = facts("aws", Side::Private);
    let annotations = facts.cluster.metadata.annotations.get_or_insert_default();
    annotations.insert(
        "hypershift.openshift.io/disable-machine-management".to_owned(),
        String::new(),
    );
    let plan = build(&facts).unwrap();
    let groups = facts.capi.groups();
    assert!(
        plan.iter()
            .flat_map(|it| &it.objects)
            .all(|it| !groups.contains(&it.resource.group))
    );
    let surplus: Vec<_> = plan
        .iter()
        .flat_map(|it| &it.surplus)
        .map(|(_, name)| name.as_str())
        .collect();
    assert!(surplus.contains(&names::CLUSTER_API) && surplus.contains(&names::CAPI_PROVIDER));
}

#[test]
fn an_infrastructure_that_is_not_known_yet_makes_no_cluster() {
    let mut facts = facts("agent", Side::Private);
    facts.ignition = None;
    let plan = build(&facts).unwrap();
    assert!(
        plan.iter()
            .flat_map(|it| &it.objects)
            .all(|it| it.resource.kind != "Cluster")
    );
}

/// Check T09: an object of the control plane is not overwritten, whatever validation said.
#[test]
fn no_copy_takes_the_place_of_an_object_of_the_control_plane() {
    for (name, is_occupied, expected) in [
        ("webhook", false, true),
        ("webhook", true, false),
        ("capi-migration-journal", false, false),
    ] {
        let mut cluster = fixture::hosted_cluster("none");
        cluster.spec.audit_webhook = Some(serde_json::from_value(json!({ "name": name })).unwrap());
        let mut facts = fixture::facts(cluster, Side::Private);
        if is_occupied {
            let references = facts.referenced.iter().map(|(it, _)| it.clone());
            facts.occupied = references.filter(|it| it.name == name).collect();
        }
        let plan = build(&facts).unwrap();
        let mut objects = plan.iter().flat_map(|it| &it.objects);
        let is_copied = objects.any(|it| it.resource.kind == "Secret" && it.name() == name);
        assert_eq!(is_copied, expected, "{name} {is_occupied}");
    }
}
