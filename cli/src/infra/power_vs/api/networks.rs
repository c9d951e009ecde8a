//! Calls of VPCs, of transit gateways, of workspaces and of Cloud Object Storage.

use serde_json::{Value, json};
use support::ibm_cloud::encoded;
use support::rest::Request;

use super::{Api, PAGE, Workspace};

/// The versions of APIs whose calls name one.
const VPC_VERSION: &str = "version=2024-11-12&generation=2";
const TRANSIT_VERSION: &str = "version=2024-11-12";
/// The DNS server of machines: the default one of new DHCP servers is a loopback address.
const DNS_SERVER: &str = "1.1.1.1";

impl Api {
    // VPCs.

    /// The URL of objects of a VPC: a path of parts that are names or identifiers.
    fn vpc_url(&self, parts: &[&str]) -> String {
        let parts: Vec<_> = parts.iter().map(|part| encoded(part)).collect();
        format!("{}/{}?{VPC_VERSION}", self.vpc, parts.join("/"))
    }

    pub(in super::super) fn vpcs(&self, group: &str) -> Request {
        let url = self.vpc_url(&["vpcs"]);
        let group = encoded(group);
        Request::get(format!("{url}&{PAGE}&resource_group.id={group}"))
    }

    pub(in super::super) fn create_vpc(&self, group: &str, name: &str) -> Request {
        let body = json!({
            "name": name,
            "resource_group": { "id": group },
            "address_prefix_management": "auto",
        });
        Request::post(self.vpc_url(&["vpcs"]), body)
    }

    /// Looks for an object of a VPC by its identifier.
    pub(in super::super) fn vpc_object(&self, kind: &str, id: &str) -> Request {
        Request::get(self.vpc_url(&[kind, id]))
    }

    /// Deletes an object of a VPC.
    pub(in super::super) fn delete_vpc_object(&self, kind: &str, id: &str) -> Request {
        Request::delete(self.vpc_url(&[kind, id]))
    }

    pub(in super::super) fn rules(&self, security_group: &str) -> Request {
        Request::get(self.vpc_url(&["security_groups", security_group, "rules"]))
    }

    /// Lets in TCP connections to a port.
    pub(in super::super) fn create_rule(&self, security_group: &str, port: u16) -> Request {
        let body = json!({
            "direction": "inbound",
            "ip_version": "ipv4",
            "protocol": "tcp",
            "port_min": port,
            "port_max": port,
        });
        let url = self.vpc_url(&["security_groups", security_group, "rules"]);
        Request::post(url, body)
    }

    pub(in super::super) fn address_prefixes(&self, vpc: &str) -> Request {
        let url = self.vpc_url(&["vpcs", vpc, "address_prefixes"]);
        Request::get(format!("{url}&{PAGE}"))
    }

    pub(in super::super) fn subnets(&self, vpc: &str) -> Request {
        let url = self.vpc_url(&["subnets"]);
        Request::get(format!("{url}&{PAGE}&vpc.id={}", encoded(vpc)))
    }

    pub(in super::super) fn create_subnet(
        &self,
        group: &str,
        vpc: &str,
        name: &str,
        prefix: &Value,
    ) -> Request {
        let body = json!({
            "name": name,
            "vpc": { "id": vpc },
            "resource_group": { "id": group },
            "zone": { "name": prefix["zone"]["name"] },
            "ip_version": "ipv4",
            "ipv4_cidr_block": prefix["cidr"],
        });
        Request::post(self.vpc_url(&["subnets"]), body)
    }

    pub(in super::super) fn load_balancers(&self) -> Request {
        let url = self.vpc_url(&["load_balancers"]);
        Request::get(format!("{url}&{PAGE}"))
    }

    // Transit gateways.

    pub(in super::super) fn gateways(&self) -> Request {
        Request::get(format!("{}?{TRANSIT_VERSION}&{PAGE}", self.transit))
    }

    pub(in super::super) fn create_gateway(
        &self,
        group: &str,
        name: &str,
        location: &str,
        global: bool,
    ) -> Request {
        let body = json!({
            "name": name,
            "location": location,
            "global": global,
            "resource_group": { "id": group },
        });
        Request::post(format!("{}?{TRANSIT_VERSION}", self.transit), body)
    }

    fn gateway_url(&self, id: &str) -> String {
        format!("{}/{}", self.transit, encoded(id))
    }

    pub(in super::super) fn gateway(&self, id: &str) -> Request {
        Request::get(format!("{}?{TRANSIT_VERSION}", self.gateway_url(id)))
    }

    pub(in super::super) fn delete_gateway(&self, id: &str) -> Request {
        Request::delete(format!("{}?{TRANSIT_VERSION}", self.gateway_url(id)))
    }

    pub(in super::super) fn connections(&self, gateway: &str) -> Request {
        let url = self.gateway_url(gateway);
        Request::get(format!("{url}/connections?{TRANSIT_VERSION}&{PAGE}"))
    }

    pub(in super::super) fn create_connection(
        &self,
        gateway: &str,
        name: &str,
        kind: &str,
        crn: &str,
    ) -> Request {
        let body = json!({ "name": name, "network_type": kind, "network_id": crn });
        let url = self.gateway_url(gateway);
        Request::post(format!("{url}/connections?{TRANSIT_VERSION}"), body)
    }

    fn connection_url(&self, gateway: &str, id: &str) -> String {
        let url = self.gateway_url(gateway);
        format!("{url}/connections/{}?{TRANSIT_VERSION}", encoded(id))
    }

    pub(in super::super) fn connection(&self, gateway: &str, id: &str) -> Request {
        Request::get(self.connection_url(gateway, id))
    }

    pub(in super::super) fn delete_connection(&self, gateway: &str, id: &str) -> Request {
        Request::delete(self.connection_url(gateway, id))
    }

    // DHCP servers of a workspace.

    fn in_workspace(&self, workspace: &Workspace, path: &str) -> Request {
        let Workspace { id, crn } = workspace;
        let url = format!("{}/pcloud/v1/cloud-instances/{}", self.power, encoded(id));
        Request::get(format!("{url}/{path}")).with_header("crn", crn)
    }

    pub(in super::super) fn dhcp_servers(&self, workspace: &Workspace) -> Request {
        self.in_workspace(workspace, "services/dhcp")
    }

    pub(in super::super) fn dhcp_server(&self, workspace: &Workspace, id: &str) -> Request {
        self.in_workspace(workspace, &format!("services/dhcp/{}", encoded(id)))
    }

    /// The server that a DHCP server runs on. It has the same identifier, and is there for longer.
    pub(in super::super) fn server(&self, workspace: &Workspace, id: &str) -> Request {
        self.in_workspace(workspace, &format!("pvm-instances/{}", encoded(id)))
    }

    pub(in super::super) fn create_dhcp_server(
        &self,
        workspace: &Workspace,
        name: &str,
    ) -> Request {
        let body = json!({ "name": name, "dnsServer": DNS_SERVER });
        Request {
            method: http::Method::POST,
            ..self.dhcp_servers(workspace).with_body(body)
        }
    }

    pub(in super::super) fn delete_dhcp_server(&self, workspace: &Workspace, id: &str) -> Request {
        Request {
            method: http::Method::DELETE,
            ..self.dhcp_server(workspace, id)
        }
    }

    // Cloud Object Storage.

    /// The region of buckets. `None` if it is not known which one that is.
    pub(in super::super) fn storage_region(&self) -> Option<&'static str> {
        Some(self.storage.as_ref()?.0)
    }

    /// The URL of a bucket or of an object: a path in the region.
    fn storage_url(&self, path: &str) -> String {
        let endpoint = self.storage.as_ref().map(|(_, endpoint)| endpoint.as_str());
        let path: Vec<_> = path.split('/').map(encoded).collect();
        format!("{}/{}", endpoint.unwrap_or_default(), path.join("/"))
    }

    pub(in super::super) fn buckets(&self, instance: &str) -> Request {
        Request::get(self.storage_url("")).with_header("ibm-service-instance-id", instance)
    }

    pub(in super::super) fn objects(&self, bucket: &str) -> Request {
        // Responses have a limited size.
        let url = self.storage_url(bucket);
        Request::get(format!("{url}?list-type=2&max-keys=500"))
    }

    pub(in super::super) fn delete_stored(&self, path: &str) -> Request {
        Request::delete(self.storage_url(path))
    }
}
