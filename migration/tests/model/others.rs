//! Others write while objects are moved: nothing that they do is lost.

use migration::failure::Reason;
use migration::machine::{Propagation, Task};
use migration::object::ObjectKey;
use serde_json::json;

use crate::crashes::every;
use crate::fixtures::{Build, body, key, reference, resource};
use crate::server::Server;
use crate::world::{End, Script, World};
use crate::{full, tiny};

/// The object on either side.
fn survivors(world: &World, key: &ObjectKey) -> Vec<migration::object::Object> {
    let keys = [key.clone(), world.target(key).expect("a target's key")];
    keys.iter()
        .filter_map(|key| world.server.get(key).cloned())
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
    let world = tiny();
    let mut whole = world.clone();
    assert_eq!(whole.run(), End::Done);
    for at in 1..=whole.steps {
        let case = format!("after {at}");
        let mut changed = world.clone().with(script(at, label_a_machine));
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
    let world = tiny();
    let mut whole = world.clone();
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
            let mut world = world.clone().with(script(at, make));
            world.run();
            let there = if made.kind == "Secret" {
                world.server.get(&made).is_some() || at >= whole.retiring_from
            } else {
                !survivors(&world, &made).is_empty()
            };
            assert!(there, "{case}");
        }
    }
}

/// Check M06.
#[test]
fn concurrently_deleted_objects_are_not_recreated() {
    let world = tiny();
    let mut whole = world.clone();
    assert_eq!(whole.run(), End::Done);
    for at in 1..=whole.steps {
        let mut world = world.clone().with(script(at, delete_a_machine));
        let end = world.run();
        let kept = survivors(&world, &key("Machine", "w-0"));
        let deleted = kept.iter().any(migration::object::Object::is_being_deleted);
        match end {
            End::Done => assert_eq!(kept.len(), 1, "after {at}"),
            End::RolledBack(reason) => {
                assert_eq!(reason, Reason::Conflict, "after {at}");
                assert!(kept.len() == 1 && deleted, "after {at}");
            }
            // Both are there, and a person is asked which deletion was meant.
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
        let mut world = full().with(Script {
            killed_after: vec![at],
            ..script.clone()
        });
        assert_eq!(
            world.run(),
            End::RolledBack(Reason::HealthCheckTimeout),
            "{at}: {}",
            world.failure
        );
        let get = |kind, name| world.server.get(&key(kind, name));
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
        let secret = world
            .server
            .get(&key("Secret", "born-bootstrap"))
            .expect("its secret");
        assert_eq!(secret.owners()[0].uid, born.uid(), "{at}");
        assert!(
            get("Machine", "w-0").is_none() && get("DevMachine", "w-0").is_none(),
            "{at}"
        );
        let going = get("Machine", "w-1").expect("the machine that goes");
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
        let left = world
            .server
            .store
            .objects()
            .find(|object| world.groups.is_target(&object.key().group));
        assert_eq!(left, None, "{at}");
    }
}

/// Check M15.
#[test]
fn a_shared_identity_is_copied_and_kept() {
    let mut world = crate::build(|build| {
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
    assert_eq!(world.run(), End::Done);
    let identities = world.server.store.objects();
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
