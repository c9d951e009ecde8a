//! Hosted clusters and facts about them, for tests.

use std::collections::BTreeMap;
use std::sync::Arc;

use api::group::CapiTypes;
use api::hypershift::v1beta1::HostedCluster;
use api::hypershift::v1beta1::platform::PlatformType;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use payload::{Capability, Overrides, Release};
use serde_json::{Value, json};

use super::{AgentNamespace, Facts, Found, Labels, Management, ReleaseIs, Virtualization};
use crate::capi::Capi;
use crate::cluster_ref::Id;
use crate::config::{Cloud, Images};
use crate::facts::references::references;

/// The image of the release in tests.
pub(crate) const RELEASE: &str = "registry.example.com/releases/payload:4.20.1";

/// A cluster that lacks nothing, on a platform: `aws`, `agent`, `kubevirt` or `none`.
pub(crate) fn hosted_cluster(platform: &str) -> HostedCluster {
    let node_port = |service: &str| {
        json!({
            "service": service,
            "servicePublishingStrategy": { "type": "NodePort", "nodePort": { "address": "192.0.2.10" } },
        })
    };
    let route = |service: &str| {
        let host = format!("{}.one.example.com", service.to_lowercase());
        json!({
            "service": service,
            "servicePublishingStrategy": { "type": "Route", "route": { "hostname": host } },
        })
    };
    let of: &dyn Fn(&str) -> Value = if platform == "aws" {
        &route
    } else {
        &node_port
    };
    let services = ["APIServer", "OAuthServer", "Konnectivity", "Ignition"].map(of);
    let cluster = json!({
        "apiVersion": "hypershift.openshift.io/v1beta1",
        "kind": "HostedCluster",
        "metadata": {
            "namespace": "clusters",
            "name": "one",
            "uid": "7d3f1f5e-6f0a-4f4e-8f3d-5b1f2c9f0a11",
            "generation": 3,
            "finalizers": ["hypershift.openshift.io/finalizer"],
        },
        "spec": {
            "release": { "image": RELEASE },
            "clusterID": "3b3c4f7e-2f58-4ab3-8f53-3d5a2d0f9c10",
            "infraID": "one-x7k2p",
            "dns": { "baseDomain": "example.com" },
            "platform": self::platform(platform),
            "networking": {
                "clusterNetwork": [{ "cidr": "10.132.0.0/14" }],
                "serviceNetwork": [{ "cidr": "172.31.0.0/16" }],
            },
            "services": services,
            "etcd": {
                "managementType": "Managed",
                "managed": { "storage": { "type": "PersistentVolume", "persistentVolume": { "size": "8Gi" } } },
            },
            "issuerURL": "https://kubernetes.default.svc",
            "pullSecret": { "name": "pull" },
            "sshKey": { "name": "ssh" },
        },
    });
    serde_json::from_value(cluster).unwrap()
}

fn platform(name: &str) -> Value {
    let arn = |role: &str| format!("arn:aws:iam::123456789012:role/{role}");
    match name {
        "aws" => json!({
            "type": "AWS",
            "aws": {
                "region": "us-east-1",
                "cloudProviderConfig": { "vpc": "vpc-1", "zone": "us-east-1a", "subnet": { "id": "subnet-1" } },
                "endpointAccess": "Public",
                "resourceTags": [{ "key": "team", "value": "red" }],
                "rolesRef": {
                    "ingressARN": arn("ingress"),
                    "imageRegistryARN": arn("image-registry"),
                    "storageARN": arn("storage"),
                    "networkARN": arn("network"),
                    "kubeCloudControllerARN": arn("cloud-controller"),
                    "nodePoolManagementARN": arn("node-pool"),
                    "controlPlaneOperatorARN": arn("control-plane-operator"),
                },
            },
        }),
        "agent" => json!({ "type": "Agent", "agent": { "agentNamespace": "agents" } }),
        "kubevirt" => json!({ "type": "KubeVirt", "kubevirt": { "generateID": "x7k2p" } }),
        _ => json!({ "type": "None" }),
    }
}

/// Facts of a valid cluster.
pub(crate) fn facts(cluster: HostedCluster, types: CapiTypes) -> Facts {
    let id = Id::of(&cluster.metadata);
    let referenced = references(&cluster);
    let referenced = referenced.into_iter().map(|reference| {
        let keys = reference.keys.iter();
        let data = keys.map(|key| (key.clone(), ByteString(b"{\"auths\":{}}".to_vec())));
        let mut secret = Secret {
            data: Some(data.collect()),
            ..Secret::default()
        };
        secret.metadata.name = Some(reference.name.clone());
        (reference, Found::Secret(Box::new(secret)))
    });
    Facts {
        namespace: id.control_plane_namespace(),
        id,
        capi: Capi::new(types),
        control_plane: None,
        referenced: referenced.collect(),
        occupied: Vec::new(),
        agent_namespace: cluster
            .spec
            .platform
            .agent
            .is_some()
            .then_some(AgentNamespace::Allowed),
        release: ReleaseIs::Read(Arc::new(release())),
        control_plane_release: None,
        is_partial: false,
        released_operator: Labels::Read(
            [(Capability::PrivateTypes.label(), "true".to_owned())].into(),
        ),
        operator_labels: BTreeMap::new(),
        deployments: BTreeMap::new(),
        handed_out: BTreeMap::new(),
        ignition: Some("ignition.one.example.com".to_owned()),
        management: Management {
            routes: true,
            chooses_users: false,
            api_server: vec!["192.0.2.1".to_owned()],
            networks: vec!["10.128.0.0/14".to_owned(), "fd02::/112".to_owned()],
        },
        virtualization: (cluster.spec.platform.type_ == PlatformType::KubeVirt).then(|| {
            Virtualization::Found {
                kubernetes: "v1.33.5".to_owned(),
                kubevirt: "v1.6.0".to_owned(),
            }
        }),
        missing_rights: Vec::new(),
        infra_policy: None,
        no_base_domain: None,
        infrastructure_name: None,
        live_migration: Some(BTreeMap::new()),
        cloud: Cloud::default(),
        images: Images {
            capi_proxy: Some("images.example.com/capi-proxy:v1".to_owned()),
            agent_provider: Some("images.example.com/capi-agent:v1".to_owned()),
            kubevirt_provider: Some("images.example.com/capi-kubevirt:v1".to_owned()),
            ..Images::default()
        },
        webhook_tls: None,
        missing_crds: Vec::new(),
        cluster,
    }
}

/// A release with an image for every component that tests use.
pub(crate) fn release() -> Release {
    let tags = [
        "aws-cluster-api-controllers",
        "cluster-capi-controllers",
        "etcd",
        "hyperkube",
        "hypershift",
    ];
    let tags = tags.map(|tag| {
        let image = format!("images.example.com/4.20.1/{tag}@sha256:{}", "0".repeat(64));
        json!({ "name": tag, "from": { "kind": "DockerImage", "name": image } })
    });
    let stream = json!({
        "kind": "ImageStream",
        "apiVersion": "image.openshift.io/v1",
        "metadata": {
            "name": "4.20.1",
            "annotations": { "io.openshift.build.versions": "kubernetes=1.33.5" },
        },
        "spec": { "tags": tags },
    });
    let json = stream.to_string();
    Release::from_image_references(RELEASE, json.as_bytes(), &Overrides::default()).unwrap()
}
