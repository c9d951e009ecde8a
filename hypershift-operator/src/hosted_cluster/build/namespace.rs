//! The namespace of a control plane.

use api::annotations::cluster::POD_SECURITY_LEVEL;
use api::group::Side;
use api::hypershift::v1beta1::platform::PlatformType;
use k8s_openapi::api::core::v1::Namespace;
use serde_json::json;

use crate::hosted_cluster::facts::Facts;
use crate::hosted_cluster::names::HOSTED_CONTROL_PLANE;
use crate::hosted_cluster::wanted::Wanted;

/// Label of a control-plane-operator's image whose pods keep to the level `restricted`.
const RESTRICTED: &str = "io.openshift.hypershift.restricted-psa";

/// The namespace.
pub(super) fn namespace(facts: &Facts) -> Wanted {
    let level = level(facts);
    let labels = json!({
        HOSTED_CONTROL_PLANE: "true",
        "pod-security.kubernetes.io/enforce": level,
        "pod-security.kubernetes.io/audit": level,
        "pod-security.kubernetes.io/warn": level,
        // Otherwise OpenShift chooses a level by the rights of service accounts.
        "security.openshift.io/scc.podSecurityLabelSync": "false",
    });
    let fields = json!({ "metadata": { "labels": labels } });
    Wanted::new::<Namespace>("", &facts.namespace, fields)
}

fn level(facts: &Facts) -> String {
    let given = POD_SECURITY_LEVEL.get(facts.annotations()).ok().flatten();
    given.unwrap_or_else(|| default_level(facts).to_owned())
}

/// The strictest level that the pods of the control plane satisfy.
fn default_level(facts: &Facts) -> &'static str {
    if facts.operator_labels.contains_key(RESTRICTED) {
        return "restricted";
    }
    // Releases from before private types do not say what their pods need, and virtual machines need devices.
    if facts.capi.side() == Side::Standard || runs_virtual_machines(facts) {
        return "privileged";
    }
    // OpenShift's security context constraints complete the pods; elsewhere they lack a seccomp profile.
    if facts.management.chooses_users {
        return "restricted";
    }
    "baseline"
}

/// Whether virtual machines run in the namespace: those of KubeVirt do, unless they are on another cluster.
fn runs_virtual_machines(facts: &Facts) -> bool {
    let platform = &facts.cluster.spec.platform;
    let elsewhere = platform
        .kubevirt
        .as_ref()
        .is_some_and(|kubevirt| kubevirt.credentials.is_some());
    platform.type_ == PlatformType::KubeVirt && !elsewhere
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hosted_cluster::fixture;

    /// T05: nothing that an author chooses gives control plane pods more than they need.
    #[test]
    fn pods_get_the_strictest_level_that_they_satisfy() {
        // Platform, side, whether the management cluster has SCCs.
        let table = [
            ("aws", Side::Private, true, "restricted"),
            ("aws", Side::Private, false, "baseline"),
            ("agent", Side::Private, false, "baseline"),
            ("kubevirt", Side::Private, true, "privileged"),
            ("aws", Side::Standard, true, "privileged"),
        ];
        for (platform, side, chooses_users, expected) in table {
            let cluster = fixture::hosted_cluster(platform);
            let mut facts = fixture::facts(cluster, side);
            facts.management.chooses_users = chooses_users;
            assert_eq!(level(&facts), expected, "{platform} {side:?}");
            facts
                .operator_labels
                .insert(RESTRICTED.to_owned(), String::new());
            assert_eq!(level(&facts), "restricted", "{platform} {side:?}");
        }
    }

    #[test]
    fn virtual_machines_elsewhere_need_nothing_here() {
        let mut cluster = fixture::hosted_cluster("kubevirt");
        let kubevirt = cluster.spec.platform.kubevirt.get_or_insert_default();
        kubevirt.credentials.get_or_insert_default();
        let facts = fixture::facts(cluster, Side::Private);
        assert!(!runs_virtual_machines(&facts));
    }
}
