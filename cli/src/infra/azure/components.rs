//! Components of a cluster that have identities on Azure, and the service accounts that these identities trust. Pure.

use serde_json::{Value, json};

use super::network::Desired;
use super::resource::IDENTITIES;
use super::scope::Scope;

/// What tokens of service accounts are for.
const AUDIENCE: &str = "openshift";

/// A component.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Component {
    /// Its field in files of workload identities.
    pub(super) field: &'static str,
    /// The part of its identity's name.
    pub(super) part: &'static str,
    credentials: &'static [Credential],
}

/// A service account that an identity trusts.
#[derive(Debug, PartialEq, Eq)]
struct Credential {
    /// The end of its name.
    name: &'static str,
    namespace: &'static str,
    account: &'static str,
}

const DRIVERS: &str = "openshift-cluster-csi-drivers";
const REGISTRY: &str = "openshift-image-registry";

/// The components of all clusters.
pub(super) static COMPONENTS: [Component; 8] = [
    Component {
        field: "disk",
        part: "disk",
        credentials: &[
            credential("disk-fed-id-node", DRIVERS, "azure-disk-csi-driver-node-sa"),
            credential(
                "disk-fed-id-operator",
                DRIVERS,
                "azure-disk-csi-driver-operator",
            ),
            credential(
                "disk-fed-id-controller",
                DRIVERS,
                "azure-disk-csi-driver-controller-sa",
            ),
        ],
    },
    Component {
        field: "file",
        part: "file",
        credentials: &[
            credential("file-fed-id-node", DRIVERS, "azure-file-csi-driver-node-sa"),
            credential(
                "file-fed-id-operator",
                DRIVERS,
                "azure-file-csi-driver-operator",
            ),
            credential(
                "file-fed-id-controller",
                DRIVERS,
                "azure-file-csi-driver-controller-sa",
            ),
        ],
    },
    Component {
        field: "imageRegistry",
        part: "image-registry",
        credentials: &[
            credential("image-registry-fed-id-registry", REGISTRY, "registry"),
            credential(
                "image-registry-fed-id-operator",
                REGISTRY,
                "cluster-image-registry-operator",
            ),
        ],
    },
    Component {
        field: "ingress",
        part: "ingress",
        credentials: &[credential(
            "ingress-fed-id",
            "openshift-ingress-operator",
            "ingress-operator",
        )],
    },
    Component {
        field: "cloudProvider",
        part: "cloud-provider",
        credentials: &[credential(
            "cloud-provider-fed-id",
            "kube-system",
            "azure-cloud-provider",
        )],
    },
    Component {
        field: "nodePoolManagement",
        part: "node-pool-mgmt",
        credentials: &[credential(
            "node-pool-mgmt-fed-id",
            "kube-system",
            "capi-provider",
        )],
    },
    Component {
        field: "network",
        part: "network",
        credentials: &[credential(
            "network-fed-id",
            "openshift-cloud-network-config-controller",
            "cloud-network-config-controller",
        )],
    },
    Component {
        field: "controlPlaneOperator",
        part: "control-plane-operator",
        credentials: &[credential(
            "cpo-fed-id",
            "kube-system",
            "control-plane-operator",
        )],
    },
];

/// The one that encrypts Secrets by a key of a key vault.
pub(super) static KMS: Component = Component {
    field: "kms",
    part: "kms",
    credentials: &[credential("kms-fed-id", "kube-system", "kms-provider")],
};

const fn credential(
    name: &'static str,
    namespace: &'static str,
    account: &'static str,
) -> Credential {
    Credential {
        name,
        namespace,
        account,
    }
}

// === impl Component ===

impl Component {
    /// What makes an identity trust the component's service accounts.
    pub(super) fn credentials(&self, scope: &Scope, identity: &str, issuer: &str) -> Vec<Desired> {
        let desired = |credential: &Credential| Desired {
            noun: "federated credential",
            id: format!(
                "{identity}/federatedIdentityCredentials/{}-{}",
                scope.name, credential.name
            ),
            version: IDENTITIES,
            body: json!({ "properties": credential.properties(issuer) }),
        };
        self.credentials.iter().map(desired).collect()
    }
}

// === impl Credential ===

impl Credential {
    fn properties(&self, issuer: &str) -> Value {
        let (namespace, account) = (self.namespace, self.account);
        json!({
            "issuer": issuer,
            "subject": format!("system:serviceaccount:{namespace}:{account}"),
            "audiences": [AUDIENCE],
        })
    }
}
