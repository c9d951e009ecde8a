//! Azure: the network is the user's, the controllers are those of the release, and they act as an identity of the user's.

use api::group::AZURE_MACHINE_FINALIZER;
use api::hypershift::v1beta1::platform::azure::{AzureCloud, AzurePlatformSpec};
use control_plane_component::azure::{Resource, certificate_mount, certificate_volume};
use k8s_openapi::api::core::v1::PodSpec;
use kube::api::ApiResource;
use serde_json::{Value, json};

use super::identity::{self, MachineIdentity};
use super::{credentials, orphans};
use crate::capi::Capi;
use crate::desired::Desired;
use crate::facts::Facts;
use crate::platform::{ClusterIs, Infrastructure, Orphans, add, release_image, requests};

/// The release's name for the controllers.
const IMAGE: &str = "azure-cluster-api-controllers";
/// Annotation that names another image.
const IMAGE_ANNOTATION: &str = "hypershift.openshift.io/capi-provider-azure-image";
/// Their arguments. Objects of the Azure Service Operator are not used: the network is the user's, and the provider makes
/// machines without them.
const ARGUMENTS: [&str; 4] = [
    "--namespace=$(MY_NAMESPACE)",
    "--leader-elect=true",
    "--feature-gates=MachinePool=false,ASOAPI=false",
    "--disable-controllers-or-webhooks=DisableASOSecretController",
];
/// What they request.
const REQUESTS: [(&str, &str); 2] = [("cpu", "10m"), ("memory", "10Mi")];
/// The volume with the certificate of their managed identity.
const CERTIFICATE: &str = "nodepool-management-cert";
/// The volume with the certificate of the control-plane-operator's own managed identity.
const OPERATOR_CERTIFICATE: &str = "cpo-cert";
/// The volume with the certificate of the managed identity that uses the key for Secrets, and where the
/// control-plane-operator has it, which tests the key.
const KEY_CERTIFICATE: (&str, &str) = ("kms-cert", "/mnt/kms");
/// The service account of the hosted cluster whose tokens their workload identity trusts.
const ACCOUNT: &str = "capi-provider";

/// Microsoft Azure.
#[derive(Debug)]
pub(crate) struct Azure;

/// The service account of the hosted cluster, in namespace `kube-system`, whose tokens the controllers present to Azure.
/// Nothing with managed identities.
pub(crate) fn token_account(facts: &Facts) -> Option<&'static str> {
    let azure = facts.cluster.spec.platform.azure.as_ref()?;
    (!identity::uses_managed(azure)).then_some(ACCOUNT)
}

/// Whether the control plane's components read certificates of managed identities from a key vault, which only the operator of
/// a managed service has an identity for.
pub(crate) fn mounts_certificates(facts: &Facts) -> bool {
    let azure = facts.cluster.spec.platform.azure.as_ref();
    azure.is_some_and(identity::uses_managed) && facts.cloud.azure_key_vault_client_id.is_some()
}

/// Volumes for the control-plane-operator with certificates of managed identities, and their mounts: its own one, with which it
/// looks at the network, and that of the identity that uses the key for Secrets.
pub(crate) fn operator_certificates(facts: &Facts) -> Vec<(Value, Value)> {
    if !mounts_certificates(facts) {
        return Vec::new();
    }
    let own = (
        certificate_volume(OPERATOR_CERTIFICATE, credentials::OPERATOR_CLASS),
        certificate_mount(OPERATOR_CERTIFICATE),
    );
    let has_key = credentials::kms(facts).is_some_and(|kms| kms.kms.is_some());
    let key = has_key.then(|| {
        let (name, path) = KEY_CERTIFICATE;
        let volume = certificate_volume(name, credentials::ENCRYPTION_CLASS);
        let mount = json!({ "name": name, "mountPath": path, "readOnly": true });
        (volume, mount)
    });
    [Some(own), key].into_iter().flatten().collect()
}

// === impl Azure ===

impl Infrastructure for Azure {
    fn cluster(&self, facts: &Facts) -> ClusterIs {
        let azure = facts.cluster.spec.platform.azure.as_ref();
        let cluster = azure.and_then(|azure| cluster(facts, azure));
        cluster.map_or(ClusterIs::Later, |it| ClusterIs::Desired(Box::new(it)))
    }

    fn kinds(&self, capi: Capi) -> Option<Vec<ApiResource>> {
        Some(vec![
            super::cluster(capi),
            super::cluster_identity(capi),
            super::machine_template(capi),
            super::machine(capi),
        ])
    }

    fn provider_image(&self, facts: &Facts) -> Result<Option<String>, String> {
        let flag = facts.images.azure_provider.as_ref();
        release_image::of_release(facts, IMAGE_ANNOTATION, flag, IMAGE)
    }

    fn credentials(&self, facts: &Facts) -> Option<Vec<String>> {
        let azure = facts.cluster.spec.platform.azure.as_ref();
        Some(azure.map_or_else(Vec::new, |azure| identity::problems(facts, azure)))
    }

    /// With them the identity of Cluster API's controllers, which the infrastructure cluster refers to.
    fn secrets(&self, facts: &Facts) -> Vec<Desired> {
        let Some(azure) = &facts.cluster.spec.platform.azure else {
            return Vec::new();
        };
        let mut objects = credentials::desired(facts, azure);
        if facts.has_machine_management() {
            objects.extend(identity::desired(facts, azure));
        }
        objects
    }

    fn adapt(&self, facts: &Facts, pod: &mut PodSpec) {
        let Some(azure) = &facts.cluster.spec.platform.azure else {
            return;
        };
        let Some(container) = pod.containers.first_mut() else {
            return;
        };
        container.args = Some(ARGUMENTS.map(str::to_owned).into());
        container.resources = Some(requests(REQUESTS));
        match identity::of_machines(azure) {
            Some(MachineIdentity::Managed(_)) => {
                let client_id = &facts.cloud.azure_key_vault_client_id;
                let variable = json!([{ "name": super::KEY_VAULT_CLIENT, "value": client_id }]);
                add(&mut container.env, variable);
                let mount = certificate_mount(CERTIFICATE);
                add(&mut container.volume_mounts, json!([mount]));
                let volume = certificate_volume(CERTIFICATE, credentials::MACHINES_CLASS);
                add(&mut pod.volumes, json!([volume]));
            }
            Some(MachineIdentity::Workload(client_id)) => {
                let variables = [
                    ("AZURE_FEDERATED_TOKEN_FILE", super::TOKEN),
                    ("AZURE_CLIENT_ID", client_id),
                    ("AZURE_TENANT_ID", azure.tenant_id.as_str()),
                ];
                let variables =
                    variables.map(|(name, value)| json!({ "name": name, "value": value }));
                add(&mut container.env, json!(variables));
            }
            None => {}
        }
    }

    /// Only with managed identities, which the managed service may revoke before the cluster is gone.
    fn orphans(&self, facts: &Facts) -> Option<Orphans> {
        let azure = facts.cluster.spec.platform.azure.as_ref()?;
        identity::uses_managed(azure).then(|| Orphans {
            resource: super::machine(facts.capi),
            finalizer: AZURE_MACHINE_FINALIZER,
            is_orphaned: orphans::is_orphaned,
        })
    }
}

/// The infrastructure cluster; nothing while the specification lacks something, which validation reports.
fn cluster(facts: &Facts, azure: &AzurePlatformSpec) -> Option<Desired> {
    let vnet = Resource::vnet(azure).ok()?;
    identity::desired(facts, azure)?;
    let (name, namespace, infra_id) = (&facts.id.name, &facts.namespace, facts.infra_id());
    let mut spec = json!({
        "location": azure.location,
        "resourceGroup": azure.resource_group,
        "subscriptionID": azure.subscription_id,
        "identityRef": { "name": name, "namespace": namespace },
        "networkSpec": {
            "vnet": { "id": azure.vnet_id, "name": vnet.name, "resourceGroup": vnet.group },
            "nodeOutboundLB": { "name": infra_id, "backendPool": { "name": infra_id } },
        },
    });
    if let Some(environment) = environment(azure) {
        spec["azureEnvironment"] = environment;
    }
    if let Some(endpoint) = facts.control_plane_endpoint() {
        spec["controlPlaneEndpoint"] = endpoint;
    }
    let fields = json!({ "spec": spec });
    Some(Desired::of(
        super::cluster(facts.capi),
        namespace,
        name,
        fields,
    ))
}

/// The cloud, where it is not the provider's default.
fn environment(azure: &AzurePlatformSpec) -> Option<Value> {
    (azure.cloud != AzureCloud::PublicCloud).then(|| json!(azure.cloud))
}

#[cfg(test)]
mod tests;
