//! Environment variables of the operator.

use api::hypershift::v1beta1::platform::PlatformType;
use api::hypershift::v1beta1::services::{PublishingStrategyType, ServiceType};
use control_plane_component::settings::MonitoringStack;
use control_plane_component::{Context, Error, Result};
use k8s_openapi::api::core::v1::Container;

use super::super::cloud::azure;
use super::super::{edit, managed_identity};
use crate::infra::address::HTTPS;

/// Images that it runs in the control plane.
const CONTROL_PLANE: [(&str, &str); 6] = [
    (
        "MULTUS_ADMISSION_CONTROLLER_IMAGE",
        "multus-admission-controller",
    ),
    ("OVN_CONTROL_PLANE_IMAGE", "ovn-kubernetes"),
    (
        "CLOUD_NETWORK_CONFIG_CONTROLLER_IMAGE",
        "cloud-network-config-controller",
    ),
    ("TOKEN_MINTER_IMAGE", "token-minter"),
    ("CLI_CONTROL_PLANE_IMAGE", "cli"),
    ("SOCKS5_PROXY_IMAGE", "socks5-proxy"),
];
/// Images that it runs in the guest.
const GUEST: [(&str, &str); 16] = [
    ("KUBE_PROXY_IMAGE", "kube-proxy"),
    ("KUBE_RBAC_PROXY_IMAGE", "kube-rbac-proxy"),
    ("MULTUS_IMAGE", "multus-cni"),
    ("CNI_PLUGINS_IMAGE", "container-networking-plugins"),
    ("BOND_CNI_PLUGIN_IMAGE", "network-interface-bond-cni"),
    ("WHEREABOUTS_CNI_IMAGE", "multus-whereabouts-ipam-cni"),
    ("ROUTE_OVERRRIDE_CNI_IMAGE", "multus-route-override-cni"),
    ("MULTUS_NETWORKPOLICY_IMAGE", "multus-networkpolicy"),
    ("OVN_IMAGE", "ovn-kubernetes"),
    ("EGRESS_ROUTER_CNI_IMAGE", "egress-router-cni"),
    ("NETWORK_METRICS_DAEMON_IMAGE", "network-metrics-daemon"),
    ("NETWORK_CHECK_SOURCE_IMAGE", super::NAME),
    ("NETWORK_CHECK_TARGET_IMAGE", super::NAME),
    (
        "NETWORKING_CONSOLE_PLUGIN_IMAGE",
        "networking-console-plugin",
    ),
    ("CLI_IMAGE", "cli"),
    ("FRR_K8S_IMAGE", "metallb-frr"),
];
/// The class of the certificate that the network's cloud controller mounts.
const CLASS: &str = "managed-azure-network";

pub(super) fn set(context: &Context<'_>, operator: &mut Container) -> Result<()> {
    let spec = context.spec();
    let (host, port) = api_server(context)?;
    let variables = [
        ("HOSTED_CLUSTER_NAME", context.name().to_owned()),
        ("TOKEN_AUDIENCE", spec.issuer_url.clone()),
        ("RELEASE_VERSION", context.user_release.version.clone()),
        ("OPENSHIFT_RELEASE_IMAGE", release_image(context)),
        ("APISERVER_OVERRIDE_HOST", host),
        ("APISERVER_OVERRIDE_PORT", port.to_string()),
    ];
    for (name, value) in variables {
        edit::env(operator, name, value);
    }
    edit::images(operator, context.release, &CONTROL_PLANE)?;
    edit::images(operator, context.user_release, &GUEST)?;
    if !context.access().is_private() {
        edit::env(operator, "PROXY_INTERNAL_APISERVER_ADDRESS", "true");
    }
    if context.settings.monitoring == MonitoringStack::Rhobs {
        edit::env(operator, "RHOBS_MONITORING", "1");
    }
    for (name, value) in context.settings.proxy.variables([]) {
        edit::env(operator, &format!("MGMT_{name}"), value);
    }
    edit::run_as_user(context, operator);
    managed_identity(context, operator)
}

/// The release of the control plane.
fn release_image(context: &Context<'_>) -> String {
    let spec = context.spec();
    let own = spec.control_plane_release_image.as_ref();
    own.unwrap_or(&spec.release_image).clone()
}

/// The address of the API server for nodes.
fn api_server(context: &Context<'_>) -> Result<(String, i32)> {
    if context.access().is_private() {
        let strategy = context.strategy(ServiceType::ApiServer);
        let is_balanced =
            strategy.is_some_and(|strategy| strategy.type_ == PublishingStrategyType::LoadBalancer);
        let port = if is_balanced { 6443 } else { HTTPS };
        return Ok((context.api_internal_host(), port));
    }
    if context.is_on(PlatformType::IbmCloud) {
        return advertised(context);
    }
    let api = &context.infra.api;
    Ok((api.host.clone(), api.port))
}

/// On IBM Cloud, a proxy on each node serves the API server.
fn advertised(context: &Context<'_>) -> Result<(String, i32)> {
    let networking = context.networking();
    let api = networking.and_then(|networking| networking.api_server.as_ref());
    let host = api.and_then(|api| api.advertise_address.clone());
    let port = api.and_then(|api| api.port);
    host.zip(port).ok_or_else(|| {
        Error::missing(
            format!("HostedControlPlane {}", context.name()),
            "spec.networking.apiServer.advertiseAddress and port",
        )
    })
}

/// The operator passes both on to the network's cloud controller, which mounts the certificate by itself.
fn managed_identity(context: &Context<'_>, operator: &mut Container) -> Result<()> {
    if !azure::uses_managed_identities(context) {
        return Ok(());
    }
    let identity = &azure::managed_identities(context)?.network;
    edit::env(operator, "ARO_HCP_SECRET_PROVIDER_CLASS", CLASS);
    // Only the file's name: the operator knows the directory.
    let file = identity.credentials_secret_name.as_str();
    edit::env(operator, managed_identity::FILE, file);
    Ok(())
}

#[cfg(test)]
mod tests {
    use control_plane_component::facts::{Endpoint, Infra};
    use control_plane_component::settings::Settings;
    use control_plane_component::{Objects, Predicates, Release};
    use serde_json::{Value, json};

    use super::*;

    /// The address for a control plane that is changed at this path.
    fn address(path: &str, value: Value) -> Option<(String, i32)> {
        let text = include_str!(
            "../../../../control-plane-component/tests/data/base/hosted-control-plane.yaml"
        );
        let mut hcp: Value = serde_saphyr::from_str(text).unwrap();
        let (parent, field) = path.rsplit_once('/').unwrap();
        hcp.pointer_mut(parent).unwrap()[field] = value;
        let api = Endpoint {
            host: "api.example.com".to_owned(),
            port: 30443,
        };
        let infra = Infra {
            api,
            ..Infra::default()
        };
        api_server(&Context {
            hcp: &serde_json::from_value(hcp).unwrap(),
            release: &Release::default(),
            user_release: &Release::default(),
            infra: &infra,
            objects: &Objects::default(),
            settings: &Settings::new("own"),
            predicates: Predicates::Evaluated,
        })
        .ok()
    }

    #[test]
    fn nodes_reach_the_api_server_by_its_address() {
        let platform = "/spec/platform";
        for (path, value, expected) in [
            (
                platform,
                json!({ "type": "None" }),
                Some(("api.example.com", 30443)),
            ),
            (
                "/spec/platform/aws/endpointAccess",
                json!("Public"),
                Some(("api.example.com", 30443)),
            ),
            (
                "/spec/platform/aws/endpointAccess",
                json!("PublicAndPrivate"),
                Some(("api.hcp.hypershift.local", 443)),
            ),
            (platform, json!({ "type": "IBMCloud" }), None),
        ] {
            let found = address(path, value);
            let found = found.as_ref().map(|(host, port)| (host.as_str(), *port));
            assert_eq!(found, expected);
        }
    }
}
