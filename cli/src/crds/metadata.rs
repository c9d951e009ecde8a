//! The metadata of a private CRD: the name, the labels, and the annotations that still mean something.

use serde_json::{Map, Value};

/// What an object to be created may carry. Everything else (UID, owners, finalizers, managed fields, times...) belongs
/// to the object that the CRD was read from.
const KEPT: [&str; 3] = ["name", "labels", "annotations"];

/// Annotations that speak of the object they were read from, of its conversion webhook or of its history.
const DROPPED_ANNOTATIONS: [&str; 4] = [
    "kubectl.kubernetes.io/last-applied-configuration",
    "crd-migration.cluster.x-k8s.io/observed-generation",
    "service.beta.openshift.io/inject-cabundle",
    "service.alpha.openshift.io/inject-cabundle",
];
/// cert-manager's annotations all ask for a CA to be written into the conversion stanza.
const CERT_MANAGER: &str = "cert-manager.io/";

/// Keeps what a new object may carry, under a new name.
pub(super) fn clean(metadata: &mut Map<String, Value>, name: String) {
    metadata.retain(|key, _| KEPT.contains(&key.as_str()));
    metadata.insert("name".to_owned(), name.into());
    if let Some(Value::Object(annotations)) = metadata.get_mut("annotations") {
        annotations.retain(|key, _| !dropped(key));
    }
    metadata
        .retain(|_, value| !value.is_null() && value.as_object().is_none_or(|map| !map.is_empty()));
}

fn dropped(annotation: &str) -> bool {
    annotation.starts_with(CERT_MANAGER) || DROPPED_ANNOTATIONS.contains(&annotation)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn cleaned(mut metadata: Value) -> Value {
        clean(metadata.as_object_mut().unwrap(), "new".to_owned());
        metadata
    }

    #[test]
    fn drops_what_belongs_to_the_original() {
        let metadata = json!({
            "annotations": {
                "cert-manager.io/inject-ca-from": "a/b",
                "controller-gen.kubebuilder.io/version": "v0.20.0",
                "crd-migration.cluster.x-k8s.io/observed-generation": "1",
                "kubectl.kubernetes.io/last-applied-configuration": "{}",
                "service.beta.openshift.io/inject-cabundle": "true",
            },
            "creationTimestamp": null,
            "finalizers": ["customresourcecleanup.apiextensions.k8s.io"],
            "generation": 3,
            "labels": {"cluster.x-k8s.io/v1beta1": "v1beta1"},
            "managedFields": [],
            "name": "old",
            "ownerReferences": [{"uid": "1"}],
            "resourceVersion": "12",
            "uid": "2",
        });
        assert_eq!(
            cleaned(metadata).to_string(),
            r#"{"annotations":{"controller-gen.kubebuilder.io/version":"v0.20.0"},"#.to_owned()
                + r#""labels":{"cluster.x-k8s.io/v1beta1":"v1beta1"},"name":"new"}"#
        );
    }

    #[test]
    fn leaves_no_empty_maps() {
        let metadata =
            json!({"name": "old", "labels": null, "annotations": {"cert-manager.io/x": "y"}});
        assert_eq!(cleaned(metadata), json!({"name": "new"}));
    }
}
