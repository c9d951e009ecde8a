//! Local volumes, which keep the cluster autoscaler from evicting pods unless an annotation names them.

use std::collections::BTreeSet;

use crate::{Finding, Invariant, Observed, items, text};

const SAFE_TO_EVICT: &str = "cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes";

pub(crate) fn local(observed: &Observed) -> Vec<Finding> {
    observed.each_pod(Invariant::LocalVolumes, |pod| {
        let volumes = items(&pod.spec["volumes"]).iter();
        let local = volumes.filter(|it| it["emptyDir"].is_object() || it["hostPath"].is_object());
        let local: BTreeSet<_> = local.map(|it| text(&it["name"])).collect();
        let named = text(&pod.metadata["annotations"][SAFE_TO_EVICT]);
        let named: BTreeSet<_> = named.split(',').filter(|name| !name.is_empty()).collect();
        let missing: Vec<_> = local.difference(&named).copied().collect();
        (!missing.is_empty())
            .then(|| format!("{SAFE_TO_EVICT} does not name {}", missing.join(",")))
    })
}
