//! What a cluster needs of a network, as documents for Azure Resource Manager. Pure.

use serde_json::{Value, json};

use super::resource::{IDENTITIES, NETWORK, PRIVATE_DNS, RESOURCES};
use super::scope::Scope;

/// The address range of a network.
const ADDRESSES: &str = "10.0.0.0/16";
/// The address range of its subnet.
const SUBNET_ADDRESSES: &str = "10.0.0.0/24";
/// The name of its subnet.
pub(super) const SUBNET: &str = "default";
/// After how many minutes without a packet connections are forgotten.
const IDLE_MINUTES: u32 = 4;
/// The port of the router's health endpoint, by which the load balancer probes nodes.
const PROBE_PORT: u32 = 30595;
/// Ports for connections of each node to the internet.
const OUTBOUND_PORTS: u32 = 1024;

/// A resource that is to exist.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Desired {
    pub(super) noun: &'static str,
    pub(super) id: String,
    pub(super) version: &'static str,
    pub(super) body: Value,
}

// === impl Desired ===

impl Desired {
    pub(super) fn name(&self) -> &str {
        self.id.rsplit('/').next().unwrap_or_default()
    }
}

/// A resource group.
pub(super) fn group(scope: &Scope, name: &str) -> Desired {
    Desired {
        noun: "resource group",
        id: scope.group_id(name),
        version: RESOURCES,
        body: json!({ "location": scope.location, "tags": scope.group_tags() }),
    }
}

/// A security group without rules.
pub(super) fn security_group(scope: &Scope, group: &str) -> Desired {
    let name = format!("{}-nsg", scope.main_name());
    let body = json!({ "location": scope.location, "tags": scope.tags(), "properties": {} });
    of_network(
        "network security group",
        group,
        "networkSecurityGroups",
        &name,
        body,
    )
}

/// A network with a subnet for nodes.
pub(super) fn network(scope: &Scope, group: &str, security_group: &str) -> Desired {
    let subnet = json!({
        "name": SUBNET,
        "properties": {
            "addressPrefix": SUBNET_ADDRESSES,
            "networkSecurityGroup": { "id": security_group },
        },
    });
    let body = json!({
        "location": scope.location,
        "tags": scope.tags(),
        "properties": {
            "addressSpace": { "addressPrefixes": [ADDRESSES] },
            "subnets": [subnet],
        },
    });
    of_network(
        "virtual network",
        group,
        "virtualNetworks",
        &scope.main_name(),
        body,
    )
}

/// A private DNS zone.
pub(super) fn private_zone(scope: &Scope, group: &str, domain: &str) -> Desired {
    let body = json!({ "location": "global", "tags": scope.tags() });
    Desired {
        version: PRIVATE_DNS,
        ..of_network("private DNS zone", group, "privateDnsZones", domain, body)
    }
}

/// A link, by which a network uses a private DNS zone.
pub(super) fn link(scope: &Scope, zone: &str, network: &str) -> Desired {
    Desired {
        noun: "virtual network link",
        id: format!("{zone}/virtualNetworkLinks/{}", scope.main_name()),
        version: PRIVATE_DNS,
        body: json!({
            "location": "global",
            "tags": scope.tags(),
            "properties": { "virtualNetwork": { "id": network }, "registrationEnabled": false },
        }),
    }
}

/// The address from which nodes reach the internet.
pub(super) fn public_address(scope: &Scope, group: &str) -> Desired {
    let body = json!({
        "location": scope.location,
        "tags": scope.tags(),
        "sku": { "name": "Standard" },
        "properties": {
            "publicIPAddressVersion": "IPv4",
            "publicIPAllocationMethod": "Static",
            "idleTimeoutInMinutes": IDLE_MINUTES,
        },
    });
    of_network(
        "public IP address",
        group,
        "publicIPAddresses",
        &scope.infra_id,
        body,
    )
}

/// The load balancer through which nodes reach the internet. The cloud provider adds the rules of Services to it.
pub(super) fn load_balancer(scope: &Scope, group: &str, address: &str) -> Desired {
    let name = &scope.infra_id;
    let desired = of_network("load balancer", group, "loadBalancers", name, Value::Null);
    let part = |kind: &str| json!({ "id": format!("{}/{kind}/{name}", desired.id) });
    let frontend = json!({
        "name": name,
        "properties": {
            "privateIPAllocationMethod": "Dynamic",
            "publicIPAddress": { "id": address },
        },
    });
    let probe = json!({
        "name": name,
        "properties": {
            "protocol": "Http",
            "port": PROBE_PORT,
            "requestPath": "/healthz",
            "intervalInSeconds": 5,
            "probeThreshold": 2,
        },
    });
    let outbound = json!({
        "name": name,
        "properties": {
            "backendAddressPool": part("backendAddressPools"),
            "frontendIPConfigurations": [part("frontendIPConfigurations")],
            "protocol": "All",
            "allocatedOutboundPorts": OUTBOUND_PORTS,
            "enableTcpReset": true,
            "idleTimeoutInMinutes": IDLE_MINUTES,
        },
    });
    let body = json!({
        "location": scope.location,
        "tags": scope.tags(),
        "sku": { "name": "Standard" },
        "properties": {
            "frontendIPConfigurations": [frontend],
            "backendAddressPools": [{ "name": name }],
            "probes": [probe],
            "outboundRules": [outbound],
        },
    });
    Desired { body, ..desired }
}

/// The identity of a component.
pub(super) fn identity(scope: &Scope, group: &str, component: &str) -> Desired {
    let name = scope.named(component);
    Desired {
        noun: "identity",
        id: format!("{group}/providers/Microsoft.ManagedIdentity/userAssignedIdentities/{name}"),
        version: IDENTITIES,
        body: json!({ "location": scope.location, "tags": scope.tags() }),
    }
}

fn of_network(noun: &'static str, group: &str, kind: &str, name: &str, body: Value) -> Desired {
    Desired {
        noun,
        id: format!("{group}/providers/Microsoft.Network/{kind}/{name}"),
        version: NETWORK,
        body,
    }
}
