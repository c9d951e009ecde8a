//! The HAProxy configuration: host names and their backend Services.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use control_plane_component::{Context, Error, Result};
use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::Value;

use crate::components::cloud::key_vault;

/// Azure's DNS server, which also resolves private names of the pods' network.
const AZURE_DNS: &str = "168.63.129.16:53";
const KEY: &str = "haproxy.cfg";
/// The label of Routes that the control plane's own router serves.
const LABEL: &str = "hypershift.openshift.io/hosted-control-plane";

pub(super) fn adapt(context: &Context<'_>, config_map: &mut ConfigMap) -> Result<()> {
    let data = config_map.data.get_or_insert_default();
    let config = data
        .get_mut(KEY)
        .ok_or_else(|| Error::missing("manifest of ConfigMap router", KEY))?;
    let mut routing = routing(context);
    routing.add_key_vaults(&key_vault::private_hosts(context)?);
    config.push_str(&routing.rules);
    config.push_str(&routing.backends);
    Ok(())
}

/// Frontend rules, which continue the manifest's last section, and backends.
#[derive(Debug, Default, PartialEq, Eq)]
struct Routing {
    rules: String,
    backends: String,
}

// === impl Routing ===

impl Routing {
    /// Forwards connections to private key vaults, whose names only Azure's DNS resolves.
    fn add_key_vaults(&mut self, hosts: &[String]) {
        for (number, host) in hosts.iter().enumerate() {
            let name = match number {
                0 => "keyvault".to_owned(),
                number => format!("keyvault_{number}"),
            };
            let _ = writeln!(
                self.rules,
                "  acl is_{name} req_ssl_sni -i {host}\n  use_backend {name} if is_{name}"
            );
            let _ = write!(
                self.backends,
                "\nbackend {name}\n  \
                 server {name} {host}:443 resolvers azure_dns resolve-prefer ipv4 init-addr none\n"
            );
        }
        if !hosts.is_empty() {
            let _ = write!(
                self.backends,
                "\nresolvers azure_dns\n  nameserver azure {AZURE_DNS}\n  hold valid 10s\n"
            );
        }
    }
}

fn routing(context: &Context<'_>) -> Routing {
    let mut routing = Routing::default();
    for (name, host, service) in routes(context) {
        // Writing to a String cannot fail.
        let _ = writeln!(
            routing.rules,
            "  use_backend {name} if {{ req_ssl_sni -i {host} }}"
        );
        let _ = write!(
            routing.backends,
            "\nbackend {name}\n  server {name} {}\n",
            address(context, service)
        );
    }
    routing
}

/// Name, host and Service of each Route of this control plane that has a host, sorted by name.
fn routes<'a>(context: &Context<'a>) -> Vec<(&'a str, &'a str, &'a str)> {
    let mut all = BTreeMap::new();
    for (name, route) in context.objects.of_kind("route.openshift.io", "Route") {
        let is_ours = route["metadata"]["labels"][LABEL] == context.namespace();
        let host = route["spec"]["host"].as_str().filter(|host| is_name(host));
        if let (true, Some(host), Some(service)) =
            (is_ours, host, route["spec"]["to"]["name"].as_str())
        {
            all.insert(name, (host, service));
        }
    }
    let all = all.into_iter();
    all.map(|(name, (host, service))| (name, host, service))
        .collect()
}

/// Whether this is a valid DNS name: other text could inject configuration.
fn is_name(host: &str) -> bool {
    let known = |byte: u8| byte.is_ascii_alphanumeric() || b".-*".contains(&byte);
    !host.is_empty() && host.bytes().all(known)
}

/// The address of a Service: its cluster IP, so that the router does not depend on DNS.
fn address(context: &Context<'_>, name: &str) -> String {
    let service = context.objects.get("", "Service", name);
    let spec = service.map_or(&Value::Null, |service| &service["spec"]);
    let port = spec["ports"][0]["port"].as_i64().unwrap_or(443);
    let ip = spec["clusterIP"].as_str().filter(|ip| *ip != "None");
    format!("{}:{port}", ip.unwrap_or(name))
}
