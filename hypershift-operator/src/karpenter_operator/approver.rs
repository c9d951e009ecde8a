//! Approves `CertificateSigningRequests` of kubelets on machines of Karpenter, which have no Machine.
//!
//! A request is approved only for the name of an instance that EC2 knows as one of the hosted cluster, or of a node of a
//! NodeClaim. No request is denied, because another approver may approve it.

use std::time::Duration;

use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use k8s_openapi::api::core::v1::Node;
use kube::api::ListParams;
use kube::{Api, ResourceExt as _};
use support::controller::Action;
use support::kubelet_request::{self, BOOTSTRAPPER, CLIENT, NODES, Request, SERVING, is_pending};

use super::claims::Claim;
use super::context::{Context, MANAGER};
use super::control_plane::{is_enabled, region};
use super::error::Error;
use super::instances::Instance;
use super::kinds;

/// The reason of an approval.
const REASON: &str = "KarpenterCSRApprove";
/// When requests that are left are evaluated again: EC2 reports no changes.
const AGAIN: Duration = Duration::from_mins(1);

/// What a request is evaluated with.
struct Inventory<'a> {
    infra_id: &'a str,
    claims: &'a [Claim],
    nodes: &'a [Node],
    instances: &'a [Instance],
}

/// Why a request is approved, or left to others.
type Decision = Result<&'static str, &'static str>;

/// Evaluates every pending request. It does so during a pause, too: nodes renew their certificates.
pub(super) async fn pass(ctx: &Context) -> Result<Action, Error> {
    let Some(hcp) = ctx.control_plane().await?.filter(is_enabled) else {
        return Ok(Action::await_change());
    };
    let api: Api<CertificateSigningRequest> = Api::all(ctx.guest.clone());
    let listed = api.list(&ListParams::default()).await;
    let listed = listed.map_err(Error::read("CertificateSigningRequests"))?;
    let pending = listed.items.into_iter().filter(is_pending);
    let pending: Vec<_> = pending
        .filter_map(|it| Some((Request::read(&it).ok()?, it)))
        .collect();
    if pending.is_empty() {
        return Ok(Action::await_change());
    }
    let claims = Claim::read_all(&ctx.list_there(&kinds::node_claim()).await?);
    let nodes = ctx.nodes().await?;
    let mut failed = Vec::new();
    let ids = wanted(pending.iter().map(|(request, _)| request), &claims);
    let found = ctx.ec2.instances(region(&hcp), &ids).await;
    // Requests of nodes that have joined do not need EC2.
    let instances = found.unwrap_or_else(|error| {
        failed.push(Error::Instances(error));
        Vec::new()
    });
    let inventory = Inventory {
        infra_id: &hcp.spec.infra_id,
        claims: &claims,
        nodes: &nodes,
        instances: &instances,
    };
    let mut left = 0_usize;
    for (request, object) in &pending {
        match inventory.evaluate(request) {
            Ok(message) => failed.extend(approve(&api, object, message).await.err()),
            Err(problem) => {
                left += 1;
                let (name, requestor) = (object.name_any(), &request.username);
                tracing::debug!(
                    request = name,
                    requestor,
                    problem,
                    "Skipping CertificateSigningRequest"
                );
            }
        }
    }
    Error::all(failed)?;
    Ok(match left {
        0 => Action::await_change(),
        _ => Action::requeue(AGAIN),
    })
}

/// The instances that EC2 is asked for: those that may join, if a node wants to.
fn wanted<'a>(mut requests: impl Iterator<Item = &'a Request>, claims: &[Claim]) -> Vec<String> {
    if !requests.any(|it| it.signer == CLIENT && it.username == BOOTSTRAPPER) {
        return Vec::new();
    }
    let waiting = claims.iter().filter(|it| is_waiting(it));
    waiting.filter_map(|it| it.instance.clone()).collect()
}

fn is_waiting(claim: &Claim) -> bool {
    claim.node.is_none() && !claim.is_deleted
}

async fn approve(
    api: &Api<CertificateSigningRequest>,
    object: &CertificateSigningRequest,
    message: &str,
) -> Result<(), Error> {
    let name = object.name_any();
    match kubelet_request::approve(api, object, MANAGER, REASON, message).await {
        Ok(true) => {
            tracing::info!(
                request = name,
                message,
                "Approved CertificateSigningRequest"
            );
            Ok(())
        }
        Ok(false) => Ok(()),
        Err(source) => Err(Error::Write {
            what: format!("the approval of CertificateSigningRequest {name}"),
            source,
        }),
    }
}

// === impl Inventory ===

impl Inventory<'_> {
    fn evaluate(&self, request: &Request) -> Decision {
        match request.signer.as_str() {
            CLIENT => self.client(request),
            SERVING => self.serving(request),
            _ => Err("not a kubelet signer"),
        }
    }

    fn client(&self, request: &Request) -> Decision {
        let name = request.node()?;
        request.is_for("client auth")?;
        if request.has_unsupported || !request.names.is_empty() || !request.addresses.is_empty() {
            return Err("client certificates must not have subject alternative names");
        }
        if request.username != BOOTSTRAPPER {
            return Err("the requestor is not the bootstrap account");
        }
        if self.nodes.iter().any(|node| node.name_any() == name) {
            return Err("the Node already exists");
        }
        let mut instances = self.instances.iter();
        let instance = instances.find(|it| it.name == name && it.is_alive);
        let instance = instance.ok_or("no instance of a NodeClaim has this name")?;
        if !instance.is_of(self.infra_id) {
            return Err("the instance is not one of this cluster");
        }
        let is_claimed = |it: &Claim| it.instance.as_ref() == Some(&instance.id);
        if self
            .claims
            .iter()
            .any(|it| is_waiting(it) && is_claimed(it))
        {
            return Ok("the instance of a NodeClaim is waiting for its Node");
        }
        Err("no NodeClaim with this instance is waiting for its Node")
    }

    fn serving(&self, request: &Request) -> Decision {
        let name = request.node()?;
        if request.username != request.common_name || !request.groups.iter().any(|it| it == NODES) {
            return Err("the requestor is not the node");
        }
        request.is_for("server auth")?;
        if request.has_unsupported || (request.names.is_empty() && request.addresses.is_empty()) {
            return Err("unsupported or missing subject alternative names");
        }
        let mut claims = self.claims.iter();
        if !claims.any(|it| it.node.as_deref() == Some(name)) {
            return Err("no NodeClaim has this Node");
        }
        let node = self.nodes.iter().find(|node| node.name_any() == name);
        let node = node.ok_or("the Node does not exist")?;
        let is_own = |wanted: &str| {
            let mut others = self.nodes.iter().filter(|it| it.name_any() != name);
            wanted == name
                || (reports(node, wanted)
                    && !others.any(|it| it.name_any() == wanted || reports(it, wanted)))
        };
        if !request.names.iter().all(|it| is_own(it)) {
            return Err("a requested name does not belong to the Node");
        }
        if !request.addresses.iter().all(|it| is_own(&it.to_string())) {
            return Err("a requested address does not belong to the Node");
        }
        Ok("the node of a NodeClaim requests its own name and addresses")
    }
}

fn reports(node: &Node, wanted: &str) -> bool {
    let status = node.status.as_ref();
    let addresses = status.and_then(|status| status.addresses.as_ref());
    let mut addresses = addresses.into_iter().flatten();
    addresses.any(|known| known.address.eq_ignore_ascii_case(wanted))
}

#[cfg(test)]
mod tests;
