//! The definitions of the custom resources.

use api::group::CapiTypes;
use serde_json::{Value, json};

use crate::exchanges::on_side;

/// Two small definitions; the second one's kind is deprecated, for the sake of the warning.
pub(crate) fn crds(capi_types: CapiTypes) -> Vec<Value> {
    let spec = json!({
        "type": "object",
        "required": ["clusterName"],
        "properties": {
            "clusterName": { "type": "string" },
            "replicas": { "type": "integer" },
            "infrastructureRef": {
                "type": "object",
                "properties": {
                    "apiGroup": { "type": "string" },
                    "kind": { "type": "string" },
                    "name": { "type": "string" },
                },
            },
        },
    });
    let status = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
    let scale = json!({
        "specReplicasPath": ".spec.replicas",
        "statusReplicasPath": ".status.replicas",
        "labelSelectorPath": ".status.selector",
    });
    let crd = |group: &str, plural: &str, kind: &str, deprecated: bool| {
        json!({
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {
                "name": format!("{plural}.{group}"),
                "labels": { "cluster.x-k8s.io/v1beta2": "v1beta2" },
            },
            "spec": {
                "group": group,
                "names": { "kind": kind, "plural": plural, "categories": ["cluster-api"] },
                "scope": "Namespaced",
                "versions": [{
                    "name": "v1beta2",
                    "served": true,
                    "storage": true,
                    "deprecated": deprecated,
                    "schema": { "openAPIV3Schema": {
                        "type": "object",
                        "properties": { "spec": spec, "status": status },
                    }},
                    "subresources": { "status": {}, "scale": scale },
                    // Without the default column, which is an age.
                    "additionalPrinterColumns": [
                        { "name": "Cluster", "type": "string", "jsonPath": ".spec.clusterName" },
                    ],
                }],
            },
        })
    };
    vec![
        crd(&on_side(capi_types, "{core}"), "machines", "Machine", false),
        crd(
            &on_side(capi_types, "{infra}"),
            "devmachines",
            "DevMachine",
            true,
        ),
    ]
}
