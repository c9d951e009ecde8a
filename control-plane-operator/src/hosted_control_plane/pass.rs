//! One reconcile of the hosted control plane.

use std::time::Instant;

use api::conditions::ClusterCondition as Type;
use api::hypershift::v1beta1::{ControlPlaneComponentStatus, HostedControlPlane};
use control_plane_component::dependency::{GROUP, missing as missing_dependencies};
use control_plane_component::facts::Infra;
use control_plane_component::render::{Identity, Rendered, adopt, hashed, render};
use control_plane_component::status::{Observation, is_true, status as component_status};
use control_plane_component::workload::without_nulls;
use control_plane_component::write::ObjectWriter;
use control_plane_component::{Component, Context, Objects, Predicates, Release, operands};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::{Value, json};
use support::error::chain;

use super::Operator;
use super::azure::Network;
use super::cache::Cache;
use super::deletion::{self, DeletionStep};
use super::error::Error;
use super::release::{Reader, ReleasePair, missing_images};
use super::retired;
use super::settled::Settled;
use super::status::{self, Evaluation};
use crate::components::oauth_openshift;
use crate::infra;
use crate::openid::{self, Discovery, Findings};
use crate::pki::CertificateSet;

/// The step that issues certificates. No component has this name.
const CERTIFICATES: &str = "certificates of all components";

/// Reconciles the hosted control plane.
pub(super) struct Pass<'a> {
    pub(super) operator: &'a Operator,
    pub(super) cache: &'a Cache,
    pub(super) writer: ObjectWriter,
    pub(super) reader: Reader,
    pub(super) discovery: &'a Discovery,
    pub(super) network: &'a Network,
    pub(super) settled: Settled,
    /// Last logged reason for skipping the reconcile.
    pub(super) skip_reason: Option<String>,
}

/// The state of one reconcile: inputs, and objects written so far.
pub(super) struct ReconcileScope {
    pub(super) hcp: HostedControlPlane,
    pub(super) releases: ReleasePair,
    pub(super) infra: Infra,
    pub(super) objects: Objects,
}

/// Results of all components.
#[derive(Default)]
struct Outcome {
    /// Components that failed to render.
    problems: Vec<(&'static str, control_plane_component::Error)>,
    /// The error if components failed to apply.
    failed: Option<Error>,
}

// === impl ReconcileScope ===

impl ReconcileScope {
    pub(super) fn context<'a>(&'a self, operator: &'a Operator) -> Context<'a> {
        Context {
            hcp: &self.hcp,
            release: &self.releases.control_plane,
            user_release: &self.releases.user,
            infra: &self.infra,
            objects: &self.objects,
            settings: &operator.settings,
            predicates: Predicates::Evaluated,
        }
    }
}

impl Pass<'_> {
    /// Reconciles once, and returns whether the control plane is available.
    pub(super) async fn run(&mut self) -> Result<bool, Error> {
        let Some(hcp) = self.cache.hosted_control_plane() else {
            self.log_skip("no HostedControlPlane in the namespace");
            return Ok(false);
        };
        match deletion::next_step(&hcp, Timestamp::now()) {
            DeletionStep::AddFinalizer => {
                deletion::set_finalizer(&self.operator.client, &hcp, true).await?
            }
            DeletionStep::RemoveFinalizer => {
                deletion::set_finalizer(&self.operator.client, &hcp, false).await?;
                return Ok(true);
            }
            DeletionStep::Done => return Ok(true),
            DeletionStep::Wait | DeletionStep::Reconcile => {}
        }
        if hcp.spec.release_image != self.operator.operate_on {
            // Two operators of different releases would fight.
            self.log_skip("the HostedControlPlane has another release than this operator");
            return Ok(false);
        }
        if is_paused(&hcp, Timestamp::now()) {
            self.log_skip("the HostedControlPlane is paused");
            return Ok(false);
        }
        self.skip_reason = None;
        self.reconcile(hcp).await
    }

    fn log_skip(&mut self, why: &str) {
        if self.skip_reason.as_deref() != Some(why) {
            tracing::info!(why, "Skipping reconcile");
            self.skip_reason = Some(why.to_owned());
        }
    }

    async fn reconcile(&mut self, hcp: HostedControlPlane) -> Result<bool, Error> {
        // dereference (client)
        let objects = self.cache.objects();
        let releases = self
            .reader
            .read(&hcp, &objects, &self.operator.settings)
            .await;
        let (releases, unavailable) = match releases {
            Ok(releases) => (releases, None),
            Err(unavailable) => (
                ReleasePair {
                    control_plane: Release::default(),
                    user: Release::default(),
                },
                Some(unavailable),
            ),
        };
        let mut scope = ReconcileScope {
            hcp,
            releases,
            infra: Infra::default(),
            objects,
        };
        if let Some(unavailable) = unavailable {
            // Without the release, components cannot be rendered consistently.
            let evaluation = Evaluation::no(
                Type::ValidReleaseInfo,
                unavailable.reason,
                unavailable.message,
            );
            scope.infra = infra::facts(self.operator.components, &scope.context(self.operator));
            return self
                .write_status(&scope, vec![evaluation], false, false)
                .await;
        }
        // infrastructure
        let missing = self.infrastructure(&mut scope).await?;
        let mut evaluations = vec![status::infrastructure(&missing)];
        // certificates, and components in their order
        let mut outcome = Outcome::default();
        if missing.is_empty() {
            self.identity_providers(&mut scope);
            self.settled.begin(&scope, Instant::now());
            self.default_account(&mut scope).await?;
            self.all_certificates(&mut scope).await?;
            self.kubeadmin(&mut scope).await?;
            self.session_keys(&mut scope).await?;
            self.delete_retired(&mut scope).await?;
            let problem = self.machine_config(&mut scope).await?;
            outcome = self.components(&mut scope).await;
            outcome.problems.extend(problem);
        }
        let context = scope.context(self.operator);
        evaluations.extend(deletion::operator(&context));
        evaluations.push(match missing_images(&context, &outcome.problems) {
            Some(message) => Evaluation::no(Type::ValidReleaseInfo, "MissingImages", message),
            None => Evaluation::yes(Type::ValidReleaseInfo),
        });
        let network = self.network.problem();
        evaluations.push(configuration(&outcome.problems, network));
        let written = self
            .write_status(&scope, evaluations, true, outcome.failed.is_some())
            .await;
        outcome.failed.map_or(written, Err)
    }

    async fn infrastructure(
        &mut self,
        scope: &mut ReconcileScope,
    ) -> Result<Vec<&'static str>, Error> {
        let desired = infra::desired(self.operator.components, &scope.context(self.operator));
        for identity in &desired.deletions {
            self.writer.delete(identity).await?;
            scope.objects.remove(identity);
        }
        for object in &desired.objects {
            self.writer.apply(object, &mut scope.objects).await?;
        }
        scope.infra = infra::facts(self.operator.components, &scope.context(self.operator));
        let context = scope.context(self.operator);
        Ok(infra::missing(
            self.operator.components,
            &context,
            &scope.infra,
        ))
    }

    /// Adds what is known of identity providers. Requests to them run in the background: a slow one delays no pass.
    fn identity_providers(&self, scope: &mut ReconcileScope) {
        let context = scope.context(self.operator);
        if !context.is_oauth_enabled() {
            return;
        }
        let inquiries = oauth_openshift::inquiries(&context);
        let asker = openid::materials(&context);
        let Findings {
            endpoints,
            failures,
        } = self.discovery.update(inquiries, &asker);
        scope.infra.openid = endpoints;
        scope.infra.openid_failures = failures;
    }

    async fn all_certificates(&mut self, scope: &mut ReconcileScope) -> Result<(), Error> {
        if self.settled.is_settled(CERTIFICATES, &scope.objects) {
            return Ok(());
        }
        scope.objects.record();
        let mut issued = self.etcd_first(scope).await;
        if issued.is_ok() {
            issued = self.certificates(scope, CertificateSet::All).await;
        }
        let seen = scope.objects.recorded();
        self.settled
            .ended(CERTIFICATES, seen.filter(|_| issued.is_ok()));
        issued
    }

    /// The default service account gets the pull secret, for pods without their own account.
    async fn default_account(&mut self, scope: &mut ReconcileScope) -> Result<(), Error> {
        let account = json!({
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": { "name": "default", "namespace": self.operator.namespace },
            "imagePullSecrets": [{ "name": "pull-secret" }],
        });
        Ok(self
            .writer
            .apply(&hashed(account), &mut scope.objects)
            .await?)
    }

    /// Deletes what components of earlier versions left.
    async fn delete_retired(&mut self, scope: &mut ReconcileScope) -> Result<(), Error> {
        for identity in retired::objects() {
            if scope.objects.find(&identity).is_some() {
                self.writer.delete(&identity).await?;
                scope.objects.remove(&identity);
            }
        }
        Ok(())
    }

    /// Reconciles all components in order. A failing component does not stop the others. Render errors are reported in
    /// conditions, and apply errors are retried.
    async fn components(&mut self, scope: &mut ReconcileScope) -> Outcome {
        let mut outcome = Outcome::default();
        let mut failed = Vec::new();
        for component in self
            .operator
            .components
            .iter()
            .filter(|it| it.has_workload())
        {
            if self.settled.is_settled(component.name, &scope.objects) {
                continue;
            }
            scope.objects.record();
            let reconciled = self.component(component, scope).await;
            let seen = scope.objects.recorded();
            let is_settled = matches!(reconciled, Ok(None));
            self.settled
                .ended(component.name, seen.filter(|_| is_settled));
            match reconciled {
                Ok(None) => {}
                Ok(Some(problem)) => outcome.problems.push((component.name, problem)),
                Err(error) => {
                    tracing::warn!(
                        component = component.name,
                        error = chain(&error),
                        "Failed to apply component"
                    );
                    failed.push((component.name, error));
                }
            }
        }
        outcome.failed = (!failed.is_empty()).then_some(Error::Components(failed));
        outcome
    }

    /// The dependencies that are not rolled out. One without a workload has no rollout.
    fn waiting_for(&self, component: &Component, context: &Context<'_>) -> Vec<&'static str> {
        let mut missing = missing_dependencies(component, context);
        missing.retain(|name| {
            let mut components = self.operator.components.iter();
            !components.any(|it| it.name == *name && !it.has_workload())
        });
        missing
    }

    pub(super) async fn component(
        &mut self,
        component: &Component,
        scope: &mut ReconcileScope,
    ) -> Result<Option<control_plane_component::Error>, Error> {
        let context = scope.context(self.operator);
        let waiting_for = self.waiting_for(component, &context);
        let rendered = match render(component, &context) {
            Ok(rendered) => rendered,
            Err(problem) => {
                // Its dependencies may still have to write its inputs.
                let error = waiting_for.is_empty().then(|| chain(&problem));
                self.update_component_status(component, &Rendered::default(), scope, error)
                    .await?;
                return Ok(waiting_for.is_empty().then_some(problem));
            }
        };
        let mut problem = None;
        for identity in &rendered.deletions {
            if scope.objects.find(identity).is_some() {
                self.writer.delete(identity).await?;
                scope.objects.remove(identity);
            }
        }
        if rendered.workload.is_none() {
            return self
                .delete_component_status(component, scope)
                .await
                .map(|()| None);
        }
        if waiting_for.is_empty()
            && let Err(error) = self.write_component(&rendered, &mut scope.objects).await
        {
            problem = Some(error);
        }
        self.update_component_status(
            component,
            &rendered,
            scope,
            problem.as_ref().map(|error| chain(error)),
        )
        .await?;
        problem.map_or(Ok(None), |error| Err(error.into()))
    }

    async fn write_component(
        &mut self,
        rendered: &Rendered,
        existing: &mut Objects,
    ) -> Result<(), support::apply::Error> {
        for manifest in &rendered.manifests {
            if manifest.writer == control_plane_component::declaration::Writer::Framework {
                self.writer.apply(&manifest.object, existing).await?;
            }
        }
        if let Some(workload) = &rendered.workload {
            self.writer.apply(workload, existing).await?;
        }
        Ok(())
    }

    /// Deletes the `ControlPlaneComponent` of a disabled component.
    async fn delete_component_status(
        &mut self,
        component: &Component,
        scope: &mut ReconcileScope,
    ) -> Result<(), Error> {
        if scope
            .objects
            .get(GROUP, "ControlPlaneComponent", component.name)
            .is_none()
        {
            return Ok(());
        }
        let api_version = "hypershift.openshift.io/v1beta1";
        let identity = Identity::new(api_version, "ControlPlaneComponent", component.name);
        self.writer.delete(&identity).await?;
        scope.objects.remove(&identity);
        Ok(())
    }

    /// Writes the `ControlPlaneComponent` and its status.
    async fn update_component_status(
        &mut self,
        component: &Component,
        rendered: &Rendered,
        scope: &mut ReconcileScope,
        error: Option<String>,
    ) -> Result<(), Error> {
        let kinds = [
            ("apps", "Deployment"),
            ("apps", "StatefulSet"),
            ("batch", "Job"),
            ("batch", "CronJob"),
        ];
        let live = kinds
            .iter()
            .find_map(|(group, kind)| scope.objects.get(group, kind, component.name));
        let before = scope
            .objects
            .get(GROUP, "ControlPlaneComponent", component.name);
        let before_status: ControlPlaneComponentStatus = before
            .and_then(|before| serde_json::from_value(before["status"].clone()).ok())
            .unwrap_or_default();
        let waiting_for = self.waiting_for(component, &scope.context(self.operator));
        let lacking = operands::waiting(component, &scope.context(self.operator));
        let desired = rendered.workload.as_ref();
        let observation = Observation {
            name: component.name,
            workload: live,
            is_current: live
                .zip(desired)
                .is_some_and(|(live, desired)| same_hash(live, desired)),
            waiting_for: &waiting_for,
            operands: &lacking,
            error,
        };
        let status = component_status(
            &observation,
            rendered.resources.clone(),
            &scope.releases.control_plane.version,
            scope.hcp.metadata.generation,
            &before_status,
            &Time(Timestamp::now()),
        );
        if before.is_some() && status == before_status {
            return Ok(());
        }
        let mut object = json!({
            "apiVersion": "hypershift.openshift.io/v1beta1",
            "kind": "ControlPlaneComponent",
            "metadata": { "name": component.name },
            "spec": {},
        });
        adopt(&mut object, &scope.context(self.operator));
        self.writer.apply(&object, &mut scope.objects).await?;
        object["status"] = without_nulls(json!(status));
        self.writer.status(object.clone(), &Value::Null).await?;
        scope.objects.insert(object);
        Ok(())
    }

    async fn write_status(
        &mut self,
        scope: &ReconcileScope,
        evaluations: Vec<Evaluation>,
        has_release: bool,
        has_failed: bool,
    ) -> Result<bool, Error> {
        let context = scope.context(self.operator);
        let now = Time(Timestamp::now());
        let conditions = status::conditions(&context, evaluations, has_failed, &now);
        let is_available = is_true(&conditions, Type::Available.as_str());
        let mut fields = status::fields(&context, is_available);
        status::versions(&context, has_release, &now, &mut fields);
        fields["conditions"] = json!(conditions);
        let object = json!({
            "apiVersion": "hypershift.openshift.io/v1beta1",
            "kind": "HostedControlPlane",
            "metadata": { "name": context.name(), "namespace": context.namespace() },
            "status": fields,
        });
        // Unknown fields are not written.
        let live = json!({ "status": scope.hcp.status });
        self.writer.status(without_nulls(object), &live).await?;
        Ok(is_available)
    }
}

/// Evaluates the user's configuration: what components refuse, and what is wrong with the network of the nodes.
fn configuration(
    problems: &[(&'static str, control_plane_component::Error)],
    network: Option<String>,
) -> Evaluation {
    let type_ = Type::ValidHostedControlPlaneConfiguration;
    let invalid = problems
        .iter()
        .find(|(_, error)| matches!(error, control_plane_component::Error::Invalid { .. }));
    let invalid = invalid.map(|(component, error)| format!("{component}: {error}"));
    match invalid.or(network) {
        Some(problem) => Evaluation::no(type_, "InvalidConfiguration", problem),
        None => Evaluation::yes(type_),
    }
}

fn same_hash(live: &Value, desired: &Value) -> bool {
    let hash = |object: &Value| {
        object["metadata"]["annotations"][control_plane_component::render::DESIRED_STATE_HASH]
            .clone()
    };
    hash(live) == hash(desired)
}

/// Whether reconciling is paused by the user.
pub(crate) fn is_paused(hcp: &HostedControlPlane, now: Timestamp) -> bool {
    match hcp.spec.paused_until.as_deref() {
        None | Some("" | "false") => false,
        Some("true") => true,
        Some(time) => time.parse::<Timestamp>().is_ok_and(|until| now < until),
    }
}

#[cfg(test)]
mod tests;
