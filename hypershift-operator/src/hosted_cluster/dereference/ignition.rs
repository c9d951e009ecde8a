//! Where nodes get their configuration: the address depends on how the service is published.

use api::hypershift::v1beta1::services::{
    PublishingStrategyType, ServicePublishingStrategy, ServiceType,
};
use k8s_openapi::api::core::v1::Service;
use kube::Api;
use kube::api::{ApiResource, DynamicObject};
use support::reconcile::is_missing;

use crate::context::Context;
use crate::error::Error;
use crate::facts::Facts;

/// The route.
const ROUTE: &str = "ignition-server";
/// Services of the ignition server: the proxy's, or its own if there is no proxy.
const SERVICES: [&str; 2] = ["ignition-server-proxy", "ignition-server"];

/// Host, and port unless it is the default.
pub(super) async fn endpoint(facts: &Facts, ctx: &Context) -> Result<Option<String>, Error> {
    let mut services = facts.cluster.spec.services.iter();
    let Some(ignition) = services.find(|it| it.service == ServiceType::Ignition) else {
        return Ok(None);
    };
    let strategy = &ignition.service_publishing_strategy;
    match strategy.type_ {
        PublishingStrategyType::Route if facts.management.routes => route(facts, ctx).await,
        PublishingStrategyType::NodePort | PublishingStrategyType::LoadBalancer => {
            service(facts, strategy, ctx).await
        }
        PublishingStrategyType::Route
        | PublishingStrategyType::None
        | PublishingStrategyType::S3 => Ok(None),
    }
}

async fn route(facts: &Facts, ctx: &Context) -> Result<Option<String>, Error> {
    let resource = ApiResource {
        group: "route.openshift.io".to_owned(),
        version: "v1".to_owned(),
        api_version: "route.openshift.io/v1".to_owned(),
        kind: "Route".to_owned(),
        plural: "routes".to_owned(),
    };
    let client = ctx.client.clone();
    let api: Api<DynamicObject> = Api::namespaced_with(client, &facts.namespace, &resource);
    let found = match api.get_opt(ROUTE).await {
        Ok(found) => found,
        Err(error) if is_missing(&error) => None,
        Err(source) => {
            let what = format!("Route {}/{ROUTE}", facts.namespace);
            return Err(Error::Read { what, source });
        }
    };
    let host = found.and_then(|it| it.data["spec"]["host"].as_str().map(str::to_owned));
    Ok(host.filter(|host| !host.is_empty()))
}

async fn service(
    facts: &Facts,
    strategy: &ServicePublishingStrategy,
    ctx: &Context,
) -> Result<Option<String>, Error> {
    for name in SERVICES {
        let Some(service) = ctx.get::<Service>(&facts.namespace, name).await? else {
            continue;
        };
        if let Some(address) = address(&service, strategy) {
            return Ok(Some(address));
        }
    }
    Ok(None)
}

fn address(service: &Service, strategy: &ServicePublishingStrategy) -> Option<String> {
    if let Some(node) = &strategy.node_port {
        let port = service.spec.as_ref()?.ports.as_ref()?.first()?.node_port?;
        return Some(format!("{}:{port}", bracketed(&node.address)));
    }
    let balancer = strategy
        .load_balancer
        .as_ref()
        .and_then(|it| it.hostname.clone());
    balancer.or_else(|| {
        let status = service.status.as_ref()?.load_balancer.as_ref()?;
        let ingress = status.ingress.as_ref()?.first()?;
        ingress
            .hostname
            .clone()
            .or_else(|| ingress.ip.as_deref().map(bracketed))
    })
}

fn bracketed(address: &str) -> String {
    if address.contains(':') {
        return format!("[{address}]");
    }
    address.to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_ignition_endpoint_is_the_published_address() {
        let balanced =
            json!({ "status": { "loadBalancer": { "ingress": [{ "ip": "192.0.2.7" }] } } });
        let on_nodes = json!({ "spec": { "ports": [{ "port": 443, "nodePort": 30443 }] } });
        let nodes =
            |address: &str| json!({ "type": "NodePort", "nodePort": { "address": address } });
        for (service, strategy, expected) in [
            (&on_nodes, nodes("192.0.2.10"), Some("192.0.2.10:30443")),
            (&on_nodes, nodes("fd00::1"), Some("[fd00::1]:30443")),
            (&balanced, nodes("192.0.2.10"), None),
            (
                &balanced,
                json!({ "type": "LoadBalancer" }),
                Some("192.0.2.7"),
            ),
            (&on_nodes, json!({ "type": "LoadBalancer" }), None),
        ] {
            let service = serde_json::from_value(service.clone()).unwrap();
            let strategy = serde_json::from_value(strategy).unwrap();
            assert_eq!(address(&service, &strategy).as_deref(), expected);
        }
    }
}
