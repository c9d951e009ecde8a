//! NetworkPolicies of a control plane: its pods may reach each other, and clients may reach published services.

pub(crate) mod virtual_machines;

use api::hypershift::v1beta1::platform::PlatformType;
use api::hypershift::v1beta1::services::{PublishingStrategyType, ServiceType};
use api::names::HOSTED_CONTROL_PLANE;
use ipnet::IpNet;
use k8s_openapi::api::networking::v1::NetworkPolicy;
use kube::api::ApiResource;
use serde_json::{Value, json};

use super::Desired;
use crate::facts::Facts;
use crate::names;

/// All names that are ever used: policies that are no longer desired are deleted.
const NAMES: [&str; 15] = [
    "kas",
    "loadbalancer-ignition",
    "loadbalancer-konnectivity",
    "loadbalancer-oauth",
    "management-kas",
    "nodeport-ignition",
    "nodeport-ignition-proxy",
    "nodeport-konnectivity",
    "nodeport-konnectivity-kas",
    "nodeport-oauth",
    "openshift-ingress",
    "openshift-monitoring",
    "private-router",
    "same-namespace",
    "virt-launcher",
];
/// Label by which OpenShift groups namespaces for policies.
const POLICY_GROUP: &str = "network.openshift.io/policy-group";

/// The policies.
pub(super) fn build(facts: &Facts) -> Vec<Desired> {
    let mut policies = vec![
        // Choosing all pods, it also closes them for everybody whom no policy lets in.
        ingress(
            facts,
            "same-namespace",
            &json!({}),
            &json!([{ "podSelector": {} }]),
            &[],
        ),
        ingress(facts, "kas", &app("kube-apiserver"), &json!([]), &[6443]),
        ingress(
            facts,
            "openshift-monitoring",
            &json!({}),
            &group("monitoring"),
            &[],
        ),
    ];
    if facts.management.routes {
        policies.push(ingress(
            facts,
            "openshift-ingress",
            &json!({}),
            &group("ingress"),
            &[],
        ));
    }
    policies.extend(published(facts));
    let platform = facts.cluster.spec.platform.type_;
    if [PlatformType::Aws, PlatformType::Azure].contains(&platform) {
        policies.push(ingress(
            facts,
            "private-router",
            &app("private-router"),
            &json!([]),
            &[8080, 8443],
        ));
    }
    if platform == PlatformType::Aws {
        policies.extend(management_api(facts));
    }
    policies.extend(virtual_machines::policy(facts));
    policies
}

/// Policies that may exist and are not desired.
pub(super) fn obsolete(desired: &[Desired]) -> Vec<(ApiResource, String)> {
    let obsolete = NAMES
        .iter()
        .filter(|name| desired.iter().all(|it| it.name() != **name));
    let resource = ApiResource::erase::<NetworkPolicy>(&());
    obsolete
        .map(|&name| (resource.clone(), name.to_owned()))
        .collect()
}

/// Services published by node port or load balancer are open to all clients.
fn published(facts: &Facts) -> Vec<Desired> {
    let open = |name: &str, pods: &str, port| ingress(facts, name, &app(pods), &json!([]), &[port]);
    let mut policies = Vec::new();
    for service in &facts.cluster.spec.services {
        match (service.service, service.service_publishing_strategy.type_) {
            (ServiceType::OAuthServer, PublishingStrategyType::NodePort) => {
                policies.push(open("nodeport-oauth", "oauth-openshift", 6443));
            }
            (ServiceType::OAuthServer, PublishingStrategyType::LoadBalancer) => {
                policies.push(open("loadbalancer-oauth", "oauth-openshift", 6443));
            }
            (ServiceType::Ignition, PublishingStrategyType::NodePort) => {
                policies.push(open("nodeport-ignition", "ignition-server", 9090));
                policies.push(open(
                    "nodeport-ignition-proxy",
                    "ignition-server-proxy",
                    8443,
                ));
            }
            (ServiceType::Ignition, PublishingStrategyType::LoadBalancer) => {
                policies.push(open("loadbalancer-ignition", "ignition-server-proxy", 8443));
            }
            (ServiceType::Konnectivity, PublishingStrategyType::NodePort) => {
                policies.push(open("nodeport-konnectivity", "konnectivity-server", 8091));
                policies.push(open("nodeport-konnectivity-kas", "kube-apiserver", 8091));
            }
            (ServiceType::Konnectivity, PublishingStrategyType::LoadBalancer) => {
                policies.push(open("loadbalancer-konnectivity", "kube-apiserver", 8091));
            }
            (ServiceType::ApiServer | ServiceType::Oidc | ServiceType::OvnSbDb, _)
            | (
                _,
                PublishingStrategyType::Route
                | PublishingStrategyType::None
                | PublishingStrategyType::S3,
            ) => {}
        }
    }
    policies
}

/// Only labeled pods may reach the API server of the management cluster.
fn management_api(facts: &Facts) -> Option<Desired> {
    let blocked = blocked(facts);
    if blocked.is_empty() {
        return None;
    }
    let of = |six: bool, all: &str| {
        let except = blocked.iter().filter(|it| it.contains(':') == six);
        let except: Vec<_> = except.collect();
        let mut block = json!({ "cidr": all });
        if !except.is_empty() {
            block["except"] = json!(except);
        }
        json!({ "ipBlock": block })
    };
    let fields = json!({ "spec": {
        "podSelector": { "matchExpressions": [
            { "key": names::NEED_MANAGEMENT_API, "operator": "DoesNotExist" },
            { "key": HOSTED_CONTROL_PLANE, "operator": "In", "values": [facts.namespace] },
        ]},
        "policyTypes": ["Egress"],
        "egress": [
            { "to": [of(false, "0.0.0.0/0"), of(true, "::/0")] },
            { "to": [{ "podSelector": {} }, { "namespaceSelector": {} }] },
        ],
    }});
    Some(Desired::new::<NetworkPolicy>(
        &facts.namespace,
        "management-kas",
        fields,
    ))
}

/// The networks that other pods may not reach: those of the flag, or else the addresses of the API server.
fn blocked(facts: &Facts) -> Vec<String> {
    let given = &facts.images.control_planes.blocked;
    if !given.is_empty() {
        return given.iter().map(IpNet::to_string).collect();
    }
    let addresses = facts.management.api_server.iter();
    addresses
        .map(|it| format!("{it}/{}", if it.contains(':') { 128 } else { 32 }))
        .collect()
}

fn app(name: &str) -> Value {
    json!({ "matchLabels": { "app": name } })
}

fn group(name: &str) -> Value {
    json!([{ "namespaceSelector": { "matchLabels": { POLICY_GROUP: name } } }])
}

/// Lets in `from`, or everybody if that is empty, to some ports or all.
fn ingress(facts: &Facts, name: &str, pods: &Value, from: &Value, ports: &[u16]) -> Desired {
    let mut rule = json!({});
    if from != &json!([]) {
        rule["from"] = from.clone();
    }
    if !ports.is_empty() {
        let ports = ports
            .iter()
            .map(|port| json!({ "port": port, "protocol": "TCP" }));
        rule["ports"] = ports.collect();
    }
    let fields = json!({ "spec": {
        "podSelector": pods,
        "policyTypes": ["Ingress"],
        "ingress": [rule],
    }});
    Desired::new::<NetworkPolicy>(&facts.namespace, name, fields)
}
