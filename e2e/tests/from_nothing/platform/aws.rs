//! AWS: a VPC, roles with the documents of an issuer, and a bastion.

use std::sync::Arc;

use anyhow::{Context, Result};
use serde_json::Value;
use testbed::progress::Progress;
use testbed::work_dir::WorkDir;

use super::words;
use crate::from_nothing::account::{Account, Aws};
use crate::from_nothing::hcp::{Files, Step};
use crate::hosted_clusters_api::bastion::KEY;

pub(super) const CREATE: [Step; 3] = [
    Step::Plain(create_infra),
    Step::Reading(create_iam),
    Step::Plain(create_bastion),
];
pub(super) const DESTROY: [Step; 3] = [
    Step::Plain(destroy_bastion),
    Step::Plain(destroy_iam),
    Step::Plain(destroy_infra),
];

/// A public SSH key.
const SSH_KEY: &str = "bastion.pub";
/// The description of the network.
const NETWORK: &str = "network.json";

pub(super) async fn start(
    work_dir: &Arc<WorkDir>,
    files: &Files,
    progress: &Progress,
) -> Result<Account> {
    std::fs::write(files.kept(SSH_KEY), KEY)?;
    let aws = Aws::start(work_dir, progress).await?;
    Ok(Account::Aws(Box::new(aws)))
}

fn create_infra(files: &Files) -> Vec<String> {
    let text = "create infra aws --infra-id cloudy-x1 --name cloudy --base-domain example.com \
                --zones us-east-1a,us-east-1b";
    words(text, &[("--output-file", files.written(NETWORK))])
}

/// With the zones of the network. The key of the issuer is generated once.
fn create_iam(files: &Files) -> Result<Vec<String>> {
    let network = std::fs::read_to_string(files.written(NETWORK))?;
    let network: Value = serde_json::from_str(&network)?;
    let paths = [
        (
            "--sa-token-issuer-private-key-path",
            files.kept("issuer.key"),
        ),
        ("--output-file", files.written("roles.json")),
    ];
    let mut words = words("create iam aws --infra-id cloudy-x1", &paths);
    for kind in ["public", "private", "local"] {
        let id = network[format!("{kind}ZoneID")].as_str();
        let id = id.with_context(|| format!("{network} has no {kind} zone"))?;
        words.push(format!("--{kind}-zone-id={id}"));
    }
    Ok(words)
}

fn create_bastion(files: &Files) -> Vec<String> {
    let text = "create bastion aws --infra-id cloudy-x1 --region us-east-1 --ssh-from 192.0.2.0/24";
    words(text, &[("--ssh-key-file", files.kept(SSH_KEY))])
}

fn destroy_bastion(_: &Files) -> Vec<String> {
    let text = "destroy bastion aws --infra-id cloudy-x1 --region us-east-1";
    words(text, &[])
}

fn destroy_iam(_: &Files) -> Vec<String> {
    words("destroy iam aws --infra-id cloudy-x1", &[])
}

fn destroy_infra(_: &Files) -> Vec<String> {
    let text = "destroy infra aws --infra-id cloudy-x1 --name cloudy --base-domain example.com";
    words(text, &[])
}
