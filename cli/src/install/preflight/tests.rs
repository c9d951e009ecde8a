use serde_json::json;

use super::*;
use crate::install::args::Outputs;
use crate::install::cluster::Permission;
use crate::install::conversion::Flaw;
use crate::install::object::Id;
use crate::install::rbac;
use crate::install::workload::Operator;

fn id(kind: Kind, name: &str) -> Id {
    Id {
        kind,
        namespace: None,
        name: name.to_owned(),
    }
}

fn permission(verb: &str, group: &str, resource: &str) -> Permission {
    Permission {
        verb: verb.to_owned(),
        group: group.to_owned(),
        resource: resource.to_owned(),
        namespace: None,
        name: None,
    }
}

fn facts() -> Facts {
    Facts {
        installation: "hypershift".to_owned(),
        wanted: Installed::Private,
        version: Some(MINIMUM),
        ..Facts::default()
    }
}

fn observed(kind: Kind, live: Value) -> Vec<Observed> {
    vec![Observed {
        id: id(kind, "a"),
        live: Some(live),
    }]
}

/// A row: what is wrong, and what a finding says of it.
struct Row {
    name: &'static str,
    facts: Facts,
    subject: &'static str,
    reason: &'static str,
}

#[test]
fn a_suitable_cluster_passes_all_checks() {
    assert_eq!(findings(&facts()), []);
    let newer = Facts {
        version: Some(Version {
            major: 1,
            minor: 40,
        }),
        installed: Some(Installed::Standard),
        ..facts()
    };
    assert_eq!(findings(&newer), []);
}

#[test]
fn each_finding_names_object_reason_and_way_out() {
    for row in rows() {
        let findings = findings(&row.facts);
        assert_eq!(findings.len(), 1, "{}: {findings:?}", row.name);
        let Finding {
            subject,
            reason,
            way_out,
        } = &findings[0];
        assert!(subject.contains(row.subject), "{}: {subject}", row.name);
        assert!(reason.contains(row.reason), "{}: {reason}", row.name);
        assert!(way_out.len() > 10, "{}: {way_out}", row.name);
    }
}

fn rows() -> Vec<Row> {
    vec![
        Row {
            name: "server too old",
            facts: Facts {
                version: Some(Version {
                    major: 1,
                    minor: 30,
                }),
                ..facts()
            },
            subject: "API server 1.30",
            reason: "older than 1.31",
        },
        Row {
            name: "permission missing",
            facts: Facts {
                denied: vec![
                    permission("create", "apps", "deployments"),
                    permission("patch", "apps", "deployments"),
                ],
                ..facts()
            },
            subject: "deployments.apps",
            reason: "create, patch",
        },
        Row {
            name: "permission of the operators missing",
            facts: Facts {
                not_held: vec![permission(
                    "patch",
                    "hypershift.openshift.io",
                    "hostedclusters",
                )],
                ..facts()
            },
            subject: "patch hostedclusters.hypershift.openshift.io",
            reason: "you do not have it yourself",
        },
        Row {
            name: "back to the standard groups",
            facts: Facts {
                wanted: Installed::Standard,
                installed: Some(Installed::Private),
                ..facts()
            },
            subject: "operator",
            reason: "private types",
        },
        Row {
            name: "C06: conversion without a webhook",
            facts: Facts {
                conversion: vec![Flaw {
                    subject: "machines.example".to_owned(),
                    reason: "no object could be converted".to_owned(),
                }],
                ..facts()
            },
            subject: "machines.example",
            reason: "no object could be converted",
        },
        Row {
            name: "objects pruned",
            facts: Facts {
                losses: vec![Loss::Pruned {
                    crd: "machines.example".to_owned(),
                    object: "ns/one".to_owned(),
                    fields: vec!["spec.a".to_owned()],
                }],
                ..facts()
            },
            subject: "machines.example",
            reason: "spec.a of ns/one",
        },
        Row {
            name: "objects orphaned",
            facts: Facts {
                losses: vec![Loss::Orphaned {
                    crd: "machines.example".to_owned(),
                    version: "v1beta1".to_owned(),
                }],
                ..facts()
            },
            subject: "machines.example",
            reason: "v1beta1",
        },
        Row {
            name: "refused by the server",
            facts: Facts {
                refusals: vec![Refusal {
                    id: id(Kind::ClusterRole, "a"),
                    code: 403,
                    message: "is attempting\nto grant".to_owned(),
                }],
                ..facts()
            },
            subject: "ClusterRole a",
            reason: "is attempting to grant",
        },
    ]
}

#[test]
fn names_of_others_are_not_taken_unless_asked_for() {
    let labels = |key: &str, value: &str| json!({"metadata": {"labels": {key: value}}});
    let table = [
        (labels(MANAGED_BY, OURS), None),
        (json!({"metadata": {}}), None),
        (labels(MANAGED_BY, "Helm"), Some("Helm")),
        (
            labels("olm.managed", "true"),
            Some("Operator Lifecycle Manager"),
        ),
        (labels(INSTALLATION, "other"), Some("namespace other")),
        (labels(INSTALLATION, "hypershift"), None),
        (
            json!({"metadata": {"annotations": {"meta.helm.sh/release-name": "r"}}}),
            Some("Helm release r"),
        ),
        (
            json!({"metadata": {"ownerReferences": [{"kind": "MultiClusterEngine", "name": "m"}]}}),
            Some("MultiClusterEngine m"),
        ),
    ];
    for (live, expected) in table {
        let mut facts = Facts {
            observed: observed(Kind::ClusterRole, live.clone()),
            ..facts()
        };
        let found = findings(&facts);
        match expected {
            None => assert_eq!(found, [], "{live}"),
            Some(owner) => assert!(found[0].reason.contains(owner), "{live}: {found:?}"),
        }
        facts.take_over = true;
        assert_eq!(findings(&facts), [], "{live}");
    }
}

#[test]
fn what_every_installation_shares_may_change_hands() {
    let live = json!({
        "kind": "PriorityClass",
        "metadata": {"labels": {INSTALLATION: "other"}},
    });
    let facts = Facts {
        observed: observed(Kind::PriorityClass, live),
        ..facts()
    };
    assert_eq!(findings(&facts), []);
}

#[test]
fn versions_are_read_as_servers_write_them() {
    let table = [
        (json!({"major": "1", "minor": "35"}), Some((1, 35))),
        (json!({"major": "1", "minor": "31+"}), Some((1, 31))),
        (json!({"major": "", "minor": ""}), None),
        (json!({}), None),
    ];
    for (version, expected) in table {
        let read = Version::of(&version).map(|version| (version.major, version.minor));
        assert_eq!(read, expected, "{version}");
    }
}

#[test]
fn rights_are_asked_for_by_what_is_installed() {
    let asks = |outputs, monitoring, resource: &str, verb: &str| {
        needed("hypershift", outputs, monitoring)
            .iter()
            .any(|permission| permission.resource == resource && permission.verb == verb)
    };
    assert!(asks(
        Outputs::Crds,
        false,
        "customresourcedefinitions",
        "patch"
    ));
    assert!(!asks(Outputs::Crds, false, "deployments", "patch"));
    assert!(!asks(
        Outputs::Resources,
        false,
        "customresourcedefinitions",
        "patch"
    ));
    assert!(!asks(Outputs::All, false, "servicemonitors", "create"));
    assert!(asks(Outputs::All, true, "servicemonitors", "create"));
    // CRDs, namespaces and priority classes are not for an installation to remove.
    assert!(!asks(
        Outputs::All,
        true,
        "customresourcedefinitions",
        "delete"
    ));
    assert!(!asks(Outputs::All, true, "namespaces", "delete"));
}

#[test]
fn each_right_of_the_operators_is_asked_for_by_itself() {
    let rules = rbac::rules(Operator::New, Operator::New.capi_types_beside_private());
    let grants = grants("hypershift", &rules);
    let count: usize = rules
        .iter()
        .map(|rule| rule.resources.len() * rule.verbs.len() * rule.names.len().max(1))
        .sum();
    assert_eq!(grants.len(), count);
    let lead = grants
        .iter()
        .find(|permission| {
            permission.name.is_some()
                && permission.resource == "leases"
                && permission.verb == "update"
        })
        .unwrap();
    assert_eq!(
        lead.name.as_deref(),
        Some("hypershift-operator-leader-elect")
    );
    assert_eq!(lead.namespace.as_deref(), Some("hypershift"));
}
