//! hypershift-operator in its first life, on a real API server and with the least rights that it needs: who owns which
//! hosted cluster, and that no other client writes to it.

mod deaths;
mod fleet;
mod ownership;
mod race;

use anyhow::Result;
use api::group::Side;
use testbed::progress::Progress;
use testbed::testbed::Testbed;
use testbed::{crds, fixtures};

/// From the first start to the loss of rights and of CRDs (O01, O06, M09).
/// Checks O01 and O06.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ownership_follows_observed_api_groups() -> Result<()> {
    let mut testbed = Testbed::start("operator", Progress::detect()).await?;
    let outcome = async {
        prepare(&mut testbed).await?;
        ownership::scenario(&mut testbed).await
    };
    let outcome = outcome.await;
    testbed.finish(outcome)
}

/// Two replicas of each operator, whose leaders are killed and frozen at random (O02, O03).
/// Checks O02 and O03.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_operator_writes_to_a_cluster_in_each_epoch() -> Result<()> {
    let mut testbed = Testbed::start("operator-race", Progress::detect()).await?;
    let outcome = async {
        prepare(&mut testbed).await?;
        race::scenario(&testbed).await
    };
    let outcome = outcome.await;
    testbed.finish(outcome)
}

/// The leader dies at each write that it makes, and the next one continues (O03).
/// Check O03.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_leader_continues_after_a_crash_at_any_write() -> Result<()> {
    let mut testbed = Testbed::start("operator-deaths", Progress::detect()).await?;
    let outcome = async {
        prepare(&mut testbed).await?;
        deaths::scenario(&testbed).await
    };
    let outcome = outcome.await;
    testbed.finish(outcome)
}

async fn prepare(testbed: &mut Testbed) -> Result<()> {
    for side in [Side::Private, Side::Standard] {
        testbed.install_crds(side).await?;
    }
    install_hosted_clusters(testbed).await
}

async fn install_hosted_clusters(testbed: &Testbed) -> Result<()> {
    let file =
        fixtures::install_manifests().join("../crds/hostedclusters.hypershift.openshift.io.yaml");
    crds::install(&testbed.admin, &fixtures::load(&file)?).await
}
