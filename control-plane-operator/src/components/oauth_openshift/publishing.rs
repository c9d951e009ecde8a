//! How the OAuth server is published.

use api::hypershift::v1beta1::services::PublishingStrategyType::LoadBalancer;
use api::hypershift::v1beta1::services::ServiceType;
use control_plane_component::facts::Infra;
use control_plane_component::{Context, Publication};
use serde_json::{Value, json};

use super::NAME;
use crate::infra::address::of;
use crate::infra::routes::{Reach, by_route, chosen, route};
use crate::infra::services::Service;

const EXTERNAL: &str = "oauth";
const PRIVATE: &str = "oauth-private";
const INTERNAL: &str = "oauth-internal";

/// Its Service and Routes.
pub(super) const PUBLICATION: Publication = Publication {
    services: &[NAME],
    routes: &[EXTERNAL, PRIVATE, INTERNAL],
    objects,
    addresses,
    missing,
};

fn objects(context: &Context<'_>) -> Vec<Value> {
    if !context.is_oauth_enabled() {
        return Vec::new();
    }
    let mut all = vec![service(context).object()];
    all.extend(routes(context));
    all
}

fn service(context: &Context<'_>) -> Service {
    let strategy = context.strategy(ServiceType::OAuthServer);
    let balanced = strategy.is_some_and(|strategy| strategy.type_ == LoadBalancer);
    let port = if balanced { 443 } else { 6443 };
    let port = json!({ "port": port, "targetPort": 6443, "protocol": "TCP" });
    let mut service = Service::new(NAME, NAME, port);
    service.publish(context, ServiceType::OAuthServer);
    service
}

fn routes(context: &Context<'_>) -> Vec<Value> {
    let Some(host) = by_route(context, ServiceType::OAuthServer) else {
        return Vec::new();
    };
    let to = |name: &str, host: Option<String>, reach| route(context, (name, NAME), host, reach);
    let mut all = Vec::new();
    if context.access().is_public() {
        let host = chosen(context, EXTERNAL, host);
        all.push(to(EXTERNAL, host, Reach::External));
    } else if let Some(host) = host {
        all.push(to(PRIVATE, Some(host.to_owned()), Reach::Private));
    }
    if context.access().is_private() {
        let host = format!("oauth.apps.{}.hypershift.local", context.name());
        all.push(to(INTERNAL, Some(host), Reach::Internal));
    }
    all
}

fn addresses(context: &Context<'_>, infra: &mut Infra) {
    let has_host = by_route(context, ServiceType::OAuthServer)
        .flatten()
        .is_some();
    let route = match (context.access().is_public(), has_host) {
        (true, _) => EXTERNAL,
        (false, true) => PRIVATE,
        // The only one that there is.
        (false, false) => INTERNAL,
    };
    infra.oauth = of(context, ServiceType::OAuthServer, NAME, route);
}

fn missing(context: &Context<'_>, infra: &Infra) -> Vec<&'static str> {
    if context.is_oauth_enabled() && !infra.oauth.is_known() {
        return vec!["the address of the OAuth server"];
    }
    Vec::new()
}
