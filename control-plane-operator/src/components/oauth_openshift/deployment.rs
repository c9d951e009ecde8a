//! The pods of the OAuth server, as far as they depend on the hosted control plane.

use api::hypershift::v1beta1::configuration::oauth::OAuthTemplates;
use api::hypershift::v1beta1::platform::PlatformType;
use api::hypershift::v1beta1::references::NameReference;
use control_plane_component::{Context, Error, Result, Workload};
use k8s_openapi::api::core::v1::{PodSpec, PodTemplateSpec, Volume, VolumeMount};

use super::config::{named_certificate_path, named_certificates, requested};
use super::{NAME, audit, identity_providers};
use crate::components::edit;
use crate::kubeadmin;

/// Mount path of the kubeconfig of the audit webhook.
const WEBHOOK: &str = "/etc/kubernetes/auditwebhook";

pub(super) fn adapt(context: &Context<'_>, workload: &mut Workload) -> Result<()> {
    kubeadmin_hash(context, workload.template());
    let pod = edit::pod(workload);
    audit_log(context, pod)?;
    no_proxy(context, pod)?;
    certificates(context, pod)?;
    templates(context, pod)?;
    let converted = identity_providers::convert(context);
    let mut mounts = converted.mounts;
    mounts.sort_by(|one, other| one.name.cmp(&other.name));
    add(pod, converted.volumes, mounts)
}

/// The server reads the password at its start, so a new password restarts it.
fn kubeadmin_hash(context: &Context<'_>, template: &mut PodTemplateSpec) {
    let Some(secret) = context.objects.secret(kubeadmin::SECRET) else {
        return;
    };
    let mut annotations = secret.metadata.annotations.unwrap_or_default();
    let hash = annotations.remove(kubeadmin::HASH).unwrap_or_default();
    let metadata = template.metadata.get_or_insert_default();
    let annotations = metadata.annotations.get_or_insert_default();
    annotations.insert(kubeadmin::HASH.to_owned(), hash);
}

fn audit_log(context: &Context<'_>, pod: &mut PodSpec) -> Result<()> {
    if !audit::is_on(context) {
        pod.containers
            .retain(|container| container.name != "audit-logs");
    }
    let webhook = context.spec().audit_webhook.as_ref();
    let Some(webhook) = webhook.filter(|webhook| !webhook.name.is_empty()) else {
        return Ok(());
    };
    let arguments = [
        format!("--audit-webhook-config-file={WEBHOOK}/webhook-kubeconfig"),
        "--audit-webhook-mode=batch".to_owned(),
        "--audit-webhook-initial-backoff=5s".to_owned(),
    ];
    edit::args(edit::container(pod, NAME)?, arguments);
    let volume = "oauth-audit-webhook";
    let mount = edit::mount(volume, WEBHOOK);
    add(pod, [edit::secret_volume(volume, &webhook.name)], [mount])
}

/// Names that are reached directly. IBM Cloud's identity service is outside of the guest.
fn no_proxy(context: &Context<'_>, pod: &mut PodSpec) -> Result<()> {
    let own = format!("{NAME}.{}.svc.cluster.local", context.namespace());
    let mut names = vec!["kube-apiserver", "audit-webhook", &own];
    if context.is_on(PlatformType::IbmCloud) {
        names.extend(["iam.cloud.ibm.com", "iam.test.cloud.ibm.com"]);
    }
    let server = edit::container(pod, NAME)?;
    edit::env(server, "NO_PROXY", names.join(","));
    Ok(())
}

/// Mounts the serving certificates of users.
fn certificates(context: &Context<'_>, pod: &mut PodSpec) -> Result<()> {
    for (certificate, number) in named_certificates(context).iter().zip(1..) {
        if let Some(secret) = &certificate.serving_certificate {
            let volume = format!("named-cert-{number}");
            let mount = edit::mount(&volume, named_certificate_path(number));
            add(pod, [edit::secret_volume(volume, &secret.name)], [mount])?;
        }
    }
    Ok(())
}

/// Replaces the default pages with those of users.
fn templates(context: &Context<'_>, pod: &mut PodSpec) -> Result<()> {
    let Some(OAuthTemplates {
        login,
        provider_selection,
        error,
    }) = requested(context).and_then(|oauth| oauth.templates.as_ref())
    else {
        return Ok(());
    };
    template(pod, "error-template", error.as_ref())?;
    template(pod, "login-template", login.as_ref())?;
    template(pod, "providers-template", provider_selection.as_ref())
}

fn template(pod: &mut PodSpec, volume: &str, chosen: Option<&NameReference>) -> Result<()> {
    let Some(chosen) = chosen.filter(|chosen| !chosen.name.is_empty()) else {
        return Ok(());
    };
    let mut volumes = pod.volumes.iter_mut().flatten();
    let volume = volumes.find(|found| found.name == volume);
    let source = volume.and_then(|volume| volume.secret.as_mut());
    let missing = || Error::missing("volume of a template", "in the manifest");
    source.ok_or_else(missing)?.secret_name = Some(chosen.name.clone());
    Ok(())
}

/// Adds volumes to the pod, and mounts to the server.
fn add(
    pod: &mut PodSpec,
    volumes: impl IntoIterator<Item = Volume>,
    mounts: impl IntoIterator<Item = VolumeMount>,
) -> Result<()> {
    let server = edit::container(pod, NAME)?;
    server.volume_mounts.get_or_insert_default().extend(mounts);
    pod.volumes.get_or_insert_default().extend(volumes);
    Ok(())
}
