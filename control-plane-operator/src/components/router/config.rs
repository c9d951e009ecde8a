//! The configuration of HAProxy: which name leads to which Service.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use control_plane_component::{Context, Error, Result};
use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::Value;

const KEY: &str = "haproxy.cfg";
/// The label of Routes that the control plane's own router serves.
const LABEL: &str = "hypershift.openshift.io/hosted-control-plane";

pub(super) fn adapt(context: &Context<'_>, config_map: &mut ConfigMap) -> Result<()> {
    let data = config_map.data.get_or_insert_default();
    let config = data
        .get_mut(KEY)
        .ok_or_else(|| Error::missing("manifest of ConfigMap router", KEY))?;
    let ways = ways(context);
    config.push_str(&ways.rules);
    config.push_str(&ways.back_ends);
    Ok(())
}

/// Where names lead: rules belong to the front end, which ends the manifest.
#[derive(Debug, Default, PartialEq, Eq)]
struct Ways {
    rules: String,
    back_ends: String,
}

fn ways(context: &Context<'_>) -> Ways {
    let mut ways = Ways::default();
    for (name, host, service) in routes(context) {
        // Writing to a String cannot fail.
        let _ = writeln!(
            ways.rules,
            "  use_backend {name} if {{ req_ssl_sni -i {host} }}"
        );
        let _ = write!(
            ways.back_ends,
            "\nbackend {name}\n  server {name} {}\n",
            address(context, service)
        );
    }
    ways
}

/// Name, host and Service of each Route that is ours, by name, and that has a host already.
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

/// Whether this is a name of DNS: nothing else may get into the configuration.
fn is_name(host: &str) -> bool {
    let known = |byte: u8| byte.is_ascii_alphanumeric() || b".-*".contains(&byte);
    !host.is_empty() && host.bytes().all(known)
}

/// Where a Service is reached: by its address, which stays when DNS is away.
fn address(context: &Context<'_>, name: &str) -> String {
    let service = context.objects.get("", "Service", name);
    let spec = service.map_or(&Value::Null, |service| &service["spec"]);
    let port = spec["ports"][0]["port"].as_i64().unwrap_or(443);
    let ip = spec["clusterIP"].as_str().filter(|ip| *ip != "None");
    format!("{}:{port}", ip.unwrap_or(name))
}
