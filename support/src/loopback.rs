//! Servers on this machine, which no proxy reaches.

use std::net::IpAddr;

use http::Uri;

/// Whether a URL leads to this machine.
pub(crate) fn is_here(to: &Uri) -> bool {
    let host = to.host().unwrap_or_default();
    let address = host.trim_matches(['[', ']']).parse::<IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.is_loopback())
}
