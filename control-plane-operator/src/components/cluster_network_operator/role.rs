//! Permissions of the operator in the management cluster.

use control_plane_component::{Context, Result};
use k8s_openapi::api::rbac::v1::{PolicyRule, Role};

/// Groups, resources and verbs.
type Rule = (
    &'static [&'static str],
    &'static [&'static str],
    &'static [&'static str],
);

const ALL: &[&str] = &["*"];
const HYPERSHIFT: &[&str] = &["hypershift.openshift.io"];
/// With OVN-Kubernetes it creates the network's control plane, whose names depend on the release.
const OVN: [Rule; 7] = [
    (
        &[""],
        &["events", "configmaps", "pods", "secrets", "services"],
        ALL,
    ),
    (&["policy"], &["poddisruptionbudgets"], ALL),
    (&["apps"], &["statefulsets", "deployments"], ALL),
    (
        &["route.openshift.io"],
        &["routes", "routes/custom-host"],
        ALL,
    ),
    (
        &["monitoring.coreos.com", "monitoring.rhobs"],
        &["servicemonitors", "prometheusrules"],
        ALL,
    ),
    (
        HYPERSHIFT,
        &["hostedcontrolplanes"],
        &["get", "list", "watch"],
    ),
    (HYPERSHIFT, &["hostedcontrolplanes/status"], ALL),
];

/// Other networks need only what the manifest grants.
#[expect(clippy::unnecessary_wraps, reason = "the form of adapt functions")]
pub(super) fn adapt(context: &Context<'_>, role: &mut Role) -> Result<()> {
    if super::is_ovn(context) {
        role.rules = Some(OVN.map(rule).into());
    }
    Ok(())
}

fn rule((groups, resources, verbs): Rule) -> PolicyRule {
    let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
    PolicyRule {
        api_groups: Some(texts(groups)),
        resources: Some(texts(resources)),
        verbs: texts(verbs),
        ..PolicyRule::default()
    }
}
