//! Optional capabilities of the hosted cluster, as its ClusterVersion has them.

use std::collections::BTreeSet;

/// Capabilities that a hosted cluster has by default. Machines and nodes are managed from outside.
const DEFAULT: [&str; 16] = [
    "Build",
    "CSISnapshot",
    "CloudControllerManager",
    "CloudCredential",
    "Console",
    "DeploymentConfig",
    "ImageRegistry",
    "Ingress",
    "Insights",
    "MachineAPI",
    "NodeTuning",
    "OperatorLifecycleManager",
    "OperatorLifecycleManagerV1",
    "Storage",
    "marketplace",
    "openshift-samples",
];

/// The default capabilities with the user's changes. The API refuses a name that is both enabled and disabled.
pub(crate) fn with_changes<'a>(
    enabled: impl IntoIterator<Item = &'a str>,
    disabled: impl IntoIterator<Item = &'a str>,
) -> BTreeSet<&'a str> {
    let mut all = BTreeSet::from(DEFAULT);
    for name in disabled {
        all.remove(name);
    }
    all.extend(enabled);
    all
}
