//! The stock provider of each platform on private types, behind the proxy, requests what it requests on standard types
//! directly.
//!
//! Both run on one API server, each with its own core manager of Cluster API and its own namespace, and the same happens
//! to their clusters. They become ready, take a cluster and its machines as far as the platform's stand-in carries, and
//! write nothing at rest.
//!
//! Core managers use `v1beta2` of Cluster API's kinds and some providers `v1beta1`, so that reads of the latter are
//! converted: behind the proxy, by the product's webhook.

pub(crate) mod cloud;
mod comparison;
mod guest;
mod kubevirt;
mod machine;
mod platforms;
mod provider;
mod record;
mod versions;

use anyhow::Result;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "long: cargo xtask soak providers --provider aws"]
async fn aws_makes_the_same_requests_behind_the_proxy() -> Result<()> {
    machine::compare(&platforms::AWS).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "long: cargo xtask soak providers --provider gcp"]
async fn gcp_makes_the_same_requests_behind_the_proxy() -> Result<()> {
    machine::compare(&platforms::GCP).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "long: cargo xtask soak providers --provider azure"]
async fn azure_makes_the_same_requests_behind_the_proxy() -> Result<()> {
    machine::compare(&platforms::AZURE).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "long: cargo xtask soak providers --provider kubevirt"]
async fn kubevirt_makes_the_same_requests_behind_the_proxy() -> Result<()> {
    kubevirt::compare().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "long: cargo xtask soak providers --provider openstack"]
async fn openstack_makes_the_same_requests_behind_the_proxy() -> Result<()> {
    machine::compare(&platforms::OPENSTACK).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "long: cargo xtask soak providers --provider ibmcloud"]
async fn ibmcloud_makes_the_same_requests_behind_the_proxy() -> Result<()> {
    machine::compare(&platforms::IBMCLOUD).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "long: cargo xtask soak providers --provider powervs"]
async fn powervs_makes_the_same_requests_behind_the_proxy() -> Result<()> {
    machine::compare(&platforms::POWERVS).await
}
