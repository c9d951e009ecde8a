//! The platforms with one cluster and one machine: what of them is where, and what replaces their cloud.

use serde_json::{Value, json};
use testbed::client::Resource;
use testbed::providers::Provider;

use crate::providers::cloud::Kind;

const V1ALPHA1: &str = "infrastructure.cluster.x-k8s.io/v1alpha1";
const V1BETA1: &str = "infrastructure.cluster.x-k8s.io/v1beta1";
const V1BETA2: &str = "infrastructure.cluster.x-k8s.io/v1beta2";

/// A platform.
#[derive(Debug)]
pub(crate) struct Platform {
    /// Its fixture has the provider's name.
    pub(crate) provider: Provider,
    pub(crate) cloud: Kind,
    pub(crate) clusters: Resource<'static>,
    pub(crate) machines: Resource<'static>,
    /// Others that the provider makes, and deletes with the machine.
    pub(crate) others: &'static [Resource<'static>],
    /// What the cluster's manager reports of the infrastructure, because the provider does not manage it.
    pub(crate) infrastructure: fn() -> Value,
    /// What the provider is expected to request. Otherwise two providers that do nothing were equal.
    pub(crate) expected: &'static [&'static str],
}

pub(crate) static AWS: Platform = Platform {
    provider: Provider::Aws,
    cloud: Kind::Aws,
    clusters: Resource::new(V1BETA2, "awsclusters"),
    machines: Resource::new(V1BETA2, "awsmachines"),
    others: &[],
    infrastructure: ready,
    expected: &[
        "patch infrastructure.cluster.x-k8s.io/v1beta2 awsmachines",
        "patch infrastructure.cluster.x-k8s.io/v1beta2 awsmachines/status",
        "watch cluster.x-k8s.io/v1beta2 clusters",
        "watch cluster.x-k8s.io/v1beta2 machines",
        "watch infrastructure.cluster.x-k8s.io/v1beta2 awsclusters",
    ],
};

pub(crate) static GCP: Platform = Platform {
    provider: Provider::Gcp,
    cloud: Kind::Gcp,
    clusters: Resource::new(V1BETA1, "gcpclusters"),
    machines: Resource::new(V1BETA1, "gcpmachines"),
    others: &[],
    infrastructure: ready,
    expected: &[
        "create v1 events",
        "patch infrastructure.cluster.x-k8s.io/v1beta1 gcpmachines",
        "patch infrastructure.cluster.x-k8s.io/v1beta1 gcpmachines/status",
        "watch cluster.x-k8s.io/v1beta2 clusters",
        "watch cluster.x-k8s.io/v1beta2 machines",
        "watch infrastructure.cluster.x-k8s.io/v1beta1 gcpclusters",
    ],
};

pub(crate) static AZURE: Platform = Platform {
    provider: Provider::Azure,
    cloud: Kind::Azure,
    clusters: Resource::new(V1BETA1, "azureclusters"),
    machines: Resource::new(V1BETA1, "azuremachines"),
    others: &[],
    infrastructure: ready,
    expected: &[
        "create v1 secrets",
        "get v1 secrets",
        "patch infrastructure.cluster.x-k8s.io/v1beta1 azuremachines",
        "patch infrastructure.cluster.x-k8s.io/v1beta1 azuremachines/status",
        "watch cluster.x-k8s.io/v1beta2 clusters",
        "watch cluster.x-k8s.io/v1beta2 machines",
        "watch infrastructure.cluster.x-k8s.io/v1beta1 azureclusteridentities",
        "watch infrastructure.cluster.x-k8s.io/v1beta1 azureclusters",
    ],
};

pub(crate) static OPENSTACK: Platform = Platform {
    provider: Provider::Openstack,
    cloud: Kind::Openstack,
    clusters: Resource::new(V1BETA1, "openstackclusters"),
    machines: Resource::new(V1BETA1, "openstackmachines"),
    others: &[Resource::new(V1ALPHA1, "openstackservers")],
    infrastructure: with_network,
    expected: &[
        "create infrastructure.cluster.x-k8s.io/v1alpha1 openstackservers",
        "delete infrastructure.cluster.x-k8s.io/v1alpha1 openstackservers",
        "patch infrastructure.cluster.x-k8s.io/v1alpha1 openstackservers/status",
        "patch infrastructure.cluster.x-k8s.io/v1beta1 openstackmachines",
        "patch infrastructure.cluster.x-k8s.io/v1beta1 openstackmachines/status",
        "watch cluster.x-k8s.io/v1beta2 clusters",
        "watch openstack.k-orc.cloud/v1alpha1 images",
    ],
};

pub(crate) static IBMCLOUD: Platform = Platform {
    provider: Provider::Ibmcloud,
    cloud: Kind::Ibm,
    clusters: Resource::new(V1BETA2, "ibmvpcclusters"),
    machines: Resource::new(V1BETA2, "ibmvpcmachines"),
    others: &[],
    infrastructure: ready,
    expected: &[
        "patch infrastructure.cluster.x-k8s.io/v1beta2 ibmvpcmachines",
        "patch infrastructure.cluster.x-k8s.io/v1beta2 ibmvpcmachines/status",
        "watch cluster.x-k8s.io/v1beta2 clusters",
        "watch cluster.x-k8s.io/v1beta2 machines",
        "watch infrastructure.cluster.x-k8s.io/v1beta2 ibmvpcclusters",
    ],
};

pub(crate) static POWERVS: Platform = Platform {
    provider: Provider::PowerVs,
    cloud: Kind::Ibm,
    clusters: Resource::new(V1BETA2, "ibmpowervsclusters"),
    machines: Resource::new(V1BETA2, "ibmpowervsmachines"),
    others: &[],
    infrastructure: ready,
    expected: &[
        "patch infrastructure.cluster.x-k8s.io/v1beta2 ibmpowervsmachines",
        "patch infrastructure.cluster.x-k8s.io/v1beta2 ibmpowervsmachines/status",
        "watch cluster.x-k8s.io/v1beta2 clusters",
        "watch cluster.x-k8s.io/v1beta2 machines",
        "watch infrastructure.cluster.x-k8s.io/v1beta2 ibmpowervsclusters",
    ],
};

fn ready() -> Value {
    json!({ "status": { "ready": true } })
}

/// Ports of machines are in it.
fn with_network() -> Value {
    let network = json!({ "id": "00000000-0000-0000-0000-000000000002", "name": "testbed" });
    json!({ "status": { "ready": true, "network": network } })
}
