//! Every kind that the pinned modules define: an object of each is moved with all that it has, and moved back. The end-to-end
//! test of CRDs compares the table with the modules, so that no kind of a new version is missing.

use std::collections::BTreeSet;

use api::group::GroupTable;
use migration::groups::Direction;
use migration::object::{Object, ObjectKey, Resource};
use serde_json::{Value, json};

use crate::fake_cluster::{End, FakeCluster};
use crate::fixtures::NAMESPACE;
use crate::server::Server;

const TABLE: &str = include_str!("../kinds.txt");
const CORE: &str = "cluster.x-k8s.io";
const PRIVATE_CORE: &str = "cluster.hypershift.openshift.io";
/// The name of each object.
const NAME: &str = "one";
/// Kinds of the whole cluster that no object of a hosted cluster refers to.
const UNUSED: [&str; 2] = ["ExtensionConfig", "ROSAOCMRoleConfig"];

/// The kinds of the table in their standard groups.
fn kinds() -> Vec<Resource> {
    let lines = TABLE.lines().filter(|line| !line.starts_with('#'));
    lines.map(kind).collect()
}

fn kind(line: &str) -> Resource {
    let words: Vec<_> = line.split_whitespace().collect();
    let [group, kind, plural, scope, version, status, served] = words[..] else {
        panic!("{line:?} is no line of the table");
    };
    Resource {
        group: match group {
            "core" => CORE.to_owned(),
            prefix => format!("{prefix}.{CORE}"),
        },
        version: version.to_owned(),
        plural: plural.to_owned(),
        kind: kind.to_owned(),
        namespaced: scope == "Namespaced",
        has_status: status == "status",
        served: served.split(',').map(str::to_owned).collect(),
    }
}

/// The same kind in the private group.
fn private(resource: &Resource) -> Resource {
    let table = GroupTable::default();
    let group = table.swap(resource.group.as_bytes());
    let group = group.unwrap_or_else(|| panic!("{resource} is of a group without a private one"));
    Resource {
        group: group.to_owned(),
        ..resource.clone()
    }
}

fn key(resource: &Resource) -> ObjectKey {
    let namespace = if resource.namespaced { NAMESPACE } else { "" };
    ObjectKey {
        group: resource.group.clone(),
        kind: resource.kind.clone(),
        namespace: namespace.to_owned(),
        name: NAME.to_owned(),
    }
}

/// A reference to the object of a kind, as Cluster API writes it.
fn reference(resource: &Resource) -> Value {
    json!({ "apiGroup": resource.group, "kind": resource.kind, "name": NAME })
}

/// What an object names as its provider's identity, where its kind can name one of the whole cluster.
fn identity(kind: &str) -> Value {
    let of_kind = |kind: &str| json!({ "kind": kind, "name": NAME });
    match kind {
        "AWSCluster" => json!({ "identityRef": of_kind("AWSClusterRoleIdentity") }),
        "AWSClusterRoleIdentity" => {
            json!({ "sourceIdentityRef": of_kind("AWSClusterStaticIdentity") })
        }
        "AWSClusterTemplate" => {
            let spec = json!({ "identityRef": of_kind("AWSClusterControllerIdentity") });
            json!({ "template": { "spec": spec } })
        }
        "OpenStackMachineTemplate" => {
            let identity = json!({ "type": "ClusterIdentity", "name": NAME, "cloudName": "c" });
            json!({ "template": { "spec": { "identityRef": identity } } })
        }
        // A Secret.
        "OpenStackCluster" => {
            json!({ "identityRef": { "type": "Secret", "name": NAME, "cloudName": "c" } })
        }
        _ => json!({}),
    }
}

/// An object of a kind with a reference to one of another kind.
fn body(resource: &Resource, to: &Resource, owner: Option<&Object>) -> Value {
    let mut metadata = json!({
        "name": NAME,
        "generation": 1,
        "labels": { "cluster.x-k8s.io/cluster-name": NAME },
        "annotations": { "cluster.x-k8s.io/cloned-from-name": NAME },
        "finalizers": [format!("{}.{}", resource.kind.to_lowercase(), resource.group)],
    });
    if resource.namespaced {
        metadata["namespace"] = NAMESPACE.into();
    }
    if let Some(owner) = owner {
        metadata["ownerReferences"] = json!([{
            "apiVersion": owner.body()["apiVersion"], "kind": owner.key().kind, "name": owner.key().name,
            "uid": owner.uid(), "controller": true, "blockOwnerDeletion": true,
        }]);
    }
    let mut spec = identity(&resource.kind);
    spec["someRef"] = reference(to);
    json!({
        "metadata": metadata,
        "spec": spec,
        "status": { "ready": true, "someRef": reference(to) },
    })
}

/// A Cluster that owns an object of every kind, each of which refers to the next one.
fn cluster_of(kinds: &[Resource]) -> FakeCluster {
    let all = kinds.iter().cloned().chain(kinds.iter().map(private));
    let mut server = Server::new(&all.collect::<Vec<_>>());
    let namespaced: Vec<_> = kinds.iter().filter(|it| it.namespaced).collect();
    let mut owner = None;
    for (number, resource) in namespaced.iter().enumerate() {
        let next = namespaced[(number + 1) % namespaced.len()];
        let made = server.seed(resource, body(resource, next, owner.as_ref()));
        // The first line of the table.
        owner.get_or_insert(made);
    }
    for resource in kinds.iter().filter(|it| !it.namespaced) {
        server.seed(resource, body(resource, namespaced[0], None));
    }
    FakeCluster::new(server, Direction::Forward)
}

fn find<'a>(cluster: &'a FakeCluster, key: &ObjectKey) -> &'a Object {
    let found = cluster.server.get(key);
    found.unwrap_or_else(|| panic!("{key} is not there"))
}

/// A part of an object with its groups exchanged: in these objects, nothing else has a name like a group.
fn exchanged(object: &Object, pointer: &str) -> Option<Value> {
    let part = object.body().pointer(pointer)?.to_string();
    let text = part.replace(CORE, PRIVATE_CORE);
    Some(serde_json::from_str(&text).expect("JSON with other texts"))
}

#[test]
fn an_object_of_every_kind_is_moved_and_moved_back() {
    let kinds = kinds();
    assert_eq!(kinds[0].kind, "Cluster", "it owns all others");
    let names: BTreeSet<_> = kinds.iter().map(ToString::to_string).collect();
    assert_eq!(names.len(), kinds.len(), "a kind is there twice");
    let before = cluster_of(&kinds);
    let mut after = before.clone();
    assert_eq!(after.run(), End::Done, "{}", after.failure);
    let owner = find(&after, &key(&private(&kinds[0]))).clone();
    for resource in &kinds {
        let (original, target) = (key(resource), key(&private(resource)));
        if UNUSED.contains(&resource.kind.as_str()) {
            assert!(after.server.get(&target).is_none(), "{target} is unused");
            continue;
        }
        // What others may use stays.
        let is_left = after.server.get(&original).is_some();
        assert_eq!(is_left, !resource.namespaced, "{original}");
        let original = find(&before, &original);
        let target = find(&after, &target);
        for part in ["/spec", "/status"] {
            let expected = exchanged(original, part);
            let found = target.body().pointer(part).cloned();
            assert_eq!(found, expected, "{part} of {}", target.key());
        }
        for part in ["labels", "annotations", "finalizers"] {
            let part = format!("/metadata/{part}");
            let (found, expected) = (target.body().pointer(&part), original.body().pointer(&part));
            assert_eq!(found, expected, "{part} of {}", target.key());
        }
        let owners = target.owners();
        let is_owned = resource.namespaced && *target.key() != *owner.key();
        assert_eq!(owners.len(), usize::from(is_owned), "{}", target.key());
        for found in owners {
            assert_eq!(found.uid, owner.uid(), "{}", target.key());
            assert_eq!(found.api_version, owner.body()["apiVersion"]);
            assert!(found.controller, "{}", target.key());
        }
    }
    let mut back = after.turned();
    assert_eq!(back.run(), End::Done, "{}", back.failure);
    for resource in &kinds {
        let key = key(resource);
        let (original, found) = (find(&before, &key), find(&back, &key));
        for part in ["spec", "status"] {
            assert_eq!(found.body()[part], original.body()[part], "{key}");
        }
    }
}
