//! All authorities and certificates that the components of a control plane declare.

use std::time::Duration;

use control_plane_component::certificate::{Authority, DEFAULT_VALIDITY, Leaf, authority};
use control_plane_component::{Component, Context};

const DAY: Duration = Duration::from_hours(24);
/// Validity of an authority.
pub(super) const AUTHORITY_VALIDITY: Duration = DAY.saturating_mul(3650);
/// Annotation: overrides the validity of leaf certificates.
const VALIDITY: &str = "hypershift.openshift.io/certificate-validity";
/// Authorities that several components share.
const SHARED: [Authority; 3] = [
    authority("root-ca", "root-ca").trusted_in(&["root-ca"]),
    authority("kube-control-plane-signer", "kube-control-plane-signer").trusted_in(&["client-ca"]),
    authority("cluster-signer-ca", "kube-csr-signer")
        .trusted_in(&["client-ca", "kubelet-client-ca"]),
];

/// Returns the authorities of a hosted control plane with these components.
pub(crate) fn authorities(components: &[Component], context: &Context<'_>) -> Vec<Authority> {
    let declared = components
        .iter()
        .flat_map(|component| component.authorities(context));
    SHARED.into_iter().chain(declared).collect()
}

/// Returns the certificates of a hosted control plane with these components, as far as their names are known.
pub(crate) fn leaves(components: &[Component], context: &Context<'_>) -> Vec<Leaf> {
    let validity = validity(context);
    let declared = components
        .iter()
        .flat_map(|component| component.certificates(context));
    declared.map(|leaf| Leaf { validity, ..leaf }).collect()
}

/// Validity of leaf certificates.
fn validity(context: &Context<'_>) -> Duration {
    let chosen = context.annotation(VALIDITY);
    let chosen = chosen.and_then(|text| text.parse::<support::args::Time>().ok());
    chosen.map_or(DEFAULT_VALIDITY, |time| time.0)
}
