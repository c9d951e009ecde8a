//! Machines of Cluster API, as far as they matter here, and which of them is which Node. Pure.

use std::collections::BTreeMap;

use api::group::{self, Side};
use k8s_openapi::api::core::v1::Node;
use kube::ResourceExt as _;
use kube::api::{ApiResource, DynamicObject};
use serde_json::Value;

/// The version that stock controllers store.
const VERSION: &str = "v1beta2";

/// A Machine.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Machine {
    pub(super) name: String,
    pub(super) labels: BTreeMap<String, String>,
    pub(super) annotations: BTreeMap<String, String>,
    /// The infrastructure's name of it.
    pub(super) provider_id: Option<String>,
    /// The Node that it has become.
    pub(super) node: Option<String>,
    /// Type and address, as the infrastructure says.
    pub(super) addresses: Vec<(String, String)>,
    pub(super) is_deleted: bool,
    /// The Secret that it was made with.
    pub(super) data_secret: Option<String>,
    /// What looks after it: a MachineSet.
    pub(super) owner: Option<String>,
}

/// The kind on a side.
pub(super) fn resource(side: Side) -> ApiResource {
    let group = group::core(side);
    ApiResource {
        api_version: format!("{group}/{VERSION}"),
        group,
        version: VERSION.to_owned(),
        kind: "Machine".to_owned(),
        plural: "machines".to_owned(),
    }
}

/// The kind beside it: what looks after Machines.
pub(super) fn set_resource(side: Side) -> ApiResource {
    ApiResource {
        kind: "MachineSet".to_owned(),
        plural: "machinesets".to_owned(),
        ..resource(side)
    }
}

/// The Machine of a Node: the one that says so, or the one of the same provider's name.
pub(super) fn of_node<'a>(machines: &'a [Machine], node: &Node) -> Option<&'a Machine> {
    let name = node.name_any();
    let said = machines
        .iter()
        .find(|machine| machine.node.as_deref() == Some(&name));
    let provider_id = node
        .spec
        .as_ref()
        .and_then(|spec| spec.provider_id.as_deref());
    let same = |machine: &&Machine| {
        provider_id.is_some_and(|id| !id.is_empty() && machine.provider_id.as_deref() == Some(id))
    };
    said.or_else(|| machines.iter().find(same))
}

// === impl Machine ===

impl Machine {
    /// Reads what the API server gives.
    pub(super) fn read(object: &DynamicObject) -> Self {
        let text = |pointer: &str| {
            let found = object.data.pointer(pointer).and_then(Value::as_str);
            found.filter(|text| !text.is_empty()).map(str::to_owned)
        };
        Self {
            name: object.name_any(),
            labels: object.labels().clone(),
            annotations: object.annotations().clone(),
            provider_id: text("/spec/providerID"),
            node: text("/status/nodeRef/name"),
            addresses: addresses(&object.data["status"]["addresses"]),
            is_deleted: object.metadata.deletion_timestamp.is_some(),
            data_secret: text("/spec/bootstrap/dataSecretName"),
            owner: controller(object),
        }
    }

    /// Whether the infrastructure gives it this address or name.
    pub(super) fn has_address(&self, address: &str) -> bool {
        let mut addresses = self.addresses.iter();
        addresses.any(|(_, known)| known.eq_ignore_ascii_case(address))
    }
}

fn controller(object: &DynamicObject) -> Option<String> {
    let mut owners = object.owner_references().iter();
    let owner = owners.find(|owner| owner.controller == Some(true))?;
    Some(owner.uid.clone())
}

fn addresses(list: &Value) -> Vec<(String, String)> {
    let entries = list.as_array().into_iter().flatten();
    entries
        .filter_map(|entry| {
            let text = |field: &str| entry[field].as_str().map(str::to_owned);
            Some((text("type")?, text("address")?))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn node(name: &str, provider_id: &str) -> Node {
        let node = json!({ "metadata": { "name": name }, "spec": { "providerID": provider_id } });
        serde_json::from_value(node).unwrap()
    }

    #[test]
    fn a_node_is_found_by_name_or_by_the_providers() {
        let object = json!({
            "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine",
            "metadata": { "name": "m-1" },
            "spec": { "providerID": "aws:///a/i-1" },
            "status": { "addresses": [{ "type": "InternalIP", "address": "10.0.0.5" }] },
        });
        let first = Machine::read(&serde_json::from_value(object).unwrap());
        assert!(first.has_address("10.0.0.5"));
        let second = Machine {
            name: "m-2".to_owned(),
            node: Some("n-2".to_owned()),
            ..Machine::default()
        };
        let machines = [first, second];
        for (node, expected) in [
            (node("n-1", "aws:///a/i-1"), Some("m-1")),
            (node("n-2", ""), Some("m-2")),
            (node("n-3", ""), None),
            (node("n-3", "aws:///a/i-3"), None),
        ] {
            let found = of_node(&machines, &node).map(|machine| machine.name.as_str());
            assert_eq!(found, expected);
        }
    }
}
