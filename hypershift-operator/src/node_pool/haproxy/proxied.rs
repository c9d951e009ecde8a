//! Nodes that reach the API server through the HTTP proxy of their cluster: when they do, and the static pod that forwards
//! connections there.

use std::net::IpAddr;

use api::hypershift::v1beta1::hosted_cluster::HostedCluster;
use ipnet::IpNet;
use serde_json::{Value, json};

use super::Endpoint;

/// The program, which is in the image of the control-plane-operator.
pub(super) const PROGRAM: &str = "kubernetes-default-proxy";
/// The field with the proxy.
pub(super) const FIELD: &str = "spec.configuration.proxy.httpsProxy";
/// Entries of `noProxy` with this text name the API server as pods do.
const SERVICE: &str = "kubernetes";

/// URL of the proxy between nodes and the published address of the API server.
pub(super) fn url(cluster: &HostedCluster) -> Option<&str> {
    if super::is_private(cluster) {
        return None;
    }
    let proxy = cluster.spec.configuration.as_ref()?.proxy.as_ref()?;
    proxy.https_proxy.as_deref().filter(|it| !it.is_empty())
}

/// The proxy. `None` if there is none, or if the API server is exempt from it.
pub(super) fn proxy(
    cluster: &HostedCluster,
    local: &Endpoint,
    remote: &Endpoint,
) -> Result<Option<Endpoint>, String> {
    let Some(url) = url(cluster) else {
        return Ok(None);
    };
    if is_exempt(cluster, [local, remote]) {
        return Ok(None);
    }
    // The URL may have a password.
    let proxy = endpoint(url).ok_or_else(|| {
        format!("{FIELD} of the HostedCluster has an invalid port: use http://HOST:PORT")
    })?;
    proxy.validate(FIELD)?;
    Ok(Some(proxy))
}

/// The container of the static pod. It has no probe: what it forwards to is probed nowhere.
pub(super) fn container(
    image: &str,
    local: &Endpoint,
    proxy: &Endpoint,
    remote: &Endpoint,
) -> Value {
    json!({
        "name": PROGRAM,
        "image": image,
        "command": [
            "control-plane-operator",
            PROGRAM,
            format!("--listen-addr={}", local.written()),
            format!("--proxy-addr={}", proxy.written()),
            format!("--apiserver-addr={}", remote.written()),
        ],
    })
}

/// Host and port of a proxy. The program needs no scheme, and has no credentials.
fn endpoint(url: &str) -> Option<Endpoint> {
    let (scheme, rest) = url.split_once("://").unwrap_or(("http", url));
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = authority
        .rsplit_once('@')
        .map_or(authority, |(_, host)| host);
    let (host, port) = match host.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, i32::from(port.parse::<u16>().ok()?)),
        Some(_) | None if scheme.eq_ignore_ascii_case("https") => (host, 443),
        Some(_) | None => (host, 80),
    };
    let host = host.trim_start_matches('[').trim_end_matches(']');
    Some(Endpoint {
        host: host.to_owned(),
        port,
    })
}

/// Whether `noProxy` names one of the addresses of the API server, its Service, or a network of the cluster.
fn is_exempt(cluster: &HostedCluster, addresses: [&Endpoint; 2]) -> bool {
    let networking = &cluster.spec.networking;
    let services = networking.service_network.first().map(|it| &it.cidr.0);
    let pods = networking.cluster_network.first().map(|it| &it.cidr.0);
    let networks = [services, pods].map(|it| it.map(String::as_str));
    let configuration = cluster.spec.configuration.as_ref();
    let proxy = configuration.and_then(|it| it.proxy.as_ref());
    let list = proxy.and_then(|it| it.no_proxy.as_deref());
    let entries = list.unwrap_or_default().split(',').map(str::trim);
    let mut entries = entries.filter(|it| !it.is_empty());
    entries.any(|entry| {
        entry.contains(SERVICE)
            || networks.contains(&Some(entry))
            || addresses.iter().any(|address| matches(entry, address))
    })
}

/// Whether an entry of `noProxy` matches an address, by the rules of programs in Go.
fn matches(entry: &str, Endpoint { host, port }: &Endpoint) -> bool {
    if entry == "*" {
        return true;
    }
    let address = host.parse::<IpAddr>().ok();
    if let Ok(network) = entry.parse::<IpNet>() {
        return address.is_some_and(|it| network.contains(&it));
    }
    // An IPv6 address without brackets has colons, and no port.
    let has_port = !entry.ends_with(']') && entry.parse::<IpAddr>().is_err();
    let (name, only) = match entry.rsplit_once(':') {
        Some((name, only)) if has_port => (name, Some(only)),
        Some(_) | None => (entry, None),
    };
    if only.is_some_and(|only| only.parse::<i32>() != Ok(*port)) {
        return false;
    }
    let name = name.trim_start_matches('[').trim_end_matches(']');
    match (name.parse::<IpAddr>(), address) {
        (Ok(one), Some(address)) => one == address,
        (Ok(_), None) | (Err(_), Some(_)) => false,
        (Err(_), None) => is_in_domain(host, name),
    }
}

/// Whether a name is in a domain: `example.com` is the domain and its subdomains, `.example.com` and `*.example.com` are
/// its subdomains only.
fn is_in_domain(host: &str, domain: &str) -> bool {
    let host = host.trim_end_matches('.').to_ascii_lowercase();
    let domain = domain.to_ascii_lowercase();
    let domain = domain.strip_prefix('*').unwrap_or(&domain);
    let (domain, is_included) = match domain.strip_prefix('.') {
        Some(domain) => (domain, false),
        None => (domain, true),
    };
    let parent = host.strip_suffix(domain);
    !domain.is_empty()
        && parent.is_some_and(|it| {
            if it.is_empty() {
                return is_included;
            }
            it.len() > 1 && it.ends_with('.')
        })
}

#[cfg(test)]
mod tests {
    use api::hypershift::v1beta1::platform::aws::AwsEndpointAccess;

    use super::*;
    use crate::node_pool::fixtures;

    fn cluster(proxy: &Value) -> HostedCluster {
        let mut cluster = fixtures::cluster();
        let configuration = json!({ "proxy": proxy });
        cluster.spec.configuration = serde_json::from_value(configuration).unwrap();
        let networking = json!({
            "clusterNetwork": [{ "cidr": "10.132.0.0/14" }, { "cidr": "10.200.0.0/16" }],
            "serviceNetwork": [{ "cidr": "172.31.0.0/16" }],
        });
        cluster.spec.networking = serde_json::from_value(networking).unwrap();
        cluster
    }

    fn found(cluster: &HostedCluster) -> Result<Option<String>, String> {
        let remote = super::super::remote(cluster).unwrap();
        let found = proxy(cluster, &super::super::local(cluster), &remote);
        found.map(|it| it.map(|it| it.written()))
    }

    #[test]
    fn proxies_are_addressed_without_scheme_and_credentials() {
        for (url, expected) in [
            ("http://proxy.example.com:3128", "proxy.example.com:3128"),
            ("http://proxy.example.com", "proxy.example.com:80"),
            ("https://proxy.example.com", "proxy.example.com:443"),
            ("HTTPS://proxy.example.com/", "proxy.example.com:443"),
            (
                "http://user:secret@proxy.example.com:3128/",
                "proxy.example.com:3128",
            ),
            ("proxy.example.com:3128", "proxy.example.com:3128"),
            ("http://192.0.2.1", "192.0.2.1:80"),
            ("http://[fd00::5]:3128", "[fd00::5]:3128"),
            ("https://[fd00::5]", "[fd00::5]:443"),
        ] {
            let found = found(&cluster(&json!({ "httpsProxy": url })));
            assert_eq!(found, Ok(Some(expected.to_owned())), "{url}");
        }
        for url in [
            "http://proxy.example.com:port",
            "http://:3128",
            "http://a b:1",
        ] {
            let refused = found(&cluster(&json!({ "httpsProxy": url }))).unwrap_err();
            assert!(refused.starts_with(FIELD), "{url}: {refused}");
        }
        let secret = json!({ "httpsProxy": "http://user:secret@proxy:port" });
        let refused = found(&cluster(&secret)).unwrap_err();
        assert!(!refused.contains("secret"), "{refused}");
    }

    #[test]
    fn nodes_use_the_proxy_for_https_of_public_clusters() {
        let url = "http://proxy.example.com:3128";
        for (proxy, access, expected) in [
            (
                json!({ "httpsProxy": url }),
                AwsEndpointAccess::Public,
                true,
            ),
            (
                json!({ "httpsProxy": "" }),
                AwsEndpointAccess::Public,
                false,
            ),
            (
                json!({ "httpProxy": url }),
                AwsEndpointAccess::Public,
                false,
            ),
            (
                json!({ "httpsProxy": url }),
                AwsEndpointAccess::PublicAndPrivate,
                false,
            ),
            (
                json!({ "httpsProxy": url }),
                AwsEndpointAccess::Private,
                false,
            ),
        ] {
            let mut cluster = cluster(&proxy);
            cluster.spec.platform.aws.as_mut().unwrap().endpoint_access = access;
            let found = found(&cluster).unwrap();
            assert_eq!(found.is_some(), expected, "{proxy} {access:?}");
        }
    }

    /// The API server is at 172.20.0.1:6443 on the node, and published at api.dev.example.com:6443.
    #[test]
    fn exempt_api_servers_are_reached_directly() {
        for (list, expected) in [
            ("", false),
            (
                "localhost,127.0.0.1,.other.example.org,192.168.0.0/16",
                false,
            ),
            ("*", true),
            // The published address.
            ("api.dev.example.com", true),
            ("API.dev.example.com", true),
            ("example.com", true),
            (".example.com", true),
            ("*.example.com", true),
            (" localhost , .example.com ", true),
            (".api.dev.example.com", false),
            ("i.dev.example.com", false),
            ("api.dev.example.com:6443", true),
            ("api.dev.example.com:8080", false),
            ("api.dev.example.com:https", false),
            // The address on the node.
            ("172.20.0.1", true),
            ("172.20.0.1:6443", true),
            ("172.20.0.1:443", false),
            ("172.16.0.0/12", true),
            ("172.20.0.10", false),
            // The Service, and the first networks.
            ("kubernetes", true),
            ("kubernetes.default.svc", true),
            ("172.31.0.0/16", true),
            ("10.132.0.0/14", true),
            ("10.200.0.0/16", false),
            ("10.132.0.0/16", false),
        ] {
            let url = "http://proxy.example.net:3128";
            let cluster = cluster(&json!({ "httpsProxy": url, "noProxy": list }));
            let is_direct = found(&cluster).unwrap().is_none();
            assert_eq!(is_direct, expected, "{list:?}");
        }
    }

    #[test]
    fn exemptions_match_addresses_of_both_families() {
        let at = |host: &str| Endpoint {
            host: host.to_owned(),
            port: 6443,
        };
        for (entry, host, expected) in [
            ("fd00::/8", "fd00::1", true),
            ("fd00::1", "fd00::1", true),
            ("[fd00::1]", "fd00::1", true),
            ("[fd00::1]:6443", "fd00::1", true),
            ("[fd00::1]:443", "fd00::1", false),
            ("10.0.0.0/8", "fd00::1", false),
            ("10.0.0.0/8", "ten.example.com", false),
            ("0.0.0.1", "10.0.0.1", false),
            (".", "example.com", false),
        ] {
            assert_eq!(matches(entry, &at(host)), expected, "{entry} {host}");
        }
    }
}
