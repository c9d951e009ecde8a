//! Admission policies on HostedClusters that hold for every author, whatever the mode of the tenant policy. Pure.
//!
//! Both fail open: they guard authors against mistakes, and must not stop a fleet when they cannot be evaluated.

use serde_json::{Value, json};

use super::object::Object;
use super::tenant_policy::bound;

/// A policy, as far as the two differ.
struct Policy {
    /// The end of its name, which begins with the namespace of the installation.
    name: &'static str,
    operations: &'static [&'static str],
    validation: Value,
    action: &'static str,
}

/// The policies and their bindings.
pub(super) fn objects(namespace: &str) -> Vec<Object> {
    [key_rotation(), deprecations()]
        .into_iter()
        .flat_map(|policy| {
            let name = format!("{namespace}-{}", policy.name);
            let spec = json!({
                "failurePolicy": "Ignore",
                "matchConstraints": { "resourceRules": [{
                    "apiGroups": ["hypershift.openshift.io"],
                    "apiVersions": ["v1beta1"],
                    "operations": policy.operations,
                    "resources": ["hostedclusters"],
                }] },
                "validations": [policy.validation],
            });
            bound(namespace, &name, &spec, &json!([policy.action]))
        })
        .collect()
}

/// A second change of the key would leave objects that are encrypted with a key that no API server has.
fn key_rotation() -> Policy {
    let expression = "!has(oldObject.status) || !has(oldObject.status.conditions) || \
                      !oldObject.status.conditions.exists(condition, \
                      condition.type == 'EtcdDataEncryptionUpToDate' && condition.status == 'False') || \
                      (has(object.spec.secretEncryption) \
                      ? has(oldObject.spec.secretEncryption) && \
                      object.spec.secretEncryption == oldObject.spec.secretEncryption \
                      : !has(oldObject.spec.secretEncryption))";
    let message = "spec.secretEncryption cannot be changed while Secrets in etcd are encrypted again with the key of the \
                   last change; wait until the condition EtcdDataEncryptionUpToDate is True";
    Policy {
        name: "hostedcluster-block-key-rotation-during-reencryption",
        operations: &["UPDATE"],
        validation: json!({ "expression": expression, "message": message }),
        action: "Deny",
    }
}

fn deprecations() -> Policy {
    let expression = "!has(object.spec.configuration) || !has(object.spec.configuration.scheduler) || \
                      !has(object.spec.configuration.scheduler.profileCustomizations) || \
                      !has(object.spec.configuration.scheduler.profileCustomizations.dynamicResourceAllocation)";
    let message = "spec.configuration.scheduler.profileCustomizations.dynamicResourceAllocation is deprecated; remove it";
    Policy {
        name: "hostedcluster-deprecations",
        operations: &["CREATE", "UPDATE"],
        validation: json!({ "expression": expression, "message": message }),
        action: "Warn",
    }
}
