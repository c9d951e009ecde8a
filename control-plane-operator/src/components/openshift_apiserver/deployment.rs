//! The pods, as far as they depend on the hosted control plane.

use control_plane_component::trust::TrustVolume;
use control_plane_component::{Context, Error, Result, Workload};
use k8s_openapi::api::core::v1::{ConfigMapVolumeSource, PodSpec, Volume, VolumeMount};

use super::config::image;
use super::{NAME, audit, edit, etcd_client, readiness};

/// Volume with CA certificates of users.
const TRUST: &str = "additional-trust-bundle";
/// The `ConfigMap` with the guest's service CA, once the guest has one.
const SERVICE_CA: &str = "service-serving-ca";
/// The init container that collects CA certificates.
const COLLECTOR: &str = "oas-trust-anchor-generator";

pub(super) fn adapt(context: &Context<'_>, workload: &mut Workload) -> Result<()> {
    let pod = edit::pod(workload);
    let server = edit::container(pod, NAME)?;
    if !context.is_oauth_enabled() {
        edit::args(server, ["--internal-oauth-disabled=true".to_owned()]);
    }
    edit::env(server, "NO_PROXY", etcd_client::unproxied_hosts(context));
    audit::mount_webhook(context, pod, NAME, "oas-audit-webhook")?;
    audit::remove_unused_logs(context, pod);
    mount_trust(context, pod)?;
    mount_service_ca(context, pod)?;
    readiness::add_check(context, pod);
    Ok(())
}

/// Mounts CA certificates of users, with which it verifies image registries.
fn mount_trust(context: &Context<'_>, pod: &mut PodSpec) -> Result<()> {
    let trust = trust(context)?;
    let server = edit::container(pod, NAME)?;
    let mounts = server.volume_mounts.get_or_insert_default();
    mounts.extend(trust.mounts());
    pod.volumes.get_or_insert_default().extend(trust.volume());
    Ok(())
}

fn trust(context: &Context<'_>) -> Result<TrustVolume> {
    let mut volume = TrustVolume::new(TRUST);
    if let Some(bundle) = &context.spec().additional_trust_bundle {
        let file = "additional-ca-bundle.pem";
        volume.add(&bundle.name, TrustVolume::KEY, file);
    }
    let registries = image(context).and_then(|image| image.additional_trusted_ca.as_ref());
    if let Some(reference) = registries.filter(|reference| !reference.name.is_empty()) {
        let name = &reference.name;
        // Its keys are host names of registries.
        let config_map = context.objects.config_map(name).ok_or_else(|| {
            let object = format!("ConfigMap {name}");
            Error::missing(object, "CA certificates of image registries")
        })?;
        for (index, key) in config_map
            .data
            .iter()
            .flatten()
            .map(|(key, _)| key)
            .enumerate()
        {
            volume.add(name, key, format!("image-registry-{}.pem", index + 1));
        }
    }
    Ok(volume)
}

/// Adds the guest's service CA to the collected CA certificates, once there is one: it signs the certificate of the
/// guest's image registry.
fn mount_service_ca(context: &Context<'_>, pod: &mut PodSpec) -> Result<()> {
    if context.objects.config_map(SERVICE_CA).is_none() {
        return Ok(());
    }
    let volume = "kube-controller-manager";
    let collector = edit::container(pod, COLLECTOR)?;
    collector
        .volume_mounts
        .get_or_insert_default()
        .push(VolumeMount {
            name: volume.to_owned(),
            mount_path: "/run/service-ca-signer".to_owned(),
            ..VolumeMount::default()
        });
    pod.volumes.get_or_insert_default().push(Volume {
        name: volume.to_owned(),
        config_map: Some(ConfigMapVolumeSource {
            name: SERVICE_CA.to_owned(),
            ..ConfigMapVolumeSource::default()
        }),
        ..Volume::default()
    });
    Ok(())
}
