//! What the autoscaler sees of Cluster API's objects, and of the nodes and pods of the hosted cluster. Pure.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::quantity::{bytes, thousandths};

const MIN: &str = "cluster.x-k8s.io/cluster-api-autoscaler-node-group-min-size";
const MAX: &str = "cluster.x-k8s.io/cluster-api-autoscaler-node-group-max-size";
const PAUSED: &str = "cluster.x-k8s.io/paused";
/// What a machine has, by annotations.
const PROCESSORS: &str = "machine.openshift.io/vCPU";
const MEMORY: &str = "machine.openshift.io/memoryMb";
const LABELS: &str = "capacity.cluster-autoscaler.kubernetes.io/labels";
const TAINTS: &str = "capacity.cluster-autoscaler.kubernetes.io/taints";
/// The mark of a machine that is deleted first.
pub(crate) const DELETE: &str = "cluster.x-k8s.io/delete-machine";
/// Taints that nodes get and lose again, which say nothing about the next node.
const PASSING: [&str; 3] = [
    "node.kubernetes.io/",
    "node.cloudprovider.kubernetes.io/",
    "aws-node-termination-handler/",
];

/// A MachineDeployment, or a MachineSet without one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Group {
    pub(crate) plural: &'static str,
    pub(crate) name: String,
    pub(crate) min: i64,
    pub(crate) max: i64,
    pub(crate) replicas: i64,
    pub(crate) machines: Vec<Machine>,
    /// What the first machine has, if that is known without one.
    pub(crate) first: Option<Shape>,
}

/// A machine that is not being deleted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Machine {
    pub(crate) name: String,
    pub(crate) node: Option<String>,
    pub(crate) is_marked: bool,
}

/// What a node has.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Shape {
    /// In thousandths.
    pub(crate) processors: i64,
    /// In bytes.
    pub(crate) memory: i64,
    pub(crate) labels: BTreeMap<String, String>,
    /// Key, value, effect.
    pub(crate) taints: Vec<[String; 3]>,
}

/// A node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Node {
    pub(crate) name: String,
    pub(crate) is_ready: bool,
    pub(crate) shape: Shape,
}

/// A pod that has not ended.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Pod {
    pub(crate) name: String,
    pub(crate) node: Option<String>,
    /// The scheduler has found no node for it.
    pub(crate) is_unschedulable: bool,
    /// It belongs to its node, and starts and ends with it.
    pub(crate) is_of_node: bool,
    pub(crate) priority: i64,
    pub(crate) processors: i64,
    pub(crate) memory: i64,
    pub(crate) selector: BTreeMap<String, String>,
    pub(crate) tolerations: Vec<Value>,
}

/// Whether a MachineDeployment or MachineSet has bounds between which it is scaled, and is not paused.
pub(crate) fn is_scaled(object: &Value) -> bool {
    let is_paused = !object["metadata"]["annotations"][PAUSED].is_null();
    !is_paused && bounds(object).is_some_and(|(min, max)| max > min)
}

fn bounds(object: &Value) -> Option<(i64, i64)> {
    let annotations = &object["metadata"]["annotations"];
    let bound = |key: &str| annotations[key].as_str()?.parse().ok();
    Some((bound(MIN)?, bound(MAX)?))
}

// === impl Group ===

impl Group {
    /// Reads a group, unless it may not be scaled.
    pub(crate) fn read(
        plural: &'static str,
        object: &Value,
        machines: Vec<Machine>,
        template: &Value,
    ) -> Option<Self> {
        let (min, max) = bounds(object)?;
        let replicas = object["spec"]["replicas"].as_i64().unwrap_or(1);
        let first = first(&object["metadata"]["annotations"], template);
        let may_start = replicas > 0 || first.is_some();
        (is_scaled(object) && may_start).then(|| Self {
            plural,
            name: text(&object["metadata"]["name"]),
            min,
            max,
            replicas,
            machines,
            first,
        })
    }

    /// The nodes of its machines that are ready.
    pub(crate) fn ready<'a>(&self, nodes: &'a [Node]) -> Vec<&'a Node> {
        let names = self.machines.iter().filter_map(|it| it.node.as_ref());
        let nodes = names.filter_map(|name| nodes.iter().find(|node| node.name == *name));
        nodes.filter(|node| node.is_ready).collect()
    }

    /// What its next machine has: the same as one that is there.
    pub(crate) fn shape(&self, nodes: &[Node]) -> Option<Shape> {
        let known = self.ready(nodes).first().map(|node| node.shape.clone());
        known.or_else(|| self.first.clone())
    }
}

/// What annotations say a machine has, or else the status of the template.
fn first(annotations: &Value, template: &Value) -> Option<Shape> {
    let number = |key: &str| annotations[key].as_str()?.parse::<i64>().ok();
    let annotated = number(PROCESSORS).zip(number(MEMORY));
    let annotated = annotated.map(|(processors, memory)| (processors * 1000, memory << 20));
    let capacity = &template["status"]["capacity"];
    let reported = || {
        let processors = thousandths(capacity["cpu"].as_str()?)?;
        Some((processors, bytes(capacity["memory"].as_str()?)?))
    };
    let (processors, memory) = annotated.or_else(reported)?;
    let list = |key: &str| {
        let list = annotations[key].as_str().unwrap_or_default();
        list.split(',').filter(|it| !it.is_empty())
    };
    let labels = list(LABELS).filter_map(|label| label.split_once('='));
    Some(Shape {
        processors,
        memory,
        labels: labels
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .collect(),
        taints: list(TAINTS).filter_map(taint).collect(),
    })
}

/// `key=value:effect` or `key:effect`.
fn taint(text: &str) -> Option<[String; 3]> {
    let (rest, effect) = text.rsplit_once(':')?;
    let (key, value) = rest.split_once('=').unwrap_or((rest, ""));
    Some([key, value, effect].map(str::to_owned))
}

// === impl Machine ===

impl Machine {
    pub(crate) fn read(object: &Value) -> Self {
        Self {
            name: text(&object["metadata"]["name"]),
            node: object["status"]["nodeRef"]["name"]
                .as_str()
                .map(str::to_owned),
            is_marked: !object["metadata"]["annotations"][DELETE].is_null(),
        }
    }
}

// === impl Node ===

impl Node {
    pub(crate) fn read(object: &Value) -> Self {
        let allocatable = &object["status"]["allocatable"];
        let amount = |key: &str, read: fn(&str) -> Option<i64>| {
            allocatable[key].as_str().and_then(read).unwrap_or_default()
        };
        let conditions = object["status"]["conditions"].as_array();
        let mut conditions = conditions.into_iter().flatten();
        let is_ready = conditions.any(|it| it["type"] == "Ready" && it["status"] == "True");
        let taints = object["spec"]["taints"].as_array().into_iter().flatten();
        let taints = taints.map(|it| [&it["key"], &it["value"], &it["effect"]].map(text));
        let stays = |key: &str| !PASSING.iter().any(|prefix| key.starts_with(prefix));
        Self {
            name: text(&object["metadata"]["name"]),
            is_ready: is_ready && object["spec"]["unschedulable"] != true,
            shape: Shape {
                processors: amount("cpu", thousandths),
                memory: amount("memory", bytes),
                labels: texts(&object["metadata"]["labels"]),
                taints: taints.filter(|[key, ..]| stays(key)).collect(),
            },
        }
    }
}

// === impl Pod ===

impl Pod {
    /// Reads a pod, unless it has ended.
    pub(crate) fn read(object: &Value) -> Option<Self> {
        let (metadata, spec, status) = (&object["metadata"], &object["spec"], &object["status"]);
        if ["Succeeded", "Failed"].contains(&status["phase"].as_str().unwrap_or_default()) {
            return None;
        }
        let node = spec["nodeName"].as_str().map(str::to_owned);
        let conditions = status["conditions"].as_array();
        let mut conditions = conditions.into_iter().flatten();
        let is_unschedulable = node.is_none()
            && conditions.any(|it| it["type"] == "PodScheduled" && it["reason"] == "Unschedulable");
        let owners = metadata["ownerReferences"].as_array();
        let mut owners = owners.into_iter().flatten();
        let is_mirror = !metadata["annotations"]["kubernetes.io/config.mirror"].is_null();
        let containers = spec["containers"].as_array().into_iter().flatten();
        let requests: Vec<_> = containers.map(|it| &it["resources"]["requests"]).collect();
        let sum = |key: &str, read: fn(&str) -> Option<i64>| {
            let amounts = requests.iter().filter_map(|it| read(it[key].as_str()?));
            amounts.sum()
        };
        Some(Self {
            name: text(&metadata["name"]),
            node,
            is_unschedulable,
            is_of_node: is_mirror || owners.any(|it| it["kind"] == "DaemonSet"),
            priority: spec["priority"].as_i64().unwrap_or_default(),
            processors: sum("cpu", thousandths),
            memory: sum("memory", bytes),
            selector: texts(&spec["nodeSelector"]),
            tolerations: spec["tolerations"].as_array().cloned().unwrap_or_default(),
        })
    }

    /// Whether a node is needed because of it.
    pub(crate) fn is_on(&self, node: &str) -> bool {
        !self.is_of_node && self.node.as_deref() == Some(node)
    }

    /// Whether it may run on a node of this shape, as far as there is room.
    pub(crate) fn fits(&self, shape: &Shape) -> bool {
        let mut selector = self.selector.iter();
        self.processors <= shape.processors
            && self.memory <= shape.memory
            && selector.all(|(key, value)| shape.labels.get(key) == Some(value))
            && shape.taints.iter().all(|taint| self.tolerates(taint))
    }

    fn tolerates(&self, [key, value, effect]: &[String; 3]) -> bool {
        let is_tolerated = |it: &Value| {
            let is_of = |field: &str, text: &str| it[field].is_null() || it[field] == text;
            let any_value = it["operator"] == "Exists";
            is_of("key", key)
                && is_of("effect", effect)
                && (any_value || it["value"].as_str().unwrap_or_default() == value)
        };
        effect == "PreferNoSchedule" || self.tolerations.iter().any(is_tolerated)
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn texts(object: &Value) -> BTreeMap<String, String> {
    let fields = object.as_object().into_iter().flatten();
    fields
        .map(|(key, value)| (key.clone(), text(value)))
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn group(replicas: i64, annotations: &Value, template: &Value) -> Option<Group> {
        let mut metadata = json!({ "name": "workers", "annotations": annotations });
        for (key, bound) in [(MIN, "0"), (MAX, "3")] {
            metadata["annotations"][key] = json!(bound);
        }
        let object = json!({ "metadata": metadata, "spec": { "replicas": replicas } });
        Group::read("machinedeployments", &object, Vec::new(), template)
    }

    #[test]
    fn a_group_without_machines_needs_their_capacity() {
        let annotations = json!({
            PROCESSORS: "2", MEMORY: "4096", LABELS: "a=b,kubernetes.io/arch=amd64", TAINTS: "only:NoSchedule,team=a:NoExecute",
        });
        let template =
            json!({ "status": { "capacity": { "cpu": "1500m", "memory": "1Gi", "pods": "20" } } });
        let taint = |texts: [&str; 3]| texts.map(str::to_owned);
        for (replicas, annotations, template, expected) in [
            (0, json!({}), Value::Null, None),
            (1, json!({}), Value::Null, Some(None)),
            (
                0,
                annotations.clone(),
                Value::Null,
                Some(Some((
                    2000,
                    4096 << 20,
                    2,
                    vec![
                        taint(["only", "", "NoSchedule"]),
                        taint(["team", "a", "NoExecute"]),
                    ],
                ))),
            ),
            (
                0,
                json!({}),
                template,
                Some(Some((1500, 1 << 30, 0, vec![]))),
            ),
            (0, json!({ PROCESSORS: "2" }), Value::Null, None),
            (1, json!({ PAUSED: "true" }), Value::Null, None),
        ] {
            let found = group(replicas, &annotations, &template).map(|group| {
                group.first.map(|it| {
                    let labels = it.labels.len();
                    (it.processors, it.memory, labels, it.taints)
                })
            });
            assert_eq!(found, expected, "{replicas} {annotations}");
        }
    }

    #[test]
    fn pods_fit_by_room_labels_and_taints() {
        let shape = Shape {
            processors: 1000,
            memory: 1 << 30,
            labels: [("zone".to_owned(), "a".to_owned())].into(),
            taints: vec![["team", "a", "NoSchedule"].map(str::to_owned)],
        };
        let tolerations =
            json!([{ "key": "team", "operator": "Equal", "value": "a", "effect": "NoSchedule" }]);
        for (spec, expected) in [
            (json!({ "tolerations": tolerations }), true),
            (
                json!({ "tolerations": [{ "operator": "Exists" }], "nodeSelector": { "zone": "a" } }),
                true,
            ),
            (json!({}), false),
            (
                json!({ "tolerations": [{ "key": "team", "value": "b" }] }),
                false,
            ),
            (
                json!({ "tolerations": tolerations, "nodeSelector": { "zone": "b" } }),
                false,
            ),
            (
                json!({ "tolerations": tolerations, "containers": [
                    { "resources": { "requests": { "cpu": "600m" } } },
                    { "resources": { "requests": { "cpu": "0.6" } } },
                ] }),
                false,
            ),
        ] {
            let pod = Pod::read(&json!({ "spec": spec })).unwrap();
            assert_eq!(pod.fits(&shape), expected, "{spec}");
        }
    }

    #[test]
    fn pods_and_nodes_are_read() {
        let waits = json!({
            "metadata": { "name": "a" },
            "spec": {},
            "status": {
                "phase": "Pending",
                "conditions": [{ "type": "PodScheduled", "status": "False", "reason": "Unschedulable" }],
            },
        });
        assert!(Pod::read(&waits).unwrap().is_unschedulable);
        let daemon = json!({
            "metadata": { "ownerReferences": [{ "kind": "DaemonSet" }] },
            "spec": { "nodeName": "one" },
        });
        let daemon = Pod::read(&daemon).unwrap();
        assert!(daemon.is_of_node && !daemon.is_unschedulable);
        assert_eq!(
            Pod::read(&json!({ "status": { "phase": "Succeeded" } })),
            None
        );
        let node = Node::read(&json!({
            "metadata": { "name": "one", "labels": { "zone": "a" } },
            "spec": { "taints": [
                { "key": "node.kubernetes.io/not-ready", "effect": "NoExecute" },
                { "key": "team", "value": "a", "effect": "NoSchedule" },
            ] },
            "status": {
                "allocatable": { "cpu": "2", "memory": "1024Ki" },
                "conditions": [{ "type": "Ready", "status": "True" }],
            },
        }));
        assert!(node.is_ready);
        assert_eq!((node.shape.processors, node.shape.memory), (2000, 1 << 20));
        assert_eq!(node.shape.taints.len(), 1);
    }
}
