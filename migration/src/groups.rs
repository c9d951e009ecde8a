//! Which groups are moved, which way, and the swap of their names in an object.

use api::group::{CapiTypes, GroupTable};
use capi_translate::Rules;
use capi_translate::json::{Documents, Json};
use capi_translate::place::{Action, Node, Shape};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// kubectl's memory of what was applied: a whole object as text, of which only kubectl takes notice.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";
/// Kinds whose `variables` hold the user's own values.
const TOPOLOGY: [&str; 2] = ["Cluster", "ClusterClass"];

/// The direction of a migration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// From the standard groups to the private ones.
    Forward,
    /// Back.
    Reverse,
}

/// The pairs of groups and the way between them.
#[derive(Debug, Clone)]
pub struct Groups {
    rules: Rules,
    direction: Direction,
}

// === impl Direction ===

impl Direction {
    /// The types that objects are moved from.
    pub fn source(self) -> CapiTypes {
        match self {
            Self::Forward => CapiTypes::Standard,
            Self::Reverse => CapiTypes::Private,
        }
    }

    /// The types that objects are moved to.
    pub fn target(self) -> CapiTypes {
        self.source().other()
    }

    /// The other way.
    #[must_use]
    pub fn inverse(self) -> Self {
        match self {
            Self::Forward => Self::Reverse,
            Self::Reverse => Self::Forward,
        }
    }
}

// === impl Groups ===

impl Groups {
    /// The pairs of `table`, moved in `direction`.
    pub fn new(table: GroupTable, direction: Direction) -> Self {
        Self {
            rules: Rules::new(table),
            direction,
        }
    }

    /// The way.
    pub fn direction(&self) -> Direction {
        self.direction
    }

    /// The pairs.
    pub fn table(&self) -> &GroupTable {
        self.rules.table()
    }

    /// Whether objects of `group` are moved.
    pub fn is_source(&self, group: &str) -> bool {
        self.capi_types(group) == Some(self.direction.source())
    }

    /// Whether moved objects end up in `group`.
    pub fn is_target(&self, group: &str) -> bool {
        self.capi_types(group) == Some(self.direction.target())
    }

    /// The other name of a group.
    pub fn swap(&self, group: &str) -> Option<&str> {
        self.table().swap(group.as_bytes())
    }

    /// The other name of an `apiVersion`; of others, itself.
    pub fn swap_api_version(&self, api_version: &str) -> String {
        let swapped = self.table().swap_api_version(api_version.as_bytes());
        swapped.map_or_else(
            || api_version.to_owned(),
            |(group, rest)| format!("{group}{}", String::from_utf8_lossy(rest)),
        )
    }

    /// Swaps every name of a group at a place for one; applying it twice returns the object.
    pub fn swap_object(&self, kind: &str, body: &mut Value) {
        let root = root(kind);
        self.walk(root, body);
        let annotations = body.pointer_mut("/metadata/annotations");
        if let Some(Value::String(text)) = annotations.and_then(|all| all.get_mut(LAST_APPLIED))
            && let Some(swapped) = self.swap_json(root, text)
        {
            *text = swapped;
        }
    }

    /// Where a body that is not moved names a group that is: JSON pointers.
    pub fn mentions(&self, body: &Value) -> Vec<String> {
        let mut found = Vec::new();
        self.find(Node::Object(Shape::Plain), body, "", &mut found);
        found
    }

    fn capi_types(&self, group: &str) -> Option<CapiTypes> {
        self.table()
            .find(group.as_bytes())
            .map(|(_, capi_types)| capi_types)
    }

    fn walk(&self, node: Node, value: &mut Value) {
        match value {
            Value::String(text) => {
                if let Some(swapped) = self.swap_text(node, text) {
                    *text = swapped;
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.walk(node, item)),
            Value::Object(fields) if node != Node::Opaque => {
                for (name, field) in fields {
                    self.walk(node.child(name.as_bytes()), field);
                }
            }
            _ => {}
        }
    }

    fn find(&self, node: Node, value: &Value, at: &str, found: &mut Vec<String>) {
        match value {
            Value::String(text) if self.swap_text(node, text).is_some() => {
                found.push(at.to_owned());
            }
            Value::Array(items) => {
                for (index, item) in items.iter().enumerate() {
                    self.find(node, item, &format!("{at}/{index}"), found);
                }
            }
            Value::Object(fields) => {
                for (name, field) in fields {
                    let child = node.child(name.as_bytes());
                    self.find(child, field, &format!("{at}/{name}"), found);
                }
            }
            _ => {}
        }
    }

    fn swap_text(&self, node: Node, text: &str) -> Option<String> {
        match node.action()? {
            Action::ApiVersion => {
                let (group, rest) = self.table().swap_api_version(text.as_bytes())?;
                Some(format!("{group}{}", String::from_utf8_lossy(rest)))
            }
            Action::Group => self.swap(text).map(str::to_owned),
            _ => None,
        }
    }

    /// Swaps what kubectl remembers byte for byte, so that its next `apply` finds the object that it expects. What is no
    /// JSON stays as it is: only kubectl uses it.
    fn swap_json(&self, root: Node, text: &str) -> Option<String> {
        let mut json = Json::new(
            &self.rules,
            capi_translate::Direction::Request,
            Documents::One,
            root,
        );
        let mut swapped = Vec::with_capacity(text.len());
        json.push(text.as_bytes(), &mut swapped).ok()?;
        json.finish(&mut swapped).ok()?;
        String::from_utf8(swapped).ok()
    }
}

fn root(kind: &str) -> Node {
    Node::Object(if TOPOLOGY.contains(&kind) {
        Shape::Topology
    } else {
        Shape::Plain
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn swapping_groups_twice_returns_the_object() {
        let groups = Groups::new(GroupTable::default(), Direction::Forward);
        let object = json!({
            "apiVersion": "cluster.x-k8s.io/v1beta2",
            "metadata": {
                "labels": {"x": "cluster.x-k8s.io/v1beta2"},
                "annotations": {
                    "cluster.x-k8s.io/cloned-from-groupkind": "DevMachineTemplate.infrastructure.cluster.x-k8s.io",
                    LAST_APPLIED: "{ \"apiVersion\" : \"cluster.x-k8s.io/v1beta2\", \"b\":1,\"a\":2 }\n",
                },
                "finalizers": ["addons.cluster.x-k8s.io", "cluster.x-k8s.io/machineset"],
                "ownerReferences": [{"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster"}],
                "managedFields": [{"apiVersion": "cluster.x-k8s.io/v1beta2", "fieldsV1": {"apiVersion": "cluster.x-k8s.io/v1"}}],
            },
            "spec": {
                "infrastructureRef": {"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "DevCluster"},
                "topology": {"variables": [{"value": {"apiVersion": "cluster.x-k8s.io/v1beta2"}}]},
            },
        });
        let mut swapped = object.clone();
        groups.swap_object("Cluster", &mut swapped);
        for (pointer, expected) in [
            ("/apiVersion", "cluster.hypershift.openshift.io/v1beta2"),
            ("/metadata/labels/x", "cluster.x-k8s.io/v1beta2"),
            ("/metadata/finalizers/0", "addons.cluster.x-k8s.io"),
            ("/metadata/finalizers/1", "cluster.x-k8s.io/machineset"),
            (
                "/metadata/annotations/cluster.x-k8s.io~1cloned-from-groupkind",
                "DevMachineTemplate.infrastructure.cluster.x-k8s.io",
            ),
            (
                "/metadata/annotations/kubectl.kubernetes.io~1last-applied-configuration",
                "{ \"apiVersion\" : \"cluster.hypershift.openshift.io/v1beta2\", \"b\":1,\"a\":2 }\n",
            ),
            (
                "/metadata/ownerReferences/0/apiVersion",
                "cluster.hypershift.openshift.io/v1beta2",
            ),
            (
                "/metadata/managedFields/0/fieldsV1/apiVersion",
                "cluster.x-k8s.io/v1",
            ),
            (
                "/spec/infrastructureRef/apiGroup",
                "infrastructure.cluster.hypershift.openshift.io",
            ),
            (
                "/spec/topology/variables/0/value/apiVersion",
                "cluster.x-k8s.io/v1beta2",
            ),
        ] {
            assert_eq!(
                swapped.pointer(pointer),
                Some(&json!(expected)),
                "{pointer}"
            );
        }
        groups.swap_object("Cluster", &mut swapped);
        assert_eq!(swapped, object);
    }
}
