//! States of a hosted cluster that no writer of the protocol produces.

use std::fmt;

/// What is wrong with annotations, or between annotations and observed groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Invalid {
    /// Annotated as legacy and private at once.
    LegacyAndPrivate,
    /// Annotated as private, with a failure that only a rolled-back migration leaves.
    FailedAndPrivate,
    /// Locked by a migration, which must have found one of the two ownership annotations, and neither is there.
    LockWithoutScope,
    /// Locked before the commit point, and the standard objects are gone.
    LockedStandardObjectsGone,
    /// Locked after the commit point, and the private objects are gone.
    LockedPrivateObjectsGone,
    /// Not locked, and both groups hold its objects.
    ObjectsInBothGroups,
    /// Annotated as private, and only the standard groups hold its objects.
    PrivateWithStandardObjects,
    /// Annotated as legacy, and only the private groups hold its objects.
    LegacyWithPrivateObjects,
}

// === impl Invalid ===

impl Invalid {
    /// The name for an Event's reason.
    pub fn reason(self) -> &'static str {
        match self {
            Self::LegacyAndPrivate => "LegacyAndPrivate",
            Self::FailedAndPrivate => "FailedAndPrivate",
            Self::LockWithoutScope => "LockWithoutScope",
            Self::LockedStandardObjectsGone => "LockedStandardObjectsGone",
            Self::LockedPrivateObjectsGone => "LockedPrivateObjectsGone",
            Self::ObjectsInBothGroups => "ObjectsInBothGroups",
            Self::PrivateWithStandardObjects => "PrivateWithStandardObjects",
            Self::LegacyWithPrivateObjects => "LegacyWithPrivateObjects",
        }
    }
}

/// The message of an Event: what is wrong, and what to do about it.
impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::LegacyAndPrivate => {
                "annotated as legacy and as private: remove the annotation that its objects contradict"
            }
            Self::FailedAndPrivate => {
                "annotated as private and with a failed migration: remove the annotation that its objects contradict"
            }
            Self::LockWithoutScope => {
                "locked by a migration and annotated neither as legacy nor as private: see the migration's journal"
            }
            Self::LockedStandardObjectsGone => {
                "locked before the commit point and without standard objects: see the migration's journal"
            }
            Self::LockedPrivateObjectsGone => {
                "locked after the commit point and without private objects: see the migration's journal"
            }
            Self::ObjectsInBothGroups => {
                "both groups hold its objects and no migration has locked it: not reconciled until one group has none"
            }
            Self::PrivateWithStandardObjects => {
                "annotated as private with standard objects only: reconciled as legacy until the annotation is removed"
            }
            Self::LegacyWithPrivateObjects => {
                "annotated as legacy with private objects only: reconciled as private until the annotation is removed"
            }
        })
    }
}
