//! Carries out the steps of revocation requests.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, ObjectReference, Pod, Secret};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::api::{Api, DynamicObject, ListParams, Patch, PatchParams};
use kube::{Resource as _, ResourceExt as _};
use serde_json::json;
use support::controller::{Action, ObjectKey, Reconciler, record_generation};

use super::super::cache::revocations;
use super::super::class::Class;
use super::super::issue::{self, Pair, Subject};
use super::super::objects;
use super::super::probe::{API_SERVER, Answers, ask, evaluate, replicas};
use super::super::revocation::{Change, Expect, Request, Step, View, saved_name};
use super::super::rotation::Observed;
use super::super::x509::{Certificate, parse_bundle};
use super::{Context, Error, MANAGER, now};

/// How soon the next step is taken.
const NEXT: Duration = Duration::from_millis(200);
/// How often a step that waits is tried again, if nothing changes.
const WAIT: Duration = Duration::from_secs(3);
/// Lifetime of a certificate that API servers are asked with.
const PROBE: Duration = Duration::from_mins(10);
/// ConfigMap with the authority of the API servers' certificates, and its key.
const ROOT: (&str, &str) = ("root-ca", "ca.crt");

/// Reconciles the revocation requests of the namespace.
pub(in super::super) struct Controller(pub(in super::super) Context);

impl Reconciler for Controller {
    type Error = Error;

    async fn reconcile(&self, key: &ObjectKey) -> Result<Action, Error> {
        let context = &self.0;
        let object = context.cache.revocation(&key.name);
        let Some(object) = object.filter(|it| it.metadata.deletion_timestamp.is_none()) else {
            return Ok(Action::await_change());
        };
        record_generation(object.metadata.generation);
        let Some(request) = Request::parse(&object) else {
            tracing::warn!("Skipping CertificateRevocationRequest with an invalid status");
            return Ok(Action::await_change());
        };
        let now = now();
        let class = Class::parse(&request.class);
        let observed = class
            .map(|class| context.observed(class))
            .unwrap_or_default();
        let total = context.total();
        let mut view = view(&request, &observed, &total, now);
        // Complete requests are the most, and need no request to the API server.
        if view.next() == Step::Done {
            return Ok(Action::await_change());
        }
        let secret: Option<Secret> = context.get(&saved_name(&request.name)).await?;
        let saved = objects::saved(secret.as_ref(), &request.uid);
        view.saved = saved.as_ref();
        let mut step = view.next();
        if let Step::Probe(expect) = step {
            let outcome = context.probe(&view, expect, now).await?;
            step = view.probed(expect, outcome);
        }
        context.carry_out(&object, &view, class, step).await
    }
}

fn view<'a>(
    request: &'a Request,
    observed: &'a Observed,
    total: &'a [Certificate],
    now: Timestamp,
) -> View<'a> {
    View {
        request,
        signer: &observed.signer,
        bundle: &observed.bundle,
        total,
        client: &observed.client,
        saved: None,
        now,
    }
}

fn reference(object: &DynamicObject) -> ObjectReference {
    object.object_ref(&revocations())
}

// === impl Context ===

impl Context {
    async fn carry_out(
        &self,
        object: &DynamicObject,
        view: &View<'_>,
        class: Option<Class>,
        step: Step,
    ) -> Result<Action, Error> {
        match (step, class) {
            (Step::Done, _) => return Ok(Action::await_change()),
            (Step::Wait(reason), _) => {
                tracing::debug!(reason, "Waiting");
                return Ok(Action::requeue(WAIT));
            }
            (Step::Status(change), _) => self.update_status(object, view, &change).await?,
            (Step::SaveSigner(name), _) => self.save_signer(object, view, &name).await?,
            (Step::ForceSigner, Some(class)) => self.force(&class.signer()).await?,
            (Step::ForceClient, Some(class)) => self.force(&class.client()).await?,
            (Step::Prune(bundle), Some(class)) => self.prune(class, &bundle).await?,
            // The API servers are asked before; without a class there are no other steps.
            (Step::Probe(_) | Step::ForceSigner | Step::ForceClient | Step::Prune(_), _) => {}
        }
        Ok(Action::requeue(NEXT))
    }

    /// Updates the version of the request that was read.
    async fn update_status(
        &self,
        object: &DynamicObject,
        view: &View<'_>,
        change: &Change,
    ) -> Result<(), Error> {
        let resource = revocations();
        let name = object.name_any();
        let body = json!({
            "apiVersion": resource.api_version,
            "kind": resource.kind,
            "metadata": {
                "name": name,
                "namespace": self.namespace,
                "uid": object.metadata.uid,
                "resourceVersion": object.metadata.resource_version,
            },
            "status": view.request.changed(change, view.now).status(),
        });
        let api: Api<DynamicObject> =
            Api::namespaced_with(self.client.clone(), &self.namespace, &resource);
        let params = PatchParams::apply(MANAGER).force();
        let patched = api.patch_status(&name, &params, &Patch::Apply(&body)).await;
        patched.map_err(|source| Error::Write {
            object: format!("status of {} {}/{name}", resource.kind, self.namespace),
            source,
        })?;
        for set in &change.conditions {
            tracing::info!(
                request = name,
                condition = set.type_,
                status = set.status,
                reason = set.reason,
                "Updated condition"
            );
            let type_ = if set.is_problem() {
                "Warning"
            } else {
                "Normal"
            };
            let message = format!(
                "{}={}: {}",
                set.type_,
                if set.status { "True" } else { "False" },
                set.message
            );
            self.event(reference(object), type_, set.reason, &message)
                .await;
        }
        Ok(())
    }

    /// Copies the signer that is revoked, because its certificates are needed to prove that it is.
    async fn save_signer(
        &self,
        object: &DynamicObject,
        view: &View<'_>,
        name: &str,
    ) -> Result<(), Error> {
        let Some(pair) = &view.signer.pair else {
            return Ok(());
        };
        let resource = revocations();
        let owner = OwnerReference {
            api_version: resource.api_version,
            kind: resource.kind,
            name: object.name_any(),
            uid: object.uid().unwrap_or_default(),
            ..OwnerReference::default()
        };
        self.write(&objects::saved_secret(name, pair, owner))
            .await?;
        tracing::info!(secret = name, "Saved the signer");
        Ok(())
    }

    /// Requests the renewal of the certificate in a Secret.
    async fn force(&self, name: &str) -> Result<(), Error> {
        if let Some(secret) = self.cache.secret(name) {
            self.write(&objects::forced(&secret)).await?;
            tracing::info!(secret = name, "Requested renewal");
        }
        Ok(())
    }

    async fn prune(&self, class: Class, bundle: &[Certificate]) -> Result<(), Error> {
        let name = class.bundle();
        if let Some(existing) = self.cache.bundle(&name) {
            self.write(&objects::config_map(
                Some(&existing),
                &name,
                bundle,
                &self.owner,
            ))
            .await?;
            tracing::info!(
                config_map = name,
                certificates = bundle.len(),
                "Removed revoked signers"
            );
        }
        Ok(())
    }

    /// Asks every API server. The inner error says what is missing.
    async fn probe(
        &self,
        view: &View<'_>,
        expect: Expect,
        now: Timestamp,
    ) -> Result<Result<(), String>, Error> {
        let Some((new, old)) = view.signers() else {
            return Ok(Err("there is no signer".to_owned()));
        };
        let Some(deployment) = self.get::<Deployment>(API_SERVER).await? else {
            return Ok(Err(format!("Deployment {API_SERVER} does not exist")));
        };
        let labels = format!("app={API_SERVER}");
        let pods = self
            .api::<Pod>()
            .list(&ListParams::default().labels(&labels))
            .await;
        let pods = pods.map_err(|source| Error::Read {
            object: format!("Pods of Deployment {API_SERVER}"),
            source,
        })?;
        let replicas = match replicas(&deployment, &pods.items, now) {
            Ok(replicas) => replicas,
            Err(problem) => return Ok(Err(problem)),
        };
        let root: Option<ConfigMap> = self.get(ROOT.0).await?;
        let root = root.and_then(|root| root.data?.remove(ROOT.1));
        let authorities = parse_bundle(&root.unwrap_or_default());
        let class = Class::parse(&view.request.class)
            .map(Class::user_prefix)
            .unwrap_or_default();
        let name = format!("{class}revocation-probe");
        let [new, old] =
            [Some(new), old].map(|signer| signer.map(|signer| user(signer, &name, now)));
        let (Some(new), old) = (new.transpose()?, old.transpose()?) else {
            return Ok(Err("there is no signer".to_owned()));
        };
        let asked = replicas.iter().map(async |replica| Answers {
            pod: replica.pod.clone(),
            new: ask(replica, &authorities, &new).await,
            old: match &old {
                Some(old) => Some(ask(replica, &authorities, old).await),
                None => None,
            },
        });
        let answers = futures::future::join_all(asked).await;
        Ok(evaluate(expect, &answers))
    }
}

fn user(signer: &Pair, name: &str, now: Timestamp) -> Result<Pair, issue::Error> {
    issue::short_lived(signer, &Subject::user(name, None, None), now + PROBE, now)
}

#[cfg(test)]
mod tests;
