//! example: a component for tests. Everything about it is declared in this directory.

use control_plane_component::certificate::{Authority, Usage, authority, leaf};
use control_plane_component::{
    CapiUse, Component, Context, Leaf, Metrics, Publication, assets, names,
};
use serde_json::{Value, json};

use super::edit;

/// The component's name.
pub(crate) const NAME: &str = "example";
/// Its certificate authority.
pub(crate) const SIGNER: Authority =
    authority("example-signer", "example-signer").trusted_in(&["example-ca"]);

pub(crate) fn component() -> Component {
    Component::new(
        NAME,
        assets!(
            "deployment.yaml",
            "networkpolicy.yaml",
            "pdb.yaml",
            "servicemonitor.yaml",
        ),
    )
    .api_critical()
    .management_api()
    .uses_capi(CapiUse::Proxied)
    .depends_on(&["etcd"])
    .with_authorities(|_| vec![SIGNER])
    .with_certificates(certificates)
    .published_by(Publication {
        services: &[NAME, "example-old"],
        routes: &[NAME],
        objects: published,
        addresses: |_, infra| infra.ignition.host = NAME.to_owned(),
        missing: |_, _| vec!["the address of the example"],
    })
    .metrics(Metrics {
        telemetry: Some(("keep", "example_total")),
        sre: None,
    })
    .manifest("pdb.yaml", edit::disruption_budget)
}

fn certificates(context: &Context<'_>) -> Vec<Leaf> {
    let server = leaf(
        "example-serving",
        SIGNER.secret,
        NAME,
        "openshift",
        Usage::Server,
    );
    vec![server.names(names::service(context, NAME))]
}

fn published(_: &Context<'_>) -> Vec<Value> {
    let object = |version: &str, kind: &str| json!({ "apiVersion": version, "kind": kind, "metadata": { "name": NAME } });
    vec![
        object("v1", "Service"),
        object("route.openshift.io/v1", "Route"),
    ]
}
