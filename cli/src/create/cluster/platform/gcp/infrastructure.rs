//! What a cluster finds on Google Cloud: its network, and who its components are.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Context as _;
use clap::Args;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::Usage;
use crate::create::text;
use crate::infra::gcp::{COMPONENTS, IdentityOutput, NetworkOutput};

/// The network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Network {
    pub(super) project: String,
    pub(super) region: String,
    pub(super) name: String,
    /// The subnet of the endpoint, and of nodes unless a flag names another.
    pub(super) subnet: String,
    /// Address range of the subnet, if it is known.
    pub(super) cidr: Option<String>,
    /// Name of the infrastructure, if it was created for one.
    pub(super) infra_id: Option<String>,
}

/// Who components of the cluster are on Google Cloud.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Identity {
    pub(super) project_number: String,
    pub(super) pool_id: String,
    pub(super) provider_id: String,
    /// E-mail addresses by field of the HostedCluster.
    pub(super) emails: BTreeMap<&'static str, String>,
    /// URL of the issuer of tokens, if it is known.
    pub(super) issuer_url: Option<String>,
    /// ID of the project, if a file describes the identities.
    pub(super) project: Option<String>,
    /// Name of the infrastructure, if a file describes the identities.
    pub(super) infra_id: Option<String>,
}

/// Flags of identities that exist: all or none.
#[derive(Debug, Clone, Args)]
pub(super) struct IdentityArgs {
    /// Number of the project of the workload identity pool
    #[arg(long, value_name = "NUMBER")]
    workload_identity_project_number: Option<String>,

    /// ID of the workload identity pool
    #[arg(long, value_name = "ID")]
    workload_identity_pool_id: Option<String>,

    /// ID of the provider in the pool
    #[arg(long, value_name = "ID")]
    workload_identity_provider_id: Option<String>,

    /// E-mail address of the service account of Cluster API
    #[arg(long, value_name = "EMAIL")]
    node_pool_service_account: Option<String>,

    /// E-mail address of the service account of the control plane operator
    #[arg(long, value_name = "EMAIL")]
    control_plane_service_account: Option<String>,

    /// E-mail address of the service account of the cloud controller manager
    #[arg(long, value_name = "EMAIL")]
    cloud_controller_service_account: Option<String>,

    /// E-mail address of the service account of the CSI driver
    #[arg(long, value_name = "EMAIL")]
    storage_service_account: Option<String>,

    /// E-mail address of the service account of the image registry
    #[arg(long, value_name = "EMAIL")]
    image_registry_service_account: Option<String>,

    /// E-mail address of the service account of the cloud network configuration controller
    #[arg(long, value_name = "EMAIL")]
    network_service_account: Option<String>,
}

/// The file of `--infra-json`. Fields that are not listed are for other tools.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct NetworkFile {
    region: String,
    project_id: String,
    infra_id: String,
    network_name: String,
    subnet_name: String,
    subnet_cidr: Option<String>,
}

// === impl Network ===

impl Network {
    pub(super) fn read(path: &Path) -> anyhow::Result<Self> {
        let file: NetworkFile = json_file("--infra-json", path)?;
        Ok(Self {
            project: file.project_id,
            region: file.region,
            name: file.network_name,
            subnet: file.subnet_name,
            cidr: file.subnet_cidr.filter(|cidr| !cidr.is_empty()),
            infra_id: Some(file.infra_id),
        })
    }

    /// A network that was created.
    pub(super) fn made(output: NetworkOutput) -> Self {
        Self {
            project: output.project_id,
            region: output.region,
            name: output.network_name,
            subnet: output.subnet_name,
            cidr: Some(output.subnet_cidr),
            infra_id: Some(output.infra_id),
        }
    }
}

// === impl Identity ===

impl Identity {
    pub(super) fn read(path: &Path) -> anyhow::Result<Self> {
        let flag = "--iam-json";
        let output: IdentityOutput = json_file(flag, path)?;
        Self::made(output).map_err(|missing| {
            let path = path.display();
            Usage::new(&format!(
                "{flag} {path}: there is no {missing} under serviceAccounts"
            ))
            .into()
        })
    }

    /// Identities that were created. The error is the name of one that is missing.
    pub(super) fn made(mut output: IdentityOutput) -> Result<Self, &'static str> {
        let mut emails = BTreeMap::new();
        for component in &COMPONENTS {
            let email = output.service_accounts.remove(component.name);
            emails.insert(component.field, email.ok_or(component.name)?);
        }
        Ok(Self {
            project_number: output.project_number,
            pool_id: output.workload_identity_pool.pool_id,
            provider_id: output.workload_identity_pool.provider_id,
            emails,
            issuer_url: Some(output.issuer_url).filter(|url| !url.is_empty()),
            project: Some(output.project_id),
            infra_id: Some(output.infra_id),
        })
    }
}

// === impl IdentityArgs ===

impl IdentityArgs {
    /// The identities; `None` if no flag is given.
    pub(super) fn describe(&self) -> Result<Option<Identity>, Usage> {
        let accounts = self.accounts();
        let others = [
            (
                "--workload-identity-project-number",
                &self.workload_identity_project_number,
            ),
            (
                "--workload-identity-pool-id",
                &self.workload_identity_pool_id,
            ),
            (
                "--workload-identity-provider-id",
                &self.workload_identity_provider_id,
            ),
        ];
        let flags = accounts.iter().map(|(flag, _, value)| (*flag, *value));
        let (given, missing): (Vec<_>, Vec<_>) =
            flags.chain(others).partition(|(_, value)| value.is_some());
        if given.is_empty() {
            return Ok(None);
        }
        let [number, pool, provider] = others.map(|(_, value)| value.clone());
        let (Some(project_number), Some(pool_id), Some(provider_id), []) =
            (number, pool, provider, missing.as_slice())
        else {
            let missing: Vec<_> = missing.iter().map(|(flag, _)| *flag).collect();
            return Err(Usage::new(&format!(
                "{} missing: give all flags of identities, or none to have them created",
                missing.join(", ")
            )));
        };
        let emails = accounts
            .into_iter()
            .filter_map(|(_, field, value)| Some((field, value.clone()?)));
        Ok(Some(Identity {
            project_number,
            pool_id,
            provider_id,
            emails: emails.collect(),
            issuer_url: None,
            project: None,
            infra_id: None,
        }))
    }

    /// Flags of service accounts, with the fields of the HostedCluster that they fill in.
    fn accounts(&self) -> [(&'static str, &'static str, &Option<String>); 6] {
        [
            (
                "--node-pool-service-account",
                "nodePool",
                &self.node_pool_service_account,
            ),
            (
                "--control-plane-service-account",
                "controlPlane",
                &self.control_plane_service_account,
            ),
            (
                "--cloud-controller-service-account",
                "cloudController",
                &self.cloud_controller_service_account,
            ),
            (
                "--storage-service-account",
                "storage",
                &self.storage_service_account,
            ),
            (
                "--image-registry-service-account",
                "imageRegistry",
                &self.image_registry_service_account,
            ),
            (
                "--network-service-account",
                "network",
                &self.network_service_account,
            ),
        ]
    }
}

fn json_file<T: DeserializeOwned>(flag: &str, path: &Path) -> anyhow::Result<T> {
    let text = text::file(flag, path)?;
    serde_json::from_str(&text).with_context(|| {
        let path = path.display();
        format!("{flag} {path}: this is not what is expected there")
    })
}
