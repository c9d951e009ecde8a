//! The proxy of a cluster, which machines use from their first request on.

use std::collections::BTreeSet;

use api::hypershift::v1beta1::hosted_cluster::HostedCluster;
use api::hypershift::v1beta1::platform::PlatformType;

use super::secrets::Proxy;

/// Names and addresses within the cluster.
const LOCAL: [&str; 5] = ["127.0.0.1", "localhost", ".svc", ".cluster.local", ".local"];
/// Metadata service of AWS and Azure.
const METADATA: &str = "169.254.169.254";

/// The proxy. `None` if there is neither one for HTTP nor one for HTTPS.
pub(super) fn of(cluster: &HostedCluster) -> Option<Proxy> {
    let proxy = cluster.spec.configuration.as_ref()?.proxy.as_ref()?;
    let http = proxy.http_proxy.clone().unwrap_or_default();
    let https = proxy.https_proxy.clone().unwrap_or_default();
    if http.is_empty() && https.is_empty() {
        return None;
    }
    let users = proxy.no_proxy.as_deref().unwrap_or_default();
    Some(Proxy {
        http,
        https,
        exempt: exempt(cluster, users),
    })
}

/// What is reached without it: names and addresses of the cluster and its cloud, and those of the user, in order. They are
/// those of the Proxy in the hosted cluster: the ignition server of a private cluster, for one, has a name in `.local`.
fn exempt(cluster: &HostedCluster, users: &str) -> Vec<String> {
    let (networking, platform) = (&cluster.spec.networking, &cluster.spec.platform);
    let machines = networking.machine_network.iter().map(|it| &it.cidr);
    let pods = networking.cluster_network.iter().map(|it| &it.cidr);
    let services = networking.service_network.iter().map(|it| &it.cidr);
    let networks = machines.chain(pods).chain(services);
    let mut all: BTreeSet<_> = LOCAL.map(str::to_owned).into();
    all.extend(networks.map(|it| it.0.clone()));
    if [PlatformType::Aws, PlatformType::Azure].contains(&platform.type_) {
        all.insert(METADATA.to_owned());
    }
    let region = platform.aws.as_ref().map_or("", |it| it.region.as_str());
    all.extend(match region {
        "" => None,
        "us-east-1" => Some(".ec2.internal".to_owned()),
        region => Some(format!(".{region}.compute.internal")),
    });
    let users = users.split(',').map(str::trim).filter(|it| !it.is_empty());
    all.extend(users.map(str::to_owned));
    all.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::facts::fixture;

    fn found(platform: &str, proxy: &Value) -> Option<Proxy> {
        let mut cluster = fixture::hosted_cluster(platform);
        let machines = json!([{ "cidr": "10.9.0.0/16" }]);
        cluster.spec.networking.machine_network = serde_json::from_value(machines).unwrap();
        let configuration = json!({ "proxy": proxy });
        cluster.spec.configuration = serde_json::from_value(configuration).unwrap();
        of(&cluster)
    }

    #[test]
    fn machines_use_the_proxy_of_their_cluster() {
        let url = "http://proxy.example.com:3128";
        for (proxy, expected) in [
            (json!({}), None),
            // Without a proxy there is nothing to exempt.
            (json!({ "noProxy": ".example.com" }), None),
            (json!({ "httpProxy": "", "httpsProxy": "" }), None),
            (json!({ "httpProxy": url }), Some((url, ""))),
            (json!({ "httpsProxy": url }), Some(("", url))),
        ] {
            let found = found("agent", &proxy);
            let urls = found
                .as_ref()
                .map(|it| (it.http.as_str(), it.https.as_str()));
            assert_eq!(urls, expected, "{proxy}");
        }
    }

    #[test]
    fn clusters_and_their_clouds_are_reached_directly() {
        let proxy = json!({ "httpsProxy": "http://p:1", "noProxy": " .example.com,, 10.9.0.0/16" });
        for (platform, clouds) in [
            ("agent", [].as_slice()),
            ("kubevirt", &[]),
            ("aws", &[".ec2.internal", "169.254.169.254"]),
        ] {
            let of_cluster = [
                ".cluster.local",
                ".example.com",
                ".local",
                ".svc",
                "10.132.0.0/14",
                "10.9.0.0/16",
                "127.0.0.1",
                "172.31.0.0/16",
                "localhost",
            ];
            let mut expected = [&of_cluster[..], clouds].concat();
            expected.sort_unstable();
            let found = found(platform, &proxy).unwrap().exempt;
            assert_eq!(found, expected, "{platform}");
        }
    }
}
