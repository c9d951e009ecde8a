//! The namespace of a control plane.

use api::annotations::cluster::POD_SECURITY_LEVEL;
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
    let wanted = POD_SECURITY_LEVEL.get(facts.annotations()).ok().flatten();
    wanted.unwrap_or_else(|| {
        let restricted = facts.operator_labels.contains_key(RESTRICTED);
        let level = if restricted {
            "restricted"
        } else {
            "privileged"
        };
        level.to_owned()
    })
}
