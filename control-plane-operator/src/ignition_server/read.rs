//! Reads the inputs of payloads.

use std::fmt::Debug;

use api::hypershift::v1beta1::HostedControlPlane;
use api::hypershift::v1beta1::configuration::proxy::ProxyConfiguration;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::Api;
use kube::api::ListParams;
use serde::de::DeserializeOwned;
use support::reconcile::is_missing;

use super::payload::{Facts, Proxy, cluster_dns};

/// Default Service CIDR.
const SERVICES: &str = "172.31.0.0/16";
/// Hosts that are never reached through the proxy.
const NEVER_PROXIED: [&str; 5] = [
    ".cluster.local",
    ".svc",
    "127.0.0.1",
    "169.254.169.254",
    "localhost",
];

/// An input of payloads is missing.
#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    /// It does not exist yet, because the control plane is being rolled out.
    #[error("waiting for {object}")]
    Missing { object: String },
    /// A key is missing.
    #[error("{object} has no key {key}")]
    NoKey { object: String, key: &'static str },
    /// The HostedControlPlane is ambiguous.
    #[error(
        "namespace {namespace} has more than one HostedControlPlane: pass --hosted-control-plane"
    )]
    Ambiguous { namespace: String },
    /// The request failed.
    #[error("failed to get {object}")]
    Read { object: String, source: kube::Error },
}

/// Reads the inputs that all pools share.
pub(super) async fn facts(
    client: &kube::Client,
    namespace: &str,
    name: Option<&str>,
) -> Result<Facts, Error> {
    let hcp = control_plane(client, namespace, name).await?;
    let spec = &hcp.spec;
    let secrets: Api<Secret> = Api::namespaced(client.clone(), namespace);
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), namespace);
    let bootstrap = secret(&secrets, "bootstrap-kubeconfig", "kubeconfig").await?;
    let pull_secret = secret(&secrets, &spec.pull_secret.name, ".dockerconfigjson").await?;
    let trust_bundle = match &spec.additional_trust_bundle {
        Some(_) => Some(text(&maps, "user-ca-bundle", "ca-bundle.crt").await?),
        None => None,
    };
    Ok(Facts {
        platform: spec.platform.type_,
        bootstrap_kubeconfig: bootstrap,
        kubelet_ca: text(&maps, "kubelet-client-ca", "ca.crt").await?,
        cluster_dns: dns(&hcp),
        pull_secret,
        ssh_keys: ssh_keys(&secrets, &spec.ssh_key.name).await?,
        trust_bundle,
        proxy: proxy(&hcp),
        mirrors: spec.image_content_sources.clone(),
        taints: Vec::new(),
    })
}

/// Returns the HostedControlPlane by name, or the only one of the namespace.
///
/// Two clusters can have the same control plane namespace, and machines must not get secrets of the other cluster.
pub(super) async fn control_plane(
    client: &kube::Client,
    namespace: &str,
    name: Option<&str>,
) -> Result<HostedControlPlane, Error> {
    let api: Api<HostedControlPlane> = Api::namespaced(client.clone(), namespace);
    if let Some(name) = name {
        return get(&api, format!("HostedControlPlane {name}"), name).await;
    }
    let object = || format!("the HostedControlPlane of namespace {namespace}");
    let list = api.list(&ListParams::default()).await;
    let list = list.map_err(|source| Error::Read {
        object: object(),
        source,
    })?;
    let mut found = list.items;
    let only = found.pop();
    if !found.is_empty() {
        return Err(Error::Ambiguous {
            namespace: namespace.to_owned(),
        });
    }
    only.ok_or_else(|| Error::Missing { object: object() })
}

pub(super) async fn get<K>(api: &Api<K>, object: String, name: &str) -> Result<K, Error>
where
    K: Clone + DeserializeOwned + Debug,
{
    match api.get(name).await {
        Ok(found) => Ok(found),
        Err(error) if is_missing(&error) => Err(Error::Missing { object }),
        Err(source) => Err(Error::Read { object, source }),
    }
}

pub(super) async fn secret(
    api: &Api<Secret>,
    name: &str,
    key: &'static str,
) -> Result<Vec<u8>, Error> {
    let object = format!("Secret {name}");
    let found = get(api, object.clone(), name).await?;
    let value = found.data.unwrap_or_default().remove(key);
    value.map(|it| it.0).ok_or(Error::NoKey { object, key })
}

async fn text(api: &Api<ConfigMap>, name: &str, key: &'static str) -> Result<String, Error> {
    let object = format!("ConfigMap {name}");
    let found = get(api, object.clone(), name).await?;
    let value = found.data.unwrap_or_default().remove(key);
    value.ok_or(Error::NoKey { object, key })
}

/// SSH keys are optional.
async fn ssh_keys(api: &Api<Secret>, name: &str) -> Result<Vec<String>, Error> {
    if name.is_empty() {
        return Ok(Vec::new());
    }
    let keys = match secret(api, name, "id_rsa.pub").await {
        Err(Error::Missing { .. }) => return Ok(Vec::new()),
        keys => keys?,
    };
    let keys = String::from_utf8_lossy(&keys);
    let keys = keys.lines().map(str::trim).filter(|key| !key.is_empty());
    Ok(keys.map(str::to_owned).collect())
}

fn service_networks(hcp: &HostedControlPlane) -> Vec<&str> {
    let networking = hcp.spec.networking.as_ref();
    let networks = networking.map(|it| it.service_network.as_slice());
    let networks: Vec<_> = networks
        .unwrap_or_default()
        .iter()
        .map(|network| network.cidr.0.as_str())
        .collect();
    if networks.is_empty() {
        return vec![SERVICES];
    }
    networks
}

fn dns(hcp: &HostedControlPlane) -> Vec<std::net::IpAddr> {
    let networks = service_networks(hcp).into_iter();
    networks.filter_map(cluster_dns).collect()
}

fn proxy(hcp: &HostedControlPlane) -> Option<Proxy> {
    let configuration = hcp.spec.configuration.as_ref()?;
    let ProxyConfiguration {
        http_proxy,
        https_proxy,
        no_proxy,
        readiness_endpoints: _,
        trusted_ca: _,
    } = configuration.proxy.as_ref()?;
    let http = http_proxy.clone().unwrap_or_default();
    let https = https_proxy.clone().unwrap_or_default();
    if http.is_empty() && https.is_empty() {
        return None;
    }
    let users = no_proxy.as_deref().unwrap_or_default().split(',');
    let users = users.map(|it| it.trim().to_owned());
    let mut direct: Vec<_> = users.filter(|it| !it.is_empty()).collect();
    direct.extend(NEVER_PROXIED.map(str::to_owned));
    direct.extend(networks(hcp));
    direct.sort();
    direct.dedup();
    Some(Proxy {
        http,
        https,
        direct,
    })
}

/// The cluster's networks and API server, which are reached without the proxy.
fn networks(hcp: &HostedControlPlane) -> Vec<String> {
    let mut all: Vec<_> = service_networks(hcp)
        .into_iter()
        .map(str::to_owned)
        .collect();
    if let Some(networking) = &hcp.spec.networking {
        all.extend(
            networking
                .cluster_network
                .iter()
                .map(|it| it.cidr.0.clone()),
        );
        all.extend(
            networking
                .machine_network
                .iter()
                .map(|it| it.cidr.0.clone()),
        );
    }
    let status = hcp.status.as_ref();
    let endpoint = status.and_then(|it| it.control_plane_endpoint.as_ref());
    all.extend(
        endpoint
            .map(|it| it.host.clone())
            .filter(|it| !it.is_empty()),
    );
    all
}
