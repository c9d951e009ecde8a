//! Whether two texts are the same configuration.

use std::collections::BTreeMap;

use control_plane_component::node_config;
use serde_json::Value;

use crate::node_pool::haproxy;
use crate::node_pool::manifest;

const MACHINE_CONFIG: &str = "MachineConfig";
/// Kinds that operators read into types of their own and write back completely. Other kinds have parts that they
/// pass on as they are.
const TYPED: [&str; 5] = [
    "ClusterImagePolicy",
    "ContainerRuntimeConfig",
    "ImageContentSourcePolicy",
    "ImageDigestMirrorSet",
    "ImageTagMirrorSet",
];
/// Fields of a ContainerRuntimeConfig that are written as zero if they are unset.
const SIZES: [&str; 2] = ["logSizeMax", "overlaySize"];

/// Manifests by kind and name, in the form in which they are compared.
type Manifests = BTreeMap<(String, String), Value>;

/// Whether both have the same manifests. A text that cannot be read is the same as no other one.
pub(super) fn is_same(found: &str, desired: &str) -> bool {
    if found == desired {
        return true;
    }
    let (Some(found), Some(desired)) = (manifests(found), manifests(desired)) else {
        return false;
    };
    let mut pairs = found.iter().zip(&desired);
    found.len() == desired.len()
        && pairs.all(|((key, found), (other, desired))| {
            key == other && (found == desired || is_same_proxy(key, found, desired))
        })
}

/// Each operator has the load balancer on nodes in its own words.
fn is_same_proxy((kind, name): &(String, String), found: &Value, desired: &Value) -> bool {
    kind == MACHINE_CONFIG
        && name == haproxy::NAME
        && haproxy::is_same(&found["spec"], &desired["spec"])
}

fn manifests(text: &str) -> Option<Manifests> {
    let mut manifests = Manifests::new();
    for object in documents(text)? {
        let word = |pointer: &str| object.pointer(pointer).and_then(Value::as_str);
        let key = (
            word("/kind")?.to_owned(),
            word("/metadata/name")?.to_owned(),
        );
        let object = comparable(&key.0, &key.1, object);
        if manifests.insert(key, object).is_some() {
            return None;
        }
    }
    Some(manifests)
}

fn documents(text: &str) -> Option<Vec<Value>> {
    // This operator writes one line of JSON for each.
    let own: Result<Vec<_>, _> = text
        .split("\n---\n")
        .map(serde_json::from_str::<Value>)
        .collect();
    if let Ok(own) = own {
        return Some(own);
    }
    let documents = manifest::documents(text).ok()?.into_iter();
    Some(documents.map(|(_, document)| document).collect())
}

/// An object without what operators write for fields that are unset.
fn comparable(kind: &str, name: &str, mut object: Value) -> Value {
    if let Some(fields) = object.as_object_mut() {
        fields.remove("status");
        if is_made(kind, name) {
            // Nothing else than its name and what it says is a setting.
            fields.remove("metadata");
        }
    }
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("creationTimestamp");
        metadata.retain(|_, value| !is_empty(value));
    }
    if let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) {
        let is_machine_config = kind == MACHINE_CONFIG;
        spec.retain(|_, value| !(value.is_null() || is_machine_config && is_zero(value)));
    }
    if let Some(runtime) = object.pointer_mut("/spec/containerRuntimeConfig") {
        for size in SIZES {
            if runtime[size] == "0" {
                runtime[size] = Value::Null;
            }
        }
    }
    if TYPED.contains(&kind) || is_made(kind, name) {
        return pruned(object).unwrap_or_default();
    }
    object
}

/// Whether operators make the manifest from settings of the cluster.
fn is_made(kind: &str, name: &str) -> bool {
    match kind {
        MACHINE_CONFIG => [node_config::FIPS, node_config::SSH].contains(&name),
        "ImageDigestMirrorSet" => name == node_config::MIRRORS,
        _ => false,
    }
}

/// The value without empty fields, and without spaces at the end of texts. `None` if nothing is left.
fn pruned(value: Value) -> Option<Value> {
    let value = match value {
        Value::Object(fields) => {
            let fields = fields.into_iter();
            let fields = fields.filter_map(|(key, value)| Some((key, pruned(value)?)));
            Value::Object(fields.collect())
        }
        // Items keep their places.
        Value::Array(items) => {
            let items = items.into_iter();
            Value::Array(items.map(|it| pruned(it).unwrap_or_default()).collect())
        }
        Value::String(text) => Value::String(text.trim_end().to_owned()),
        Value::Null | Value::Bool(_) | Value::Number(_) => value,
    };
    (!is_empty(&value)).then_some(value)
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    }
}

/// What a field of a MachineConfig has if it is unset.
fn is_zero(value: &Value) -> bool {
    match value {
        Value::Bool(is_on) => !is_on,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Null | Value::Number(_) | Value::Object(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::node_pool::manifest::Manifest;

    const LIMITS: &str = "
apiVersion: machineconfiguration.openshift.io/v1
kind: MachineConfig
metadata: {name: limits}
spec:
  config:
    ignition: {version: 3.2.0}
    storage: {files: [{path: /etc/a, mode: 420, contents: {source: 'data:,a'}}]}
  kernelArguments: [nosmt]
";
    const KUBELET: &str = "
apiVersion: machineconfiguration.openshift.io/v1
kind: KubeletConfig
metadata: {name: kubelet}
spec: {kubeletConfig: {maxPods: 300}}
";
    const RUNTIME: &str = "
apiVersion: machineconfiguration.openshift.io/v1
kind: ContainerRuntimeConfig
metadata: {name: runtime}
spec: {containerRuntimeConfig: {pidsLimit: 4096}}
";

    /// As this operator has it.
    fn own(texts: &[&str]) -> String {
        let read = |text: &&str| Manifest::read(text).unwrap();
        let mut texts: Vec<_> = texts.iter().flat_map(read).map(|it| it.text()).collect();
        texts.sort();
        texts.join("\n---\n")
    }

    /// As an operator has it that reads manifests into types of its own.
    fn typed(spec: &str) -> String {
        format!(
            "apiVersion: machineconfiguration.openshift.io/v1\nkind: {spec}status:\n  conditions: null\n"
        )
    }

    const TYPED_LIMITS: &str = "MachineConfig
metadata:
  creationTimestamp: null
  labels:
    machineconfiguration.openshift.io/role: worker
  name: limits
spec:
  baseOSExtensionsContainerImage: \"\"
  config:
    ignition:
      version: 3.2.0
    storage:
      files:
      - contents:
          source: data:,a
        mode: 420
        path: /etc/a
  extensions: null
  fips: false
  kernelArguments:
  - nosmt
  kernelType: \"\"
  osImageURL: \"\"
";
    const TYPED_KUBELET: &str = "KubeletConfig
metadata:
  creationTimestamp: null
  name: kubelet
spec:
  kubeletConfig:
    maxPods: 300
  machineConfigPoolSelector:
    matchLabels:
      machineconfiguration.openshift.io/mco-built-in: \"\"
";
    const TYPED_RUNTIME: &str = "ContainerRuntimeConfig
metadata:
  creationTimestamp: null
  name: runtime
spec:
  containerRuntimeConfig:
    logSizeMax: \"0\"
    overlaySize: \"0\"
    pidsLimit: 4096
  machineConfigPoolSelector:
    matchLabels:
      machineconfiguration.openshift.io/mco-built-in: \"\"
";

    #[test]
    fn configurations_are_compared_by_what_they_say() {
        let join = |texts: &[&str]| {
            let texts = texts.iter().map(|it| typed(it));
            texts.collect::<Vec<_>>().join("\n---\n")
        };
        let all = [LIMITS, KUBELET, RUNTIME];
        let found = join(&[TYPED_RUNTIME, TYPED_KUBELET, TYPED_LIMITS]);
        let changed = |from: &str, to: &str| {
            let found = found.replace(from, to);
            assert!(!from.is_empty() && found.contains(to), "{to}");
            found
        };
        for (name, found, expected) in [
            ("the same text", own(&all), true),
            ("other words", found.clone(), true),
            (
                "another order",
                join(&[TYPED_LIMITS, TYPED_RUNTIME, TYPED_KUBELET]),
                true,
            ),
            ("comments", changed("spec:\n", "spec: # more\n"), true),
            ("a file", changed("data:,a", "data:,b"), false),
            ("a mode", changed("420", "384"), false),
            (
                "kernel arguments",
                changed("- nosmt", "- nosmt\n  - quiet"),
                false,
            ),
            ("FIPS mode", changed("fips: false", "fips: true"), false),
            (
                "an image",
                changed("osImageURL: \"\"", "osImageURL: a"),
                false,
            ),
            ("a setting", changed("maxPods: 300", "maxPods: 301"), false),
            // In what is passed on, an empty setting is not an unset one.
            (
                "an empty setting",
                changed(
                    "maxPods: 300",
                    "maxPods: 300\n    enforceNodeAllocatable: []",
                ),
                false,
            ),
            (
                "a size",
                changed("logSizeMax: \"0\"", "logSizeMax: 1Gi"),
                false,
            ),
            ("one less", join(&[TYPED_LIMITS, TYPED_KUBELET]), false),
            (
                "one twice",
                format!("{found}\n---\n{}", typed(TYPED_LIMITS)),
                false,
            ),
            (
                "another name",
                changed("name: limits", "name: other"),
                false,
            ),
            (
                "a namespace",
                changed("  name: limits", "  name: limits\n  namespace: a"),
                false,
            ),
            ("nothing", String::new(), false),
            ("no YAML", "a: [".to_owned(), false),
        ] {
            assert_eq!(is_same(&found, &own(&all)), expected, "{name}");
        }
    }

    #[test]
    fn settings_of_the_cluster_are_compared_by_what_they_say() {
        let ssh = node_config::ssh(Some("ssh-ed25519 A"));
        let own = Manifest::machine_config(node_config::SSH, &ssh).text();
        let other = |key: &str, more: Value| {
            let mut object = json!({
                "apiVersion": "machineconfiguration.openshift.io/v1",
                "kind": "MachineConfig",
                "metadata": {
                    "creationTimestamp": null,
                    "name": "99-worker-ssh",
                    "labels": { "machineconfiguration.openshift.io/role": "worker" },
                },
                "spec": {
                    "config": {
                        "ignition": { "config": { "replace": { "verification": {} } }, "security": { "tls": {} }, "version": "3.2.0" },
                        "passwd": { "users": [{ "name": "core", "sshAuthorizedKeys": [key] }] },
                        "storage": {},
                        "systemd": {},
                    },
                    "fips": false,
                    "kernelType": "",
                },
            });
            object["spec"]["config"]["storage"] = more;
            serde_saphyr::to_string(&object).unwrap()
        };
        let files = json!({ "files": [{ "path": "/etc/a" }] });
        for (name, found, expected) in [
            ("the same", other("ssh-ed25519 A", json!({})), true),
            ("a line", other("ssh-ed25519 A\n", json!({})), true),
            ("another key", other("ssh-ed25519 B", json!({})), false),
            ("a file", other("ssh-ed25519 A", files), false),
        ] {
            assert_eq!(is_same(&found, &own), expected, "{name}");
        }
    }
}
