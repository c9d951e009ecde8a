//! Clusters with virtual machines of KubeVirt, which run in pods beside their control plane.

use anyhow::Result;

use super::Cluster;
use crate::hosted::Fixture;
use crate::registry;
use crate::virtual_machines::VirtualMachines;

/// The Go modules with the kinds of Cluster API and its providers. That for AWS is installed for clusters beside.
const MODULES: [&str; 3] = [
    "sigs.k8s.io/cluster-api",
    "sigs.k8s.io/cluster-api-provider-aws/v2",
    "sigs.k8s.io/cluster-api-provider-kubevirt",
];
/// The image of a release with the stock manager that converts Cluster API's own kinds.
const CONVERTS: &str = "cluster-capi-controllers";

/// Its flags. The disks of machines are copies of one that is filled once, and are shared, so that machines can migrate.
pub(super) fn flags(cluster: &Cluster<'_>, machines: &VirtualMachines) -> Result<Vec<String>> {
    Ok(vec![
        format!("--infra-id={}", cluster.infra()),
        "--base-domain=testbed".to_owned(),
        "--auto-repair".to_owned(),
        format!("--containerdisk={}", machines.disk()?),
        "--root-volume-cache-strategy=PVC".to_owned(),
        "--root-volume-access-modes=ReadWriteMany".to_owned(),
    ])
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
