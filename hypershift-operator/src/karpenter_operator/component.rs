//! Component `karpenter`: Karpenter itself, which acts in the hosted cluster and in EC2, and has no rights on the management
//! cluster. The rollout of it and of this program is reported in their ControlPlaneComponents.

use std::collections::BTreeMap;

use api::annotations::cluster::KARPENTER_PROVIDER_AWS_IMAGE;
use api::hypershift::v1beta1::control_plane_component::ComponentResource;
use api::hypershift::v1beta1::{
    ControlPlaneComponent, ControlPlaneComponentStatus, HostedControlPlane,
};
use control_plane_component::dependency::{GROUP, missing};
use control_plane_component::facts::Infra;
use control_plane_component::render::{
    DESIRED_STATE_HASH, Identity, Rendered, adopt, identity, render,
};
use control_plane_component::status::{Observation, status};
use control_plane_component::workload::without_nulls;
use control_plane_component::{
    Component, Context as Rendering, Objects, Predicates, Prober, Release, Workload, assets, write,
};
use jiff::Timestamp;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt as _;
use serde::Deserialize as _;
use serde_json::{Value, json};
use support::error::chain;

use super::context::Context;
use super::control_plane::region;
use super::error::Error;
use crate::facts::auto_node::COMPONENTS;
use crate::{kinds, names};

/// The name that releases have for the image of Karpenter.
const IMAGE: &str = "aws-karpenter-provider-aws";
/// The volume with the kubeconfig of the hosted cluster.
const KUBECONFIG: &str = "target-kubeconfig";

/// What rendering depends on.
struct Inputs {
    release: Release,
    infra: Infra,
    objects: Objects,
}

/// The state of a component, besides its live Deployment.
struct State<'a> {
    name: &'a str,
    is_current: bool,
    waiting_for: &'a [&'static str],
    resources: Vec<ComponentResource>,
    error: Option<String>,
}

/// Writes the component once this program is rolled out, and reports both. Returns whether something is waited for.
pub(super) async fn pass(ctx: &Context, hcp: &HostedControlPlane) -> Result<bool, Error> {
    let mut inputs = inputs(ctx, hcp).await?;
    let now = Timestamp::now();
    let own = report(&inputs.rendering(ctx, hcp), own(&inputs), now);
    if let Some(report) = own {
        write_report(ctx, &report).await?;
        inputs.objects.insert(report);
    }
    let component = component();
    let rendering = inputs.rendering(ctx, hcp);
    let waiting_for = missing(&component, &rendering);
    let waits = waits(&rendering);
    let is_waiting = waits.is_some() || !waiting_for.is_empty();
    let rendered = match waits {
        None => render(&component, &rendering).map_err(|error| (chain(&error), Some(error))),
        Some(problem) => Err((problem, None)),
    };
    let (rendered, error, mut failed) = match rendered {
        Ok(rendered) => (rendered, None, None),
        Err((problem, error)) => (Rendered::default(), Some(problem), error.map(Error::Render)),
    };
    if waiting_for.is_empty() {
        for object in rendered.objects() {
            let resource = write::resource(&identity(object));
            match ctx.here.apply_value(&resource, object.clone()).await {
                Ok(applied) => inputs
                    .objects
                    .insert(write::value(&resource, &applied.object)),
                Err(error) => {
                    failed = Some(error.into());
                    break;
                }
            }
        }
    }
    let rendering = inputs.rendering(ctx, hcp);
    let live = rendering
        .objects
        .get("apps", "Deployment", names::KARPENTER);
    let desired = rendered.workload.as_ref();
    let state = State {
        name: names::KARPENTER,
        is_current: live
            .zip(desired)
            .is_some_and(|(live, it)| hash(live) == hash(it)),
        waiting_for: &waiting_for,
        resources: rendered.resources.clone(),
        error: failed.as_ref().map(|it| chain(it)).or(error),
    };
    if let Some(report) = report(&rendering, state, now) {
        write_report(ctx, &report).await?;
    }
    failed.map_or(Ok(is_waiting), Err)
}

/// Karpenter. It starts before nodes can join, and waits for the hosted cluster itself.
fn component() -> Component {
    let manifests =
        assets!("karpenter": "deployment.yaml", "podmonitor.yaml", "serviceaccount.yaml");
    Component::new(names::KARPENTER, manifests)
        .independent()
        .management_api()
        .depends_on(&[names::KARPENTER_OPERATOR])
        .prober(Prober::default())
        .adapt(|rendering, workload| {
            adapt(rendering, workload);
            Ok(())
        })
}

fn adapt(rendering: &Rendering<'_>, workload: &mut Workload) {
    let infra_id = &rendering.spec().infra_id;
    let pod = workload.template().spec.get_or_insert_default();
    for volume in pod.volumes.iter_mut().flatten() {
        if volume.name == KUBECONFIG
            && let Some(secret) = &mut volume.secret
        {
            secret.secret_name = Some(kubeconfig(infra_id));
        }
    }
    if let Some(container) = pod.containers.first_mut() {
        let variables = json!([
            { "name": "AWS_REGION", "value": region(rendering.hcp) },
            { "name": "CLUSTER_NAME", "value": infra_id },
        ]);
        crate::platform::add(&mut container.env, variables);
    }
}

/// The Secret with the kubeconfig of Cluster API.
fn kubeconfig(infra_id: &str) -> String {
    format!("{infra_id}-kubeconfig")
}

/// What is missing for its pods to start.
fn waits(rendering: &Rendering<'_>) -> Option<String> {
    let status = rendering.hcp.status.as_ref();
    if status.is_none_or(|it| it.kube_config.is_none()) {
        return Some("Waiting for the kubeconfig of the hosted cluster".to_owned());
    }
    let secrets = [
        kubeconfig(&rendering.spec().infra_id),
        names::KARPENTER_CREDENTIALS.to_owned(),
    ];
    let mut missing = secrets
        .into_iter()
        .filter(|it| rendering.objects.secret(it).is_none());
    let name = missing.next()?;
    Some(format!("Waiting for Secret {name}"))
}

async fn inputs(ctx: &Context, hcp: &HostedControlPlane) -> Result<Inputs, Error> {
    let spec = &hcp.spec;
    let image = spec
        .control_plane_release_image
        .as_ref()
        .unwrap_or(&spec.release_image);
    let (pull_secret, _) = ctx.pull_secret().await?;
    let release = ctx.releases(hcp).get(image, &pull_secret).await;
    let release = Release::from(&*release.map_err(Error::Release)?);
    let mut found = Vec::new();
    for name in [
        kubeconfig(&spec.infra_id).as_str(),
        names::KARPENTER_CREDENTIALS,
    ] {
        found.extend(ctx.get::<Secret>(name).await?.map(|it| json!(it)));
    }
    for name in COMPONENTS {
        found.extend(ctx.get::<Deployment>(name).await?.map(|it| json!(it)));
        let report = ctx.get::<ControlPlaneComponent>(name).await?;
        found.extend(report.map(|it| json!(it)));
    }
    let mut objects = Objects::default();
    for object in found {
        objects.insert(object);
    }
    Ok(Inputs {
        release: release.with_overrides(&ctx.settings.own_image, &overrides(ctx, hcp)),
        infra: Infra::default(),
        objects,
    })
}

/// Images that are not those of the release.
fn overrides(ctx: &Context, hcp: &HostedControlPlane) -> BTreeMap<String, String> {
    let mut overrides = ctx.settings.image_overrides.clone();
    let other = KARPENTER_PROVIDER_AWS_IMAGE.get(hcp.annotations());
    overrides.extend(other.ok().flatten().map(|image| (IMAGE.to_owned(), image)));
    overrides
}

/// The state of this program, which the operator of hosted clusters has rendered.
fn own(inputs: &Inputs) -> State<'static> {
    let name = names::KARPENTER_OPERATOR;
    let workload = Identity::new("apps/v1", "Deployment", name);
    State {
        name,
        is_current: inputs.objects.find(&workload).is_some(),
        waiting_for: &[],
        resources: vec![ComponentResource {
            kind: workload.kind.clone(),
            group: workload.group().to_owned(),
            name: workload.name,
        }],
        error: None,
    }
}

/// A ControlPlaneComponent with its status, if it is not there or has another one.
fn report(rendering: &Rendering<'_>, state: State<'_>, now: Timestamp) -> Option<Value> {
    let State {
        name,
        is_current,
        waiting_for,
        resources,
        error,
    } = state;
    let before = rendering.objects.get(GROUP, "ControlPlaneComponent", name);
    let status_before = before
        .and_then(|it| ControlPlaneComponentStatus::deserialize(&it["status"]).ok())
        .unwrap_or_default();
    let observation = Observation {
        name,
        workload: rendering.objects.get("apps", "Deployment", name),
        is_current,
        waiting_for,
        operands: &[],
        error,
    };
    let now = Timestamp::from_second(now.as_second()).unwrap_or(now);
    let status = status(
        &observation,
        resources,
        &rendering.release.version,
        rendering.hcp.metadata.generation,
        &status_before,
        &Time(now),
    );
    if before.is_some() && status == status_before {
        return None;
    }
    let mut object = json!({
        "apiVersion": "hypershift.openshift.io/v1beta1",
        "kind": "ControlPlaneComponent",
        "metadata": { "name": name },
        "spec": {},
        "status": without_nulls(json!(status)),
    });
    adopt(&mut object, rendering);
    Some(object)
}

async fn write_report(ctx: &Context, report: &Value) -> Result<(), Error> {
    let resource = kinds::control_plane_component();
    ctx.here.ensure_value(&resource, report.clone()).await?;
    ctx.here.ensure_status(&resource, report.clone()).await?;
    Ok(())
}

fn hash(object: &Value) -> &Value {
    &object["metadata"]["annotations"][DESIRED_STATE_HASH]
}

// === impl Inputs ===

impl Inputs {
    fn rendering<'a>(&'a self, ctx: &'a Context, hcp: &'a HostedControlPlane) -> Rendering<'a> {
        Rendering {
            hcp,
            release: &self.release,
            user_release: &self.release,
            infra: &self.infra,
            objects: &self.objects,
            settings: &ctx.settings,
            predicates: Predicates::Evaluated,
        }
    }
}

#[cfg(test)]
mod tests;
