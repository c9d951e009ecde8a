//! endpoint-resolver: lists the addresses of control plane pods for the metrics proxy, which has no access to the
//! management cluster's API server.

use control_plane_component::certificate::{Authority, Form, authority};
use control_plane_component::names::service;
use control_plane_component::{Component, assets};

use super::metrics_forwarding;

/// The component's name.
const NAME: &str = "endpoint-resolver";
/// Signs its serving certificate.
const AUTHORITY: Authority =
    authority("endpoint-resolver-ca", "endpoint-resolver-ca").form(Form::Tls);

pub(super) fn component() -> Component {
    Component::new(
        NAME,
        assets!(
            "ca.yaml",
            "deployment.yaml",
            "role.yaml",
            "rolebinding.yaml",
            "service.yaml",
            "serviceaccount.yaml",
            "serving-cert.yaml",
        ),
    )
    .with_authorities(|context| metrics_forwarding::authority(context, AUTHORITY))
    .with_certificates(|context| {
        metrics_forwarding::serving(context, NAME, &AUTHORITY, service(context, NAME))
    })
    .management_api()
    .enabled_if(metrics_forwarding::is_enabled)
    .pki_managed("ca.yaml")
    .pki_managed("serving-cert.yaml")
}
