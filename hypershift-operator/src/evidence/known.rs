//! What was seen in each namespace, and when. It is made again by every look at everything.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::scope::Evidence;

/// How long it is believed: as long as a look at everything may be late.
const BELIEVED: Duration = Duration::from_mins(1);

/// The last look at each namespace.
#[derive(Debug, Default)]
pub(super) struct Known(Mutex<HashMap<String, (Instant, Evidence)>>);

// === impl Known ===

impl Known {
    /// What is believed of a namespace.
    pub(super) fn of(&self, namespace: &str) -> Option<Evidence> {
        let known = self.known();
        let (at, found) = known.get(namespace)?;
        (at.elapsed() < BELIEVED).then_some(*found)
    }

    /// A look that was begun then has found this.
    pub(super) fn saw(&self, namespace: &str, begun: Instant, found: Evidence) {
        let mut known = self.known();
        match known.get_mut(namespace) {
            Some(last) if last.0 > begun => {}
            Some(last) => *last = (begun, found),
            None => {
                known.insert(namespace.to_owned(), (begun, found));
            }
        }
    }

    /// A look at everything has. Only what somebody has looked at since is newer.
    pub(super) fn saw_all(&self, begun: Instant, found: &HashMap<String, Evidence>) {
        let mut known = self.known();
        known.retain(|_, (at, _)| *at > begun);
        for (namespace, found) in found {
            known
                .entry(namespace.clone())
                .or_insert_with(|| (begun, *found));
        }
    }

    /// Nothing is believed any more.
    pub(super) fn forget(&self) {
        self.known().clear();
    }

    fn known(&self) -> MutexGuard<'_, HashMap<String, (Instant, Evidence)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_was_seen_later_counts_and_not_for_ever() {
        let known = Known::default();
        let first = Instant::now();
        tokio::time::advance(Duration::from_secs(1)).await;
        let second = Instant::now();
        known.saw("a", second, Evidence::Both);
        known.saw("a", first, Evidence::Private);
        let all = HashMap::from([
            ("a".to_owned(), Evidence::Private),
            ("b".to_owned(), Evidence::Standard),
        ]);
        known.saw_all(first, &all);
        assert_eq!(known.of("a"), Some(Evidence::Both));
        assert_eq!(known.of("b"), Some(Evidence::Standard));
        tokio::time::advance(Duration::from_secs(1)).await;
        known.saw_all(Instant::now(), &HashMap::new());
        assert_eq!(known.of("a"), None, "it was not there any more");
        known.saw("a", Instant::now(), Evidence::Private);
        tokio::time::advance(BELIEVED).await;
        assert_eq!(known.of("a"), None, "it was long ago");
        known.saw("a", Instant::now(), Evidence::Private);
        known.forget();
        assert_eq!(known.of("a"), None);
    }
}
