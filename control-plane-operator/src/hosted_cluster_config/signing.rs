//! Approves `CertificateSigningRequests` of kubelets for their own names and addresses only.
//!
//! No request is denied, because another approver may approve it.

mod evaluate;

use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use kube::{Api, ResourceExt as _};
use support::kubelet_request::{self, Request, is_pending};

use super::NodeClients;
use super::context::Context;
use super::error::Error;
use evaluate::{Decision, Inventory};

/// Field manager.
const MANAGER: &str = "hosted-cluster-config-operator";
/// The reason of an approval.
const REASON: &str = "NodeRequestGranted";

/// Evaluates every pending request.
pub(super) async fn pass(ctx: &Context) -> Result<(), Error> {
    let requests = ctx.requests().await?;
    let pending: Vec<_> = requests.into_iter().filter(|it| is_pending(it)).collect();
    if pending.is_empty() {
        return Ok(());
    }
    let nodes = ctx.nodes().await?;
    let machines = ctx.machines().await?;
    let inventory = Inventory {
        nodes: &nodes,
        machines: &machines,
        approves_clients: ctx.node_clients == NodeClients::Machines,
    };
    let api: Api<CertificateSigningRequest> = Api::all(ctx.guest.clone());
    for object in pending {
        let decision = match Request::read(&object) {
            Ok(request) => inventory.evaluate(&request),
            Err(problem) => Decision::Ignore(problem),
        };
        apply_decision(&api, &object, decision).await?;
    }
    Ok(())
}

async fn apply_decision(
    api: &Api<CertificateSigningRequest>,
    object: &CertificateSigningRequest,
    decision: Decision,
) -> Result<(), Error> {
    let name = object.name_any();
    let requestor = object.spec.username.as_deref().unwrap_or_default();
    match decision {
        Decision::Ignore(problem) => {
            tracing::debug!(
                request = name,
                requestor,
                problem,
                "Skipping CertificateSigningRequest"
            );
            Ok(())
        }
        Decision::Approve(message) => {
            let approved = kubelet_request::approve(api, object, MANAGER, REASON, message).await;
            approved.map_err(Error::client(format!(
                "approve CertificateSigningRequest {name}"
            )))?;
            tracing::info!(
                request = name,
                requestor,
                message,
                "Approved CertificateSigningRequest"
            );
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests;
