//! Admission of connections when the limit is reached.
//!
//! Each accepted connection takes a slot. Until it presents a valid token, a newer connection can evict it: the peer
//! with the most such connections loses its oldest. Machines with a token keep their slot, so that idle connections
//! cannot block them.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

/// Connection limits.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// Concurrent connections.
    pub(super) total: usize,
    /// Concurrent connections of one peer without a valid token.
    pub(super) per_peer: usize,
}

/// An IPv4 address, or an IPv6 /64 network, because a host typically owns a /64.
type Peer = u128;

#[derive(Debug)]
struct Slot {
    peer: Peer,
    has_token: bool,
    /// Dropping it closes the connection.
    _eviction: oneshot::Sender<()>,
}

/// All slots.
#[derive(Debug)]
struct Slots {
    limits: Limits,
    next: u64,
    taken: BTreeMap<u64, Slot>,
}

/// Assigns slots to connections.
#[derive(Debug, Clone)]
pub(super) struct Admission(Arc<Mutex<Slots>>);

/// A slot, released on drop.
#[derive(Debug)]
pub(super) struct Permit {
    admission: Admission,
    id: u64,
}

// === impl Admission ===

impl Admission {
    pub(super) fn new(limits: Limits) -> Self {
        let slots = Slots {
            limits,
            next: 0,
            taken: BTreeMap::new(),
        };
        Self(Arc::new(Mutex::new(slots)))
    }

    /// Takes a slot for a connection; the receiver completes when the connection is evicted. `None` if machines with a
    /// token hold all slots.
    pub(super) fn admit(&self, peer: IpAddr) -> Option<(Permit, oneshot::Receiver<()>)> {
        let (eviction, lost) = oneshot::channel();
        let id = self.slots().take(of(peer), eviction)?;
        let admission = self.clone();
        Some((Permit { admission, id }, lost))
    }

    fn slots(&self) -> MutexGuard<'_, Slots> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl Permit ===

impl Permit {
    /// Marks the connection as authenticated, so that it is not evicted.
    pub(super) fn keep(&self) {
        if let Some(slot) = self.admission.slots().taken.get_mut(&self.id) {
            slot.has_token = true;
        }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.admission.slots().taken.remove(&self.id);
    }
}

// === impl Slots ===

impl Slots {
    fn take(&mut self, peer: Peer, eviction: oneshot::Sender<()>) -> Option<u64> {
        if self.waiting().filter(|(_, of)| *of == peer).count() >= self.limits.per_peer {
            self.evict(peer);
        }
        if self.taken.len() >= self.limits.total {
            let busiest = self.busiest()?;
            self.evict(busiest);
        }
        let id = self.next;
        self.next = self.next.wrapping_add(1);
        let slot = Slot {
            peer,
            has_token: false,
            _eviction: eviction,
        };
        self.taken.insert(id, slot);
        Some(id)
    }

    /// Connections without a valid token, the oldest first.
    fn waiting(&self) -> impl Iterator<Item = (u64, Peer)> {
        let waiting = self.taken.iter().filter(|(_, slot)| !slot.has_token);
        waiting.map(|(id, slot)| (*id, slot.peer))
    }

    /// The peer with the most connections without a valid token.
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
    fn busiest_peer_loses_its_oldest_connection() {
        let admission = admission(4, 3);
        let (_first, mut first) = admission.admit(peer("10.0.0.1")).unwrap();
        let (_second, mut second) = admission.admit(peer("10.0.0.1")).unwrap();
        let (_third, mut third) = admission.admit(peer("10.0.0.1")).unwrap();
        let (_other, mut other) = admission.admit(peer("10.0.0.2")).unwrap();
        let _machine = admission.admit(peer("10.0.0.3")).unwrap();
        assert!(is_lost(&mut first) && !is_lost(&mut second));
        // The per-peer limit applies although slots are free.
        let _again = admission.admit(peer("10.0.0.1")).unwrap();
        assert!(is_lost(&mut second) && !is_lost(&mut third) && !is_lost(&mut other));
    }

    #[test]
    fn one_peer_cannot_take_all_slots() {
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
    fn connections_with_a_token_keep_their_slot() {
        let admission = admission(2, 2);
        let (machine, mut kept) = admission.admit(peer("10.0.0.1")).unwrap();
        machine.keep();
        for _ in 0..10 {
            drop(admission.admit(peer("10.0.0.1")).unwrap());
        }
        let (other, _eviction) = admission.admit(peer("10.0.0.1")).unwrap();
        let _newer = admission.admit(peer("10.0.0.2")).unwrap();
        assert!(!is_lost(&mut kept));
        drop(other);
        drop(machine);
        assert!(is_lost(&mut kept));
    }

    #[test]
    fn machines_with_a_token_are_never_evicted() {
        let admission = admission(1, 1);
        let (machine, _eviction) = admission.admit(peer("10.0.0.1")).unwrap();
        machine.keep();
        assert!(admission.admit(peer("10.0.0.2")).is_none());
        drop(machine);
        assert!(admission.admit(peer("10.0.0.2")).is_some());
    }

    #[test]
    fn ipv6_networks_and_mapped_addresses_are_one_peer() {
        assert_eq!(of(peer("fd00::1")), of(peer("fd00::ffff")));
        assert_ne!(of(peer("fd00::1")), of(peer("fd00:0:0:1::1")));
        assert_eq!(of(peer("::ffff:10.0.0.1")), of(peer("10.0.0.1")));
        assert_ne!(of(peer("10.0.0.1")), of(peer("10.0.0.2")));
    }
}
