//! The control plane namespace of a running cluster, and a HostedCluster that would have the same one.
//!
//! `clusters/shared-one` is there first, with a worker. It was created before the private types and stays on the standard
//! ones, so that both operators run. `clusters-shared/one` is created, refused and deleted three times: nothing of the
//! other cluster changes, whatever its author requests.
//!
//! It needs root; without it, it says so and does nothing.

mod owned;

use anyhow::{Context, Result, ensure};
use api::annotations::{PRIVATE_CAPI_TYPES, SCOPE};
use api::group::CapiTypes;
use serde_json::json;
use testbed::collision::{Collider, objects, pool};
use testbed::hosted::{self, Cluster, DEPLOYMENTS, Fixture, LEGACY, OPERATORS};
use testbed::node::{NodeTestbed, condition};

use crate::namespace_collision::owned::Owned;

/// The owner is not migrated meanwhile.
const HOLD: &str = "--annotations=hypershift.openshift.io/migration-hold=true";
/// The namespace and the name of the HostedCluster that is refused.
const COLLIDER: (&str, &str) = ("clusters-shared", "one");

/// Check T01.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "long: cargo xtask soak collision"]
async fn a_running_cluster_survives_a_namespace_collision() -> Result<()> {
    hosted::play(NodeTestbed::builder("namespace-collision"), scenario).await
}

async fn scenario(fixture: &Fixture) -> Result<()> {
    fixture.install(CapiTypes::Standard, &[]).await?;
    let owner = Cluster::new(fixture, "shared-one", CapiTypes::Standard);
    owner.create(&["--node-pool-replicas=1", HOLD]).await?;
    let guest = owner.comes_up().await?;
    owner.has_workers(&guest, 1).await?;
    owner.rolled_out().await?;
    fixture.install(CapiTypes::Private, &[]).await?;
    both_operators_run(fixture).await?;

    let (namespace, name) = COLLIDER;
    // With the names of what the collider would have there. Only on the owner's side: objects in the groups of both sides
    // are an error of the owner's. The test at the level of the API server, where no owner runs, has both.
    let planted = objects(&owner.namespace(), name, &[CapiTypes::Standard]);
    fixture.testbed.admin.apply(&planted).await?;
    let before = Owned::at_rest(&owner, &guest).await?;
    let cases = [
        ("private", json!({ PRIVATE_CAPI_TYPES: "true" })),
        ("legacy", json!({ SCOPE: "legacy" })),
        ("unmarked", json!({})),
    ];
    for (case, annotations) in cases {
        let collider = Collider {
            admin: &fixture.testbed.admin,
            namespace,
            name: name.to_owned(),
            pools: vec![pool(name), owner.pool()],
            owner: format!("{}/{}", hosted::NAMESPACE, owner.name()),
            release: &fixture.release.image,
            platform: None,
        };
        let step = fixture.testbed.progress.step(format!("collision: {case}"));
        collider
            .attempt_everything(&annotations, async || before.are_unchanged().await)
            .await
            .context(case)?;
        step.done_with(&format!("{} objects", before.count()));
    }
    before.runs().await?;
    guest.runs_a_workload(fixture).await?;
    owner.holds_invariants(&guest, true).await
}

/// The operator of the private types is there, and operator-legacy reconciles the owner.
async fn both_operators_run(fixture: &Fixture) -> Result<()> {
    for name in ["operator", LEGACY] {
        let path = DEPLOYMENTS.named(OPERATORS, name);
        fixture
            .stage(&format!("{name} is available"), async || {
                let deployment = fixture.testbed.admin.get(&path).await?;
                ensure!(
                    deployment["status"]["observedGeneration"]
                        == deployment["metadata"]["generation"],
                    "{name} is not observed"
                );
                condition(&deployment, "Available")
            })
            .await?;
    }
    Ok(())
}
