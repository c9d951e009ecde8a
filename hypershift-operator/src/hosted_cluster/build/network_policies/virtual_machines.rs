//! Egress of the virtual machines of a HostedCluster: the internet, and what nodes need of the management cluster.
//!
//! Their users are the tenant's: without the policy they reach every pod and Service of the management cluster.

use std::collections::BTreeSet;
use std::net::IpAddr;

use api::hypershift::v1beta1::platform::PlatformType;
use api::hypershift::v1beta1::services::ServicePublishingStrategyMapping;
use k8s_openapi::api::networking::v1::NetworkPolicy;
use serde_json::{Value, json};

use super::app;
use crate::desired::Desired;
use crate::facts::Facts;
use crate::platform::kubevirt::infrastructure::external;
use crate::platform::kubevirt::machines::INFRA_ID_LABEL;

const NAME: &str = "virt-launcher";
const NAMESPACE_NAME: &str = "kubernetes.io/metadata.name";
/// Where clouds serve credentials of their machines: those of the management cluster's nodes, if it runs in one. The second
/// is that of AWS.
const METADATA: [&str; 2] = ["169.254.169.254/32", "fd00:ec2::254/128"];

/// Whether virtual machines are in the namespace of the control plane.
pub(crate) fn are_beside_control_plane(facts: &Facts) -> bool {
    facts.cluster.spec.platform.type_ == PlatformType::KubeVirt && external(facts).is_none()
}

/// The policy, where the machines are beside the control plane.
pub(super) fn policy(facts: &Facts) -> Option<Desired> {
    if !are_beside_control_plane(facts) {
        return None;
    }
    let management = &facts.management;
    let hosts = management.api_server.iter().filter_map(|it| host(it));
    let except: Vec<_> = management.networks.iter().cloned().chain(hosts).collect();
    let own = ["kube-apiserver", "oauth-openshift", "ignition-server-proxy"];
    let own = own.map(|name| json!({ "podSelector": app(name) }));
    let fields = json!({ "spec": spec(facts, &except, &own) });
    Some(Desired::new::<NetworkPolicy>(
        &facts.namespace,
        NAME,
        fields,
    ))
}

/// The policy on another infrastructure cluster with these networks, of which other clusters may have the same namespace.
pub(crate) fn external_policy(facts: &Facts, namespace: &str, networks: &[String]) -> Value {
    let infra_id = facts.infra_id();
    json!({
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {
            "name": external_name(infra_id),
            "namespace": namespace,
            "labels": { INFRA_ID_LABEL: infra_id },
        },
        "spec": spec(facts, networks, &[]),
    })
}

/// Its name.
pub(crate) fn external_name(infra_id: &str) -> String {
    format!("{NAME}-{infra_id}")
}

/// What the machines of a cluster may reach: everything but these ranges, and then some pods of them.
fn spec(facts: &Facts, except: &[String], own: &[Value]) -> Value {
    let pods = json!({ "matchLabels": {
        INFRA_ID_LABEL: facts.infra_id(),
        "kubevirt.io": "virt-launcher",
    } });
    let mut to = vec![
        internet(except, "0.0.0.0/0"),
        internet(except, "::/0"),
        json!({ "podSelector": pods }),
    ];
    to.extend(name_servers());
    to.push(routers());
    to.extend_from_slice(own);
    let mut egress = vec![json!({ "to": to })];
    egress.extend(node_ports(facts).iter().map(node_port));
    let ports = ["TCP", "UDP", "SCTP"].map(|protocol| json!({ "protocol": protocol }));
    json!({
        "podSelector": pods,
        "policyTypes": ["Ingress", "Egress"],
        "ingress": [{ "ports": ports }],
        "egress": egress,
    })
}

/// All addresses of a family, except these, which are those of the cluster that the machines run on: its pods and Services,
/// and its API server. The metadata of its nodes is never among them.
fn internet(except: &[String], all: &str) -> Value {
    let is_v6 = all.contains(':');
    let metadata = METADATA.map(str::to_owned);
    let ranges = except.iter().cloned().chain(metadata);
    let except: BTreeSet<_> = ranges.filter(|it| it.contains(':') == is_v6).collect();
    json!({ "ipBlock": { "cidr": all, "except": except } })
}

/// Pods that resolve names: of OpenShift, and of other management clusters.
fn name_servers() -> [Value; 2] {
    [
        (
            "openshift-dns",
            json!({ "dns.operator.openshift.io/daemonset-dns": "default" }),
        ),
        ("kube-system", json!({ "k8s-app": "kube-dns" })),
    ]
    .map(|(namespace, labels)| {
        json!({
            "namespaceSelector": { "matchLabels": { NAMESPACE_NAME: namespace } },
            "podSelector": { "matchLabels": labels },
        })
    })
}

/// Routers of OpenShift, which serve the Routes of the control plane.
fn routers() -> Value {
    let labels = json!({ "ingresscontroller.operator.openshift.io/deployment-ingresscontroller": "default" });
    json!({
        "namespaceSelector": { "matchLabels": { "name": "openshift-ingress" } },
        "podSelector": { "matchLabels": labels },
    })
}

/// Addresses at which services are published on ports of nodes.
fn node_ports(facts: &Facts) -> BTreeSet<String> {
    let address = |it: &ServicePublishingStrategyMapping| {
        let node_port = it.service_publishing_strategy.node_port.as_ref()?;
        host(&node_port.address)
    };
    let services = &facts.cluster.spec.services;
    services.iter().filter_map(address).collect()
}

fn node_port(range: &String) -> Value {
    json!({ "to": [{ "ipBlock": { "cidr": range } }] })
}

/// The range of one address; `None` for names.
fn host(address: &str) -> Option<String> {
    let address: IpAddr = address.parse().ok()?;
    let length = if address.is_ipv6() { 128 } else { 32 };
    Some(format!("{address}/{length}"))
}

#[cfg(test)]
mod tests {
    use api::group::CapiTypes;

    use super::*;
    use crate::facts::fixture;

    fn rendered(change: impl FnOnce(&mut Facts)) -> Option<Value> {
        let mut facts = fixture::facts(fixture::hosted_cluster("kubevirt"), CapiTypes::Private);
        change(&mut facts);
        policy(&facts).map(|it| it.body["spec"].clone())
    }

    /// Check T10: machines reach neither the networks, the API server nor the metadata of the management cluster.
    #[test]
    fn vm_egress_excludes_the_management_cluster() {
        let spec = rendered(|_| {}).unwrap();
        let labels = &spec["podSelector"]["matchLabels"];
        assert_eq!(labels["kubevirt.io"], "virt-launcher");
        assert_eq!(labels["hypershift.openshift.io/infra-id"], "one-x7k2p");
        assert_eq!(spec["policyTypes"], json!(["Ingress", "Egress"]));
        let to = &spec["egress"][0]["to"];
        let except = ["10.128.0.0/14", "169.254.169.254/32", "192.0.2.1/32"];
        assert_eq!(
            to[0]["ipBlock"],
            json!({ "cidr": "0.0.0.0/0", "except": except })
        );
        let except = ["fd00:ec2::254/128", "fd02::/112"];
        assert_eq!(
            to[1]["ipBlock"],
            json!({ "cidr": "::/0", "except": except })
        );
        assert_eq!(to[2]["podSelector"], spec["podSelector"]);
        for name in ["kube-apiserver", "oauth-openshift", "ignition-server-proxy"] {
            let own = json!({ "podSelector": { "matchLabels": { "app": name } } });
            assert!(to.as_array().unwrap().contains(&own), "{name}");
        }
        let node = json!([{ "ipBlock": { "cidr": "192.0.2.10/32" } }]);
        assert_eq!(spec["egress"][1]["to"], node);
        assert_eq!(spec["egress"].as_array().unwrap().len(), 2);
    }

    #[test]
    fn the_vm_policy_is_rendered_for_local_kubevirt_only() {
        let external = json!({
            "generateID": "x7k2p",
            "credentials": {
                "infraKubeConfigSecret": { "name": "infra", "key": "kubeconfig" },
                "infraNamespace": "machines",
            },
        });
        let found = rendered(|it| {
            it.cluster.spec.platform.kubevirt = serde_json::from_value(external).unwrap();
        });
        assert_eq!(found, None);
        let facts = fixture::facts(fixture::hosted_cluster("none"), CapiTypes::Private);
        assert!(policy(&facts).is_none());
    }
    /// Check T10: on another cluster its networks are excluded, and no pods of the control plane are there.
    #[test]
    fn the_external_policy_excludes_the_infrastructure_cluster() {
        let facts = fixture::facts(fixture::hosted_cluster("kubevirt"), CapiTypes::Private);
        let networks = ["10.4.0.0/14".to_owned(), "172.30.0.0/16".to_owned()];
        let policy = external_policy(&facts, "machines", &networks);
        assert_eq!(policy["metadata"]["name"], "virt-launcher-one-x7k2p");
        let labels = &policy["spec"]["podSelector"]["matchLabels"];
        assert_eq!(labels[INFRA_ID_LABEL], "one-x7k2p");
        let to = policy["spec"]["egress"][0]["to"].as_array().unwrap();
        let except = json!(["10.4.0.0/14", "169.254.169.254/32", "172.30.0.0/16"]);
        assert_eq!(to[0]["ipBlock"]["except"], except);
        let own = json!({ "podSelector": { "matchLabels": { "app": "kube-apiserver" } } });
        assert!(!to.contains(&own), "{to:?}");
    }
}
