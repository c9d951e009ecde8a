//! Which API groups hold the Cluster API objects of a hosted cluster.

use api::group::Side;

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

    /// These, and objects in the groups of one more side.
    #[must_use]
    pub fn with(self, side: Side) -> Self {
        match (self, side) {
            (Self::None | Self::Standard, Side::Standard) => Self::Standard,
            (Self::None | Self::Private, Side::Private) => Self::Private,
            (Self::Private | Self::Both, Side::Standard)
            | (Self::Standard | Self::Both, Side::Private) => Self::Both,
        }
    }

    /// The sides whose groups hold objects.
    pub fn sides(self) -> &'static [Side] {
        match self {
            Self::None => &[],
            Self::Standard => &[Side::Standard],
            Self::Private => &[Side::Private],
            Self::Both => &[Side::Private, Side::Standard],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn observed_groups_add_up() {
        let none = ObservedGroups::default();
        assert_eq!(none.with(Side::Standard), ObservedGroups::Standard);
        assert_eq!(
            none.with(Side::Private).with(Side::Private),
            ObservedGroups::Private
        );
        assert_eq!(
            none.with(Side::Private).with(Side::Standard),
            ObservedGroups::Both
        );
        assert_eq!(
            ObservedGroups::Both.with(Side::Private),
            ObservedGroups::Both
        );
    }
}
