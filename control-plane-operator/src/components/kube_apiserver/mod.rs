//! kube-apiserver: the guest's API server, the konnectivity server in its pods, and all kubeconfigs of the guest.

mod authentication;
mod certificates;
mod config;
mod deployment;
mod encryption;
mod kms;
mod kubeconfigs;
mod publishing;
mod webhooks;

use api::hypershift::v1beta1::platform::PlatformType;
use control_plane_component::asset::Asset;
use control_plane_component::{Component, Context, Metrics, assets};

use super::{audit, edit, kubeconfig};

const METRICS: Metrics = Metrics {
    telemetry: Some((
        "keep",
        "(apiserver_storage_objects|apiserver_request_total|apiserver_current_inflight_requests)",
    )),
    sre: Some("kubeAPIServer"),
};

pub(super) fn component() -> Component {
    Component::new("kube-apiserver", manifests())
        .api_critical()
        .request_serving()
        .zone_spread()
        .depends_on(&["etcd", "featuregate-generator"])
        .with_authorities(|_| certificates::AUTHORITIES.to_vec())
        .with_certificates(certificates::all)
        .published_by(publishing::PUBLICATION)
        .metrics(METRICS)
        .manifest("audit-config.yaml", audit::adapt)
        .manifest("auth-config.yaml", authentication::config)
        .manifest(
            "authentication-token-webhook-config-secret.yaml",
            authentication::webhook,
        )
        .manifest_if(
            "authentication-token-webhook-config-secret.yaml",
            authenticates_by_oauth,
        )
        .pki_managed("aws-pod-identity-webhook-kubeconfig.yaml")
        .manifest_if("aws-pod-identity-webhook-kubeconfig.yaml", is_on_aws)
        .pki_managed("azure-workload-identity-webhook-kubeconfig.yaml")
        .manifest_if(
            "azure-workload-identity-webhook-kubeconfig.yaml",
            is_on_azure,
        )
        .manifest("bootstrap-kubeconfig.yaml", kubeconfigs::bootstrap)
        .manifest("capi-kubeconfig.yaml", kubeconfigs::capi)
        .manifest("custom-admin-kubeconfig.yaml", kubeconfigs::custom_admin)
        .manifest_if(
            "custom-admin-kubeconfig.yaml",
            kubeconfigs::has_custom_dns_name,
        )
        .manifest("external-admin-kubeconfig.yaml", kubeconfigs::admin)
        .manifest("hcco-kubeconfig.yaml", kubeconfig::service("hcco-client"))
        .manifest(
            "kas-bootstrap-container-kubeconfig.yaml",
            kubeconfig::local("kas-bootstrap-container-client"),
        )
        .manifest("kas-config.yaml", config::adapt)
        .manifest(
            "localhost-kubeconfig.yaml",
            kubeconfig::local("system-admin-client"),
        )
        .manifest("oauth-metadata.yaml", authentication::metadata)
        .manifest("pdb.yaml", edit::disruption_budget)
        .manifest("secret-encryption-config.yaml", encryption::adapt)
        .manifest_if("secret-encryption-config.yaml", encryption::is_on)
        .manifest(
            "service-network-admin-kubeconfig.yaml",
            kubeconfig::service("system-admin-client"),
        )
        .adapt(deployment::adapt)
}

fn manifests() -> &'static [Asset] {
    assets!(
        "audit-config.yaml",
        "auth-config.yaml",
        "authentication-token-webhook-config-secret.yaml",
        "aws-pod-identity-webhook-kubeconfig.yaml",
        "azure-workload-identity-webhook-kubeconfig.yaml",
        "bootstrap-kubeconfig.yaml",
        "capi-kubeconfig.yaml",
        "custom-admin-kubeconfig.yaml",
        "deployment.yaml",
        "egress-selector-config.yaml",
        "external-admin-kubeconfig.yaml",
        "hcco-kubeconfig.yaml",
        "kas-bootstrap-container-kubeconfig.yaml",
        "kas-config.yaml",
        "konnectivity-server-local-service.yaml",
        "localhost-kubeconfig.yaml",
        "oauth-metadata.yaml",
        "pdb.yaml",
        "recording-rules.yaml",
        "secret-encryption-config.yaml",
        "service-network-admin-kubeconfig.yaml",
        "servicemonitor.yaml",
    )
}

/// Whether users log in through the cluster's OAuth server.
fn authenticates_by_oauth(context: &Context<'_>) -> bool {
    context.is_oauth_enabled()
}

/// Whether the AWS pod identity webhook is needed.
fn is_on_aws(context: &Context<'_>) -> bool {
    context.is_on(PlatformType::Aws)
}

/// Whether the Azure workload identity webhook is needed.
fn is_on_azure(context: &Context<'_>) -> bool {
    context.is_on(PlatformType::Azure)
}
