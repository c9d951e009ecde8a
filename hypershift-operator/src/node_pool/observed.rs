//! The relevant state of Cluster API objects. Both forms of their conditions are read: stock
//! controllers of older releases write the older one.

use std::collections::BTreeMap;

use api::annotations::node_pool::{RELEASE_VERSION, TEMPLATE_HASH};
use kube::ResourceExt as _;
use kube::api::DynamicObject;
use serde_json::Value;

/// A machine.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Machine {
    pub(crate) name: String,
    pub(crate) uid: Option<String>,
    pub(crate) annotations: BTreeMap<String, String>,
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) finalizers: Vec<String>,
    pub(crate) is_deleting: bool,
    /// The name of the platform's object.
    pub(crate) infrastructure: String,
    pub(crate) user_data: String,
    pub(crate) node: Option<String>,
    pub(crate) kubelet: Option<String>,
    /// The operating system of its node.
    pub(crate) os_image: Option<String>,
    /// Its addresses within the network of the nodes, as it reports them.
    pub(crate) addresses: Vec<String>,
    /// Its last reported conditions.
    pub(crate) ready: ObservedCondition,
    pub(crate) healthy: ObservedCondition,
    /// Whether it can move to another host while it runs. Only of virtual machines whose provider reports it.
    pub(crate) live_migration: Option<ObservedCondition>,
}

/// An observed condition.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ObservedCondition {
    pub(crate) is_so: bool,
    pub(crate) reason: String,
    pub(crate) message: String,
}

/// A MachineDeployment or a MachineSet.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Workload {
    pub(crate) name: String,
    pub(crate) uid: Option<String>,
    pub(crate) annotations: BTreeMap<String, String>,
    pub(crate) is_deleting: bool,
    pub(crate) finalizers: Vec<String>,
    /// The desired number of machines.
    pub(crate) desired: Option<i32>,
    /// The number of machines, of updated ones, and of available ones.
    pub(crate) replicas: i32,
    pub(crate) up_to_date: i32,
    pub(crate) available: i32,
    /// Whether its controller has seen the last change.
    pub(crate) is_observed: bool,
    pub(crate) user_data: String,
    pub(crate) template: String,
    /// The name of its owner, if it has one.
    pub(crate) owner: Option<String>,
    /// Its specification as it is stored.
    pub(crate) spec: Value,
}

/// A machine as the platform has it.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct PlatformMachine {
    pub(crate) name: String,
    pub(crate) uid: Option<String>,
    pub(crate) spec: Value,
}

/// A platform's template.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Template {
    pub(crate) name: String,
    /// Whether the provider reports the capacity of a machine: the autoscaler needs it to scale up from zero.
    pub(crate) has_capacity: bool,
    /// `spec.template.spec` as it is stored.
    pub(crate) spec: Value,
    /// The machine that it stands for, if this operator has recorded it.
    pub(crate) hash: Option<String>,
}

// === impl Machine ===

impl Machine {
    pub(crate) fn read(object: &DynamicObject) -> Self {
        let data = &object.data;
        Self {
            name: object.name_any(),
            uid: object.uid(),
            annotations: object.annotations().clone(),
            labels: object.labels().clone(),
            finalizers: object.finalizers().to_vec(),
            is_deleting: object.metadata.deletion_timestamp.is_some(),
            infrastructure: text(data, "/spec/infrastructureRef/name").unwrap_or_default(),
            user_data: text(data, "/spec/bootstrap/dataSecretName").unwrap_or_default(),
            node: text(data, "/status/nodeRef/name"),
            kubelet: text(data, "/status/nodeInfo/kubeletVersion"),
            os_image: text(data, "/status/nodeInfo/osImage"),
            addresses: internal_addresses(data),
            ready: observed_condition(data, "Ready"),
            healthy: observed_condition(data, "NodeHealthy"),
            live_migration: None,
        }
    }

    /// The release that it was created with, or upgraded to.
    pub(crate) fn release(&self) -> Option<&str> {
        let version = self.annotations.get(RELEASE_VERSION.key());
        version.map(String::as_str).filter(|it| !it.is_empty())
    }
}

// === impl Workload ===

impl Workload {
    pub(crate) fn read(object: &DynamicObject) -> Self {
        let data = &object.data;
        let spec = "/spec/template/spec";
        let generation = object.metadata.generation.unwrap_or_default();
        let owners = object.owner_references().iter();
        Self {
            name: object.name_any(),
            uid: object.uid(),
            annotations: object.annotations().clone(),
            is_deleting: object.metadata.deletion_timestamp.is_some(),
            finalizers: object.finalizers().to_vec(),
            desired: number(data, "/spec/replicas"),
            replicas: number(data, "/status/replicas").unwrap_or_default(),
            up_to_date: number(data, "/status/upToDateReplicas")
                .or_else(|| number(data, "/status/updatedReplicas"))
                .unwrap_or_default(),
            available: number(data, "/status/availableReplicas").unwrap_or_default(),
            is_observed: data
                .pointer("/status/observedGeneration")
                .and_then(Value::as_i64)
                >= Some(generation),
            user_data: text(data, &format!("{spec}/bootstrap/dataSecretName")).unwrap_or_default(),
            template: text(data, &format!("{spec}/infrastructureRef/name")).unwrap_or_default(),
            owner: owners
                .into_iter()
                .find(|it| it.controller == Some(true))
                .map(|it| it.name.clone()),
            spec: data["spec"].clone(),
        }
    }

    /// Whether all machines are of the newest template, and in use.
    pub(crate) fn is_rolled_out(&self) -> bool {
        let desired = self.desired.unwrap_or_default();
        self.is_observed && [self.replicas, self.up_to_date, self.available] == [desired; 3]
    }
}

// === impl Template ===

impl Template {
    pub(crate) fn read(object: &DynamicObject) -> Self {
        let capacity = object.data.pointer("/status/capacity");
        Self {
            name: object.name_any(),
            has_capacity: capacity
                .and_then(Value::as_object)
                .is_some_and(|it| !it.is_empty()),
            spec: object
                .data
                .pointer("/spec/template/spec")
                .cloned()
                .unwrap_or_default(),
            hash: object.annotations().get(TEMPLATE_HASH.key()).cloned(),
        }
    }
}

/// A condition in v1beta2 or v1beta1 form. One that is not reported is not so, and has no reason.
pub(crate) fn observed_condition(data: &Value, about: &str) -> ObservedCondition {
    reported_condition(data, about).unwrap_or_default()
}

/// The same, if it is reported.
pub(crate) fn reported_condition(data: &Value, about: &str) -> Option<ObservedCondition> {
    let places = [
        "/status/conditions",
        "/status/v1beta2/conditions",
        "/status/deprecated/v1beta1/conditions",
    ];
    let mut lists = places
        .iter()
        .filter_map(|place| data.pointer(place)?.as_array());
    let found = lists.find_map(|list| list.iter().find(|it| it["type"] == about))?;
    let word = |name: &str| found[name].as_str().unwrap_or_default().to_owned();
    Some(ObservedCondition {
        is_so: word("status") == "True",
        reason: word("reason"),
        message: word("message"),
    })
}

/// The addresses by which other nodes reach a machine.
fn internal_addresses(data: &Value) -> Vec<String> {
    let addresses = data.pointer("/status/addresses").and_then(Value::as_array);
    let internal = addresses.into_iter().flatten();
    let internal = internal.filter(|it| it["type"] == "InternalIP");
    internal
        .filter_map(|it| it["address"].as_str().map(str::to_owned))
        .collect()
}

fn text(data: &Value, pointer: &str) -> Option<String> {
    let text = data.pointer(pointer)?.as_str()?;
    (!text.is_empty()).then(|| text.to_owned())
}

fn number(data: &Value, pointer: &str) -> Option<i32> {
    let number = data.pointer(pointer)?.as_i64()?;
    i32::try_from(number).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(value: Value) -> DynamicObject {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn conditions_are_read_in_v1beta1_and_v1beta2_form() {
        let newer = json!([{ "type": "Ready", "status": "True", "reason": "Ready" }]);
        for status in [
            json!({ "conditions": newer }),
            json!({ "conditions": [], "v1beta2": { "conditions": newer } }),
            json!({ "deprecated": { "v1beta1": { "conditions": newer } } }),
        ] {
            assert!(
                observed_condition(&json!({ "status": status }), "Ready").is_so,
                "{status}"
            );
        }
        assert_eq!(
            observed_condition(&json!({}), "Ready"),
            ObservedCondition::default()
        );
    }

    #[test]
    fn addresses_of_the_node_network_are_read() {
        let address = |kind: &str, address: &str| json!({ "type": kind, "address": address });
        let machine = object(json!({
            "metadata": { "name": "a" },
            "status": { "addresses": [
                address("Hostname", "a.example.com"),
                address("InternalIP", "10.0.0.7"),
                address("ExternalIP", "192.0.2.7"),
                address("InternalIP", "fe80::7"),
            ] },
        }));
        assert_eq!(Machine::read(&machine).addresses, ["10.0.0.7", "fe80::7"]);
        let machine = object(json!({ "metadata": { "name": "a" } }));
        assert!(Machine::read(&machine).addresses.is_empty());
    }

    #[test]
    fn a_rollout_is_complete_when_all_machines_are_updated() {
        let deployment = |status: Value| {
            let object = object(json!({
                "metadata": { "name": "a", "generation": 4 },
                "spec": { "replicas": 2 },
                "status": status,
            }));
            Workload::read(&object).is_rolled_out()
        };
        let done = json!({ "replicas": 2, "upToDateReplicas": 2, "availableReplicas": 2, "observedGeneration": 4 });
        assert!(deployment(done.clone()));
        for (field, value) in [
            ("replicas", 3),
            ("upToDateReplicas", 1),
            ("availableReplicas", 1),
            ("observedGeneration", 3),
        ] {
            let mut status = done.clone();
            status[field] = json!(value);
            assert!(!deployment(status), "{field}");
        }
    }
}
