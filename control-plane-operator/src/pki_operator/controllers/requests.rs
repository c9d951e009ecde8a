//! Approves and signs requests of break-glass certificates.
//!
//! `CertificateSigningRequests` are cluster-scoped and belong to all tenants, so this operator may neither list nor watch
//! them: it reads the one that an approval in its own namespace names, until it has reached its final state.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::ByteString;
use k8s_openapi::api::certificates::v1::{
    CertificateSigningRequest, CertificateSigningRequestCondition,
};
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::api::{DynamicObject, Patch, PatchParams, PostParams};
use kube::{Api, Resource as _, ResourceExt as _};
use serde_json::{Value, json};
use support::controller::{Action, ObjectKey, Reconciler, record_generation};

use super::super::cache::approvals;
use super::super::class::Class;
use super::super::issue;
use super::super::request::{APPROVAL_LIFETIME, Decision, Order, decide};
use super::{Context, Error, MANAGER, now};

/// How soon a request is signed whose signer is not trusted yet.
const UNTRUSTED: Duration = Duration::from_secs(2);
/// How often a request is looked for that does not exist yet: a tenth of the approval's age, within these limits.
const POLL: (Duration, Duration) = (Duration::from_secs(2), Duration::from_mins(1));
/// Steps of a pass: approve, sign, and that nothing is left.
const STEPS: usize = 3;

/// Reconciles the approvals of the namespace.
pub(in super::super) struct Controller {
    context: Context,
    /// Names and UIDs of approvals whose request needs nothing more: it is not read again.
    finished: Mutex<BTreeMap<String, String>>,
}

// === impl Controller ===

impl Controller {
    pub(in super::super) fn new(context: Context) -> Self {
        Self {
            context,
            finished: Mutex::default(),
        }
    }

    fn is_finished(&self, approval: &DynamicObject) -> bool {
        let finished = self.finished.lock().unwrap_or_else(PoisonError::into_inner);
        finished.get(&approval.name_any()) == approval.metadata.uid.as_ref()
    }

    fn finish(&self, approval: &DynamicObject) -> Action {
        let keys = self.context.cache.approval_keys().into_iter();
        let existing: BTreeSet<String> = keys.map(|key| key.name).collect();
        let mut finished = self.finished.lock().unwrap_or_else(PoisonError::into_inner);
        finished.retain(|name, _| existing.contains(name));
        finished.insert(approval.name_any(), approval.uid().unwrap_or_default());
        Action::await_change()
    }

    /// Takes the steps that are due.
    async fn step(
        &self,
        approval: &DynamicObject,
        created: Option<Timestamp>,
        mut request: CertificateSigningRequest,
    ) -> Result<Action, Error> {
        let context = &self.context;
        for _ in 0..STEPS {
            request = match decide(&request, &context.namespace, created) {
                Decision::Ignore(reason) => {
                    tracing::debug!(
                        request = approval.name_any(),
                        reason,
                        "Skipping CertificateSigningRequest"
                    );
                    return Ok(self.finish(approval));
                }
                Decision::Approve(class) => context.approve(approval, request, class).await?,
                Decision::Refuse(class, problem) => {
                    context.refuse(approval, &request, class, &problem).await?
                }
                Decision::Sign(class, order) => {
                    match context.sign(approval, &request, class, &order).await? {
                        Some(signed) => signed,
                        None => return Ok(Action::requeue(UNTRUSTED)),
                    }
                }
            };
        }
        Ok(Action::await_change())
    }
}

impl Reconciler for Controller {
    type Error = Error;

    async fn reconcile(&self, key: &ObjectKey) -> Result<Action, Error> {
        let context = &self.context;
        let approval = context.cache.approval(&key.name);
        let Some(approval) = approval.filter(|it| it.metadata.deletion_timestamp.is_none()) else {
            return Ok(Action::await_change());
        };
        if self.is_finished(&approval) {
            return Ok(Action::await_change());
        }
        record_generation(approval.metadata.generation);
        let created = approval
            .metadata
            .creation_timestamp
            .as_ref()
            .map(|time| time.0);
        let requests: Api<CertificateSigningRequest> = Api::all(context.client.clone());
        let found = requests
            .get_opt(&key.name)
            .await
            .map_err(|source| Error::Read {
                object: object(&key.name),
                source,
            })?;
        match (found, poll(created, now())) {
            (Some(request), _) => self.step(&approval, created, request).await,
            (None, Some(action)) => Ok(action),
            (None, None) => Ok(self.finish(&approval)),
        }
    }
}

/// When to look for a request that does not exist; none if the approval does not hold for new requests.
fn poll(approved: Option<Timestamp>, now: Timestamp) -> Option<Action> {
    let age = Duration::try_from(now.duration_since(approved?)).unwrap_or_default();
    (age <= APPROVAL_LIFETIME).then(|| Action::requeue((age / 10).clamp(POLL.0, POLL.1)))
}

fn object(name: &str) -> String {
    format!("CertificateSigningRequest {name}")
}

fn reference(approval: &DynamicObject) -> ObjectReference {
    approval.object_ref(&approvals())
}

// === impl Context ===

impl Context {
    /// Approves the version of the request that was read.
    async fn approve(
        &self,
        approval: &DynamicObject,
        mut request: CertificateSigningRequest,
        class: Class,
    ) -> Result<CertificateSigningRequest, Error> {
        let name = request.metadata.name.clone().unwrap_or_default();
        let time = Time(now());
        let condition = CertificateSigningRequestCondition {
            type_: "Approved".to_owned(),
            status: "True".to_owned(),
            reason: Some("ApprovalPresent".to_owned()),
            message: Some(format!(
                "The requisite CertificateSigningRequestApproval exists in namespace {}.",
                self.namespace
            )),
            last_update_time: Some(time.clone()),
            last_transition_time: Some(time),
        };
        let status = request.status.get_or_insert_default();
        status.conditions.get_or_insert_default().push(condition);
        let written = self.put_approval(&name, &request).await?;
        tracing::info!(
            request = name,
            signer = class.name(),
            "Approved CertificateSigningRequest"
        );
        let message = format!("CertificateSigningRequest {name} is approved");
        self.event(
            reference(approval),
            "Normal",
            "CertificateSigningRequestApproved",
            &message,
        )
        .await;
        Ok(written)
    }

    async fn put_approval(
        &self,
        name: &str,
        request: &CertificateSigningRequest,
    ) -> Result<CertificateSigningRequest, Error> {
        let requests: Api<CertificateSigningRequest> = Api::all(self.client.clone());
        let params = PostParams {
            field_manager: Some(MANAGER.to_owned()),
            ..PostParams::default()
        };
        let failed = |source| Error::Write {
            object: object(name),
            source,
        };
        requests
            .replace_subresource("approval", name, &params, request)
            .await
            .map_err(failed)
    }

    /// Signs a request. None if the signer is not trusted yet.
    async fn sign(
        &self,
        approval: &DynamicObject,
        request: &CertificateSigningRequest,
        class: Class,
        order: &Order,
    ) -> Result<Option<CertificateSigningRequest>, Error> {
        let name = request.metadata.name.clone().unwrap_or_default();
        let now = now();
        let signer = self.observed(class).signer.pair;
        let trusted = self.total();
        let Some(signer) = signer.filter(|signer| {
            signer.certificate.not_after > now && trusted.contains(&signer.certificate)
        }) else {
            return Ok(None);
        };
        let key = order.key().map_err(|source| Error::Key {
            name: name.clone(),
            source,
        })?;
        let until = order.until(self.lifetimes.client.validity, now);
        let pem = issue::sign(&signer, &order.subject, &key, until, now)?;
        let status = json!({ "certificate": ByteString(pem.into_bytes()) });
        let updated = self.patch_status(request, class, &status).await?;
        tracing::info!(
            request = name,
            signer = class.name(),
            "Signed CertificateSigningRequest"
        );
        let message = format!(
            "CertificateSigningRequest {name} is valid, and signed by {}",
            signer.certificate.common_name
        );
        self.event(
            reference(approval),
            "Normal",
            "CertificateSigningRequestFulfilled",
            &message,
        )
        .await;
        Ok(Some(updated))
    }

    /// Marks a request as failed.
    async fn refuse(
        &self,
        approval: &DynamicObject,
        request: &CertificateSigningRequest,
        class: Class,
        problem: &str,
    ) -> Result<CertificateSigningRequest, Error> {
        let now = Time(now());
        let status = json!({ "conditions": [{
            "type": "Failed",
            "status": "True",
            "reason": "SignerValidationFailure",
            "message": problem,
            "lastUpdateTime": now,
            "lastTransitionTime": now,
        }] });
        let refused = self.patch_status(request, class, &status).await?;
        let name = request.metadata.name.as_deref().unwrap_or_default();
        tracing::info!(
            request = name,
            signer = class.name(),
            problem,
            "Refused CertificateSigningRequest"
        );
        let message = format!("CertificateSigningRequest {name} is refused: {problem}");
        self.event(
            reference(approval),
            "Warning",
            "CertificateSigningRequestInvalid",
            &message,
        )
        .await;
        Ok(refused)
    }

    /// Applies the status to the version of the request that was read.
    async fn patch_status(
        &self,
        request: &CertificateSigningRequest,
        class: Class,
        status: &Value,
    ) -> Result<CertificateSigningRequest, Error> {
        let name = request.metadata.name.clone().unwrap_or_default();
        let body = json!({
            "apiVersion": "certificates.k8s.io/v1",
            "kind": "CertificateSigningRequest",
            "metadata": {
                "name": name,
                "uid": request.metadata.uid,
                "resourceVersion": request.metadata.resource_version,
            },
            "status": status,
        });
        let requests: Api<CertificateSigningRequest> = Api::all(self.client.clone());
        let params = PatchParams::apply(&class.signing_manager()).force();
        let failed = |source| Error::Write {
            object: object(&name),
            source,
        };
        requests
            .patch_status(&name, &params, &Patch::Apply(&body))
            .await
            .map_err(failed)
    }
}

#[cfg(test)]
mod tests;
