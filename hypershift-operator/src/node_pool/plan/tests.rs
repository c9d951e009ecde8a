//! Plans of pools: golden files for each platform and types, and what changes them.

use api::annotations::node_pool::{
    CURRENT_CONFIG_VERSION, ENABLE_SPOT, PLATFORM_MACHINE_TEMPLATE, TOKEN_EXPIRATION,
};
use api::group::CapiTypes;
use api::hypershift::v1beta1::common::{AwsResourceTag, Duration, Taint, TaintEffect};
use api::hypershift::v1beta1::node_pool::{NodePoolPlatform, UpgradeType};
use api::hypershift::v1beta1::platform::PlatformType;
use k8s_openapi::ByteString;

use super::*;
use crate::node_pool::config::{Content, Source};
use crate::node_pool::observed::{ObservedCondition, PlatformMachine, Workload};
use crate::node_pool::tuning::Written;
use crate::node_pool::{fixtures, validate};

fn planned(facts: &Facts) -> Plan {
    let mut conditions = Conditions::new(Vec::new(), Some(3), facts.now);
    let (found, outcome) = validate::validate(facts, &mut conditions);
    assert_eq!(outcome, Ok(()), "{:#?}", conditions.list());
    plan(facts, &found, &conditions, "a-token").unwrap()
}

fn machines(facts: &Facts) -> Machines {
    planned(facts).machines.unwrap()
}

/// Compares with a golden file; `UPDATE_GOLDEN=1` writes it.
fn golden(name: &str, objects: &[(&ApiResource, &Value)]) {
    let objects = objects.iter().map(|(kind, object)| {
        let mut object = (*object).clone();
        object["apiVersion"] = json!(kind.api_version);
        object["kind"] = json!(kind.kind);
        let sorted: Value = serde_json::from_str(&crate::canonical::text(&object)).unwrap();
        serde_saphyr::to_string(&sorted).unwrap()
    });
    let text = objects.collect::<Vec<_>>().join("---\n");
    let path = format!(
        "{}/tests/golden/node-pool/{name}.yaml",
        env!("CARGO_MANIFEST_DIR")
    );
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::create_dir_all(std::path::Path::new(&path).parent().unwrap()).unwrap();
        std::fs::write(&path, &text).unwrap();
    }
    let golden = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(text, golden, "{path} differs: UPDATE_GOLDEN=1 rewrites it");
}

fn render(name: &str, facts: &Facts) {
    let machines = machines(facts);
    let check = facts.capi().machine_health_check();
    let mut objects = vec![
        (&machines.template.0, &machines.template.1.object),
        (&machines.running.workload.0, &machines.running.workload.1),
    ];
    objects.extend(machines.running.health_checks.iter().map(|it| (&check, it)));
    golden(name, &objects);
}

fn platform(facts: &mut Facts, type_: PlatformType, field: &str, value: &Value) {
    let platform = json!({ "type": type_, field: value });
    facts.pool.spec.platform = serde_json::from_value::<NodePoolPlatform>(platform).unwrap();
}

/// A pool with all settings of all platforms.
fn rich() -> Facts {
    let mut facts = fixtures::facts();
    let spec = &mut facts.pool.spec;
    spec.node_labels
        .insert("example.com/zone".to_owned(), "a".to_owned());
    spec.taints.push(Taint {
        key: "dedicated".to_owned(),
        value: Some("team".to_owned()),
        effect: TaintEffect::NoSchedule,
    });
    spec.node_drain_timeout = Some(Duration("30m".to_owned()));
    spec.node_volume_detach_timeout = Some(Duration("90s".to_owned()));
    facts
}

/// Virtual machines with all settings.
fn rich_kubevirt() -> Value {
    json!({
        "rootVolume": {
            "persistent": { "size": "64Gi", "storageClass": "fast", "accessModes": ["ReadWriteMany"], "volumeMode": "Block" },
            "diskImage": { "containerDiskImage": "images.example.com/disk:1" },
        },
        "compute": { "cores": 4, "memory": "16Gi", "qosClass": "Guaranteed" },
        "networkInterfaceMultiqueue": "Disable",
        "attachDefaultNetwork": false,
        "additionalNetworks": [{ "name": "networks/storage" }],
        "nodeSelector": { "disk": "fast" },
        "hostDevices": [{ "deviceName": "example.com/gpu", "count": 2 }],
    })
}

#[test]
fn aws_pools_are_rendered_for_both_types() {
    let mut facts = rich();
    render("aws-replace-private", &facts);
    facts.types = CapiTypes::Standard;
    render("aws-replace-standard", &facts);
    facts.pool.spec.management.upgrade_type = UpgradeType::InPlace;
    render("aws-in-place-standard", &facts);
    facts.types = CapiTypes::Private;
    render("aws-in-place-private", &facts);
}

#[test]
fn aws_machines_have_all_requested_settings() {
    let mut facts = fixtures::facts();
    let aws = json!({
        "instanceType": "m6i.xlarge",
        "instanceProfile": "profile",
        "ami": "ami-own",
        "subnet": { "filters": [{ "name": "tag:Name", "values": ["private"] }] },
        "securityGroups": [{ "id": "sg-1" }],
        "rootVolume": { "size": 120, "type": "io1", "iops": 3000, "encrypted": true, "encryptionKey": "key" },
        "resourceTags": [{ "key": "team", "value": "b" }, { "key": "cost", "value": "1" }],
        "placement": { "marketType": "Spot", "tenancy": "default", "spot": { "maxPrice": "0.05" } },
    });
    platform(&mut facts, PlatformType::Aws, "aws", &aws);
    render("aws-spot", &facts);
    let reserved = json!({ "capacityReservation": { "id": "cr-0123456789abcdef0", "marketType": "CapacityBlocks" } });
    let aws = json!({ "instanceType": "p5.48xlarge", "subnet": { "id": "subnet-1" }, "placement": reserved });
    platform(&mut facts, PlatformType::Aws, "aws", &aws);
    render("aws-reserved", &facts);
}

#[test]
fn other_platforms_are_rendered() {
    let mut facts = rich();
    let selector = json!({ "agentLabelSelector": { "matchLabels": { "size": "large" } } });
    platform(&mut facts, PlatformType::Agent, "agent", &selector);
    render("agent", &facts);
    platform(
        &mut facts,
        PlatformType::KubeVirt,
        "kubevirt",
        &json!({ "rootVolume": {} }),
    );
    render("kubevirt", &facts);
    platform(
        &mut facts,
        PlatformType::KubeVirt,
        "kubevirt",
        &rich_kubevirt(),
    );
    render("kubevirt-rich", &facts);
    let azure = json!({
        "vmSize": "Standard_D4s_v5",
        "image": { "type": "ImageID", "imageID": "/images/1" },
        "osDisk": { "persistence": "Ephemeral" },
        "subnetID": "/subscriptions/s/resourceGroups/g/providers/Microsoft.Network/virtualNetworks/n/subnets/workers",
    });
    platform(&mut facts, PlatformType::Azure, "azure", &azure);
    render("azure", &facts);
}

/// Check O07: virtual machines whose interfaces an earlier version named are kept until their template changes.
#[test]
fn interfaces_keep_the_names_that_an_earlier_version_gave_them() {
    // What the earlier version made of the same pool.
    let earlier = "workers-94eac3eb";
    for (name, current, cores, expected) in [
        ("a new pool", None, 4, "iface1_networks-storage"),
        (
            "earlier machines",
            Some(earlier),
            4,
            "iface1_networks_storage",
        ),
        (
            "earlier machines, changed",
            Some(earlier),
            8,
            "iface1_networks-storage",
        ),
        (
            "newer machines",
            Some("workers-0a1b2c3d"),
            4,
            "iface1_networks-storage",
        ),
    ] {
        let mut facts = rich();
        let mut kubevirt = rich_kubevirt();
        kubevirt["compute"]["cores"] = json!(cores);
        platform(&mut facts, PlatformType::KubeVirt, "kubevirt", &kubevirt);
        if let Some(current) = current {
            let annotations = facts.pool.metadata.annotations.get_or_insert_default();
            annotations.insert(
                PLATFORM_MACHINE_TEMPLATE.key().to_owned(),
                current.to_owned(),
            );
        }
        let template = machines(&facts).template.1;
        let machine = "/spec/template/spec/virtualMachineTemplate/spec/template/spec";
        for place in ["domain/devices/interfaces", "networks"] {
            let found = template
                .object
                .pointer(&format!("{machine}/{place}/0/name"));
            assert_eq!(found, Some(&json!(expected)), "{name}: {place}");
        }
        let is_kept = current == Some(template.name.as_str());
        assert_eq!(is_kept, expected.contains("networks_"), "{name}");
    }
}

#[test]
fn platforms_without_machines_get_user_data_only() {
    let mut facts = fixtures::facts();
    platform(&mut facts, PlatformType::None, "aws", &Value::Null);
    let plan = planned(&facts);
    assert!(plan.machines.is_none());
    assert!(
        plan.user_data
            .metadata
            .name
            .unwrap()
            .starts_with("user-data-workers-")
    );
}

#[test]
fn health_checks_start_after_the_first_ready_machine() {
    let mut facts = fixtures::facts();
    facts.pool.spec.management.auto_repair = true;
    let all = machines(&facts);
    assert!(all.running.health_checks.is_empty());
    assert_eq!(
        all.running.obsolete_health_checks,
        ["workers", "workers-spot"]
    );
    let plan = planned(&facts);
    let Token::New(mut secret) = plan.token else {
        panic!("{:?}", plan.token);
    };
    let reached = api::annotations::node_pool::IGNITION_REACHED.key();
    secret
        .metadata
        .annotations
        .as_mut()
        .unwrap()
        .insert(reached.to_owned(), "True".to_owned());
    facts.tokens = vec![secret];
    let annotations = facts.cluster.metadata.annotations.get_or_insert_default();
    annotations.insert(
        "hypershift.openshift.io/machine-health-check-timeout".to_owned(),
        "10m".to_owned(),
    );
    let annotations = facts.pool.metadata.annotations.get_or_insert_default();
    annotations.insert(
        "hypershift.openshift.io/machine-health-check-max-unhealthy".to_owned(),
        "40%".to_owned(),
    );
    render("aws-repaired", &facts);
    facts
        .pool
        .metadata
        .annotations
        .as_mut()
        .unwrap()
        .insert(ENABLE_SPOT.key().to_owned(), String::new());
    assert_eq!(machines(&facts).running.health_checks.len(), 2);
}

/// A rollout does not end the repair: its configuration has not been fetched yet, and machines of the one before may fail.
#[test]
fn health_checks_stay_until_repair_is_disabled() {
    for (auto_repair, exists, expected) in [
        (true, false, false),
        (true, true, true),
        (false, false, false),
        (false, true, false),
    ] {
        let mut facts = fixtures::facts();
        facts.pool.spec.management.auto_repair = auto_repair;
        facts.remediation = exists.then(ObservedCondition::default);
        let all = machines(&facts);
        let name = format!("{auto_repair} {exists}");
        assert_eq!(
            all.running.health_checks.len(),
            usize::from(expected),
            "{name}"
        );
        let is_obsolete = all
            .running
            .obsolete_health_checks
            .contains(&"workers".to_owned());
        assert_eq!(is_obsolete, !expected, "{name}");
    }
}

/// What replaces machines, and what does not.
/// Check O07.
#[test]
fn machines_are_replaced_only_when_their_inputs_change() {
    let names = |facts: &Facts| {
        let plan = planned(facts);
        (plan.hash.clone(), plan.machines.unwrap().template.1.name)
    };
    let before = names(&fixtures::facts());
    let changed = |change: fn(&mut Facts)| {
        let mut facts = fixtures::facts();
        change(&mut facts);
        let after = names(&facts);
        (before.0 != after.0, before.1 != after.1)
    };
    let tag = |facts: &mut Facts| {
        let tag = AwsResourceTag {
            key: "cost".to_owned(),
            value: "1".to_owned(),
        };
        facts
            .pool
            .spec
            .platform
            .aws
            .as_mut()
            .unwrap()
            .resource_tags
            .push(tag);
    };
    for (name, change, expected) in [
        ("nothing", (|_| {}) as fn(&mut Facts), (false, false)),
        (
            "number",
            |it| it.pool.spec.replicas = Some(9),
            (false, false),
        ),
        (
            "labels",
            |it| {
                drop(
                    it.pool
                        .spec
                        .node_labels
                        .insert("a".to_owned(), "b".to_owned()),
                )
            },
            (false, false),
        ),
        (
            "drain",
            |it| it.pool.spec.node_drain_timeout = Some(Duration("1m".to_owned())),
            (false, false),
        ),
        ("tags", tag, (false, false)),
        (
            "pull secret's content",
            |it| it.pull_secret = b"{\"auths\":{}}".to_vec(),
            (false, false),
        ),
        (
            "authority of ignition",
            |it| it.ignition_ca = Some(b"other".to_vec()),
            (false, false),
        ),
        (
            "pull secret",
            |it| it.cluster.spec.pull_secret.name = "other".to_owned(),
            (true, false),
        ),
        (
            "SSH key",
            |it| it.ssh_key = Some("ssh-ed25519 A".to_owned()),
            (true, false),
        ),
        (
            "release",
            |it| it.release = Ok(std::sync::Arc::new(fixtures::release("4.21.0"))),
            (true, false),
        ),
        (
            "instance type",
            |it| it.pool.spec.platform.aws.as_mut().unwrap().instance_type = "m5.xlarge".to_owned(),
            (false, true),
        ),
    ] {
        assert_eq!(changed(change), expected, "{name}");
    }
}

#[test]
fn user_data_has_the_current_token() {
    let mut facts = fixtures::facts();
    let plan = planned(&facts);
    let Token::New(mut secret) = plan.token else {
        panic!("{:?}", plan.token);
    };
    secret
        .data
        .as_mut()
        .unwrap()
        .insert("token".to_owned(), ByteString(b"renewed".to_vec()));
    facts.tokens = vec![secret];
    let plan = planned(&facts);
    assert!(matches!(plan.token, Token::Known(_)));
    let value = &plan.user_data.data.as_ref().unwrap()["value"].0;
    // The token in base64.
    assert!(String::from_utf8_lossy(value).contains("Bearer cmVuZXdlZA=="));
}

#[test]
fn outdated_objects_are_deleted_when_unused() {
    let mut facts = fixtures::facts();
    let desired = planned(&facts);
    let mut old = Secret::default();
    old.metadata.name = Some("token-workers-old".to_owned());
    facts.tokens = vec![old.clone()];
    let current = desired.user_data.metadata.name.clone().unwrap();
    facts.user_data = vec![
        current,
        "user-data-workers-old".to_owned(),
        "user-data-workers-older".to_owned(),
    ];
    facts.templates = ["workers-old", "workers-older"].map(template).into();
    facts.machine_sets = vec![
        Workload {
            user_data: "user-data-workers-old".to_owned(),
            template: "workers-old".to_owned(),
            ..fixtures::workload(1)
        },
        Workload {
            user_data: "user-data-workers-older".to_owned(),
            ..fixtures::workload(0)
        },
    ];
    let plan = planned(&facts);
    assert_eq!(plan.outdated_user_data, ["user-data-workers-older"]);
    assert_eq!(plan.machines.unwrap().outdated_templates, ["workers-older"]);
    let [(_, Outdated::Expire(_))] = &*plan.outdated_tokens else {
        panic!("{:?}", plan.outdated_tokens.len());
    };
    let annotations = [(
        TOKEN_EXPIRATION.key().to_owned(),
        "2026-11-22T01:00:00Z".to_owned(),
    )];
    old.metadata.annotations = Some(annotations.into());
    facts.tokens = vec![old];
    assert!(planned(&facts).outdated_tokens.is_empty());
}

fn template(name: &str) -> observed::Template {
    observed::Template {
        name: name.to_owned(),
        ..observed::Template::default()
    }
}

#[test]
fn labels_and_taints_change_without_a_rollout() {
    let mut facts = rich();
    let patched = |facts: &Facts| {
        let patches = machines(facts).running.patches.into_iter();
        patches
            .map(|(kind, name, patch)| (kind.kind, name, patch))
            .collect::<Vec<_>>()
    };
    let mut machine = fixtures::machine("a");
    machine.labels.insert(
        "managed.hypershift.openshift.io.gone".to_owned(),
        "1".to_owned(),
    );
    facts.machines = vec![machine];
    let taints = r#"[{"effect":"NoSchedule","key":"dedicated","value":"team"}]"#;
    let expected = json!({ "metadata": {
        "uid": "uid-a",
        "labels": {
            "managed.hypershift.openshift.io.example.com/zone": "a",
            "managed.hypershift.openshift.io.gone": null,
            "managed.hypershift.openshift.io.hypershift.openshift.io/nodepool-globalps-enabled": "true",
        },
        "annotations": { TAINTS.key(): taints },
    } });
    assert_eq!(
        patched(&facts),
        [("Machine".to_owned(), "a".to_owned(), expected)]
    );
    let mut machine = fixtures::machine("a");
    machine.labels = workload::node_labels(&facts.pool);
    machine
        .annotations
        .insert(TAINTS.key().to_owned(), workload::taints(&facts.pool));
    facts.machines = vec![machine];
    assert_eq!(patched(&facts), []);
    facts.pool.spec.management.upgrade_type = UpgradeType::InPlace;
    facts.machines = vec![fixtures::machine("a")];
    assert_eq!(patched(&facts), []);
}

#[test]
fn tags_are_patched_on_running_machines() {
    let mut facts = fixtures::facts();
    let spec = machines(&facts).template.1.object["spec"]["template"]["spec"].clone();
    let mut other = spec.clone();
    other["additionalTags"]["old"] = json!("1");
    facts.platform_machines = vec![
        PlatformMachine {
            name: "same".to_owned(),
            uid: Some("uid-same".to_owned()),
            spec,
        },
        PlatformMachine {
            name: "other".to_owned(),
            uid: Some("uid-other".to_owned()),
            spec: other,
        },
    ];
    let patches = machines(&facts).running.patches;
    let [(kind, name, patch)] = &*patches else {
        panic!("{patches:?}");
    };
    assert_eq!((kind.kind.as_str(), name.as_str()), ("AWSMachine", "other"));
    assert_eq!(patch["spec"]["additionalTags"]["old"], Value::Null);
    assert_eq!(patch["spec"]["additionalTags"]["team"], "a");
    assert_eq!(patch["metadata"]["uid"], "uid-other");
}

#[test]
fn in_place_upgrades_set_target_versions_only() {
    let mut facts = fixtures::facts();
    facts.pool.spec.management.upgrade_type = UpgradeType::InPlace;
    let object = machines(&facts).running.workload.1;
    let annotations = object["metadata"]["annotations"].as_object().unwrap();
    assert!(!annotations.contains_key(CURRENT_CONFIG_VERSION.key()));
    assert_eq!(
        annotations["hypershift.openshift.io/nodePoolTargetConfigVersion"],
        planned(&facts).hash
    );
}

/// Nodes keep their tuning until another one is valid, and their machines are planned all the same.
#[test]
fn invalid_tuning_changes_nothing() {
    let tuned = "apiVersion: tuned.openshift.io/v1\nkind: Tuned\nmetadata: {name: a}\nspec: {}\n";
    for (name, content, desired, obsolete) in [
        ("none", None, 0, 1),
        ("missing", Some(Content::Missing), 0, 0),
        ("invalid", Some(Content::Text("a: 1".to_owned())), 0, 0),
        ("valid", Some(Content::Text(tuned.to_owned())), 1, 0),
    ] {
        let mut facts = fixtures::facts();
        let sources = content.into_iter().map(|content| Source {
            name: "sysctl".to_owned(),
            content,
        });
        facts.tuning_inputs.sources = sources.collect();
        facts.tuning_inputs.written = vec![Written {
            name: "tuned-workers".to_owned(),
            is_profile: false,
        }];
        let plan = planned(&facts);
        let found = (plan.tuning.desired.len(), plan.tuning.obsolete.len());
        assert_eq!(found, (desired, obsolete), "{name}");
        assert!(plan.machines.is_some(), "{name}");
    }
}
