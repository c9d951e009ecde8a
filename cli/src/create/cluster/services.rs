//! How the services of a control plane are published.

use serde_json::{Value, json};

/// The services that nodes and users must reach, in the order in which they are written.
const SERVICES: [&str; 4] = ["APIServer", "Ignition", "Konnectivity", "OAuthServer"];

/// How they are published.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Services {
    /// The API server by a load balancer, the others by routes.
    Ingress,
    /// All by routes, with host names in a domain that external-dns manages.
    Hosts {
        /// The domain.
        domain: String,
    },
    /// All on ports of nodes that are reached by this address.
    NodePorts {
        /// Host name or IP address.
        address: String,
    },
}

// === impl Services ===

impl Services {
    /// By routes with host names where there is a domain for them, else by ingress.
    pub(super) fn ingress(external_dns_domain: Option<&str>) -> Self {
        match external_dns_domain {
            Some(domain) => Self::Hosts {
                domain: domain.to_owned(),
            },
            None => Self::Ingress,
        }
    }

    /// `spec.services` of the HostedCluster called `cluster`.
    pub(super) fn list(&self, cluster: &str) -> Vec<Value> {
        SERVICES
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
        match self {
            Self::Ingress if service == "APIServer" => json!({ "type": "LoadBalancer" }),
            Self::Ingress => json!({ "type": "Route" }),
            Self::Hosts { domain } => {
                let hostname = format!("{}-{cluster}.{domain}", label(service));
                json!({ "type": "Route", "route": { "hostname": hostname } })
            }
            Self::NodePorts { address } => {
                json!({ "type": "NodePort", "nodePort": { "address": address } })
            }
        }
    }
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
        let node_ports = Services::NodePorts {
            address: "192.0.2.1".to_owned(),
        };
        for services in [
            Services::Ingress,
            Services::ingress(Some("example.com")),
            node_ports,
        ] {
            let list = services.list("a");
            let names: Vec<_> = list.iter().map(|entry| &entry["service"]).collect();
            assert_eq!(names, SERVICES);
        }
    }

    #[test]
    fn host_names_contain_service_and_cluster() {
        let list = Services::ingress(Some("example.com")).list("a");
        let host = &list[3]["servicePublishingStrategy"]["route"]["hostname"];
        assert_eq!(host, "oauth-a.example.com");
    }
}
