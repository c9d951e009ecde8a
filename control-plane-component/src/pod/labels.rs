//! Labels and annotations of workloads and of their pods.

use api::annotations::cluster::RESTART_DATE;
use api::group::LABEL_DOMAIN;
use k8s_openapi::api::core::v1::PodTemplateSpec;

use super::{Component, Context, Workload};

/// Label: the operator that manages a workload.
const MANAGED_BY: &str = "hypershift.openshift.io/managed-by";
/// Label: the hosted control plane that a pod or a Route belongs to.
pub(crate) const HOSTED_CONTROL_PLANE: &str = "hypershift.openshift.io/hosted-control-plane";
const OURS: &str = "control-plane-operator";
const COMPONENT: &str = "hypershift.openshift.io/control-plane-component";
const MANAGEMENT_API: &str = "hypershift.openshift.io/need-management-kas-access";
const REQUEST_SERVING: &str = "hypershift.openshift.io/request-serving-component";
const RELEASE_IMAGE: &str = "hypershift.openshift.io/release-image";
const EVICT_LOCAL: &str = "cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes";

/// Labels that selectors of the control plane use.
const SELECTED: [&str; 3] = ["app", "k8s-app", "kubevirt.io"];
/// Prefixes of such labels.
const SELECTED_PREFIXES: [&str; 3] = [LABEL_DOMAIN, "hypershift.openshift.io", "kubevirt.io"];

/// Sets the managed-by label of a workload.
pub(super) fn managed_by(workload: &mut Workload) {
    let labels = workload.metadata().labels.get_or_insert_default();
    labels.insert(MANAGED_BY.to_owned(), OURS.to_owned());
}

/// Sets an annotation of the pods.
pub(super) fn annotate(template: &mut PodTemplateSpec, key: &str, value: String) {
    let metadata = template.metadata.get_or_insert_default();
    let annotations = metadata.annotations.get_or_insert_default();
    annotations.insert(key.to_owned(), value);
}

/// Sets the pod labels that NetworkPolicies and Services select by.
pub(super) fn pod(component: &Component, context: &Context<'_>, template: &mut PodTemplateSpec) {
    let metadata = template.metadata.get_or_insert_default();
    let labels = metadata.labels.get_or_insert_default();
    let mut set = |key: &str, value: &str| {
        labels.insert(key.to_owned(), value.to_owned());
    };
    set(COMPONENT, component.name);
    set(HOSTED_CONTROL_PLANE, context.namespace());
    if component.traits.management_api {
        set(MANAGEMENT_API, "true");
    }
    if component.traits.request_serving {
        set(REQUEST_SERVING, "true");
    }
    for (key, value) in &context.spec().labels {
        if !is_reserved(key) {
            labels.entry(key.clone()).or_insert_with(|| value.clone());
        }
    }
}

/// Whether users cannot set a label, because NetworkPolicies and Services select pods by it.
pub fn is_reserved(key: &str) -> bool {
    let prefix = key.split_once('/').map_or("", |(prefix, _)| prefix);
    SELECTED.contains(&key)
        || SELECTED_PREFIXES
            .iter()
            .any(|it| prefix == *it || prefix.ends_with(&format!(".{it}")))
}

/// Sets the pod annotations. A new release or restart date rolls out new pods.
pub(super) fn annotations(context: &Context<'_>, template: &mut PodTemplateSpec) {
    annotate(
        template,
        RELEASE_IMAGE,
        context.spec().release_image.clone(),
    );
    if let Some(date) = context.annotation(RESTART_DATE.key()) {
        annotate(template, RESTART_DATE.key(), date.to_owned());
    }
    let pod = template.spec.get_or_insert_default();
    let local = pod
        .volumes
        .iter()
        .flatten()
        .filter(|volume| volume.empty_dir.is_some() || volume.host_path.is_some());
    let names: Vec<_> = local.map(|volume| volume.name.clone()).collect();
    if !names.is_empty() {
        annotate(template, EVICT_LOCAL, names.join(","));
    }
}
