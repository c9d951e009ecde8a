//! CRDs of other projects that providers use: their groups have no private names.
//!
//! Such a CRD is shared by all controllers of a cluster, and installed as it is. The table names each kind, so that
//! nothing is installed that only the other project itself uses.

use api::group::V1BETA1_CONTRACT;
use serde_json::{Value, json};

use crate::crds::{Batch, Document, schema};

/// The group of the kinds that the provider for OpenStack uses.
pub(crate) const OPENSTACK: &str = "openstack.k-orc.cloud";
/// The group of the kinds of the provider for Agent.
pub(crate) const AGENT: &str = "capi-provider.agent-install.openshift.io";

/// Their kinds, by group and plural.
const KINDS: [(&str, &str); 4] = [
    (OPENSTACK, "images"),
    (AGENT, "agentclusters"),
    (AGENT, "agentmachines"),
    (AGENT, "agentmachinetemplates"),
];

/// Whether an object is one of these CRDs.
pub(crate) fn is_shared(object: &Value) -> bool {
    let spec = &object["spec"];
    object["kind"] == "CustomResourceDefinition"
        && KINDS
            .iter()
            .any(|(group, plural)| spec["group"] == *group && spec["names"]["plural"] == *plural)
}

/// Takes these CRDs out of a batch, as they are installed.
pub(crate) fn take(batch: &mut Batch) -> Vec<Value> {
    let documents = std::mem::take(&mut batch.documents);
    let (shared, others): (Vec<_>, Vec<_>) = documents
        .into_iter()
        .partition(|document| is_shared(&document.value));
    batch.documents = others;
    shared.into_iter().map(installed).collect()
}

/// Without what the API server reports, and without descriptions.
fn installed(document: Document) -> Value {
    let mut crd = document.value;
    if let Some(root) = crd.as_object_mut() {
        root.shift_remove("status");
    }
    if let Some(versions) = crd
        .pointer_mut("/spec/versions")
        .and_then(Value::as_array_mut)
    {
        versions
            .iter_mut()
            .filter_map(|version| version.pointer_mut("/schema/openAPIV3Schema"))
            .for_each(schema::strip_descriptions);
    }
    if crd["spec"]["group"] == AGENT {
        add_contract(&mut crd);
    }
    crd
}

/// Adds the label without which Cluster API does not find the version of a provider's kind.
fn add_contract(crd: &mut Value) {
    let versions = crd["spec"]["versions"].as_array().into_iter().flatten();
    let served: Vec<_> = versions
        .filter(|version| version["served"] == true)
        .filter_map(|version| version["name"].as_str())
        .collect();
    let served = served.join("_");
    let labels = &mut crd["metadata"]["labels"];
    if labels.is_null() {
        *labels = json!({});
    }
    if let Some(labels) = labels.as_object_mut() {
        labels
            .entry(V1BETA1_CONTRACT)
            .or_insert_with(|| served.into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn crd(group: &str, plural: &str) -> Value {
        json!({
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": { "name": format!("{plural}.{group}") },
            "spec": {
                "group": group,
                "names": { "plural": plural },
                "versions": [
                    { "name": "v1alpha1", "served": true, "storage": false,
                      "schema": { "openAPIV3Schema": { "description": "long", "type": "object" } } },
                    { "name": "v1beta1", "served": true, "storage": true },
                    { "name": "v1", "served": false, "storage": false },
                ],
            },
            "status": { "storedVersions": ["v1beta1"] },
        })
    }

    #[test]
    fn kinds_that_providers_use_are_shared() {
        for (group, plural, expected) in [
            (OPENSTACK, "images", true),
            (OPENSTACK, "networks", false),
            (AGENT, "agentmachines", true),
            (AGENT, "images", false),
            ("cluster.x-k8s.io", "machines", false),
        ] {
            assert_eq!(is_shared(&crd(group, plural)), expected, "{plural}.{group}");
        }
        assert!(!is_shared(&json!({ "kind": "Service" })));
    }

    #[test]
    fn shared_crds_are_taken_out_and_the_others_are_left() {
        let given = [
            crd("cluster.x-k8s.io", "machines"),
            crd(OPENSTACK, "images"),
            crd(AGENT, "agentclusters"),
        ];
        let mut batch = Batch::of_values("test", given.to_vec());
        let shared = take(&mut batch);
        let left: Vec<_> = batch.documents.iter().map(|it| &it.value).collect();
        assert_eq!(left, [&given[0]]);
        let [image, cluster] = &shared[..] else {
            panic!("{shared:?}");
        };
        for crd in [image, cluster] {
            assert!(crd["status"].is_null(), "{crd}");
            let schema = &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
            assert_eq!(*schema, json!({ "type": "object" }));
        }
        assert!(image["metadata"]["labels"].is_null(), "{image}");
        assert_eq!(
            cluster["metadata"]["labels"],
            json!({ "cluster.x-k8s.io/v1beta1": "v1alpha1_v1beta1" })
        );
    }

    #[test]
    fn a_contract_label_is_kept() {
        let mut given = crd(AGENT, "agentclusters");
        let labels = json!({ "cluster.x-k8s.io/v1beta1": "v1beta1" });
        given["metadata"]["labels"] = labels.clone();
        let mut batch = Batch::of_values("test", vec![given]);
        let shared = take(&mut batch);
        assert_eq!(shared[0]["metadata"]["labels"], labels);
    }
}
