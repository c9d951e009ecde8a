//! One pass over the hosted control plane.

use api::conditions::ClusterCondition as Type;
use api::hypershift::v1beta1::{ControlPlaneComponentStatus, HostedControlPlane};
use control_plane_component::dependency::{GROUP, missing as missing_dependencies};
use control_plane_component::facts::Infra;
use control_plane_component::render::{Identity, Rendered, adopt, hashed, render};
use control_plane_component::status::{Observation, is_true, status as component_status};
use control_plane_component::workload::without_nulls;
use control_plane_component::write::ObjectWriter;
use control_plane_component::{Component, Context, Objects, Predicates, Release};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::{Value, json};
use support::error::chain;

use super::Operator;
use super::cache::Cache;
use super::deletion::{self, Due as Ending};
use super::error::Error;
use super::release::{Pair, Reader, missing_images};
use super::status::{self, Verdict};
use crate::infra;
use crate::pki::Scope;

/// One pass after the other.
pub(super) struct Pass<'a> {
    pub(super) operator: &'a Operator,
    pub(super) cache: &'a Cache,
    pub(super) writer: ObjectWriter,
    pub(super) reader: Reader,
    /// Why reconciling is skipped, as it was last logged.
    pub(super) told: Option<String>,
}

/// What a pass has read, and what it adds to that.
pub(super) struct World {
    pub(super) hcp: HostedControlPlane,
    pub(super) releases: Pair,
    pub(super) infra: Infra,
    pub(super) objects: Objects,
}

/// The results of all components.
#[derive(Default)]
struct Outcome {
    /// Those that cannot be rendered.
    problems: Vec<(&'static str, control_plane_component::Error)>,
    /// All that could not be written.
    failed: Option<Error>,
}

// === impl World ===

impl World {
    pub(super) fn context<'a>(&'a self, operator: &'a Operator) -> Context<'a> {
        Context {
            hcp: &self.hcp,
            release: &self.releases.control_plane,
            user_release: &self.releases.user,
            infra: &self.infra,
            objects: &self.objects,
            settings: &operator.settings,
            predicates: Predicates::Asked,
        }
    }
}

impl Pass<'_> {
    /// Reconciles once; returns whether the control plane is available.
    pub(super) async fn run(&mut self) -> Result<bool, Error> {
        let Some(hcp) = self.cache.hosted_control_plane() else {
            self.tell("There is no HostedControlPlane in the namespace");
            return Ok(false);
        };
        match deletion::due(&hcp, Timestamp::now()) {
            Ending::Hold => deletion::hold(&self.operator.client, &hcp, true).await?,
            Ending::Release => {
                deletion::hold(&self.operator.client, &hcp, false).await?;
                return Ok(true);
            }
            Ending::Nothing => return Ok(true),
            Ending::Wait | Ending::Reconcile => {}
        }
        if hcp.spec.release_image != self.operator.operate_on {
            // An operator of another release would undo what that one's does.
            self.tell("The HostedControlPlane is of another release than this operator");
            return Ok(false);
        }
        if is_paused(&hcp, Timestamp::now()) {
            self.tell("The HostedControlPlane is paused");
            return Ok(false);
        }
        self.told = None;
        self.reconcile(hcp).await
    }

    fn tell(&mut self, why: &str) {
        if self.told.as_deref() != Some(why) {
            tracing::info!(why, "Nothing is done");
            self.told = Some(why.to_owned());
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
                Pair {
                    control_plane: Release::default(),
                    user: Release::default(),
                },
                Some(unavailable),
            ),
        };
        let mut world = World {
            hcp,
            releases,
            infra: Infra::default(),
            objects,
        };
        if let Some(unavailable) = unavailable {
            // A control plane that is half of an unknown release is worse than none.
            let verdict = Verdict::no(
                Type::ValidReleaseInfo,
                unavailable.reason,
                unavailable.message,
            );
            world.infra = infra::facts(self.operator.components, &world.context(self.operator));
            return self.write_status(&world, vec![verdict], false, false).await;
        }
        // infrastructure
        let missing = self.infrastructure(&mut world).await?;
        let mut verdicts = vec![status::infrastructure(&missing)];
        // certificates, and components in their order
        let mut outcome = Outcome::default();
        if missing.is_empty() {
            self.default_account(&mut world).await?;
            self.etcd_first(&mut world).await?;
            self.certificates(&mut world, Scope::All).await?;
            self.kubeadmin(&mut world).await?;
            outcome = self.components(&mut world).await;
        }
        let context = world.context(self.operator);
        verdicts.push(match missing_images(&context, &outcome.problems) {
            Some(message) => Verdict::no(Type::ValidReleaseInfo, "MissingImages", message),
            None => Verdict::yes(Type::ValidReleaseInfo),
        });
        verdicts.push(configuration(&outcome.problems));
        let written = self
            .write_status(&world, verdicts, true, outcome.failed.is_some())
            .await;
        outcome.failed.map_or(written, Err)
    }

    async fn infrastructure(&mut self, world: &mut World) -> Result<Vec<&'static str>, Error> {
        let wanted = infra::wanted(self.operator.components, &world.context(self.operator));
        for which in &wanted.deletions {
            self.writer.delete(which).await?;
            world.objects.remove(which);
        }
        for object in &wanted.objects {
            self.writer.apply(object, &mut world.objects).await?;
        }
        world.infra = infra::facts(self.operator.components, &world.context(self.operator));
        let context = world.context(self.operator);
        Ok(infra::missing(
            self.operator.components,
            &context,
            &world.infra,
        ))
    }

    /// Pods without an account of their own pull images with the cluster's pull secret, too.
    async fn default_account(&mut self, world: &mut World) -> Result<(), Error> {
        let account = json!({
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": { "name": "default", "namespace": self.operator.namespace },
            "imagePullSecrets": [{ "name": "pull-secret" }],
        });
        Ok(self
            .writer
            .apply(&hashed(account), &mut world.objects)
            .await?)
    }

    /// Reconciles all components in their order. One that fails does not stop the others, and none of the failures is
    /// dropped: what cannot be rendered is reported, and what cannot be written is tried again.
    async fn components(&mut self, world: &mut World) -> Outcome {
        let mut outcome = Outcome::default();
        let mut failed = Vec::new();
        for component in self.operator.components.iter().filter(|it| it.runs()) {
            match self.component(component, world).await {
                Ok(None) => {}
                Ok(Some(problem)) => outcome.problems.push((component.name, problem)),
                Err(error) => {
                    tracing::warn!(
                        component = component.name,
                        error = chain(&error),
                        "Failed to write component"
                    );
                    failed.push((component.name, error));
                }
            }
        }
        outcome.failed = (!failed.is_empty()).then_some(Error::Components(failed));
        outcome
    }

    pub(super) async fn component(
        &mut self,
        component: &Component,
        world: &mut World,
    ) -> Result<Option<control_plane_component::Error>, Error> {
        let context = world.context(self.operator);
        let waits = missing_dependencies(component, &context);
        let rendered = match render(component, &context) {
            Ok(rendered) => rendered,
            Err(problem) => {
                // Its inputs may be written by what it waits for.
                let told = waits.is_empty().then(|| chain(&problem));
                self.tell_of(component, &Rendered::default(), world, told)
                    .await?;
                return Ok(waits.is_empty().then_some(problem));
            }
        };
        let mut problem = None;
        for which in &rendered.deletions {
            if world.objects.find(which).is_some() {
                self.writer.delete(which).await?;
                world.objects.remove(which);
            }
        }
        if rendered.workload.is_none() {
            return self.forget(component, world).await.map(|()| None);
        }
        if waits.is_empty()
            && let Err(error) = self.write_component(&rendered, &mut world.objects).await
        {
            problem = Some(error);
        }
        self.tell_of(
            component,
            &rendered,
            world,
            problem.as_ref().map(|error| chain(error)),
        )
        .await?;
        problem.map_or(Ok(None), |error| Err(error.into()))
    }

    async fn write_component(
        &mut self,
        rendered: &Rendered,
        there: &mut Objects,
    ) -> Result<(), support::apply::Error> {
        for manifest in &rendered.manifests {
            if manifest.writer == control_plane_component::declaration::Writer::Framework {
                self.writer.apply(&manifest.object, there).await?;
            }
        }
        if let Some(workload) = &rendered.workload {
            self.writer.apply(workload, there).await?;
        }
        Ok(())
    }

    /// A component that is disabled has no `ControlPlaneComponent`.
    async fn forget(&mut self, component: &Component, world: &mut World) -> Result<(), Error> {
        if world
            .objects
            .get(GROUP, "ControlPlaneComponent", component.name)
            .is_none()
        {
            return Ok(());
        }
        let api_version = "hypershift.openshift.io/v1beta1";
        let which = Identity::new(api_version, "ControlPlaneComponent", component.name);
        self.writer.delete(&which).await?;
        world.objects.remove(&which);
        Ok(())
    }

    /// Writes the `ControlPlaneComponent`.
    async fn tell_of(
        &mut self,
        component: &Component,
        rendered: &Rendered,
        world: &mut World,
        problem: Option<String>,
    ) -> Result<(), Error> {
        let kinds = [
            ("apps", "Deployment"),
            ("apps", "StatefulSet"),
            ("batch", "Job"),
            ("batch", "CronJob"),
        ];
        let live = kinds
            .iter()
            .find_map(|(group, kind)| world.objects.get(group, kind, component.name));
        let before = world
            .objects
            .get(GROUP, "ControlPlaneComponent", component.name);
        let before_status: ControlPlaneComponentStatus = before
            .and_then(|before| serde_json::from_value(before["status"].clone()).ok())
            .unwrap_or_default();
        let waits_for = missing_dependencies(component, &world.context(self.operator));
        let wanted = rendered.workload.as_ref();
        let seen = Observation {
            name: component.name,
            workload: live,
            is_current: live
                .zip(wanted)
                .is_some_and(|(live, wanted)| same_hash(live, wanted)),
            waits_for: &waits_for,
            problem,
        };
        let status = component_status(
            &seen,
            rendered.resources.clone(),
            &world.releases.control_plane.version,
            world.hcp.metadata.generation,
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
        adopt(&mut object, &world.context(self.operator));
        self.writer.apply(&object, &mut world.objects).await?;
        object["status"] = without_nulls(json!(status));
        self.writer.status(object.clone(), &Value::Null).await?;
        world.objects.insert(object);
        Ok(())
    }

    async fn write_status(
        &mut self,
        world: &World,
        verdicts: Vec<Verdict>,
        has_release: bool,
        has_failed: bool,
    ) -> Result<bool, Error> {
        let context = world.context(self.operator);
        let now = Time(Timestamp::now());
        let conditions = status::conditions(&context, verdicts, has_failed, &now);
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
        // What is not known is not written.
        let live = json!({ "status": world.hcp.status });
        self.writer.status(without_nulls(object), &live).await?;
        Ok(is_available)
    }
}

/// What the user's configuration lacks.
fn configuration(problems: &[(&'static str, control_plane_component::Error)]) -> Verdict {
    let type_ = Type::ValidHostedControlPlaneConfiguration;
    let invalid = problems
        .iter()
        .find(|(_, error)| matches!(error, control_plane_component::Error::Invalid { .. }));
    match invalid {
        Some((component, error)) => Verdict::no(
            type_,
            "InvalidConfiguration",
            format!("{component}: {error}"),
        ),
        None => Verdict::yes(type_),
    }
}

fn same_hash(live: &Value, wanted: &Value) -> bool {
    let hash = |object: &Value| {
        object["metadata"]["annotations"][control_plane_component::render::DESIRED_STATE_HASH]
            .clone()
    };
    hash(live) == hash(wanted)
}

fn is_paused(hcp: &HostedControlPlane, now: Timestamp) -> bool {
    match hcp.spec.paused_until.as_deref() {
        None | Some("" | "false") => false,
        Some("true") => true,
        Some(time) => time.parse::<Timestamp>().is_ok_and(|until| now < until),
    }
}

#[cfg(test)]
mod tests;
