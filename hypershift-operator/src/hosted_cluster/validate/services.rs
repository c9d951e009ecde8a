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
use crate::hosted_cluster::facts::Facts;

/// The ports that nodes may be given by Kubernetes, unless its API server is told otherwise.
const NODE_PORTS: RangeInclusive<i32> = 30_000..=32_767;
/// All ports.
const PORTS: RangeInclusive<i32> = 1..=65_535;

/// What speaks against the services.
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
        "spec.services publishes {} by Route, and this management cluster has no routes: create the cluster with \
         NodePort or LoadBalancer instead",
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
            format!("spec.services gives {services} the same host name {host}: give each its own")
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
            format!("spec.services asks for node port {port} for {name}: choose one from {first} to {last}, or 0")
        })
        .collect()
}

/// IBM Cloud's management clusters give ports from a range of their own, which their API servers hold users to.
fn node_port_range(platform: PlatformType) -> RangeInclusive<i32> {
    if platform == PlatformType::IbmCloud {
        PORTS
    } else {
        NODE_PORTS
    }
}

/// A certificate that a user brings must not stand for a name that the control plane's own certificate is for.
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
                "spec.configuration.apiServer.servingCerts.namedCertificates is for {name}, a name of the control \
                 plane's own: remove it, or set the annotation {} if it is meant",
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

/// Whether a certificate's name stands for another, with `*` for one label.
fn covers(name: &str, other: &str) -> bool {
    match name.strip_prefix("*.") {
        None => name == other,
        Some(domain) => other
            .split_once('.')
            .is_some_and(|(_, rest)| rest == domain),
    }
}

/// What the API server lets through: hyphens at the right places, and yet no UUID.
fn cluster_id(facts: &Facts) -> Problems {
    let id = facts.cluster.spec.cluster_id.as_deref().unwrap_or_default();
    let lengths: Vec<_> = id.split('-').map(str::len).collect();
    let hexadecimal = id.chars().all(|c| c == '-' || c.is_ascii_hexdigit());
    if id.is_empty() || (hexadecimal && lengths == [8, 4, 4, 4, 12]) {
        return Problems::new();
    }
    vec![format!(
        "spec.clusterID is {id:?}, which is no UUID: leave it out when the cluster is created"
    )]
}
