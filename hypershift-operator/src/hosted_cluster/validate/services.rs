//! How services are published, and under which names.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use api::annotations::cluster::SKIP_KAS_CONFLICT_SAN_VALIDATION;
use api::hypershift::v1beta1::platform::PlatformType;
use api::hypershift::v1beta1::services::{
    PublishingStrategyType, ServicePublishingStrategy, ServicePublishingStrategyMapping,
    ServiceType,
};

use super::Problems;
use crate::facts::Facts;

/// The default range of node ports in Kubernetes.
const NODE_PORTS: RangeInclusive<i32> = 30_000..=32_767;
/// All ports.
const PORTS: RangeInclusive<i32> = 1..=65_535;

/// Problems of the services.
pub(super) fn problems(facts: &Facts) -> Problems {
    let services = &facts.cluster.spec.services;
    let mut problems = routes(facts, services);
    problems.extend(host_names(services));
    problems.extend(node_ports(facts.cluster.spec.platform.type_, services));
    problems.extend(certificates(facts));
    problems.extend(cluster_id(facts));
    problems
}

/// The name that users know a service by.
pub(super) fn name(service: ServiceType) -> &'static str {
    match service {
        ServiceType::ApiServer => "APIServer",
        ServiceType::OAuthServer => "OAuthServer",
        ServiceType::Oidc => "OIDC",
        ServiceType::Konnectivity => "Konnectivity",
        ServiceType::Ignition => "Ignition",
        ServiceType::OvnSbDb => "OVNSbDb",
    }
}

/// The host name that a user has chosen for a service.
pub(super) fn host_name(strategy: &ServicePublishingStrategy) -> Option<&str> {
    let route = strategy
        .route
        .as_ref()
        .and_then(|it| it.hostname.as_deref());
    let balancer = strategy
        .load_balancer
        .as_ref()
        .and_then(|it| it.hostname.as_deref());
    route.or(balancer).filter(|name| !name.is_empty())
}

fn routes(facts: &Facts, services: &[ServicePublishingStrategyMapping]) -> Problems {
    if facts.management.routes {
        return Problems::new();
    }
    let routed = services
        .iter()
        .filter(|it| it.service_publishing_strategy.type_ == PublishingStrategyType::Route);
    let names: Vec<_> = routed.map(|it| name(it.service)).collect();
    if names.is_empty() {
        return Problems::new();
    }
    vec![format!(
        "spec.services publishes {} by Route, and the management cluster does not serve Routes: create the cluster with NodePort or LoadBalancer",
        names.join(", ")
    )]
}

fn host_names(services: &[ServicePublishingStrategyMapping]) -> Problems {
    let mut users = BTreeMap::<&str, Vec<&str>>::new();
    for service in services {
        if let Some(host) = host_name(&service.service_publishing_strategy) {
            users.entry(host).or_default().push(name(service.service));
        }
    }
    let shared = users.into_iter().filter(|(_, services)| services.len() > 1);
    shared
        .map(|(host, services)| {
            let services = services.join(" and ");
            format!(
                "spec.services has the same hostname {host} for {services}: use different hostnames"
            )
        })
        .collect()
}

fn node_ports(platform: PlatformType, services: &[ServicePublishingStrategyMapping]) -> Problems {
    let allowed = node_port_range(platform);
    let ports = services.iter().filter_map(|it| {
        let port = it.service_publishing_strategy.node_port.as_ref()?.port?;
        Some((name(it.service), port))
    });
    ports
        .filter(|(_, port)| *port != 0 && !allowed.contains(port))
        .map(|(name, port)| {
            let (first, last) = (allowed.start(), allowed.end());
            format!("spec.services has node port {port} for {name}: use a port from {first} to {last}, or 0")
        })
        .collect()
}

/// Management clusters on IBM Cloud have their own node port range, which their API servers enforce.
fn node_port_range(platform: PlatformType) -> RangeInclusive<i32> {
    if platform == PlatformType::IbmCloud {
        PORTS
    } else {
        NODE_PORTS
    }
}

/// User certificates must not match names of the control plane's own certificate.
fn certificates(facts: &Facts) -> Problems {
    if SKIP_KAS_CONFLICT_SAN_VALIDATION.is_set(facts.annotations()) {
        return Problems::new();
    }
    let spec = &facts.cluster.spec;
    let server = spec
        .configuration
        .as_ref()
        .and_then(|it| it.api_server.as_ref());
    let given = server.and_then(|it| it.serving_certs.as_ref());
    let names = given
        .into_iter()
        .flat_map(|it| &it.named_certificates)
        .flat_map(|it| &it.names);
    let taken = taken_names(facts);
    names
        .filter(|name| taken.iter().any(|taken| covers(name, taken)))
        .map(|name| {
            format!(
                "spec.configuration.apiServer.servingCerts.namedCertificates has {name}, which is a name of the control plane: remove it, or set annotation {} to allow it",
                SKIP_KAS_CONFLICT_SAN_VALIDATION.key()
            )
        })
        .collect()
}

fn taken_names(facts: &Facts) -> Vec<String> {
    let internal = ["kubernetes", "openshift"].into_iter().flat_map(|name| {
        ["", ".default", ".default.svc", ".default.svc.cluster.local"]
            .map(|rest| format!("{name}{rest}"))
    });
    let namespace = &facts.namespace;
    let own = [
        "",
        &format!(".{namespace}.svc"),
        &format!(".{namespace}.svc.cluster.local"),
    ]
    .map(|rest| format!("kube-apiserver{rest}"));
    let published = facts.cluster.spec.services.iter().filter_map(|it| {
        (it.service == ServiceType::ApiServer)
            .then(|| host_name(&it.service_publishing_strategy))
            .flatten()
            .map(str::to_owned)
    });
    let private = format!("api.{}.hypershift.local", facts.id.name);
    internal
        .chain(own)
        .chain(published)
        .chain([private, "localhost".to_owned()])
        .collect()
}

/// Whether a certificate name matches a name, with `*` for one label.
fn covers(name: &str, other: &str) -> bool {
    match name.strip_prefix("*.") {
        None => name == other,
        Some(domain) => other
            .split_once('.')
            .is_some_and(|(_, rest)| rest == domain),
    }
}

/// The API server accepts hyphens at the right places, even in an invalid UUID.
fn cluster_id(facts: &Facts) -> Problems {
    let id = facts.cluster.spec.cluster_id.as_deref().unwrap_or_default();
    let lengths: Vec<_> = id.split('-').map(str::len).collect();
    let hexadecimal = id.chars().all(|c| c == '-' || c.is_ascii_hexdigit());
    if id.is_empty() || (hexadecimal && lengths == [8, 4, 4, 4, 12]) {
        return Problems::new();
    }
    vec![format!(
        "spec.clusterID is {id:?}, which is not a valid UUID: omit it when you create the cluster"
    )]
}
