//! A table for each check: an observation, and what is found.

use std::collections::BTreeMap;

use api::annotations::{MIGRATION_FAILED, PRIVATE_CAPI_TYPES, SCOPE};
use ownership::ObservedGroups;

use super::*;
use crate::doctor::{
    CertificateFacts, ClusterFacts, CrdFacts, DeploymentFacts, Detail, Found, Mode,
    PermissionFacts, Severity, WebhookFacts, WebhookUser,
};

fn marks(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs
        .iter()
        .map(|&(key, value)| (key.to_owned(), value.to_owned()))
        .collect()
}

fn crd(plural: &str, group: &str) -> CrdFacts {
    CrdFacts {
        name: format!("{plural}.{group}"),
        group: group.to_owned(),
        served: vec!["v1beta2".to_owned()],
        storage: "v1beta2".to_owned(),
        stored: vec!["v1beta2".to_owned()],
        marks: marks(&[("cluster.x-k8s.io/v1beta2", "v1beta2")]),
        managers: vec!["hypershift-install".to_owned()],
        established: true,
    }
}

fn private() -> CrdFacts {
    crd(
        "awsmachines",
        "infrastructure.cluster.hypershift.openshift.io",
    )
}

fn cluster(annotations: &[(&str, &str)], observed: ObservedGroups) -> ClusterFacts {
    ClusterFacts {
        name: "clusters/one".to_owned(),
        annotations: marks(annotations),
        refusal: None,
        observed: Ok(observed),
    }
}

fn deployment(name: &str, available: i32) -> DeploymentFacts {
    DeploymentFacts {
        name: name.to_owned(),
        wanted: 2,
        available,
        images: vec!["registry.example.com/operator:v1".to_owned()],
    }
}

/// Everything is well.
fn well() -> Observation {
    Observation {
        server_version: "v1.35.4".to_owned(),
        namespace: "hypershift".to_owned(),
        crds: vec![private()],
        clusters: Found::Read(vec![cluster(
            &[(PRIVATE_CAPI_TYPES, "true")],
            ObservedGroups::Private,
        )]),
        deployments: Found::Read(vec![deployment("operator", 2)]),
        permissions: Found::Read(vec![PermissionFacts {
            verb: "list".to_owned(),
            resource: "hostedclusters.hypershift.openshift.io".to_owned(),
            allowed: true,
        }]),
        webhooks: Found::Read(vec![webhook(Some(2))]),
        certificates: certificate(Some(200 * 24 * 3600)),
        tenant_policy: Found::Read(Mode::Enforce),
    }
}

fn certificate(seconds_left: Option<i64>) -> Found<Vec<CertificateFacts>> {
    Found::Read(vec![CertificateFacts {
        secret: "hypershift/shim-serving".to_owned(),
        seconds_left,
    }])
}

fn webhook(ready: Option<usize>) -> WebhookFacts {
    WebhookFacts {
        user: WebhookUser::Conversion("machines.example.com".to_owned()),
        service: "hypershift/shim".to_owned(),
        ready,
        has_authority: true,
    }
}

fn report(observation: &Observation) -> Report {
    examine(observation, &GroupTable::default())
}

/// The one finding: `severity: subject: problem`.
fn only_finding(observation: &Observation) -> String {
    let report = report(observation);
    let [finding] = &report.findings[..] else {
        panic!("not one finding: {:#?}", report.findings);
    };
    assert!(!finding.remedy.is_empty());
    format!(
        "{}: {}: {}",
        finding.severity, finding.subject, finding.problem
    )
}

/// T07.
#[test]
fn certificates_are_reported_before_they_expire() {
    const DAY: i64 = 24 * 3600;
    let table = [
        (
            Some(29 * DAY),
            "warning: Secret hypershift/shim-serving: its certificate expires in 29 days",
        ),
        (
            Some(0),
            "error: Secret hypershift/shim-serving: its certificate has expired",
        ),
        (
            Some(-DAY),
            "error: Secret hypershift/shim-serving: its certificate has expired",
        ),
        (
            None,
            "error: Secret hypershift/shim-serving: it holds no certificate",
        ),
    ];
    for (left, expected) in table {
        let observation = Observation {
            certificates: certificate(left),
            ..well()
        };
        let found = only_finding(&observation);
        assert!(found.starts_with(expected), "{found}");
    }
    let observation = Observation {
        certificates: certificate(Some(30 * DAY)),
        ..well()
    };
    assert_eq!(report(&observation).findings, []);
}

/// T05.
#[test]
fn a_tenant_policy_that_does_not_enforce_is_reported() {
    let modes = [
        (Found::Read(Mode::Warn), "only warns"),
        (Found::Unknown, "there is no tenant policy"),
        (Found::Refused("no".to_owned()), "failed to read"),
    ];
    for (tenant_policy, expected) in modes {
        let observation = Observation {
            tenant_policy,
            ..well()
        };
        let found = only_finding(&observation);
        assert!(
            found.starts_with("warning: ") && found.contains(expected),
            "{found}"
        );
    }
}

/// U02: 90 rows about CRDs that are as they should be hide the one line that matters.
#[test]
fn a_report_begins_with_its_summary_and_lists_only_what_is_odd() {
    let mut odd = private();
    odd.name = "odds.infrastructure.cluster.hypershift.openshift.io".to_owned();
    odd.established = false;
    let report = report(&Observation {
        crds: vec![private(), odd.clone()],
        deployments: Found::Read(vec![deployment("operator", 1)]),
        ..well()
    });
    let text = report.text(Detail::Findings).to_string();
    let first = text.lines().next().unwrap_or_default();
    assert_eq!(
        first,
        "2 errors, 0 warnings; 1 operator, 1 hosted cluster, 2 CRDs on API server v1.35.4"
    );
    assert!(text.contains(&format!("error: {}", odd.name)), "{text}");
    let rows = |text: &str, name: &str| text.lines().filter(|line| line.starts_with(name)).count();
    assert_eq!(rows(&text, &odd.name), 1, "{text}");
    assert_eq!(rows(&text, "operator "), 1, "{text}");
    assert_eq!(rows(&text, &private().name), 0, "{text}");
    assert_eq!(rows(&text, "clusters/one"), 0, "{text}");
    assert!(
        text.ends_with("Use --verbose to list all objects."),
        "{text}"
    );

    let text = report.text(Detail::All).to_string();
    assert_eq!(rows(&text, &private().name), 1, "{text}");
    assert_eq!(rows(&text, "clusters/one"), 1, "{text}");
}

#[test]
fn nothing_is_found_where_everything_is_well() {
    let report = report(&well());
    assert_eq!(report.findings, []);
    assert!(!report.has_errors());
    assert_eq!(report.clusters[0].owner, "operator");
}

#[test]
fn each_crd_has_an_owner_and_a_reason() {
    let standard = || crd("machines", "cluster.x-k8s.io");
    let with_mark = |key: &str| CrdFacts {
        marks: marks(&[(key, "x")]),
        ..standard()
    };
    let with_manager = |name: &str| CrdFacts {
        managers: vec![name.to_owned()],
        ..standard()
    };
    for (crd, owner, because) in [
        (private(), "ours", "private group"),
        (
            crd("nodepools", "hypershift.openshift.io"),
            "ours",
            "our own API",
        ),
        (
            with_mark("include.release.openshift.io/self-managed"),
            "platform",
            "include.release.openshift.io/self-managed",
        ),
        (
            with_mark("backplaneconfig.name"),
            "MCE",
            "backplaneconfig.name",
        ),
        (
            with_mark("clusterctl.cluster.x-k8s.io"),
            "clusterctl",
            "clusterctl.cluster.x-k8s.io",
        ),
        (
            with_manager("cluster-capi-operator"),
            "platform",
            "written by cluster-capi-operator",
        ),
        (with_manager("kubectl"), "unknown", "written by kubectl"),
        (
            CrdFacts {
                managers: Vec::new(),
                ..standard()
            },
            "unknown",
            "no manager is recorded",
        ),
    ] {
        let name = crd.name.clone();
        let report = report(&Observation {
            crds: vec![crd, private()],
            ..well()
        });
        let line = &report.crds[0];
        assert_eq!((&*line.owner, &*line.because), (owner, because), "{name}");
    }
}

#[test]
fn private_crds_are_checked() {
    for (crd, expected) in [
        (
            CrdFacts {
                marks: BTreeMap::new(),
                ..private()
            },
            "error: awsmachines.infrastructure.cluster.hypershift.openshift.io: it has no contract label, so \
             controllers cannot determine which version to use",
        ),
        (
            CrdFacts {
                marks: marks(&[("cluster.x-k8s.io/v1beta1", "v1alpha4_v1beta1")]),
                ..private()
            },
            "error: awsmachines.infrastructure.cluster.hypershift.openshift.io: controllers use version v1beta1 for \
             contract v1beta1, and it is not served",
        ),
        (
            CrdFacts {
                established: false,
                ..private()
            },
            "error: awsmachines.infrastructure.cluster.hypershift.openshift.io: it is not established: the API \
             server does not serve it",
        ),
        (
            CrdFacts {
                stored: vec!["v1beta1".to_owned(), "v1beta2".to_owned()],
                ..private()
            },
            "warning: awsmachines.infrastructure.cluster.hypershift.openshift.io: objects may still be stored at \
             v1beta1",
        ),
    ] {
        assert_eq!(
            only_finding(&Observation {
                crds: vec![crd],
                ..well()
            }),
            expected
        );
    }
}

#[test]
fn older_contracts_may_name_versions_that_are_gone() {
    let marks = marks(&[
        ("cluster.x-k8s.io/v1alpha4", "v1alpha4"),
        ("cluster.x-k8s.io/v1beta1", "v1beta1_v1beta2"),
    ]);
    let crd = CrdFacts { marks, ..private() };
    let observation = Observation {
        crds: vec![crd],
        ..well()
    };
    assert_eq!(report(&observation).findings, []);
}

#[test]
fn crds_of_the_platform_are_not_checked() {
    let theirs = CrdFacts {
        established: false,
        marks: BTreeMap::new(),
        ..crd("machines", "cluster.x-k8s.io")
    };
    assert_eq!(
        report(&Observation {
            crds: vec![theirs, private()],
            ..well()
        })
        .findings,
        []
    );
}

#[test]
fn kinds_that_nothing_refers_to_by_contract_need_no_label() {
    let core = CrdFacts {
        marks: BTreeMap::new(),
        ..crd("machines", "cluster.hypershift.openshift.io")
    };
    assert_eq!(
        report(&Observation {
            crds: vec![core],
            ..well()
        })
        .findings,
        []
    );
}

#[test]
fn an_invalid_state_is_an_error_and_names_what_to_do() {
    let both = cluster(
        &[(PRIVATE_CAPI_TYPES, "true"), (SCOPE, "legacy")],
        ObservedGroups::Private,
    );
    let observation = Observation {
        clusters: Found::Read(vec![both]),
        ..well()
    };
    assert_eq!(
        only_finding(&observation),
        "error: HostedCluster clusters/one: LegacyAndPrivate"
    );
    let line = &report(&observation).clusters[0];
    assert_eq!(
        line.because,
        "annotated as private, annotated as legacy; objects in private groups"
    );
}

#[test]
fn a_failed_migration_is_reported() {
    let failed = cluster(
        &[(SCOPE, "legacy"), (MIGRATION_FAILED, "quiesce-timeout")],
        ObservedGroups::Standard,
    );
    let observation = Observation {
        clusters: Found::Read(vec![failed]),
        deployments: Found::Read(vec![
            deployment("operator", 2),
            deployment("operator-legacy", 2),
        ]),
        ..well()
    };
    assert_eq!(
        only_finding(&observation),
        "warning: HostedCluster clusters/one: its migration failed: quiesce-timeout"
    );
}

#[test]
fn the_operators_that_are_needed_must_be_there_and_no_others() {
    let legacy = || {
        Found::Read(vec![cluster(
            &[(SCOPE, "legacy")],
            ObservedGroups::Standard,
        )])
    };
    let none = || Found::Read(Vec::new());
    for (clusters, deployments, expected) in [
        (
            none(),
            vec![],
            "error: Deployment hypershift/operator: it does not exist",
        ),
        (
            none(),
            vec![deployment("operator", 1)],
            "error: Deployment hypershift/operator: 1 of 2 replicas are available",
        ),
        (
            legacy(),
            vec![deployment("operator", 2)],
            "error: Deployment hypershift/operator-legacy: it does not exist, but hosted clusters on standard types \
             need it",
        ),
        (
            none(),
            vec![deployment("operator", 2), deployment("operator-legacy", 2)],
            "warning: Deployment hypershift/operator-legacy: no hosted cluster needs it",
        ),
    ] {
        let observation = Observation {
            clusters,
            deployments: Found::Read(deployments),
            ..well()
        };
        assert_eq!(only_finding(&observation), expected);
    }
}

/// Otherwise the legacy operator would be called superfluous where the clusters that need it cannot be listed.
#[test]
fn what_may_not_be_seen_decides_nothing() {
    let observation = Observation {
        clusters: Found::Refused("forbidden".to_owned()),
        deployments: Found::Read(vec![
            deployment("operator", 2),
            deployment("operator-legacy", 2),
        ]),
        ..well()
    };
    assert_eq!(
        only_finding(&observation),
        "error: HostedClusters: forbidden"
    );
    let unseen = ClusterFacts {
        refusal: None,
        observed: Err("forbidden".to_owned()),
        ..cluster(&[], ObservedGroups::None)
    };
    let observation = Observation {
        clusters: Found::Read(vec![unseen]),
        ..observation
    };
    assert_eq!(
        only_finding(&observation),
        "error: HostedCluster clusters/one: cannot observe which groups hold its objects: forbidden"
    );
}

#[test]
fn missing_permissions_are_reported_once_per_resource() {
    let permission = |verb: &str| PermissionFacts {
        verb: verb.to_owned(),
        resource: "things.example.com".to_owned(),
        allowed: false,
    };
    let observation = Observation {
        permissions: Found::Read(vec![permission("list"), permission("watch")]),
        ..well()
    };
    assert_eq!(
        only_finding(&observation),
        "error: service account operator: it may not list, watch things.example.com"
    );
}

#[test]
fn webhooks_must_answer() {
    for (webhook, expected) in [
        (
            webhook(None),
            "its webhook's Service hypershift/shim is not there",
        ),
        (
            webhook(Some(0)),
            "nothing ready is behind its webhook's Service hypershift/shim",
        ),
        (
            WebhookFacts {
                has_authority: false,
                ..webhook(Some(1))
            },
            "its webhook has no caBundle",
        ),
    ] {
        let finding = only_finding(&Observation {
            webhooks: Found::Read(vec![webhook]),
            ..well()
        });
        assert!(
            finding.starts_with(&format!("error: machines.example.com: {expected}")),
            "{finding}"
        );
    }
}

#[test]
fn webhooks_that_may_not_be_seen_are_a_warning() {
    let observation = Observation {
        webhooks: Found::Refused("forbidden".to_owned()),
        ..well()
    };
    assert_eq!(
        only_finding(&observation),
        "warning: webhooks: cannot check whether they answer: forbidden"
    );
}

#[test]
fn errors_come_first_and_are_counted() {
    let observation = Observation {
        crds: Vec::new(),
        deployments: Found::Read(Vec::new()),
        ..well()
    };
    let report = report(&observation);
    let severities: Vec<Severity> = report
        .findings
        .iter()
        .map(|finding| finding.severity)
        .collect();
    assert_eq!(severities, [Severity::Error, Severity::Warning]);
    assert!(report.has_errors());
    let text = report.text(Detail::Findings).to_string();
    assert!(text.starts_with("1 error, 1 warning; "), "{text}");
}
