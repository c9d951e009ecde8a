//! Services by which a control plane is published.

use api::hypershift::v1beta1::platform::PlatformType;
use api::hypershift::v1beta1::services::PublishingStrategyType::{LoadBalancer, NodePort};
use api::hypershift::v1beta1::services::{ServicePublishingStrategy, ServiceType};
use control_plane_component::Context;
use serde_json::{Map, Value, json};

const EXTERNAL_DNS: &str = "external-dns.alpha.kubernetes.io/hostname";
const AWS: &str = "service.beta.kubernetes.io/aws-load-balancer";
const AZURE_INTERNAL: &str = "service.beta.kubernetes.io/azure-load-balancer-internal";

/// A Service that is being put together.
pub(crate) struct Service {
    name: &'static str,
    app: &'static str,
    pub(crate) port: Value,
    type_: &'static str,
    is_labeled_by_component: bool,
    annotations: Map<String, Value>,
    pub(crate) spec: Map<String, Value>,
}

/// Who a load balancer is for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reach {
    Everybody,
    OwnNetwork,
}

// === impl Service ===

impl Service {
    /// A Service of the pods of an app, within the management cluster.
    pub(crate) fn new(name: &'static str, app: &'static str, port: Value) -> Self {
        Self {
            name,
            app,
            port,
            type_: "ClusterIP",
            is_labeled_by_component: false,
            annotations: Map::new(),
            spec: Map::new(),
        }
    }

    /// A Service that the guest's own Services lead to.
    pub(crate) fn internal(name: &'static str, target: i32) -> Self {
        let port = json!({ "name": "https", "port": 443, "targetPort": target, "protocol": "TCP" });
        Self::new(name, name, port)
    }

    /// Selects pods by their component, too, and has that label itself.
    pub(crate) fn labeled_by_component(mut self) -> Self {
        self.is_labeled_by_component = true;
        self
    }

    /// Publishes by what is asked for: a Route leads to a Service of the cluster.
    pub(crate) fn publish(&mut self, context: &Context<'_>, service: ServiceType) {
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

    /// Opens a port of the nodes.
    pub(crate) fn node_port(&mut self, strategy: &ServicePublishingStrategy) {
        self.type_ = "NodePort";
        let port = strategy.node_port.as_ref().and_then(|node| node.port);
        if let Some(port) = port.filter(|port| *port != 0) {
            self.port["nodePort"] = json!(port);
        }
    }

    /// Asks for a load balancer.
    pub(crate) fn load_balancer(&mut self, context: &Context<'_>, reach: Reach) {
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
                    Reach::Everybody => {}
                }
            }
            (PlatformType::Azure, Reach::OwnNetwork) => set(AZURE_INTERNAL.to_owned(), "true"),
            _ => {}
        }
    }

    /// Says that a load balancer for everybody has an address in the internet, where that is not the default.
    pub(crate) fn internet_facing(&mut self, context: &Context<'_>) {
        if context.is_on(PlatformType::Aws) {
            let scheme = (format!("{AWS}-scheme"), json!("internet-facing"));
            self.annotations.extend([scheme]);
        }
    }

    /// Lets a load balancer take connections only from the ranges that may reach the API server, if there are such.
    pub(crate) fn allow_cidr_blocks(&mut self, context: &Context<'_>) {
        let networking = context
            .networking()
            .and_then(|networking| networking.api_server.as_ref());
        let allowed = networking
            .map(|api| &api.allowed_cidr_blocks)
            .filter(|blocks| !blocks.is_empty());
        if let Some(blocks) = allowed.filter(|_| self.type_ == "LoadBalancer") {
            let blocks: Vec<_> = blocks.iter().map(|block| &block.0).collect();
            self.spec
                .insert("loadBalancerSourceRanges".to_owned(), json!(blocks));
        }
    }

    /// The name that the load balancer gets in DNS.
    pub(crate) fn host(&mut self, strategy: &ServicePublishingStrategy) {
        let balancer = strategy.load_balancer.as_ref();
        if let Some(host) = balancer.and_then(|balancer| balancer.hostname.as_deref()) {
            self.annotations
                .insert(EXTERNAL_DNS.to_owned(), json!(host));
        }
    }

    /// As an object.
    pub(crate) fn object(self) -> Value {
        let mut labels = Map::new();
        labels.insert("app".to_owned(), json!(self.app));
        let component = "hypershift.openshift.io/control-plane-component";
        let mut selector = labels.clone();
        if self.is_labeled_by_component {
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
