//! The files that describe what a cluster finds on Azure.

use std::path::Path;

use anyhow::Context;
use api::hypershift::v1beta1::platform::azure::identity::{
    AzureControlPlaneManagedIdentities, AzureDataPlaneManagedIdentities, AzureWorkloadIdentities,
};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::Usage;
use crate::create::text;

/// The account. The file also has secrets, which are not read.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Account {
    pub(super) subscription_id: String,
    pub(super) tenant_id: String,
}

/// The infrastructure. Fields that are not listed are for other tools.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Infrastructure {
    pub(super) base_domain: Option<String>,
    #[serde(rename = "publicZoneID")]
    public_zone_id: Option<String>,
    #[serde(rename = "privateZoneID")]
    private_zone_id: Option<String>,
    pub(super) region: Option<String>,
    pub(super) resource_group_name: Option<String>,
    #[serde(rename = "vnetID")]
    pub(super) vnet_id: Option<String>,
    #[serde(rename = "subnetID")]
    pub(super) subnet_id: Option<String>,
    #[serde(rename = "bootImageID")]
    pub(super) boot_image_id: Option<String>,
    #[serde(rename = "infraID")]
    pub(super) infra_id: Option<String>,
    #[serde(rename = "securityGroupID")]
    pub(super) security_group_id: Option<String>,
    #[serde(rename = "natSubnetID")]
    pub(super) nat_subnet_id: Option<String>,
    #[serde(rename = "workloadIdentities")]
    workload_identities: Option<Value>,
    #[serde(rename = "kmsClientID")]
    kms_client_id: Option<String>,
}

/// Who components of the cluster are on Azure.
#[derive(Debug, Clone)]
pub(super) enum Identities {
    /// Each component exchanges its token.
    Workload {
        /// Fields as in the HostedCluster.
        fields: Value,
        /// The client ID of the one that uses a key of a key vault.
        kms_client_id: Option<String>,
    },
    /// Certificates in a key vault.
    Managed {
        /// Fields as in the HostedCluster.
        fields: Value,
    },
}

// === impl Account ===

impl Account {
    pub(super) fn read(path: &Path) -> anyhow::Result<Self> {
        let text = text::file("--azure-creds", path)?;
        // Without the parser's message, which may quote a secret.
        serde_saphyr::from_str(&text).map_err(|_| {
            anyhow::anyhow!(
                "--azure-creds {}: write JSON or YAML with subscriptionId and tenantId",
                path.display()
            )
        })
    }
}

// === impl Infrastructure ===

impl Infrastructure {
    pub(super) fn read(path: Option<&Path>) -> anyhow::Result<Self> {
        let Some(path) = path else {
            return Ok(Self::default());
        };
        let mut read: Self = parsed("--infra-json", path)?;
        for empty in [
            &mut read.base_domain,
            &mut read.public_zone_id,
            &mut read.private_zone_id,
            &mut read.region,
            &mut read.boot_image_id,
            &mut read.infra_id,
            &mut read.nat_subnet_id,
            &mut read.kms_client_id,
        ] {
            empty.take_if(|text| text.is_empty());
        }
        Ok(read)
    }

    /// Fields of `spec.dns` that it names.
    pub(super) fn hosted_zones(&self) -> Vec<(&'static str, String)> {
        [
            ("publicZoneID", &self.public_zone_id),
            ("privateZoneID", &self.private_zone_id),
        ]
        .into_iter()
        .filter_map(|(field, id)| Some((field, id.clone()?)))
        .collect()
    }
}

// === impl Identities ===

impl Identities {
    /// Those of files, or else of the infrastructure.
    pub(super) fn read(
        workload: Option<&Path>,
        managed: Option<(&Path, &Path)>,
        infra: &Infrastructure,
    ) -> anyhow::Result<Self> {
        if let Some((control_plane, data_plane)) = managed {
            return Self::managed(control_plane, data_plane);
        }
        let flag = "--workload-identities-file";
        let mut fields: Value = match (workload, &infra.workload_identities) {
            (Some(path), _) => parsed(flag, path)?,
            (None, Some(fields)) => fields.clone(),
            (None, None) => {
                return Err(Usage::new(&format!(
                    "{flag} is needed: this command creates no identities on Azure; pass it, or workloadIdentities in the \
                     file of --infra-json"
                ))
                .into());
            }
        };
        let own = fields
            .as_object_mut()
            .and_then(|fields| fields.shift_remove("kmsClientID"));
        let own = own.as_ref().and_then(Value::as_str).map(str::to_owned);
        valid::<AzureWorkloadIdentities>(flag, &fields)?;
        Ok(Self::Workload {
            fields,
            kms_client_id: own
                .filter(|id| !id.is_empty())
                .or_else(|| infra.kms_client_id.clone()),
        })
    }

    fn managed(control_plane: &Path, data_plane: &Path) -> anyhow::Result<Self> {
        let flag = "--managed-identities-file";
        let mut of_control_plane: Value = parsed(flag, control_plane)?;
        let identities = of_control_plane.as_object_mut().into_iter().flatten();
        for (name, identity) in identities {
            if name != "managedIdentitiesKeyVault" && identity.is_object() {
                identity["objectEncoding"] = json!("utf-8");
            }
        }
        valid::<AzureControlPlaneManagedIdentities>(flag, &of_control_plane)?;
        let flag = "--data-plane-identities-file";
        let of_data_plane: Value = parsed(flag, data_plane)?;
        valid::<AzureDataPlaneManagedIdentities>(flag, &of_data_plane)?;
        Ok(Self::Managed {
            fields: json!({ "controlPlane": of_control_plane, "dataPlane": of_data_plane }),
        })
    }

    /// Whether they are workload identities.
    pub(super) fn are_workload(&self) -> bool {
        matches!(self, Self::Workload { .. })
    }

    /// `azureAuthenticationConfig` of the HostedCluster.
    pub(super) fn config(&self) -> Value {
        match self {
            Self::Workload { fields, .. } => json!({
                "azureAuthenticationConfigType": "WorkloadIdentities",
                "workloadIdentities": fields,
            }),
            Self::Managed { fields } => json!({
                "azureAuthenticationConfigType": "ManagedIdentities",
                "managedIdentities": fields,
            }),
        }
    }
}

/// A resource ID of a subnet.
pub(super) fn check_subnet(flag: &str, id: &str) -> Result<String, Usage> {
    let parts: Vec<_> = id.split('/').collect();
    let named = |index: usize, name: &str| {
        let part = parts.get(index);
        part.is_some_and(|part| part.eq_ignore_ascii_case(name))
    };
    let is_subnet = parts.len() == 11
        && named(0, "")
        && named(1, "subscriptions")
        && named(3, "resourceGroups")
        && named(7, "virtualNetworks")
        && named(9, "subnets");
    if is_subnet {
        return Ok(id.to_owned());
    }
    Err(Usage::new(&format!(
        "{flag} {id:?}: write the resource ID of a subnet, \
         /subscriptions/ID/resourceGroups/NAME/providers/Microsoft.Network/virtualNetworks/NAME/subnets/NAME"
    )))
}

fn parsed<T: DeserializeOwned>(flag: &str, path: &Path) -> anyhow::Result<T> {
    let text = text::file(flag, path)?;
    serde_saphyr::from_str(&text).with_context(|| {
        format!(
            "{flag} {}: this is not what is expected there",
            path.display()
        )
    })
}

/// Checks that all fields are there.
fn valid<T: DeserializeOwned>(flag: &str, fields: &Value) -> anyhow::Result<()> {
    let read = serde_json::from_value::<T>(fields.clone());
    read.map(drop)
        .with_context(|| format!("{flag}: an identity is missing or incomplete"))
}
