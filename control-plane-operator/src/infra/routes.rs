//! Routes that publish a control plane.

use api::hypershift::v1beta1::services::PublishingStrategyType::Route as ByRoute;
use api::hypershift::v1beta1::services::ServiceType;
use control_plane_component::Context;
use serde_json::{Map, Value, json};

use super::labels_routes;

const HOSTED_CONTROL_PLANE: &str = "hypershift.openshift.io/hosted-control-plane";
const INTERNAL: &str = "hypershift.openshift.io/internal-route";
const VISIBILITY: &str = "hypershift.openshift.io/route-visibility";

/// The audience of a Route.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reach {
    /// Public.
    External,
    /// The cluster's network, with a configured host name.
    Private,
    /// The cluster's network, with a generated host name.
    Internal,
}

/// Returns the configured host name if a service is published by a Route.
#[expect(clippy::option_option, reason = "the host name of a Route is optional")]
pub(crate) fn by_route<'a>(context: &Context<'a>, service: ServiceType) -> Option<Option<&'a str>> {
    let strategy = context
        .strategy(service)
        .filter(|strategy| strategy.type_ == ByRoute)?;
    let host = strategy
        .route
        .as_ref()
        .and_then(|route| route.hostname.as_deref());
    Some(host.filter(|host| !host.is_empty()))
}

/// Returns the host of an external Route: the configured one, or one in the default ingress domain. `None` lets the
/// router decide.
pub(crate) fn chosen(context: &Context<'_>, name: &str, host: Option<&str>) -> Option<String> {
    let domain = &context.settings.default_ingress_domain;
    match host {
        Some(host) => Some(host.to_owned()),
        None if domain.is_empty() => None,
        None => Some(format!("{name}-{}.{domain}", context.namespace())),
    }
}

/// Creates a Route to a Service.
pub(crate) fn route(
    context: &Context<'_>,
    (name, service): (&str, &str),
    host: Option<String>,
    reach: Reach,
) -> Value {
    let mut labels = Map::new();
    // Internal Routes are never served by the management cluster's router.
    if labels_routes(context) || reach == Reach::Internal {
        labels.insert(HOSTED_CONTROL_PLANE.to_owned(), json!(context.namespace()));
    }
    match reach {
        Reach::External => {}
        Reach::Private => {
            labels.insert(VISIBILITY.to_owned(), json!("private"));
        }
        Reach::Internal => {
            labels.insert(INTERNAL.to_owned(), json!("true"));
        }
    }
    let mut spec = json!({
        "to": { "kind": "Service", "name": service },
        "tls": { "termination": "passthrough", "insecureEdgeTerminationPolicy": "None" },
    });
    if let Some(host) = host {
        spec["host"] = json!(host);
    }
    let mut metadata = json!({ "name": name });
    if !labels.is_empty() {
        metadata["labels"] = json!(labels);
    }
    json!({ "apiVersion": "route.openshift.io/v1", "kind": "Route", "metadata": metadata, "spec": spec })
}
