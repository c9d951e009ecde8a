//! Webhooks in the API server's pods, through which pods of the guest get identities of the cloud.

use control_plane_component::{Context, Result};
use k8s_openapi::api::core::v1::{Container, PodSpec};
use serde_json::json;

use super::deployment::without_volume;
use super::{edit, is_on_aws, is_on_azure};
use crate::components::cloud;

/// A webhook, and its volumes.
struct Webhook {
    container: &'static str,
    volumes: [&'static str; 2],
}

const AWS: Webhook = Webhook {
    container: "aws-pod-identity-webhook",
    volumes: [
        "aws-pod-identity-webhook-serving-certs",
        "aws-pod-identity-webhook-kubeconfig",
    ],
};
const AZURE: Webhook = Webhook {
    container: "azure-workload-identity-webhook",
    volumes: [
        "azure-wi-webhook-serving-certs",
        "azure-wi-webhook-kubeconfig",
    ],
};

/// Configures the AWS pod identity webhook, or removes it on other platforms.
pub(super) fn aws(context: &Context<'_>, pod: &mut PodSpec) -> Result<()> {
    if !is_on_aws(context) {
        AWS.remove(pod);
        return Ok(());
    }
    let webhook = edit::container(pod, AWS.container)?;
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

/// Configures the Azure workload identity webhook, or removes it on other platforms.
pub(super) fn azure(context: &Context<'_>, pod: &mut PodSpec) -> Result<()> {
    if !is_on_azure(context) {
        AZURE.remove(pod);
        return Ok(());
    }
    let webhook = edit::container(pod, AZURE.container)?;
    let azure = cloud::azure::platform(context)?;
    let environment = json!(azure.cloud);
    let environment = environment.as_str().unwrap_or_default();
    edit::env(webhook, "AZURE_TENANT_ID", azure.tenant_id.as_str());
    edit::env(webhook, "AZURE_ENVIRONMENT", environment);
    let port = context.api_pod_port().to_string();
    edit::env(webhook, "API_SERVER_PORT", port);
    azure_tls(context, webhook);
    Ok(())
}

fn azure_tls(context: &Context<'_>, webhook: &mut Container) {
    let tls = context.tls();
    edit::args(webhook, tls.cipher_flag("--tls-cipher-suites"));
    let version = format!("--tls-min-version={}", tls.version());
    edit::args(webhook, [version]);
}

// === impl Webhook ===

impl Webhook {
    fn remove(&self, pod: &mut PodSpec) {
        pod.containers
            .retain(|container| container.name != self.container);
        for volume in self.volumes {
            without_volume(pod, volume);
        }
    }
}
