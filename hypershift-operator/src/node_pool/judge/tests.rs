//! What is found out about pools, and where the checks stop.

use api::annotations::node_pool::IGNITION_REACHED;
use api::conditions::find;
use api::hypershift::v1beta1::node_pool::{
    Arch, NodePoolAutoScaling, ReplaceUpgrade, RollingUpdate,
};
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::*;
use crate::node_pool::config::{Content, Source};
use crate::node_pool::facts::Unread;
use crate::node_pool::observed::Workload;
use crate::node_pool::{fixtures, names};

struct Judged {
    found: Found,
    conditions: Conditions,
    outcome: Result<(), Stop>,
}

fn judged(facts: &Facts) -> Judged {
    let mut conditions = Conditions::new(Vec::new(), Some(3), facts.now);
    let (found, outcome) = judge(facts, &mut conditions);
    Judged {
        found,
        conditions,
        outcome,
    }
}

impl Judged {
    /// Status, reason and message.
    fn said(&self, about: PoolCondition) -> (String, String, String) {
        let condition = find(self.conditions.list(), about);
        let condition =
            condition.unwrap_or_else(|| panic!("{about}: {:#?}", self.conditions.list()));
        let text = |it: &Option<String>| it.clone().unwrap_or_default();
        (
            condition.status.clone(),
            text(&condition.reason),
            text(&condition.message),
        )
    }

    fn types(&self) -> Vec<&str> {
        self.conditions
            .list()
            .iter()
            .map(|it| it.type_.as_str())
            .collect()
    }
}

#[test]
fn a_pool_that_lacks_nothing_passes_all_checks() {
    let judged = judged(&fixtures::facts());
    assert_eq!(judged.outcome, Ok(()));
    assert_eq!(
        judged.types(),
        [
            "AutoscalingEnabled",
            "UpdateManagementEnabled",
            "ValidReleaseImage",
            "ValidArchPlatform",
            "ReconciliationActive",
            "SupportedVersionSkew",
            "ValidMachineConfig",
            "UpdatingConfig",
            "UpdatingVersion",
            "ValidGeneratedPayload",
            "ReachedIgnitionEndpoint",
            "AWSResourceTagConflict",
            "ValidPlatformImage",
            "ValidMachineTemplate",
            "UpdatingPlatformMachineTemplate",
        ]
    );
    assert!(judged.found.machine.is_some());
    assert_eq!(judged.found.hashes.unwrap().with_version.len(), 8);
}

/// A mistake, the condition that tells it, and what stops.
struct Row {
    name: &'static str,
    change: fn(&mut Facts),
    about: PoolCondition,
    reason: &'static str,
    message: &'static str,
    outcome: Result<(), Stop>,
}

fn unread(facts: &mut Facts) {
    facts.release = Err(Unread {
        reason: "InvalidImage".to_owned(),
        message: "cannot read the image: it is not there".to_owned(),
    });
}

fn version(facts: &mut Facts, cluster: &str) {
    facts.cluster_version = Some(cluster.parse().unwrap());
}

const ROWS: [Row; 15] = [
    Row {
        name: "both ways to say how many",
        change: |it| it.pool.spec.auto_scaling = Some(NodePoolAutoScaling { min: 1, max: 2 }),
        about: PoolCondition::AutoscalingEnabled,
        reason: "ValidationFailed",
        message: "exclude each other",
        outcome: Err(Stop::Waiting),
    },
    Row {
        name: "nothing may be replaced",
        change: |it| {
            let update = RollingUpdate {
                max_surge: Some(IntOrString::String("0%".to_owned())),
                max_unavailable: Some(IntOrString::Int(0)),
            };
            it.pool.spec.management.replace = Some(ReplaceUpgrade {
                rolling_update: Some(update),
                ..ReplaceUpgrade::default()
            });
        },
        about: PoolCondition::UpdateManagementEnabled,
        reason: "ValidationFailed",
        message: "both zero",
        outcome: Err(Stop::Waiting),
    },
    Row {
        name: "no release",
        change: unread,
        about: PoolCondition::ValidReleaseImage,
        reason: "InvalidImage",
        message: "it is not there",
        outcome: Err(Stop::Soon),
    },
    Row {
        name: "a release that is being read",
        change: |it| {
            it.release = Err(Unread {
                reason: "ReadInProgress".to_owned(),
                message: "it is read".to_owned(),
            });
        },
        about: PoolCondition::ValidReleaseImage,
        reason: "ReadInProgress",
        message: "Waiting for the release image",
        outcome: Err(Stop::Soon),
    },
    Row {
        name: "ahead of the control plane",
        change: |it| version(it, "4.21.9"),
        about: PoolCondition::ValidReleaseImage,
        reason: "InvalidImage",
        message: "upgrade the control plane first",
        outcome: Err(Stop::Waiting),
    },
    Row {
        name: "far behind",
        change: |it| version(it, "5.1.0"),
        about: PoolCondition::SupportedVersionSkew,
        reason: "AsExpected",
        message: "goes with",
        outcome: Ok(()),
    },
    Row {
        name: "too far behind",
        change: |it| {
            it.release = Ok(Arc::new(fixtures::release("4.20.0")));
            version(it, "5.1.0");
        },
        about: PoolCondition::SupportedVersionSkew,
        reason: "UnsupportedSkew",
        message: "upgrade the pool",
        outcome: Ok(()),
    },
    Row {
        name: "no ignition endpoint",
        change: |it| it.cluster.status.as_mut().unwrap().ignition_endpoint = None,
        about: PoolCondition::IgnitionEndpointAvailable,
        reason: "IgnitionEndpointMissing",
        message: "no ignition endpoint yet",
        outcome: Err(Stop::Waiting),
    },
    Row {
        name: "no authority for ignition",
        change: |it| it.ignition_ca = None,
        about: PoolCondition::IgnitionEndpointAvailable,
        reason: "IgnitionCACertMissing",
        message: "no certificate authority",
        outcome: Err(Stop::Waiting),
    },
    Row {
        name: "another architecture",
        change: |it| it.pool.spec.arch = Arch::Arm64,
        about: PoolCondition::ValidArchPlatform,
        reason: "InvalidArchPlatform",
        message: "multi-architecture",
        outcome: Err(Stop::Waiting),
    },
    Row {
        name: "paused",
        change: |it| it.pool.spec.paused_until = Some("true".to_owned()),
        about: PoolCondition::ReconciliationActive,
        reason: "ReconciliationPaused",
        message: "until it is removed",
        outcome: Err(Stop::Paused),
    },
    Row {
        name: "configuration that is not there",
        change: |it| {
            it.own.push(Source {
                name: "more".to_owned(),
                content: Content::Missing,
            });
        },
        about: PoolCondition::ValidMachineConfig,
        reason: "ValidationFailed",
        message: "ConfigMap more does not exist",
        outcome: Err(Stop::Waiting),
    },
    Row {
        name: "no address of the API server",
        change: |it| it.cluster.status.as_mut().unwrap().control_plane_endpoint = None,
        about: PoolCondition::ValidMachineConfig,
        reason: "WaitingForAvailable",
        message: "no address of its API server",
        outcome: Err(Stop::Waiting),
    },
    Row {
        name: "no image in the region",
        change: |it| {
            it.cluster.spec.platform.aws.as_mut().unwrap().region = "eu-north-9".to_owned()
        },
        about: PoolCondition::ValidPlatformImage,
        reason: "InvalidImage",
        message: "set spec.platform.aws.ami",
        outcome: Err(Stop::Waiting),
    },
    Row {
        name: "another platform than the cluster's",
        change: |it| it.cluster.spec.platform.aws = None,
        about: PoolCondition::ValidMachineTemplate,
        reason: "InvalidConfiguration",
        message: "not on AWS",
        outcome: Err(Stop::Waiting),
    },
];

#[test]
fn every_mistake_has_its_condition_and_stops_where_it_matters() {
    for row in ROWS {
        let mut facts = fixtures::facts();
        (row.change)(&mut facts);
        let judged = judged(&facts);
        let (_, reason, message) = judged.said(row.about);
        assert_eq!(reason, row.reason, "{}", row.name);
        assert!(message.contains(row.message), "{}: {message}", row.name);
        assert_eq!(judged.outcome, row.outcome, "{}", row.name);
    }
}

#[test]
fn what_stands_behind_a_stop_is_not_judged() {
    let mut facts = fixtures::facts();
    unread(&mut facts);
    let judged = judged(&facts);
    assert_eq!(
        judged.types(),
        [
            "AutoscalingEnabled",
            "UpdateManagementEnabled",
            "ValidReleaseImage"
        ]
    );
    assert!(judged.found.hashes.is_none());
}

#[test]
fn upgrades_are_told_until_they_are_over() {
    let mut facts = fixtures::facts();
    let hash = judged(&facts).found.hashes.unwrap().without_version;
    let annotations = facts.pool.metadata.annotations.get_or_insert_default();
    annotations.insert(CURRENT_CONFIG.key().to_owned(), hash);
    facts.pool.status.get_or_insert_default().version = Some("4.22.0".to_owned());
    let before = judged(&facts);
    assert_eq!(before.said(PoolCondition::UpdatingConfig).0, "False");
    assert_eq!(before.said(PoolCondition::UpdatingVersion).0, "False");

    facts.release = Ok(Arc::new(fixtures::release("4.22.1")));
    version(&mut facts, "4.22.1");
    let during = judged(&facts);
    assert_eq!(
        during.said(PoolCondition::UpdatingVersion).2,
        "release 4.22.1 is being rolled out, from 4.22.0"
    );
    assert_eq!(during.said(PoolCondition::UpdatingConfig).0, "False");

    let failed = [(
        UPGRADE_FAILED.to_owned(),
        "node a does not come back".to_owned(),
    )];
    facts.workload = Some(Workload {
        annotations: failed.into(),
        ..Workload::default()
    });
    let (status, reason, message) = judged(&facts).said(PoolCondition::UpdatingVersion);
    assert_eq!(
        (status.as_str(), reason.as_str()),
        ("False", "InplaceUpgradeFailed")
    );
    assert_eq!(message, "node a does not come back");
}

#[test]
fn the_ignition_server_is_heard() {
    let mut facts = fixtures::facts();
    let hash = judged(&facts).found.hashes.unwrap().with_version;
    assert_eq!(
        judged(&facts)
            .said(PoolCondition::ReachedIgnitionEndpoint)
            .1,
        "NotFound"
    );
    let mut secret = Secret::default();
    secret.metadata.name = Some(names::token("workers", &hash));
    secret.metadata.annotations = Some([].into());
    for (reason, annotation, payload, reached) in [
        (None, None, "Unknown", "False"),
        (Some("InvalidConfig"), None, "False", "False"),
        (Some("AsExpected"), None, "True", "False"),
        (Some("AsExpected"), Some("True"), "True", "True"),
    ] {
        let data = reason.map(|it: &str| [("reason".to_owned(), ByteString(it.into()))].into());
        secret.data = data;
        let annotation =
            annotation.map(|it: &str| (IGNITION_REACHED.key().to_owned(), it.to_owned()));
        secret.metadata.annotations = Some(annotation.into_iter().collect());
        facts.tokens = vec![secret.clone()];
        let judged = judged(&facts);
        assert_eq!(
            judged.said(PoolCondition::ValidGeneratedPayload).0,
            payload,
            "{reason:?}"
        );
        assert_eq!(
            judged.said(PoolCondition::ReachedIgnitionEndpoint).0,
            reached,
            "{reason:?}"
        );
    }
}

/// Check F04: a pool of a cluster in FIPS mode goes on, and says that its nodes are not.
#[test]
fn settings_that_no_node_gets_are_reported() {
    let mut facts = fixtures::facts();
    facts.cluster.spec.fips = Some(true);
    let judged = judged(&facts);
    assert_eq!(judged.outcome, Ok(()));
    let (status, reason, message) = judged.said(PoolCondition::ValidMachineConfig);
    assert_eq!((status.as_str(), reason.as_str()), ("False", "NotApplied"));
    assert!(
        message.contains("spec.fips of MachineConfig 30-fips"),
        "{message}"
    );
}
