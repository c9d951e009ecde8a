//! There and back again.

use std::collections::BTreeMap;

use migration::groups::Direction;
use migration::object::{Object, ObjectKey};
use serde_json::{Value, json};

use crate::fake_cluster::{End, FakeCluster, Script};
use crate::fixtures::{Build, key};
use crate::server::{Server, observe};
use crate::{build, full};

/// What a user sees of an object: nothing that the server counts, and owners by name.
fn seen(server: &Server) -> BTreeMap<ObjectKey, Value> {
    let objects = server.store.objects().map(|object| {
        let mut body = object.body().clone();
        let metadata = body["metadata"].as_object_mut().expect("metadata");
        for field in ["uid", "resourceVersion", "generation", "creationTimestamp"] {
            metadata.remove(field);
        }
        for owner in metadata
            .get_mut("ownerReferences")
            .and_then(Value::as_array_mut)
            .into_iter()
            .flatten()
        {
            owner["uid"] = json!("");
        }
        let managers = object.managed_fields().into_iter().map(|entry| {
            let part = |name: &str| entry[name].as_str().unwrap_or_default().to_owned();
            let owners = entry.pointer("/fieldsV1/f:metadata/f:ownerReferences");
            let owners = owners
                .and_then(Value::as_object)
                .map_or(0, serde_json::Map::len);
            format!(
                "{} {} {} {owners}",
                part("manager"),
                part("operation"),
                part("subresource")
            )
        });
        metadata.insert("managedFields".into(), managers.collect());
        observe(&mut body, None);
        (object.key().clone(), body)
    });
    objects.collect()
}

/// Checks M12 and M13.
#[test]
fn twenty_round_trips_preserve_everything() {
    let mut fake_cluster = full();
    let before = seen(&fake_cluster.server);
    let mut first = None;
    for round in 0..20 {
        assert_eq!(fake_cluster.groups.direction(), Direction::Forward);
        assert_eq!(fake_cluster.run(), End::Done, "round {round}");
        let there = seen(&fake_cluster.server);
        assert_eq!(*first.get_or_insert(there.clone()), there, "round {round}");
        fake_cluster = fake_cluster.turned();
        assert_eq!(fake_cluster.run(), End::Done, "round {round}, back");
        let back = seen(&fake_cluster.server);
        for (key, object) in &before {
            let mut object = object.clone();
            let mut found = back[key].clone();
            if key.kind == "Cluster" || object["metadata"]["managedFields"] == json!([]) {
                object["metadata"]["managedFields"] = json!([]);
                found["metadata"]["managedFields"] = json!([]);
            }
            assert_eq!(object, found, "round {round}: {key}");
        }
        assert_eq!(back.len(), before.len(), "round {round}");
        fake_cluster = fake_cluster.turned();
    }
}

/// Check M03.
#[test]
fn a_paused_cluster_stays_paused() {
    for (before, after) in [
        (json!(null), json!(null)),
        (json!(false), json!(false)),
        (json!(true), json!(true)),
    ] {
        let mut fake_cluster = build(|build: &mut Build<'_>| {
            build.tiny();
            let paused = before.clone();
            build.server.change(&key("Cluster", "one"), |body| {
                if !paused.is_null() {
                    body["spec"]["paused"] = paused;
                }
            });
        });
        let undone = {
            let mut fake_cluster = fake_cluster.clone().with(Script {
                failing: Some(migration::machine::Task::Health),
                ..Script::default()
            });
            fake_cluster.run();
            fake_cluster
                .server
                .get(&key("Cluster", "one"))
                .expect("the cluster")
                .clone()
        };
        assert_eq!(
            undone.body()["spec"].get("paused").unwrap_or(&json!(null)),
            &after
        );
        assert_eq!(fake_cluster.run(), End::Done);
        let cluster = cluster(&fake_cluster);
        assert_eq!(
            cluster.body()["spec"].get("paused").unwrap_or(&json!(null)),
            &after
        );
    }
}

fn cluster(fake_cluster: &FakeCluster) -> &Object {
    let target = fake_cluster
        .target(&key("Cluster", "one"))
        .expect("a target's key");
    fake_cluster.server.get(&target).expect("the target")
}

#[test]
fn targets_keep_the_order_of_age_where_it_decides_something() {
    let mut fake_cluster = full();
    assert_eq!(fake_cluster.run(), End::Done);
    for circle in [
        ["cp-0", "cp-1", "cp-2"]
            .map(|name| key("Machine", name))
            .to_vec(),
        ["w-0", "w-1", "w-2"]
            .map(|name| key("Machine", name))
            .to_vec(),
        ["workers-old", "workers-new"]
            .map(|name| key("MachineSet", name))
            .to_vec(),
    ] {
        let targets = circle.iter().map(|key| {
            fake_cluster
                .server
                .get(&fake_cluster.target(key).unwrap())
                .unwrap()
        });
        let ages: Vec<_> = targets.map(Object::created).collect();
        assert!(ages.windows(2).all(|pair| pair[0] < pair[1]), "{ages:?}");
    }
}

#[test]
fn fields_that_controllers_compare_are_copied_unchanged() {
    let mut fake_cluster = full();
    assert_eq!(fake_cluster.run(), End::Done);
    let target = fake_cluster
        .server
        .get(&fake_cluster.target(&key("DevMachine", "w-0")).unwrap())
        .unwrap()
        .clone();
    assert_eq!(
        target.annotation("cluster.x-k8s.io/cloned-from-groupkind"),
        Some("DevMachineTemplate.infrastructure.cluster.x-k8s.io")
    );
    assert_eq!(target.finalizers(), ["devmachine.cluster.x-k8s.io"]);
    assert_eq!(target.label("cluster.x-k8s.io/cluster-name"), Some("one"));
    assert_eq!(target.annotation(migration::target::MIGRATED_FROM), None);
    let applied = target
        .annotation("kubectl.kubernetes.io/last-applied-configuration")
        .unwrap();
    assert!(
        applied.contains("infrastructure.cluster.hypershift.openshift.io/v1beta2")
            && applied.ends_with('\n')
    );
    let class = fake_cluster
        .server
        .get(&fake_cluster.target(&key("ClusterClass", "class")).unwrap())
        .unwrap();
    let patch = class
        .body()
        .pointer("/spec/patches/0/definitions/0/jsonPatches/0/value");
    assert_eq!(patch, Some(&json!("cluster.x-k8s.io/v1beta2")));
}
