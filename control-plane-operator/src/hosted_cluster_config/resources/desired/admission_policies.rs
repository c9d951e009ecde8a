//! Policies that protect configuration which belongs to the HostedCluster.
//!
//! Users may change metadata and status of a protected object. Its spec may only be changed by the components of the
//! control plane. Creation and deletion by others fail, because the policy cannot compare two specs.

use serde_json::{Value, json};

use super::input::Input;
use super::object::{Desired, Object, with_spec};

const API: &str = "admissionregistration.k8s.io/v1";
const POLICY: &str = "ValidatingAdmissionPolicy";
const CHAIN: &str = "admission policies";
/// This operator's user.
const OPERATOR: &str = "system:hosted-cluster-config";
/// Users that may change protected objects.
const WRITERS: [&str; 2] = [OPERATOR, "system:kas-bootstrap-container"];
const NETWORK_OPERATOR: &str =
    "system:serviceaccount:openshift-network-operator:cluster-network-operator";
const CONFIG: (&str, &str) = ("config.openshift.io", "v1");
const MESSAGE: &str = "This resource cannot be changed in the cluster. Ask an administrator to change the HostedCluster.";
const REGISTRY_MESSAGE: &str = "The image registry cannot be removed in this cluster";

pub(super) fn build(input: &Input<'_>, desired: &mut Desired) {
    if is_supported(input) {
        for policy in policies(input) {
            desired.extend(policy.map(|object| object.chained(CHAIN)));
        }
    }
}

/// The API servers of older releases on IBM Cloud do not enable the API.
fn is_supported(input: &Input<'_>) -> bool {
    if !input.is_on(&["IBMCloud"]) {
        return true;
    }
    let mut parts = input.release.version.split('.').map(str::parse::<u32>);
    match (parts.next(), parts.next()) {
        (Some(Ok(4)), Some(Ok(minor))) => minor >= 17,
        _ => true,
    }
}

fn policies(input: &Input<'_>) -> [[Object; 2]; 5] {
    let mut config = vec![
        "apiservers",
        "authentications",
        "featuregates",
        "images",
        "imagecontentpolicies",
        "proxies",
        "schedulers",
        "networks",
        "oauths",
    ];
    let mut mirrors = vec!["imagedigestmirrorsets", "imagetagmirrorsets"];
    if input.has_capability("Ingress") {
        config.push("ingresses");
    }
    if input.has_management_catalogs() {
        config.push("operatorhubs");
        mirrors.push("operatorhubs");
    }
    let icsp = ("operator.openshift.io", "v1alpha1");
    let changes: &[&str] = &["UPDATE", "DELETE"];
    let mut copies = policy(
        "ntomirroredconfigmaps",
        &rule(("", "v1"), &["configmaps"], changes),
        &data_is_kept(),
    );
    copies[0].initial = json!({ "spec": { "matchConstraints": { "objectSelector": {
        "matchLabels": { "hypershift.openshift.io/mirrored-config": "true" },
    } } } });
    [
        policy(
            "config",
            &rule(CONFIG, &config, changes),
            &spec_is_kept(&[]),
        ),
        policy(
            "mirror",
            &rule(CONFIG, &mirrors, &["*"]),
            &spec_is_kept(&[]),
        ),
        policy(
            "icsp",
            &rule(icsp, &["imagecontentsourcepolicies"], &["*"]),
            &spec_is_kept(&[]),
        ),
        policy(
            "infra",
            &rule(CONFIG, &["infrastructures"], changes),
            &spec_is_kept(&[NETWORK_OPERATOR]),
        ),
        copies,
    ]
}

/// The policy that keeps the registry from being removed, which would delete its storage account.
pub(super) fn registry() -> [Object; 2] {
    let rule = rule(
        ("imageregistry.operator.openshift.io", "v1"),
        &["configs"],
        &["CREATE", "UPDATE"],
    );
    let removed = "has(object.spec) && has(object.spec.managementState) \
                   && object.spec.managementState == 'Removed'";
    let validation = json!({
        "expression": format!("request.userInfo.username == '{OPERATOR}' || !({removed})"),
        "message": REGISTRY_MESSAGE,
        "reason": "Invalid",
    });
    policy("deny-removed-managementstate", &rule, &validation)
}

/// A policy and its binding.
fn policy(name: &str, rule: &Value, validation: &Value) -> [Object; 2] {
    let spec = json!({
        "matchConstraints": { "matchPolicy": "Equivalent", "resourceRules": [rule] },
        "validations": [validation],
    });
    let binding = json!({ "policyName": name, "validationActions": ["Deny"] });
    let kind = format!("{POLICY}Binding");
    [
        Object::merge(with_spec(API, POLICY, "", name, spec)),
        Object::merge(with_spec(
            API,
            &kind,
            "",
            &format!("{name}-binding"),
            binding,
        )),
    ]
}

fn rule((group, version): (&str, &str), resources: &[&str], operations: &[&str]) -> Value {
    json!({
        "apiGroups": [group],
        "apiVersions": [version],
        "resources": resources,
        "operations": operations,
        "scope": "*",
    })
}

fn spec_is_kept(further_writers: &[&str]) -> Value {
    kept("spec", further_writers)
}

fn data_is_kept() -> Value {
    kept("data", &[])
}

fn kept(field: &str, further_writers: &[&str]) -> Value {
    let writers = WRITERS.iter().chain(further_writers);
    let writers: Vec<_> = writers.map(|user| format!("'{user}'")).collect();
    let writers = writers.join(", ");
    let is_same = format!(
        "has(object.{field}) && has(oldObject.{field}) && object.{field} == oldObject.{field}"
    );
    json!({
        "expression": format!("request.userInfo.username in [{writers}] || ({is_same})"),
        "message": MESSAGE,
        "reason": "Invalid",
    })
}
