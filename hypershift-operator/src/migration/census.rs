//! How many hosted clusters stand where: pure. Metrics are made of one census, so that they add up at every scrape.

use std::collections::BTreeMap;

use ownership::MigrationState;

use super::candidate::Candidate;

/// The label of failures whose reason is none of ours.
const UNKNOWN: &str = "unknown";

/// Hosted clusters by where they stand.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Census {
    /// On private types.
    pub(crate) done: u64,
    /// On standard types, and never failed.
    pub(crate) pending: u64,
    /// Locked by a migration.
    pub(crate) active: u64,
    /// Failed, by reason.
    pub(crate) failed: BTreeMap<&'static str, u64>,
}

// === impl Census ===

impl Census {
    /// Counts.
    pub(crate) fn of<'a>(candidates: impl IntoIterator<Item = &'a Candidate>) -> Self {
        let mut census = Self::default();
        for candidate in candidates {
            let count = match candidate.state {
                MigrationState::Done => &mut census.done,
                MigrationState::Pending => &mut census.pending,
                MigrationState::Active => &mut census.active,
                MigrationState::Failed => {
                    let reason = candidate
                        .failure
                        .map_or(UNKNOWN, migration::failure::Reason::name);
                    census.failed.entry(reason).or_default()
                }
            };
            *count += 1;
        }
        census
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
    use crate::hosted_cluster::{Id, protocol};

    proptest! {
        /// Whatever annotations and evidence there are, every cluster is counted once.
        #[test]
        fn m20_all_are_counted_once(fleet in prop::collection::vec((0..16_u8, 0..4_usize, 0..12_usize), 0..50)) {
            use api::annotations::{MIGRATION_FAILED, MIGRATION_IN_PROGRESS, PRIVATE_CAPI_TYPES, SCOPE};
            let candidates: Vec<_> = fleet.iter().map(|(bits, evidence, reason)| {
                let reason = Reason::ALL.get(*reason).map_or("other", |it| it.name());
                let all = [(PRIVATE_CAPI_TYPES, "true"), (SCOPE, "legacy"), (MIGRATION_IN_PROGRESS, "true"),
                    (MIGRATION_FAILED, reason)];
                let chosen: Vec<_> = all.into_iter().enumerate()
                    .filter(|(bit, _)| bits & (1 << bit) != 0).map(|(_, it)| it).collect();
                let metadata = metadata("one", &chosen);
                let evidence = [ObservedGroups::None, ObservedGroups::Standard, ObservedGroups::Private, ObservedGroups::Both][*evidence];
                Candidate::new(Id::of(&metadata), &metadata, evaluate(&protocol(&metadata), evidence))
            }).collect();
            let census = Census::of(&candidates);
            prop_assert_eq!(census.total(), u64::try_from(fleet.len()).unwrap());
            prop_assert_eq!(census.pending + census.done + census.active + census.all_failed(), census.total());
        }
    }
}
