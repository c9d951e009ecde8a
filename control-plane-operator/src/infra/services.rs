//! Services that publish a control plane.

use api::hypershift::v1beta1::platform::PlatformType;
use api::hypershift::v1beta1::services::PublishingStrategyType::{LoadBalancer, NodePort};
use api::hypershift::v1beta1::services::{ServicePublishingStrategy, ServiceType};
use control_plane_component::Context;
use serde_json::{Map, Value, json};

const EXTERNAL_DNS: &str = "external-dns.alpha.kubernetes.io/hostname";
const AWS: &str = "service.beta.kubernetes.io/aws-load-balancer";
const AZURE_INTERNAL: &str = "service.beta.kubernetes.io/azure-load-balancer-internal";
const GCP_TYPE: &str = "networking.gke.io/load-balancer-type";

/// A builder of Services.
pub(crate) struct Service {
    name: &'static str,
    app: &'static str,
    pub(crate) port: Value,
    type_: &'static str,
    is_labeled_by_component: bool,
    annotations: Map<String, Value>,
    pub(crate) spec: Map<String, Value>,
}

/// The audience of a load balancer.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reach {
    Public,
    Private,
}

// === impl Reach ===

impl Reach {
    /// The audience of a service that is published by a load balancer. In a private cluster on Azure, it has a private link.
    fn of(context: &Context<'_>) -> Self {
        if context.is_on(PlatformType::Azure) && context.access().is_private() {
            return Self::Private;
        }
        Self::Public
    }
}

// === impl Service ===

impl Service {
    /// Creates a `ClusterIP` Service for pods with an app label.
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

    /// Creates a Service that is the backend of a Service in the guest.
    pub(crate) fn internal(name: &'static str, target: i32) -> Self {
        let port = json!({ "name": "https", "port": 443, "targetPort": target, "protocol": "TCP" });
        Self::new(name, name, port)
    }

    /// Adds the component label to the Service and to its selector.
    pub(crate) fn labeled_by_component(mut self) -> Self {
        self.is_labeled_by_component = true;
        self
    }

    /// Applies the publishing strategy. A Route needs only a `ClusterIP` Service.
    pub(crate) fn publish(&mut self, context: &Context<'_>, service: ServiceType) {
        let Some(strategy) = context.strategy(service) else {
            return;
        };
        match strategy.type_ {
            NodePort => self.node_port(strategy),
            LoadBalancer => {
                self.load_balancer(context, Reach::of(context));
                self.host(strategy);
            }
            _ => {}
        }
    }

    /// Makes it a `NodePort` Service.
    pub(crate) fn node_port(&mut self, strategy: &ServicePublishingStrategy) {
        self.type_ = "NodePort";
        let port = strategy.node_port.as_ref().and_then(|node| node.port);
        if let Some(port) = port.filter(|port| *port != 0) {
            self.port["nodePort"] = json!(port);
        }
    }

    /// Makes it a LoadBalancer Service.
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
                    Reach::Private => set(format!("{AWS}-internal"), "true"),
                    Reach::Public => {}
                }
            }
            (PlatformType::Azure, Reach::Private) => set(AZURE_INTERNAL.to_owned(), "true"),
            (PlatformType::Gcp, Reach::Private) => set(GCP_TYPE.to_owned(), "Internal"),
            _ => {}
        }
    }

    /// Makes the load balancer internet-facing where that is not the default.
    pub(crate) fn internet_facing(&mut self, context: &Context<'_>) {
        if context.is_on(PlatformType::Aws) {
            let scheme = (format!("{AWS}-scheme"), json!("internet-facing"));
            self.annotations.extend([scheme]);
        }
    }

    /// Restricts the load balancer to the CIDRs that may access the API server, if configured.
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

    /// Sets the external DNS name of the load balancer.
    pub(crate) fn host(&mut self, strategy: &ServicePublishingStrategy) {
        let balancer = strategy.load_balancer.as_ref();
        if let Some(host) = balancer.and_then(|balancer| balancer.hostname.as_deref()) {
            self.annotations
                .insert(EXTERNAL_DNS.to_owned(), json!(host));
        }
    }

    /// Builds the object.
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
