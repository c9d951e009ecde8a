//! Azure.

use api::hypershift::v1beta1::HostedControlPlane;
use serde_json::{Value, json};
use support::azure::Cloud;
use support::azure_resources::Group;

use super::{Change, edit, facts};
use crate::config::AzurePrivateLink;
use crate::facts::fixture::{manage_identities, with};
use crate::hosted_cluster::validate::{Finding, Findings, validate};

const AUTHENTICATION: &str = "/platform/azure/azureAuthenticationConfig";

fn findings(change: Change) -> Findings {
    validate(&facts("azure", change))
}

fn message(finding: &Finding) -> &str {
    match finding {
        Finding::Good => "",
        Finding::Bad { message, .. } => message,
    }
}

/// Checks that a finding has this message, or that there is no problem if it is empty.
fn is_reported(name: &str, finding: &Finding, expected_reason: &str, expected: &str) {
    assert_eq!(
        finding.is_good(),
        expected.is_empty(),
        "{name}: {finding:?}"
    );
    assert!(message(finding).contains(expected), "{name}: {finding:?}");
    if let Finding::Bad { reason, .. } = finding {
        assert_eq!(*reason, expected_reason, "{name}");
    }
}

/// Encryption by a key in Azure.
fn encryption(azure: &Value) -> Value {
    let key = json!({ "keyVaultName": "vault", "keyName": "key", "keyVersion": "1" });
    let kms = with(json!({ "activeKey": key }), azure);
    json!({ "type": "kms", "kms": { "provider": "Azure", "azure": kms } })
}

fn workload_identity() -> Value {
    json!({ "clientID": "00000000-0000-0000-0000-000000000009" })
}

#[test]
fn clusters_with_managed_identities_are_valid() {
    let findings = findings(manage_identities);
    assert!(findings.allow_changes(), "{findings:?}");
    assert_eq!(findings.credentials, Finding::Good);
}

#[test]
fn invalid_settings_of_azure_are_refused() {
    let network = "/subscriptions/s/resourceGroups/g/providers/Microsoft.Network";
    let table: [(&str, Change, String); 9] = [
        (
            "no settings",
            |it| edit(it, "/platform/azure", json!(null)),
            "spec.platform.azure is required: set it".to_owned(),
        ),
        (
            "the name of a network",
            |it| edit(it, "/platform/azure/vnetID", json!("vnet")),
            "invalid value \"vnet\" for spec.platform.azure.vnetID: write /subscriptions/".to_owned(),
        ),
        (
            "a network for a subnet",
            |it| {
                let network = json!(
                    "/subscriptions/s/resourceGroups/g/providers/Microsoft.Network/virtualNetworks/v"
                );
                edit(it, "/platform/azure/subnetID", network);
            },
            format!("invalid value \"{network}/virtualNetworks/v\" for spec.platform.azure.subnetID"),
        ),
        (
            "no security group",
            |it| edit(it, "/platform/azure/securityGroupID", json!("")),
            "invalid value \"\" for spec.platform.azure.securityGroupID".to_owned(),
        ),
        (
            "a cloud without managed identities",
            |it| {
                manage_identities(it);
                edit(it, "/platform/azure/cloud", json!("AzureGermanCloud"));
            },
            "spec.platform.azure.cloud is AzureGermanCloud, which has no managed identities".to_owned(),
        ),
        (
            "a key without workload identity",
            |it| edit(it, "/secretEncryption", encryption(&json!({}))),
            "kms.azure.workloadIdentity is required with azureAuthenticationConfigType WorkloadIdentities"
                .to_owned(),
        ),
        (
            "a key without managed identity",
            |it| {
                manage_identities(it);
                let azure = json!({ "workloadIdentity": workload_identity() });
                edit(it, "/secretEncryption", encryption(&azure));
            },
            "kms.azure.kms is required with azureAuthenticationConfigType ManagedIdentities".to_owned(),
        ),
        (
            "a managed HSM",
            |it| {
                let azure =
                    json!({ "workloadIdentity": workload_identity(), "keyVaultType": "ManagedHSM" });
                edit(it, "/secretEncryption", encryption(&azure));
            },
            "keyVaultType is ManagedHSM, which requires release 4.22 or later of the control plane, and it is 4.20.1"
                .to_owned(),
        ),
        (
            "a private key vault",
            |it| {
                let azure =
                    json!({ "workloadIdentity": workload_identity(), "keyVaultType": "KeyVault" });
                edit(it, "/secretEncryption", encryption(&azure));
            },
            String::new(),
        ),
    ];
    for (name, change, expected) in table {
        let findings = findings(change);
        let found = message(&findings.configuration);
        assert_eq!(
            findings.allow_changes(),
            expected.is_empty(),
            "{name}: {findings:?}"
        );
        assert!(found.contains(&expected), "{name}: {found}");
    }
}

#[test]
fn incomplete_identities_of_azure_are_reported() {
    let table: [(&str, Change, &str); 6] = [
        (
            "no workload identities",
            |it| {
                edit(
                    it,
                    &format!("{AUTHENTICATION}/workloadIdentities"),
                    json!(null),
                )
            },
            "azureAuthenticationConfig.workloadIdentities is required with azureAuthenticationConfigType WorkloadIdentities",
        ),
        (
            "no managed identities",
            |it| {
                manage_identities(it);
                edit(
                    it,
                    &format!("{AUTHENTICATION}/managedIdentities"),
                    json!(null),
                );
            },
            "azureAuthenticationConfig.managedIdentities is required with azureAuthenticationConfigType ManagedIdentities",
        ),
        (
            "the name of a certificate with more than a name",
            |it| {
                manage_identities(it);
                let identities = format!("{AUTHENTICATION}/managedIdentities/controlPlane");
                let field = format!("{identities}/network/credentialsSecretName");
                edit(it, &field, json!("a\n    objectName: b"));
            },
            "managedIdentities.controlPlane.network: invalid value \"a\\n    objectName: b\"",
        ),
        (
            "no identity of the registry",
            |it| {
                manage_identities(it);
                let identities = format!("{AUTHENTICATION}/managedIdentities/controlPlane");
                edit(it, &format!("{identities}/imageRegistry"), json!(null));
            },
            "controlPlane.imageRegistry is required while capability ImageRegistry is enabled",
        ),
        (
            "no registry",
            |it| {
                manage_identities(it);
                let identities = format!("{AUTHENTICATION}/managedIdentities/controlPlane");
                edit(it, &format!("{identities}/imageRegistry"), json!(null));
                edit(
                    it,
                    "/capabilities",
                    json!({ "disabled": ["ImageRegistry"] }),
                );
            },
            "",
        ),
        ("all", |_| {}, ""),
    ];
    for (name, change, expected) in table {
        let finding = findings(change).credentials;
        is_reported(name, &finding, "PlatformCredentialsNotFound", expected);
    }
}

#[test]
fn unsupported_clusters_on_azure_are_refused() {
    let table: [(&str, Change, &str); 9] = [
        (
            "no identity for key vaults",
            |it| {
                manage_identities(it);
                it.cloud.azure_key_vault_client_id = None;
            },
            "run the operator with --azure-key-vault-client-id",
        ),
        (
            "no identity for key vaults is needed",
            |it| it.cloud.azure_key_vault_client_id = None,
            "",
        ),
        (
            "a private link",
            |it| be_private(it, "Private", "PrivateLink"),
            "private.type is PrivateLink, and this operator manages no private link services",
        ),
        (
            "a private link beside a public endpoint",
            |it| be_private(it, "PublicAndPrivate", "PrivateLink"),
            "private.type is PrivateLink, and this operator manages no private link services",
        ),
        (
            "a private link of an operator that makes it",
            |it| {
                be_private(it, "Private", "PrivateLink");
                make_private_links(it, Cloud::Public, "AzurePublicCloud");
            },
            "",
        ),
        (
            "a private link in another cloud",
            |it| {
                be_private(it, "Private", "PrivateLink");
                make_private_links(it, Cloud::China, "AzureChinaCloud");
            },
            "spec.platform.azure.cloud is AzurePublicCloud: this operator manages private link services in AzureChinaCloud only",
        ),
        (
            "no private link",
            |it| make_private_links(it, Cloud::China, "AzureChinaCloud"),
            "",
        ),
        (
            "a private link that is there",
            |it| {
                be_private(it, "PublicAndPrivate", "PrivateLink");
                let spec = crate::hosted_cluster::build::control_plane_spec(it);
                it.control_plane = Some(HostedControlPlane::new("one", spec));
                be_private(it, "Private", "PrivateLink");
            },
            "",
        ),
        (
            "pods in the network",
            |it| be_private(it, "Private", "Swift"),
            "",
        ),
    ];
    for (name, change, expected) in table {
        let finding = findings(change).supported;
        is_reported(name, &finding, "UnsupportedHostedCluster", expected);
    }
}

fn make_private_links(facts: &mut crate::facts::Facts, cloud: Cloud, name: &str) {
    facts.cloud.azure_private_link = Some(AzurePrivateLink {
        cloud,
        cloud_name: name.to_owned(),
        group: Group {
            endpoint: cloud.endpoints().management,
            subscription: "management".to_owned(),
            name: "management".to_owned(),
        },
        credentials: None,
    });
}

fn be_private(facts: &mut crate::facts::Facts, topology: &str, type_: &str) {
    edit(facts, "/platform/azure/topology", json!(topology));
    let private = match type_ {
        "Swift" => json!({ "type": type_, "swift": { "podNetworkInstance": "one" } }),
        _ => json!({ "type": type_, "privateLink": {} }),
    };
    edit(facts, "/platform/azure/private", private);
}
