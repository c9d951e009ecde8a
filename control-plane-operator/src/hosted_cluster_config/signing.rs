//! Grants kubelets the certificates that are theirs, and no others.
//!
//! No request is denied: another approver may grant what is not granted here.

mod judge;
mod request;

use jiff::Timestamp;
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use kube::api::{Patch, PatchParams};
use kube::{Api, ResourceExt as _};
use serde_json::{Value, json};
use support::reconcile::{is_conflict, is_missing};

use super::NodeClients;
use super::context::Context;
use super::error::Error;
use judge::{Fleet, Verdict};
use request::Request;

/// Who writes, as the API server keeps it.
const MANAGER: &str = "hosted-cluster-config-operator";

/// Evaluates every pending request.
pub(super) async fn pass(ctx: &Context) -> Result<(), Error> {
    let requests = ctx.requests().await?;
    let pending: Vec<_> = requests.into_iter().filter(|it| is_pending(it)).collect();
    if pending.is_empty() {
        return Ok(());
    }
    let nodes = ctx.nodes().await?;
    let machines = ctx.machines().await?;
    let fleet = Fleet {
        nodes: &nodes,
        machines: &machines,
        grants_clients: ctx.node_clients == NodeClients::Machines,
    };
    let api: Api<CertificateSigningRequest> = Api::all(ctx.guest.clone());
    for object in pending {
        let verdict = match Request::read(&object) {
            Ok(request) => fleet.judge(&request),
            Err(problem) => Verdict::Leave(problem),
        };
        follow(&api, &object, verdict).await?;
    }
    Ok(())
}

async fn follow(
    api: &Api<CertificateSigningRequest>,
    object: &CertificateSigningRequest,
    verdict: Verdict,
) -> Result<(), Error> {
    let name = object.name_any();
    let requestor = object.spec.username.as_deref().unwrap_or_default();
    match verdict {
        Verdict::Leave(problem) => {
            tracing::debug!(request = name, requestor, problem, "Request left alone");
            Ok(())
        }
        Verdict::Grant(message) => {
            grant(api, object, message).await?;
            tracing::info!(request = name, requestor, message, "Request granted");
            Ok(())
        }
    }
}

async fn grant(
    api: &Api<CertificateSigningRequest>,
    object: &CertificateSigningRequest,
    message: &str,
) -> Result<(), Error> {
    let name = object.name_any();
    let params = PatchParams {
        field_manager: Some(MANAGER.to_owned()),
        ..PatchParams::default()
    };
    let change = approval(object, message, Timestamp::now());
    match api
        .patch_approval(&name, &params, &Patch::Merge(&change))
        .await
    {
        // Another approver has decided it.
        Err(error) if is_conflict(&error) || is_missing(&error) => Ok(()),
        done => done.map(drop).map_err(Error::client(format!(
            "grant CertificateSigningRequest {name}"
        ))),
    }
}

/// Applies only to the version of the request that was evaluated.
fn approval(object: &CertificateSigningRequest, message: &str, now: Timestamp) -> Value {
    json!({
        "metadata": { "resourceVersion": object.metadata.resource_version },
        "status": { "conditions": [{
            "type": "Approved",
            "status": "True",
            "reason": "NodeRequestGranted",
            "message": message,
            "lastUpdateTime": now.to_string(),
        }] },
    })
}

fn is_pending(object: &CertificateSigningRequest) -> bool {
    let status = object.status.as_ref();
    let conditions = status.and_then(|status| status.conditions.as_ref());
    conditions.is_none_or(Vec::is_empty)
}

#[cfg(test)]
mod tests;
