//! How OpenShift's API servers reach etcd, and what they reach without the proxy.

use control_plane_component::Context;

/// Service of the managed etcd.
const SERVICE: &str = "etcd-client";

/// URL of etcd.
pub(super) fn url(context: &Context<'_>) -> String {
    match unmanaged(context) {
        Some(endpoint) => endpoint.to_owned(),
        None => format!("https://{SERVICE}:2379"),
    }
}

/// Hosts that are reached without the konnectivity proxy, separated by commas.
pub(super) fn unproxied_hosts(context: &Context<'_>) -> String {
    let etcd = unmanaged(context).map_or(SERVICE, host);
    format!("kube-apiserver,{etcd},audit-webhook")
}

fn unmanaged<'a>(context: &Context<'a>) -> Option<&'a str> {
    let etcd = &context.hcp.spec.etcd;
    let unmanaged = etcd
        .unmanaged
        .as_ref()
        .filter(|_| !context.is_etcd_managed());
    unmanaged.map(|etcd| etcd.endpoint.as_str())
}

/// The host of a URL, without brackets.
fn host(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#']).next().unwrap_or(rest);
    if let Some(address) = authority.strip_prefix('[') {
        return address.split(']').next().unwrap_or(address);
    }
    authority.split(':').next().unwrap_or(authority)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_have_neither_port_nor_brackets() {
        for (url, expected) in [
            ("https://etcd.example.com:2379", "etcd.example.com"),
            ("https://etcd.example.com", "etcd.example.com"),
            ("https://etcd.example.com:2379/path", "etcd.example.com"),
            ("https://[fd00::5]:2379", "fd00::5"),
            ("https://192.0.2.7:2379", "192.0.2.7"),
        ] {
            assert_eq!(host(url), expected, "{url}");
        }
    }
}
