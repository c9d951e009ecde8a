//! Power VS: a workspace, a VPC, the transit gateway between them, and service IDs with API keys. One command creates all.

use std::sync::Arc;

use anyhow::Result;
use testbed::cloud_proxy::CloudProxy;
use testbed::work_dir::WorkDir;

use super::words;
use crate::from_nothing::account::{Account, Other};
use crate::from_nothing::hcp::{Files, Step};
use crate::hosted_clusters_api::power_vs_from_nothing::{GROUP, HOSTS, account, variables};

pub(super) const CREATE: [Step; 1] = [Step::Plain(create_infra)];
pub(super) const DESTROY: [Step; 1] = [Step::Plain(destroy_infra)];

pub(super) async fn start(work_dir: &Arc<WorkDir>) -> Result<Account> {
    let directory = work_dir.join("certificates");
    Ok(Account::Other(Other {
        proxy: CloudProxy::start(&directory, &HOSTS, account()).await?,
        empty: |proxy| proxy.replace(account()),
        variables: variables(),
    }))
}

/// With a file, in which each API key is written down as soon as it exists.
fn create_infra(files: &Files) -> Vec<String> {
    let text = format!(
        "create infra powervs --infra-id frame-x1 --name frame --base-domain example.com --resource-group {GROUP}"
    );
    let output = files.written("infrastructure.json");
    words(&text, &[("--output-file", output)])
}

fn destroy_infra(_: &Files) -> Vec<String> {
    let text = format!(
        "destroy infra powervs --infra-id frame-x1 --name frame --base-domain example.com --resource-group {GROUP} \
         --region us-south --zone us-south --vpc-region us-south"
    );
    words(&text, &[])
}
