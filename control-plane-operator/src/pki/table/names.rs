//! The names and addresses that certificates are good for.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::component::Context;

/// A Service: by its name, and by its full names.
pub(super) fn service(context: &Context<'_>, name: &str) -> Vec<String> {
    let namespace = context.namespace();
    vec![
        name.to_owned(),
        format!("{name}.{namespace}.svc"),
        format!("{name}.{namespace}.svc.cluster.local"),
    ]
}

/// A Service, and from within the pod.
pub(super) fn service_and_localhost(context: &Context<'_>, name: &str) -> Vec<String> {
    let mut names = service(context, name);
    names.push("localhost".to_owned());
    names
}

/// A Service, and the name that the guest gives to its endpoints.
pub(super) fn service_and_guest(context: &Context<'_>, name: &str) -> Vec<String> {
    let mut names = service(context, name);
    names.push(format!("{name}.default.svc"));
    names.push(format!("{name}.default.svc.cluster.local"));
    names
}

/// All pods of a headless Service.
pub(super) fn pods(context: &Context<'_>, service: &str) -> Vec<String> {
    let namespace = context.namespace();
    vec![
        format!("*.{service}.{namespace}.svc"),
        format!("*.{service}.{namespace}.svc.cluster.local"),
    ]
}

/// A name or an address that is known by now.
pub(super) fn known(host: &str) -> Option<String> {
    (!host.is_empty()).then(|| host.to_owned())
}

/// The API server: by its names in the guest and from outside, and by its addresses.
pub(super) fn api_server(context: &Context<'_>) -> Vec<String> {
    let mut names = vec!["localhost".to_owned()];
    for name in ["kubernetes", "openshift"] {
        for end in ["", ".default", ".default.svc", ".default.svc.cluster.local"] {
            names.push(format!("{name}{end}"));
        }
    }
    names.extend(known(&context.infra.api.host));
    names.extend(
        context
            .spec()
            .kube_api_server_dns_name
            .clone()
            .filter(|name| !name.is_empty()),
    );
    names.push(context.api_internal_host());
    names.extend(["127.0.0.1", "0:0:0:0:0:0:0:1"].map(canonical));
    names.extend(
        context
            .service_cidrs()
            .into_iter()
            .filter_map(first_address),
    );
    names.push(context.api_advertise_address().to_owned());
    names
}

fn canonical(address: &str) -> String {
    address
        .parse::<IpAddr>()
        .map_or_else(|_| address.to_owned(), |address| address.to_string())
}

/// The first address of a range, which the Service `kubernetes` gets.
fn first_address(range: &str) -> Option<String> {
    let (address, length) = range.split_once('/')?;
    let length: u32 = length.parse().ok()?;
    match address.parse().ok()? {
        IpAddr::V4(address) => {
            let mask = u32::MAX.checked_shl(32 - length.min(32)).unwrap_or(0);
            let base = u32::from(address) & mask;
            Some(Ipv4Addr::from(base.checked_add(1)?).to_string())
        }
        IpAddr::V6(address) => {
            let mask = u128::MAX.checked_shl(128 - length.min(128)).unwrap_or(0);
            let base = u128::from(address) & mask;
            Some(Ipv6Addr::from(base.checked_add(1)?).to_string())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_address_of_a_range_is_that_of_the_service_kubernetes() {
        for (range, address) in [
            ("172.31.0.0/16", Some("172.31.0.1")),
            ("10.3.7.9/8", Some("10.0.0.1")),
            ("fd02::/112", Some("fd02::1")),
            ("nonsense", None),
        ] {
            assert_eq!(first_address(range).as_deref(), address, "{range}");
        }
    }
}
