//! Which groups a hosted cluster's Cluster API objects are in, or will be: pure.

use api::annotations::Protocol;
use api::group::Side;

use super::{Evidence, Scope};

/// The side that an operator of this scope works on for a cluster that is its own.
///
/// It is asked once for each reconciliation, and only about clusters for which [`duty`](super::duty) is to own them.
pub fn side(scope: Scope, protocol: &Protocol, evidence: Evidence) -> Side {
    match (scope, evidence) {
        (Scope::Private, _) | (Scope::All, Evidence::Private) => Side::Private,
        (Scope::All, Evidence::None) if protocol.private => Side::Private,
        (Scope::Legacy | Scope::All, _) => Side::Standard,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_private_types_clusters_are_on_the_standard_side_unless_they_are_private() {
        let marked = Protocol {
            private: true,
            ..Protocol::default()
        };
        let unmarked = Protocol::default();
        for (scope, protocol, evidence, expected) in [
            (Scope::Private, &unmarked, Evidence::None, Side::Private),
            (Scope::Private, &marked, Evidence::Private, Side::Private),
            (Scope::Legacy, &unmarked, Evidence::Standard, Side::Standard),
            (Scope::All, &unmarked, Evidence::None, Side::Standard),
            (Scope::All, &unmarked, Evidence::Standard, Side::Standard),
            (Scope::All, &unmarked, Evidence::Private, Side::Private),
            (Scope::All, &marked, Evidence::None, Side::Private),
        ] {
            let found = side(scope, protocol, evidence);
            assert_eq!(found, expected, "{scope:?} {evidence:?}");
        }
    }
}
