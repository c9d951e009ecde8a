//! What a hosted cluster stands on: equipment, a cloud, a release, and the operators as a user installs them.

use anyhow::{Context, Result, ensure};
use e2e::cargo::command_line;
use e2e::cloud::FakeCloud;
use e2e::equipment::Equipment;
use e2e::images::Image;
use e2e::node::NodeTestbed;
use e2e::payload::{Payload, Release};
use e2e::registry;
use tokio::process::Command;

/// The cluster's name.
pub(crate) const NAME: &str = "demo";
/// Its name in the cloud.
pub(crate) const INFRA: &str = "demo-x7k2p";
/// Where its HostedCluster is.
pub(crate) const NAMESPACE: &str = "clusters";
/// Where its control plane is.
pub(crate) const CONTROL_PLANE: &str = "clusters-demo";

/// The ground of the scenario.
#[derive(Debug)]
pub(crate) struct Ground {
    pub(crate) cloud: FakeCloud,
    pub(crate) release: Release,
    _equipment: Equipment,
}

// === impl Ground ===

impl Ground {
    /// Prepares all of it.
    pub(crate) async fn prepare(testbed: &NodeTestbed) -> Result<Self> {
        let equipment = Equipment::start(testbed).await?;
        let cloud = FakeCloud::start(testbed).await?;
        let profile = format!("{INFRA}-worker-profile");
        cloud.client.create_instance_profile(&profile).await?;
        let payload = Payload::build(&testbed.progress).await?;
        let step = testbed.progress.step("pushing a release");
        let pushed = payload.push(&testbed.registry).await?;
        let release = pushed.release(&testbed.registry, "4.22.0").await?;
        step.done();
        install(testbed).await?;
        Ok(Self {
            cloud,
            release,
            _equipment: equipment,
        })
    }
}

/// Installs the operators by the command that users have.
async fn install(testbed: &NodeTestbed) -> Result<()> {
    let program = command_line(&testbed.progress).await?;
    let step = testbed.progress.step("installing the operators");
    let operator = testbed.image(Image::HypershiftOperator)?;
    let proxy = testbed.image(Image::CapiProxy)?;
    let output = Command::new(program)
        .arg("install")
        .arg("--private-capi-types")
        .arg("--private-crds-from=module=sigs.k8s.io/cluster-api")
        .arg("--private-crds-from=module=sigs.k8s.io/cluster-api-provider-aws/v2")
        .arg(format!("--hypershift-image={operator}"))
        .arg(format!("--capi-proxy-image={proxy}"))
        .arg(format!(
            "--additional-operator-env-vars=INSECURE_REGISTRIES={}",
            registry::NAME
        ))
        .arg("--replicas=1")
        .arg("--kubeconfig")
        .arg(testbed.kubeconfig())
        .kill_on_drop(true)
        .output()
        .await
        .context("cannot run hypershift")?;
    ensure!(
        output.status.success(),
        "hypershift install failed: {}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    step.done();
    Ok(())
}
