//! The evaluation of pools, and where checks block.

use api::annotations::node_pool::IGNITION_REACHED;
use api::conditions::find;
use api::hypershift::v1beta1::capabilities::OptionalCapability;
use api::hypershift::v1beta1::node_pool::{
    Arch, AwsCapacityReservation, AwsPlacement, NodePoolAutoScaling, NodePoolCondition,
    ReplaceUpgrade, RollingUpdate, UpgradeType,
};
use api::hypershift::v1beta1::platform::PlatformType;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::{LocalObjectReference, Secret};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use payload::{Capabilities, Capability};

use super::*;
use crate::names::node_pool as names;
use crate::node_pool::config::{Content, Source};
use crate::node_pool::facts::Unread;
use crate::node_pool::fixtures;
use crate::node_pool::observed::Workload;
use crate::node_pool::tuning::Written;

struct Evaluated {
    found: Evaluation,
    conditions: Conditions,
    outcome: Result<(), Blocked>,
}

fn evaluated(facts: &Facts) -> Evaluated {
    evaluated_after(facts, Vec::new())
}

/// The evaluation of a pool that has conditions.
fn evaluated_after(facts: &Facts, before: Vec<NodePoolCondition>) -> Evaluated {
    let mut conditions = Conditions::new(before, Some(3), facts.now);
    let (found, outcome) = validate(facts, &mut conditions);
    Evaluated {
        found,
        conditions,
        outcome,
    }
}

impl Evaluated {
    /// Status, reason and message.
    fn condition(&self, about: PoolCondition) -> (String, String, String) {
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
fn a_complete_pool_passes_all_checks() {
    let evaluated = evaluated(&fixtures::facts());
    assert_eq!(evaluated.outcome, Ok(()));
    assert_eq!(
        evaluated.types(),
        [
            "ReconciliationActive",
            "AutoscalingEnabled",
            "UpdateManagementEnabled",
            "ValidReleaseImage",
            "ValidArchPlatform",
            "SupportedVersionSkew",
            "ValidTuningConfig",
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
    assert!(evaluated.found.machine.is_some());
    assert_eq!(evaluated.found.hashes.unwrap().with_version.len(), 8);
}

/// An invalid field, its condition, and which checks are skipped.
struct Row {
    name: &'static str,
    change: fn(&mut Facts),
    about: PoolCondition,
    reason: &'static str,
    message: &'static str,
    outcome: Result<(), Blocked>,
}

fn unread(facts: &mut Facts) {
    facts.release = Err(Unread {
        reason: "InvalidImage".to_owned(),
        message: "cannot read the image: it is not there".to_owned(),
        retry_after: None,
    });
}

fn version(facts: &mut Facts, cluster: &str) {
    facts.cluster_version = Some(cluster.parse().unwrap());
}

const ROWS: [Row; 23] = [
    Row {
        name: "both ways to say how many",
        change: |it| it.pool.spec.auto_scaling = Some(NodePoolAutoScaling { min: 1, max: 2 }),
        about: PoolCondition::AutoscalingEnabled,
        reason: "ValidationFailed",
        message: "mutually exclusive",
        outcome: Err(Blocked::Waiting),
    },
    Row {
        name: "no machine on a platform that needs one",
        change: |it| {
            it.pool.spec.platform.type_ = PlatformType::Agent;
            it.pool.spec.replicas = None;
            it.pool.spec.auto_scaling = Some(NodePoolAutoScaling { min: 0, max: 2 });
        },
        about: PoolCondition::AutoscalingEnabled,
        reason: "ValidationFailed",
        message: "set autoScaling.min to 1",
        outcome: Ok(()),
    },
    Row {
        name: "no machine on AWS",
        change: |it| {
            it.pool.spec.replicas = None;
            it.pool.spec.auto_scaling = Some(NodePoolAutoScaling { min: 0, max: 2 });
        },
        about: PoolCondition::AutoscalingEnabled,
        reason: "AsExpected",
        message: "between 1 and 2 nodes",
        outcome: Ok(()),
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
        message: "both 0",
        outcome: Err(Blocked::Waiting),
    },
    Row {
        name: "no release",
        change: unread,
        about: PoolCondition::ValidReleaseImage,
        reason: "InvalidImage",
        message: "it is not there",
        outcome: Err(Blocked::Soon),
    },
    Row {
        name: "a release that is being read",
        change: |it| {
            it.release = Err(Unread {
                reason: "ReadInProgress".to_owned(),
                message: "it is read".to_owned(),
                retry_after: None,
            });
        },
        about: PoolCondition::ValidReleaseImage,
        reason: "ReadInProgress",
        message: "Waiting for the release image",
        outcome: Err(Blocked::Soon),
    },
    Row {
        name: "ahead of the control plane",
        change: |it| version(it, "4.21.9"),
        about: PoolCondition::ValidReleaseImage,
        reason: "InvalidImage",
        message: "upgrade the control plane first",
        outcome: Err(Blocked::Waiting),
    },
    Row {
        name: "far behind",
        change: |it| version(it, "5.1.0"),
        about: PoolCondition::SupportedVersionSkew,
        reason: "AsExpected",
        message: "is compatible with",
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
        name: "a cluster of an unknown release",
        change: |it| it.cluster_version = None,
        about: PoolCondition::SupportedVersionSkew,
        reason: "ValidationFailed",
        message: "Waiting for the release of the HostedCluster",
        outcome: Ok(()),
    },
    Row {
        name: "to report its ignition endpoint",
        change: |it| it.cluster.status.as_mut().unwrap().ignition_endpoint = None,
        about: PoolCondition::IgnitionEndpointAvailable,
        reason: "IgnitionEndpointMissing",
        message: "to report its ignition endpoint",
        outcome: Err(Blocked::Waiting),
    },
    Row {
        name: "no authority for ignition",
        change: |it| it.ignition_ca = None,
        about: PoolCondition::IgnitionEndpointAvailable,
        reason: "IgnitionCACertMissing",
        message: "ignition certificate authority",
        outcome: Err(Blocked::Waiting),
    },
    Row {
        name: "another architecture",
        change: |it| it.pool.spec.arch = Arch::Arm64,
        about: PoolCondition::ValidArchPlatform,
        reason: "InvalidArchPlatform",
        message: "multi-architecture",
        outcome: Err(Blocked::Waiting),
    },
    Row {
        name: "an architecture that the platform does not have",
        change: |it| it.pool.spec.arch = Arch::S390x,
        about: PoolCondition::ValidArchPlatform,
        reason: "InvalidArchPlatform",
        message: "machines of platform AWS are amd64, arm64",
        outcome: Err(Blocked::Waiting),
    },
    Row {
        name: "tuning that is not there",
        change: |it| {
            it.tuning_inputs.sources.push(Source {
                name: "more".to_owned(),
                content: Content::Missing,
            });
        },
        about: PoolCondition::ValidTuningConfig,
        reason: "ValidationFailed",
        message: "ConfigMap more does not exist",
        outcome: Ok(()),
    },
    Row {
        name: "tuning without a tuning operator",
        change: |it| {
            let disabled = &mut it.cluster.spec.capabilities.disabled;
            disabled.push(OptionalCapability::NodeTuning);
            it.pool.spec.tuning_config.push(LocalObjectReference {
                name: "more".to_owned(),
            });
        },
        about: PoolCondition::ValidTuningConfig,
        reason: "NotApplied",
        message: "remove spec.tuningConfig",
        outcome: Ok(()),
    },
    Row {
        name: "paused",
        change: |it| it.pool.spec.paused_until = Some("true".to_owned()),
        about: PoolCondition::ReconciliationActive,
        reason: "ReconciliationPaused",
        message: "until it is removed",
        outcome: Err(Blocked::Paused),
    },
    Row {
        name: "a control plane that has not published its part",
        change: |it| {
            let label = (Capability::SkipsHaproxy.label(), "true".to_owned());
            it.capabilities = Capabilities::of_labels(&[label].into());
        },
        about: PoolCondition::ValidMachineConfig,
        reason: "WaitingForAvailable",
        message: "it has 0 of 2 ConfigMaps",
        outcome: Err(Blocked::Waiting),
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
        outcome: Err(Blocked::Waiting),
    },
    Row {
        name: "no address of the API server",
        change: |it| it.cluster.status.as_mut().unwrap().control_plane_endpoint = None,
        about: PoolCondition::ValidMachineConfig,
        reason: "WaitingForAvailable",
        message: "address of its API server",
        outcome: Err(Blocked::Waiting),
    },
    Row {
        name: "no image in the region",
        change: |it| {
            it.cluster.spec.platform.aws.as_mut().unwrap().region = "eu-north-9".to_owned()
        },
        about: PoolCondition::ValidPlatformImage,
        reason: "InvalidImage",
        message: "set spec.platform.aws.ami",
        outcome: Err(Blocked::Waiting),
    },
    Row {
        name: "a capacity reservation that the provider does not know",
        change: |it| {
            it.release = Ok(Arc::new(fixtures::release("4.18.0")));
            version(it, "4.18.9");
            let aws = it.pool.spec.platform.aws.as_mut().unwrap();
            aws.placement = Some(AwsPlacement {
                capacity_reservation: Some(AwsCapacityReservation::default()),
                ..AwsPlacement::default()
            });
        },
        about: PoolCondition::ValidPlatformConfig,
        reason: "AWSError",
        message: "which has 4.18.9: upgrade the HostedCluster",
        outcome: Err(Blocked::Waiting),
    },
    Row {
        name: "another platform than the cluster's",
        change: |it| it.cluster.spec.platform.aws = None,
        about: PoolCondition::ValidMachineTemplate,
        reason: "InvalidConfiguration",
        message: "not on AWS",
        outcome: Err(Blocked::Waiting),
    },
];

#[test]
fn every_invalid_field_sets_its_condition() {
    for row in ROWS {
        let mut facts = fixtures::facts();
        (row.change)(&mut facts);
        let evaluated = evaluated(&facts);
        let (_, reason, message) = evaluated.condition(row.about);
        assert_eq!(reason, row.reason, "{}", row.name);
        assert!(message.contains(row.message), "{}: {message}", row.name);
        assert_eq!(evaluated.outcome, row.outcome, "{}", row.name);
    }
}

#[test]
fn checks_after_a_blocking_one_are_skipped() {
    let mut facts = fixtures::facts();
    unread(&mut facts);
    let evaluated = evaluated(&facts);
    assert_eq!(
        evaluated.types(),
        [
            "ReconciliationActive",
            "AutoscalingEnabled",
            "UpdateManagementEnabled",
            "ValidReleaseImage"
        ]
    );
    assert!(evaluated.found.hashes.is_none());
}

/// What is refused is held only as long as the pool is not paused.
#[test]
fn a_pool_is_paused_whatever_is_wrong_with_it() {
    for (name, change, expected) in [
        ("nothing", (|_| {}) as fn(&mut Facts), Blocked::Paused),
        (
            "the first check",
            |it| {
                it.pool.spec.auto_scaling = Some(NodePoolAutoScaling { min: 1, max: 2 });
            },
            Blocked::Paused,
        ),
        ("the release", unread, Blocked::Soon),
    ] {
        let mut facts = fixtures::facts();
        facts.pool.spec.paused_until = Some("true".to_owned());
        facts.workload = Some(fixtures::workload(1));
        change(&mut facts);
        let evaluated = evaluated(&facts);
        assert_eq!(evaluated.outcome, Err(expected), "{name}");
        assert!(evaluated.found.is_paused, "{name}");
        let about = PoolCondition::ReconciliationActive;
        assert_eq!(evaluated.condition(about).1, "ReconciliationPaused");
        let conditions = evaluated.conditions.list().iter();
        let mut messages = conditions.filter_map(|it| it.message.as_deref());
        assert!(!messages.any(|it| it.contains(KEPT)), "{name}");
    }
}

/// A refusal of a pool with machines says what becomes of them.
#[test]
fn refusals_say_that_machines_stay() {
    for (name, has_machines) in [("new", false), ("with machines", true)] {
        let mut facts = fixtures::facts();
        facts.workload = has_machines.then(|| fixtures::workload(1));
        facts.pool.spec.arch = Arch::S390x;
        let (_, _, message) = evaluated(&facts).condition(PoolCondition::ValidArchPlatform);
        assert_eq!(message.ends_with(KEPT), has_machines, "{name}: {message}");
    }
}

#[test]
fn upgrades_are_reported_until_complete() {
    let mut facts = fixtures::facts();
    let hash = evaluated(&facts).found.hashes.unwrap().without_version;
    let annotations = facts.pool.metadata.annotations.get_or_insert_default();
    annotations.insert(CURRENT_CONFIG.key().to_owned(), hash);
    facts.pool.status.get_or_insert_default().version = Some("4.22.0".to_owned());
    let before = evaluated(&facts);
    assert_eq!(before.condition(PoolCondition::UpdatingConfig).0, "False");
    assert_eq!(before.condition(PoolCondition::UpdatingVersion).0, "False");

    facts.release = Ok(Arc::new(fixtures::release("4.22.1")));
    version(&mut facts, "4.22.1");
    let during = evaluated(&facts);
    assert_eq!(
        during.condition(PoolCondition::UpdatingVersion).2,
        "Rolling out release 4.22.1, from 4.22.0"
    );
    assert_eq!(during.condition(PoolCondition::UpdatingConfig).0, "False");

    let failed = [(
        UPGRADE_FAILED.to_owned(),
        "node a does not come back".to_owned(),
    )];
    facts.workload = Some(Workload {
        annotations: failed.into(),
        ..Workload::default()
    });
    let (status, reason, message) = evaluated(&facts).condition(PoolCondition::UpdatingVersion);
    assert_eq!(
        (status.as_str(), reason.as_str()),
        ("False", "InplaceUpgradeFailed")
    );
    assert_eq!(message, "node a does not come back");
}

#[test]
fn ignition_server_annotations_set_conditions() {
    let mut facts = fixtures::facts();
    let hash = evaluated(&facts).found.hashes.unwrap().with_version;
    assert_eq!(
        evaluated(&facts)
            .condition(PoolCondition::ReachedIgnitionEndpoint)
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
        let evaluated = evaluated(&facts);
        assert_eq!(
            evaluated.condition(PoolCondition::ValidGeneratedPayload).0,
            payload,
            "{reason:?}"
        );
        assert_eq!(
            evaluated
                .condition(PoolCondition::ReachedIgnitionEndpoint)
                .0,
            reached,
            "{reason:?}"
        );
    }
}

/// Nodes fetch a configuration from the endpoint only when they are created, so a new token stays unused in place.
#[test]
fn the_endpoint_stays_reached_for_upgrades_in_place() {
    for (upgrade, before, expected) in [
        (UpgradeType::InPlace, Some(true), "True"),
        (UpgradeType::InPlace, Some(false), "False"),
        (UpgradeType::InPlace, None, "False"),
        (UpgradeType::Replace, Some(true), "False"),
    ] {
        let mut facts = fixtures::facts();
        facts.pool.spec.management.upgrade_type = upgrade;
        let about = PoolCondition::ReachedIgnitionEndpoint;
        let mut known = Conditions::new(Vec::new(), Some(2), facts.now);
        if let Some(before) = before {
            known.set(about, before, "a", "");
        }
        let evaluated = evaluated_after(&facts, known.list().to_vec());
        let found = evaluated.condition(about).0;
        assert_eq!(found, expected, "{upgrade:?} {before:?}");
    }
}

/// Check F04: whether nodes can be in FIPS mode depends on the release, so the ignition server decides.
#[test]
fn settings_without_effect_are_reported() {
    let mut facts = fixtures::facts();
    facts.cluster.spec.fips = Some(true);
    let valid = evaluated(&facts);
    assert_eq!(valid.outcome, Ok(()));
    assert_eq!(valid.condition(PoolCondition::ValidMachineConfig).0, "True");
    let hash = valid.found.hashes.unwrap().with_version;
    let problem = "MachineConfig 30-fips: spec.fips: the release does not apply it";
    let mut secret = Secret::default();
    secret.metadata.name = Some(names::token("workers", &hash));
    let data = [("reason", "InvalidConfig"), ("message", problem)];
    let data = data.map(|(key, text)| (key.to_owned(), ByteString(text.into())));
    secret.data = Some(data.into());
    facts.tokens = vec![secret];
    let refused = evaluated(&facts);
    assert_eq!(refused.outcome, Ok(()));
    let (status, reason, message) = refused.condition(PoolCondition::ValidGeneratedPayload);
    assert_eq!(
        (status.as_str(), reason.as_str(), message.as_str()),
        ("False", "InvalidConfig", problem)
    );
}

/// The state of the profile that the nodes have is reported, and not that of one which is invalid.
#[test]
fn performance_conditions_follow_the_profile_in_use() {
    let profile = "apiVersion: performance.openshift.io/v2\nkind: PerformanceProfile\nmetadata: {name: a}\n\
                   spec: {cpu: {reserved: '0', isolated: '1'}}\n";
    let about = PoolCondition::PerformanceAvailable;
    for (name, text, had_profile, is_disabled, expected) in [
        ("a profile", Some(profile), false, false, Some("False")),
        ("no profile any more", None, true, false, None),
        (
            "an invalid one after it",
            Some("a: 1"),
            true,
            false,
            Some("False"),
        ),
        ("an invalid one", Some("a: 1"), false, false, None),
        ("no tuning operator", Some(profile), true, true, None),
    ] {
        let mut facts = fixtures::facts();
        let source = |text: &str| Source {
            name: "a".to_owned(),
            content: Content::Text(text.to_owned()),
        };
        let inputs = &mut facts.tuning_inputs;
        inputs.sources = text.map(source).into_iter().collect();
        inputs.reports = vec![source("conditions: [{type: Available, status: 'False'}]")];
        inputs.written = vec![Written {
            name: "a-workers".to_owned(),
            is_profile: had_profile,
        }];
        if is_disabled {
            let disabled = &mut facts.cluster.spec.capabilities.disabled;
            disabled.push(OptionalCapability::NodeTuning);
        }
        let mut before = Conditions::new(Vec::new(), Some(2), facts.now);
        before.good(about, "");
        let evaluated = evaluated_after(&facts, before.list().to_vec());
        assert_eq!(evaluated.outcome, Ok(()), "{name}");
        let found = find(evaluated.conditions.list(), about).map(|it| it.status.as_str());
        assert_eq!(found, expected, "{name}");
    }
}
