//! Pools whose machines another operator, or another version of this one, has made.

use api::annotations::node_pool::{
    HAPROXY_IMAGE, PLATFORM_MACHINE_TEMPLATE, TARGET_CONFIG_VERSION, TEMPLATE_HASH,
};
use api::conditions::{PoolCondition, Status, status};
use api::hypershift::v1beta1::common::AwsResourceTag;
use api::hypershift::v1beta1::node_pool::UpgradeType;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::LocalObjectReference;
use serde_json::{Value, json};

mod proxied;
mod stream;
mod tls;
mod written;

use super::*;
use crate::node_pool::conditions::Conditions;
use crate::node_pool::config::{Content, Source};
use crate::node_pool::observed;
use crate::node_pool::plan::{self, Plan, Token};
use crate::node_pool::{fixtures, validate};
use written::{LIMITS, configuration, load_balancer, machine, token};

/// Names that another operator has chosen.
const HASH: &str = "1a2b3c4d";
const TEMPLATE: &str = "workers-5e6f7a8b";

/// A pool that another operator has reconciled.
fn facts() -> Facts {
    let mut facts = fixtures::facts();
    annotate(&mut facts, CURRENT_CONFIG.key(), "0f0f0f0f");
    annotate(&mut facts, CURRENT_CONFIG_VERSION.key(), HASH);
    annotate(&mut facts, PLATFORM_MACHINE_TEMPLATE.key(), TEMPLATE);
    facts.pool.status = serde_json::from_value(json!({ "version": "4.22.0" })).unwrap();
    facts.own = vec![source(LIMITS)];
    facts.tokens = vec![token(HASH, &configuration())];
    facts.user_data = vec![format!("user-data-workers-{HASH}")];
    facts.workload = Some(Workload {
        annotations: [(NODE_POOL.key().to_owned(), "clusters/workers".to_owned())].into(),
        user_data: format!("user-data-workers-{HASH}"),
        template: TEMPLATE.to_owned(),
        ..fixtures::workload(2)
    });
    facts.templates = vec![observed::Template {
        name: TEMPLATE.to_owned(),
        spec: machine(),
        ..observed::Template::default()
    }];
    facts
}

fn source(text: &str) -> Source {
    Source {
        name: "limits".to_owned(),
        content: Content::Text(text.to_owned()),
    }
}

fn annotate(facts: &mut Facts, key: &str, value: &str) {
    let annotations = facts.pool.metadata.annotations.get_or_insert_default();
    annotations.insert(key.to_owned(), value.to_owned());
}

fn planned(facts: &Facts) -> (Plan, Conditions) {
    let mut conditions = Conditions::new(Vec::new(), Some(3), facts.now);
    let (found, outcome) = validate::validate(facts, &mut conditions);
    assert_eq!(outcome, Ok(()), "{:#?}", conditions.list());
    let plan = plan::plan(facts, &found, &conditions, "another-token").unwrap();
    (plan, conditions)
}

/// Whether the machines keep their configuration, and their template.
fn kept(facts: &Facts) -> (bool, bool) {
    let (plan, _) = planned(facts);
    let machines = plan.machines.as_ref().unwrap();
    let spec = &machines.running.workload.1["spec"]["template"]["spec"];
    let user_data = format!("user-data-workers-{}", plan.hash);
    assert_eq!(spec["bootstrap"]["dataSecretName"], user_data);
    assert_eq!(spec["infrastructureRef"]["name"], machines.template.1.name);
    assert_eq!(matches!(plan.token, Token::Known(_)), plan.hash == HASH);
    (plan.hash == HASH, machines.template.1.name == TEMPLATE)
}

fn first(facts: &mut Facts) -> &mut Secret {
    facts.tokens.first_mut().unwrap()
}

fn annotate_token(facts: &mut Facts, key: &str, value: &str) {
    let annotations = first(facts).metadata.annotations.as_mut().unwrap();
    annotations.insert(key.to_owned(), value.to_owned());
}

fn workload_of(facts: &mut Facts) -> &mut Workload {
    facts.workload.as_mut().unwrap()
}

fn name_bundle(facts: &mut Facts) {
    facts.trust_bundle = Some("PEM".to_owned());
    let name = "bundle".to_owned();
    facts.cluster.spec.additional_trust_bundle = Some(LocalObjectReference { name });
}

fn tag(facts: &mut Facts) {
    let tag = AwsResourceTag {
        key: "cost".to_owned(),
        value: "1".to_owned(),
    };
    let aws = facts.pool.spec.platform.aws.as_mut().unwrap();
    aws.resource_tags.push(tag);
}

/// Check O07.
#[test]
fn machines_of_another_operator_are_kept_while_nothing_changes() {
    let upgrade = |facts: &mut Facts| {
        facts.release = Ok(std::sync::Arc::new(fixtures::release("4.22.1")));
        facts.cluster_version = "4.22.1".parse().ok();
    };
    let encrypt = |facts: &mut Facts| {
        let volume = json!({ "size": 16, "type": "gp3", "encrypted": true });
        let aws = facts.pool.spec.platform.aws.as_mut().unwrap();
        aws.root_volume = serde_json::from_value(volume).unwrap();
    };
    let move_api = |facts: &mut Facts| {
        let status = facts.cluster.status.as_mut().unwrap();
        status.control_plane_endpoint.as_mut().unwrap().host = "192.0.2.7".to_owned();
    };
    let break_token = |facts: &mut Facts| {
        let data = first(facts).data.as_mut().unwrap();
        data.insert("config".to_owned(), ByteString(vec![0xff]));
    };
    let forget_release = |facts: &mut Facts| {
        drop(
            first(facts)
                .data
                .as_mut()
                .unwrap()
                .remove("release-version"),
        );
    };
    for (name, change, expected) in [
        ("nothing", (|_| {}) as fn(&mut Facts), (true, true)),
        ("number", |it| it.pool.spec.replicas = Some(9), (true, true)),
        ("tags", tag, (true, true)),
        // Its content is no part of any name.
        (
            "pull secret",
            |it| it.pull_secret = b"[]".to_vec(),
            (true, true),
        ),
        // What the machines have to get.
        ("release", upgrade, (false, true)),
        (
            "manifest",
            |it| it.own = vec![source(&LIMITS.replace("nosmt", "quiet"))],
            (false, true),
        ),
        ("no manifest", |it| it.own = Vec::new(), (false, true)),
        (
            "FIPS mode",
            |it| it.cluster.spec.fips = Some(true),
            (false, true),
        ),
        (
            "SSH key",
            |it| it.ssh_key = Some("ssh-ed25519 A".to_owned()),
            (false, true),
        ),
        ("address of the API server", move_api, (false, true)),
        (
            "image of the load balancer",
            |it| annotate(it, HAPROXY_IMAGE.key(), "images.example.com/haproxy:2"),
            (false, true),
        ),
        ("a trust bundle", name_bundle, (false, true)),
        (
            "instance type",
            |it| it.pool.spec.platform.aws.as_mut().unwrap().instance_type = "m5.xlarge".to_owned(),
            (true, false),
        ),
        ("encrypted disks", encrypt, (true, false)),
        // Without proof that the machines have it.
        ("no token", |it| it.tokens.clear(), (false, true)),
        ("an unreadable token", break_token, (false, true)),
        ("a token without a release", forget_release, (false, true)),
        (
            "a token of another pool",
            |it| annotate_token(it, NODE_POOL.key(), "clusters/others"),
            (false, true),
        ),
        (
            "a token that expires",
            |it| annotate_token(it, TOKEN_EXPIRATION.key(), "2026-11-22T01:00:00Z"),
            (false, true),
        ),
        (
            "another stream",
            |it| {
                let data = first(it).data.as_mut().unwrap();
                data.insert("os-stream".to_owned(), ByteString(b"rhel-10".to_vec()));
            },
            (false, true),
        ),
        (
            "no template of the pool",
            |it| it.templates.clear(),
            (true, false),
        ),
        (
            "machines of another pool",
            |it| {
                let annotations = &mut workload_of(it).annotations;
                annotations.insert(NODE_POOL.key().to_owned(), "clusters/others".to_owned());
            },
            (false, false),
        ),
        // Annotations of the pool, which its author writes, prove nothing.
        (
            "machines with another configuration",
            |it| workload_of(it).user_data = "user-data-workers-00000000".to_owned(),
            (false, true),
        ),
        (
            "machines of another template",
            |it| workload_of(it).template = "workers-00000000".to_owned(),
            (true, false),
        ),
        (
            "other annotations",
            |it| {
                annotate(it, CURRENT_CONFIG_VERSION.key(), "00000000");
                annotate(it, PLATFORM_MACHINE_TEMPLATE.key(), "workers-00000000");
            },
            (true, true),
        ),
    ] {
        let mut facts = facts();
        change(&mut facts);
        assert_eq!(kept(&facts), expected, "{name}");
    }
}

#[test]
fn kept_machines_are_not_reported_as_updating() {
    let facts = facts();
    let (plan, conditions) = planned(&facts);
    for about in [
        PoolCondition::UpdatingConfig,
        PoolCondition::UpdatingVersion,
        PoolCondition::UpdatingPlatformMachineTemplate,
    ] {
        let status = status(conditions.list(), about);
        assert_eq!(status, Status::False, "{about:?}");
    }
    assert!(plan.outdated_tokens.is_empty());
    assert!(plan.outdated_user_data.is_empty());
    assert!(plan.machines.unwrap().outdated_templates.is_empty());
}

/// What the other operator wrote stays, because machines have it.
#[test]
fn kept_objects_are_not_rewritten() {
    let mut facts = facts();
    tag(&mut facts);
    let (plan, _) = planned(&facts);
    let Token::Known(secret) = &plan.token else {
        panic!("{:?}", plan.token);
    };
    assert_eq!(secrets::config(secret), Some(configuration()));
    let mut expected = machine();
    expected["additionalTags"]["cost"] = json!("1");
    let template = &plan.machines.unwrap().template.1.object;
    assert_eq!(template["spec"]["template"]["spec"], expected);
}

/// What the first reconcile has written to the Secret and to the template.
fn recorded(facts: &mut Facts) {
    let (plan, _) = planned(facts);
    let Token::Known(written) = plan.token else {
        panic!("{:?}", plan.token);
    };
    let secret = first(facts);
    let annotations = secret.metadata.annotations.get_or_insert_default();
    annotations.extend(written.metadata.annotations.unwrap_or_default());
    let data = secret.data.get_or_insert_default();
    data.extend(written.data.unwrap_or_default());
    let object = plan.machines.unwrap().template.1.object;
    let hash = object["metadata"]["annotations"][TEMPLATE_HASH.key()].as_str();
    facts.templates = vec![observed::Template {
        name: TEMPLATE.to_owned(),
        spec: object["spec"]["template"]["spec"].clone(),
        hash: hash.map(str::to_owned),
        ..observed::Template::default()
    }];
}

/// Check O07: after the first reconcile, everything that the hash covers is known.
#[test]
fn later_changes_replace_machines_of_another_operator() {
    let proxy = |facts: &mut Facts| {
        let proxy = json!({ "proxy": { "httpProxy": "http://proxy.example.com:3128" } });
        facts.cluster.spec.configuration = serde_json::from_value(proxy).unwrap();
    };
    for (name, change, expected) in [
        ("nothing", (|_| {}) as fn(&mut Facts), (true, true)),
        ("tags", tag, (true, true)),
        (
            "pull secret",
            |it| it.cluster.spec.pull_secret.name = "other".to_owned(),
            (false, true),
        ),
        ("trust bundle", name_bundle, (false, true)),
        ("proxy", proxy, (false, true)),
        (
            "manifest",
            |it| it.own = vec![source(&LIMITS.replace("nosmt", "quiet"))],
            (false, true),
        ),
        (
            "comment",
            |it| it.own = vec![source(&LIMITS.replace("databases", "queues"))],
            (true, true),
        ),
        (
            "instance type",
            |it| it.pool.spec.platform.aws.as_mut().unwrap().instance_type = "m5.xlarge".to_owned(),
            (true, false),
        ),
    ] {
        let mut facts = facts();
        recorded(&mut facts);
        change(&mut facts);
        assert_eq!(kept(&facts), expected, "{name}");
    }
}

/// Servers add fields to virtual machines that no user has set.
#[test]
fn virtual_machines_of_another_operator_are_kept() {
    let kubevirt = |cores: i32| {
        let root = json!({ "persistent": { "size": "64Gi" } });
        let kubevirt = json!({ "rootVolume": root, "compute": { "cores": cores } });
        let platform = json!({ "type": "KubeVirt", "kubevirt": kubevirt });
        serde_json::from_value(platform).unwrap()
    };
    let mut facts = facts();
    facts.pool.spec.platform = kubevirt(4);
    let template = planned(&facts).0.machines.unwrap().template.1;
    assert_ne!(template.name, TEMPLATE);
    let mut spec = template.object["spec"]["template"]["spec"].clone();
    let machine = &mut spec["virtualMachineTemplate"]["spec"]["template"];
    machine["metadata"]["creationTimestamp"] = Value::Null;
    machine["spec"]["domain"]["resources"] = json!({});
    facts.templates = vec![observed::Template {
        name: TEMPLATE.to_owned(),
        spec,
        ..observed::Template::default()
    }];
    assert_eq!(kept(&facts), (true, true));
    facts.pool.spec.platform = kubevirt(8);
    assert_eq!(kept(&facts), (true, false));
}

#[test]
fn nodes_of_another_operator_are_not_upgraded_in_place() {
    let mut facts = facts();
    facts.pool.spec.management.upgrade_type = UpgradeType::InPlace;
    assert_eq!(kept(&facts), (true, true));
    let object = planned(&facts).0.machines.unwrap().running.workload.1;
    let annotations = &object["metadata"]["annotations"];
    assert_eq!(annotations[TARGET_CONFIG_VERSION.key()], HASH);
}

/// Another controller has the machines, so there is only the annotation. It must name the desired configuration.
#[test]
fn user_data_of_machines_elsewhere_keeps_its_name() {
    for (name, own, expected) in [
        ("nothing", LIMITS.to_owned(), true),
        ("manifest", LIMITS.replace("nosmt", "quiet"), false),
    ] {
        let mut facts = facts();
        facts.pool.spec.platform = serde_json::from_value(json!({ "type": "None" })).unwrap();
        facts.workload = None;
        facts.own = vec![source(&own)];
        let (plan, _) = planned(&facts);
        assert_eq!(plan.hash == HASH, expected, "{name}");
    }
}

/// Check O07.
#[test]
fn hashes_are_stable_across_restarts_and_versions_of_the_operator() {
    let mut new = fixtures::facts();
    new.own = vec![source(LIMITS)];
    let mut conditions = Conditions::new(Vec::new(), Some(3), new.now);
    let (found, _) = validate::validate(&new, &mut conditions);
    let config = found.config.unwrap();
    let inputs = config.fingerprint(&Context::of(&new.cluster, &"4.22.0".parse().unwrap()));
    let own = found.hashes.unwrap().with_version;
    let documents: Vec<_> = config.raw.split("\n---\n").collect();
    let join = |documents: Vec<String>| documents.join("\n---\n");
    let reversed = documents.iter().rev().map(|it| (*it).to_owned());
    let spread = documents.iter().map(|it| {
        let value: Value = serde_json::from_str(it).unwrap();
        serde_saphyr::to_string(&value).unwrap()
    });
    let balanced = documents.iter().map(|it| {
        if it.contains("20-apiserver-haproxy") {
            return load_balancer();
        }
        (*it).to_owned()
    });
    let older = "0a0a0a0a";
    for (name, hash, text, inputs, expected) in [
        ("a restart", &*own, config.raw.clone(), Some(&*inputs), true),
        (
            "another serializer",
            older,
            join(spread.collect()),
            Some(&*inputs),
            true,
        ),
        (
            "another order",
            older,
            join(reversed.collect()),
            Some(&*inputs),
            true,
        ),
        (
            "another load balancer",
            older,
            join(balanced.collect()),
            Some(&*inputs),
            true,
        ),
        (
            "a version that records nothing",
            older,
            config.raw.clone(),
            None,
            true,
        ),
        (
            "other settings",
            older,
            config.raw.clone(),
            Some("00000000"),
            false,
        ),
        (
            "another manifest",
            older,
            config.raw.replace("nosmt", "quiet"),
            Some(&*inputs),
            false,
        ),
    ] {
        let mut facts = new.clone();
        facts.now = "2027-02-03T04:05:06Z".parse().unwrap();
        facts.tokens = vec![token(hash, &text)];
        if let Some(inputs) = inputs {
            annotate_token(&mut facts, CONFIG_INPUTS.key(), inputs);
        }
        facts.workload = Some(Workload {
            user_data: format!("user-data-workers-{hash}"),
            ..fixtures::workload(2)
        });
        let (plan, _) = planned(&facts);
        assert_eq!(plan.hash == hash, expected, "{name}");
        assert!(expected || plan.hash == own, "{name}");
    }
}
