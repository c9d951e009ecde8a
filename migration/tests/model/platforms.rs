//! Objects of platforms whose machines are not those of a cloud: what stays keeps its owners, and nothing else changes.

use migration::object::{Object, ObjectKey};
use serde_json::{Value, json};

use crate::build;
use crate::crashes::{check_end, every};
use crate::fake_cluster::{End, FakeCluster, Script};
use crate::fixtures::{AGENT_PROVIDER, Build, NAMESPACE, key, reference, resource};

/// The Secret that virtual machines of another cluster are created with.
const CREDENTIALS: &str = "kubevirt-infra-credentials";
/// The Lease of the provider for KubeVirt, which its process does not release at its end.
const LEASE: &str = "controller-leader-election-capk";
/// The infrastructure of virtual machines, as the operator names it, and as earlier versions of it have.
const NAMES: [&str; 2] = ["one-x1y2z", "one"];
/// The group of infrastructures, standard and private.
const INFRASTRUCTURE: [&str; 2] = [
    "infrastructure.cluster.x-k8s.io",
    "infrastructure.cluster.hypershift.openshift.io",
];
/// The version by which the provider of platform Agent finds owners, whatever version is stored.
const VENDORED: &str = "cluster.x-k8s.io/v1beta1";

/// A pool with one machine in this infrastructure.
fn pool(build: &mut Build<'_>, cluster: &Object, infrastructure: Value) -> Object {
    let deployment = build.object(
        "MachineDeployment",
        "workers",
        &[cluster],
        json!({"replicas": 1}),
    );
    let set = build.object(
        "MachineSet",
        "workers-a",
        &[&deployment],
        json!({"replicas": 1}),
    );
    let spec = json!({
        "clusterName": "one",
        "bootstrap": {"dataSecretName": "user-data-workers-0a1b2c3d"},
        "infrastructureRef": infrastructure,
    });
    build.secret("user-data-workers-0a1b2c3d", &[]);
    build.object("Machine", "w-0", &[&set], spec)
}

fn of_agent(kind: &str, name: &str) -> Value {
    json!({"apiGroup": AGENT_PROVIDER, "kind": kind, "name": name})
}

/// A cluster on hosts of an Agent service.
fn agent(build: &mut Build<'_>) {
    let spec = json!({"infrastructureRef": of_agent("AgentCluster", "one")});
    let cluster = build.object("Cluster", "one", &[], spec);
    let infrastructure = build.plain("AgentCluster", "one", &[&cluster]);
    let registered = build.plain("ClusterDeployment", "one", &[&infrastructure]);
    build.plain("AgentClusterInstall", "one", &[&registered]);
    let machine = pool(build, &cluster, of_agent("AgentMachine", "w-0"));
    let host = build.plain("AgentMachine", "w-0", &[&machine]);
    build.plain("AgentMachineTemplate", "workers-0a1b2c3d", &[&cluster]);
    for dependent in [infrastructure.key(), host.key()] {
        build.server.change(dependent, |body| {
            body["metadata"]["ownerReferences"][0]["apiVersion"] = VENDORED.into();
        });
    }
    // In the namespace of the service, with labels only.
    let labels = json!({"agentMachineRef": "w-0", "agentMachineRefNamespace": NAMESPACE});
    let body = json!({"metadata": {"name": "host-0", "namespace": "agents", "labels": labels}});
    build
        .server
        .seed(&resource("agent-install.openshift.io", "Agent"), body);
}

/// A cluster on virtual machines of another cluster.
fn kubevirt(build: &mut Build<'_>) {
    kubevirt_named(build, NAMES[0]);
}

/// The same, with an infrastructure of this name.
fn kubevirt_named(build: &mut Build<'_>, name: &str) {
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "name": CREDENTIALS, "namespace": NAMESPACE,
    });
    let spec = json!({"infrastructureRef": reference("KubevirtCluster", name)});
    let cluster = build.object("Cluster", "one", &[], spec);
    let infrastructure = build.object(
        "KubevirtCluster",
        name,
        &[&cluster],
        json!({"infraClusterSecretRef": secret}),
    );
    build.server.change(infrastructure.key(), |body| {
        body["metadata"]["managedFields"] = operators(&version_in(INFRASTRUCTURE[0]));
    });
    build.secret(&format!("{name}-ssh-keys"), &[&infrastructure]);
    let credentials = build.secret(CREDENTIALS, &[]);
    build.server.change(credentials.key(), |body| {
        body["data"] = json!({"kubeconfig": "e30=", "namespace": "bWFjaGluZXM="});
        body["metadata"]["managedFields"] = operators("v1");
    });
    // A user's own, for topologies: it has no owner.
    build.object(
        "KubevirtClusterTemplate",
        "clusters",
        &[],
        json!({"template": {"spec": {"infraClusterSecretRef": secret}}}),
    );
    build.object(
        "KubevirtMachineTemplate",
        "workers-0a1b2c3d",
        &[&cluster],
        json!({"template": {"spec": {"infraClusterSecretRef": secret}}}),
    );
    let machine = pool(build, &cluster, reference("KubevirtMachine", "w-0"));
    let spec = json!({"infraClusterSecretRef": secret, "providerID": "kubevirt://w-0"});
    build.object("KubevirtMachine", "w-0", &[&machine], spec);
    build.plain("VirtualMachine", "w-0", &[]);
    let lease = build.plain("Lease", LEASE, &[]);
    build.server.change(lease.key(), |body| {
        body["spec"] =
            json!({"holderIdentity": "capi-provider-0_5d2c", "leaseDurationSeconds": 15});
    });
}

/// The version of the provider for KubeVirt in a group.
fn version_in(group: &str) -> String {
    format!("{group}/v1alpha1")
}

/// Who owns fields of what the operator applies, which has been written by others before: both operators of HyperShift
/// are the same manager, so that either takes back what the other has applied.
fn operators(api_version: &str) -> Value {
    let entry = |operation: &str| {
        json!({
            "manager": "hypershift-operator", "operation": operation, "apiVersion": api_version,
            "fieldsType": "FieldsV1", "fieldsV1": {"f:metadata": {"f:labels": {}}},
        })
    };
    json!([entry("Apply"), entry("Update")])
}

/// An object that does not move.
fn fixed(group: &str, kind: &str, name: &str) -> ObjectKey {
    ObjectKey {
        group: group.into(),
        kind: kind.into(),
        namespace: NAMESPACE.into(),
        name: name.into(),
    }
}

fn find<'a>(fake_cluster: &'a FakeCluster, key: &ObjectKey) -> &'a Object {
    let found = fake_cluster.server.get(key);
    found.unwrap_or_else(|| panic!("{key} is not there"))
}

/// The target of a key of the original.
fn target<'a>(fake_cluster: &'a FakeCluster, kind: &str, name: &str) -> &'a Object {
    let key = fake_cluster
        .target(&key(kind, name))
        .expect("a target's key");
    find(fake_cluster, &key)
}

/// The only owner of an object that does not move, which is its controller.
fn owner<'a>(fake_cluster: &'a FakeCluster, key: &ObjectKey) -> &'a Value {
    let owners = &find(fake_cluster, key).body()["metadata"]["ownerReferences"];
    assert_eq!(owners.as_array().map(Vec::len), Some(1), "{key}: {owners}");
    assert_eq!(owners[0]["controller"], true, "{key}: {owners}");
    &owners[0]
}

#[test]
fn agents_get_new_owners_and_stay_bound() {
    let provider = |kind: &str, name: &str| fixed(AGENT_PROVIDER, kind, name);
    let before = build(agent);
    let untouched = [
        fixed("hive.openshift.io", "ClusterDeployment", "one"),
        fixed("extensions.hive.openshift.io", "AgentClusterInstall", "one"),
        ObjectKey {
            namespace: "agents".into(),
            ..fixed("agent-install.openshift.io", "Agent", "host-0")
        },
    ];
    let mut after = before.clone();
    assert_eq!(after.run(), End::Done, "{}", after.failure);
    for key in &untouched {
        assert_eq!(find(&after, key), find(&before, key), "{key}");
    }
    for (dependent, kind, name, version) in [
        (provider("AgentCluster", "one"), "Cluster", "one", "v1beta1"),
        (provider("AgentMachine", "w-0"), "Machine", "w-0", "v1beta1"),
        (
            provider("AgentMachineTemplate", "workers-0a1b2c3d"),
            "Cluster",
            "one",
            "v1beta2",
        ),
    ] {
        assert_eq!(
            find(&after, &dependent).uid(),
            find(&before, &dependent).uid()
        );
        let owner = owner(&after, &dependent);
        let api_version = format!("cluster.hypershift.openshift.io/{version}");
        assert_eq!(owner["apiVersion"], api_version, "{dependent}");
        assert_eq!(
            owner["uid"],
            target(&after, kind, name).uid(),
            "{dependent}"
        );
    }
    // The group of the infrastructure is none of Cluster API's, so it has one name.
    for (kind, name, expected) in [
        ("Cluster", "one", of_agent("AgentCluster", "one")),
        ("Machine", "w-0", of_agent("AgentMachine", "w-0")),
    ] {
        let found = &target(&after, kind, name).body()["spec"]["infrastructureRef"];
        assert_eq!(*found, expected, "{kind}");
    }
    let mut back = after.turned();
    assert_eq!(back.run(), End::Done, "{}", back.failure);
    let dependent = provider("AgentMachine", "w-0");
    let owner = owner(&back, &dependent);
    assert_eq!(owner["apiVersion"], VENDORED);
    assert_eq!(owner["uid"], find(&back, &key("Machine", "w-0")).uid());
}

#[test]
fn virtual_machines_and_their_credentials_are_not_changed() {
    let before = build(kubevirt);
    let untouched = [
        fixed("kubevirt.io", "VirtualMachine", "w-0"),
        fixed("", "Secret", CREDENTIALS),
        fixed("", "Secret", "user-data-workers-0a1b2c3d"),
        // The provider behind the proxy waits for the end of it, as after any restart.
        fixed("coordination.k8s.io", "Lease", LEASE),
    ];
    let are_untouched = |now: &FakeCluster| {
        for key in &untouched {
            assert_eq!(find(now, key), find(&before, key), "{key}");
        }
    };
    let mut after = before.clone();
    assert_eq!(after.run(), End::Done, "{}", after.failure);
    are_untouched(&after);
    for (kind, name) in [
        ("KubevirtCluster", NAMES[0]),
        ("KubevirtClusterTemplate", "clusters"),
        ("KubevirtMachine", "w-0"),
        ("KubevirtMachineTemplate", "workers-0a1b2c3d"),
    ] {
        let original = find(&before, &key(kind, name));
        let moved = target(&after, kind, name);
        assert_eq!(moved.body()["spec"], original.body()["spec"], "{kind}");
    }
    let mut back = after.turned();
    assert_eq!(back.run(), End::Done, "{}", back.failure);
    are_untouched(&back);
}

#[test]
fn infrastructures_of_virtual_machines_keep_their_names_and_field_owners() {
    let [standard, private] = INFRASTRUCTURE;
    for name in NAMES {
        let before = build(|build| kubevirt_named(build, name));
        let mut after = before.clone();
        assert_eq!(after.run(), End::Done, "{name}: {}", after.failure);
        for (kind, of, infrastructure, named) in [
            ("Cluster", "one", "KubevirtCluster", name),
            ("Machine", "w-0", "KubevirtMachine", "w-0"),
        ] {
            let found = &target(&after, kind, of).body()["spec"]["infrastructureRef"];
            let expected = json!({"apiGroup": private, "kind": infrastructure, "name": named});
            assert_eq!(*found, expected, "{kind}");
        }
        let cluster = target(&after, "KubevirtCluster", name);
        let managers = Value::from(cluster.managed_fields());
        assert_eq!(managers, operators(&version_in(private)), "{name}");
        let keys = fixed("", "Secret", &format!("{name}-ssh-keys"));
        let owner = owner(&after, &keys);
        assert_eq!(owner["apiVersion"], version_in(private), "{name}");
        assert_eq!(owner["uid"], cluster.uid(), "{name}");
        let mut back = after.turned();
        assert_eq!(back.run(), End::Done, "{name}: {}", back.failure);
        let cluster = find(&back, &key("Cluster", "one"));
        let expected = json!({"apiGroup": standard, "kind": "KubevirtCluster", "name": name});
        let found = &cluster.body()["spec"]["infrastructureRef"];
        assert_eq!(*found, expected, "{name}");
        let cluster = find(&back, &key("KubevirtCluster", name));
        let managers = Value::from(cluster.managed_fields());
        assert_eq!(managers, operators(&version_in(standard)), "{name}");
    }
}

#[test]
fn crashes_on_these_platforms_are_completed() {
    for (name, fake_cluster) in [("agent", build(agent)), ("kubevirt", build(kubevirt))] {
        let mut whole = fake_cluster.clone();
        assert_eq!(whole.run(), End::Done, "{name}");
        for at in (1..=whole.steps).step_by(every(3)) {
            let case = format!("{name}, killed after {at} of {}", whole.steps);
            let mut killed = fake_cluster.clone().with(Script {
                killed_after: vec![at],
                collecting: true,
                ..Script::default()
            });
            let end = killed.run();
            check_end(&fake_cluster.server, &killed, &end, &case);
            assert_eq!(end, End::Done, "{case}: {}", killed.failure);
        }
        for refused in (0..whole.writes.len()).step_by(every(3)) {
            let case = format!("{name}, write {refused} is refused");
            let mut undone = fake_cluster.clone().with(Script {
                refused_at: Some(refused),
                collecting: true,
                ..Script::default()
            });
            let end = undone.run();
            check_end(&fake_cluster.server, &undone, &end, &case);
        }
    }
}
