//! Renders a declaration and a context to objects. It is pure, so that the output can be tested and shown without a
//! cluster.

use api::hypershift::v1beta1::HostedControlPlane;
use api::hypershift::v1beta1::control_plane_component::ComponentResource;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::asset::Asset;
use super::capi_use::{CapiUse, USES_CAPI};
use super::context::Context;
use super::declaration::{Component, Rule, Writer};
use super::error::{Error, Result};
use super::objects::{self, Objects};
use super::workload::Workload;
use super::{monitoring, pod, sidecar};

/// Annotation: hash of the desired state, to detect changes.
pub const DESIRED_STATE_HASH: &str = "hypershift.openshift.io/desired-state-hash";
/// Label: the kind of kubeconfig that a Secret holds.
pub const KUBECONFIG: &str = "hypershift.openshift.io/kubeconfig";
const WORKLOADS: [&str; 4] = [
    "deployment.yaml",
    "statefulset.yaml",
    "job.yaml",
    "cronjob.yaml",
];
const HASH_LENGTH: usize = 16;

/// The rendered objects of a component.
#[derive(Debug, Clone, Default)]
pub struct Rendered {
    /// Objects other than the workload, in the order in which they are applied.
    pub manifests: Vec<Manifest>,
    /// The workload; `None` if the component is disabled.
    pub workload: Option<Value>,
    /// Objects to delete.
    pub deletions: Vec<Identity>,
    /// References to the objects, for the status.
    pub resources: Vec<ComponentResource>,
}

/// An object other than the workload.
#[derive(Debug, Clone)]
pub struct Manifest {
    /// The object.
    pub object: Value,
    /// The owner that writes it.
    pub writer: Writer,
}

/// Identity of an object in the hosted control plane's namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// Group and version.
    pub api_version: String,
    /// Kind.
    pub kind: String,
    /// Name.
    pub name: String,
}

/// Renders a component.
pub fn render(component: &Component, context: &Context<'_>) -> Result<Rendered> {
    let mut rendered = Rendered::default();
    let mut mounted = context.objects.clone();
    if !component.is_enabled(context) {
        return render_disabled(component, context);
    }
    for asset in component.assets.iter().filter(|asset| !is_workload(asset)) {
        render_manifest(component, context, asset, &mut rendered)?;
    }
    if component.service_account.is_some() {
        rendered.add_service_account(component, context);
    }
    for manifest in &rendered.manifests {
        if manifest.writer == Writer::Framework {
            mounted.insert(manifest.object.clone());
        }
    }
    let workload = render_workload(component, context, &mounted)?;
    rendered
        .deletions
        .extend(replaced(component, context, &workload));
    rendered.workload = Some(workload);
    Ok(rendered)
}

/// Returns all objects of a disabled component as deletions.
fn render_disabled(component: &Component, context: &Context<'_>) -> Result<Rendered> {
    let objects = component.assets.iter().map(|asset| {
        let mut object = asset.object(component.name, context.namespace(), context.name())?;
        monitoring::set_group(&mut object, context);
        Ok(identity(&object))
    });
    let mut deletions: Vec<_> = objects.collect::<Result<_>>()?;
    if component.service_account.is_some() {
        deletions.push(Identity {
            api_version: "v1".to_owned(),
            kind: "Secret".to_owned(),
            name: component.service_account_secret(),
        });
    }
    deletions.retain(|identity| is_served(&identity.api_version, context));
    Ok(Rendered {
        deletions,
        ..Rendered::default()
    })
}

/// Renders one object other than the workload.
fn render_manifest(
    component: &Component,
    context: &Context<'_>,
    asset: &Asset,
    rendered: &mut Rendered,
) -> Result<()> {
    let none = Rule::default();
    let rule = component.rules.get(asset.file).unwrap_or(&none);
    let mut object = asset.object(component.name, context.namespace(), context.name())?;
    monitoring::set_group(&mut object, context);
    let identity = identity(&object);
    if !is_served(&identity.api_version, context) {
        return Ok(());
    }
    if rule.enabled.is_some_and(|enabled| !enabled(context)) {
        rendered.deletions.push(identity);
        return Ok(());
    }
    if let Some(adapt) = &rule.adapt {
        object = adapt(context, object)?;
    }
    adopt(&mut object, context);
    apply_defaults(component, context, &mut object)?;
    rendered.resources.push(resource(&identity));
    rendered.manifests.push(Manifest {
        object: hashed(object),
        writer: rule.writer,
    });
    Ok(())
}

fn render_workload(
    component: &Component,
    context: &Context<'_>,
    mounted: &Objects,
) -> Result<Value> {
    let invalid = |file: &str, source: Box<dyn std::error::Error + Send + Sync>| Error::Manifest {
        component: component.name,
        file: file.to_owned(),
        kind: "workload",
        source,
    };
    let asset = component
        .assets
        .iter()
        .find(|asset| is_workload(asset))
        .ok_or_else(|| invalid("of the workload", "no workload manifest".into()))?;
    let object = asset.object(component.name, context.namespace(), context.name())?;
    let mut workload =
        Workload::read(object).map_err(|source| invalid(asset.file, source.into()))?;
    if let Some(adapt) = &component.adapt {
        adapt(context, &mut workload)?;
    }
    pod::apply(component, context, mounted, &mut workload)?;
    configure_capi(component, context, &mut workload)?;
    let mut object = workload.object();
    adopt(&mut object, context);
    Ok(hashed(object))
}

/// Returns the live workload if it must be deleted before the rendered one is written.
fn replaced(component: &Component, context: &Context<'_>, workload: &Value) -> Option<Identity> {
    let identity = identity(workload);
    let live = context.objects.find(&identity)?;
    component.replaces?(live).then_some(identity)
}

/// Labels a workload that uses Cluster API, and adds the proxy sidecar if it needs one.
///
/// A migration stops only Deployments: a workload of another kind would continue to write while objects are moved.
fn configure_capi(
    component: &Component,
    context: &Context<'_>,
    workload: &mut Workload,
) -> Result<()> {
    let Some(label) = component.capi.label() else {
        return Ok(());
    };
    let Workload::Deployment(deployment) = workload else {
        return Err(Error::CapiWithoutDeployment {
            component: component.name,
            kind: workload.kind(),
        });
    };
    let labels = deployment.metadata.labels.get_or_insert_default();
    labels.insert(USES_CAPI.to_owned(), label.to_owned());
    let is_private = context.settings.capi_types == api::group::CapiTypes::Private;
    if let Some(image) = &context.settings.capi_proxy_image
        && is_private
        && component.capi == CapiUse::Proxied
    {
        let image = image.clone();
        sidecar::Sidecar { image }.add_to(deployment)?;
    }
    Ok(())
}

impl Rendered {
    /// Adds the Secret with the kubeconfig for the component's service account. PKI fills it in.
    fn add_service_account(&mut self, component: &Component, context: &Context<'_>) {
        let name = component.service_account_secret();
        let mut object = json!({
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": { "name": name, "labels": { KUBECONFIG: "local" } },
            "data": { "ca.crt": "", "kubeconfig": "", "tls.crt": "", "tls.key": "" },
            "type": "Opaque",
        });
        adopt(&mut object, context);
        self.resources.push(resource(&identity(&object)));
        self.manifests.push(Manifest {
            object: hashed(object),
            writer: Writer::Pki,
        });
    }

    /// Returns all objects, the workload last.
    pub fn objects(&self) -> impl Iterator<Item = &Value> {
        let manifests = self.manifests.iter().map(|manifest| &manifest.object);
        manifests.chain(&self.workload)
    }
}

fn is_workload(asset: &Asset) -> bool {
    WORKLOADS.contains(&asset.file)
}

/// Returns the identity of an object.
pub fn identity(object: &Value) -> Identity {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    Identity {
        api_version: text(&object["apiVersion"]),
        kind: text(&object["kind"]),
        name: text(&object["metadata"]["name"]),
    }
}

impl Identity {
    /// Creates an identity from API version, kind and name.
    pub fn new(api_version: &str, kind: &str, name: &str) -> Self {
        Self {
            api_version: api_version.to_owned(),
            kind: kind.to_owned(),
            name: name.to_owned(),
        }
    }

    /// The API group.
    pub fn group(&self) -> &str {
        objects::group(&self.api_version)
    }
}

fn resource(identity: &Identity) -> ComponentResource {
    ComponentResource {
        kind: identity.kind.clone(),
        group: identity.group().to_owned(),
        name: identity.name.clone(),
    }
}

/// Whether the management cluster serves the API group: built-in groups, and those found by discovery.
fn is_served(api_version: &str, context: &Context<'_>) -> bool {
    let group = objects::group(api_version);
    let own = !group.contains('.') || group.ends_with(".k8s.io");
    own || context
        .settings
        .served_groups
        .iter()
        .any(|served| served == group)
}

/// Sets the namespace of an object and its owner reference to the hosted control plane.
pub fn adopt(object: &mut Value, context: &Context<'_>) {
    object["metadata"]["namespace"] = json!(context.namespace());
    object["metadata"]["ownerReferences"] = json!([owner(context.hcp)]);
}

/// The owner reference to a hosted control plane.
pub fn owner(hcp: &HostedControlPlane) -> Value {
    json!({
        "apiVersion": "hypershift.openshift.io/v1beta1",
        "kind": "HostedControlPlane",
        "name": hcp.metadata.name.as_deref().unwrap_or_default(),
        "uid": hcp.metadata.uid.as_deref().unwrap_or_default(),
        "controller": true,
        "blockOwnerDeletion": true,
    })
}

/// Sets the common fields of objects of some kinds.
fn apply_defaults(component: &Component, context: &Context<'_>, object: &mut Value) -> Result<()> {
    match object["kind"].as_str() {
        Some("RoleBinding") => {
            for subject in object["subjects"].as_array_mut().into_iter().flatten() {
                if subject["kind"] == "ServiceAccount" {
                    subject["namespace"] = json!(context.namespace());
                }
            }
        }
        Some("ServiceAccount") => {
            object["imagePullSecrets"] = json!([{ "name": "pull-secret" }]);
        }
        Some("ServiceMonitor" | "PodMonitor" | "PrometheusRule") => {
            monitoring::adapt(object, context, &component.metrics)?;
        }
        _ => {}
    }
    Ok(())
}

/// Annotates an object with the hash of its desired state.
pub fn hashed(mut object: Value) -> Value {
    let digest = Sha256::digest(object.to_string());
    let mut hash = format!("{digest:x}");
    hash.truncate(HASH_LENGTH);
    object["metadata"]["annotations"][DESIRED_STATE_HASH] = json!(hash);
    object
}
