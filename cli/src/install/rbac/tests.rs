//! Tests of the rendered permissions.

use super::*;

/// A kind that the platform brings tomorrow is looked at, too.
#[test]
fn observed_groups_are_all_of_cluster_api_and_no_others() {
    let table = GroupTable::default();
    for operator in Operator::ALL {
        let rules = rules(operator, operator.capi_types_beside_private());
        let any: Vec<&Rule> = rules
            .iter()
            .filter(|rule| rule.resources.iter().any(|one| one == "*"))
            .collect();
        assert_eq!(any.len(), 2 * table.pairs().len());
        for rule in any {
            assert!(table.find(rule.group.as_bytes()).is_some(), "{rule:?}");
            assert_eq!(rule.verbs, OBSERVE);
        }
    }
}

#[test]
fn no_group_and_no_verb_is_granted_by_a_wildcard() {
    for operator in Operator::ALL {
        for rule in rules(operator, operator.capi_types_beside_private()) {
            assert!(rule.group != "*" && !rule.verbs.contains(&"*"), "{rule:?}");
        }
    }
}

#[test]
fn each_row_says_what_needs_it_and_grants_something() {
    for row in TABLE {
        assert!(row.needed_for.len() > 10, "{row:?}");
        assert!(
            !row.resources.is_empty() && !row.verbs.is_empty(),
            "{row:?}"
        );
    }
}

#[test]
fn no_permission_is_granted_twice() {
    for operator in Operator::ALL {
        let rules = rules(operator, operator.capi_types_beside_private());
        for (number, rule) in rules.iter().enumerate() {
            for other in &rules[number + 1..] {
                assert!(!rule.overlaps(other), "{rule:?} and {other:?}");
            }
        }
    }
}

impl Rule {
    /// Whether two rules grant the same permission. Rules with different names do not.
    fn overlaps(&self, other: &Self) -> bool {
        let has = |rule: &Self, one: &str| rule.resources.iter().any(|it| it == one || it == "*");
        let shares_resource = self.resources.iter().any(|it| has(other, it))
            || other.resources.iter().any(|it| has(self, it));
        (self.reach, &self.group, self.names) == (other.reach, &other.group, other.names)
            && shares_resource
            && self.verbs.iter().any(|verb| other.verbs.contains(verb))
    }
}

/// The rules of every operator, with each combination of types.
fn all_rules() -> Vec<Rule> {
    let types = [
        &[][..],
        &[CapiTypes::Private],
        &[CapiTypes::Standard],
        &[CapiTypes::Private, CapiTypes::Standard],
    ];
    let of = |operator| types.iter().flat_map(move |types| rules(operator, types));
    Operator::ALL.into_iter().flat_map(of).collect()
}

/// Check T20. Creating Deployments and reading Secrets amount to more: SECURITY.md has the trust model.
#[test]
fn no_rule_impersonates_and_escalate_and_bind_name_their_roles() {
    for rule in all_rules() {
        for resource in &rule.resources {
            let escalating = [
                "certificatesigningrequests/approval",
                "nodes",
                "nodes/proxy",
                "pods/attach",
                "pods/exec",
                "serviceaccounts/token",
            ];
            let reads = rule
                .verbs
                .iter()
                .all(|verb| ["list", "watch"].contains(verb));
            // Reading nodes escalates nothing.
            let is_harmless = resource == "nodes" && reads;
            let escalates = escalating.contains(&resource.as_str());
            assert!(!escalates || is_harmless, "{rule:?}");
            assert!(resource != "*" || reads, "{rule:?}");
        }
        let has = |verb: &str| rule.verbs.contains(&verb);
        assert!(!has("impersonate") && !has("*"), "{rule:?}");
        if has("escalate") || has("bind") {
            let known = [
                "control-plane-operator",
                "cluster-api",
                "capi-provider",
                "karpenter-operator",
            ];
            let is_known = rule.names == known || rule.names == ["private-capi-migration"];
            let is_role = is_known && rule.resources == ["roles"];
            let is_pki = rule.names == ["hypershift-control-plane-pki-operator"]
                && rule.resources == ["clusterroles"]
                && rule.verbs == ["bind"];
            assert!(is_role || is_pki, "{rule:?}");
        }
    }
}

/// Where there are private types, each operator writes to its own groups only.
#[test]
fn operators_write_to_the_groups_of_their_side_only() {
    for (operator, other) in [
        (Operator::New, CapiTypes::Standard),
        (Operator::Legacy, CapiTypes::Private),
    ] {
        let foreign = group::served(other);
        for rule in rules(operator, operator.capi_types_beside_private()) {
            let looks = rule.verbs == OBSERVE;
            assert!(looks || !foreign.contains(&rule.group), "{rule:?}");
        }
    }
}
