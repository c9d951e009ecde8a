//! Google Cloud: a network with a NAT gateway, a workload identity pool and service accounts.

use std::sync::Arc;

use anyhow::Result;
use testbed::cloud_proxy::CloudProxy;
use testbed::work_dir::WorkDir;

use super::words;
use crate::from_nothing::account::{Account, Other};
use crate::from_nothing::hcp::{Files, Step};
use crate::hosted_clusters_preview::fixture::REGION;
use crate::hosted_clusters_preview::google_cloud_from_nothing::{
    HOSTS, PROJECT, project, variables,
};

pub(super) const CREATE: [Step; 2] = [Step::Plain(create_infra), Step::Plain(create_iam)];
pub(super) const DESTROY: [Step; 2] = [Step::Plain(destroy_iam), Step::Plain(destroy_infra)];

pub(super) async fn start(work_dir: &Arc<WorkDir>, files: &Files) -> Result<Account> {
    let directory = work_dir.join("certificates");
    Ok(Account::Other(Other {
        proxy: CloudProxy::start(&directory, &HOSTS, project()).await?,
        empty: |proxy| proxy.replace(project()),
        variables: variables(&files.kept("credentials.json"))?,
    }))
}

fn create_infra(files: &Files) -> Vec<String> {
    let text =
        format!("create infra gcp --infra-id green-x1 --project-id {PROJECT} --region {REGION}");
    let output = files.written("network.json");
    words(&text, &[("--output-file", output)])
}

fn create_iam(files: &Files) -> Vec<String> {
    let text = format!(
        "create iam gcp --infra-id green-x1 --project-id {PROJECT} --oidc-issuer-url https://issuer.example.com/green"
    );
    let output = files.written("accounts.json");
    words(&text, &[("--output-file", output)])
}

fn destroy_iam(_: &Files) -> Vec<String> {
    let text = format!("destroy iam gcp --infra-id green-x1 --project-id {PROJECT}");
    words(&text, &[])
}

fn destroy_infra(_: &Files) -> Vec<String> {
    let text =
        format!("destroy infra gcp --infra-id green-x1 --project-id {PROJECT} --region {REGION}");
    words(&text, &[])
}
