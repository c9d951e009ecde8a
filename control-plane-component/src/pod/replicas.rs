//! Replicas and update strategy.

use api::annotations::cluster::DEBUG_DEPLOYMENTS;
use k8s_openapi::api::apps::v1::{DeploymentSpec, DeploymentStrategy, RollingUpdateDeployment};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::{Component, Context, Result, Workload};
use crate::declaration::Class;
use crate::error::Error;

/// Sets and returns the number of replicas.
pub(super) fn set(
    component: &Component,
    context: &Context<'_>,
    workload: &mut Workload,
) -> Result<i32> {
    let Some(replicas) = workload.replicas() else {
        return Ok(1);
    };
    let debugged = DEBUG_DEPLOYMENTS
        .get(context.annotations())
        .map_err(|error| Error::Invalid {
            field: error.key.clone(),
            value: error.value.clone(),
            hint: format!("write {}", error.expected),
        })?;
    let number = match *replicas {
        _ if debugged.is_some_and(|names| names.iter().any(|name| name == component.name)) => 0,
        Some(fixed) => fixed,
        None => default_replicas(component, context),
    };
    *replicas = Some(number);
    Ok(number)
}

fn default_replicas(component: &Component, context: &Context<'_>) -> i32 {
    if context.is_single_replica() {
        return 1;
    }
    if context.is_dedicated() && component.traits.request_serving {
        return 2;
    }
    match component.traits.class {
        Class::Etcd | Class::ApiCritical => 3,
        Class::Standard => 2,
    }
}

/// Sets the rolling update strategy.
pub(super) fn strategy(component: &Component, replicas: i32, workload: &mut Workload) {
    let Workload::Deployment(deployment) = workload else {
        return;
    };
    let spec = deployment.spec.get_or_insert_default();
    spec.revision_history_limit.get_or_insert(2);
    if replicas > 1 && !is_recreated(spec) {
        let (surge, unavailable) = match replicas {
            2 => (1, i32::from(component.traits.request_serving)),
            _ => (0, 1),
        };
        spec.strategy = Some(DeploymentStrategy {
            type_: Some("RollingUpdate".to_owned()),
            rolling_update: Some(RollingUpdateDeployment {
                max_surge: Some(IntOrString::Int(surge)),
                max_unavailable: Some(IntOrString::Int(unavailable)),
            }),
        });
    }
}

fn is_recreated(spec: &DeploymentSpec) -> bool {
    let strategy = spec.strategy.as_ref();
    strategy.is_some_and(|strategy| strategy.type_.as_deref() == Some("Recreate"))
}
