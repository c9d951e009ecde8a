//! The common settings of all components' pods, in the order in which they depend on each other.

mod config_hash;
mod containers;
mod konnectivity;
mod labels;
mod minter;
mod prober;
mod replicas;
mod requests;
mod scheduling;
mod security;
mod volumes;

pub use labels::is_reserved as is_reserved_label;
pub use security::NEED_METRICS;

use k8s_openapi::api::core::v1::{
    ConfigMapVolumeSource, Container, EmptyDirVolumeSource, PodSpec, ResourceRequirements,
    SecretVolumeSource, Volume, VolumeMount,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

use super::context::Context;
use super::declaration::Component;
use super::error::Result;
use super::objects::Objects;
use super::workload::Workload;

/// Mode of files from Secrets: other users cannot read them.
const SECRET_MODE: i32 = 0o640;
/// Mode of files from ConfigMaps.
const CONFIG_MODE: i32 = 0o644;
/// Path of this binary in its image.
pub(crate) const PROGRAM: &str = "/usr/bin/control-plane-operator";

/// Applies the common settings to a workload.
///
/// `mounted` are the objects that its volumes can reference: existing ones, and those written in the same reconcile.
pub(crate) fn apply(
    component: &Component,
    context: &Context<'_>,
    mounted: &Objects,
    workload: &mut Workload,
) -> Result<()> {
    labels::managed_by(workload);
    let replicas = replicas::set(component, context, workload)?;
    replicas::strategy(component, replicas, workload);
    let template = workload.template();
    let pod = template.spec.get_or_insert_default();
    volumes::modes(pod);
    containers::images(pod, context)?;
    volumes::service_account_kubeconfig(component, pod);
    konnectivity::add(component, context, pod)?;
    minter::add(component, context, pod)?;
    let hash = config_hash::of(pod, mounted);
    labels::annotate(template, config_hash::KEY, hash);
    let pod = template.spec.get_or_insert_default();
    prober::add(component, context, pod)?;
    containers::defaults(pod);
    volumes::temporary(pod);
    security::token(component, template);
    let pod = template.spec.get_or_insert_default();
    security::context(component, context, pod);
    requests::preserve_live(component, context, workload);
    let template = workload.template();
    scheduling::priority(component, context, template)?;
    labels::pod(component, context, template);
    labels::annotations(context, template);
    scheduling::placement(component, context, template)?;
    requests::overrides(component, context, template)?;
    scheduling::spread(component, context, replicas, template);
    Ok(())
}

/// All containers, init containers first.
fn containers_mut(pod: &mut PodSpec) -> impl Iterator<Item = &mut Container> {
    pod.init_containers
        .iter_mut()
        .flatten()
        .chain(&mut pod.containers)
}

fn mount(name: &str, path: &str) -> VolumeMount {
    VolumeMount {
        name: name.to_owned(),
        mount_path: path.to_owned(),
        ..VolumeMount::default()
    }
}

fn secret_volume(name: &str, secret: &str) -> Volume {
    Volume {
        name: name.to_owned(),
        secret: Some(SecretVolumeSource {
            secret_name: Some(secret.to_owned()),
            default_mode: Some(SECRET_MODE),
            ..SecretVolumeSource::default()
        }),
        ..Volume::default()
    }
}

fn config_volume(name: &str, config_map: &str) -> Volume {
    Volume {
        name: name.to_owned(),
        config_map: Some(ConfigMapVolumeSource {
            name: config_map.to_owned(),
            default_mode: Some(CONFIG_MODE),
            ..ConfigMapVolumeSource::default()
        }),
        ..Volume::default()
    }
}

fn empty_volume(name: &str, medium: Option<&str>) -> Volume {
    Volume {
        name: name.to_owned(),
        empty_dir: Some(EmptyDirVolumeSource {
            medium: medium.map(str::to_owned),
            size_limit: None,
        }),
        ..Volume::default()
    }
}

/// Adds a volume unless one of this name exists.
fn add_volume(pod: &mut PodSpec, volume: Volume) {
    let volumes = pod.volumes.get_or_insert_default();
    if volumes.iter().all(|other| other.name != volume.name) {
        volumes.push(volume);
    }
}

/// Resource requests of helper containers.
fn helper_requests() -> ResourceRequirements {
    let requests = [("cpu", "10m"), ("memory", "30Mi")];
    ResourceRequirements {
        requests: Some(
            requests
                .map(|(name, amount)| (name.to_owned(), Quantity(amount.to_owned())))
                .into(),
        ),
        ..ResourceRequirements::default()
    }
}

#[cfg(test)]
mod tests;
