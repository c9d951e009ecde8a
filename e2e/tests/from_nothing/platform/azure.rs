//! Azure: identities, and resource groups with a network, a private DNS zone and role assignments.

use std::sync::Arc;

use anyhow::Result;
use testbed::cloud_proxy::CloudProxy;
use testbed::work_dir::WorkDir;

use super::words;
use crate::from_nothing::account::{Account, Other};
use crate::from_nothing::hcp::{Files, Step};
use crate::hosted_clusters_api::azure_from_nothing::{
    HOSTS, ZONES, subscription, write_credentials,
};

pub(super) const CREATE: [Step; 2] = [Step::Plain(create_iam), Step::Plain(create_infra)];
pub(super) const DESTROY: [Step; 2] = [Step::Plain(destroy_infra), Step::Plain(destroy_iam)];

const CREDENTIALS: &str = "credentials.json";
/// The description of the identities.
const IDENTITIES: &str = "identities.json";

pub(super) async fn start(work_dir: &Arc<WorkDir>, files: &Files) -> Result<Account> {
    write_credentials(&files.kept(CREDENTIALS))?;
    let directory = work_dir.join("certificates");
    Ok(Account::Other(Other {
        proxy: CloudProxy::start(&directory, &HOSTS, subscription()).await?,
        empty: |proxy| proxy.replace(subscription()),
        variables: Vec::new(),
    }))
}

fn create_iam(files: &Files) -> Vec<String> {
    let text = "create iam azure --infra-id blue-x1 --name blue --resource-group-name blue-identities \
                --oidc-issuer-url https://issuer.example.com/blue";
    let paths = [
        ("--azure-creds", files.kept(CREDENTIALS)),
        ("--output-file", files.written(IDENTITIES)),
    ];
    words(text, &paths)
}

fn create_infra(files: &Files) -> Vec<String> {
    let text = "create infra azure --infra-id blue-x1 --name blue --base-domain example.com \
                --assign-identity-roles";
    let paths = [
        ("--azure-creds", files.kept(CREDENTIALS)),
        ("--workload-identities-file", files.written(IDENTITIES)),
        ("--output-file", files.written("infrastructure.yaml")),
    ];
    words(text, &paths)
}

fn destroy_infra(files: &Files) -> Vec<String> {
    let text = "destroy infra azure --infra-id blue-x1 --name blue";
    words(text, &[("--azure-creds", files.kept(CREDENTIALS))])
}

fn destroy_iam(files: &Files) -> Vec<String> {
    let text = format!(
        "destroy iam azure --infra-id blue-x1 --name blue --resource-group-name blue-identities \
         --dns-zone-rg-name {ZONES}"
    );
    let paths = [
        ("--azure-creds", files.kept(CREDENTIALS)),
        ("--workload-identities-file", files.written(IDENTITIES)),
    ];
    words(&text, &paths)
}
