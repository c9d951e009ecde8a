//! A pool, its cluster and its release, for tests.

use std::collections::BTreeMap;
use std::sync::Arc;

use api::annotations::node_pool::NODE_POOL;
use api::features::FeatureSet;
use api::group::CapiTypes;
use api::hypershift::v1beta1::hosted_cluster::HostedCluster;
use api::hypershift::v1beta1::node_pool::NodePool;
use payload::boot_images::Streams;
use payload::{Capabilities, Overrides, Release};
use serde_json::{Value, json};

use super::facts::Facts;
use super::observed::{Machine, ObservedCondition, Workload};
use super::{mirrored, tuning};
use crate::control_plane_namespace;

pub(crate) const IMAGE: &str = "images.example.com/release:4.22.0";

/// A pool on AWS.
pub(crate) fn pool() -> NodePool {
    let pool = json!({
        "metadata": {
            "namespace": "clusters",
            "name": "workers",
            "uid": "pool-uid",
            "resourceVersion": "7",
            "generation": 3,
        },
        "spec": {
            "clusterName": "dev",
            "replicas": 2,
            "release": { "image": IMAGE },
            "management": { "upgradeType": "Replace" },
            "platform": {
                "type": "AWS",
                "aws": { "instanceType": "m5.large", "subnet": { "id": "subnet-1" } },
            },
        },
    });
    read("NodePool", pool)
}

/// Its cluster, with a control plane.
pub(crate) fn cluster() -> HostedCluster {
    let cluster = json!({
        "metadata": { "namespace": "clusters", "name": "dev", "uid": "cluster-uid" },
        "spec": {
            "release": { "image": IMAGE },
            "infraID": "dev-x1y2z",
            "pullSecret": { "name": "pull-secret" },
            "networking": {},
            "etcd": { "managementType": "Managed" },
            "services": [],
            "platform": {
                "type": "AWS",
                "aws": {
                    "region": "us-east-1",
                    "resourceTags": [{ "key": "team", "value": "a" }],
                    "rolesRef": {
                        "ingressARN": "a", "imageRegistryARN": "a", "storageARN": "a", "networkARN": "a",
                        "kubeCloudControllerARN": "a", "nodePoolManagementARN": "a", "controlPlaneOperatorARN": "a",
                    },
                },
            },
        },
        "status": {
            "kubeconfig": { "name": "dev-admin-kubeconfig" },
            "ignitionEndpoint": "ignition.dev.example.com",
            "controlPlaneEndpoint": { "host": "api.dev.example.com", "port": 6443 },
        },
    });
    read("HostedCluster", cluster)
}

/// A release with boot images.
pub(crate) fn release(version: &str) -> Release {
    let tag = |name: &str| {
        json!({
            "name": name,
            "from": { "kind": "DockerImage", "name": format!("images.example.com/{name}@sha256:{}", "a".repeat(64)) },
        })
    };
    let references = json!({
        "apiVersion": "image.openshift.io/v1",
        "kind": "ImageStream",
        "metadata": { "name": version },
        "spec": { "tags": [tag("haproxy-router"), tag("hypershift")] },
    });
    let stream = json!({
        "stream": "rhcos",
        "architectures": { "x86_64": { "images": {
            "aws": { "regions": { "us-east-1": { "release": "9.6", "image": "ami-0123" } } },
            "kubevirt": { "release": "9.6", "image": "images.example.com/rhcos:9", "digest-ref": "images.example.com/rhcos@sha256:b" },
        } } },
    });
    let map = json!({ "data": { "stream": stream.to_string() } });
    let release = Release::from_image_references(
        IMAGE,
        references.to_string().as_bytes(),
        &Overrides::default(),
    );
    let streams = Streams::parse(&map.to_string()).unwrap();
    release.unwrap().with_boot_images(streams)
}

/// Facts of a new pool with all dependencies.
pub(crate) fn facts() -> Facts {
    let release = release("4.22.0");
    Facts {
        pool: pool(),
        cluster: cluster(),
        types: CapiTypes::Private,
        features: FeatureSet::Default,
        namespace: "clusters-dev".to_owned(),
        owned: Some(control_plane_namespace::for_tests("clusters-dev")),
        now: "2026-11-22T00:00:00Z".parse().unwrap(),
        cluster_version: Some(release.version.clone()),
        release: Ok(Arc::new(release)),
        capabilities: Capabilities::default(),
        operator_image: Some("images.example.com/operator@sha256:c".to_owned()),
        pull_secret: b"{}".to_vec(),
        trust_bundle: None,
        cloud_config: BTreeMap::new(),
        ssh_key: None,
        own: Vec::new(),
        core: Vec::new(),
        tuning: Vec::new(),
        tuning_inputs: tuning::Observed::default(),
        mirrored: mirrored::Observed::default(),
        ignition_ca: Some(b"PEM".to_vec()),
        tokens: Vec::new(),
        user_data: Vec::new(),
        machines: Vec::new(),
        platform_machines: Vec::new(),
        machine_sets: Vec::new(),
        workload: None,
        templates: Vec::new(),
        capacity: None,
        remediation: None,
    }
}

/// A machine whose node is ready.
pub(crate) fn machine(name: &str) -> Machine {
    let condition = ObservedCondition {
        is_so: true,
        ..ObservedCondition::default()
    };
    Machine {
        name: name.to_owned(),
        uid: Some(format!("uid-{name}")),
        annotations: [(NODE_POOL.key().to_owned(), "clusters/workers".to_owned())].into(),
        node: Some(format!("node-{name}")),
        kubelet: Some("v1.35.4".to_owned()),
        ready: condition.clone(),
        healthy: condition,
        ..Machine::default()
    }
}

/// The workload of a pool with this many machines, all available.
pub(crate) fn workload(replicas: i32) -> Workload {
    Workload {
        name: "workers".to_owned(),
        uid: Some("workload-uid".to_owned()),
        desired: Some(replicas),
        replicas,
        up_to_date: replicas,
        available: replicas,
        is_observed: true,
        ..Workload::default()
    }
}

fn read<T: serde::de::DeserializeOwned>(kind: &str, mut object: Value) -> T {
    object["apiVersion"] = json!("hypershift.openshift.io/v1beta1");
    object["kind"] = json!(kind);
    serde_json::from_value(object).unwrap()
}
