//! The two files that describe what a cluster finds on AWS.

use std::path::Path;

use anyhow::Context;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::Usage;
use crate::create::text;

/// The network. Fields that are not listed are for other tools.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Infrastructure {
    pub(super) region: Option<String>,
    #[serde(rename = "infraID")]
    pub(super) infra_id: Option<String>,
    #[serde(rename = "machineCIDR", alias = "computeCIDR")]
    pub(super) machine_cidr: Option<String>,
    #[serde(rename = "vpcID")]
    pub(super) vpc_id: String,
    pub(super) zones: Vec<Zone>,
    #[serde(rename = "securityGroupID")]
    pub(super) security_group_id: Option<String>,
    pub(super) base_domain: Option<String>,
    #[serde(rename = "publicZoneID")]
    public_zone_id: Option<String>,
    #[serde(rename = "privateZoneID")]
    private_zone_id: Option<String>,
}

/// An availability zone.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Zone {
    pub(super) name: String,
    #[serde(rename = "subnetID")]
    pub(super) subnet_id: String,
}

/// Who components of the cluster are on AWS.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Identity {
    pub(super) profile_name: Option<String>,
    #[serde(rename = "issuerURL")]
    pub(super) issuer_url: Option<String>,
    /// `rolesRef` of the HostedCluster.
    pub(super) roles: Value,
    #[serde(rename = "kmsKeyARN")]
    pub(super) kms_key_arn: Option<String>,
    #[serde(rename = "kmsProviderRoleARN")]
    pub(super) kms_provider_role_arn: Option<String>,
}

/// The roles that there must be.
const ROLES: [&str; 7] = [
    "ingressARN",
    "imageRegistryARN",
    "storageARN",
    "networkARN",
    "kubeCloudControllerARN",
    "nodePoolManagementARN",
    "controlPlaneOperatorARN",
];

// === impl Infrastructure ===

impl Infrastructure {
    pub(super) fn read(path: &Path) -> anyhow::Result<Self> {
        let read: Self = json_file("--infra-json", path)?;
        if read.zones.is_empty() {
            let message = format!("--infra-json {}: it names no zones", path.display());
            return Err(Usage::new(&message).into());
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
        .filter_map(|(field, id)| Some((field, id.clone().filter(|id| !id.is_empty())?)))
        .collect()
    }
}

// === impl Identity ===

impl Identity {
    pub(super) fn read(path: &Path) -> anyhow::Result<Self> {
        let mut read: Self = json_file("--iam-json", path)?;
        let roles = ROLES.iter().map(|role| {
            let arn = read.roles[role].as_str().ok_or_else(|| {
                Usage::new(&format!(
                    "--iam-json {}: there is no {role} under roles",
                    path.display()
                ))
            })?;
            Ok::<_, Usage>(((*role).to_owned(), Value::from(arn)))
        });
        read.roles = roles.collect::<Result<serde_json::Map<_, _>, _>>()?.into();
        for empty in [
            &mut read.profile_name,
            &mut read.issuer_url,
            &mut read.kms_key_arn,
            &mut read.kms_provider_role_arn,
        ] {
            empty.take_if(|text| text.is_empty());
        }
        Ok(read)
    }
}

fn json_file<T: DeserializeOwned>(flag: &str, path: &Path) -> anyhow::Result<T> {
    let text = text::file(flag, path)?;
    serde_json::from_str(&text).with_context(|| {
        format!(
            "{flag} {}: this is not what is expected there",
            path.display()
        )
    })
}
