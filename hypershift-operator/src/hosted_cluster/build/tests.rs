//! Golden files of all rendered objects, one for each platform and types. `UPDATE_GOLDEN=1` rewrites them.

mod settings;

use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::{env, fs};

use api::group::CapiTypes;
use api::hypershift::v1beta1::{HostedControlPlane, HostedControlPlaneSpec};
use control_plane_component::node_config::configuration_hash;
use serde_json::{Value, json};

use super::*;
use crate::canonical;
use crate::capi::Capi;
use crate::facts::auto_node::AutoNode;
use crate::facts::{ReleaseIs, fixture};

/// The rows: platform, types, file.
const ROWS: [(&str, CapiTypes, &str); 9] = [
    ("aws", CapiTypes::Private, "aws-private"),
    ("aws", CapiTypes::Standard, "aws-standard"),
    (AUTO_NODE, CapiTypes::Private, "aws-auto-node-private"),
    (NEWER, CapiTypes::Private, "aws-4.23-private"),
    ("agent", CapiTypes::Private, "agent-private"),
    ("azure", CapiTypes::Private, "azure-private"),
    ("kubevirt", CapiTypes::Private, "kubevirt-private"),
    ("none", CapiTypes::Private, "none-private"),
    ("powervs", CapiTypes::Private, "powervs-private"),
];

/// AWS, with Karpenter.
const AUTO_NODE: &str = "aws-auto-node";
/// AWS, with a release whose Cluster API controllers have flags for TLS.
const NEWER: &str = "aws-4.23";

fn facts(platform: &str, types: CapiTypes) -> Facts {
    let (is_auto_node, is_newer) = (platform == AUTO_NODE, platform == NEWER);
    let is_aws = is_auto_node || is_newer;
    let platform = if is_aws { "aws" } else { platform };
    let mut cluster = fixture::hosted_cluster(platform);
    cluster.metadata.annotations = serde_json::from_value(json!({
        "hypershift.openshift.io/restart-date": "2030-01-31",
        "hypershift.openshift.io/private-capi-types": "true",
        "idpoverrides.hypershift.openshift.io/sso": "{}",
        "example.com/owner": "team-a",
    }))
    .unwrap();
    let mut facts = fixture::facts(cluster, types);
    // Without generated user IDs, so that rendering is deterministic.
    facts.management.chooses_users = true;
    if is_auto_node {
        with_karpenter(&mut facts);
    }
    if is_newer {
        facts.release = ReleaseIs::Read(Arc::new(fixture::release_of("4.23.0")));
    }
    facts
}

/// A control plane that Karpenter can be added to.
fn with_karpenter(facts: &mut Facts) {
    fixture::with_auto_node(&mut facts.cluster);
    facts.auto_node = Some(AutoNode {
        has_kubeconfig: true,
        ..AutoNode::default()
    });
    let mut control_plane = HostedControlPlane::new("one", control_plane_spec(facts));
    let status = json!({
        "ready": true, "initialized": true,
        "kubeConfig": { "name": "admin-kubeconfig", "key": "kubeconfig" },
    });
    control_plane.status = serde_json::from_value(status).unwrap();
    facts.control_plane = Some(control_plane);
}

/// The names of rendered objects with Karpenter's, and of those that are deleted.
fn of_karpenter(facts: &Facts) -> (Vec<String>, Vec<String>) {
    let plan = build(facts).unwrap();
    let is_its = |name: &str| name.contains("karpenter");
    let objects = plan.iter().flat_map(|it| &it.objects);
    let objects = objects.map(|it| format!("{} {}", it.resource.kind, it.name()));
    let obsolete = plan.iter().flat_map(|it| &it.obsolete);
    let obsolete = obsolete.map(|(kind, name)| format!("{} {name}", kind.kind));
    (
        objects.filter(|it| is_its(it)).collect(),
        obsolete.filter(|it| is_its(it)).collect(),
    )
}

type Change = fn(&mut Facts);

#[test]
fn karpenter_operator_is_added_once_its_pods_can_start() {
    let ready = facts(AUTO_NODE, CapiTypes::Private);
    let (objects, obsolete) = of_karpenter(&ready);
    let expected = [
        "Secret karpenter-credentials",
        "Role karpenter-operator",
        "PodMonitor karpenter-operator",
        "RoleBinding karpenter-operator",
        "ServiceAccount karpenter-operator",
        "Deployment karpenter-operator",
    ];
    assert_eq!(objects, expected);
    assert_eq!(obsolete, [""; 0]);
    let secret = "Secret karpenter-credentials".to_owned();
    let changes: [(&str, Change); 4] = [
        ("no kubeconfig", |it| it.control_plane = None),
        ("no access", |it| it.auto_node = Some(AutoNode::default())),
        ("no ignition endpoint", |it| it.ignition = None),
        ("no image", |it| it.images.own = None),
    ];
    for (name, change) in changes {
        let mut facts = ready.clone();
        change(&mut facts);
        let (objects, obsolete) = of_karpenter(&facts);
        assert_eq!(objects, std::slice::from_ref(&secret), "{name}");
        assert_eq!(obsolete, [""; 0], "{name}");
    }
    let mut facts = ready;
    facts.management.monitors = false;
    let (objects, _) = of_karpenter(&facts);
    assert!(objects.iter().all(|it| !it.starts_with("PodMonitor")));
}

#[test]
fn nothing_of_karpenter_is_left_when_it_is_switched_off() {
    let mut off = facts(AUTO_NODE, CapiTypes::Private);
    off.cluster.spec.auto_node = None;
    let (objects, obsolete) = of_karpenter(&off);
    assert_eq!(objects, [""; 0]);
    for name in ["karpenter-operator", "karpenter"] {
        for kind in ["Deployment", "Role", "ControlPlaneComponent", "PodMonitor"] {
            let object = format!("{kind} {name}");
            assert!(obsolete.contains(&object), "{object}: {obsolete:?}");
        }
    }
    for object in [
        "Secret karpenter-credentials",
        "ConfigMap set-karpenter-taint",
    ] {
        assert!(obsolete.iter().any(|it| it == object), "{obsolete:?}");
    }
    // A cluster that never had it makes no requests about it.
    let without = of_karpenter(&facts("aws", CapiTypes::Private));
    assert_eq!(without, (Vec::new(), Vec::new()));
}

fn rendered(platform: &str, types: CapiTypes) -> String {
    let mut text = String::new();
    for planned in build(&facts(platform, types)).unwrap() {
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
        for (kind, name) in planned.obsolete {
            let step = planned.step.as_str();
            writeln!(text, "# step {step}: no {} {name}", kind.kind).unwrap();
        }
        for outside in planned.outdated {
            let (step, kind) = (planned.step.as_str(), outside.resource.kind);
            let place = format!("{}/{}", outside.namespace, outside.name);
            writeln!(text, "# step {step}: no {kind} {place}").unwrap();
        }
    }
    text
}

#[test]
fn rendered_objects_match_the_golden_files() {
    let directory = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden/hosted-cluster");
    for (platform, types, name) in ROWS {
        let path = directory.join(format!("{name}.yaml"));
        let found = rendered(platform, types);
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

/// Check T05: the image of the control-plane-operator has the label of pods that satisfy `restricted`.
#[test]
fn deployments_satisfy_the_restricted_standard() {
    for (platform, types, name) in ROWS {
        let mut facts = facts(platform, types);
        facts.management.chooses_users = false;
        let mut deployments = 0;
        for object in build(&facts).unwrap().into_iter().flat_map(|it| it.objects) {
            if object.resource.kind == "Deployment" {
                deployments += 1;
                let pod = &object.body["spec"]["template"]["spec"];
                let found = support::testing::restricted_violations(pod);
                assert!(found.is_empty(), "{name}: {}: {found:?}", object.name());
            }
        }
        assert!(deployments > 0, "{name}");
    }
}

/// What holds of the pods of every control plane, before one runs: the workloads that this operator makes, and the policies
/// that keep other pods from the management API.
#[test]
fn invariants_hold_of_workloads_and_policies() {
    for (platform, types, name) in ROWS {
        let mut facts = facts(platform, types);
        facts.management.chooses_users = false;
        let plan = build(&facts).unwrap();
        let objects = plan.iter().flat_map(|it| &it.objects);
        let objects: Vec<_> = objects
            .map(|object| {
                let mut body = object.body.clone();
                body["kind"] = json!(object.resource.kind);
                body
            })
            .collect();
        let is_kind = |kind: &'static str| objects.iter().filter(move |it| it["kind"] == kind);
        assert!(is_kind("Deployment").count() > 0, "{name}");
        // Other platforms have no such policy.
        let has_policy = platform.starts_with("aws");
        let observed = invariants::Observed {
            namespace: is_kind("Namespace").next().unwrap().clone(),
            management_api: if has_policy {
                facts.management.api_server.clone()
            } else {
                Vec::new()
            },
            objects: objects.clone(),
            ..invariants::Observed::default()
        };
        let found = invariants::findings(&observed);
        let found: Vec<_> = found.iter().map(ToString::to_string).collect();
        assert!(found.is_empty(), "{name}: {found:#?}");
    }
}

/// Check T05: the author of a cluster can choose images that run with these roles, and the tenant policy trusts the verb
/// `override`.
#[test]
fn no_role_of_a_control_plane_writes_hosted_clusters() {
    for (platform, types, name) in ROWS {
        let mut rules = 0;
        let plan = build(&facts(platform, types)).unwrap();
        for object in plan.iter().flat_map(|it| &it.objects) {
            for rule in object.body["rules"].as_array().into_iter().flatten() {
                rules += 1;
                let writes = support::testing::writes_hosted_clusters(rule);
                assert!(!writes, "{name}: {object:?}: {rule}");
            }
        }
        assert!(rules > 10, "{name}: {rules}");
    }
}

/// Objects of private types never contain a standard group, and vice versa.
#[test]
fn rendered_objects_use_the_groups_of_their_types_only() {
    for (platform, types, name) in ROWS {
        let plan = build(&facts(platform, types)).unwrap();
        let other = Capi::new(types.other());
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
fn capi_controllers_have_the_proxy_with_private_types_only() {
    for (types, expected) in [(CapiTypes::Private, true), (CapiTypes::Standard, false)] {
        let plan = build(&facts("aws", types)).unwrap();
        for name in [names::CLUSTER_API, names::CAPI_PROVIDER] {
            let mut objects = plan.iter().flat_map(|it| &it.objects);
            let found = objects
                .find(|it| it.resource.kind == "Deployment" && it.name() == name)
                .unwrap();
            let text = found.body.to_string();
            assert_eq!(
                text.contains("kube-apiserver-proxy"),
                expected,
                "{name} {types:?}"
            );
            assert_eq!(
                text.contains("images.example.com/capi-proxy:v1"),
                expected,
                "{name} {types:?}"
            );
        }
    }
}

/// The control plane has a machine-approver and an autoscaler on every platform, and they mount it.
#[test]
fn the_proxy_config_map_does_not_depend_on_a_provider() {
    for (platform, types, expected) in [
        ("none", CapiTypes::Private, true),
        ("none", CapiTypes::Standard, false),
        ("aws", CapiTypes::Private, true),
    ] {
        let plan = build(&facts(platform, types)).unwrap();
        let mut objects = plan.iter().flat_map(|it| &it.objects);
        let found = objects
            .any(|it| it.resource.kind == "ConfigMap" && it.name() == "kube-apiserver-proxy");
        assert_eq!(found, expected, "{platform} {types:?}");
    }
}

#[test]
fn images_of_the_core_controllers_have_an_order() {
    for (annotation, flag, expected) in [
        (None, None, "/cluster-capi-controllers"),
        (None, Some("images.example.com/b"), "images.example.com/b"),
        (
            Some("images.example.com/a"),
            Some("images.example.com/b"),
            "images.example.com/a",
        ),
    ] {
        let mut facts = facts("aws", CapiTypes::Private);
        let annotations = facts.cluster.metadata.annotations.get_or_insert_default();
        let key = "hypershift.openshift.io/capi-manager-image".to_owned();
        let given = annotation.map(|it: &str| (key, it.to_owned()));
        annotations.extend(given);
        facts.images.cluster_api = flag.map(str::to_owned);
        let plan = build(&facts).unwrap();
        let mut objects = plan.iter().flat_map(|it| &it.objects);
        let found = objects
            .find(|it| it.resource.kind == "Deployment" && it.name() == names::CLUSTER_API)
            .unwrap();
        let containers = &found.body["spec"]["template"]["spec"]["containers"];
        let mut containers = containers.as_array().unwrap().iter();
        let has = containers.any(|it| it["image"].as_str().unwrap().contains(expected));
        assert!(has, "{annotation:?} {flag:?}: {found:?}");
    }
}

#[test]
fn an_installed_proxy_does_not_change_standard_clusters() {
    let built = |image: Option<&str>| {
        let mut facts = facts("aws", CapiTypes::Standard);
        facts.images.capi_proxy = image.map(str::to_owned);
        let plan = build(&facts).unwrap();
        let objects = plan.iter().flat_map(|it| &it.objects);
        objects.map(|it| it.body.clone()).collect::<Vec<_>>()
    };
    assert_eq!(built(None), built(Some("images.example.com/capi-proxy:v1")));
}

#[test]
fn deployments_with_cleanup_have_the_component_finalizer() {
    let plan = build(&facts("aws", CapiTypes::Private)).unwrap();
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
fn disabling_machine_management_removes_cluster_api() {
    let mut facts = facts("aws", CapiTypes::Private);
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
    let obsolete: Vec<_> = plan
        .iter()
        .flat_map(|it| &it.obsolete)
        .map(|(_, name)| name.as_str())
        .collect();
    assert!(obsolete.contains(&names::CLUSTER_API) && obsolete.contains(&names::CAPI_PROVIDER));
}

/// A provider ignores an object that is marked as external, so one that the provider reconciles must not be marked.
#[test]
fn infrastructure_is_external_where_the_provider_creates_nothing() {
    for (platform, kind, expected) in [
        ("aws", "AWSCluster", true),
        ("kubevirt", "KubevirtCluster", true),
        ("agent", "AgentCluster", false),
    ] {
        let plan = build(&facts(platform, CapiTypes::Private)).unwrap();
        let mut objects = plan.iter().flat_map(|it| &it.objects);
        let found = objects.find(|it| it.resource.kind == kind).unwrap();
        let managed_by = &found.body["metadata"]["annotations"][api::group::MANAGED_BY];
        assert_eq!(managed_by == "external", expected, "{platform}");
        let ready = found.status.as_ref().map(|it| it["ready"] == true);
        assert_eq!(ready, expected.then_some(true), "{platform}");
    }
}

/// Earlier versions named a `KubevirtCluster` by the HostedCluster: a live Cluster keeps the one that it refers to.
#[test]
fn kubevirt_clusters_are_named_by_infra_id_unless_they_exist() {
    for (live, expected) in [(None, "one-x7k2p"), (Some("one"), "one")] {
        let mut facts = facts("kubevirt", CapiTypes::Private);
        facts.infrastructure_name = live.map(str::to_owned);
        let plan = build(&facts).unwrap();
        let objects = || plan.iter().flat_map(|it| &it.objects);
        let found = objects().find(|it| it.resource.kind == "KubevirtCluster");
        assert_eq!(found.unwrap().name(), expected, "{live:?}");
        let cluster = objects().find(|it| it.resource.kind == "Cluster").unwrap();
        let reference = &cluster.body["spec"]["infrastructureRef"];
        assert_eq!(reference["name"], expected, "{live:?}");
    }
}

/// Tokens of NodePools have the hash of the HostedCluster's configuration, and the ignition server compares it with that of
/// the HostedControlPlane.
#[test]
fn the_configuration_has_the_same_hash_in_the_control_plane() {
    let proxy = json!({ "httpProxy": "http://proxy.example.com:3128", "trustedCA": { "name": "proxy-ca" } });
    for configuration in [json!(null), json!({}), json!({ "proxy": proxy })] {
        let mut facts = facts("aws", CapiTypes::Private);
        facts.cluster.spec.configuration = serde_json::from_value(configuration).unwrap();
        // As the control-plane-operator reads it.
        let written = serde_json::to_value(control_plane_spec(&facts)).unwrap();
        let read: HostedControlPlaneSpec = serde_json::from_value(written).unwrap();
        assert_eq!(
            configuration_hash(read.configuration.as_ref()),
            configuration_hash(facts.cluster.spec.configuration.as_ref())
        );
    }
}

#[test]
fn no_capi_cluster_before_the_infrastructure_is_known() {
    let mut facts = facts("agent", CapiTypes::Private);
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
fn copies_never_overwrite_control_plane_objects() {
    for (name, is_occupied, expected) in [
        ("webhook", false, true),
        ("webhook", true, false),
        ("capi-migration-journal", false, false),
    ] {
        let mut cluster = fixture::hosted_cluster("none");
        cluster.spec.audit_webhook = Some(serde_json::from_value(json!({ "name": name })).unwrap());
        let mut facts = fixture::facts(cluster, CapiTypes::Private);
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
