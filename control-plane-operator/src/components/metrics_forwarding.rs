//! What the components that forward control plane metrics to the guest share.

use api::hypershift::v1beta1::monitoring::MetricsForwardingMode;
use control_plane_component::certificate::Usage::Server;
use control_plane_component::certificate::{Authority, Form, leaf};
use control_plane_component::{Context, Leaf};

/// Whether metrics are forwarded.
pub(super) fn is_enabled(context: &Context<'_>) -> bool {
    let monitoring = context.spec().monitoring.as_ref();
    let forwarding = monitoring.and_then(|monitoring| monitoring.metrics_forwarding.as_ref());
    forwarding.is_some_and(|forwarding| forwarding.mode == MetricsForwardingMode::Forward)
        && context.is_monitored()
}

/// The authority, if metrics are forwarded.
pub(super) fn authority(context: &Context<'_>, authority: Authority) -> Vec<Authority> {
    is_enabled(context)
        .then_some(authority)
        .into_iter()
        .collect()
}

/// A serving certificate, if metrics are forwarded.
pub(super) fn serving(
    context: &Context<'_>,
    name: &str,
    authority: &Authority,
    names: Vec<String>,
) -> Vec<Leaf> {
    let secret = format!("{name}-serving-cert");
    let leaf = leaf(&secret, authority.secret, name, "openshift", Server);
    let leaf = leaf.names(names).form(Form::Tls);
    is_enabled(context).then_some(leaf).into_iter().collect()
}
