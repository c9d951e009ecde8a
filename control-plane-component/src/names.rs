//! DNS names and IP addresses of certificates.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::context::Context;

/// The names of a Service: short and fully qualified.
pub fn service(context: &Context<'_>, name: &str) -> Vec<String> {
    let namespace = context.namespace();
    vec![
        name.to_owned(),
        format!("{name}.{namespace}.svc"),
        format!("{name}.{namespace}.svc.cluster.local"),
    ]
}

/// The names of a Service, and localhost.
pub fn service_and_localhost(context: &Context<'_>, name: &str) -> Vec<String> {
    let mut names = service(context, name);
    names.push("localhost".to_owned());
    names
}

/// The names of a Service, and of the Service in the guest that points to it.
pub fn service_and_guest(context: &Context<'_>, name: &str) -> Vec<String> {
    let mut names = service(context, name);
    names.push(format!("{name}.default.svc"));
    names.push(format!("{name}.default.svc.cluster.local"));
    names
}

/// Wildcard names of the pods of a headless Service.
pub fn pods(context: &Context<'_>, service: &str) -> Vec<String> {
    let namespace = context.namespace();
    vec![
        format!("*.{service}.{namespace}.svc"),
        format!("*.{service}.{namespace}.svc.cluster.local"),
    ]
}

/// Returns the host unless it is empty, that is not known yet.
pub fn known(host: &str) -> Option<String> {
    (!host.is_empty()).then(|| host.to_owned())
}

/// Returns the canonical form of an IP address; other names stay unchanged. Certificates hold addresses as bytes, so
/// names can be compared only in canonical form.
pub fn canonical(address: &str) -> String {
    address
        .parse::<IpAddr>()
        .map_or_else(|_| address.to_owned(), |address| address.to_string())
}

/// The first address of a CIDR, which the Service `kubernetes` gets.
pub fn first_address(range: &str) -> Option<String> {
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
    fn addresses_are_canonicalized_and_names_unchanged() {
        for (written, expected) in [
            ("FD00::1", "fd00::1"),
            ("fd00:0:0:0:0:0:0:1", "fd00::1"),
            ("fd00::0001", "fd00::1"),
            ("172.20.0.1", "172.20.0.1"),
            ("api.example.com", "api.example.com"),
            ("*.apps.example.com", "*.apps.example.com"),
        ] {
            assert_eq!(canonical(written), expected, "{written}");
        }
    }

    #[test]
    fn first_address_of_a_service_cidr() {
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
