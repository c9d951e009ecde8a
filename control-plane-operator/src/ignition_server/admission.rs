//! Which connections are served when there are more of them than places.
//!
//! A connection has a place from the moment it is accepted. Until it has shown a token it can lose the place to a newer
//! one: the peer with the most such connections gives up its oldest. A machine with a token keeps its place, so that
//! connections that send nothing cannot keep machines out, however many they are.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

/// How many connections there may be.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// At once.
    pub(super) total: usize,
    /// Of one peer, as long as they have not shown a token.
    pub(super) per_peer: usize,
}

/// An IPv4 address, or an IPv6 network: a host has a /64 for itself.
type Peer = u128;

#[derive(Debug)]
struct Place {
    peer: Peer,
    has_token: bool,
    /// Dropped with the place, which ends the connection.
    _held: oneshot::Sender<()>,
}

/// The places.
#[derive(Debug)]
struct Places {
    limits: Limits,
    next: u64,
    taken: BTreeMap<u64, Place>,
}

/// Gives places to connections.
#[derive(Debug, Clone)]
pub(super) struct Admission(Arc<Mutex<Places>>);

/// A place. It is free again when this is dropped.
#[derive(Debug)]
pub(super) struct Permit {
    admission: Admission,
    id: u64,
}

// === impl Admission ===

impl Admission {
    pub(super) fn new(limits: Limits) -> Self {
        let places = Places {
            limits,
            next: 0,
            taken: BTreeMap::new(),
        };
        Self(Arc::new(Mutex::new(places)))
    }

    /// A place for a connection, and what completes when the connection loses it. None where machines with a token have
    /// all places.
    pub(super) fn admit(&self, peer: IpAddr) -> Option<(Permit, oneshot::Receiver<()>)> {
        let (held, lost) = oneshot::channel();
        let id = self.places().take(of(peer), held)?;
        let admission = self.clone();
        Some((Permit { admission, id }, lost))
    }

    fn places(&self) -> MutexGuard<'_, Places> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl Permit ===

impl Permit {
    /// The connection has shown a token: it keeps its place.
    pub(super) fn keep(&self) {
        if let Some(place) = self.admission.places().taken.get_mut(&self.id) {
            place.has_token = true;
        }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.admission.places().taken.remove(&self.id);
    }
}

// === impl Places ===

impl Places {
    fn take(&mut self, peer: Peer, held: oneshot::Sender<()>) -> Option<u64> {
        if self.waiting().filter(|(_, of)| *of == peer).count() >= self.limits.per_peer {
            self.evict(peer);
        }
        if self.taken.len() >= self.limits.total {
            let busiest = self.busiest()?;
            self.evict(busiest);
        }
        let id = self.next;
        self.next = self.next.wrapping_add(1);
        let place = Place {
            peer,
            has_token: false,
            _held: held,
        };
        self.taken.insert(id, place);
        Some(id)
    }

    /// Connections that have not shown a token, the oldest first.
    fn waiting(&self) -> impl Iterator<Item = (u64, Peer)> {
        let waiting = self.taken.iter().filter(|(_, place)| !place.has_token);
        waiting.map(|(id, place)| (*id, place.peer))
    }

    /// The peer with the most connections that have not shown a token.
    fn busiest(&self) -> Option<Peer> {
        let mut counts: BTreeMap<Peer, usize> = BTreeMap::new();
        for (_, peer) in self.waiting() {
            *counts.entry(peer).or_default() += 1;
        }
        let busiest = counts.into_iter().max_by_key(|(_, count)| *count);
        busiest.map(|(peer, _)| peer)
    }

    fn evict(&mut self, peer: Peer) {
        let oldest = self.waiting().find(|(_, of)| *of == peer);
        if let Some((id, _)) = oldest {
            self.taken.remove(&id);
        }
    }
}

fn of(peer: IpAddr) -> Peer {
    match peer.to_canonical() {
        IpAddr::V4(address) => u128::from(address.to_ipv6_mapped()),
        IpAddr::V6(address) => u128::from(address) & (u128::MAX << 64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn admission(total: usize, per_peer: usize) -> Admission {
        Admission::new(Limits { total, per_peer })
    }

    fn peer(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    fn is_lost(lost: &mut oneshot::Receiver<()>) -> bool {
        lost.try_recv() == Err(oneshot::error::TryRecvError::Closed)
    }

    #[test]
    fn the_busiest_peer_gives_up_its_oldest_connection() {
        let admission = admission(4, 3);
        let (_first, mut first) = admission.admit(peer("10.0.0.1")).unwrap();
        let (_second, mut second) = admission.admit(peer("10.0.0.1")).unwrap();
        let (_third, mut third) = admission.admit(peer("10.0.0.1")).unwrap();
        let (_other, mut other) = admission.admit(peer("10.0.0.2")).unwrap();
        let _machine = admission.admit(peer("10.0.0.3")).unwrap();
        assert!(is_lost(&mut first) && !is_lost(&mut second));
        // A peer has as many as it may have, and not more, although there are places.
        let _again = admission.admit(peer("10.0.0.1")).unwrap();
        assert!(is_lost(&mut second) && !is_lost(&mut third) && !is_lost(&mut other));
    }

    #[test]
    fn one_peer_never_has_all_places() {
        let admission = admission(8, 2);
        let all: Vec<_> = (0..5)
            .map(|_| admission.admit(peer("fd00::1")).unwrap())
            .collect();
        let mut lost = all.into_iter();
        let gone = lost
            .by_ref()
            .take(3)
            .all(|(_, mut lost)| is_lost(&mut lost));
        assert!(gone);
    }

    #[test]
    fn a_connection_with_a_token_keeps_its_place() {
        let admission = admission(2, 2);
        let (machine, mut kept) = admission.admit(peer("10.0.0.1")).unwrap();
        machine.keep();
        for _ in 0..10 {
            drop(admission.admit(peer("10.0.0.1")).unwrap());
        }
        let (other, _held) = admission.admit(peer("10.0.0.1")).unwrap();
        let _newer = admission.admit(peer("10.0.0.2")).unwrap();
        assert!(!is_lost(&mut kept));
        drop(other);
        drop(machine);
        assert!(is_lost(&mut kept));
    }

    #[test]
    fn machines_with_a_token_are_never_displaced() {
        let admission = admission(1, 1);
        let (machine, _held) = admission.admit(peer("10.0.0.1")).unwrap();
        machine.keep();
        assert!(admission.admit(peer("10.0.0.2")).is_none());
        drop(machine);
        assert!(admission.admit(peer("10.0.0.2")).is_some());
    }

    #[test]
    fn a_network_of_ipv6_is_one_peer_and_a_mapped_address_is_ipv4() {
        assert_eq!(of(peer("fd00::1")), of(peer("fd00::ffff")));
        assert_ne!(of(peer("fd00::1")), of(peer("fd00:0:0:1::1")));
        assert_eq!(of(peer("::ffff:10.0.0.1")), of(peer("10.0.0.1")));
        assert_ne!(of(peer("10.0.0.1")), of(peer("10.0.0.2")));
    }
}
