//! `hcp create` and `hcp destroy` of networks and identities of clusters, from an account that has nothing for a cluster to one
//! that has nothing again, against a fake of each cloud.
//!
//! `hcp` is killed (SIGKILL) at every call to the cloud and run again: at calls that write, once before the cloud receives the
//! call, and once after it has answered and before the response arrives; at calls that read, once before. After a read the
//! cloud is as it was before, and nothing is left of a killed process but files, which are not written because of a read.
//!
//! After an interrupted creation there must be what there is after an undisturbed one, and nothing twice; after an interrupted
//! destruction, what there was before the creation.

mod account;
mod hcp;
mod lane;
mod platform;
mod points;
mod run;

use anyhow::Result;
use platform::Platform;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "long: cargo xtask soak from-nothing --cloud aws"]
async fn aws_commands_continue_after_a_kill_at_any_call() -> Result<()> {
    run::run(Platform::Aws).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "long: cargo xtask soak from-nothing --cloud azure"]
async fn azure_commands_continue_after_a_kill_at_any_call() -> Result<()> {
    run::run(Platform::Azure).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "long: cargo xtask soak from-nothing --cloud gcp"]
async fn gcp_commands_continue_after_a_kill_at_any_call() -> Result<()> {
    run::run(Platform::Gcp).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "long: cargo xtask soak from-nothing --cloud powervs"]
async fn powervs_commands_continue_after_a_kill_at_any_call() -> Result<()> {
    run::run(Platform::PowerVs).await
}
