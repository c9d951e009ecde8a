//! Azure: what the schema of the API does not validate.

use api::hypershift::v1beta1::platform::azure::private::AzurePrivateType;
use api::hypershift::v1beta1::platform::azure::{AzurePlatformSpec, AzureTopology};
use api::hypershift::v1beta1::secret_encryption::azure::{AzureKeyVaultType, AzureKmsSpec};
use control_plane_component::azure::Resource;
use payload::Minor;
use serde_json::json;

use super::Problems;
use crate::facts::Facts;
use crate::platform::azure::identity::{cloud_type, uses_managed};
use crate::platform::azure::kms;

/// The first release whose encryption plugin uses keys of a managed HSM.
const MANAGED_HSM: Minor = Minor::of_4(22);

/// Why this operator cannot run the cluster.
pub(super) fn unsupported(facts: &Facts) -> Option<String> {
    let azure = facts.cluster.spec.platform.azure.as_ref()?;
    no_key_vault_client(facts, azure).or_else(|| private_link(facts, azure))
}

/// Without it the CSI driver could not read the certificates of the managed identities.
fn no_key_vault_client(facts: &Facts, azure: &AzurePlatformSpec) -> Option<String> {
    let is_missing = uses_managed(azure) && facts.cloud.azure_key_vault_client_id.is_none();
    is_missing.then(|| {
        "spec.platform.azure.azureAuthenticationConfig uses ManagedIdentities, and the operator has no identity that reads \
         their certificates from the key vault: run the operator with --azure-key-vault-client-id, or create the cluster \
         with WorkloadIdentities"
            .to_owned()
    })
}

/// Whether nodes reach the control plane by a private link.
pub(super) fn has_private_link(azure: &AzurePlatformSpec) -> bool {
    let type_ = azure.private.as_ref().map(|it| it.type_);
    let is_public = azure.topology.is_none_or(|it| it == AzureTopology::Public);
    !is_public && type_ == Some(AzurePrivateType::PrivateLink)
}

/// A private link needs a private link service, which this operator makes if it knows where. A control plane that was private
/// before is not held up: its conditions report the same.
fn private_link(facts: &Facts, azure: &AzurePlatformSpec) -> Option<String> {
    const FIELD: &str = "spec.platform.azure.private.type is PrivateLink";
    if !has_private_link(azure) || was_private(facts) {
        return None;
    }
    let Some(own) = &facts.cloud.azure_private_link else {
        return Some(format!(
            "{FIELD}, and this operator manages no private link services: nodes would not reach the control plane. Create the \
             cluster with topology Public, or have the administrator of the management cluster run `hypershift install` with \
             --private-platform Azure"
        ));
    };
    let cloud = json!(azure.cloud);
    let cloud = cloud.as_str().unwrap_or_default();
    (cloud != own.cloud_name).then(|| {
        format!(
            "{FIELD}, and spec.platform.azure.cloud is {cloud}: this operator manages private link services in {} only. Create \
             the cluster there, or with topology Public",
            own.cloud_name
        )
    })
}

fn was_private(facts: &Facts) -> bool {
    let control_plane = facts.control_plane.as_ref();
    let azure = control_plane.and_then(|it| it.spec.platform.azure.as_ref());
    let topology = azure.and_then(|it| it.topology);
    topology.is_some_and(|it| it != AzureTopology::Public)
}

/// Problems of the configuration.
pub(super) fn problems(facts: &Facts) -> Problems {
    let Some(azure) = &facts.cluster.spec.platform.azure else {
        return Problems::new();
    };
    let mut problems = resources(azure);
    problems.extend(cloud(azure));
    if let Some(kms) = kms(facts) {
        problems.extend(key_identity(azure, kms));
        problems.extend(managed_hsm(facts, kms));
    }
    problems
}

/// Names and resource groups are taken from IDs, which the schema limits in length only.
fn resources(azure: &AzurePlatformSpec) -> Problems {
    let all = [
        Resource::vnet(azure),
        Resource::subnet(azure),
        Resource::security_group(azure),
    ];
    all.into_iter()
        .filter_map(|it| it.err().map(|invalid| invalid.to_string()))
        .collect()
}

fn cloud(azure: &AzurePlatformSpec) -> Option<String> {
    let is_unknown = uses_managed(azure) && cloud_type(azure.cloud).is_none();
    is_unknown.then(|| {
        let cloud = json!(azure.cloud);
        format!(
            "spec.platform.azure.cloud is {}, which has no managed identities: use AzurePublicCloud, AzureUSGovernmentCloud \
             or AzureChinaCloud, or create the cluster with WorkloadIdentities",
            cloud.as_str().unwrap_or_default()
        )
    })
}

/// The identity that uses the key is of the same kind as those of the platform.
fn key_identity(azure: &AzurePlatformSpec, kms: &AzureKmsSpec) -> Option<String> {
    let (field, type_, is_there) = if uses_managed(azure) {
        ("kms", "ManagedIdentities", kms.kms.is_some())
    } else {
        (
            "workloadIdentity",
            "WorkloadIdentities",
            kms.workload_identity.is_some(),
        )
    };
    (!is_there).then(|| {
        format!(
            "spec.secretEncryption.kms.azure.{field} is required with azureAuthenticationConfigType {type_}: set it to the \
             identity that uses the key"
        )
    })
}

fn managed_hsm(facts: &Facts, kms: &AzureKmsSpec) -> Option<String> {
    if kms.key_vault_type != Some(AzureKeyVaultType::ManagedHsm) {
        return None;
    }
    let version = &facts.operated().read()?.version;
    (version.minor() < MANAGED_HSM).then(|| {
        format!(
            "spec.secretEncryption.kms.azure.keyVaultType is ManagedHSM, which requires release 4.22 or later of the control \
             plane, and it is {version}: use such a release, or a key of an ordinary key vault"
        )
    })
}
