//! Clusters as stock controllers create them, in short form.

use migration::object::{Object, ObjectKey, Resource};
use serde_json::{Value, json};

use crate::server::{Server, stamp};

pub(crate) const NAMESPACE: &str = "clusters-one";
const CORE: &str = "cluster.x-k8s.io";
/// The group of the provider of platform Agent, which is none of Cluster API's.
pub(crate) const AGENT_PROVIDER: &str = "capi-provider.agent-install.openshift.io";
/// Prefix of the group, kind, whether there is a status subresource.
const KINDS: [(&str, &str, bool); 26] = [
    ("", "Cluster", true),
    ("", "ClusterClass", true),
    ("", "MachineDeployment", true),
    ("", "MachineSet", true),
    ("", "Machine", true),
    ("", "MachineHealthCheck", true),
    ("", "MachineDrainRule", false),
    ("controlplane.", "KubeadmControlPlane", true),
    ("controlplane.", "KubeadmControlPlaneTemplate", false),
    ("bootstrap.", "KubeadmConfig", true),
    ("bootstrap.", "KubeadmConfigTemplate", false),
    ("infrastructure.", "DevCluster", true),
    ("infrastructure.", "DevClusterTemplate", false),
    ("infrastructure.", "DevMachine", true),
    ("infrastructure.", "DevMachineTemplate", false),
    ("infrastructure.", "AWSCluster", true),
    ("infrastructure.", "AWSMachine", true),
    ("infrastructure.", "AWSClusterStaticIdentity", false),
    ("infrastructure.", "KubevirtCluster", true),
    ("infrastructure.", "KubevirtClusterTemplate", false),
    ("infrastructure.", "KubevirtMachine", true),
    ("infrastructure.", "KubevirtMachineTemplate", false),
    ("addons.", "ClusterResourceSet", true),
    ("addons.", "ClusterResourceSetBinding", false),
    ("ipam.", "IPAddress", false),
    ("ipam.", "IPAddressClaim", true),
];

/// All kinds, with both types, and those that do not move.
pub(crate) fn resources() -> Vec<Resource> {
    let mut resources = Vec::new();
    for (prefix, kind, has_status) in KINDS {
        for suffix in [CORE, "cluster.hypershift.openshift.io"] {
            resources.push(Resource {
                group: format!("{prefix}{suffix}"),
                version: version(kind).into(),
                plural: format!("{}s", kind.to_lowercase()),
                kind: kind.into(),
                namespaced: kind != "AWSClusterStaticIdentity",
                has_status,
                served: served(kind).iter().map(|&one| one.into()).collect(),
            });
        }
    }
    for (group, kind) in [
        ("", "Secret"),
        ("", "ConfigMap"),
        ("", "Event"),
        ("coordination.k8s.io", "Lease"),
        ("autoscaling", "HorizontalPodAutoscaler"),
        ("hypershift.openshift.io", "HostedControlPlane"),
        ("kubevirt.io", "VirtualMachine"),
        (AGENT_PROVIDER, "AgentCluster"),
        (AGENT_PROVIDER, "AgentMachine"),
        (AGENT_PROVIDER, "AgentMachineTemplate"),
        ("agent-install.openshift.io", "Agent"),
        ("extensions.hive.openshift.io", "AgentClusterInstall"),
        ("hive.openshift.io", "ClusterDeployment"),
    ] {
        resources.push(Resource {
            group: group.into(),
            version: "v1".into(),
            plural: format!("{}s", kind.to_lowercase()),
            kind: kind.into(),
            namespaced: true,
            has_status: false,
            served: vec!["v1".into()],
        });
    }
    resources
}

pub(crate) fn resource(group: &str, kind: &str) -> Resource {
    let mut all = resources().into_iter();
    all.find(|resource| resource.group == group && resource.kind == kind)
        .expect("a kind that is served")
}

/// The versions of a kind: the provider for KubeVirt has one of its own.
fn served(kind: &str) -> &'static [&'static str] {
    if kind.starts_with("Kubevirt") {
        &["v1alpha1"]
    } else {
        &["v1beta1", "v1beta2"]
    }
}

/// The newest of them, in which objects are stored.
fn version(kind: &str) -> &'static str {
    served(kind).last().expect("a version")
}

/// The standard group of a kind.
pub(crate) fn group(kind: &str) -> String {
    let known = KINDS.iter().find(|(_, known, _)| *known == kind);
    known.map_or(String::new(), |(prefix, ..)| format!("{prefix}{CORE}"))
}

pub(crate) fn key(kind: &str, name: &str) -> ObjectKey {
    ObjectKey {
        group: group(kind),
        kind: kind.into(),
        namespace: NAMESPACE.into(),
        name: name.into(),
    }
}

/// Makes objects one after the other, each a little younger than the one before.
pub(crate) struct Build<'a> {
    pub(crate) server: &'a mut Server,
    /// Whether each object is a second younger than the one before.
    pub(crate) aging: bool,
}

impl Build<'_> {
    /// An object with `spec`, owned by `owners`, the first of which is the controller.
    pub(crate) fn object(
        &mut self,
        kind: &str,
        name: &str,
        owners: &[&Object],
        spec: Value,
    ) -> Object {
        self.server.clock += u64::from(self.aging);
        let body = body(kind, name, owners, &spec, self.server.clock);
        self.server.seed(&resource(&group(kind), kind), body)
    }

    pub(crate) fn secret(&mut self, name: &str, owners: &[&Object]) -> Object {
        self.plain("Secret", name, owners)
    }

    /// An object that does not move, metadata only, as it is read.
    pub(crate) fn plain(&mut self, kind: &str, name: &str, owners: &[&Object]) -> Object {
        let resource = resources()
            .into_iter()
            .find(|resource| resource.kind == kind)
            .expect("a kind");
        let mut body = json!({"metadata": {
            "name": name, "namespace": NAMESPACE,
            "labels": {"cluster.x-k8s.io/cluster-name": "one"},
            "managedFields": [entry("manager", "v1", owners)],
        }});
        own(&mut body, owners);
        self.server.seed(&resource, body)
    }

    /// A machine with its bootstrap configuration, infrastructure and Secret.
    pub(crate) fn machine(&mut self, name: &str, owner: &Object) -> Object {
        let spec = json!({
            "clusterName": "one",
            "bootstrap": {"configRef": reference("KubeadmConfig", name), "dataSecretName": name},
            "infrastructureRef": reference("DevMachine", name),
            "providerID": format!("dev:///{name}"),
        });
        let machine = self.object("Machine", name, &[owner], spec);
        let config = self.object(
            "KubeadmConfig",
            name,
            &[&machine],
            json!({"format": "cloud-config"}),
        );
        self.object(
            "DevMachine",
            name,
            &[&machine],
            json!({"providerID": format!("dev:///{name}")}),
        );
        self.secret(&format!("{name}-bootstrap"), &[&config]);
        machine
    }

    /// The least that has everything: a Cluster, its infrastructure, a set of one machine.
    pub(crate) fn tiny(&mut self) {
        let cluster = self.cluster();
        let set = self.object("MachineSet", "workers", &[&cluster], json!({"replicas": 1}));
        self.machine("w-0", &set);
        self.secret("one-kubeconfig", &[&cluster]);
    }

    pub(crate) fn cluster(&mut self) -> Object {
        let spec = json!({
            "infrastructureRef": reference("DevCluster", "one"),
            "controlPlaneRef": reference("KubeadmControlPlane", "one"),
        });
        let cluster = self.object("Cluster", "one", &[], spec);
        self.object("DevCluster", "one", &[&cluster], json!({}));
        cluster
    }

    /// A control plane of `masters` machines, deployments with an old and a new MachineSet, and all that hangs on them.
    pub(crate) fn full(&mut self, masters: usize, workers: usize) {
        let cluster = self.cluster();
        let class = self.object("ClusterClass", "class", &[], json!({
            "infrastructure": {"templateRef": {"apiVersion": format!("{}/v1beta2", group("DevClusterTemplate")),
                "kind": "DevClusterTemplate", "name": "t"}},
            "patches": [{"definitions": [{"jsonPatches": [{"op": "add", "path": "/x", "value": "cluster.x-k8s.io/v1beta2"}]}]}],
        }));
        self.object(
            "DevClusterTemplate",
            "t",
            &[&class],
            json!({"template": {"spec": {}}}),
        );
        let plane = self.object(
            "KubeadmControlPlane",
            "one",
            &[&cluster],
            json!({"replicas": masters, "machineTemplate":
            {"spec": {"infrastructureRef": reference("DevMachineTemplate", "masters")}}}),
        );
        self.object(
            "DevMachineTemplate",
            "masters",
            &[&cluster],
            json!({"template": {"spec": {}}}),
        );
        for index in 0..masters {
            self.machine(&format!("cp-{index}"), &plane);
        }
        for name in ["one-ca", "one-etcd", "one-kubeconfig"] {
            self.secret(name, &[&plane]);
        }
        self.plain("ConfigMap", "one-lock", &[&cluster]);
        let deployment = self.object(
            "MachineDeployment",
            "workers",
            &[&cluster],
            json!({"replicas": workers}),
        );
        self.object(
            "MachineSet",
            "workers-old",
            &[&deployment],
            json!({"replicas": 0}),
        );
        let set = self.object(
            "MachineSet",
            "workers-new",
            &[&deployment],
            json!({
            "replicas": workers, "deletion": {"order": "Oldest"}}),
        );
        for index in 0..workers {
            self.machine(&format!("w-{index}"), &set);
        }
        self.object(
            "MachineHealthCheck",
            "workers",
            &[&cluster],
            json!({"clusterName": "one"}),
        );
        let resources = self.object("ClusterResourceSet", "cni", &[], json!({}));
        self.object(
            "ClusterResourceSetBinding",
            "one",
            &[&resources, &cluster],
            json!({"clusterName": "one"}),
        );
        self.secret("cni", &[&resources]);
        let claim = self.object(
            "IPAddressClaim",
            "w-0",
            &[],
            json!({"poolRef":
            {"apiGroup": "ipam.cluster.x-k8s.io", "kind": "GlobalPool", "name": "pool"}}),
        );
        self.object(
            "IPAddress",
            "w-0",
            &[&claim],
            json!({"address": "192.0.2.1"}),
        );
        self.plain("Secret", "ssh-key", &[]);
        self.plain("Lease", "leader", &[]);
    }
}

/// A reference by group, kind and name.
pub(crate) fn reference(kind: &str, name: &str) -> Value {
    json!({"apiGroup": group(kind), "kind": kind, "name": name})
}

pub(crate) fn body(kind: &str, name: &str, owners: &[&Object], spec: &Value, clock: u64) -> Value {
    let api_version = format!("{}/{}", group(kind), version(kind));
    let applied = json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": name}});
    let mut body = json!({
        "metadata": {
            "name": name, "namespace": NAMESPACE,
            "creationTimestamp": stamp(clock),
            "generation": 3,
            "labels": {"cluster.x-k8s.io/cluster-name": "one"},
            "annotations": {
                "cluster.x-k8s.io/cloned-from-groupkind": "DevMachineTemplate.infrastructure.cluster.x-k8s.io",
                "kubectl.kubernetes.io/last-applied-configuration": format!("{applied}\n"),
            },
            "finalizers": [format!("{}.cluster.x-k8s.io", kind.to_lowercase())],
            "managedFields": [
                entry("manager", &api_version, owners),
                {"manager": "manager", "operation": "Update", "apiVersion": api_version, "subresource": "status",
                 "fieldsType": "FieldsV1", "fieldsV1": {"f:status": {}}},
            ],
        },
        "spec": spec,
    });
    body["status"] = json!({
        "observedGeneration": 3,
        "conditions": [{"type": "Ready", "status": "True", "observedGeneration": 3},
            {"type": "Old", "status": "True", "observedGeneration": 1}],
        "nodeRef": {"apiVersion": "v1", "kind": "Node", "name": name},
    });
    own(&mut body, owners);
    body
}

fn own(body: &mut Value, owners: &[&Object]) {
    if owners.is_empty() {
        return;
    }
    let references = owners.iter().enumerate().map(|(index, owner)| {
        let mut reference = json!({
            "apiVersion": owner.body()["apiVersion"], "kind": owner.key().kind, "name": owner.key().name,
            "uid": owner.uid(), "blockOwnerDeletion": true,
        });
        if index == 0 {
            reference["controller"] = true.into();
        }
        reference
    });
    body["metadata"]["ownerReferences"] = references.collect();
}

fn entry(manager: &str, api_version: &str, owners: &[&Object]) -> Value {
    let mut fields = json!({".": {}});
    for owner in owners {
        fields[format!(r#"k:{{"uid":"{}"}}"#, owner.uid())] = json!({});
    }
    json!({
        "manager": manager, "operation": "Update", "apiVersion": api_version, "fieldsType": "FieldsV1",
        "fieldsV1": {"f:metadata": {"f:ownerReferences": fields}},
    })
}
