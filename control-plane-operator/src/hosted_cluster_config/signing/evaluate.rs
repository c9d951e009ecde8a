//! Decides whether a request is approved. Pure.
//!
//! A serving certificate lets its holder impersonate its names. Therefore a node gets only its own name and addresses:
//! those of its Machine if the infrastructure reports them, otherwise those that it reports itself, unless another Node
//! or Machine has them.

use std::net::IpAddr;
use std::sync::Arc;

use k8s_openapi::api::core::v1::Node;
use kube::ResourceExt as _;
use support::kubelet_request::{BOOTSTRAPPER, CLIENT, NODES, Request, SERVING};

use super::super::machines::{self, Machine};

/// What a request is evaluated with.
#[derive(Clone, Copy)]
pub(super) struct Inventory<'a> {
    pub(super) nodes: &'a [Arc<Node>],
    pub(super) machines: &'a [Machine],
    /// Whether this operator approves first client certificates, instead of the built-in controller.
    pub(super) approves_clients: bool,
}

/// The decision about a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Decision {
    /// Approve, with the reason.
    Approve(&'static str),
    /// Leave it to other approvers, with the reason.
    Ignore(&'static str),
}

type Refusal = Result<Decision, &'static str>;

// === impl Inventory ===

impl Inventory<'_> {
    /// Evaluates a request.
    pub(super) fn evaluate(&self, request: &Request) -> Decision {
        let decision = match request.signer.as_str() {
            SERVING => self.serving(request),
            CLIENT if self.approves_clients => self.client(request),
            CLIENT => Err("first client certificates are approved by the built-in controller"),
            _ => Err("not a kubelet signer"),
        };
        decision.unwrap_or_else(Decision::Ignore)
    }

    fn serving(&self, request: &Request) -> Refusal {
        let name = request.node()?;
        if request.username != request.common_name || !request.groups.iter().any(|it| it == NODES) {
            return Err("the requestor is not the node");
        }
        request.is_for("server auth")?;
        if request.has_unsupported || (request.names.is_empty() && request.addresses.is_empty()) {
            return Err("unsupported or missing subject alternative names");
        }
        let node = self.nodes.iter().find(|node| node.name_any() == name);
        let node = node.ok_or("the Node does not exist")?;
        let machine = machines::of_node(self.machines, node);
        if !self.machines.is_empty() && machine.is_none() {
            return Err("the Node has no Machine");
        }
        let own = Own { node, machine };
        if !request
            .names
            .iter()
            .all(|it| it == name || self.is_own(own, it))
        {
            return Err("a requested name does not belong to the Node");
        }
        if !request
            .addresses
            .iter()
            .all(|it| self.is_own(own, &it.to_string()))
        {
            return Err("a requested address does not belong to the Node");
        }
        Ok(Decision::Approve(
            "the node requests its own name and addresses",
        ))
    }

    fn client(&self, request: &Request) -> Refusal {
        let name = request.node()?;
        request.is_for("client auth")?;
        if request.has_unsupported || !request.names.is_empty() || !request.addresses.is_empty() {
            return Err("client certificates must not have subject alternative names");
        }
        if request.username == request.common_name {
            // The built-in controller approves renewals.
            return Err("renewals are approved by the built-in controller");
        }
        if request.username != BOOTSTRAPPER {
            return Err("the requestor is not the bootstrap account");
        }
        if self.nodes.iter().any(|node| node.name_any() == name) {
            return Err("the Node already exists");
        }
        let mut waiting = self
            .machines
            .iter()
            .filter(|it| it.node.is_none() && !it.is_deleted);
        if waiting.any(|machine| machine.name == name || machine.has_address(name)) {
            return Ok(Decision::Approve(
                "a Machine with this name or address is waiting for its Node",
            ));
        }
        Err("no Machine with this name or address is waiting for its Node")
    }

    /// Whether a name or address belongs only to this node.
    fn is_own(&self, own: Own<'_>, requested: &str) -> bool {
        if own
            .machine
            .is_some_and(|machine| machine.has_address(requested))
        {
            return true;
        }
        !own.is_known_to_infrastructure()
            && own.reports(requested)
            && !self.belongs_to_another(own, requested)
    }

    fn belongs_to_another(&self, own: Own<'_>, requested: &str) -> bool {
        let name = own.node.name_any();
        let mut nodes = self.nodes.iter().filter(|node| node.name_any() != name);
        let mut machines = self
            .machines
            .iter()
            .filter(|machine| own.machine.is_none_or(|own| own.name != machine.name));
        nodes.any(|node| node.name_any() == requested || reports(node, requested))
            || machines.any(|machine| machine.has_address(requested))
    }
}

/// A Node and its Machine.
#[derive(Clone, Copy)]
struct Own<'a> {
    node: &'a Node,
    machine: Option<&'a Machine>,
}

// === impl Own ===

impl Own<'_> {
    /// Whether the infrastructure reports an address that the node also reports: then it is authoritative.
    fn is_known_to_infrastructure(self) -> bool {
        let addresses = self.machine.map(|machine| machine.addresses.as_slice());
        addresses
            .unwrap_or_default()
            .iter()
            .any(|(_, address)| address.parse::<IpAddr>().is_ok() && self.reports(address))
    }

    fn reports(self, requested: &str) -> bool {
        reports(self.node, requested)
    }
}

fn reports(node: &Node, requested: &str) -> bool {
    let status = node.status.as_ref();
    let addresses = status.and_then(|status| status.addresses.as_ref());
    let mut addresses = addresses.into_iter().flatten();
    addresses.any(|known| known.address.eq_ignore_ascii_case(requested))
}
