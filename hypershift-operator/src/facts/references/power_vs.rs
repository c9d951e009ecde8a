//! The Secrets with API keys that a cluster on Power Virtual Server names.

use api::hypershift::v1beta1::HostedCluster;

/// What components of the hosted cluster read, and what those of the management cluster read.
const BOTH: &[&str] = &["ibmcloud_api_key", MANAGED];
/// The key that components of the management cluster read.
const MANAGED: &str = "ibm-credentials.env";

/// A field, the Secret that it names, and the keys that the Secret must have.
type Credentials<'a> = (&'static str, &'a str, &'static [&'static str]);

/// All of them, in the order of the fields.
pub(crate) fn credentials(cluster: &HostedCluster) -> Vec<Credentials<'_>> {
    let Some(power_vs) = &cluster.spec.platform.powervs else {
        return Vec::new();
    };
    vec![
        (
            "platform.powervs.kubeCloudControllerCreds",
            &power_vs.kube_cloud_controller_creds.name,
            BOTH,
        ),
        (
            "platform.powervs.nodePoolManagementCreds",
            &power_vs.node_pool_management_creds.name,
            &[MANAGED],
        ),
        (
            "platform.powervs.ingressOperatorCloudCreds",
            &power_vs.ingress_operator_cloud_creds.name,
            BOTH,
        ),
        (
            "platform.powervs.storageOperatorCloudCreds",
            &power_vs.storage_operator_cloud_creds.name,
            BOTH,
        ),
        (
            "platform.powervs.imageRegistryOperatorCloudCreds",
            &power_vs.image_registry_operator_cloud_creds.name,
            BOTH,
        ),
    ]
}
