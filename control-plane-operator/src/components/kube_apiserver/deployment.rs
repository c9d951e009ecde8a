//! The API server's pods, as far as they depend on the hosted control plane.

use api::annotations::cluster::{
    KUBE_API_SERVER_GOGC, KUBE_API_SERVER_GOMEMLIMIT, KUBE_API_SERVER_VERBOSITY,
};
use control_plane_component::{Context, Error, Result, Workload};
use k8s_openapi::api::core::v1::{Container, ContainerPort, HostAlias, PodSpec};

use super::config::{invalid, named_certificate_path, named_certificates};
use super::{audit, edit, encryption, kms, webhooks};
use crate::components::cloud::key_vault;
use crate::components::feature_gate;

const SERVER: &str = "kube-apiserver";
/// The Service of the router in the cluster's network.
const ROUTER: &str = "private-router";

pub(super) fn adapt(context: &Context<'_>, workload: &mut Workload) -> Result<()> {
    encryption::annotate(context, workload.template());
    let pod = edit::pod(workload);
    server(context, edit::container(pod, SERVER)?)?;
    konnectivity(context, edit::container(pod, "konnectivity-server")?);
    render(context, pod)?;
    webhooks::aws(context, pod)?;
    webhooks::azure(context, pod)?;
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
    alias_key_vaults(context, pod)?;
    Ok(())
}

/// Configures the containers that render what the API server starts with. Without an OAuth server there is nothing to
/// render for it.
fn render(context: &Context<'_>, pod: &mut PodSpec) -> Result<()> {
    let mut names = vec!["init-bootstrap-render"];
    let authentication = "init-auth-bootstrap-render";
    if context.is_oauth_enabled() {
        names.push(authentication);
    } else {
        let init = pod.init_containers.get_or_insert_default();
        init.retain(|container| container.name != authentication);
    }
    for name in names {
        let render = edit::container(pod, name)?;
        edit::env(render, "PAYLOAD_VERSION", &context.user_release.version);
        edit::env(
            render,
            "FEATURE_GATE_YAML",
            feature_gate::requested(context),
        );
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
    // Webhooks and the guest's Services are reached directly.
    let exempt = context
        .cluster_cidrs()
        .into_iter()
        .chain(context.service_cidrs());
    context.settings.proxy.set_env(server, exempt);
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

/// Lets the names of private key vaults resolve to the router.
fn alias_key_vaults(context: &Context<'_>, pod: &mut PodSpec) -> Result<()> {
    let hosts = key_vault::private_hosts(context)?;
    if hosts.is_empty() {
        return Ok(());
    }
    let service = context.objects.get("", "Service", ROUTER);
    let address = service.and_then(|service| service["spec"]["clusterIP"].as_str());
    let address = address.filter(|address| *address != "None");
    let address =
        address.ok_or_else(|| Error::missing(format!("Service {ROUTER}"), "a cluster IP"))?;
    let aliases = pod.host_aliases.get_or_insert_default();
    aliases.push(HostAlias {
        ip: address.to_owned(),
        hostnames: Some(hosts),
    });
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
        let name = crate::encryption::SECRET;
        let at = (name, "/etc/kubernetes/secret-encryption");
        edit::mount_secret(pod, SERVER, at, name)?;
        edit::args(
            edit::container(pod, SERVER)?,
            [encryption::RELOAD.to_owned()],
        );
    }
    Ok(())
}

/// Removes a volume and its mounts.
pub(super) fn without_volume(pod: &mut PodSpec, name: &str) {
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
