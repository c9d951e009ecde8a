//! Hosted clusters by migration state: pure. Metrics are derived from one count, so that they add up at every scrape.

use std::collections::BTreeMap;

use ownership::MigrationState;

use super::candidate::Candidate;

/// The label of failures with an unknown reason.
const UNKNOWN: &str = "unknown";

/// Hosted clusters by migration state.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct StateCounts {
    /// On private types.
    pub(crate) done: u64,
    /// On standard types, and never failed.
    pub(crate) pending: u64,
    /// Locked by a migration.
    pub(crate) active: u64,
    /// Failed, by reason.
    pub(crate) failed: BTreeMap<&'static str, u64>,
}

// === impl StateCounts ===

impl StateCounts {
    /// Counts.
    pub(crate) fn of<'a>(candidates: impl IntoIterator<Item = &'a Candidate>) -> Self {
        let mut counts = Self::default();
        for candidate in candidates {
            let count = match candidate.state {
                MigrationState::Done => &mut counts.done,
                MigrationState::Pending => &mut counts.pending,
                MigrationState::Active => &mut counts.active,
                MigrationState::Failed => {
                    let reason = candidate
                        .failure
                        .map_or(UNKNOWN, migration::failure::Reason::name);
                    counts.failed.entry(reason).or_default()
                }
            };
            *count += 1;
        }
        counts
    }

    /// All that failed.
    pub(crate) fn all_failed(&self) -> u64 {
        self.failed.values().sum()
    }

    /// All.
    pub(crate) fn total(&self) -> u64 {
        self.done + self.pending + self.active + self.all_failed()
    }
}

#[cfg(test)]
mod tests {
    use migration::failure::Reason;
    use ownership::{ObservedGroups, evaluate};
    use proptest::prelude::*;

    use super::super::candidate::tests::metadata;
    use super::*;
    use crate::cluster_ref::{Id, protocol};

    proptest! {
        /// Whatever annotations and groups there are, every cluster is counted once.
        /// Check M20.
    #[test]
        fn every_cluster_is_counted_once(fleet in prop::collection::vec((0..16_u8, 0..4_usize, 0..12_usize), 0..50)) {
            use api::annotations::{MIGRATION_FAILED, MIGRATION_IN_PROGRESS, PRIVATE_CAPI_TYPES, SCOPE};
            let candidates: Vec<_> = fleet.iter().map(|(bits, observed_groups, reason)| {
                let reason = Reason::ALL.get(*reason).map_or("other", |it| it.name());
                let all = [(PRIVATE_CAPI_TYPES, "true"), (SCOPE, "legacy"), (MIGRATION_IN_PROGRESS, "true"),
                    (MIGRATION_FAILED, reason)];
                let chosen: Vec<_> = all.into_iter().enumerate()
                    .filter(|(bit, _)| bits & (1 << bit) != 0).map(|(_, it)| it).collect();
                let metadata = metadata("one", &chosen);
                let observed_groups = [ObservedGroups::None, ObservedGroups::Standard, ObservedGroups::Private, ObservedGroups::Both][*observed_groups];
                Candidate::new(Id::of(&metadata), &metadata, evaluate(&protocol(&metadata), observed_groups))
            }).collect();
            let counts = StateCounts::of(&candidates);
            prop_assert_eq!(counts.total(), u64::try_from(fleet.len()).unwrap());
            prop_assert_eq!(counts.pending + counts.done + counts.active + counts.all_failed(), counts.total());
        }
    }
}
