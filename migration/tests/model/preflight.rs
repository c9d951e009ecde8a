//! What the plan finds before anything is written.

use migration::plan::Plan;
use migration::preflight::{Definition, Denied, Facts, Quota};
use serde_json::json;

use crate::fake_cluster::FakeCluster;
use crate::fixtures::{Build, key, resource};
use crate::full;
use crate::server::Server;

fn plan(fake_cluster: &FakeCluster, facts: &Facts) -> Plan {
    Plan::new(&fake_cluster.groups, &fake_cluster.server.store, facts)
}

/// The messages of one check, when `change` was done to a full cluster.
fn findings(check: &str, change: impl FnOnce(&mut Server)) -> Vec<String> {
    let mut fake_cluster = full();
    change(&mut fake_cluster.server);
    messages(&plan(&fake_cluster, &Facts::default()), check)
}

fn messages(plan: &Plan, check: &str) -> Vec<String> {
    let found = plan
        .findings
        .iter()
        .filter(|finding| finding.check == check);
    found
        .map(|finding| format!("{:?}: {}", finding.severity, finding.message))
        .collect()
}

#[test]
fn a_healthy_cluster_may_begin() {
    let fake_cluster = full();
    let plan = plan(&fake_cluster, &Facts::default());
    assert!(plan.may_begin(), "{plan}");
    let text = plan.to_string();
    assert!(
        text.contains(
            "Machine.cluster.x-k8s.io clusters-one/w-0\n    becomes Machine.cluster.hypershift"
        ),
        "{text}"
    );
    assert!(
        text.contains("Secret clusters-one/w-0-bootstrap\n    stays; the target of KubeadmConfig"),
        "{text}"
    );
    assert!(text.ends_with("The migration may begin."), "{text}");
    let json = serde_json::to_value(&plan).expect("JSON");
    assert_eq!(
        json["inventory"].as_array().map(Vec::len),
        Some(plan.inventory.entries.len())
    );
    assert!(json["seconds"].as_u64() > Some(10), "{json}");
}

/// Check M06.
#[test]
fn an_object_in_deletion_blocks() {
    let found = findings("deletions", |server| {
        let machine = key("Machine", "w-0");
        server
            .delete(&machine, None, migration::machine::Propagation::Background)
            .expect("a deletion");
    });
    assert_eq!(
        found,
        [
            "Blocks: Machine.cluster.x-k8s.io clusters-one/w-0 is being deleted: wait until it is gone"
        ]
    );
}

#[test]
fn existing_targets_block() {
    let found = findings("target-is-empty", |server| {
        let kind = resource("cluster.hypershift.openshift.io", "Machine");
        server.seed(
            &kind,
            json!({"metadata": {"name": "x", "namespace": "clusters-one"}}),
        );
    });
    assert_eq!(found.len(), 1, "{found:?}");
}

/// Check M04.
#[test]
fn missing_owners_and_two_controllers_are_reported() {
    let found = findings("owners", |server| {
        server.change(&key("Secret", "one-ca"), |body| {
            body["metadata"]["ownerReferences"][0]["uid"] = "gone".into();
        });
        let cluster = server.get(&key("Cluster", "one")).expect("it").clone();
        for name in ["one-etcd", "one-kubeconfig"] {
            server.change(&key("Secret", name), |body| {
                let owners = body["metadata"]["ownerReferences"].as_array_mut().expect("owners");
                let uid = if name == "one-etcd" { "gone" } else { cluster.uid() };
                owners.push(json!({"apiVersion": cluster.body()["apiVersion"], "kind": "Cluster", "name": "one",
                    "uid": uid, "controller": name != "one-etcd"}));
            });
        }
    });
    assert_eq!(
        found,
        [
            "Blocks: Secret clusters-one/one-ca is owned by KubeadmControlPlane one only, which is not there: the garbage \
         collector is about to delete it",
            "Note: Secret clusters-one/one-etcd is owned by Cluster one, too, which is not there: that owner is left out",
            "Blocks: Secret clusters-one/one-kubeconfig has two controllers: remove one",
        ]
    );
}

/// Check M15.
#[test]
fn references_that_are_not_migrated_are_reported() {
    let found = findings("names-elsewhere", |server| {
        Build {
            server,
            aging: false,
        }
        .plain("HorizontalPodAutoscaler", "workers", &[]);
        server.change(
            &migration::object::ObjectKey {
                group: "autoscaling".into(),
                ..key("HorizontalPodAutoscaler", "workers")
            },
            |body| body["spec"] = json!({"scaleTargetRef": {"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "MachineSet"}}),
        );
    });
    assert_eq!(
        found,
        [
            "Note: HorizontalPodAutoscaler.autoscaling clusters-one/workers names a group at \
         /spec/scaleTargetRef/apiVersion: its owner has to change it"
        ]
    );
}

#[test]
fn migrating_paused_and_managed_objects_are_reported() {
    let fake_cluster = full();
    let mut server = fake_cluster.server.clone();
    server.change(&key("Cluster", "one"), |body| {
        body["spec"]["paused"] = true.into();
        body["metadata"]["managedFields"][0]["manager"] = "argocd-controller".into();
    });
    server.change(&key("Machine", "w-0"), |body| {
        body["metadata"]["annotations"]["runtime.cluster.x-k8s.io/pending-hooks"] = "".into();
        body["status"] = json!({});
    });
    let fake_cluster = FakeCluster::new(server, migration::groups::Direction::Forward);
    let plan = plan(&fake_cluster, &Facts::default());
    assert!(!plan.may_begin());
    for (check, expected) in [
        ("operations", 2),
        ("pauses", 1),
        ("field-managers", 1),
        ("references", 0),
        ("kinds", 0),
    ] {
        let found = messages(&plan, check);
        assert_eq!(found.len(), expected, "{check}: {found:?}");
    }
}

/// The provider for Azure has the annotation on its machines as long as they are not paused.
#[test]
fn objects_that_clusterctl_would_wait_for_are_reported_and_do_not_block() {
    let found = findings("operations", |server| {
        for name in ["w-0", "w-1"] {
            server.change(&key("DevMachine", name), |body| {
                body["metadata"]["annotations"]["clusterctl.cluster.x-k8s.io/block-move"] =
                    "true".into();
            });
        }
    });
    let [found] = &found[..] else {
        panic!("{found:?}");
    };
    let expected = "Note: 2 objects, the first of them DevMachine.infrastructure.cluster.x-k8s.io clusters-one/w-0,";
    assert!(found.starts_with(expected), "{found}");
}

/// Checks M11 and M16.
#[test]
fn rejections_by_the_api_server_block() {
    let fake_cluster = full();
    let facts = Facts {
        definitions: vec![Definition {
            group: "cluster.hypershift.openshift.io".into(),
            kind: "Machine".into(),
            established: false,
            stored: "v1beta2".into(),
            schemas: [("v1beta2".to_owned(), json!({"properties": {
                "spec": {"properties": {"clusterName": {}, "bootstrap": {"x-kubernetes-preserve-unknown-fields": true},
                    "infrastructureRef": {"additionalProperties": true}}},
                "status": {"x-kubernetes-preserve-unknown-fields": true},
            }}))]
            .into(),
        }],
        denied: vec![Denied {
            verb: "create".into(),
            resource: "machines.cluster.hypershift.openshift.io".into(),
            namespace: "clusters-one".into(),
        }],
        quotas: vec![Quota {
            namespace: "clusters-one".into(),
            name: "small".into(),
            counted: "count/machines.cluster.hypershift.openshift.io".into(),
            free: 5,
        }],
    };
    let plan = plan(&fake_cluster, &facts);
    assert!(!plan.may_begin());
    let pruned = messages(&plan, "schemas");
    assert_eq!(pruned.len(), 6, "{pruned:?}");
    assert!(
        pruned[0].contains("would lose /spec/providerID"),
        "{pruned:?}"
    );
    for check in ["kinds", "rights", "quotas"] {
        assert_eq!(messages(&plan, check).len(), 1, "{check}");
    }
}
