//! The memory of all reviews, and which review is rejected when it is exhausted. The decision is pure.
//!
//! A review reserves memory as its bytes arrive and for its conversion, and holds the memory of its response until that
//! is sent. When memory is exhausted, the largest review of the source that uses most ends. So small reviews are always
//! served, and a single client may use all memory.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{Notify, watch};

use super::shares::Shares;
use super::source::Source;

/// The memory of all reviews. Cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct Memory {
    ledger: Arc<Mutex<Ledger>>,
    freed: watch::Sender<()>,
}

/// What one review has reserved, until dropped.
#[derive(Debug)]
pub(super) struct Reservation {
    id: u64,
    memory: Memory,
    end: Arc<Notify>,
}

/// Why memory is not reserved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum Refused {
    /// Other clients use less. A retry helps.
    #[error("too many concurrent reviews")]
    Busy,
    /// It exceeds the memory for all reviews.
    #[error("the review needs more than the {0} bytes of memory for reviews")]
    TooLarge(u64),
}

#[derive(Debug)]
struct Ledger {
    total: u64,
    reviews: Shares<Bytes>,
}

/// What a review has reserved.
type Bytes = u64;

/// What becomes of a request for memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Decision {
    Grant,
    /// Memory is about to be freed.
    Wait,
    /// This review has to end.
    End(u64),
    Refuse(Refused),
}

// === impl Memory ===

impl Memory {
    /// Memory of `total` bytes.
    pub(super) fn new(total: u64) -> Self {
        let ledger = Ledger {
            total,
            reviews: Shares::new(),
        };
        Self {
            ledger: Arc::new(Mutex::new(ledger)),
            freed: watch::Sender::new(()),
        }
    }

    /// An empty reservation for a review from `source`.
    pub(super) fn reserve(&self, source: Source) -> Reservation {
        let (id, end) = self.lock().reviews.insert(source, 0);
        Reservation {
            id,
            memory: self.clone(),
            end,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl Reservation ===

impl Reservation {
    /// Reserves more; waits while reviews are being aborted.
    pub(super) async fn grow(&self, bytes: u64) -> Result<(), Refused> {
        let mut freed = self.memory.freed.subscribe();
        loop {
            let decision = self.memory.lock().demand(self.id, bytes);
            match decision {
                Decision::Grant => return Ok(()),
                Decision::Refuse(refused) => return Err(refused),
                Decision::End(_) => {}
                Decision::Wait => {
                    // The sender is ours: it is never gone.
                    let _ = freed.changed().await;
                }
            }
        }
    }

    /// Releases all but `bytes`.
    pub(super) fn shrink_to(&self, bytes: u64) {
        if let Some(reserved) = self.memory.lock().reviews.held_mut(self.id) {
            *reserved = bytes.min(*reserved);
        }
        self.memory.freed.send_replace(());
    }

    /// Is notified when the review has to end.
    pub(super) fn end(&self) -> Arc<Notify> {
        Arc::clone(&self.end)
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.memory.lock().reviews.remove(self.id);
        self.memory.freed.send_replace(());
    }
}

// === impl Ledger ===

impl Ledger {
    /// Decides on a request for memory, and applies the decision.
    fn demand(&mut self, id: u64, bytes: u64) -> Decision {
        let decision = self.decide(id, bytes);
        match decision {
            Decision::Grant => {
                if let Some(reserved) = self.reviews.held_mut(id) {
                    *reserved += bytes;
                }
            }
            Decision::End(other) => self.reviews.evict(other),
            Decision::Wait | Decision::Refuse(_) => {}
        }
        decision
    }

    fn decide(&self, id: u64, bytes: u64) -> Decision {
        let Some(own) = self.reviews.get(id) else {
            return Decision::Refuse(Refused::Busy);
        };
        if own.held + bytes > self.total {
            return Decision::Refuse(Refused::TooLarge(self.total));
        }
        let used: u64 = self.reviews.all().map(|review| review.held).sum();
        if used + bytes <= self.total {
            return Decision::Grant;
        }
        let active: u64 = self.reviews.active().map(|(_, review)| review.held).sum();
        if active + bytes <= self.total {
            return Decision::Wait;
        }
        match self.largest(id, bytes) {
            Some(other) if other != id => Decision::End(other),
            _ => Decision::Refuse(Refused::Busy),
        }
    }

    /// The largest review of the source that uses most, including the requested bytes. Of equals, the requesting one.
    fn largest(&self, id: u64, bytes: u64) -> Option<u64> {
        let demanded = |of: u64, reserved: u64| reserved + if of == id { bytes } else { 0 };
        let usage = self.reviews.usage(|of, reserved| demanded(of, *reserved));
        let own = self.reviews.get(id)?.source;
        let (largest, _) = usage
            .into_iter()
            .max_by_key(|(source, used)| (*used, *source == own))?;
        let theirs = self
            .reviews
            .active()
            .filter(|(_, review)| review.source == largest);
        let most = theirs.max_by_key(|(of, review)| (demanded(*of, review.held), *of == id));
        most.map(|(of, _)| of)
    }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};

    use super::*;

    fn source(last: u8) -> Source {
        IpAddr::V4(Ipv4Addr::new(10, 0, 0, last)).into()
    }

    fn demand(of: &Reservation, bytes: u64) -> Decision {
        of.memory.lock().demand(of.id, bytes)
    }

    /// Check T06.
    #[test]
    fn memory_pressure_ends_a_review_of_the_largest_source() {
        let memory = Memory::new(100);
        let [small, large, other] = [(1, 30), (1, 50), (2, 20)].map(|(from, bytes)| {
            let review = memory.reserve(source(from));
            assert_eq!(demand(&review, bytes), Decision::Grant);
            review
        });
        let third = memory.reserve(source(3));
        assert_eq!(demand(&third, 10), Decision::End(large.id));
        assert_eq!(demand(&third, 10), Decision::Wait);
        assert_eq!(
            demand(&large, 1),
            Decision::Refuse(Refused::Busy),
            "it is ending"
        );
        drop(large);
        assert_eq!(demand(&third, 10), Decision::Grant);
        drop((small, other));
    }

    /// Check T06: an attacker behind the address of an API server, too.
    #[test]
    fn memory_pressure_ends_a_larger_review_of_the_same_source() {
        let memory = Memory::new(100);
        let large = memory.reserve(source(1));
        assert_eq!(demand(&large, 100), Decision::Grant);
        let small = memory.reserve(source(1));
        assert_eq!(demand(&small, 10), Decision::End(large.id));
    }

    #[test]
    fn the_largest_source_gets_no_more_memory() {
        let memory = Memory::new(100);
        let [first, second] = [1, 2].map(|from| memory.reserve(source(from)));
        assert_eq!(demand(&first, 50), Decision::Grant);
        assert_eq!(demand(&second, 40), Decision::Grant);
        assert_eq!(demand(&first, 20), Decision::Refuse(Refused::Busy));
        assert_eq!(demand(&first, 60), Decision::Refuse(Refused::TooLarge(100)));
        // Equals do not end each other by turns.
        assert_eq!(demand(&second, 10), Decision::Grant);
        assert_eq!(demand(&second, 1), Decision::Refuse(Refused::Busy));
    }

    #[tokio::test]
    async fn a_reservation_waits_for_an_ending_review() {
        let memory = Memory::new(100);
        let large = memory.reserve(source(1));
        large.grow(100).await.unwrap();
        let small = memory.reserve(source(2));
        let ended = async {
            large.end().notified().await;
            drop(large);
        };
        let (grown, ()) = tokio::join!(small.grow(10), ended);
        assert_eq!(grown, Ok(()));
        small.shrink_to(1);
        let reserved = memory.lock().reviews.get(small.id).map(|it| it.held);
        assert_eq!(reserved, Some(1));
    }
}
