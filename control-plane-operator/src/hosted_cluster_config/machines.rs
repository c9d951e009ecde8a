//! Cluster API Machines, and their Nodes. Pure.

use std::collections::BTreeMap;

use api::group::{self, CapiTypes};
use k8s_openapi::api::core::v1::Node;
use kube::ResourceExt as _;
use kube::api::{ApiResource, DynamicObject};
use serde_json::Value;

/// The storage version.
const VERSION: &str = "v1beta2";

/// A Machine.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Machine {
    pub(super) name: String,
    pub(super) labels: BTreeMap<String, String>,
    pub(super) annotations: BTreeMap<String, String>,
    /// Provider ID.
    pub(super) provider_id: Option<String>,
    /// Name of its Node.
    pub(super) node: Option<String>,
    /// Type and address, from the infrastructure provider.
    pub(super) addresses: Vec<(String, String)>,
    pub(super) is_deleted: bool,
    /// Name of its bootstrap Secret.
    pub(super) data_secret: Option<String>,
    /// UID of its MachineSet.
    pub(super) owner: Option<String>,
    /// Name of its object of the infrastructure provider.
    pub(super) infrastructure: Option<String>,
    pub(super) phase: Option<String>,
}

/// Returns the API resource of Machines.
pub(super) fn resource(capi_types: CapiTypes) -> ApiResource {
    let group = group::core(capi_types);
    ApiResource {
        api_version: format!("{group}/{VERSION}"),
        group,
        version: VERSION.to_owned(),
        kind: "Machine".to_owned(),
        plural: "machines".to_owned(),
    }
}

/// Returns the API resource of MachineSets.
pub(super) fn set_resource(capi_types: CapiTypes) -> ApiResource {
    ApiResource {
        kind: "MachineSet".to_owned(),
        plural: "machinesets".to_owned(),
        ..resource(capi_types)
    }
}

/// Finds the Machine of a Node, by node reference or by provider ID.
pub(super) fn of_node<'a>(machines: &'a [Machine], node: &Node) -> Option<&'a Machine> {
    let name = node.name_any();
    let by_reference = machines
        .iter()
        .find(|machine| machine.node.as_deref() == Some(&name));
    let provider_id = node
        .spec
        .as_ref()
        .and_then(|spec| spec.provider_id.as_deref());
    let same = |machine: &&Machine| {
        provider_id.is_some_and(|id| !id.is_empty() && machine.provider_id.as_deref() == Some(id))
    };
    by_reference.or_else(|| machines.iter().find(same))
}

// === impl Machine ===

impl Machine {
    /// Parses an object.
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
            infrastructure: text("/spec/infrastructureRef/name"),
            phase: text("/status/phase"),
        }
    }

    /// Whether the infrastructure reports this address or name.
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
    fn nodes_match_machines_by_name_or_provider_id() {
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
