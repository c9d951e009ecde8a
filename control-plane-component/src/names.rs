//! The names and addresses that certificates are good for.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::context::Context;

/// A Service: by its name, and by its full names.
pub fn service(context: &Context<'_>, name: &str) -> Vec<String> {
    let namespace = context.namespace();
    vec![
        name.to_owned(),
        format!("{name}.{namespace}.svc"),
        format!("{name}.{namespace}.svc.cluster.local"),
    ]
}

/// A Service, and from within the pod.
pub fn service_and_localhost(context: &Context<'_>, name: &str) -> Vec<String> {
    let mut names = service(context, name);
    names.push("localhost".to_owned());
    names
}

/// A Service, and the name that the guest gives to its endpoints.
pub fn service_and_guest(context: &Context<'_>, name: &str) -> Vec<String> {
    let mut names = service(context, name);
    names.push(format!("{name}.default.svc"));
    names.push(format!("{name}.default.svc.cluster.local"));
    names
}

/// All pods of a headless Service.
pub fn pods(context: &Context<'_>, service: &str) -> Vec<String> {
    let namespace = context.namespace();
    vec![
        format!("*.{service}.{namespace}.svc"),
        format!("*.{service}.{namespace}.svc.cluster.local"),
    ]
}

/// A name or an address that is known by now.
pub fn known(host: &str) -> Option<String> {
    (!host.is_empty()).then(|| host.to_owned())
}

/// The one form in which an address is compared: certificates hold addresses as bytes, so that the form in which a user
/// wrote one is lost. Everything that is not an address stays as it is.
pub fn canonical(address: &str) -> String {
    address
        .parse::<IpAddr>()
        .map_or_else(|_| address.to_owned(), |address| address.to_string())
}

/// The first address of a range, which the Service `kubernetes` gets.
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
    fn addresses_have_one_form_and_names_keep_theirs() {
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
