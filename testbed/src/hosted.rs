//! Hosted clusters on a testbed with nodes: their fixture, and their lifecycle in a few calls.
//!
//! ```no_run
//! # async fn example() -> anyhow::Result<()> {
//! use api::group::CapiTypes;
//! use testbed::hosted::{self, Cluster};
//! use testbed::node::NodeTestbed;
//!
//! hosted::play(NodeTestbed::builder("example"), async |fixture| {
//!     fixture.install(CapiTypes::Private, &[]).await?;
//!     let cluster = Cluster::new(fixture, "demo", CapiTypes::Private);
//!     cluster.create(&["--node-pool-replicas=1"]).await?;
//!     let guest = cluster.comes_up().await?;
//!     cluster.has_workers(&guest, 1).await?;
//!     guest.runs_a_workload(fixture).await?;
//!     cluster.destroy().await
//! })
//! .await
//! # }
//! ```
//!
//! Each stage says what it waits for and, when that does not come, what is missing; then [`play`] shows the state of
//! everything that has a part in it. With the variable `HYPERSHIFT_TESTBED_HOLD` set, a testbed whose scenario failed
//! stays until it is interrupted, to be looked at with kubectl.

mod admission;
mod cluster;
mod diagnosis;
mod fixture;
mod gone;
mod guest;
mod identities;
pub mod invariants;
mod load;
mod network;
mod platform;
mod programs;

use anyhow::{Error, Result};

use crate::client::Resource;
use crate::embedded;
use crate::node::{Builder, supported};
use crate::payload::OptionalPrograms;

pub use cluster::Cluster;
pub use fixture::Fixture;
pub use guest::Guest;
pub use identities::Identities;
pub use load::{Load, Seen};
pub use platform::Platform;
pub use programs::Programs;

/// Where HostedClusters are.
pub const NAMESPACE: &str = "clusters";
/// Where the operators are.
pub const OPERATORS: &str = "hypershift";
/// Who runs clusters on standard types once private ones are installed.
pub const LEGACY: &str = "operator-legacy";
/// Clusters, as their users request them.
pub const HOSTED_CLUSTERS: Resource<'_> = Resource::new(HYPERSHIFT, "hostedclusters");
/// Pools of workers.
pub const NODE_POOLS: Resource<'_> = Resource::new(HYPERSHIFT, "nodepools");
/// Control planes.
pub const CONTROL_PLANES: Resource<'_> = Resource::new(HYPERSHIFT, "hostedcontrolplanes");
/// Components of control planes.
pub const COMPONENTS: Resource<'_> = Resource::new(HYPERSHIFT, "controlplanecomponents");
/// Deployments.
pub const DEPLOYMENTS: Resource<'_> = Resource::new("apps/v1", "deployments");
/// Stateful sets.
pub const STATEFUL_SETS: Resource<'_> = Resource::new("apps/v1", "statefulsets");
/// Pods.
pub const PODS: Resource<'_> = Resource::new("v1", "pods");
/// Secrets.
pub const SECRETS: Resource<'_> = Resource::new("v1", "secrets");

const HYPERSHIFT: &str = "hypershift.openshift.io/v1beta1";
/// Keeps a testbed whose scenario failed.
const HOLD: &str = "HYPERSHIFT_TESTBED_HOLD";

/// Runs a scenario on its own testbed. Without root, it reports that and does nothing.
pub async fn play(
    builder: Builder,
    scenario: impl AsyncFnOnce(&Fixture) -> Result<()>,
) -> Result<()> {
    play_with(builder, async |fixture: &mut Fixture| {
        scenario(fixture).await
    })
    .await
}

/// Runs a scenario whose releases have the AWS cloud controller manager.
pub async fn play_with_cloud_controller(
    builder: Builder,
    scenario: impl AsyncFnOnce(&Fixture) -> Result<()>,
) -> Result<()> {
    let further = OptionalPrograms::CloudController;
    run(builder, further, async |fixture: &mut Fixture| {
        scenario(fixture).await
    })
    .await
}

/// Runs a scenario whose releases have the programs that make the configuration of nodes, too.
pub async fn play_with_machine_config(
    builder: Builder,
    scenario: impl AsyncFnOnce(&Fixture) -> Result<()>,
) -> Result<()> {
    let further = OptionalPrograms::MachineConfig;
    run(builder, further, async |fixture: &mut Fixture| {
        scenario(fixture).await
    })
    .await
}

/// Runs a scenario whose releases have Karpenter, too. The operator carries its kinds.
pub async fn play_with_karpenter(
    builder: Builder,
    scenario: impl AsyncFnOnce(&Fixture) -> Result<()>,
) -> Result<()> {
    // Without root nothing is built, and nothing has to be fetched.
    if supported().is_ok() {
        embedded::fill().await?;
    }
    let further = OptionalPrograms::Karpenter;
    run(builder, further, async |fixture: &mut Fixture| {
        scenario(fixture).await
    })
    .await
}

/// Runs a scenario that removes and restores parts of the testbed.
pub async fn play_with(
    builder: Builder,
    scenario: impl AsyncFnOnce(&mut Fixture) -> Result<()>,
) -> Result<()> {
    run(builder, OptionalPrograms::default(), scenario).await
}

async fn run(
    builder: Builder,
    further: OptionalPrograms,
    scenario: impl AsyncFnOnce(&mut Fixture) -> Result<()>,
) -> Result<()> {
    if let Err(reason) = supported() {
        eprintln!("skipped: {reason}");
        return Ok(());
    }
    let mut fixture = Fixture::start(builder, further).await?;
    let outcome = scenario(&mut fixture).await;
    if let Err(error) = &outcome {
        diagnosis::show(&fixture).await;
        if is_held() {
            // With its cloud, which ends with the fixture.
            hold(&fixture, error).await?;
        }
    }
    fixture.finish(outcome)
}

/// Whether to keep the testbed for inspection.
fn is_held() -> bool {
    std::env::var_os(HOLD).is_some()
}

async fn hold(fixture: &Fixture, error: &Error) -> Result<()> {
    let kubeconfig = fixture.testbed.kubeconfig().display();
    let text = format!("failed: {error:#}\nheld: kubectl --kubeconfig {kubeconfig} get pods -A");
    fixture.testbed.progress.note(&text);
    Ok(tokio::signal::ctrl_c().await?)
}
