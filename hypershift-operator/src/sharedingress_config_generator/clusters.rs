//! What the shared ingress serves of each hosted cluster. Pure.
//!
//! Hosted clusters belong to tenants that do not trust each other, and their authors choose host names, the cluster ID and
//! address ranges. So text that could inject configuration is rejected. Of two clusters that claim the same ID the older one
//! has it, and of two Routes with the same host the older one. A name that authors can change at any time never takes a host
//! from a Route.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use ipnet::IpNet;
use k8s_openapi::api::core::v1::Service;
use kube::ResourceExt as _;
use kube::api::DynamicObject;
use ownership::Namespace;
use serde_json::Value;

use super::objects::Objects;
use crate::cluster_ref::Id;

/// Routes for the network of the cluster, which another router serves.
const INTERNAL: &str = "hypershift.openshift.io/internal-route";
/// Annotation of clusters whose control plane is attached to their network.
const SWIFT: &str = "hypershift.openshift.io/swift-pod-network-instance";
/// Service of the API server.
const API_SERVER: &str = "kube-apiserver";
/// Services of Routes, their backends and ports; without a port, it is that of the Service.
const SERVICES: [(&str, &str, Option<u16>); 6] = [
    (API_SERVER, "apiserver", None),
    ("ignition-server", "ignition", Some(443)),
    ("ignition-server-proxy", "ignition", Some(443)),
    ("konnectivity-server", "konnectivity", Some(8091)),
    ("oauth-openshift", "oauth", Some(6443)),
    ("metrics-proxy", "metrics-proxy", Some(443)),
];
/// The longest DNS name.
const LONGEST_NAME: usize = 253;

/// What is served of a hosted cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Cluster {
    /// Namespace of its control plane.
    pub(super) namespace: String,
    /// Its ID and its API server, for nodes; none if they reach it in their own network.
    pub(super) data_plane: Option<(String, Server)>,
    /// For clients, by name.
    pub(super) backends: BTreeMap<String, Backend>,
    /// Addresses of clients that are served; empty for all.
    pub(super) allowed: Vec<IpNet>,
}

/// A server and the host names that lead to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Backend {
    pub(super) server: Server,
    /// In lower case.
    pub(super) hosts: BTreeSet<String>,
}

/// Address and port of a Service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Server {
    pub(super) ip: IpAddr,
    pub(super) port: u16,
}

/// What is not served, and why.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Skipped {
    /// The HostedCluster, `NAMESPACE/NAME`.
    pub(super) cluster: String,
    pub(super) reason: String,
}

/// Who reaches a cluster through the shared ingress.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Exposure {
    /// Its nodes and its clients.
    All,
    /// Its clients: its nodes reach the control plane in their own network.
    Clients,
}

/// What other clusters have already.
#[derive(Debug, Default)]
struct Claims {
    ids: BTreeMap<String, String>,
    hosts: BTreeMap<String, String>,
}

/// Evaluates clusters: what comes first has what several claim.
struct Evaluator<'a> {
    objects: &'a Objects,
    claims: Claims,
    skipped: BTreeSet<Skipped>,
}

/// A cluster whose namespace is its own, while it is evaluated.
struct Candidate<'a> {
    id: Id,
    spec: &'a Value,
    exposure: Exposure,
    cluster: Cluster,
}

/// Evaluates all objects. Clusters are sorted by namespace.
pub(super) fn evaluate(objects: &Objects) -> (Vec<Cluster>, BTreeSet<Skipped>) {
    let mut hosted: Vec<_> = objects
        .clusters
        .iter()
        .filter(|it| it.metadata.deletion_timestamp.is_none())
        .filter_map(|it| Some((it, Exposure::of(it)?)))
        .collect();
    hosted.sort_by_key(|(it, _)| (it.creation_timestamp(), it.uid()));
    let mut evaluator = Evaluator {
        objects,
        claims: Claims::default(),
        skipped: BTreeSet::new(),
    };
    let mut candidates = Vec::new();
    for (hosted, exposure) in hosted {
        candidates.extend(evaluator.candidate(hosted, exposure));
    }
    evaluator.add_routes(&mut candidates);
    for candidate in &mut candidates {
        evaluator.add_custom_name(candidate);
        evaluator.add_data_plane(candidate);
    }
    let mut clusters: Vec<_> = candidates.into_iter().map(|it| it.cluster).collect();
    clusters.sort_by(|one, other| one.namespace.cmp(&other.namespace));
    (clusters, evaluator.skipped)
}

// === impl Exposure ===

impl Exposure {
    /// None for a cluster that the shared ingress does not serve: one of another platform or another service, or one
    /// that only its own network reaches. The ingress runs in installations of ARO only, so ARO is the default.
    fn of(hosted: &DynamicObject) -> Option<Self> {
        let platform = &hosted.data["spec"]["platform"];
        let azure = &platform["azure"];
        let authentication = &azure["azureAuthenticationConfig"]["azureAuthenticationConfigType"];
        let is_aro = text(authentication).is_none_or(|it| it == "ManagedIdentities");
        if platform["type"] != "Azure" || !is_aro {
            return None;
        }
        match azure["topology"].as_str().unwrap_or_default() {
            "" if is_attached(hosted) => Some(Self::Clients),
            "" | "Public" => Some(Self::All),
            "PublicAndPrivate" => Some(Self::Clients),
            _ => None,
        }
    }
}

/// Whether the control plane is attached to the network of the cluster.
fn is_attached(hosted: &DynamicObject) -> bool {
    let annotation = hosted.annotations().get(SWIFT);
    annotation.is_some_and(|instance| !instance.is_empty())
        || hosted.data["spec"]["platform"]["azure"]["private"]["type"] == "Swift"
}

// === impl Evaluator ===

impl<'a> Evaluator<'a> {
    fn skip(&mut self, id: &Id, reason: String) {
        self.skipped.insert(Skipped {
            cluster: id.to_string(),
            reason,
        });
    }

    fn candidate(
        &mut self,
        hosted: &'a DynamicObject,
        exposure: Exposure,
    ) -> Option<Candidate<'a>> {
        let id = Id::of(&hosted.metadata);
        let spec = &hosted.data["spec"];
        // Without all of its ranges, a cluster would be open to more clients, or to fewer.
        let found = self.namespace(&id).and_then(|it| Ok((it, allowed(spec)?)));
        match found {
            Ok((namespace, allowed)) => Some(Candidate {
                id,
                spec,
                exposure,
                cluster: Cluster {
                    namespace,
                    data_plane: None,
                    backends: BTreeMap::new(),
                    allowed,
                },
            }),
            Err(reason) => {
                self.skip(&id, reason);
                None
            }
        }
    }

    /// The control plane namespace, if it belongs to the cluster.
    fn namespace(&self, id: &Id) -> Result<String, String> {
        let name = id.control_plane_namespace();
        let metadata = self.objects.namespaces.get(&name).map(|it| &it.metadata);
        let namespace = Namespace::evaluate(&id.namespace, &id.name, metadata);
        if namespace.owned().is_some() {
            return Ok(name);
        }
        let refusal = namespace.refusal(&id.namespace, &id.name);
        Err(refusal.unwrap_or_else(|| format!("waiting for control plane namespace {name}")))
    }

    /// Adds the Routes of all clusters, the oldest first.
    fn add_routes(&mut self, candidates: &mut [Candidate<'a>]) {
        let mut routes: Vec<_> = self.objects.routes.iter().collect();
        routes.sort_by_key(|it| (it.creation_timestamp(), it.namespace(), it.name_any()));
        for route in routes {
            let owner = candidates.iter_mut().find(|it| it.has(route));
            let Some(Candidate { id, cluster, .. }) = owner else {
                continue;
            };
            if let Err(reason) = self.add_route(cluster, id, route) {
                let object = format!("Route {}/{}", cluster.namespace, route.name_any());
                self.skip(id, format!("{object}: {reason}"));
            }
        }
    }

    /// Adds a Route, if it has a host and leads to a Service that is published.
    fn add_route(
        &mut self,
        cluster: &mut Cluster,
        id: &Id,
        route: &DynamicObject,
    ) -> Result<(), String> {
        let spec = &route.data["spec"];
        let to = spec["to"]["name"].as_str().unwrap_or_default();
        let known = SERVICES.iter().find(|(service, _, _)| *service == to);
        let (Some((service, backend, port)), Some(host)) = (known, spec["host"].as_str()) else {
            return Ok(());
        };
        let server = server(self.objects, &cluster.namespace, service, *port)?;
        add(cluster, backend, server, self.claims.host(host, id)?);
        Ok(())
    }

    fn add_custom_name(&mut self, candidate: &mut Candidate<'_>) {
        let Candidate { id, cluster, .. } = candidate;
        let Some(host) = text(&candidate.spec["kubeAPIServerDNSName"]) else {
            return;
        };
        let server = server(self.objects, &cluster.namespace, API_SERVER, None);
        match server.and_then(|server| Ok((server, self.claims.host(host, id)?))) {
            Ok((server, host)) => add(cluster, "apiserver-custom", server, host),
            Err(reason) => self.skip(id, format!("spec.kubeAPIServerDNSName: {reason}")),
        }
    }

    fn add_data_plane(&mut self, candidate: &mut Candidate<'_>) {
        let Candidate { id, cluster, .. } = candidate;
        if candidate.exposure != Exposure::All {
            return;
        }
        let Some(cluster_id) = text(&candidate.spec["clusterID"]) else {
            return;
        };
        let server = server(self.objects, &cluster.namespace, API_SERVER, None);
        match server.and_then(|server| Ok((self.claims.id(cluster_id, id)?, server))) {
            Ok(found) => cluster.data_plane = Some(found),
            Err(reason) => self.skip(id, format!("access of nodes to the API server: {reason}")),
        }
    }
}

// === impl Candidate ===

impl Candidate<'_> {
    /// Whether a Route is one of its control plane, for clients.
    fn has(&self, route: &DynamicObject) -> bool {
        let namespace = &self.cluster.namespace;
        let labels = route.labels();
        route.namespace().as_ref() == Some(namespace)
            && labels.get(api::names::HOSTED_CONTROL_PLANE) == Some(namespace)
            && !labels.contains_key(INTERNAL)
    }
}

fn add(cluster: &mut Cluster, backend: &str, server: Server, host: String) {
    let backend = cluster.backends.entry(backend.to_owned());
    let backend = backend.or_insert_with(|| Backend {
        server,
        hosts: BTreeSet::new(),
    });
    backend.hosts.insert(host);
}

fn text(value: &Value) -> Option<&str> {
    value.as_str().filter(|text| !text.is_empty())
}

fn allowed(spec: &Value) -> Result<Vec<IpNet>, String> {
    let blocks = spec["networking"]["apiServer"]["allowedCIDRBlocks"].as_array();
    let parse = |block: &Value| {
        let text = block.as_str().unwrap_or_default();
        text.parse().map_err(|_| {
            format!("spec.networking.apiServer.allowedCIDRBlocks: {text:?} is not a valid CIDR")
        })
    };
    blocks.into_iter().flatten().map(parse).collect()
}

fn server(
    objects: &Objects,
    namespace: &str,
    name: &str,
    port: Option<u16>,
) -> Result<Server, String> {
    let found = objects
        .services
        .get(&(namespace.to_owned(), name.to_owned()));
    let waiting = || format!("waiting for the cluster IP of Service {namespace}/{name}");
    let spec = found.and_then(|service: &std::sync::Arc<Service>| service.spec.as_ref());
    let spec = spec.ok_or_else(waiting)?;
    let ip = spec.cluster_ip.as_deref().and_then(|ip| ip.parse().ok());
    let first = || spec.ports.as_ref()?.first()?.port.try_into().ok();
    Ok(Server {
        ip: ip.ok_or_else(waiting)?,
        port: port.or_else(first).ok_or_else(waiting)?,
    })
}

// === impl Claims ===

impl Claims {
    /// The host in lower case, if no other cluster has it.
    fn host(&mut self, host: &str, id: &Id) -> Result<String, String> {
        let host = host.to_ascii_lowercase();
        let is_label = |label: &str| {
            let known = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
            // haproxy takes a word that begins with a hyphen for an option, and rejects the whole file.
            let is_word = !label.starts_with('-') && !label.ends_with('-');
            !label.is_empty() && is_word && label.bytes().all(known)
        };
        if host.len() > LONGEST_NAME || !host.split('.').all(is_label) {
            return Err("its host is not a DNS name".to_owned());
        }
        claim(&mut self.hosts, &host, id).map_err(|owner| {
            format!("host {host} belongs to HostedCluster {owner}, which claimed it first")
        })?;
        Ok(host)
    }

    /// The ID, if it is one and no other cluster has it.
    fn id(&mut self, cluster_id: &str, id: &Id) -> Result<String, String> {
        let known = |byte: u8| byte.is_ascii_hexdigit() || byte == b'-';
        if cluster_id.len() > 64 || !cluster_id.bytes().all(known) {
            return Err("spec.clusterID is not a UUID".to_owned());
        }
        claim(&mut self.ids, cluster_id, id).map_err(|owner| {
            format!("spec.clusterID {cluster_id} belongs to HostedCluster {owner}, which is older")
        })?;
        Ok(cluster_id.to_owned())
    }
}

/// Claims a text, or returns who has it.
fn claim(claims: &mut BTreeMap<String, String>, text: &str, id: &Id) -> Result<(), String> {
    let id = id.to_string();
    let owner = claims.entry(text.to_owned()).or_insert_with(|| id.clone());
    if *owner == id {
        return Ok(());
    }
    Err(owner.clone())
}
