//! Everything of ours says all that it can say.

use std::time::Duration;

use anyhow::Result;
use api::group::CapiTypes;
use testbed::hosted::{Cluster, DEPLOYMENTS, Fixture};
use testbed::{registry, wait};

/// The variable for all of our programs.
const VARIABLE: &str = "HYPERSHIFT_LOG_LEVEL=trace";
/// How long one of them may be waited for. Generous: a busy machine is no failure.
const WITHIN: Duration = Duration::from_mins(5);
/// The Deployments of a control plane in which programs of ours run, in the order in which they come.
const ALL: [&str; 7] = [
    "control-plane-operator",
    "cluster-api",
    "capi-provider",
    "ignition-server",
    "hosted-cluster-config-operator",
    "cluster-autoscaler",
    "machine-approver",
];
/// Those in which only the sidecar is ours, which is there with private types.
const WITH_PROXY: [&str; 4] = [
    "cluster-api",
    "capi-provider",
    "cluster-autoscaler",
    "machine-approver",
];

/// The flag of an installation by which the operators do, too. They still reach the testbed's registry.
pub(crate) fn installed() -> String {
    let registry = registry::NAME;
    format!("--additional-operator-env-vars=INSECURE_REGISTRIES={registry},{VARIABLE}")
}

/// Has the programs of a control plane log at the most verbose level, each as soon as it is deployed: a manager that is
/// replaced when it leads already is waited for until its lease ends.
pub(crate) async fn make(fixture: &Fixture, cluster: &Cluster<'_>) -> Result<()> {
    let admin = &fixture.testbed.admin;
    let namespace = cluster.namespace();
    let is_ours =
        |name: &&str| cluster.capi_types() == CapiTypes::Private || !WITH_PROXY.contains(name);
    for name in ALL.into_iter().filter(is_ours) {
        let path = DEPLOYMENTS.named(&namespace, name);
        let what = format!("{name} of {}", cluster.name());
        wait::until(&what, WITHIN, async || admin.get(&path).await).await?;
        let words = ["-n", &namespace, "set", "env", "deployment", name, VARIABLE];
        fixture.testbed.kubectl_says(words).await?;
    }
    Ok(())
}
