//! What Cluster API is told about a pool: a MachineDeployment where machines are replaced, a MachineSet where they are
//! upgraded in place. Written whole, with every default, since nobody adds them on the private side.

use std::collections::BTreeMap;

use api::annotations::node_pool::{
    MAX_UNAVAILABLE, NODE_POOL, RELEASE_VERSION, TAINTS, TARGET_CONFIG_VERSION,
};
use api::hypershift::v1beta1::common::{Duration, Taint};
use api::hypershift::v1beta1::node_pool::{NodePool, UpgradeStrategy, UpgradeType};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::api::ApiResource;
use serde_json::{Value, json};

use super::{autoscaling, canonical, names};
use crate::capi::Capi;
use crate::platform::aws::machines::is_spot;

/// The cluster that a machine belongs to, by its infrastructure's id.
pub(crate) const CLUSTER_LABEL: &str = "cluster.x-k8s.io/cluster-name";
/// Stops Cluster API.
pub(crate) const PAUSED: &str = "cluster.x-k8s.io/paused";
/// The machines that may be taken back at any time.
pub(crate) const INTERRUPTIBLE_LABEL: &str = "hypershift.openshift.io/interruptible-instance";
/// What stands before the labels that nodes are to have, on machines.
const MANAGED_LABEL: &str = "managed.hypershift.openshift.io.";

/// What a workload is made of.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ask<'a> {
    pub(crate) capi: Capi,
    pub(crate) pool: &'a NodePool,
    pub(crate) cluster: &'a str,
    /// The control plane's namespace.
    pub(crate) namespace: &'a str,
    pub(crate) infra_id: &'a str,
    /// The release's version.
    pub(crate) version: &'a str,
    /// The hash of all that new machines depend on.
    pub(crate) hash: &'a str,
    pub(crate) template: &'a ApiResource,
    pub(crate) template_name: &'a str,
    /// Whether the autoscaler can scale up from nothing.
    pub(crate) from_zero: bool,
}

/// The kind that stands for a pool.
pub(crate) fn kind(capi: Capi, upgrade: UpgradeType) -> ApiResource {
    match upgrade {
        UpgradeType::Replace => capi.machine_deployment(),
        UpgradeType::InPlace => capi.machine_set(),
    }
}

/// The object that stands for a pool, without a number of machines: that belongs to whoever scales.
pub(crate) fn object(ask: &Ask<'_>) -> Value {
    match ask.pool.spec.management.upgrade_type {
        UpgradeType::Replace => deployment(ask),
        UpgradeType::InPlace => set(ask),
    }
}

/// The labels that each node of the pool is to have, on its machine.
pub(crate) fn node_labels(pool: &NodePool) -> BTreeMap<String, String> {
    let labels = pool.spec.node_labels.iter();
    labels
        .map(|(key, value)| (format!("{MANAGED_LABEL}{key}"), value.clone()))
        .collect()
}

/// Whether a label of a machine is one that its node is to have.
pub(crate) fn is_node_label(key: &str) -> bool {
    key.starts_with(MANAGED_LABEL)
}

/// The taints that each node of the pool is to have, as its machine's annotation has them.
pub(crate) fn taints(pool: &NodePool) -> String {
    let taint = |Taint { key, value, effect }: &Taint| {
        let effect = autoscaling::effect_name(*effect);
        json!({ "key": key, "value": value.as_deref().unwrap_or_default(), "effect": effect })
    };
    canonical::text(&Value::Array(pool.spec.taints.iter().map(taint).collect()))
}

/// What selects the pool's machines.
pub(crate) fn selector(ask: &Ask<'_>) -> BTreeMap<String, String> {
    let generation = generation(ask);
    BTreeMap::from([
        (CLUSTER_LABEL.to_owned(), ask.infra_id.to_owned()),
        (generation.clone(), generation),
    ])
}

fn deployment(ask: &Ask<'_>) -> Value {
    let mut annotations = autoscaling::annotations(ask.pool, ask.from_zero);
    annotations.insert(NODE_POOL.key().to_owned(), names::reference(ask.pool));
    let mut object = frame(ask, &annotations);
    object["spec"]["rollout"] = json!({ "strategy": strategy(ask.pool) });
    object["spec"]["template"] = template(ask, [(RELEASE_VERSION.key(), ask.version.to_owned())]);
    object
}

fn set(ask: &Ask<'_>) -> Value {
    let mut annotations = autoscaling::annotations(ask.pool, ask.from_zero);
    annotations.insert(NODE_POOL.key().to_owned(), names::reference(ask.pool));
    let most = max_unavailable(ask.pool);
    annotations.insert(MAX_UNAVAILABLE.key().to_owned(), most.to_string());
    annotations.insert(TARGET_CONFIG_VERSION.key().to_owned(), ask.hash.to_owned());
    let mut object = frame(ask, &annotations);
    object["spec"]["deletion"] = json!({ "order": "Random" });
    let mut template = template(ask, [(TAINTS.key(), taints(ask.pool))]);
    for (key, value) in node_labels(ask.pool) {
        template["metadata"]["labels"][key] = json!(value);
    }
    object["spec"]["template"] = template;
    object
}

fn frame(ask: &Ask<'_>, annotations: &BTreeMap<String, String>) -> Value {
    json!({
        "metadata": {
            "namespace": ask.namespace,
            "name": names::of(ask.pool),
            "annotations": annotations,
            "labels": { CLUSTER_LABEL: ask.infra_id },
        },
        "spec": {
            "clusterName": ask.infra_id,
            "selector": { "matchLabels": selector(ask) },
        },
    })
}

fn template(ask: &Ask<'_>, annotation: [(&str, String); 1]) -> Value {
    let mut labels = selector(ask);
    if is_spot(ask.pool) {
        labels.insert(INTERRUPTIBLE_LABEL.to_owned(), String::new());
    }
    let mut annotations = BTreeMap::from(annotation);
    annotations.insert(NODE_POOL.key(), names::reference(ask.pool));
    let mut spec = json!({
        "bootstrap": { "dataSecretName": names::user_data(names::of(ask.pool), ask.hash) },
        "clusterName": ask.infra_id,
        "infrastructureRef": {
            "apiGroup": ask.template.group,
            "kind": ask.template.kind,
            "name": ask.template_name,
        },
        "version": ask.version,
    });
    if let Some(deletion) = deletion(ask.pool) {
        spec["deletion"] = deletion;
    }
    json!({ "metadata": { "labels": labels, "annotations": annotations }, "spec": spec })
}

fn deletion(pool: &NodePool) -> Option<Value> {
    let timeouts = [
        ("nodeDrainTimeoutSeconds", &pool.spec.node_drain_timeout),
        (
            "nodeVolumeDetachTimeoutSeconds",
            &pool.spec.node_volume_detach_timeout,
        ),
    ];
    let timeouts = timeouts.into_iter().filter_map(|(name, timeout)| {
        let seconds = timeout.as_ref().and_then(seconds)?;
        Some((name.to_owned(), json!(seconds)))
    });
    let timeouts: serde_json::Map<_, _> = timeouts.collect();
    (!timeouts.is_empty()).then_some(Value::Object(timeouts))
}

fn seconds(timeout: &Duration) -> Option<i32> {
    let seconds = timeout.length().ok()?.as_secs();
    i32::try_from(seconds).ok()
}

fn strategy(pool: &NodePool) -> Value {
    let replace = pool.spec.management.replace.clone().unwrap_or_default();
    match replace.strategy.unwrap_or(UpgradeStrategy::RollingUpdate) {
        UpgradeStrategy::OnDelete => json!({ "type": "OnDelete" }),
        UpgradeStrategy::RollingUpdate => {
            let update = replace.rolling_update.unwrap_or_default();
            let surge = update.max_surge.unwrap_or(IntOrString::Int(1));
            let unavailable = update.max_unavailable.unwrap_or(IntOrString::Int(0));
            json!({
                "type": "RollingUpdate",
                "rollingUpdate": { "maxSurge": surge, "maxUnavailable": unavailable },
            })
        }
    }
}

/// How many nodes may be upgraded at a time: at least one, or nothing would ever be.
fn max_unavailable(pool: &NodePool) -> i32 {
    let wanted = pool.spec.replicas.unwrap_or_default();
    let in_place = pool.spec.management.in_place.clone().unwrap_or_default();
    let most = match in_place.max_unavailable.unwrap_or(IntOrString::Int(1)) {
        IntOrString::Int(most) => most,
        IntOrString::String(text) => {
            let percent = text.strip_suffix('%').and_then(|it| it.parse::<i32>().ok());
            percent.map_or(1, |it| wanted.saturating_mul(it) / 100)
        }
    };
    most.max(1)
}

fn generation(ask: &Ask<'_>) -> String {
    names::generation(ask.infra_id, ask.cluster, names::of(ask.pool))
}
