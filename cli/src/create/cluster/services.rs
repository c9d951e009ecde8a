//! How the services of a control plane are published.

use serde_json::{Value, json};

use super::values::EndpointAccess;

/// The services that nodes and users must reach, in the order in which they are written.
const SERVICES: [&str; 4] = ["APIServer", "Ignition", "Konnectivity", "OAuthServer"];
/// Those that also have an entry on node ports, where old operators look for them.
const ON_NODE_PORTS: [&str; 5] = [
    "APIServer",
    "Ignition",
    "Konnectivity",
    "OAuthServer",
    "OIDC",
];

/// How the services are published.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Services {
    way: Way,
    /// The OAuth server has a load balancer of its own.
    oauth_load_balancer: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Way {
    /// The API server by a load balancer, the others by routes.
    Ingress,
    /// All by routes, under names that the management cluster gives them.
    Routes,
    /// All by routes, with host names in a domain that external-dns manages.
    Hosts {
        domain: String,
        /// Also those that only nodes reach.
        all: bool,
    },
    /// All on ports of nodes that are reached by this address.
    NodePorts { address: Option<String> },
}

// === impl Services ===

impl Services {
    fn new(way: Way) -> Self {
        Self {
            way,
            oauth_load_balancer: false,
        }
    }

    /// By routes with host names where there is a domain for them, else by ingress.
    pub(super) fn ingress(external_dns_domain: Option<&str>) -> Self {
        Self::cloud(external_dns_domain, EndpointAccess::Public)
    }

    /// In a cloud. Nodes reach a control plane that is not public under names of the private network.
    pub(super) fn cloud(external_dns_domain: Option<&str>, access: EndpointAccess) -> Self {
        Self::new(match (external_dns_domain, access) {
            (Some(domain), access) => Way::Hosts {
                domain: domain.to_owned(),
                all: access == EndpointAccess::Public,
            },
            (None, EndpointAccess::Private) => Way::Routes,
            (None, EndpointAccess::Public | EndpointAccess::PublicAndPrivate) => Way::Ingress,
        })
    }

    /// On ports of nodes; without an address, that of a node of the management cluster is looked up.
    pub(super) fn node_ports(address: Option<String>) -> Self {
        Self::new(Way::NodePorts { address })
    }

    /// The same, with a load balancer of its own for the OAuth server.
    pub(super) fn with_oauth_load_balancer(self) -> Self {
        Self {
            oauth_load_balancer: true,
            ..self
        }
    }

    /// Whether an address is still to be looked up.
    pub(super) fn lack_address(&self) -> bool {
        self.way == Way::NodePorts { address: None }
    }

    /// The same, with the address that was looked up.
    pub(super) fn at(self, address: String) -> Self {
        let address = Some(address);
        Self {
            way: Way::NodePorts { address },
            ..self
        }
    }

    /// `spec.services` of the HostedCluster called `cluster`.
    pub(super) fn list(&self, cluster: &str) -> Vec<Value> {
        let services = match self.way {
            Way::NodePorts { .. } => &ON_NODE_PORTS[..],
            Way::Ingress | Way::Routes | Way::Hosts { .. } => &SERVICES[..],
        };
        services
            .iter()
            .map(|service| {
                json!({
                    "service": service,
                    "servicePublishingStrategy": self.strategy(service, cluster),
                })
            })
            .collect()
    }

    fn strategy(&self, service: &str, cluster: &str) -> Value {
        let (kind, field) = match service {
            "OAuthServer" if self.oauth_load_balancer => ("LoadBalancer", "loadBalancer"),
            _ => ("Route", "route"),
        };
        match &self.way {
            Way::Ingress if service == "APIServer" => json!({ "type": "LoadBalancer" }),
            Way::Hosts { domain, all } if *all || is_for_users(service) => {
                let hostname = format!("{}-{cluster}.{domain}", label(service));
                json!({ "type": kind, field: { "hostname": hostname } })
            }
            Way::Ingress | Way::Routes | Way::Hosts { .. } => json!({ "type": kind }),
            Way::NodePorts { address } => {
                json!({ "type": "NodePort", "nodePort": { "address": address } })
            }
        }
    }
}

/// Whether users reach a service, and not only nodes.
fn is_for_users(service: &str) -> bool {
    matches!(service, "APIServer" | "OAuthServer")
}

/// What a service's host name begins with.
fn label(service: &str) -> &'static str {
    match service {
        "APIServer" => "api",
        "Ignition" => "ignition",
        "Konnectivity" => "konnectivity",
        _ => "oauth",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_service_is_published_once() {
        let address = Some("192.0.2.1".to_owned());
        for (services, names) in [
            (Services::ingress(None), &SERVICES[..]),
            (Services::ingress(Some("example.com")), &SERVICES[..]),
            (
                Services::cloud(None, EndpointAccess::Private),
                &SERVICES[..],
            ),
            (Services::node_ports(address), &ON_NODE_PORTS[..]),
        ] {
            let list = services.list("a");
            let found: Vec<_> = list.iter().map(|entry| &entry["service"]).collect();
            assert_eq!(found, names);
        }
    }

    /// Kind and host name of each service, in the order of [`SERVICES`].
    fn published(services: &Services) -> Vec<String> {
        let list = services.list("a");
        let strategies = list.iter().map(|entry| &entry["servicePublishingStrategy"]);
        let texts = strategies.map(|strategy| {
            let kind = strategy["type"].as_str().unwrap();
            let field = if kind == "Route" {
                "route"
            } else {
                "loadBalancer"
            };
            match strategy[field]["hostname"].as_str() {
                Some(host) => format!("{kind} {host}"),
                None => kind.to_owned(),
            }
        });
        texts.collect()
    }

    #[test]
    fn services_are_published_as_access_and_domain_ask() {
        let domain = Some("e.com");
        for (services, expected) in [
            (
                Services::ingress(None),
                ["LoadBalancer", "Route", "Route", "Route"],
            ),
            (
                Services::ingress(domain),
                [
                    "Route api-a.e.com",
                    "Route ignition-a.e.com",
                    "Route konnectivity-a.e.com",
                    "Route oauth-a.e.com",
                ],
            ),
            (
                Services::cloud(domain, EndpointAccess::PublicAndPrivate),
                ["Route api-a.e.com", "Route", "Route", "Route oauth-a.e.com"],
            ),
            (
                Services::cloud(None, EndpointAccess::Private),
                ["Route", "Route", "Route", "Route"],
            ),
            (
                Services::ingress(domain).with_oauth_load_balancer(),
                [
                    "Route api-a.e.com",
                    "Route ignition-a.e.com",
                    "Route konnectivity-a.e.com",
                    "LoadBalancer oauth-a.e.com",
                ],
            ),
            (
                Services::ingress(None).with_oauth_load_balancer(),
                ["LoadBalancer", "Route", "Route", "LoadBalancer"],
            ),
        ] {
            assert_eq!(published(&services), expected);
        }
    }

    #[test]
    fn only_node_ports_lack_an_address() {
        assert!(Services::node_ports(None).lack_address());
        let found = Services::node_ports(None).at("192.0.2.1".to_owned());
        assert!(!found.lack_address());
        let given = Services::node_ports(Some("192.0.2.1".to_owned()));
        assert!(!given.lack_address());
        assert!(!Services::ingress(None).lack_address());
    }
}
