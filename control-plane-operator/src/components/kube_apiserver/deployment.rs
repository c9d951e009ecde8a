//! The API server's pods, as far as they depend on the hosted control plane.

use api::annotations::cluster::{
    KUBE_API_SERVER_GOGC, KUBE_API_SERVER_GOMEMLIMIT, KUBE_API_SERVER_VERBOSITY,
};
use control_plane_component::{Context, Result, Workload};
use k8s_openapi::api::core::v1::{Container, ContainerPort, PodSpec};

use super::config::{invalid, named_certificate_path, named_certificates};
use super::{audit, edit, encryption, is_on_aws, kms};
use crate::components::feature_gate;

const SERVER: &str = "kube-apiserver";
const AWS_WEBHOOK: &str = "aws-pod-identity-webhook";

pub(super) fn adapt(context: &Context<'_>, workload: &mut Workload) -> Result<()> {
    let pod = edit::pod(workload);
    server(context, edit::container(pod, SERVER)?)?;
    konnectivity(context, edit::container(pod, "konnectivity-server")?);
    for name in ["init-bootstrap-render", "init-auth-bootstrap-render"] {
        let render = edit::container(pod, name)?;
        edit::env(render, "PAYLOAD_VERSION", &context.user_release.version);
        edit::env(
            render,
            "FEATURE_GATE_YAML",
            feature_gate::requested(context),
        );
    }
    aws_webhook(context, pod)?;
    audit::mount_webhook(context, pod, SERVER, "kas-audit-webhook")?;
    audit::remove_unused_logs(context, pod);
    if !context.is_oauth_enabled() {
        without_volume(pod, "auth-token-webhook-config");
    }
    if !context.is_etcd_managed() {
        let init = pod.init_containers.get_or_insert_default();
        init.retain(|container| container.name != "wait-for-etcd");
    }
    optional_secrets(context, pod)?;
    if let Some(plugin) = kms::plugin(context)? {
        plugin.add_to(pod, SERVER)?;
    }
    Ok(())
}

fn server(context: &Context<'_>, server: &mut Container) -> Result<()> {
    let annotations = context.annotations();
    let verbosity = KUBE_API_SERVER_VERBOSITY
        .get(annotations)
        .map_err(invalid)?;
    edit::args(server, [format!("--v={}", verbosity.unwrap_or(2))]);
    if let Some(percent) = KUBE_API_SERVER_GOGC.get(annotations).map_err(invalid)? {
        edit::env(server, "GOGC", percent.to_string());
    }
    if let Some(limit) = KUBE_API_SERVER_GOMEMLIMIT
        .get(annotations)
        .map_err(invalid)?
    {
        edit::env(server, "GOMEMLIMIT", limit);
    }
    server.ports = Some(vec![ContainerPort {
        name: Some("client".to_owned()),
        container_port: context.api_pod_port(),
        protocol: Some("TCP".to_owned()),
        ..ContainerPort::default()
    }]);
    Ok(())
}

/// Sets the number of servers, because agents connect to each of them.
fn konnectivity(context: &Context<'_>, server: &mut Container) {
    let servers = match (context.is_single_replica(), context.is_dedicated()) {
        (true, _) => 1,
        (false, true) => 2,
        (false, false) => 3,
    };
    let tls = context.tls();
    edit::args(server, ["--server-count".to_owned(), servers.to_string()]);
    edit::args(server, [format!("--tls-min-version={}", tls.version())]);
    edit::args(server, tls.cipher_flag("--cipher-suites"));
}

/// Configures the AWS pod identity webhook, or removes it on other platforms.
fn aws_webhook(context: &Context<'_>, pod: &mut PodSpec) -> Result<()> {
    if !is_on_aws(context) {
        pod.containers
            .retain(|container| container.name != AWS_WEBHOOK);
        for volume in ["serving-certs", "kubeconfig"] {
            without_volume(pod, &format!("{AWS_WEBHOOK}-{volume}"));
        }
        return Ok(());
    }
    let webhook = edit::container(pod, AWS_WEBHOOK)?;
    let aws = context.spec().platform.aws.as_ref();
    let region = aws.map_or("", |aws| aws.region.as_str());
    let tls = context.tls();
    let command = webhook.command.get_or_insert_default();
    let position = command
        .iter()
        .position(|flag| flag.starts_with("--tls-cert="));
    let position = position.unwrap_or(command.len());
    command.insert(position, format!("--aws-default-region={region}"));
    command.push(format!("--tls-min-version={}", tls.version()));
    command.extend(tls.cipher_flag("--tls-cipher-suites"));
    Ok(())
}

/// Mounts optional Secrets of the user: named certificates and encryption keys.
fn optional_secrets(context: &Context<'_>, pod: &mut PodSpec) -> Result<()> {
    for (number, named) in named_certificates(context).iter().enumerate() {
        if let Some(secret) = &named.serving_certificate {
            let path = named_certificate_path(number);
            let volume = format!("named-certificate-{number}");
            edit::mount_secret(pod, SERVER, (&volume, &path), &secret.name)?;
        }
    }
    if encryption::is_on(context) {
        let name = "kas-secret-encryption-config";
        let at = (name, "/etc/kubernetes/secret-encryption");
        edit::mount_secret(pod, SERVER, at, name)?;
    }
    Ok(())
}

/// Removes a volume and its mounts.
fn without_volume(pod: &mut PodSpec, name: &str) {
    pod.volumes
        .get_or_insert_default()
        .retain(|volume| volume.name != name);
    for container in &mut pod.containers {
        container
            .volume_mounts
            .get_or_insert_default()
            .retain(|mount| mount.name != name);
    }
}
