//! Rollout order: dependencies between components.

use api::hypershift::v1beta1::ControlPlaneComponentStatus;
use serde::Deserialize as _;

use super::context::Context;
use super::declaration::Component;
use super::status::{AVAILABLE, ROLLOUT_COMPLETE, is_true};

const KUBE_API_SERVER: &str = "kube-apiserver";
/// API group of `ControlPlaneComponent`.
pub const GROUP: &str = "hypershift.openshift.io";
const ETCD: &str = "etcd";

/// Returns all dependencies of a component, including the implied one.
pub fn dependencies(component: &Component, context: &Context<'_>) -> Vec<&'static str> {
    let mut all: Vec<_> = component
        .depends_on
        .iter()
        .copied()
        .filter(|name| *name != ETCD || context.is_etcd_managed())
        .collect();
    let implied = component.name != KUBE_API_SERVER && !component.traits.independent;
    if implied && !all.contains(&KUBE_API_SERVER) {
        all.push(KUBE_API_SERVER);
    }
    all
}

/// Returns the dependencies that are not rolled out in the desired version.
pub fn missing(component: &Component, context: &Context<'_>) -> Vec<&'static str> {
    let mut all = dependencies(component, context);
    all.retain(|name| !is_rolled_out(name, context));
    all
}

fn is_rolled_out(name: &str, context: &Context<'_>) -> bool {
    let Some(object) = context.objects.get(GROUP, "ControlPlaneComponent", name) else {
        return false;
    };
    let status = ControlPlaneComponentStatus::deserialize(&object["status"]).unwrap_or_default();
    status.version.as_deref() == Some(context.release.version.as_str())
        && is_true(&status.conditions, AVAILABLE)
        && is_true(&status.conditions, ROLLOUT_COMPLETE)
}
