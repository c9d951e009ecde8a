//! What a release brings for the Operator Lifecycle Manager: its kinds, by upstream's definitions, its namespaces, and its
//! initial objects. The cluster-version-operator applies them in a hosted cluster.

use anyhow::{Context, Result};
use serde_json::{Value, json};

use crate::images::File;
use crate::modules::Module;

/// Where a release image has the manifests of its cluster-version-operator.
const DIRECTORY: &str = "/manifests";
/// The Go module with the definitions.
const KINDS: &str = "github.com/operator-framework/api";
const OPERATORS: &str = "openshift-operators";
const NAMESPACES: [&str; 3] = [
    "openshift-marketplace",
    "openshift-operator-lifecycle-manager",
    OPERATORS,
];
/// `ClusterOperators` that OLM reports in.
const CLUSTER_OPERATORS: [&str; 2] = [
    "operator-lifecycle-manager",
    "operator-lifecycle-manager-catalog",
];

/// The files of a release image.
pub(super) async fn manifests() -> Result<Vec<File>> {
    let directory = Module::Olm.sources_of(KINDS).await?.join("crds");
    let mut files = vec![file("0000_50_olm_10_objects", &objects())];
    let entries = std::fs::read_dir(&directory)
        .with_context(|| format!("cannot read {}", directory.display()))?;
    for entry in entries {
        let path = entry?.path();
        if path.extension().is_none_or(|extension| extension != "yaml") {
            continue;
        }
        let text = std::fs::read_to_string(&path)
            .with_context(|| format!("cannot read {}", path.display()))?;
        let mut crd: Value = serde_saphyr::from_str(&text)
            .with_context(|| format!("{} is not a manifest", path.display()))?;
        // With them, the largest one does not fit into the annotation that `oc apply` writes.
        remove_descriptions(&mut crd);
        let name = crd["metadata"]["name"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        files.push(file(&format!("0000_50_olm_00_{name}"), &[crd]));
    }
    Ok(files)
}

fn file(name: &str, objects: &[Value]) -> File {
    // JSON is YAML.
    let texts: Vec<String> = objects.iter().map(Value::to_string).collect();
    File::text(format!("{DIRECTORY}/{name}.yaml"), texts.join("\n---\n"))
}

fn objects() -> Vec<Value> {
    // Else the API server enforces the level restricted, as the feature gates of OpenShift have it.
    let labels = json!({ "pod-security.kubernetes.io/enforce": "baseline" });
    let namespace = |name| {
        json!({
            "apiVersion": "v1", "kind": "Namespace",
            "metadata": { "name": name, "labels": labels },
        })
    };
    let cluster_operator = |name| {
        json!({
            "apiVersion": "config.openshift.io/v1", "kind": "ClusterOperator",
            "metadata": { "name": name }, "spec": {},
        })
    };
    let mut all = Vec::from(NAMESPACES.map(namespace));
    all.extend(CLUSTER_OPERATORS.map(cluster_operator));
    all.push(json!({
        "apiVersion": "operators.coreos.com/v1", "kind": "OLMConfig", "metadata": { "name": "cluster" },
    }));
    all.push(json!({
        "apiVersion": "operators.coreos.com/v1", "kind": "OperatorGroup",
        "metadata": { "name": "global-operators", "namespace": OPERATORS },
        "spec": {},
    }));
    all
}

/// Removes the documentation of fields. A property may have the name `description`.
fn remove_descriptions(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|name, value| name != "description" || !value.is_string());
            fields.values_mut().for_each(remove_descriptions);
        }
        Value::Array(items) => items.iter_mut().for_each(remove_descriptions),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_documentation_is_removed() {
        let mut schema = json!({
            "description": "text",
            "properties": { "description": { "type": "string", "description": "text" } },
            "items": [{ "description": "text" }],
        });
        remove_descriptions(&mut schema);
        let expected = json!({
            "properties": { "description": { "type": "string" } }, "items": [{}],
        });
        assert_eq!(schema, expected);
    }
}
