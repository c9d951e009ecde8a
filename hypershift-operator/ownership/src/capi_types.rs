//! Which groups a hosted cluster's Cluster API objects are in, or will be.

use api::annotations::Protocol;
use api::group::CapiTypes;

use crate::decision::Scope;
use crate::observed_groups::ObservedGroups;

/// The types that an operator of this scope uses for a cluster that it reconciles.
///
/// They are chosen once per pass, and only if the decision is to [reconcile](crate::Decision::Reconcile).
pub fn capi_types(scope: Scope, protocol: &Protocol, observed: ObservedGroups) -> CapiTypes {
    match (scope, observed) {
        (Scope::Private, _) | (Scope::All, ObservedGroups::Private) => CapiTypes::Private,
        (Scope::All, ObservedGroups::None) if protocol.private => CapiTypes::Private,
        (Scope::Legacy | Scope::All, _) => CapiTypes::Standard,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clusters_are_on_standard_types_unless_scope_or_objects_are_private() {
        let annotated = Protocol {
            private: true,
            ..Protocol::default()
        };
        let unannotated = Protocol::default();
        for (scope, protocol, observed, expected) in [
            (
                Scope::Private,
                &unannotated,
                ObservedGroups::None,
                CapiTypes::Private,
            ),
            (
                Scope::Private,
                &annotated,
                ObservedGroups::Private,
                CapiTypes::Private,
            ),
            (
                Scope::Legacy,
                &unannotated,
                ObservedGroups::Standard,
                CapiTypes::Standard,
            ),
            (
                Scope::All,
                &unannotated,
                ObservedGroups::None,
                CapiTypes::Standard,
            ),
            (
                Scope::All,
                &unannotated,
                ObservedGroups::Standard,
                CapiTypes::Standard,
            ),
            (
                Scope::All,
                &unannotated,
                ObservedGroups::Private,
                CapiTypes::Private,
            ),
            (
                Scope::All,
                &annotated,
                ObservedGroups::None,
                CapiTypes::Private,
            ),
        ] {
            let found = capi_types(scope, protocol, observed);
            assert_eq!(found, expected, "{scope:?} {observed:?}");
        }
    }
}
