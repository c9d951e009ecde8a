//! Ownership of HostedClusters by hypershift-operator and operator-legacy, on a real API server and with minimal RBAC:
//! each HostedCluster has one owner, and no other client writes to it.

mod crashes;
mod fleet;
mod ownership;
mod race;

use anyhow::Result;
use api::group::CapiTypes;
use testbed::progress::Progress;
use testbed::testbed::Testbed;
use testbed::{crds, fixtures};

/// Checks O01, O06 and M09: from the first start to the loss of permissions and CRDs.
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

/// Checks O02 and O03: two replicas of each operator, whose leaders are killed and frozen at random.
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

/// Check O03: the leader is killed at each of its writes, and the next one continues.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_leader_continues_after_a_crash_at_any_write() -> Result<()> {
    let mut testbed = Testbed::start("operator-crashes", Progress::detect()).await?;
    let outcome = async {
        prepare(&mut testbed).await?;
        crashes::scenario(&testbed).await
    };
    let outcome = outcome.await;
    testbed.finish(outcome)
}

async fn prepare(testbed: &mut Testbed) -> Result<()> {
    for capi_types in [CapiTypes::Private, CapiTypes::Standard] {
        testbed.install_crds(capi_types).await?;
    }
    install_hosted_clusters(testbed).await
}

async fn install_hosted_clusters(testbed: &Testbed) -> Result<()> {
    let file =
        fixtures::install_manifests().join("../crds/hostedclusters.hypershift.openshift.io.yaml");
    crds::install(&testbed.admin, &fixtures::load(&file)?).await
}
