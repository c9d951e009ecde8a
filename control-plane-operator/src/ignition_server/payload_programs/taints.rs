//! Taints that nodes register with, in the KubeletConfig of a pool. Pure.
//!
//! The machine-config-controller renders the kubelet's configuration from one KubeletConfig, and the daemon on a node
//! compares the file with what was rendered. So the taints have to be in the input of the programs, not in their result.

use serde_json::{Value, json};

use crate::components::kubeconfig::yaml;

const KIND: &str = "KubeletConfig";
/// The name of a KubeletConfig that has taints only.
const NAME: &str = "register-with-taints";
/// The line between two documents.
const SEPARATOR: &str = "---";

/// The configuration of a pool whose nodes register with these taints. Manifests of other kinds keep their text.
pub(super) fn with_taints(config: &str, taints: &[Value]) -> String {
    if taints.is_empty() {
        return config.to_owned();
    }
    let mut documents = documents(config);
    let mut is_known = false;
    for text in &mut documents {
        let Some(mut manifest) = kubelet_config(text) else {
            continue;
        };
        is_known = true;
        // What has another form is refused by the programs.
        if add(&mut manifest, taints).is_some() {
            *text = yaml(&manifest);
        }
    }
    if !is_known {
        documents.push(yaml(&json!({
            "apiVersion": "machineconfiguration.openshift.io/v1",
            "kind": KIND,
            "metadata": { "name": NAME },
            "spec": {
                "machineConfigPoolSelector": {
                    "matchLabels": { "machineconfiguration.openshift.io/mco-built-in": "" },
                },
                "kubeletConfig": { "registerWithTaints": taints },
            },
        })));
    }
    documents.join(&format!("{SEPARATOR}\n"))
}

/// The texts of all documents, each with a line break at its end.
fn documents(config: &str) -> Vec<String> {
    let mut documents = vec![String::new()];
    for line in config.lines() {
        if line.trim_end() == SEPARATOR {
            documents.push(String::new());
        } else if let Some(document) = documents.last_mut() {
            document.push_str(line);
            document.push('\n');
        }
    }
    documents.retain(|document| !document.trim().is_empty());
    documents
}

/// The manifest, if it is a KubeletConfig. Others, which may be large, are not parsed.
fn kubelet_config(text: &str) -> Option<Value> {
    if !text.contains(KIND) {
        return None;
    }
    let manifest: Value = serde_saphyr::from_str(text).ok()?;
    (manifest["kind"] == KIND).then_some(manifest)
}

/// Adds the taints to those of the user. A taint is identified by key and effect, and the pool's value counts.
fn add(manifest: &mut Value, taints: &[Value]) -> Option<()> {
    let config = section(section(manifest, "spec")?, "kubeletConfig")?.as_object_mut()?;
    let users: &[Value] = match config.get("registerWithTaints") {
        None | Some(Value::Null) => &[],
        Some(users) => users.as_array()?,
    };
    let kept = users
        .iter()
        .filter(|user| !taints.iter().any(|taint| is_same(user, taint)));
    let all: Vec<Value> = kept.chain(taints).cloned().collect();
    config.insert("registerWithTaints".to_owned(), Value::Array(all));
    Some(())
}

fn is_same(a: &Value, b: &Value) -> bool {
    a["key"] == b["key"] && a["effect"] == b["effect"]
}

/// A field that is an object, made if it is not there; nothing if its parent is something else.
fn section<'a>(parent: &'a mut Value, field: &str) -> Option<&'a mut Value> {
    let value = parent
        .as_object_mut()?
        .entry(field)
        .or_insert_with(|| json!({}));
    if value.is_null() {
        *value = json!({});
    }
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MACHINE_CONFIG: &str = "kind: MachineConfig\nspec: {mode: 0644}\n";

    fn taint(key: &str, value: &str) -> Value {
        json!({ "key": key, "value": value, "effect": "NoSchedule" })
    }

    fn kubelet(config: &Value) -> String {
        json!({ "kind": KIND, "metadata": { "name": "k" }, "spec": { "kubeletConfig": config } })
            .to_string()
    }

    #[test]
    fn configurations_without_taints_are_not_changed() {
        for config in ["", "a: [", MACHINE_CONFIG, "---\nkind: KubeletConfig\n"] {
            assert_eq!(with_taints(config, &[]), config);
        }
    }

    #[test]
    fn a_kubelet_config_is_added_if_the_pool_has_none() {
        let pool = [taint("gpu", "yes")];
        for (config, manifests) in [("", 1), (MACHINE_CONFIG, 2)] {
            let documents = documents(&with_taints(config, &pool));
            assert_eq!(documents.len(), manifests, "{config}");
            // As it is, whatever a parser would make of it.
            assert!(manifests == 1 || documents[0] == MACHINE_CONFIG);
            let added = kubelet_config(&documents[manifests - 1]).unwrap();
            assert_eq!(added["metadata"]["name"], NAME);
            let spec = &added["spec"];
            assert_eq!(spec["kubeletConfig"]["registerWithTaints"], json!(pool));
            let labels = &spec["machineConfigPoolSelector"]["matchLabels"];
            assert_eq!(labels["machineconfiguration.openshift.io/mco-built-in"], "");
        }
    }

    #[test]
    fn taints_are_added_to_the_kubelet_config_of_the_pool() {
        let pool = [taint("gpu", "yes")];
        for (name, config, expected) in [
            ("no section", Value::Null, json!(pool)),
            ("none", json!({ "maxPods": 100 }), json!(pool)),
            (
                "others",
                json!({ "registerWithTaints": [taint("disk", "")] }),
                json!([taint("disk", ""), taint("gpu", "yes")]),
            ),
            (
                "the same with another value",
                json!({ "registerWithTaints": [taint("gpu", "no")] }),
                json!(pool),
            ),
            (
                "the same key with another effect",
                json!({ "registerWithTaints": [{ "key": "gpu", "effect": "NoExecute" }] }),
                json!([{ "key": "gpu", "effect": "NoExecute" }, taint("gpu", "yes")]),
            ),
        ] {
            let text = format!("{MACHINE_CONFIG}---\n{}\n", kubelet(&config));
            let documents = documents(&with_taints(&text, &pool));
            assert_eq!(documents.len(), 2, "{name}");
            let changed = kubelet_config(&documents[1]).unwrap();
            let changed = &changed["spec"]["kubeletConfig"];
            assert_eq!(changed["registerWithTaints"], expected, "{name}");
            assert_eq!(changed["maxPods"], config["maxPods"], "{name}");
        }
    }

    /// The programs name what is wrong with them.
    #[test]
    fn kubelet_configs_of_another_form_are_not_changed() {
        let pool = [taint("gpu", "yes")];
        for config in [json!(1), json!({ "registerWithTaints": "gpu" })] {
            let text = format!("{}\n", kubelet(&config));
            assert_eq!(with_taints(&text, &pool), text);
        }
    }
}
