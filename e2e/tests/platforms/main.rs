//! Hosted clusters without a cloud, on nodes: one with machines of an Agent service, one with machines of its user, and
//! two with virtual machines of KubeVirt: beside their control plane, and on another infrastructure cluster.
//!
//! Everything that can be real is: control planes of pods, stock Cluster API behind the proxy, kubelets that join by user
//! data. The provider for Agent and its service are not available, and neither is KubeVirt; [`testbed::agents`] and
//! [`testbed::virtual_machines`] describe their replacements, and what that does not show.
//!
//! It needs root; without it, it says so and does nothing.

mod agent;
mod agent_proxy;
mod boot_image;
mod elsewhere;
mod ingress;
mod kubevirt;
mod none;
mod reach;

use anyhow::Result;
use api::group::CapiTypes;
use testbed::agents::AgentService;
use testbed::hosted::{self, Fixture};
use testbed::hosts::Hosts;
use testbed::node::NodeTestbed;
use testbed::registry;
use testbed::virtual_machines::{self, VirtualMachines};

use crate::platforms::reach::Surroundings;

/// The sizes of the Agents' hosts. Pools request large ones.
const SIZES: [&str; 3] = ["small", "large", "large"];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "long: cargo xtask soak platforms"]
async fn clusters_run_on_platforms_agent_and_none() -> Result<()> {
    hosted::play(NodeTestbed::builder("platforms"), scenario).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "long: cargo xtask soak platforms"]
async fn a_cluster_runs_on_virtual_machines() -> Result<()> {
    // A node of two processors has room for one control plane.
    let two = NodeTestbed::builder("platform-kubevirt").nodes(2);
    hosted::play(two, on_kubevirt).await
}

async fn on_kubevirt(fixture: &Fixture) -> Result<()> {
    let step = fixture.testbed.progress.step("KubeVirt and its provider");
    let machines = VirtualMachines::start_on(&fixture.testbed).await?;
    let provider = virtual_machines::provider_image(&fixture.testbed).await?;
    step.done();
    let flags = fixture.flags_for_kubevirt(&provider);
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let lived = async {
        fixture.install(CapiTypes::Private, &flags).await?;
        let surroundings = Surroundings::start(fixture).await?;
        // One after the other: two processors bear the beginning of one control plane.
        kubevirt::run_lifecycle(fixture, &machines, &surroundings).await?;
        elsewhere::run_lifecycle(fixture, &machines, &surroundings).await?;
        boot_image::was_imported(&machines, 2)?;
        surroundings.end().await
    }
    .await;
    if lived.is_err() {
        fixture.testbed.progress.note(&machines.said());
    }
    lived
}

async fn scenario(fixture: &Fixture) -> Result<()> {
    let step = fixture.testbed.progress.step("an Agent service with hosts");
    let service = AgentService::start(&fixture.testbed, &SIZES).await?;
    let hosts = Hosts::new(&fixture.testbed).await?;
    step.done();
    let lived = live(fixture, &service, &hosts).await;
    if lived.is_err() {
        let said = format!("{}\n{}", service.said(), hosts.said());
        fixture.testbed.progress.note(&said);
    }
    lived
}

async fn live(fixture: &Fixture, service: &AgentService, hosts: &Hosts) -> Result<()> {
    let registries = variable("INSECURE_REGISTRIES", registry::NAME);
    let provider = variable("IMAGE_AGENT_CAPI_PROVIDER", &service.provider);
    fixture
        .install(CapiTypes::Private, &[&registries, &provider])
        .await?;
    agent::run_lifecycle(fixture, service).await?;
    agent_proxy::run_lifecycle(fixture, service).await?;
    none::run_lifecycle(fixture, hosts).await
}

/// The flag that gives the operator a variable of its environment.
fn variable(name: &str, value: &str) -> String {
    format!("--additional-operator-env-vars={name}={value}")
}
