//! Clusters with virtual machines of KubeVirt, which run in pods beside their control plane, or on another infrastructure
//! cluster.

use anyhow::{Context, Result};

use super::Cluster;
use crate::hosted::Fixture;
use crate::node::Node;
use crate::registry;
use crate::virtual_machines::{ExternalInfra, VirtualMachines};

/// The Go modules with the kinds of Cluster API and its providers. That for AWS is installed for clusters beside.
const MODULES: [&str; 3] = [
    "sigs.k8s.io/cluster-api",
    "sigs.k8s.io/cluster-api-provider-aws/v2",
    "sigs.k8s.io/cluster-api-provider-kubevirt",
];
/// The image of a release with the stock manager that converts Cluster API's own kinds.
const CONVERTS: &str = "cluster-capi-controllers";
/// The stand-in of the cloud controller manager is idle, and a node has two processors for all of a control plane.
const REQUESTED: &str = "--annotations=resource-request-override.hypershift.openshift.io/\
                         kubevirt-cloud-controller-manager.cloud-controller-manager=cpu=10m";

/// Its flags. The disks of machines are copies of one that is filled once, and are shared, so that machines can migrate.
///
/// Beside the control plane, the cluster gets its domain from the management cluster. All machines are on the last node,
/// since only machines of one node reach each other's pods. A node has room for one control plane: those of clusters with
/// machines elsewhere are on the first.
pub(super) fn flags(
    cluster: &Cluster<'_>,
    machines: &VirtualMachines,
    infra: Option<&ExternalInfra>,
) -> Result<Vec<String>> {
    let nodes = &cluster.fixture().testbed.nodes;
    let first = nodes.first().context("the testbed has no node")?;
    let last = nodes.last().unwrap_or(first);
    let own = if infra.is_some() { first } else { last };
    let mut flags = vec![
        format!("--infra-id={}", cluster.infra()),
        "--auto-repair".to_owned(),
        format!("--containerdisk={}", machines.disk()?),
        "--root-volume-cache-strategy=PVC".to_owned(),
        "--root-volume-access-modes=ReadWriteMany".to_owned(),
        format!("--node-selector={}", label(own)),
        format!("--vm-node-selector={}", label(last)),
        REQUESTED.to_owned(),
    ];
    if let Some(infra) = infra {
        flags.extend([
            "--base-domain=testbed".to_owned(),
            format!("--infra-namespace={}", infra.namespace()),
            format!("--infra-kubeconfig-file={}", infra.kubeconfig().display()),
        ]);
    }
    Ok(flags)
}

/// The label by which pods select a node.
fn label(node: &Node) -> String {
    format!("kubernetes.io/hostname={}", node.name)
}

// === impl Fixture ===

impl Fixture {
    /// The flags with which the operators are installed for clusters on KubeVirt, with the image of the provider: no
    /// release names it. It requests an older version of Cluster API's kinds, which a webhook converts.
    pub fn flags_for_kubevirt(&self, provider: &str) -> Vec<String> {
        let core = &self.pushed.components[CONVERTS];
        let mut flags = MODULES
            .map(|module| format!("--private-crds-from=module={module}"))
            .to_vec();
        flags.extend([
            "--enable-conversion-webhook".to_owned(),
            format!("--conversion-backend=core={core}"),
        ]);
        let variables = [
            ("INSECURE_REGISTRIES", registry::NAME),
            ("IMAGE_KUBEVIRT_CAPI_PROVIDER", provider),
        ];
        flags.extend(
            variables.map(|(name, value)| format!("--additional-operator-env-vars={name}={value}")),
        );
        flags
    }
}
