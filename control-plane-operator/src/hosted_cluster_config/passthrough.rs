//! The way to the ingress of a hosted cluster on KubeVirt whose domain is below the one of the infrastructure cluster: a
//! Service for the node port of its router, and a Route that passes TLS through.

use k8s_openapi::api::core::v1::Service;
use kube::Api;
use kube::api::{ApiResource, DynamicObject};
use serde_json::{Value, json};

use super::context::Context;
use super::error::Error;
use super::infra::{Infra, kind};

/// The router of the hosted cluster.
const ROUTER_NAMESPACE: &str = "openshift-ingress";
const ROUTER: &str = "router-nodeport-default";
const HTTPS: i32 = 443;

/// Applies both objects.
pub(super) async fn apply(ctx: &Context, infra: &Infra, hcp: &DynamicObject) -> Result<(), Error> {
    let Some(names) = names(hcp) else {
        return Ok(());
    };
    let port = node_port(&ctx.guest).await?;
    let service = service(infra, &names, port);
    infra.apply(&services(), service, |_| false).await?;
    let route = route(infra, &names, hcp);
    infra.apply(&routes(), route, |_| false).await
}

/// Deletes both objects.
pub(super) async fn delete(infra: &Infra, hcp: &DynamicObject) -> Result<(), Error> {
    let Some(Names { service, route }) = names(hcp) else {
        return Ok(());
    };
    infra.delete(&routes(), &route).await?;
    infra.delete(&services(), &service).await
}

/// The name of the Service, if the cluster has one.
pub(super) fn service_name(hcp: &DynamicObject) -> Option<String> {
    names(hcp).map(|it| it.service)
}

/// The names of both objects.
struct Names {
    service: String,
    route: String,
}

/// The names of both objects, if the cluster is to have them.
fn names(hcp: &DynamicObject) -> Option<Names> {
    let spec = &hcp.data["spec"];
    let disabled = spec["capabilities"]["disabled"].as_array();
    let has_ingress = disabled.is_none_or(|it| !it.contains(&json!("Ingress")));
    let kubevirt = &spec["platform"]["kubevirt"];
    let is_wanted = has_ingress && kubevirt["baseDomainPassthrough"] == true;
    let id = kubevirt["generateID"].as_str().filter(|it| !it.is_empty());
    id.filter(|_| is_wanted).map(|id| Names {
        service: format!("default-ingress-passthrough-service-{id}"),
        route: format!("default-ingress-passthrough-route-{id}"),
    })
}

/// The port of nodes at which the router is reached.
async fn node_port(guest: &kube::Client) -> Result<i32, Error> {
    let what = format!("Service {ROUTER_NAMESPACE}/{ROUTER}");
    let api: Api<Service> = Api::namespaced(guest.clone(), ROUTER_NAMESPACE);
    let found = api.get_opt(ROUTER).await;
    let found = found.map_err(Error::client(format!("get {what}")))?;
    let spec = found.and_then(|it| it.spec);
    let mut ports = spec.and_then(|it| it.ports).unwrap_or_default().into_iter();
    let port = ports
        .find(|it| it.port == HTTPS)
        .and_then(|it| it.node_port);
    let port = port.filter(|port| *port > 0);
    port.ok_or_else(|| Error::waiting(format!("the node port of port {HTTPS} of {what}")))
}

/// Without a selector: the endpoints are the machines.
fn service(infra: &Infra, names: &Names, port: i32) -> Value {
    json!({
        "metadata": infra.metadata(&names.service),
        "spec": {
            "type": "ClusterIP",
            "ports": [{ "name": "https-443", "port": HTTPS, "protocol": "TCP", "targetPort": port }],
        },
    })
}

fn route(infra: &Infra, names: &Names, hcp: &DynamicObject) -> Value {
    json!({
        "metadata": infra.metadata(&names.route),
        "spec": {
            // For all hosts of its domain.
            "host": format!("https.apps.{}", domain(hcp)),
            "wildcardPolicy": "Subdomain",
            "tls": { "termination": "passthrough" },
            "to": { "kind": "Service", "name": names.service },
        },
    })
}

/// The domain of the cluster.
fn domain(hcp: &DynamicObject) -> String {
    let dns = &hcp.data["spec"]["dns"];
    let base = dns["baseDomain"].as_str().unwrap_or_default();
    let name = hcp.metadata.name.as_deref().unwrap_or_default();
    match dns["baseDomainPrefix"].as_str().unwrap_or(name) {
        "" => base.to_owned(),
        prefix => format!("{prefix}.{base}"),
    }
}

pub(super) fn services() -> ApiResource {
    kind("v1", "Service", "services")
}

fn routes() -> ApiResource {
    kind("route.openshift.io/v1", "Route", "routes")
}

#[cfg(test)]
mod tests {
    use support::testing::{Answer, Expect, Scenario};

    use super::super::context::testing::control_plane;
    use super::*;

    fn hcp(change: impl FnOnce(&mut Value)) -> DynamicObject {
        let kubevirt = json!({ "generateID": "x7k2p", "baseDomainPassthrough": true });
        let platform = json!({ "type": "KubeVirt", "kubevirt": kubevirt });
        let mut object = control_plane(&json!({ "platform": platform }));
        change(&mut object["spec"]);
        serde_json::from_value(object).unwrap()
    }

    fn infra() -> Infra {
        Infra::for_tests(Scenario::new([]).client())
    }

    #[tokio::test]
    async fn the_route_is_for_the_domain_of_applications() {
        for (dns, expected) in [
            (
                json!({ "baseDomain": "example.com" }),
                "https.apps.a.example.com",
            ),
            (
                json!({ "baseDomain": "example.com", "baseDomainPrefix": "b" }),
                "https.apps.b.example.com",
            ),
            (
                json!({ "baseDomain": "example.com", "baseDomainPrefix": "" }),
                "https.apps.example.com",
            ),
        ] {
            let hcp = hcp(|spec| spec["dns"] = dns);
            let names = names(&hcp).unwrap();
            let route = route(&infra(), &names, &hcp);
            assert_eq!(route["spec"]["host"], expected);
            assert_eq!(route["spec"]["wildcardPolicy"], "Subdomain");
            assert_eq!(
                route["spec"]["to"]["name"],
                "default-ingress-passthrough-service-x7k2p"
            );
            let service = service(&infra(), &names, 30443);
            assert_eq!(service["spec"]["ports"][0]["targetPort"], 30443);
            assert_eq!(service["spec"]["selector"], Value::Null);
        }
    }

    #[test]
    fn clusters_with_ingress_and_passthrough_have_the_objects() {
        for (change, expected) in [
            (json!({}), true),
            (
                json!({ "capabilities": { "disabled": ["Ingress"] } }),
                false,
            ),
            (json!({ "capabilities": { "disabled": ["Console"] } }), true),
            (
                json!({ "platform": { "type": "KubeVirt", "kubevirt": { "generateID": "a" } } }),
                false,
            ),
            (json!({ "platform": { "type": "AWS" } }), false),
        ] {
            let hcp = hcp(|spec| {
                for (field, value) in change.as_object().unwrap() {
                    spec[field] = value.clone();
                }
            });
            assert_eq!(service_name(&hcp).is_some(), expected, "{change}");
        }
    }

    #[tokio::test]
    async fn a_router_without_a_node_port_is_waited_for() {
        let path = "/api/v1/namespaces/openshift-ingress/services/router-nodeport-default";
        let router = |port: &Value| {
            let ports = json!([{ "port": 80, "nodePort": 30080 }, port]);
            Answer::ok(&json!({ "metadata": { "name": ROUTER }, "spec": { "ports": ports } }))
        };
        for (answer, expected) in [
            (Answer::error(404, "NotFound"), None),
            (router(&json!({ "port": 8443, "nodePort": 30443 })), None),
            (router(&json!({ "port": 443 })), None),
            (
                router(&json!({ "port": 443, "nodePort": 30443 })),
                Some(30443),
            ),
        ] {
            let scenario = Scenario::new([Expect::get(path).answer(answer)]);
            let found = node_port(&scenario.client()).await;
            assert_eq!(found.ok(), expected);
            scenario.finish();
        }
    }
}
