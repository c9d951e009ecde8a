//! All authorities and all certificates of a control plane, as its components declare them.

use std::time::Duration;

use control_plane_component::certificate::{Authority, LIFE, Leaf, authority};
use control_plane_component::{Component, Context};

const DAY: Duration = Duration::from_hours(24);
/// How long an authority lives.
pub(super) const AUTHORITY_LIFE: Duration = DAY.saturating_mul(3650);
/// Annotation: how long leaves live, if not as long as usual.
const VALIDITY: &str = "hypershift.openshift.io/certificate-validity";
/// Authorities of the whole control plane: many components have certificates of theirs.
const SHARED: [Authority; 3] = [
    authority("root-ca", "root-ca").trusted_in(&["root-ca"]),
    authority("kube-control-plane-signer", "kube-control-plane-signer").trusted_in(&["client-ca"]),
    authority("cluster-signer-ca", "kube-csr-signer")
        .trusted_in(&["client-ca", "kubelet-client-ca"]),
];

/// The authorities that a hosted control plane with these components needs.
pub(crate) fn authorities(components: &[Component], context: &Context<'_>) -> Vec<Authority> {
    let declared = components
        .iter()
        .flat_map(|component| component.authorities(context));
    SHARED.into_iter().chain(declared).collect()
}

/// The certificates that a hosted control plane with these components needs, as far as their names are known.
pub(crate) fn leaves(components: &[Component], context: &Context<'_>) -> Vec<Leaf> {
    let life = life(context);
    let declared = components
        .iter()
        .flat_map(|component| component.certificates(context));
    declared.map(|leaf| Leaf { life, ..leaf }).collect()
}

/// How long leaves live.
fn life(context: &Context<'_>) -> Duration {
    let chosen = context.annotation(VALIDITY);
    let chosen = chosen.and_then(|text| text.parse::<support::args::Time>().ok());
    chosen.map_or(LIFE, |time| time.0)
}
