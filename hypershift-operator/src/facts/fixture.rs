//! Hosted clusters and facts about them, for tests.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use api::group::CapiTypes;
use api::hypershift::v1beta1::HostedCluster;
use api::hypershift::v1beta1::platform::PlatformType;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use payload::{Capability, Overrides, Release};
use serde_json::{Value, json};

use super::{
    AgentNamespace, Facts, Found, InfraTime, Labels, Management, ReleaseIs, Virtualization,
};
use crate::capi::Capi;
use crate::cluster_ref::Id;
use crate::config::{Cloud, Images};
use crate::facts::references::references;

/// The image of the release in tests.
pub(crate) const RELEASE: &str = "registry.example.com/releases/payload:4.20.1";

/// A cluster that lacks nothing, on a platform: `aws`, `azure`, `agent`, `gcp`, `ibmcloud`, `kubevirt`, `openstack`, `powervs`
/// or `none`.
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
    let of: &dyn Fn(&str) -> Value = if ["aws", "azure"].contains(&platform) {
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
        "azure" => json!({ "type": "Azure", "azure": azure() }),
        "gcp" => json!({ "type": "GCP", "gcp": gcp() }),
        "kubevirt" => json!({ "type": "KubeVirt", "kubevirt": { "generateID": "x7k2p" } }),
        "openstack" => json!({ "type": "OpenStack", "openstack": {
            "identityRef": { "name": "one-cloud", "cloudName": "openstack" },
        } }),
        "powervs" => json!({ "type": "PowerVS", "powervs": power_vs() }),
        "ibmcloud" => json!({ "type": "IBMCloud" }),
        _ => json!({ "type": "None" }),
    }
}

fn gcp() -> Value {
    let email = |account: &str| format!("{account}@my-project.iam.gserviceaccount.com");
    json!({
        "project": "my-project",
        "region": "us-central1",
        "networkConfig": {
            "network": { "name": "my-network" },
            "privateServiceConnectSubnet": { "name": "psc" },
        },
        "resourceLabels": [{ "key": "team", "value": "red" }],
        "workloadIdentity": {
            "projectNumber": "123456789012",
            "poolID": "my-pool",
            "providerID": "my-provider",
            "serviceAccountsEmails": {
                "nodePool": email("node-pool"),
                "controlPlane": email("control-plane"),
                "cloudController": email("cloud-controller"),
                "storage": email("storage"),
                "imageRegistry": email("image-registry"),
                "network": email("network"),
            },
        },
    })
}

fn power_vs() -> Value {
    json!({
        "accountID": "account",
        "cisInstanceCRN": "crn:v1:bluemix:public:internet-svcs:global:a/1:2::",
        "resourceGroup": "group",
        "region": "osa",
        "zone": "osa21",
        "serviceInstanceID": "workspace",
        "subnet": { "name": "nodes" },
        "vpc": { "name": "network", "region": "jp-osa" },
        "kubeCloudControllerCreds": { "name": "one-cloud-controller" },
        "nodePoolManagementCreds": { "name": "one-node-pool" },
        "ingressOperatorCloudCreds": { "name": "one-ingress" },
        "storageOperatorCloudCreds": { "name": "one-storage" },
        "imageRegistryOperatorCloudCreds": { "name": "one-registry" },
    })
}

fn azure() -> Value {
    let network = "/subscriptions/subscription/resourceGroups/network/providers/Microsoft.Network";
    let client =
        |number: u8| json!({ "clientID": format!("00000000-0000-0000-0000-{number:012}") });
    json!({
        "location": "eastus",
        "resourceGroup": "machines",
        "vnetID": format!("{network}/virtualNetworks/vnet"),
        "subnetID": format!("{network}/virtualNetworks/vnet/subnets/nodes"),
        "securityGroupID": format!("{network}/networkSecurityGroups/nsg"),
        "subscriptionID": "subscription",
        "tenantID": "tenant",
        "azureAuthenticationConfig": {
            "azureAuthenticationConfigType": "WorkloadIdentities",
            "workloadIdentities": {
                "cloudProvider": client(1),
                "nodePoolManagement": client(2),
                "imageRegistry": client(3),
                "ingress": client(4),
                "network": client(5),
                "disk": client(6),
                "file": client(7),
            },
        },
    })
}

/// Has a cluster use Karpenter.
pub(crate) fn with_auto_node(cluster: &mut HostedCluster) {
    let karpenter = json!({ "platform": "AWS", "aws": {
        "roleARN": "arn:aws:iam::123456789012:role/karpenter",
    } });
    let auto_node = json!({ "provisionerConfig": { "name": "Karpenter", "karpenter": karpenter } });
    cluster.spec.auto_node = serde_json::from_value(auto_node).unwrap();
}

/// An object with these fields in addition to those that are required, or in their place.
pub(crate) fn with(mut required: Value, fields: &Value) -> Value {
    for (field, value) in fields.as_object().unwrap() {
        required[field] = value.clone();
    }
    required
}

/// Has a cluster on Azure use managed identities, as the managed service does.
pub(crate) fn manage_identities(facts: &mut Facts) {
    let identity = |name: &str| json!({ "credentialsSecretName": name, "objectEncoding": "utf-8" });
    let authentication = json!({
        "azureAuthenticationConfigType": "ManagedIdentities",
        "managedIdentities": {
            "controlPlane": {
                "managedIdentitiesKeyVault": { "name": "vault", "tenantID": "vault-tenant" },
                "cloudProvider": identity("cloud-provider"),
                "nodePoolManagement": identity("node-pool"),
                "controlPlaneOperator": identity("operator"),
                "imageRegistry": identity("image-registry"),
                "ingress": identity("ingress"),
                "network": identity("network"),
                "disk": identity("disk"),
                "file": identity("file"),
            },
            "dataPlane": {
                "imageRegistryMSIClientID": "registry",
                "diskMSIClientID": "disk",
                "fileMSIClientID": "file",
            },
        },
    });
    let azure = facts.cluster.spec.platform.azure.as_mut().unwrap();
    azure.azure_authentication_config = serde_json::from_value(authentication).unwrap();
    facts.cloud.azure_key_vault_client_id = Some("key-vault-client".to_owned());
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
            monitors: true,
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
        infra_time: InfraTime::default(),
        no_base_domain: None,
        no_encryption_key: None,
        infrastructure_name: None,
        live_migration: Some(BTreeMap::new()),
        cloud: Cloud::default(),
        images: Images {
            capi_proxy: Some("images.example.com/capi-proxy:v1".to_owned()),
            own: Some("images.example.com/hypershift-operator:v1".to_owned()),
            agent_provider: Some("images.example.com/capi-agent:v1".to_owned()),
            kubevirt_provider: Some("images.example.com/capi-kubevirt:v1".to_owned()),
            ..Images::default()
        },
        oidc_documents: None,
        private_links: Vec::new(),
        public_subnets: BTreeSet::new(),
        auto_node: None,
        webhook_tls: None,
        missing_crds: Vec::new(),
        cluster,
    }
}

/// A release with an image for every component that tests use.
pub(crate) fn release() -> Release {
    release_of("4.20.1")
}

/// The same of another version.
pub(crate) fn release_of(version: &str) -> Release {
    let tags = [
        "aws-cluster-api-controllers",
        "azure-cluster-api-controllers",
        "cluster-capi-controllers",
        "etcd",
        "gcp-cluster-api-controllers",
        "hyperkube",
        "hypershift",
        "ibmcloud-cluster-api-controllers",
        "openstack-cluster-api-controllers",
        "openstack-resource-controller",
    ];
    let tags = tags.map(|tag| {
        let image = format!(
            "images.example.com/{version}/{tag}@sha256:{}",
            "0".repeat(64)
        );
        json!({ "name": tag, "from": { "kind": "DockerImage", "name": image } })
    });
    let stream = json!({
        "kind": "ImageStream",
        "apiVersion": "image.openshift.io/v1",
        "metadata": {
            "name": version,
            "annotations": { "io.openshift.build.versions": "kubernetes=1.33.5" },
        },
        "spec": { "tags": tags },
    });
    let json = stream.to_string();
    Release::from_image_references(RELEASE, json.as_bytes(), &Overrides::default()).unwrap()
}
