//! The infrastructure that a cluster finds on Azure, and who its components are there.

use std::path::Path;

use anyhow::Context;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::create::text;
use crate::infra::azure::{IdentityFiles, NetworkOutput};

/// Name and client ID of what does not exist yet.
const STAND_IN: &str = "not-created-yet";
const STAND_IN_ID: &str = "00000000-0000-0000-0000-000000000000";

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
    workload_identities: Option<Value>,
    #[serde(rename = "kmsClientID")]
    kms_client_id: Option<String>,
}

// === impl Infrastructure ===

impl Infrastructure {
    pub(super) fn read(path: &Path) -> anyhow::Result<Self> {
        let text = text::file("--infra-json", path)?;
        let read: Self = serde_saphyr::from_str(&text).with_context(|| {
            format!(
                "--infra-json {}: this is not what is expected there",
                path.display()
            )
        })?;
        Ok(read.without_empty())
    }

    /// Infrastructure that was created.
    pub(super) fn made(output: &NetworkOutput) -> anyhow::Result<Self> {
        let made: Self = serde_json::from_value(serde_json::to_value(output)?)?;
        Ok(made.without_empty())
    }

    /// Infrastructure that does not exist yet, for checks.
    pub(super) fn stand_in(subscription: &str) -> Self {
        let id = |kind: &str| {
            Some(format!(
                "/subscriptions/{subscription}/resourceGroups/{STAND_IN}/providers/Microsoft.Network/{kind}"
            ))
        };
        Self {
            resource_group_name: Some(STAND_IN.to_owned()),
            vnet_id: id(&format!("virtualNetworks/{STAND_IN}")),
            subnet_id: id(&format!("virtualNetworks/{STAND_IN}/subnets/default")),
            security_group_id: id(&format!("networkSecurityGroups/{STAND_IN}")),
            ..Self::default()
        }
    }

    /// Tools write an empty text for what there is not.
    fn without_empty(mut self) -> Self {
        for empty in [
            &mut self.base_domain,
            &mut self.public_zone_id,
            &mut self.private_zone_id,
            &mut self.region,
            &mut self.boot_image_id,
            &mut self.infra_id,
            &mut self.nat_subnet_id,
            &mut self.kms_client_id,
        ] {
            empty.take_if(|text| text.is_empty());
        }
        self
    }

    /// The identities of files, or else those that it names.
    pub(super) fn identities(
        &self,
        workload: Option<&Path>,
        managed: Option<(&Path, &Path)>,
    ) -> anyhow::Result<Option<IdentityFiles>> {
        let read = IdentityFiles::read(workload, managed)?;
        let found = match (read, &self.workload_identities) {
            (None, Some(fields)) => Some(IdentityFiles::workload(fields.clone())?),
            (read, _) => read,
        };
        Ok(found.map(|found| match found {
            IdentityFiles::Workload {
                fields,
                kms_client_id,
            } => IdentityFiles::Workload {
                fields,
                kms_client_id: kms_client_id.or_else(|| self.kms_client_id.clone()),
            },
            managed @ IdentityFiles::Managed { .. } => managed,
        }))
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

/// Identities that do not exist yet, for checks.
pub(super) fn future_identities() -> IdentityFiles {
    let identity = json!({ "clientID": STAND_IN_ID });
    let fields = [
        "cloudProvider",
        "nodePoolManagement",
        "controlPlaneOperator",
        "imageRegistry",
        "ingress",
        "network",
        "disk",
        "file",
    ];
    let fields = fields.map(|field| (field.to_owned(), identity.clone()));
    IdentityFiles::Workload {
        fields: Value::Object(fields.into_iter().collect()),
        kms_client_id: Some(STAND_IN_ID.to_owned()),
    }
}

/// Whether they are workload identities.
pub(super) fn are_workload(identities: &IdentityFiles) -> bool {
    matches!(identities, IdentityFiles::Workload { .. })
}

/// `azureAuthenticationConfig` of the HostedCluster.
pub(super) fn config(identities: &IdentityFiles) -> Value {
    match identities {
        IdentityFiles::Workload { fields, .. } => json!({
            "azureAuthenticationConfigType": "WorkloadIdentities",
            "workloadIdentities": fields,
        }),
        IdentityFiles::Managed {
            control_plane,
            data_plane,
        } => json!({
            "azureAuthenticationConfigType": "ManagedIdentities",
            "managedIdentities": { "controlPlane": control_plane, "dataPlane": data_plane },
        }),
    }
}
