//! Log-in to a hosted cluster: the password of `kubeadmin`, a refused identity provider, then users of an external `OpenID`
//! Connect provider.
//!
//! The provider is dex, with an authority of its own, and the API server is that of the hosted cluster. It needs root;
//! without it, it reports so and passes.

mod external;
mod kubeadmin;
mod providers;

use anyhow::Result;
use api::group::CapiTypes;
use testbed::hosted::{self, Cluster, Fixture, Platform};
use testbed::hosts::Hosts;
use testbed::node::NodeTestbed;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "long: cargo xtask soak login"]
async fn users_of_an_external_provider_log_in() -> Result<()> {
    hosted::play(NodeTestbed::builder("login"), scenario).await
}

async fn scenario(fixture: &Fixture) -> Result<()> {
    let hosts = Hosts::new(&fixture.testbed).await?;
    fixture.install(CapiTypes::Private, &[]).await?;
    let platform = Platform::None(&hosts);
    let cluster = Cluster::on(fixture, "demo", CapiTypes::Private, platform);
    cluster.create(&[]).await?;
    let guest = cluster.comes_up().await?;
    kubeadmin::password_has_its_hash(&cluster, &guest).await?;
    providers::refused_ones_are_reported(&cluster).await?;
    external::users_log_in(&cluster, &guest).await?;
    kubeadmin::password_is_gone(&cluster).await?;
    cluster.destroy().await
}
