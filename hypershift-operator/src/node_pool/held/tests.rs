//! What refused pools go on with.

use api::hypershift::v1beta1::common::{Taint, TaintEffect};
use api::hypershift::v1beta1::node_pool::{
    Arch, NodePoolAutoScaling, NodePoolPlatform, ReplaceUpgrade, RollingUpdate,
};
use api::hypershift::v1beta1::platform::PlatformType;
use k8s_openapi::ByteString;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::api::DynamicObject;
use serde_json::json;

use super::*;
use crate::node_pool::config::{Content, Source};
use crate::node_pool::facts::Unread;
use crate::node_pool::observed::ObservedCondition;
use crate::node_pool::plan::{Plan, Token};
use crate::node_pool::{fixtures, validate};

fn planned(facts: &Facts) -> Plan {
    let mut conditions = Conditions::new(Vec::new(), Some(3), facts.now);
    let (found, outcome) = validate::validate(facts, &mut conditions);
    assert_eq!(outcome, Ok(()), "{:#?}", conditions.list());
    plan::plan(facts, &found, &conditions, "a-token").unwrap()
}

/// A pool with machines, and its workload as it was applied.
fn running_pool(upgrade: UpgradeType) -> (Facts, Value) {
    let mut facts = fixtures::facts();
    facts.pool.spec.management.upgrade_type = upgrade;
    let plan = planned(&facts);
    let object = plan.machines.unwrap().running.workload.1;
    let mut stored = object.clone();
    stored["spec"]["replicas"] = json!(2);
    let stored: DynamicObject = serde_json::from_value(stored).unwrap();
    facts.workload = Some(Workload::read(&stored));
    let Token::New(token) = plan.token else {
        panic!("there is a token already");
    };
    facts.tokens = vec![token];
    (facts, object)
}

fn refuse(facts: &mut Facts) {
    facts.own.push(Source {
        name: "more".to_owned(),
        content: Content::Missing,
    });
}

/// What a pool that a check refuses goes on with.
fn refused(facts: &Facts) -> Held {
    let mut conditions = Conditions::new(Vec::new(), Some(3), facts.now);
    let (_, outcome) = validate::validate(facts, &mut conditions);
    assert!(outcome.is_err(), "{:#?}", conditions.list());
    held(facts, &conditions).unwrap()
}

#[test]
fn what_machines_are_made_of_stays() {
    for (name, change) in [
        ("configuration", refuse as fn(&mut Facts)),
        ("release", |it| {
            it.release = Err(Unread {
                reason: "InvalidImage".to_owned(),
                message: "it is not there".to_owned(),
                retry_after: None,
            });
        }),
        ("release ahead of the cluster", |it| {
            it.release = Ok(std::sync::Arc::new(fixtures::release("4.22.1")));
        }),
        ("architecture", |it| it.pool.spec.arch = Arch::S390x),
        ("boot image", |it| {
            let aws = it.cluster.spec.platform.aws.as_mut().unwrap();
            aws.region = "eu-north-9".to_owned();
        }),
        ("ignition endpoint", |it| {
            it.cluster.status.as_mut().unwrap().ignition_endpoint = None;
        }),
        ("autoscaling", |it| {
            it.pool.spec.auto_scaling = Some(NodePoolAutoScaling { min: 1, max: 9 });
        }),
    ] {
        for upgrade in [UpgradeType::Replace, UpgradeType::InPlace] {
            let (mut facts, before) = running_pool(upgrade);
            change(&mut facts);
            // Each of these alone would make new machines.
            facts.cluster.spec.pull_secret.name = "other".to_owned();
            let aws = facts.pool.spec.platform.aws.as_mut().unwrap();
            aws.instance_type = "m5.xlarge".to_owned();
            let machines = refused(&facts).machines.unwrap();
            assert_eq!(machines.workload.1, before, "{name}, {upgrade:?}");
        }
    }
}

#[test]
fn number_labels_taints_and_repair_follow_the_specification() {
    let (mut facts, before) = running_pool(UpgradeType::Replace);
    refuse(&mut facts);
    let spec = &mut facts.pool.spec;
    spec.replicas = Some(5);
    spec.node_labels.insert("zone".to_owned(), "a".to_owned());
    spec.taints.push(Taint {
        key: "dedicated".to_owned(),
        value: None,
        effect: TaintEffect::NoSchedule,
    });
    spec.management.auto_repair = true;
    facts.remediation = Some(ObservedCondition::default());
    facts.machines = vec![fixtures::machine("a")];
    let machines = refused(&facts).machines.unwrap();
    assert_eq!(machines.replicas, Some(5));
    assert_eq!(machines.health_checks.len(), 1);
    assert_eq!(machines.obsolete_health_checks, ["workers-spot"]);
    let [(kind, name, patch)] = &*machines.patches else {
        panic!("{:?}", machines.patches);
    };
    assert_eq!((kind.kind.as_str(), name.as_str()), ("Machine", "a"));
    let labels = &patch["metadata"]["labels"];
    assert_eq!(labels["managed.hypershift.openshift.io.zone"], "a");
    assert_eq!(machines.workload.1, before);

    let spec = &mut facts.pool.spec;
    spec.replicas = None;
    spec.auto_scaling = Some(NodePoolAutoScaling { min: 3, max: 9 });
    let machines = refused(&facts).machines.unwrap();
    assert_eq!(machines.replicas, Some(3));
    let annotations = &machines.workload.1["metadata"]["annotations"];
    let max = "cluster.x-k8s.io/cluster-api-autoscaler-node-group-max-size";
    assert_eq!(annotations[max], "9");
}

/// The setting itself is refused, so it stays as it is.
#[test]
fn refused_settings_of_the_workload_stay() {
    let (mut facts, before) = running_pool(UpgradeType::Replace);
    facts.pool.spec.auto_scaling = Some(NodePoolAutoScaling { min: 3, max: 9 });
    let machines = refused(&facts).machines.unwrap();
    assert_eq!((machines.replicas, machines.workload.1), (None, before));

    let (mut facts, before) = running_pool(UpgradeType::Replace);
    let update = RollingUpdate {
        max_surge: Some(IntOrString::Int(0)),
        max_unavailable: Some(IntOrString::Int(0)),
    };
    facts.pool.spec.management.replace = Some(ReplaceUpgrade {
        rolling_update: Some(update),
        ..ReplaceUpgrade::default()
    });
    facts.pool.spec.replicas = Some(5);
    let machines = refused(&facts).machines.unwrap();
    assert_eq!((machines.replicas, machines.workload.1), (Some(5), before));
}

#[test]
fn spot_machines_stay_spot_machines() {
    let (mut facts, _) = running_pool(UpgradeType::Replace);
    refuse(&mut facts);
    let live = facts.workload.as_mut().unwrap();
    live.spec["template"]["metadata"]["labels"][INTERRUPTIBLE_LABEL] = json!("");
    let machines = refused(&facts).machines.unwrap();
    let labels = &machines.workload.1["spec"]["template"]["metadata"]["labels"];
    assert_eq!(labels[INTERRUPTIBLE_LABEL], "");
    assert_eq!(machines.obsolete_health_checks, ["workers"]);
}

/// Machines that are added later have to be able to fetch their configuration.
#[test]
fn user_data_follows_the_token() {
    let (mut facts, _) = running_pool(UpgradeType::Replace);
    refuse(&mut facts);
    let data = facts.tokens[0].data.as_mut().unwrap();
    data.insert("token".to_owned(), ByteString(b"renewed".to_vec()));
    let before = facts.workload.as_ref().unwrap().user_data.clone();
    let user_data = refused(&facts).user_data.unwrap();
    assert_eq!(user_data.metadata.name, Some(before));
    let value = &user_data.data.as_ref().unwrap()["value"].0;
    // The token in base64.
    assert!(String::from_utf8_lossy(value).contains("Bearer cmVuZXdlZA=="));

    facts.tokens.clear();
    assert!(refused(&facts).user_data.is_none());
}

#[test]
fn a_pool_without_machines_has_nothing_to_go_on_with() {
    let (mut facts, _) = running_pool(UpgradeType::Replace);
    let conditions = Conditions::new(Vec::new(), Some(3), facts.now);
    assert!(held(&facts, &conditions).is_some());
    facts.workload.as_mut().unwrap().is_deleting = true;
    assert!(held(&facts, &conditions).is_none());
    facts.workload = None;
    assert!(held(&facts, &conditions).is_none());
}

/// Users have started the machines with it, and may start more.
#[test]
fn user_data_of_other_platforms_follows_the_token() {
    let mut facts = fixtures::facts();
    let none = json!({ "type": PlatformType::None });
    facts.pool.spec.platform = serde_json::from_value::<NodePoolPlatform>(none).unwrap();
    let plan = planned(&facts);
    let Token::New(token) = plan.token else {
        panic!("there is a token already");
    };
    facts.tokens = vec![token];
    let annotations = facts.pool.metadata.annotations.get_or_insert_default();
    annotations.insert(CURRENT_CONFIG_VERSION.key().to_owned(), plan.hash);
    refuse(&mut facts);
    let held = refused(&facts);
    assert!(held.machines.is_none());
    let name = held.user_data.unwrap().metadata.name;
    assert_eq!(name, plan.user_data.metadata.name);
}
