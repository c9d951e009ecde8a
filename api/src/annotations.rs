//! The annotations of the migration protocol, on a HostedCluster, and those that change how an object is run.
//!
//! The protocol's say which operator owns the object and whether a migration has locked it.
//! A missing annotation is not sufficient: the owner of a HostedCluster without annotations is determined from observed API groups, elsewhere.

#[cfg(feature = "types")]
pub mod cluster;
#[cfg(feature = "types")]
pub mod node_pool;
#[cfg(feature = "types")]
mod typed;

use std::collections::BTreeMap;

#[cfg(feature = "types")]
pub use typed::{Annotation, AnnotationError};

/// `"true"`: migrated, or born private; the new operator's.
pub const PRIVATE_CAPI_TYPES: &str = "hypershift.openshift.io/private-capi-types";
/// `"legacy"`: the legacy operator's.
pub const SCOPE: &str = "hypershift.openshift.io/scope";
/// `"true"`: locked; only the migration controller writes.
pub const MIGRATION_IN_PROGRESS: &str = "hypershift.openshift.io/migration-in-progress";
/// The reason of the last failure; an SRE removes it to have the migration tried again.
pub const MIGRATION_FAILED: &str = "hypershift.openshift.io/migration-failed";
/// What exactly failed, as a message.
pub const MIGRATION_FAILURE_MESSAGE: &str = "hypershift.openshift.io/migration-failure-message";
/// `<count>@<time>`: how often the migration failed, and when it last did.
pub const MIGRATION_ATTEMPTS: &str = "hypershift.openshift.io/migration-attempts";
/// `"true"`: the operator that was the owner has seen the lock, and nothing of it is under way any more.
pub const MIGRATION_ACKNOWLEDGED: &str = "hypershift.openshift.io/migration-acknowledged";
/// `"true"`: the migration is not begun by itself. Set by a person, and by a migration that was taken back.
pub const MIGRATION_HOLD: &str = "hypershift.openshift.io/migration-hold";
/// [`ROLLBACK_REQUESTED`]: a rollback to standard types is requested. Any other value is the reason of a failure.
pub const MIGRATION_ROLLBACK: &str = "hypershift.openshift.io/migration-rollback";
/// The value of [`MIGRATION_ROLLBACK`] with which a user requests it.
pub const ROLLBACK_REQUESTED: &str = "requested";
/// On a Deployment: the replicas that it had before the migration stopped it.
pub const MIGRATION_PRIOR_REPLICAS: &str = "hypershift.openshift.io/migration-prior-replicas";

/// The four annotations of one HostedCluster, as read. Values that the protocol does not know count as absent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Protocol {
    /// [`PRIVATE_CAPI_TYPES`] is `"true"`.
    pub private: bool,
    /// [`SCOPE`] is `"legacy"`.
    pub legacy: bool,
    /// [`MIGRATION_IN_PROGRESS`] is `"true"`.
    pub in_progress: bool,
    /// The value of [`MIGRATION_FAILED`].
    pub failed: Option<String>,
}

impl Protocol {
    /// Reads the protocol from an object's annotations.
    pub fn read(annotations: &BTreeMap<String, String>) -> Self {
        let is = |key: &str, value: &str| annotations.get(key).is_some_and(|found| found == value);
        Self {
            private: is(PRIVATE_CAPI_TYPES, "true"),
            legacy: is(SCOPE, "legacy"),
            in_progress: is(MIGRATION_IN_PROGRESS, "true"),
            failed: annotations.get(MIGRATION_FAILED).cloned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_values_count_as_absent() {
        let annotations = BTreeMap::from([
            (PRIVATE_CAPI_TYPES.to_owned(), "yes".to_owned()),
            (SCOPE.to_owned(), "legacy".to_owned()),
            (MIGRATION_FAILED.to_owned(), "quiesce-timeout".to_owned()),
        ]);
        assert_eq!(
            Protocol::read(&annotations),
            Protocol {
                private: false,
                legacy: true,
                in_progress: false,
                failed: Some("quiesce-timeout".to_owned()),
            }
        );
    }
}
