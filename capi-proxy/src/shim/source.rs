//! The client that connections and reviews are accounted to: the address of the peer, without the bits that a pod can
//! choose.

use std::net::{IpAddr, Ipv6Addr};

/// Bits of an IPv6 address that a peer can choose.
const HOST_BITS: u32 = 64;

/// A peer: an IPv4 address, or an IPv6 network of 64 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Source(IpAddr);

// === impl Source ===

impl From<IpAddr> for Source {
    fn from(address: IpAddr) -> Self {
        Self(match address.to_canonical() {
            IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from(
                u128::from(address) >> HOST_BITS << HOST_BITS,
            )),
            address @ IpAddr::V4(_) => address,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_one_peer_are_one_source() {
        let source = |text: &str| Source::from(text.parse::<IpAddr>().unwrap());
        assert_eq!(source("10.0.0.1"), source("::ffff:10.0.0.1"));
        assert_ne!(source("10.0.0.1"), source("10.0.0.2"));
        assert_eq!(source("fd00::1"), source("fd00::ffff:0:0:1"));
        assert_ne!(source("fd00:0:0:1::1"), source("fd00:0:0:2::1"));
    }
}
