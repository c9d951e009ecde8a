//! What the operators may do: one table, each row with what needs it. No row has a wildcard.

use api::group::{GroupTable, Side};
use serde_json::{Value, json};

use super::kind::Kind;
use super::object::Object;
use super::workload::Operator;

/// Where a rule holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reach {
    /// Everywhere.
    Cluster,
    /// In the operator's own namespace.
    Own,
}

/// Which operators have a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Holder {
    Both,
    /// The one that is not operator-legacy.
    New,
    Legacy,
}

/// One row of the table.
#[derive(Debug)]
struct Row {
    holder: Holder,
    reach: Reach,
    group: &'static str,
    resources: &'static [&'static str],
    /// Empty for any.
    names: &'static [&'static str],
    verbs: &'static [&'static str],
    /// What breaks without it.
    #[cfg_attr(
        not(test),
        expect(
            dead_code,
            reason = "it is for readers, and for the test that asks for it"
        )
    )]
    needed_for: &'static str,
}

/// A rule of a role.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Rule {
    pub(crate) reach: Reach,
    pub(crate) group: String,
    pub(crate) resources: Vec<String>,
    pub(crate) names: &'static [&'static str],
    pub(crate) verbs: &'static [&'static str],
}

const HYPERSHIFT: &str = "hypershift.openshift.io";

const TABLE: &[Row] = &[
    Row {
        holder: Holder::Both,
        reach: Reach::Cluster,
        group: HYPERSHIFT,
        resources: &["hostedclusters"],
        names: &[],
        verbs: &["get", "list", "watch"],
        needed_for: "the scan at the start, and every reconcile after it",
    },
    Row {
        holder: Holder::New,
        reach: Reach::Cluster,
        group: HYPERSHIFT,
        resources: &["hostedclusters"],
        names: &[],
        verbs: &["patch"],
        needed_for: "the annotations that say which operator owns a hosted cluster",
    },
    Row {
        holder: Holder::Both,
        reach: Reach::Cluster,
        group: HYPERSHIFT,
        resources: &["hostedclusters/status"],
        names: &[],
        verbs: &["patch"],
        needed_for: "the condition that says which operator owns a hosted cluster",
    },
    Row {
        holder: Holder::Both,
        reach: Reach::Cluster,
        group: "apiextensions.k8s.io",
        resources: &["customresourcedefinitions"],
        names: &[],
        verbs: &["list"],
        needed_for: "to tell kinds that are not installed from kinds that are not served",
    },
    Row {
        holder: Holder::Both,
        reach: Reach::Cluster,
        group: "events.k8s.io",
        resources: &["events"],
        names: &[],
        // A repetition is counted in the Event that is there.
        verbs: &["create", "patch"],
        needed_for: "Events on a hosted cluster whose annotations contradict each other",
    },
    Row {
        holder: Holder::Both,
        reach: Reach::Own,
        group: "coordination.k8s.io",
        resources: &["leases"],
        names: &[],
        // A name cannot be given for what does not exist yet.
        verbs: &["create"],
        needed_for: "leader election, when it is held for the first time",
    },
    Row {
        holder: Holder::New,
        reach: Reach::Own,
        group: "coordination.k8s.io",
        resources: &["leases"],
        names: &["hypershift-operator-leader-elect"],
        verbs: &["get", "update"],
        needed_for: "leader election",
    },
    Row {
        holder: Holder::Legacy,
        reach: Reach::Own,
        group: "coordination.k8s.io",
        resources: &["leases"],
        names: &["hypershift-operator-legacy-leader-elect"],
        verbs: &["get", "update"],
        needed_for: "leader election of operator-legacy",
    },
    Row {
        holder: Holder::New,
        reach: Reach::Own,
        group: "apps",
        resources: &["deployments"],
        names: &["operator-legacy"],
        verbs: &["get", "delete"],
        needed_for: "the removal of operator-legacy once no hosted cluster needs it",
    },
];

/// The rules of an operator.
///
/// Both operators look for objects in the groups of both, since that is how a hosted cluster's owner is found. They
/// list and never read more. Kinds are not named: the platform may bring a new one any day, and an operator that may
/// not look for its objects could not tell who owns a hosted cluster.
pub(crate) fn rules(operator: Operator) -> Vec<Rule> {
    let fixed = TABLE
        .iter()
        .filter(|row| row.is_for(operator))
        .map(Row::rule);
    let table = GroupTable::default();
    let groups = table
        .pairs()
        .iter()
        .flat_map(|pair| [Side::Standard, Side::Private].map(|side| pair.name(side)));
    let evidence = groups.map(|group| Rule {
        reach: Reach::Cluster,
        group: group.to_owned(),
        resources: vec!["*".to_owned()],
        names: &[],
        verbs: &["list"],
    });
    fixed.chain(evidence).collect()
}

/// Roles and bindings of an operator.
pub(crate) fn objects(namespace: &str, operator: Operator) -> Vec<Object> {
    let rules = rules(operator);
    let of = |reach: Reach| -> Vec<Value> {
        rules
            .iter()
            .filter(|rule| rule.reach == reach)
            .map(Rule::render)
            .collect()
    };
    // Cluster-wide names carry the namespace, so that two installations do not share a role.
    let cluster_name = format!("{namespace}-{}", operator.name());
    let own_name = operator.name();
    vec![
        Object::new(
            Kind::ClusterRole,
            namespace,
            &cluster_name,
            json!({ "rules": of(Reach::Cluster) }),
        ),
        binding(Kind::ClusterRoleBinding, namespace, &cluster_name, operator),
        Object::new(
            Kind::Role,
            namespace,
            own_name,
            json!({ "rules": of(Reach::Own) }),
        ),
        binding(Kind::RoleBinding, namespace, own_name, operator),
    ]
}

fn binding(kind: Kind, namespace: &str, role: &str, operator: Operator) -> Object {
    let role_kind = if kind == Kind::ClusterRoleBinding {
        Kind::ClusterRole
    } else {
        Kind::Role
    };
    let fields = json!({
        "roleRef": {
            "apiGroup": role_kind.resource().group,
            "kind": role_kind.name(),
            "name": role,
        },
        "subjects": [{
            "kind": Kind::ServiceAccount.name(),
            "namespace": namespace,
            "name": operator.name(),
        }],
    });
    Object::new(kind, namespace, role, fields)
}

// === impl Row ===

impl Row {
    fn is_for(&self, operator: Operator) -> bool {
        match self.holder {
            Holder::Both => true,
            Holder::New => operator == Operator::New,
            Holder::Legacy => operator == Operator::Legacy,
        }
    }

    fn rule(&self) -> Rule {
        Rule {
            reach: self.reach,
            group: self.group.to_owned(),
            resources: self.resources.iter().map(|&one| one.to_owned()).collect(),
            names: self.names,
            verbs: self.verbs,
        }
    }
}

// === impl Rule ===

impl Rule {
    fn render(&self) -> Value {
        let mut rule = json!({
            "apiGroups": [self.group],
            "resources": self.resources,
            "verbs": self.verbs,
        });
        if !self.names.is_empty() {
            rule["resourceNames"] = json!(self.names);
        }
        rule
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A kind that the platform brings tomorrow is looked at, too.
    #[test]
    fn evidence_is_listed_in_all_groups_of_cluster_api_and_nowhere_else() {
        let table = GroupTable::default();
        for operator in Operator::ALL {
            let rules = rules(operator);
            let any: Vec<&Rule> = rules
                .iter()
                .filter(|rule| rule.resources.iter().any(|one| one == "*"))
                .collect();
            assert_eq!(any.len(), 2 * table.pairs().len());
            for rule in any {
                assert!(table.find(rule.group.as_bytes()).is_some(), "{rule:?}");
                assert_eq!(rule.verbs, ["list"]);
            }
        }
    }

    #[test]
    fn no_group_and_no_verb_is_granted_by_a_wildcard() {
        for operator in Operator::ALL {
            for rule in rules(operator) {
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
    fn no_right_is_granted_twice() {
        let mut seen = std::collections::BTreeSet::new();
        for row in TABLE {
            for resource in row.resources {
                for verb in row.verbs {
                    let right = format!(
                        "{}/{resource}/{verb}/{:?}/{:?}",
                        row.group, row.reach, row.names
                    );
                    assert!(seen.insert(right.clone()), "{right} twice");
                }
            }
        }
    }

    /// Rights with which a pod could become somebody else.
    #[test]
    fn no_right_leads_to_more_rights() {
        for row in TABLE {
            for resource in row.resources {
                assert!(
                    !["secrets", "pods", "pods/exec", "serviceaccounts/token"].contains(resource),
                    "{row:?}"
                );
            }
            for verb in row.verbs {
                assert!(
                    !["escalate", "bind", "impersonate"].contains(verb),
                    "{row:?}"
                );
            }
        }
    }

    #[test]
    fn operator_legacy_deletes_nothing() {
        let verbs: Vec<_> = rules(Operator::Legacy)
            .into_iter()
            .flat_map(|rule| rule.verbs)
            .collect();
        assert!(!verbs.contains(&&"delete"), "{verbs:?}");
    }
}
