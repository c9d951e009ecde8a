//! States of a hosted cluster that no writer of the protocol produces.

use std::fmt;

/// What is wrong with annotations, or between annotations and evidence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Invalid {
    /// Marked legacy and private at once.
    LegacyAndPrivate,
    /// Marked private, with a failure that only a rolled-back migration leaves.
    FailedAndPrivate,
    /// Locked by a migration that must have found one of the two marks, and neither is there.
    LockWithoutScope,
    /// Locked before the commit point, and the standard objects are gone.
    LockedStandardObjectsGone,
    /// Locked after the commit point, and the private objects are gone.
    LockedPrivateObjectsGone,
    /// Not locked, and both groups hold its objects.
    ObjectsInBothGroups,
    /// Marked private, and only the standard groups hold its objects.
    PrivateWithStandardObjects,
    /// Marked legacy, and only the private groups hold its objects.
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

/// The text for an Event: what is wrong, and what a person does about it.
impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::LegacyAndPrivate => "marked legacy and private at once: remove the mark that its objects contradict",
            Self::FailedAndPrivate => {
                "marked private and with a failed migration: remove the mark that its objects contradict"
            }
            Self::LockWithoutScope => "locked by a migration and marked neither legacy nor private: see its journal",
            Self::LockedStandardObjectsGone => {
                "locked before the commit point and without standard objects: see the migration's journal"
            }
            Self::LockedPrivateObjectsGone => {
                "locked after the commit point and without private objects: see the migration's journal"
            }
            Self::ObjectsInBothGroups => {
                "both groups hold its objects and no migration has locked it: nobody writes until one side is removed"
            }
            Self::PrivateWithStandardObjects => {
                "marked private with standard objects only: treated as legacy until the mark is removed"
            }
            Self::LegacyWithPrivateObjects => {
                "marked legacy with private objects only: treated as private until the mark is removed"
            }
        })
    }
}
