//! The Cluster API workload of a pool: a MachineDeployment if machines are replaced, a MachineSet if they are
//! upgraded in place. Written with every default, because private types have no defaulting webhook.

use std::collections::BTreeMap;

use api::annotations::node_pool::{
    MAX_UNAVAILABLE, NODE_POOL, RELEASE_VERSION, TAINTS, TARGET_CONFIG_VERSION,
};
use api::hypershift::v1beta1::common::{Duration, Taint};
use api::hypershift::v1beta1::node_pool::{NodePool, UpgradeStrategy, UpgradeType};
use api::hypershift::v1beta1::platform::PlatformType;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::api::ApiResource;
use serde_json::{Value, json};

use super::autoscaling;
use super::capacity::FromZero;
use super::observed::Workload;
use crate::canonical;
use crate::capi::Capi;
use crate::names::node_pool as names;
use crate::platform::aws::machines::is_spot;
use crate::platform::machines::failure_domain;

/// The cluster that a machine belongs to, by its infrastructure's id.
pub(crate) const CLUSTER_LABEL: &str = "cluster.x-k8s.io/cluster-name";
/// Stops Cluster API.
pub(crate) const PAUSED: &str = "cluster.x-k8s.io/paused";
/// The machines that may be taken back at any time.
pub(crate) const INTERRUPTIBLE_LABEL: &str = "hypershift.openshift.io/interruptible-instance";
/// Label of nodes whose pull secret is kept up to date: where the `DaemonSet` of the hosted cluster runs.
const GLOBAL_PULL_SECRET_LABEL: &str = "hypershift.openshift.io/nodepool-globalps-enabled";
/// Prefix of node labels on machines.
const MANAGED_LABEL: &str = "managed.hypershift.openshift.io.";

/// The inputs of a workload.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Inputs<'a> {
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
    /// How the autoscaler can scale up from nothing.
    pub(crate) from_zero: FromZero<'a>,
}

/// The kind of the workload of a pool.
pub(crate) fn kind(capi: Capi, upgrade: UpgradeType) -> ApiResource {
    match upgrade {
        UpgradeType::Replace => capi.machine_deployment(),
        UpgradeType::InPlace => capi.machine_set(),
    }
}

/// The workload, unless it is paused or does not exist.
pub(crate) fn running(found: Option<&Workload>) -> Option<&Workload> {
    found.filter(|it| !it.annotations.contains_key(PAUSED))
}

/// The workload of a pool, without replicas: those have a field manager of their own.
pub(crate) fn object(inputs: &Inputs<'_>) -> Value {
    match inputs.pool.spec.management.upgrade_type {
        UpgradeType::Replace => deployment(inputs),
        UpgradeType::InPlace => set(inputs),
    }
}

/// The node labels, on the machine.
pub(crate) fn node_labels(pool: &NodePool) -> BTreeMap<String, String> {
    let labels = pool.spec.node_labels.iter();
    let mut labels: BTreeMap<_, _> = labels
        .map(|(key, value)| (format!("{MANAGED_LABEL}{key}"), value.clone()))
        .collect();
    if has_global_pull_secret(pool) {
        let key = format!("{MANAGED_LABEL}{GLOBAL_PULL_SECRET_LABEL}");
        labels.insert(key, "true".to_owned());
    }
    labels
}

/// Whether the pull secret on the nodes follows the one of the hosted cluster. Nodes that are upgraded in place get it from
/// their daemon, and other platforms have credentials of their own.
fn has_global_pull_secret(pool: &NodePool) -> bool {
    let is_replaced = pool.spec.management.upgrade_type == UpgradeType::Replace;
    is_replaced
        && matches!(
            pool.spec.platform.type_,
            PlatformType::Aws | PlatformType::Azure
        )
}

/// Whether a machine label is a node label.
pub(crate) fn is_node_label(key: &str) -> bool {
    key.starts_with(MANAGED_LABEL)
}

/// The node taints, as annotation of the machine.
pub(crate) fn taints(pool: &NodePool) -> String {
    let taint = |Taint { key, value, effect }: &Taint| {
        let effect = autoscaling::effect_name(*effect);
        json!({ "key": key, "value": value.as_deref().unwrap_or_default(), "effect": effect })
    };
    canonical::text(&Value::Array(pool.spec.taints.iter().map(taint).collect()))
}

/// The label selector of the pool's machines.
pub(crate) fn selector(inputs: &Inputs<'_>) -> BTreeMap<String, String> {
    let generation = generation(inputs);
    BTreeMap::from([
        (CLUSTER_LABEL.to_owned(), inputs.infra_id.to_owned()),
        (generation.clone(), generation),
    ])
}

fn deployment(inputs: &Inputs<'_>) -> Value {
    let mut annotations = autoscaling::annotations(inputs.pool, inputs.from_zero);
    annotations.insert(NODE_POOL.key().to_owned(), names::reference(inputs.pool));
    let mut object = frame(inputs, &annotations);
    object["spec"]["rollout"] = json!({ "strategy": strategy(inputs.pool) });
    object["spec"]["template"] =
        template(inputs, [(RELEASE_VERSION.key(), inputs.version.to_owned())]);
    object
}

fn set(inputs: &Inputs<'_>) -> Value {
    let mut annotations = autoscaling::annotations(inputs.pool, inputs.from_zero);
    annotations.insert(NODE_POOL.key().to_owned(), names::reference(inputs.pool));
    let most = max_unavailable(inputs.pool);
    annotations.insert(MAX_UNAVAILABLE.key().to_owned(), most.to_string());
    annotations.insert(
        TARGET_CONFIG_VERSION.key().to_owned(),
        inputs.hash.to_owned(),
    );
    let mut object = frame(inputs, &annotations);
    object["spec"]["deletion"] = json!({ "order": "Random" });
    let mut template = template(inputs, [(TAINTS.key(), taints(inputs.pool))]);
    for (key, value) in node_labels(inputs.pool) {
        template["metadata"]["labels"][key] = json!(value);
    }
    object["spec"]["template"] = template;
    object
}

fn frame(inputs: &Inputs<'_>, annotations: &BTreeMap<String, String>) -> Value {
    json!({
        "metadata": {
            "namespace": inputs.namespace,
            "name": names::of(inputs.pool),
            "annotations": annotations,
            "labels": { CLUSTER_LABEL: inputs.infra_id },
        },
        "spec": {
            "clusterName": inputs.infra_id,
            "selector": { "matchLabels": selector(inputs) },
        },
    })
}

fn template(inputs: &Inputs<'_>, annotation: [(&str, String); 1]) -> Value {
    let mut labels = selector(inputs);
    if is_spot(inputs.pool) {
        labels.insert(INTERRUPTIBLE_LABEL.to_owned(), String::new());
    }
    let mut annotations = BTreeMap::from(annotation);
    annotations.insert(NODE_POOL.key(), names::reference(inputs.pool));
    let mut spec = json!({
        "bootstrap": { "dataSecretName": names::user_data(names::of(inputs.pool), inputs.hash) },
        "clusterName": inputs.infra_id,
        "infrastructureRef": {
            "apiGroup": inputs.template.group,
            "kind": inputs.template.kind,
            "name": inputs.template_name,
        },
        "version": inputs.version,
    });
    if let Some(zone) = failure_domain(inputs.pool) {
        spec["failureDomain"] = json!(zone);
    }
    if let Some(deletion) = deletion(inputs.pool) {
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

/// How many nodes may be upgraded at a time: at least one.
fn max_unavailable(pool: &NodePool) -> i32 {
    let desired = pool.spec.replicas.unwrap_or_default();
    let in_place = pool.spec.management.in_place.clone().unwrap_or_default();
    let most = match in_place.max_unavailable.unwrap_or(IntOrString::Int(1)) {
        IntOrString::Int(most) => most,
        IntOrString::String(text) => {
            let percent = text.strip_suffix('%').and_then(|it| it.parse::<i32>().ok());
            percent.map_or(1, |it| desired.saturating_mul(it) / 100)
        }
    };
    most.max(1)
}

fn generation(inputs: &Inputs<'_>) -> String {
    names::generation(inputs.infra_id, inputs.cluster, names::of(inputs.pool))
}
