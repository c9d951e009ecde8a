//! Resource requests: those of the manifest, of the live workload, and overrides.

use std::collections::BTreeMap;

use api::annotations::cluster::resource_request_overrides;
use k8s_openapi::api::core::v1::{PodTemplateSpec, ResourceRequirements};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

use super::{Component, Context, Result, Workload, containers_mut};
use crate::error::Error;

/// An extended resource: its request must equal its limit.
const DEVICE: &str = "aro.openshift.io/swift-nic";

/// Keeps the requests of the live workload, because an autoscaler may have set them.
pub(super) fn preserve_live(component: &Component, context: &Context<'_>, workload: &mut Workload) {
    let Some(live) = context
        .objects
        .get(workload.group(), workload.kind(), component.name)
    else {
        return;
    };
    let Ok(mut live) = Workload::read(live.clone()) else {
        return;
    };
    let mut live = live.template().spec.take().unwrap_or_default();
    let resources: BTreeMap<_, _> = containers_mut(&mut live)
        .filter_map(|container| Some((container.name.clone(), container.resources.take()?)))
        .filter(|(_, resources)| *resources != ResourceRequirements::default())
        .collect();
    let pod = workload.template().spec.get_or_insert_default();
    for container in containers_mut(pod) {
        if let Some(kept) = resources.get(&container.name) {
            container.resources = Some(kept.clone());
        }
    }
}

/// Applies the resource request overrides in annotations of the hosted control plane.
pub(super) fn overrides(
    component: &Component,
    context: &Context<'_>,
    template: &mut PodTemplateSpec,
) -> Result<()> {
    let overrides =
        resource_request_overrides(context.annotations()).map_err(|error| Error::Invalid {
            field: error.key.clone(),
            value: error.value.clone(),
            hint: format!("write {}", error.expected),
        })?;
    let pod = template.spec.get_or_insert_default();
    for request_override in overrides
        .iter()
        .filter(|request_override| request_override.workload == component.name)
    {
        for container in
            containers_mut(pod).filter(|container| container.name == request_override.container)
        {
            let resources = container.resources.get_or_insert_default();
            for (name, amount) in &request_override.requests {
                let amount = Quantity(amount.clone());
                if name == DEVICE {
                    let limits = resources.limits.get_or_insert_default();
                    limits.insert(name.clone(), amount.clone());
                }
                let requests = resources.requests.get_or_insert_default();
                requests.insert(name.clone(), amount);
            }
        }
    }
    Ok(())
}
