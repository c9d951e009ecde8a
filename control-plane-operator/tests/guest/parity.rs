//! Compares the objects of default profiles with reference facts; intended differences are listed with a reason.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::PathBuf;

use control_plane_operator::hosted_cluster_config::resources::desired::{
    LEGACY, MANAGED, Mode, Object,
};
use serde_json::{Value, json};

use crate::facts::{self, Facts};
use crate::profiles::{PLATFORMS, Profile, created};
use crate::values;

/// Numbers of objects of the profiles, in their order.
const COUNTS: [usize; 3] = [133, 123, 134];

/// Ends of paths with values that the API server sets by itself.
const DEFAULTS: [(&str, &str); 24] = [
    (".protocol", "\"TCP\""),
    (".scheme", "\"HTTP\""),
    (".successThreshold", "1"),
    (".failureThreshold", "3"),
    (".periodSeconds", "10"),
    (".defaultMode", "420"),
    ("failurePolicy", "\"Fail\""),
    (".env", "{}"),
    (".volumeMounts", "{}"),
    (" spec", "{}"),
    (" data", "{}"),
    (".annotations", "{}"),
    (".type", "\"\""),
    (".updateStrategy.type", "\"RollingUpdate\""),
    ("rollingUpdate.maxSurge", "0"),
    ("rollingUpdate.maxUnavailable", "1"),
    ("imageDigestMirrors", "[]"),
    ("imageDigestMirrors[0]", "{}"),
    (".value", "\"\""),
    (".imagePullPolicy", "\"IfNotPresent\""),
    ("securityContext", "{}"),
    (" spec.selector", "{}"),
    (" status", "{}"),
    (".resources", "{}"),
];

/// Intended differences: object and path (with wildcards `*`), and the reason.
const ALLOWED: &[(&str, &str)] = &[
    (
        "*/ValidatingAdmissionPolicy/* spec.validations*",
        "CEL is described there, and written here: variants.rs",
    ),
    (
        "*/ValidatingAdmissionPolicy//ntomirroredconfigmaps spec.matchConstraints.resourceRules[0].apiGroups*",
        "ConfigMaps are in the core group: the policy there matches nothing",
    ),
    (
        "*/PrometheusRule/* spec.groups[0].rules[*].annotations*",
        "texts are written here",
    ),
    (
        "*/PrometheusRule/* spec.groups[0].rules[*].expr*",
        "PromQL is described there, and written here: variants.rs",
    ),
    (
        "*/ClusterOperator/* *.lastTransitionTime",
        "the time of the test",
    ),
    (
        "*/Infrastructure//cluster status.platformStatus.openstack*",
        "all platforms are described in one object there",
    ),
    (
        "*/Infrastructure//cluster status.platformStatus.azure*",
        "all platforms are described in one object there",
    ),
    (
        "*/IngressController/*/default spec.endpointPublishingStrategy*",
        "all platforms are described in one object there: variants.rs",
    ),
    (
        "*/ServiceMonitor/* spec.endpoints[0].metricRelabelings*",
        "regular expressions are described there, and written here: variants.rs",
    ),
    (
        "*/DaemonSet/*/konnectivity-agent spec.template.metadata.labels.app",
        "labels of pods are those of the selector",
    ),
    (
        "*/DaemonSet/*/kubevirt-csi-node spec.template.metadata.labels.app",
        "labels of pods are those of the selector",
    ),
    (
        "*/DaemonSet/*/kubevirt-csi-node spec.template.spec.containers[*].privileged",
        "containers are described in a short form there",
    ),
    (
        "*/DaemonSet/*/kubevirt-csi-node spec.template.spec.containers[*].securityContext.privileged",
        "containers are described in a short form there",
    ),
    (
        "*/DaemonSet/*/kubevirt-csi-node spec.template.spec.containers[*].requests.*",
        "containers are described in a short form there",
    ),
    (
        "*/DaemonSet/*/kubevirt-csi-node spec.template.spec.containers[*].resources.requests.*",
        "containers are described in a short form there",
    ),
    (
        "*/DaemonSet/*/kubevirt-csi-node spec.template.spec.containers[0].livenessProbe.*",
        "containers are described in a short form there",
    ),
    (
        "*/DaemonSet/*/kubevirt-csi-node spec.template.spec.containers[1].preStop",
        "containers are described in a short form there",
    ),
    (
        "*/DaemonSet/*/kubevirt-csi-node spec.template.spec.containers[1].lifecycle.*",
        "containers are described in a short form there",
    ),
    (
        "*/DaemonSet/*/kubevirt-csi-node spec.template.spec.containers[*].env.*",
        "containers are described in a short form there",
    ),
    (
        "*/DaemonSet/*/kubevirt-csi-node spec.template.spec.imagePullPolicy",
        "containers are described in a short form there",
    ),
    (
        "*/DaemonSet/*/global-pull-secret-syncer *volumeMounts.global-pull-secret",
        "it is only mounted with the user's Secret: variants.rs",
    ),
    (
        "*/kube-system/global-pull-secret-syncer @label",
        "all written objects have the label, so that their watch finds them",
    ),
    (
        "*/kube-system/original-pull-secret @label",
        "all written objects have the label, so that their watch finds them",
    ),
];

fn file() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/guest/facts.txt")
}

fn theirs() -> BTreeMap<String, Facts> {
    facts::parse(&std::fs::read_to_string(file()).unwrap())
}

fn matches(pattern: &str, text: &str) -> bool {
    let Some((head, rest)) = pattern.split_once('*') else {
        return pattern == text;
    };
    let Some(text) = text.strip_prefix(head) else {
        return false;
    };
    (0..=text.len())
        .filter(|at| text.is_char_boundary(*at))
        .any(|at| matches(rest, &text[at..]))
}

fn is_allowed(path: &str) -> bool {
    ALLOWED.iter().any(|(pattern, _)| matches(pattern, path))
}

fn is_default(path: &str, value: &Value) -> bool {
    let value = value.to_string();
    DEFAULTS
        .iter()
        .any(|(end, default)| path.ends_with(end) && value == *default)
}

/// Facts with the values of a profile.
fn resolved(facts: &Facts, platform: &str) -> Facts {
    let mut resolved = Facts::new();
    for (path, value) in facts.iter().filter(|(path, _)| !path.starts_with('@')) {
        let value = match value {
            Value::String(text) => match values::resolve(text, platform) {
                // A remark at the end.
                Value::String(text) if text.ends_with(')') => {
                    json!(
                        text.rsplit_once(" (")
                            .map_or(text.as_str(), |(text, _)| text)
                    )
                }
                value => value,
            },
            value => value.clone(),
        };
        facts::flatten(path, &value, &mut resolved);
    }
    resolved
}

fn mode(object: &Object) -> &'static str {
    match object.mode {
        Mode::Enforce => "enforce",
        Mode::Merge => "merge",
        Mode::Create => "create-only",
        Mode::Delete => "delete",
    }
}

/// Facts of one of our objects, in the form of theirs.
fn ours(step: u8, object: &Object, theirs: &Facts) -> Facts {
    let mut value = created(object).unwrap();
    let labels = &mut value["metadata"]["labels"];
    let label = labels
        .as_object_mut()
        .and_then(|labels| labels.remove(MANAGED));
    if labels.as_object().is_some_and(serde_json::Map::is_empty) {
        *labels = Value::Null;
    }
    if object.key().name == "default-ingress-cert" {
        // Facts name the source only.
        value["data"] = json!({ "tls.crt": crate::profiles::base64("ingress-crt"), "tls.key": crate::profiles::base64("ingress-crt") });
    }
    let mut facts = facts::rendered(&value, theirs);
    facts.insert("@step".to_owned(), json!(step));
    facts.insert("@mode".to_owned(), json!(mode(object)));
    facts.insert("@label".to_owned(), json!(label.is_some()));
    facts
}

fn differences(id: &str, theirs: &Facts, ours: &Facts, text: &mut String) {
    let paths: BTreeSet<_> = theirs.keys().chain(ours.keys()).collect();
    for path in paths.into_iter().filter(|path| *path != "@profiles") {
        let full = format!("{id} {path}");
        let compared = |facts: &Facts| {
            let value = facts.get(path).cloned();
            value.filter(|value| !is_default(&full, value))
        };
        let (expected, found) = (compared(theirs), compared(ours));
        if expected != found && !is_allowed(&full) {
            let show = |value: Option<Value>| value.map_or("-".to_owned(), |it| it.to_string());
            let (expected, found) = (show(expected), show(found));
            let _ = writeln!(text, "{full}: {expected} there, {found} here");
        }
    }
}

#[test]
fn objects_of_default_profiles_match_reference_facts() {
    let theirs = theirs();
    let mut text = String::new();
    for ((name, platform), count) in PLATFORMS.into_iter().zip(COUNTS) {
        let (objects, errors) = Profile::new(platform).build();
        assert_eq!(errors, [], "{platform}");
        let is_present = |facts: &Facts| {
            let profiles = facts["@profiles"].as_str().unwrap();
            profiles.split(' ').any(|profile| profile == name)
        };
        let expected: BTreeSet<_> = theirs
            .iter()
            .filter(|(_, facts)| is_present(facts))
            .map(|(id, _)| id.clone())
            .collect();
        assert_eq!(expected.len(), count, "{platform}");
        let built: BTreeMap<_, _> = objects
            .iter()
            .filter(|(_, object)| object.mode != Mode::Delete)
            .map(|(step, object)| (facts::identity(&object.value), (*step, object)))
            .collect();
        let ids: BTreeSet<_> = built.keys().cloned().collect();
        for id in expected.symmetric_difference(&ids) {
            let _ = writeln!(text, "{platform}: {id} is only on one side");
        }
        for id in expected.intersection(&ids) {
            let (step, object) = built[id];
            let mut described = resolved(&theirs[id], platform);
            for field in ["@step", "@mode", "@label"] {
                described.insert(field.to_owned(), theirs[id][field].clone());
            }
            let ours = ours(step, object, &described);
            differences(id, &described, &ours, &mut text);
        }
    }
    assert!(text.is_empty(), "\n{text}");
}

#[test]
fn deletions_match_reference_facts() {
    let theirs = theirs();
    let expected: BTreeSet<_> = theirs
        .iter()
        .filter(|(_, facts)| facts["@mode"] == "delete")
        .map(|(id, _)| id.clone())
        .collect();
    let profile = Profile::new("AWS");
    let (objects, _) = profile.build();
    let mut found: BTreeSet<_> = objects
        .iter()
        .filter(|(_, object)| object.mode == Mode::Delete)
        .map(|(_, object)| facts::identity(&object.value))
        .collect();
    let legacy = profile.legacy_objects();
    found.extend(legacy.iter().map(|object| facts::identity(&object.value)));
    let missing: Vec<_> = expected.difference(&found).collect();
    assert!(missing.is_empty(), "{missing:#?}");
    for (step, object) in objects {
        if let Some(facts) = theirs.get(&facts::identity(&object.value)) {
            assert_eq!(facts["@step"], step, "{}", object.key());
        }
    }
    for object in legacy {
        let id = facts::identity(&object.value);
        assert_eq!(theirs[&id]["@step"], LEGACY.number, "{id}");
    }
    // Objects that settings of the HostedCluster bring are deleted without these settings.
    assert!(expected.len() == 14 && found.len() == 14 + 7, "{found:#?}");
}

#[test]
fn differences_have_a_reason() {
    assert!(ALLOWED.iter().all(|(_, reason)| !reason.is_empty()));
    assert!(matches("a*c", "abbc") && matches("*", "") && !matches("a*c", "abcd"));
}

#[test]
#[ignore = "writes tests/guest/facts.txt from the description in the file GUEST_FACTS"]
fn write_facts() {
    let text = std::fs::read_to_string(std::env::var("GUEST_FACTS").unwrap()).unwrap();
    let entries: Vec<Value> = serde_json::from_str(&text).unwrap();
    let is_compared = |entry: &Value| {
        let of = ["resources", "globalps"]
            .iter()
            .any(|by| entry["by"] == *by);
        let present = entry["present"].as_object().into_iter().flatten();
        let is_present = present.into_iter().any(|(_, is)| *is == true);
        entry["cluster"] == "guest" && of && (is_present || entry["mode"] == "delete")
    };
    let lines = entries.iter().filter(|entry| is_compared(entry));
    let lines: Vec<_> = lines.flat_map(facts::described).collect();
    let header =
        "# Reference facts of objects in the hosted cluster, one per line: tests/guest/facts.rs.\n";
    std::fs::write(file(), format!("{header}{}\n", lines.join("\n"))).unwrap();
}
