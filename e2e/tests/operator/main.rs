//! hypershift-operator in its first life, on a real API server and with the least rights that it needs: who owns which
//! hosted cluster, and that nobody else writes to it.

mod deaths;
mod fleet;
mod ownership;
mod race;

use anyhow::Result;
use api::group::Side;
use e2e::progress::Progress;
use e2e::testbed::Testbed;
use e2e::{crds, fixtures};

/// From the first start to the loss of rights and of CRDs (O01, O06, M09).
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn o01_o06_every_hosted_cluster_gets_its_owner_by_evidence() -> Result<()> {
    let mut testbed = Testbed::start("operator", Progress::detect()).await?;
    let outcome = async {
        prepare(&mut testbed).await?;
        ownership::scenario(&mut testbed).await
    };
    let outcome = outcome.await;
    testbed.finish(outcome)
}

/// Two replicas of each operator, whose leaders are killed and frozen at random (O02, O03).
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn o02_o03_no_hosted_cluster_is_written_by_two_operators_in_one_epoch() -> Result<()> {
    let mut testbed = Testbed::start("operator-race", Progress::detect()).await?;
    let outcome = async {
        prepare(&mut testbed).await?;
        race::scenario(&testbed).await
    };
    let outcome = outcome.await;
    testbed.finish(outcome)
}

/// The leader dies at each write that it makes, and the next one continues (O03).
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn o03_a_leader_that_dies_at_any_write_is_followed_by_one_that_continues() -> Result<()> {
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
