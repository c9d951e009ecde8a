//! What components authenticate to Azure with: Secrets, and `SecretProviderClasses` for certificates of managed identities.

use std::collections::BTreeMap;

use api::hypershift::v1beta1::capabilities::OptionalCapability;
use api::hypershift::v1beta1::platform::azure::AzurePlatformSpec;
use api::hypershift::v1beta1::secret_encryption::azure::AzureKmsSpec;
use control_plane_component::azure::{certificate, secret_provider_class};
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::api::ApiResource;
use kube::core::GroupVersionKind;
use serde_json::json;

use super::identity;
use crate::canonical;
use crate::desired::Desired;
use crate::facts::Facts;

/// The Secret of the ingress operator.
const INGRESS: &str = "azure-ingress-credentials";
/// The Secret of the image registry operator.
const IMAGE_REGISTRY: &str = "azure-image-registry-credentials";
/// The Secret of the controller that assigns egress addresses.
const NETWORK: &str = "cloud-network-config-controller-creds";
/// The Secret with the configuration of the plugin that encrypts Secrets, and its key.
const ENCRYPTION: (&str, &str) = ("azure-kms-config", "cloud.conf");
/// The certificate of the control-plane-operator.
pub(super) const OPERATOR_CLASS: &str = "managed-azure-cpo";
/// The certificate of the plugin that encrypts Secrets.
pub(super) const ENCRYPTION_CLASS: &str = "managed-azure-kms";
/// The certificate of Cluster API's controllers.
pub(super) const MACHINES_CLASS: &str = "managed-azure-nodepool-management";
/// Seconds between two attempts of a request to Azure.
const BACKOFF: u8 = 6;

/// All of them. What the specification lacks is left out: validation reports it.
pub(super) fn desired(facts: &Facts, azure: &AzurePlatformSpec) -> Vec<Desired> {
    let mut all = secrets(facts, azure);
    all.extend(encryption(facts, azure));
    all.extend(classes(facts, azure));
    all
}

/// Whether the hosted cluster has an image registry.
pub(super) fn has_registry(facts: &Facts) -> bool {
    has(facts, OptionalCapability::ImageRegistry)
}

fn has(facts: &Facts, capability: OptionalCapability) -> bool {
    let disabled = &facts.cluster.spec.capabilities.disabled;
    !disabled.contains(&capability)
}

/// Secrets of operators. With managed identities they read certificates, and need the place of the cluster only.
fn secrets(facts: &Facts, azure: &AzurePlatformSpec) -> Vec<Desired> {
    if let Some(identities) = identity::workload(azure) {
        let all = [
            (
                INGRESS,
                &identities.ingress,
                has(facts, OptionalCapability::Ingress),
            ),
            (
                IMAGE_REGISTRY,
                &identities.image_registry,
                has_registry(facts),
            ),
            (NETWORK, &identities.network, true),
        ];
        return all
            .into_iter()
            .filter(|(_, _, is_used)| *is_used)
            .map(|(name, identity, _)| secret(facts, azure, name, Some(&identity.client_id.0)))
            .collect();
    }
    let managed = identity::managed(azure);
    managed
        .map(|_| secret(facts, azure, NETWORK, None))
        .into_iter()
        .collect()
}

fn secret(
    facts: &Facts,
    azure: &AzurePlatformSpec,
    name: &str,
    client_id: Option<&str>,
) -> Desired {
    let prefix = format!("{}-{}", facts.id.name, facts.infra_id());
    let mut data = BTreeMap::from([
        ("azure_region", azure.location.as_str()),
        ("azure_resource_prefix", prefix.as_str()),
        ("azure_resourcegroup", azure.resource_group.as_str()),
        ("azure_subscription_id", azure.subscription_id.as_str()),
        ("azure_tenant_id", azure.tenant_id.as_str()),
    ]);
    if let Some(client_id) = client_id {
        data.insert("azure_client_id", client_id);
        data.insert("azure_federated_token_file", super::TOKEN);
    }
    opaque(facts, name, data)
}

fn opaque(facts: &Facts, name: &str, data: BTreeMap<&str, &str>) -> Desired {
    let data = data
        .into_iter()
        .map(|(key, value)| (key, ByteString(value.as_bytes().to_vec())));
    let data: BTreeMap<_, _> = data.collect();
    let fields = json!({ "type": "Opaque", "data": data });
    Desired::new::<Secret>(&facts.namespace, name, fields)
}

/// The key in Azure that Secrets are encrypted with, if there is one.
pub(crate) fn kms(facts: &Facts) -> Option<&AzureKmsSpec> {
    let encryption = facts.cluster.spec.secret_encryption.as_ref()?;
    encryption.kms.as_ref()?.azure.as_ref()
}

/// The configuration of the plugin that encrypts Secrets.
fn encryption(facts: &Facts, azure: &AzurePlatformSpec) -> Option<Desired> {
    let kms = kms(facts)?;
    let mut config = json!({
        "cloud": azure.cloud,
        "tenantId": azure.tenant_id,
        "subscriptionId": azure.subscription_id,
        "resourceGroup": azure.resource_group,
        "location": azure.location,
        "loadBalancerName": facts.infra_id(),
        "loadBalancerSku": "standard",
        "cloudProviderBackoff": true,
        "cloudProviderBackoffDuration": BACKOFF,
        "disableOutboundSNAT": true,
        "useInstanceMetadata": false,
        "useManagedIdentityExtension": false,
    });
    if identity::uses_managed(azure) {
        let certificate = certificate(kms.kms.as_ref()?).ok()?;
        config["aadMSIDataPlaneIdentityPath"] = json!(certificate);
    } else {
        kms.workload_identity.as_ref()?;
        config["useWorkloadIdentityExtension"] = json!(true);
    }
    let (name, key) = ENCRYPTION;
    let text = canonical::text(&config);
    Some(opaque(facts, name, [(key, text.as_str())].into()))
}

/// Which certificates the CSI driver mounts, of the components that this operator runs.
fn classes(facts: &Facts, azure: &AzurePlatformSpec) -> Vec<Desired> {
    let Some(identities) = identity::managed(azure) else {
        return Vec::new();
    };
    let machines = Some(&identities.node_pool_management);
    let all = [
        (OPERATOR_CLASS, Some(&identities.control_plane_operator)),
        (
            MACHINES_CLASS,
            machines.filter(|_| facts.has_machine_management()),
        ),
        (ENCRYPTION_CLASS, kms(facts).and_then(|it| it.kms.as_ref())),
    ];
    let (vault, client_id) = (
        &identities.managed_identities_key_vault,
        facts.cloud.azure_key_vault_client_id.as_deref(),
    );
    let (group, version) = ("secrets-store.csi.x-k8s.io", "v1");
    let kind = GroupVersionKind::gvk(group, version, "SecretProviderClass");
    let kind = ApiResource::from_gvk_with_plural(&kind, "secretproviderclasses");
    all.into_iter()
        .filter_map(|(name, identity)| {
            let spec = secret_provider_class(vault, identity?, client_id).ok()?;
            let fields = json!({ "spec": spec });
            Some(Desired::of(kind.clone(), &facts.namespace, name, fields))
        })
        .collect()
}
