//! The Services that are not a component's own.

use api::hypershift::v1beta1::platform::PlatformType;
use api::hypershift::v1beta1::services::PublishingStrategyType::{LoadBalancer, NodePort};
use api::hypershift::v1beta1::services::{ServicePublishingStrategy, ServiceType};
use serde_json::{Map, Value, json};

use super::{is_swift, labels_routes, shares_ingress};
use crate::component::Context;

const EXTERNAL_DNS: &str = "external-dns.alpha.kubernetes.io/hostname";
const AWS: &str = "service.beta.kubernetes.io/aws-load-balancer";
const AZURE_INTERNAL: &str = "service.beta.kubernetes.io/azure-load-balancer-internal";

/// A Service that is being put together.
struct Service {
    name: &'static str,
    app: &'static str,
    port: Value,
    type_: &'static str,
    annotations: Map<String, Value>,
    spec: Map<String, Value>,
}

/// Who a load balancer is for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reach {
    Everybody,
    OwnNetwork,
}

/// All Services that are wanted.
pub(super) fn all(context: &Context<'_>) -> Vec<Value> {
    let mut all = api_server(context);
    all.push(konnectivity(context));
    all.extend(oauth(context));
    all.push(internal("openshift-apiserver", 8443));
    if context.is_oauth_enabled() {
        all.push(internal("openshift-oauth-apiserver", 8443));
    }
    all.push(internal("packageserver", 5443));
    all.extend(routers(context));
    all.into_iter().map(Service::object).collect()
}

fn api_server(context: &Context<'_>) -> Vec<Service> {
    let access = context.access();
    let strategy = context.strategy(ServiceType::ApiServer);
    let type_ = strategy.map(|strategy| strategy.type_);
    let port = json!({ "port": context.api_port(), "targetPort": "client", "protocol": "TCP" });
    let mut main = Service::new("kube-apiserver", "kube-apiserver", port);
    main.spec
        .insert("ipFamilyPolicy".to_owned(), json!("PreferDualStack"));
    let mut all = Vec::new();
    match (type_, strategy) {
        (Some(NodePort), Some(strategy)) => main.node_port(strategy),
        (Some(LoadBalancer), Some(strategy)) => {
            if access.is_public() && context.is_on(PlatformType::Azure) {
                // Its load balancers take a port only once for each address.
                let port = json!({ "port": 7443, "targetPort": "client", "protocol": "TCP" });
                let mut balancer = Service::new("kube-apiserverlb", "kube-apiserver", port);
                balancer.load_balancer(context, Reach::Everybody);
                balancer.host(strategy);
                all.push(balancer);
            } else if access.is_public() {
                main.load_balancer(context, Reach::Everybody);
                main.host(strategy);
            }
            if access.is_private() {
                all.push(private_api_server(context));
            }
        }
        _ => {}
    }
    all.insert(0, main);
    all
}

fn private_api_server(context: &Context<'_>) -> Service {
    let port = if context.is_on(PlatformType::Azure) {
        7443
    } else {
        6443
    };
    let port = json!({ "port": port, "targetPort": "client", "protocol": "TCP" });
    let mut service = Service::new("kube-apiserver-private", "kube-apiserver", port);
    service.load_balancer(context, Reach::OwnNetwork);
    service
}

fn konnectivity(context: &Context<'_>) -> Service {
    let port = json!({ "port": 8091, "targetPort": 8091, "protocol": "TCP" });
    let mut service = Service::new("konnectivity-server", "kube-apiserver", port);
    service.publish(context, ServiceType::Konnectivity);
    service
}

fn oauth(context: &Context<'_>) -> Option<Service> {
    if !context.is_oauth_enabled() {
        return None;
    }
    let strategy = context.strategy(ServiceType::OAuthServer);
    let balanced = strategy.is_some_and(|strategy| strategy.type_ == LoadBalancer);
    let port = if balanced { 443 } else { 6443 };
    let port = json!({ "port": port, "targetPort": 6443, "protocol": "TCP" });
    let mut service = Service::new("oauth-openshift", "oauth-openshift", port);
    service.publish(context, ServiceType::OAuthServer);
    Some(service)
}

/// A Service that the guest's own Services lead to.
fn internal(name: &'static str, target: i32) -> Service {
    let port = json!({ "name": "https", "port": 443, "targetPort": target, "protocol": "TCP" });
    Service::new(name, name, port)
}

fn routers(context: &Context<'_>) -> Vec<Service> {
    let access = context.access();
    let port = || json!({ "name": "https", "port": 443, "targetPort": "https", "protocol": "TCP" });
    let mut all = Vec::new();
    if access.is_private() {
        let mut router = Service::new("private-router", "private-router", port());
        if !is_swift(context) && !shares_ingress(context) {
            router.load_balancer(context, Reach::OwnNetwork);
        }
        all.push(router);
    }
    if access.is_public()
        && labels_routes(context)
        && !shares_ingress(context)
        && !is_swift(context)
    {
        let mut router = Service::new("router", "private-router", port());
        router.load_balancer(context, Reach::Everybody);
        all.push(router);
    }
    all
}

// === impl Service ===

impl Service {
    fn new(name: &'static str, app: &'static str, port: Value) -> Self {
        Self {
            name,
            app,
            port,
            type_: "ClusterIP",
            annotations: Map::new(),
            spec: Map::new(),
        }
    }

    /// Publishes by what is asked for: a Route leads to a Service of the cluster.
    fn publish(&mut self, context: &Context<'_>, service: ServiceType) {
        let Some(strategy) = context.strategy(service) else {
            return;
        };
        match strategy.type_ {
            NodePort => self.node_port(strategy),
            LoadBalancer => {
                self.load_balancer(context, Reach::Everybody);
                self.host(strategy);
            }
            _ => {}
        }
    }

    fn node_port(&mut self, strategy: &ServicePublishingStrategy) {
        self.type_ = "NodePort";
        let port = strategy.node_port.as_ref().and_then(|node| node.port);
        if let Some(port) = port.filter(|port| *port != 0) {
            self.port["nodePort"] = json!(port);
        }
    }

    fn load_balancer(&mut self, context: &Context<'_>, reach: Reach) {
        self.type_ = "LoadBalancer";
        let mut set = |key: String, value: &str| {
            self.annotations.insert(key, json!(value));
        };
        match (context.platform(), reach) {
            (PlatformType::Aws, reach) => {
                set(format!("{AWS}-type"), "nlb");
                if context.access().is_private() {
                    set(format!("{AWS}-cross-zone-load-balancing-enabled"), "true");
                }
                match reach {
                    Reach::OwnNetwork => set(format!("{AWS}-internal"), "true"),
                    Reach::Everybody if self.name == "router" => {
                        set(format!("{AWS}-scheme"), "internet-facing");
                    }
                    Reach::Everybody => {}
                }
            }
            (PlatformType::Azure, Reach::OwnNetwork) => set(AZURE_INTERNAL.to_owned(), "true"),
            _ => {}
        }
        let networking = context
            .networking()
            .and_then(|networking| networking.api_server.as_ref());
        let allowed = networking
            .map(|api| &api.allowed_cidr_blocks)
            .filter(|blocks| !blocks.is_empty());
        if let (Some(blocks), "kube-apiserver", Reach::Everybody) = (allowed, self.app, reach) {
            let blocks: Vec<_> = blocks.iter().map(|block| &block.0).collect();
            self.spec
                .insert("loadBalancerSourceRanges".to_owned(), json!(blocks));
        }
    }

    /// The name that the load balancer gets in DNS.
    fn host(&mut self, strategy: &ServicePublishingStrategy) {
        let balancer = strategy.load_balancer.as_ref();
        if let Some(host) = balancer.and_then(|balancer| balancer.hostname.as_deref()) {
            self.annotations
                .insert(EXTERNAL_DNS.to_owned(), json!(host));
        }
    }

    fn object(self) -> Value {
        let mut labels = Map::new();
        labels.insert("app".to_owned(), json!(self.app));
        let component = "hypershift.openshift.io/control-plane-component";
        let mut selector = labels.clone();
        if self.app == "kube-apiserver" {
            selector.insert(component.to_owned(), json!(self.app));
            labels.insert(component.to_owned(), json!(self.app));
        }
        let mut spec = self.spec;
        spec.insert("type".to_owned(), json!(self.type_));
        spec.insert("ports".to_owned(), json!([self.port]));
        spec.insert("selector".to_owned(), json!(selector));
        let mut metadata = json!({ "name": self.name, "labels": labels });
        if !self.annotations.is_empty() {
            metadata["annotations"] = json!(self.annotations);
        }
        json!({ "apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec })
    }
}
