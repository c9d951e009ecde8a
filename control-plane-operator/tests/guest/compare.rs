//! Compares objects with reference facts; intended differences are listed with a reason.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use control_plane_operator::hosted_cluster_config::resources::desired::{MANAGED, Mode, Object};
use serde_json::{Value, json};

use super::facts::{self, Facts};
use super::profiles::{base64, created};
use super::values;

/// Ends of paths with values that the API server sets by itself.
const DEFAULTS: [(&str, &str); 27] = [
    (".protocol", "\"TCP\""),
    (".scheme", "\"HTTP\""),
    (".successThreshold", "1"),
    (".failureThreshold", "3"),
    (".periodSeconds", "10"),
    (".defaultMode", "420"),
    ("failurePolicy", "\"Fail\""),
    (".env", "{}"),
    (".env.HTTP_PROXY", "\"\""),
    (".env.HTTPS_PROXY", "\"\""),
    (".env.NO_PROXY", "\"\""),
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
pub(crate) const ALLOWED: &[(&str, &str)] = &[
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
        "*/Deployment/*/kas-connection-checker spec.template.metadata.annotations*safe-to-evict*",
        "cluster-autoscaler would keep nodes with these pods; added there later (pull request 8338)",
    ),
    (
        "*/Deployment/*/kas-connection-checker spec.template.metadata.labels*drain*",
        "the pods return to cordoned nodes: a drain that evicts them would not end",
    ),
    (
        "*/DaemonSet/*/global-pull-secret-syncer *securityContext.runAsUser",
        "the user of the image may neither write kubelet's file nor restart its unit",
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

pub(crate) fn theirs() -> BTreeMap<String, Facts> {
    facts::parse(include_str!("facts.txt"))
}

/// The identities of the objects that a profile has.
pub(crate) fn of_profile(theirs: &BTreeMap<String, Facts>, name: &str) -> BTreeSet<String> {
    let is_present = |facts: &Facts| {
        let profiles = facts["@profiles"].as_str().unwrap();
        profiles.split(' ').any(|profile| profile == name)
    };
    let present = theirs.iter().filter(|(_, facts)| is_present(facts));
    present.map(|(id, _)| id.clone()).collect()
}

/// Facts of an object with the values of a profile.
pub(crate) fn described(facts: &Facts, platform: &str) -> Facts {
    let mut described = resolved(facts, platform);
    for field in ["@step", "@mode", "@label"] {
        described.insert(field.to_owned(), facts[field].clone());
    }
    described
}

pub(crate) fn matches(pattern: &str, text: &str) -> bool {
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
pub(crate) fn ours(step: u8, object: &Object, theirs: &Facts) -> Facts {
    observed(step, object, created(object).unwrap(), theirs)
}

/// Facts of one of our objects with the value that it has in an API server.
pub(crate) fn observed(step: u8, object: &Object, mut value: Value, theirs: &Facts) -> Facts {
    let labels = &mut value["metadata"]["labels"];
    let label = labels
        .as_object_mut()
        .and_then(|labels| labels.remove(MANAGED));
    if labels.as_object().is_some_and(serde_json::Map::is_empty) {
        *labels = Value::Null;
    }
    if object.key().name == "default-ingress-cert" {
        // Facts name the source only.
        value["data"] =
            json!({ "tls.crt": base64("ingress-crt"), "tls.key": base64("ingress-crt") });
    }
    let mut facts = facts::rendered(&value, theirs);
    facts.insert("@step".to_owned(), json!(step));
    facts.insert("@mode".to_owned(), json!(mode(object)));
    facts.insert("@label".to_owned(), json!(label.is_some()));
    facts
}

/// Writes each difference as a line, unless it is allowed, or a field that is only here `is_expected` with its value.
pub(crate) fn differences(
    id: &str,
    theirs: &Facts,
    ours: &Facts,
    is_expected: impl Fn(&str, &Value) -> bool,
    text: &mut String,
) {
    let paths: BTreeSet<_> = theirs.keys().chain(ours.keys()).collect();
    for path in paths.into_iter().filter(|path| *path != "@profiles") {
        let full = format!("{id} {path}");
        let compared = |facts: &Facts| {
            let value = facts.get(path).cloned();
            value.filter(|value| !is_default(&full, value))
        };
        let (expected, found) = (compared(theirs), compared(ours));
        let is_added = match (&expected, &found) {
            (None, Some(found)) => is_expected(&full, found),
            _ => false,
        };
        if expected != found && !is_added && !is_allowed(&full) {
            let show = |value: Option<Value>| value.map_or("-".to_owned(), |it| it.to_string());
            let (expected, found) = (show(expected), show(found));
            let _ = writeln!(text, "{full}: {expected} there, {found} here");
        }
    }
}
