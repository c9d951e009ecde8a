//! Whether a request is granted. Pure.
//!
//! The holder of a serving certificate is taken for what it names. So a node gets its own name and its own
//! addresses: those of its Machine where the infrastructure knows them, and else those that it reports itself, as long
//! as no other node and no other machine has them.

use std::net::IpAddr;
use std::sync::Arc;

use k8s_openapi::api::core::v1::Node;
use kube::ResourceExt as _;

use super::super::machines::{self, Machine};
use super::request::{CLIENT, Request, SERVING};

/// The account that machines begin with.
const BOOTSTRAPPER: &str =
    "system:serviceaccount:openshift-machine-config-operator:node-bootstrapper";
/// What the name of a node's account begins with.
const NODE: &str = "system:node:";
/// The group of nodes.
const NODES: &str = "system:nodes";

/// What a request is evaluated with.
#[derive(Clone, Copy)]
pub(super) struct Fleet<'a> {
    pub(super) nodes: &'a [Arc<Node>],
    pub(super) machines: &'a [Machine],
    /// Whether first certificates are granted here, and not by Kubernetes itself.
    pub(super) grants_clients: bool,
}

/// The decision about a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It is granted, and this is why.
    Grant(&'static str),
    /// It is left to others, and this is why.
    Leave(&'static str),
}

type Refusal = Result<Verdict, &'static str>;

// === impl Fleet ===

impl Fleet<'_> {
    /// Evaluates a request.
    pub(super) fn judge(&self, request: &Request) -> Verdict {
        let verdict = match request.signer.as_str() {
            SERVING => self.serving(request),
            CLIENT if self.grants_clients => self.client(request),
            CLIENT => Err("first certificates are granted by Kubernetes"),
            _ => Err("it is not for a kubelet"),
        };
        verdict.unwrap_or_else(Verdict::Leave)
    }

    fn serving(&self, request: &Request) -> Refusal {
        let name = subject(request)?;
        if request.username != request.common_name || !request.groups.iter().any(|it| it == NODES) {
            return Err("it is not the node that asks");
        }
        usages(request, "server auth")?;
        if request.has_more || (request.names.is_empty() && request.addresses.is_empty()) {
            return Err("it asks for names of a sort that kubelets have no use for, or for none");
        }
        let node = self.nodes.iter().find(|node| node.name_any() == name);
        let node = node.ok_or("there is no such Node")?;
        let machine = machines::of_node(self.machines, node);
        if !self.machines.is_empty() && machine.is_none() {
            return Err("no Machine is this Node");
        }
        let own = Own { node, machine };
        if !request
            .names
            .iter()
            .all(|it| it == name || self.is_own(own, it))
        {
            return Err("it asks for a name that is not the node's");
        }
        if !request
            .addresses
            .iter()
            .all(|it| self.is_own(own, &it.to_string()))
        {
            return Err("it asks for an address that is not the node's");
        }
        Ok(Verdict::Grant(
            "the node asks for its own name and addresses",
        ))
    }

    fn client(&self, request: &Request) -> Refusal {
        let name = subject(request)?;
        usages(request, "client auth")?;
        if request.has_more || !request.names.is_empty() || !request.addresses.is_empty() {
            return Err("it asks for alternative names, which a client has no use for");
        }
        if request.username == request.common_name {
            // Kubernetes grants renewals itself.
            return Err("renewals are granted by Kubernetes");
        }
        if request.username != BOOTSTRAPPER {
            return Err("it is not a new machine that asks");
        }
        if self.nodes.iter().any(|node| node.name_any() == name) {
            return Err("there is such a Node already");
        }
        let mut waiting = self
            .machines
            .iter()
            .filter(|it| it.node.is_none() && !it.is_deleted);
        if waiting.any(|machine| machine.name == name || machine.has_address(name)) {
            return Ok(Verdict::Grant(
                "a Machine of that name is waiting for its Node",
            ));
        }
        Err("no Machine waits for a Node of that name")
    }

    /// Whether a name or address belongs to this node only.
    fn is_own(&self, own: Own<'_>, wanted: &str) -> bool {
        if own
            .machine
            .is_some_and(|machine| machine.has_address(wanted))
        {
            return true;
        }
        !own.is_known_to_infrastructure() && own.reports(wanted) && !self.is_anothers(own, wanted)
    }

    fn is_anothers(&self, own: Own<'_>, wanted: &str) -> bool {
        let name = own.node.name_any();
        let mut nodes = self.nodes.iter().filter(|node| node.name_any() != name);
        let mut machines = self
            .machines
            .iter()
            .filter(|machine| own.machine.is_none_or(|own| own.name != machine.name));
        nodes.any(|node| node.name_any() == wanted || reports(node, wanted))
            || machines.any(|machine| machine.has_address(wanted))
    }
}

/// A node, and the Machine that it is.
#[derive(Clone, Copy)]
struct Own<'a> {
    node: &'a Node,
    machine: Option<&'a Machine>,
}

// === impl Own ===

impl Own<'_> {
    /// Whether the infrastructure reports an address that the node really has: then it knows them all.
    fn is_known_to_infrastructure(self) -> bool {
        let addresses = self.machine.map(|machine| machine.addresses.as_slice());
        addresses
            .unwrap_or_default()
            .iter()
            .any(|(_, address)| address.parse::<IpAddr>().is_ok() && self.reports(address))
    }

    fn reports(self, wanted: &str) -> bool {
        reports(self.node, wanted)
    }
}

fn reports(node: &Node, wanted: &str) -> bool {
    let status = node.status.as_ref();
    let addresses = status.and_then(|status| status.addresses.as_ref());
    let mut addresses = addresses.into_iter().flatten();
    addresses.any(|known| known.address.eq_ignore_ascii_case(wanted))
}

/// The node that a certificate would name.
fn subject(request: &Request) -> Result<&str, &'static str> {
    let name = request.common_name.strip_prefix(NODE);
    let name = name
        .filter(|name| !name.is_empty())
        .ok_or("it names no node")?;
    if request.organizations != [NODES] {
        return Err("it names another group than that of nodes");
    }
    Ok(name)
}

/// What kubelets ask for, and nothing beyond. Keys of elliptic curves encipher nothing.
fn usages(request: &Request, purpose: &str) -> Result<(), &'static str> {
    let known = ["digital signature", "key encipherment", purpose];
    let all_known = request
        .usages
        .iter()
        .all(|usage| known.contains(&usage.as_str()));
    let needed = |wanted: &str| request.usages.iter().any(|usage| usage == wanted);
    if all_known && needed("digital signature") && needed(purpose) {
        return Ok(());
    }
    Err("it asks for other usages than kubelets do")
}
