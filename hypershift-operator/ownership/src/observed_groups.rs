//! Which API groups hold the Cluster API objects of a hosted cluster.

use api::group::CapiTypes;

/// The groups in which objects were observed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum ObservedGroups {
    /// Neither: the cluster has no objects yet.
    #[default]
    None,
    /// The standard groups only.
    Standard,
    /// The private groups only.
    Private,
    /// Both, as in the middle of a migration.
    Both,
}

// === impl ObservedGroups ===

impl ObservedGroups {
    /// All values.
    pub const ALL: [Self; 4] = [Self::None, Self::Standard, Self::Private, Self::Both];

    /// These, and objects of these types.
    #[must_use]
    pub fn with(self, types: CapiTypes) -> Self {
        match (self, types) {
            (Self::None | Self::Standard, CapiTypes::Standard) => Self::Standard,
            (Self::None | Self::Private, CapiTypes::Private) => Self::Private,
            (Self::Private | Self::Both, CapiTypes::Standard)
            | (Self::Standard | Self::Both, CapiTypes::Private) => Self::Both,
        }
    }

    /// The types that have objects.
    pub fn capi_types(self) -> &'static [CapiTypes] {
        match self {
            Self::None => &[],
            Self::Standard => &[CapiTypes::Standard],
            Self::Private => &[CapiTypes::Private],
            Self::Both => &[CapiTypes::Private, CapiTypes::Standard],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn observed_groups_add_up() {
        let none = ObservedGroups::default();
        assert_eq!(none.with(CapiTypes::Standard), ObservedGroups::Standard);
        assert_eq!(
            none.with(CapiTypes::Private).with(CapiTypes::Private),
            ObservedGroups::Private
        );
        assert_eq!(
            none.with(CapiTypes::Private).with(CapiTypes::Standard),
            ObservedGroups::Both
        );
        assert_eq!(
            ObservedGroups::Both.with(CapiTypes::Private),
            ObservedGroups::Both
        );
    }
}
