//! Free TCP ports on loopback.
//!
//! They are taken below the kernel's ephemeral range, so that the source port of an outgoing connection never
//! sits on the port of a component that is being restarted, and above the range of the in-memory provider.

use std::net::{Ipv4Addr, TcpListener};
use std::sync::atomic::{AtomicU16, Ordering};

use anyhow::{Result, bail};

const FIRST: u16 = 24_100;
const COUNT: u16 = 8_000;

/// Where this process looks next; the start differs between processes.
static NEXT: AtomicU16 = AtomicU16::new(0);

/// A port of 127.0.0.1 that no process listens on and that this process has not been given before.
pub fn allocate() -> Result<u16> {
    let spread = u16::try_from(std::process::id() % 97).expect("invariant: below 97") * 80;
    for _ in 0..COUNT {
        let offset = NEXT.fetch_add(1, Ordering::Relaxed).wrapping_add(spread) % COUNT;
        let port = FIRST + offset;
        if TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
            return Ok(port);
        }
    }
    bail!(
        "no free TCP port between {FIRST} and {}: end what holds them",
        FIRST + COUNT
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_allocated_once_and_can_be_bound() {
        let (one, two) = (allocate().unwrap(), allocate().unwrap());
        assert_ne!(one, two);
        TcpListener::bind((Ipv4Addr::LOCALHOST, one)).unwrap();
    }
}
