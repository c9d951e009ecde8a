//! Proxies: the one that this operator uses for its own connections, and the guest's.

use std::collections::BTreeSet;
use std::fmt;

use api::hypershift::v1beta1::platform::PlatformType;
use api::hypershift::v1beta1::platform::azure::AzureCloud;
use k8s_openapi::api::core::v1::{Container, EnvVar};

use super::context::Context;

const HTTP: &str = "HTTP_PROXY";
const HTTPS: &str = "HTTPS_PROXY";
const NO_PROXY: &str = "NO_PROXY";
/// The Service of the guest's API server, which is always reached directly.
const API_SERVER: &str = "kube-apiserver";
/// Names and addresses within the guest.
const LOCAL: [&str; 5] = [
    "127.0.0.1",
    "localhost",
    ".svc",
    ".cluster.local",
    ".hypershift.local",
];
/// Metadata service of AWS and Azure.
const METADATA: &str = "169.254.169.254";
/// Wire server of Azure, which clouds other than the public one do not exempt.
const AZURE_WIRE_SERVER: &str = "168.63.129.16";
/// A machine network that does not restrict addresses.
const ANY: &str = "0.0.0.0/0";

/// The proxy that this operator uses, as in the environment variables of its process. Containers that access a cloud
/// get it, too. URLs may hold a password.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct OwnProxy {
    /// URL of the proxy for HTTP.
    pub http: Option<String>,
    /// URL of the proxy for HTTPS.
    pub https: Option<String>,
    /// Names and addresses that are reached without the proxy.
    pub exempt: Vec<String>,
}

// === impl OwnProxy ===

impl OwnProxy {
    /// The environment variables, or nothing if there is no proxy. `exempt` are further names and addresses that are
    /// reached without it.
    pub fn variables<'a>(
        &'a self,
        exempt: impl IntoIterator<Item = &'a str>,
    ) -> Vec<(&'static str, String)> {
        if self.http.is_none() && self.https.is_none() {
            return Vec::new();
        }
        let own = self.exempt.iter().map(String::as_str);
        let exempt = own.chain(exempt).chain([API_SERVER]);
        let urls = [(HTTP, &self.http), (HTTPS, &self.https)].into_iter();
        let urls = urls.filter_map(|(name, url)| url.clone().map(|url| (name, url)));
        urls.chain([(NO_PROXY, sorted(exempt))]).collect()
    }

    /// Replaces the environment variables of a container, if there is a proxy.
    pub fn set_env<'a>(
        &'a self,
        container: &mut Container,
        exempt: impl IntoIterator<Item = &'a str>,
    ) {
        let own = self.variables(exempt);
        if own.is_empty() {
            return;
        }
        let variables = container.env.get_or_insert_default();
        variables.retain(|variable| ![HTTP, HTTPS, NO_PROXY].contains(&variable.name.as_str()));
        variables.extend(own.into_iter().map(|(name, value)| EnvVar {
            name: name.to_owned(),
            value: Some(value),
            value_from: None,
        }));
    }
}

impl fmt::Debug for OwnProxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OwnProxy")
            .field("exempt", &self.exempt)
            .finish_non_exhaustive()
    }
}

/// Names and addresses that the guest reaches without its proxy, separated by commas: those of the cluster, and those
/// that users configure.
pub fn guest_exemptions(context: &Context<'_>) -> String {
    let networking = context.networking();
    let machines = networking.map(|networking| &networking.machine_network);
    let machines = machines.into_iter().flatten();
    let machines = machines.map(|network| network.cidr.0.as_str());
    let configuration = context.spec().configuration.as_ref();
    let users = configuration
        .and_then(|configuration| configuration.proxy.as_ref())
        .and_then(|proxy| proxy.no_proxy.as_deref());
    let users = users.unwrap_or_default().split(',').map(str::trim);
    let cloud = cloud_exemptions(context);
    let all = LOCAL
        .into_iter()
        .chain(machines.filter(|cidr| *cidr != ANY))
        .chain(context.service_cidrs())
        .chain(context.cluster_cidrs())
        .chain(cloud.iter().map(String::as_str))
        .chain(users);
    sorted(all)
}

/// Names and addresses of the cloud within its own network.
fn cloud_exemptions(context: &Context<'_>) -> Vec<String> {
    let platform = &context.spec().platform;
    match platform.type_ {
        PlatformType::Aws => {
            let region = platform.aws.as_ref().map_or("", |aws| aws.region.as_str());
            let names = match region {
                "us-east-1" => ".ec2.internal".to_owned(),
                region => format!(".{region}.compute.internal"),
            };
            vec![METADATA.to_owned(), names]
        }
        PlatformType::Azure => {
            let azure = platform.azure.as_ref();
            let is_public = azure.is_none_or(|azure| azure.cloud == AzureCloud::PublicCloud);
            let wire_server = (!is_public).then(|| AZURE_WIRE_SERVER.to_owned());
            [METADATA.to_owned()]
                .into_iter()
                .chain(wire_server)
                .collect()
        }
        PlatformType::Gcp
        | PlatformType::IbmCloud
        | PlatformType::KubeVirt
        | PlatformType::Agent
        | PlatformType::OpenStack
        | PlatformType::PowerVs
        | PlatformType::None => Vec::new(),
    }
}

/// Joins distinct items in order. Empty ones are omitted.
fn sorted<'a>(items: impl Iterator<Item = &'a str>) -> String {
    let items: BTreeSet<_> = items.filter(|item| !item.is_empty()).collect();
    items.into_iter().collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proxy(http: Option<&str>, https: Option<&str>) -> OwnProxy {
        OwnProxy {
            http: http.map(str::to_owned),
            https: https.map(str::to_owned),
            exempt: ["10.0.0.0/8", "", ".internal"].map(str::to_owned).into(),
        }
    }

    #[test]
    fn only_configured_proxies_become_variables() {
        let url = "http://proxy.example.com:3128";
        let exempt = ".internal,10.0.0.0/8,etcd,kube-apiserver";
        for (own, expected) in [
            (proxy(None, None), vec![]),
            (
                proxy(Some(url), None),
                vec![(HTTP, url), (NO_PROXY, exempt)],
            ),
            (
                proxy(None, Some(url)),
                vec![(HTTPS, url), (NO_PROXY, exempt)],
            ),
        ] {
            let variables = own.variables(["etcd", ".internal"]);
            let variables: Vec<_> = variables
                .iter()
                .map(|(name, value)| (*name, value.as_str()))
                .collect();
            assert_eq!(variables, expected);
        }
    }

    #[test]
    fn variables_replace_those_of_the_manifest() {
        let mut container = Container::default();
        let url = "http://proxy.example.com";
        let names = |container: &Container| {
            let variables = container.env.iter().flatten();
            variables
                .map(|variable| variable.name.clone())
                .collect::<Vec<_>>()
        };
        proxy(Some(url), Some(url)).set_env(&mut container, []);
        assert_eq!(names(&container), [HTTP, HTTPS, NO_PROXY]);
        proxy(Some(url), None).set_env(&mut container, []);
        assert_eq!(names(&container), [HTTP, NO_PROXY]);
        proxy(None, None).set_env(&mut container, []);
        assert_eq!(names(&container), [HTTP, NO_PROXY]);
    }

    #[test]
    fn passwords_of_proxies_are_not_printed() {
        let own = proxy(Some("http://user:secret@proxy.example.com"), None);
        assert!(!format!("{own:?}").contains("secret"));
    }
}
