//! The components that forward control plane metrics to the guest, if enabled.

use control_plane_component::certificate::Usage::Server;
use control_plane_component::certificate::{Authority, Form, authority, leaf};
use control_plane_component::names::service;
use control_plane_component::{Component, Context, Leaf};

use super::pending;

const RESOLVER: Authority =
    authority("endpoint-resolver-ca", "endpoint-resolver-ca").form(Form::Tls);
const PROXY: Authority = authority("metrics-proxy-ca-cert", "metrics-proxy-ca").form(Form::Tls);

pub(super) fn components() -> [Component; 2] {
    [
        pending("endpoint-resolver")
            .with_authorities(|context| if_forwarded(context, RESOLVER))
            .with_certificates(|context| serving(context, "endpoint-resolver", &RESOLVER)),
        pending("metrics-proxy")
            .with_authorities(|context| if_forwarded(context, PROXY))
            .with_certificates(|context| serving(context, "metrics-proxy", &PROXY)),
    ]
}

fn serving(context: &Context<'_>, name: &str, authority: &Authority) -> Vec<Leaf> {
    let secret = format!("{name}-serving-cert");
    let leaf = leaf(&secret, authority.secret, name, "openshift", Server);
    let leaf = leaf.names(service(context, name)).form(Form::Tls);
    if_forwarded(context, leaf)
}

fn if_forwarded<T>(context: &Context<'_>, item: T) -> Vec<T> {
    let monitoring = serde_json::json!(context.spec().monitoring);
    let is_forwarded = monitoring["metricsForwarding"]["mode"] == "Forward";
    is_forwarded.then_some(item).into_iter().collect()
}
