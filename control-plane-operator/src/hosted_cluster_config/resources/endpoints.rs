//! Endpoints of the Service `kubernetes`: the published address of the control plane.
//!
//! The API servers do not write them themselves, because they know only their pod IP in the management cluster. Nodes
//! run no load balancer, so pods use the same address as machines.

use std::collections::BTreeMap;
use std::net::IpAddr;

use api::hypershift::v1beta1::HostedControlPlane;
use k8s_openapi::api::discovery::v1::{Endpoint, EndpointConditions, EndpointPort, EndpointSlice};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::super::error::Error;

/// The Service.
const SERVICE: &str = "kubernetes";

/// Addresses of one family, and the port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ApiEndpoint {
    pub(super) addresses: Vec<IpAddr>,
    pub(super) port: i32,
}

// === impl ApiEndpoint ===

impl ApiEndpoint {
    /// Resolves the published address of a control plane.
    pub(super) async fn of(hcp: &HostedControlPlane) -> Result<Self, Error> {
        let status = hcp.status.as_ref();
        let endpoint = status.and_then(|status| status.control_plane_endpoint.as_ref());
        let endpoint = endpoint.filter(|endpoint| !endpoint.host.is_empty() && endpoint.port != 0);
        let endpoint = endpoint.ok_or_else(|| Error::waiting("the address of the API server"))?;
        let addresses = match endpoint.host.parse() {
            Ok(address) => vec![address],
            Err(_) => lookup(&endpoint.host).await?,
        };
        let port = endpoint.port;
        Self::new(addresses, port, has_ipv6(hcp))
            .ok_or_else(|| Error::waiting("DNS resolution of the API server's address"))
    }

    /// Selects addresses of the Services' family, because a slice has only one family.
    pub(super) fn new(mut addresses: Vec<IpAddr>, port: i32, prefers_ipv6: bool) -> Option<Self> {
        addresses.sort();
        addresses.dedup();
        let prefers_ipv6 = prefers_ipv6 && addresses.iter().any(IpAddr::is_ipv6)
            || addresses.iter().all(IpAddr::is_ipv6);
        addresses.retain(|address| address.is_ipv6() == prefers_ipv6);
        (!addresses.is_empty()).then_some(Self { addresses, port })
    }

    /// Converts it to an EndpointSlice.
    pub(super) fn slice(&self) -> EndpointSlice {
        let is_ipv6 = self.addresses.iter().all(IpAddr::is_ipv6);
        let endpoint = |address: &IpAddr| Endpoint {
            addresses: vec![address.to_string()],
            conditions: Some(EndpointConditions {
                ready: Some(true),
                ..EndpointConditions::default()
            }),
            ..Endpoint::default()
        };
        EndpointSlice {
            metadata: ObjectMeta {
                name: Some(SERVICE.to_owned()),
                namespace: Some("default".to_owned()),
                labels: Some(BTreeMap::from([(
                    "kubernetes.io/service-name".to_owned(),
                    SERVICE.to_owned(),
                )])),
                ..ObjectMeta::default()
            },
            address_type: if is_ipv6 { "IPv6" } else { "IPv4" }.to_owned(),
            endpoints: self.addresses.iter().map(endpoint).collect(),
            ports: Some(vec![EndpointPort {
                name: Some("https".to_owned()),
                port: Some(self.port),
                protocol: Some("TCP".to_owned()),
                ..EndpointPort::default()
            }]),
        }
    }
}

async fn lookup(host: &str) -> Result<Vec<IpAddr>, Error> {
    let found = tokio::net::lookup_host((host, 0)).await;
    let found = found.map_err(|error| Error::Form {
        object: format!("API server host name {host}"),
        problem: error.to_string(),
    })?;
    Ok(found.map(|address| address.ip()).collect())
}

/// Whether IPv6 is the primary family of Services.
fn has_ipv6(hcp: &HostedControlPlane) -> bool {
    let networking = hcp.spec.networking.as_ref();
    let first = networking.and_then(|it| it.service_network.first());
    first.is_some_and(|network| network.cidr.0.contains(':'))
}
