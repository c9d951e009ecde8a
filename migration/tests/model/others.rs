//! Others write while objects are moved: nothing that they do is lost.

use migration::failure::Reason;
use migration::machine::{Propagation, Task};
use migration::object::ObjectKey;
use serde_json::json;

use crate::crashes::every;
use crate::fake_cluster::{End, FakeCluster, Script};
use crate::fixtures::{Build, body, key, reference, resource};
use crate::server::Server;
use crate::{full, tiny};

/// The object in both types.
fn survivors(fake_cluster: &FakeCluster, key: &ObjectKey) -> Vec<migration::object::Object> {
    let keys = [
        key.clone(),
        fake_cluster.target(key).expect("a target's key"),
    ];
    keys.iter()
        .filter_map(|key| fake_cluster.server.get(key).cloned())
        .collect()
}

fn label_a_machine(server: &mut Server) {
    if server.get(&key("Machine", "w-0")).is_some() {
        server.touched = true;
        server.change(&key("Machine", "w-0"), |body| {
            body["metadata"]["labels"]["mine"] = "yes".into()
        });
    }
}

fn make_a_template(server: &mut Server) {
    Build {
        server,
        aging: false,
    }
    .object("DevMachineTemplate", "mine", &[], json!({"a": 1}));
}

fn delete_a_machine(server: &mut Server) {
    if server.get(&key("Machine", "w-0")).is_some() {
        let machine = key("Machine", "w-0");
        server.touched = true;
        server
            .delete(&machine, None, Propagation::Background)
            .expect("a deletion");
    }
}

fn make_a_secret(server: &mut Server) {
    if let Some(cluster) = server.get(&key("Cluster", "one")).cloned() {
        Build {
            server,
            aging: false,
        }
        .secret("mine", &[&cluster]);
    }
}

/// Check M05.
#[test]
fn concurrent_changes_are_never_lost() {
    let fake_cluster = tiny();
    let mut whole = fake_cluster.clone();
    assert_eq!(whole.run(), End::Done);
    for at in 1..=whole.steps {
        let case = format!("after {at}");
        let mut changed = fake_cluster.clone().with(script(at, label_a_machine));
        let end = changed.run();
        let kept = survivors(&changed, &key("Machine", "w-0"));
        let labelled = kept
            .iter()
            .any(|machine| machine.label("mine") == Some("yes"));
        assert_eq!(labelled, changed.server.touched, "{case}: {end:?}");
        assert!(!kept.is_empty(), "{case}");
    }
}

/// Check M05.
#[test]
fn concurrently_created_objects_are_never_lost() {
    let fake_cluster = tiny();
    let mut whole = fake_cluster.clone();
    assert_eq!(whole.run(), End::Done);
    for at in 1..=whole.steps {
        for (make, made) in [
            (
                make_a_template as fn(&mut Server),
                key("DevMachineTemplate", "mine"),
            ),
            (make_a_secret, key("Secret", "mine")),
        ] {
            let case = format!("{made} after {at}");
            let mut fake_cluster = fake_cluster.clone().with(script(at, make));
            fake_cluster.run();
            let there = if made.kind == "Secret" {
                fake_cluster.server.get(&made).is_some() || at >= whole.retiring_from
            } else {
                !survivors(&fake_cluster, &made).is_empty()
            };
            assert!(there, "{case}");
        }
    }
}

/// Check M06.
#[test]
fn concurrently_deleted_objects_are_not_recreated() {
    let fake_cluster = tiny();
    let mut whole = fake_cluster.clone();
    assert_eq!(whole.run(), End::Done);
    for at in 1..=whole.steps {
        let mut fake_cluster = fake_cluster.clone().with(script(at, delete_a_machine));
        let end = fake_cluster.run();
        let kept = survivors(&fake_cluster, &key("Machine", "w-0"));
        let deleted = kept.iter().any(migration::object::Object::is_being_deleted);
        match end {
            End::Done => assert_eq!(kept.len(), 1, "after {at}"),
            End::RolledBack(reason) => {
                assert_eq!(reason, Reason::Conflict, "after {at}");
                assert!(kept.len() == 1 && deleted, "after {at}");
            }
            // Both exist, and a user has to decide which one to delete.
            End::Blocked(_) => assert!(kept.len() == 2 && deleted, "after {at}"),
        }
    }
}

fn script(at: usize, foreign: fn(&mut Server)) -> Script {
    Script {
        foreign: Some((at, foreign)),
        ..Script::default()
    }
}

fn private(kind: &str, name: &str) -> ObjectKey {
    let key = key(kind, name);
    let group = key
        .group
        .replace("cluster.x-k8s.io", "cluster.hypershift.openshift.io");
    key.in_group(&group)
}

/// The new controllers make a machine, remove one to the end, begin to remove another, and learn something.
fn controllers_act(server: &mut Server) {
    let set = server
        .get(&private("MachineSet", "workers-new"))
        .expect("the set")
        .clone();
    let spec = json!({"infrastructureRef": reference("DevMachine", "born")});
    let mut born = body("Machine", "born", &[&set], &spec, server.clock);
    born["apiVersion"] = json!("cluster.hypershift.openshift.io/v1beta2");
    born["spec"]["infrastructureRef"]["apiGroup"] =
        "infrastructure.cluster.hypershift.openshift.io".into();
    let kind = resource("cluster.hypershift.openshift.io", "Machine");
    let born = server.seed(&kind, born);
    Build {
        server,
        aging: false,
    }
    .secret("born-bootstrap", &[&born]);
    for kind in ["KubeadmConfig", "DevMachine", "Machine"] {
        let gone = private(kind, "w-0");
        server.change(&gone, |body| body["metadata"]["finalizers"] = json!([]));
        server
            .delete(&gone, None, Propagation::Background)
            .expect("a deletion");
    }
    server
        .delete(&private("Machine", "w-1"), None, Propagation::Background)
        .expect("a deletion");
    server.change(&private("Cluster", "one"), |body| {
        body["status"]["phase"] = "Learnt".into()
    });
    server.change(&private("MachineDeployment", "workers"), |body| {
        body["spec"]["replicas"] = 7.into()
    });
}

#[test]
fn a_rollback_keeps_changes_by_the_new_controllers() {
    let script = Script {
        failing: Some(Task::Health),
        target: Some(controllers_act),
        ..Script::default()
    };
    let mut whole = full().with(script.clone());
    assert_eq!(whole.run(), End::RolledBack(Reason::HealthCheckTimeout));
    for at in (0..=whole.steps).step_by(every(11)) {
        let mut fake_cluster = full().with(Script {
            killed_after: vec![at],
            ..script.clone()
        });
        assert_eq!(
            fake_cluster.run(),
            End::RolledBack(Reason::HealthCheckTimeout),
            "{at}: {}",
            fake_cluster.failure
        );
        let get = |kind, name| fake_cluster.server.get(&key(kind, name));
        let born =
            get("Machine", "born").unwrap_or_else(|| panic!("{at}: the new machine is lost"));
        assert_eq!(
            born.body()["spec"]["infrastructureRef"],
            reference("DevMachine", "born"),
            "{at}"
        );
        assert_eq!(
            born.owners()[0].uid,
            get("MachineSet", "workers-new").unwrap().uid(),
            "{at}"
        );
        assert_eq!(
            born.annotation(migration::target::MIGRATED_FROM),
            None,
            "{at}"
        );
        let secret = fake_cluster
            .server
            .get(&key("Secret", "born-bootstrap"))
            .expect("its secret");
        assert_eq!(secret.owners()[0].uid, born.uid(), "{at}");
        assert!(
            get("Machine", "w-0").is_none() && get("DevMachine", "w-0").is_none(),
            "{at}"
        );
        let going = get("Machine", "w-1").expect("the machine in deletion");
        assert!(
            going.is_being_deleted() && !going.finalizers().is_empty(),
            "{at}"
        );
        assert_eq!(
            get("Cluster", "one").unwrap().text("/status/phase"),
            Some("Learnt"),
            "{at}"
        );
        assert_eq!(
            get("MachineDeployment", "workers").unwrap().body()["spec"]["replicas"],
            7,
            "{at}"
        );
        let left = fake_cluster
            .server
            .store
            .objects()
            .find(|object| fake_cluster.groups.is_target(&object.key().group));
        assert_eq!(left, None, "{at}");
    }
}

/// Check M15.
#[test]
fn a_shared_identity_is_copied_and_kept() {
    let mut fake_cluster = crate::build(|build| {
        build.cluster();
        let identity = resource(
            "infrastructure.cluster.x-k8s.io",
            "AWSClusterStaticIdentity",
        );
        for name in ["used", "unused"] {
            build.server.seed(
                &identity,
                json!({"metadata": {"name": name}, "spec": {"secretRef": "x"}}),
            );
        }
        build.object(
            "AWSCluster",
            "one",
            &[],
            json!({"identityRef":
            {"kind": "AWSClusterStaticIdentity", "name": "used"}}),
        );
    });
    assert_eq!(fake_cluster.run(), End::Done);
    let identities = fake_cluster.server.store.objects();
    let identities: Vec<_> = identities
        .filter(|o| o.key().namespace.is_empty())
        .map(|o| o.key().to_string())
        .collect();
    assert_eq!(
        identities,
        [
            "AWSClusterStaticIdentity.infrastructure.cluster.hypershift.openshift.io used",
            "AWSClusterStaticIdentity.infrastructure.cluster.x-k8s.io unused",
            "AWSClusterStaticIdentity.infrastructure.cluster.x-k8s.io used",
        ]
    );
}
