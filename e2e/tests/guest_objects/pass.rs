//! Passes of the operator over all its steps.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use anyhow::{Result, ensure};
use control_plane_operator::hosted_cluster_config::resources::desired::{
    Desired, Key, LEGACY, Mode, Object, STEPS, Step, WriteError, plan,
};
use serde_json::{Value, json};

use super::compare;
use super::facts::{self, Facts};
use super::guest::Guest;
use super::profiles::Profile;

/// A kind of an aggregated API, whose server does not run: oauth.rs.
const AGGREGATED: &str = "OAuthClient";
/// Fields of metadata that the API server sets.
const SET_BY_SERVER: [&str; 4] = ["creationTimestamp", "generation", "resourceVersion", "uid"];

/// An object with its step, and as it is in the API server.
pub(crate) struct Found {
    pub(crate) step: u8,
    pub(crate) object: Object,
    pub(crate) value: Value,
}

/// Runs all steps, in their order. Kinds that are not served are skipped, as by the operator.
pub(crate) async fn run(guest: &Guest, profile: &mut Profile) -> Result<()> {
    for step in STEPS.into_iter().chain([LEGACY]) {
        run_step(guest, profile, step, is_local).await?;
    }
    Ok(())
}

fn is_local(object: &Object) -> bool {
    object.key().kind != AGGREGATED
}

/// Builds and writes the chosen objects of a step.
pub(crate) async fn run_step(
    guest: &Guest,
    profile: &mut Profile,
    step: Step,
    is_chosen: fn(&Object) -> bool,
) -> Result<()> {
    let objects = step.build(&profile.input()).objects;
    let keys: Vec<_> = objects
        .iter()
        .filter(|it| is_chosen(it))
        .map(Object::key)
        .collect();
    for key in keys {
        match guest.read(&key).await? {
            Some(found) => profile.guest.insert(found),
            None => profile.guest.remove(&key),
        }
    }
    let Desired { objects, errors } = step.build(&profile.input());
    for error in errors {
        guest.complain(format!("step {}: {error}", step.name));
    }
    for object in objects.into_iter().filter(is_chosen) {
        let key = object.key();
        let live = profile.guest.get(&key).cloned();
        match guest.writer.write(&object, live.as_ref()).await {
            Ok(Some(found)) => profile.guest.insert(found),
            Ok(None) => profile.guest.remove(&key),
            Err(WriteError::NotServed(_)) => {}
            Err(error) => {
                let error = anyhow::Error::from(error);
                guest.complain(format!("step {}: {error:#}", step.name));
            }
        }
    }
    Ok(())
}

/// The objects that a profile has in the API server.
pub(crate) async fn objects(guest: &Guest, profile: &Profile) -> Result<Vec<Found>> {
    let mut all = Vec::new();
    for step in STEPS {
        all.extend(of_step(guest, profile, step, is_local).await?);
    }
    Ok(all)
}

/// The chosen ones of one step.
pub(crate) async fn of_step(
    guest: &Guest,
    profile: &Profile,
    step: Step,
    is_chosen: fn(&Object) -> bool,
) -> Result<Vec<Found>> {
    let mut found = Vec::new();
    let objects = step.build(&profile.input()).objects.into_iter();
    for object in objects.filter(is_chosen) {
        if object.mode == Mode::Delete {
            continue;
        }
        if let Some(value) = guest.read(&object.key()).await? {
            let step = step.number;
            found.push(Found {
                step,
                object,
                value,
            });
        }
    }
    Ok(found)
}

/// Compares objects with facts, field by field.
pub(crate) fn compare(
    platform: &str,
    facts: &BTreeMap<String, Facts>,
    expected: &BTreeSet<String>,
    found: &[Found],
) -> Result<()> {
    let mut text = String::new();
    let ids: BTreeSet<_> = found.iter().map(|it| facts::identity(&it.value)).collect();
    for id in expected.symmetric_difference(&ids) {
        let _ = writeln!(text, "{id} is only on one side");
    }
    for it in found {
        let id = facts::identity(&it.value);
        let Some(described) = facts.get(&id) else {
            continue;
        };
        let described = compare::described(described, platform);
        let mut value = it.value.clone();
        if let Some(metadata) = value["metadata"].as_object_mut() {
            metadata.retain(|field, _| !SET_BY_SERVER.contains(&field.as_str()));
        }
        let ours = compare::observed(it.step, &it.object, value, &described);
        compare::differences(&id, &described, &ours, is_added, &mut text);
    }
    ensure!(text.is_empty(), "{platform}:\n{text}");
    Ok(())
}

/// Whether the API server, or a default of a CRD, adds a field with this value.
fn is_added(path: &str, value: &Value) -> bool {
    let value = value.to_string();
    ADDED.iter().any(|(pattern, added)| {
        compare::matches(pattern, path) && (*added == ANY || *added == value)
    })
}

/// Any value: the API server computes it.
const ANY: &str = "any";

/// Fields that the API server adds: objects and paths, with wildcards, and the value as JSON.
const ADDED: [(&str, &str); 57] = [
    ("*/APIService/* status.*", ANY),
    ("*/CSIDriver/* spec.requiresRepublish", "false"),
    ("*/CSIDriver/* spec.seLinuxMount", "false"),
    ("*/CSIDriver/* spec.storageCapacity", "false"),
    (
        "*/CSIDriver/* spec.volumeLifecycleModes[0]",
        r#""Persistent""#,
    ),
    (
        "*/CustomResourceDefinition/* spec.conversion.strategy",
        r#""None""#,
    ),
    ("*/CustomResourceDefinition/* status.*", ANY),
    (
        "*/DaemonSet/* metadata.annotations[deprecated.daemonset.template.generation]",
        r#""1""#,
    ),
    ("*/DaemonSet/* spec.revisionHistoryLimit", "10"),
    ("*/DaemonSet/* status.*", "0"),
    ("*/Deployment/* spec.progressDeadlineSeconds", "600"),
    ("*/Deployment/* spec.revisionHistoryLimit", "10"),
    (
        "*/Deployment/* spec.strategy.rollingUpdate.maxSurge",
        r#""25%""#,
    ),
    (
        "*/Deployment/* spec.strategy.rollingUpdate.maxUnavailable",
        r#""25%""#,
    ),
    ("*/Deployment/* spec.strategy.type", r#""RollingUpdate""#),
    (
        "*/MutatingWebhookConfiguration/* webhooks[*].matchPolicy",
        r#""Equivalent""#,
    ),
    (
        "*/MutatingWebhookConfiguration/* webhooks[*].namespaceSelector",
        "{}",
    ),
    (
        "*/MutatingWebhookConfiguration/* webhooks[*].objectSelector",
        "{}",
    ),
    (
        "*/MutatingWebhookConfiguration/* webhooks[*].reinvocationPolicy",
        r#""Never""#,
    ),
    (
        "*/MutatingWebhookConfiguration/* webhooks[*].rules[*].scope",
        r#""*""#,
    ),
    (
        "*/MutatingWebhookConfiguration/* webhooks[*].timeoutSeconds",
        "10",
    ),
    (
        "*/Namespace/* metadata.labels[kubernetes.io/metadata.name]",
        ANY,
    ),
    ("*/Namespace/* spec.finalizers[0]", r#""kubernetes""#),
    ("*/Namespace/* status.phase", r#""Active""#),
    ("*/Secret/* type", r#""Opaque""#),
    ("*/Service/* spec.clusterIP", ANY),
    ("*/Service/* spec.clusterIPs[0]", ANY),
    ("*/Service/* spec.internalTrafficPolicy", r#""Cluster""#),
    ("*/Service/* spec.ipFamilies[0]", r#""IPv4""#),
    ("*/Service/* spec.ipFamilyPolicy", r#""SingleStack""#),
    ("*/Service/* spec.ports[*].targetPort", "443"),
    ("*/Service/* spec.sessionAffinity", r#""None""#),
    ("*/Service/* spec.type", r#""ClusterIP""#),
    ("*/Service/* status.loadBalancer", "{}"),
    ("*/StorageClass/* reclaimPolicy", r#""Delete""#),
    ("*/StorageClass/* volumeBindingMode", r#""Immediate""#),
    (
        "*/ValidatingAdmissionPolicy/* spec.matchConstraints.namespaceSelector",
        "{}",
    ),
    (
        "*/ValidatingAdmissionPolicy/* spec.matchConstraints.objectSelector",
        "{}",
    ),
    (
        "* spec.template.spec.containers[*].imagePullPolicy",
        r#""Always""#,
    ),
    (
        "* spec.template.spec.containers[*].terminationMessagePath",
        r#""/dev/termination-log""#,
    ),
    (
        "* spec.template.spec.containers[*].terminationMessagePolicy",
        r#""File""#,
    ),
    ("* spec.template.spec.dnsPolicy", r#""ClusterFirst""#),
    ("* spec.template.spec.restartPolicy", r#""Always""#),
    (
        "* spec.template.spec.schedulerName",
        r#""default-scheduler""#,
    ),
    ("* spec.template.spec.serviceAccount", ANY),
    ("* spec.template.spec.terminationGracePeriodSeconds", "30"),
    (
        "config.openshift.io/v1/APIServer//cluster spec.audit.profile",
        r#""Default""#,
    ),
    (
        "config.openshift.io/v1/Infrastructure//cluster status.cpuPartitioning",
        r#""None""#,
    ),
    (
        "config.openshift.io/v1/Infrastructure//cluster status.platformStatus.aws.cloudLoadBalancerConfig.dnsType",
        r#""PlatformDefault""#,
    ),
    (
        "config.openshift.io/v1/Infrastructure//cluster status.platformStatus.aws.ipFamily",
        r#""IPv4""#,
    ),
    (
        "operator.openshift.io/v1/IngressController/* spec.closedClientConnectionPolicy",
        r#""Continue""#,
    ),
    (
        "operator.openshift.io/v1/IngressController/* spec.httpEmptyRequestsPolicy",
        r#""Respond""#,
    ),
    (
        "operator.openshift.io/v1/IngressController/* spec.idleConnectionTerminationPolicy",
        r#""Immediate""#,
    ),
    (
        "operator.openshift.io/v1/Network//cluster spec.defaultNetwork.ovnKubernetesConfig.ipsecConfig.mode",
        r#""Disabled""#,
    ),
    (
        "operator.openshift.io/v1/Network//cluster spec.disableNetworkDiagnostics",
        "false",
    ),
    ("* spec.logLevel", r#""Normal""#),
    ("* spec.operatorLogLevel", r#""Normal""#),
];

/// Resource versions by object.
fn versions(found: &[Found]) -> BTreeMap<Key, Value> {
    let versions = found.iter().map(|it| {
        (
            it.object.key(),
            it.value["metadata"]["resourceVersion"].clone(),
        )
    });
    versions.collect()
}

/// Complains of objects that were written between two passes, and of those that a pass would write.
pub(crate) fn unchanged(guest: &Guest, before: &[Found], after: &[Found]) {
    let before = versions(before);
    for it in after {
        let key = it.object.key();
        let version = &it.value["metadata"]["resourceVersion"];
        let writes = plan(&it.object, Some(&it.value));
        if before.get(&key) != Some(version) || !writes.is_empty() {
            guest.complain(format!("a second pass writes {key}: {writes:?}"));
        }
    }
}

/// The object as another client would create it, with the label of managed objects.
pub(crate) fn labelled(mut object: Value) -> Value {
    object["metadata"]["labels"]["hypershift.openshift.io/managed"] = json!("true");
    object
}
