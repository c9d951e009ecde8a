//! MachineHealthChecks: which nodes are replaced, and when none is.

use std::collections::BTreeMap;
use std::time::Duration;

use api::annotations::Annotation;
use api::annotations::cluster::{
    MACHINE_HEALTH_CHECK_MAX_UNHEALTHY, MACHINE_HEALTH_CHECK_NODE_STARTUP_TIMEOUT,
    MACHINE_HEALTH_CHECK_TIMEOUT,
};
use api::annotations::node_pool::NODE_POOL;
use api::hypershift::v1beta1::hosted_cluster::HostedCluster;
use api::hypershift::v1beta1::platform::PlatformType;
use serde_json::{Value, json};

use super::workload::{CLUSTER_LABEL, INTERRUPTIBLE_LABEL, Inputs, selector};
use crate::names::node_pool as names;
use crate::platform::aws::machines::is_spot;

/// How long a node may be unhealthy.
const TIMEOUT: Duration = Duration::from_mins(8);
/// The same for bare metal machines.
const METAL_TIMEOUT: Duration = Duration::from_mins(16);
/// How long a machine may take to become a node.
const STARTUP_TIMEOUT: Duration = Duration::from_mins(20);
/// As long as this many nodes are unhealthy at most, they are replaced.
const MAX_UNHEALTHY: i32 = 2;

/// The MachineHealthChecks of a pool; none unless auto-repair is enabled.
pub(crate) fn objects(
    inputs: &Inputs<'_>,
    cluster: &HostedCluster,
    is_repaired: bool,
) -> Vec<Value> {
    let mut checks = Vec::new();
    if is_repaired {
        checks.push(repair(inputs, cluster));
    }
    if is_spot(inputs.pool) {
        checks.push(spot(inputs));
    }
    checks
}

/// The names of all that a pool can have.
pub(crate) fn all_names(pool: &str) -> [String; 2] {
    [pool.to_owned(), spot_name(pool)]
}

fn repair(inputs: &Inputs<'_>, cluster: &HostedCluster) -> Value {
    let timeout = match inputs.pool.spec.platform.type_ {
        PlatformType::Agent | PlatformType::None => METAL_TIMEOUT,
        PlatformType::Aws
        | PlatformType::Azure
        | PlatformType::Gcp
        | PlatformType::IbmCloud
        | PlatformType::KubeVirt
        | PlatformType::OpenStack
        | PlatformType::PowerVs => TIMEOUT,
    };
    let annotations = [&inputs.pool.metadata, &cluster.metadata]
        .map(|it| it.annotations.clone().unwrap_or_default());
    let timeout = span(&MACHINE_HEALTH_CHECK_TIMEOUT, &annotations).unwrap_or(timeout);
    let startup =
        span(&MACHINE_HEALTH_CHECK_NODE_STARTUP_TIMEOUT, &annotations).unwrap_or(STARTUP_TIMEOUT);
    let most = first(&MACHINE_HEALTH_CHECK_MAX_UNHEALTHY, &annotations);
    let most = most.map_or(json!(MAX_UNHEALTHY), |it| {
        it.parse::<i32>().map_or(json!(it), |it| json!(it))
    });
    check(
        inputs,
        names::of(inputs.pool),
        &selector(inputs),
        timeout,
        startup,
        &most,
    )
}

/// Instances that are taken back are replaced however many they are.
fn spot(inputs: &Inputs<'_>) -> Value {
    let mut labels = selector(inputs);
    labels.insert(INTERRUPTIBLE_LABEL.to_owned(), String::new());
    let name = spot_name(names::of(inputs.pool));
    check(
        inputs,
        &name,
        &labels,
        TIMEOUT,
        STARTUP_TIMEOUT,
        &json!("100%"),
    )
}

fn spot_name(pool: &str) -> String {
    format!("{pool}-spot")
}

fn check(
    inputs: &Inputs<'_>,
    name: &str,
    selector: &BTreeMap<String, String>,
    timeout: Duration,
    startup: Duration,
    most: &Value,
) -> Value {
    let condition = |status: &str| json!({ "type": "Ready", "status": status, "timeoutSeconds": timeout.as_secs() });
    json!({
        "metadata": {
            "namespace": inputs.namespace,
            "name": name,
            "annotations": { NODE_POOL.key(): names::reference(inputs.pool) },
            "labels": { CLUSTER_LABEL: inputs.infra_id },
        },
        "spec": {
            "clusterName": inputs.infra_id,
            "selector": { "matchLabels": selector },
            "checks": {
                "nodeStartupTimeoutSeconds": startup.as_secs(),
                "unhealthyNodeConditions": [condition("False"), condition("Unknown")],
            },
            "remediation": { "triggerIf": { "unhealthyLessThanOrEqualTo": most } },
        },
    })
}

fn span(
    annotation: &Annotation<kube::core::Duration>,
    annotations: &[BTreeMap<String, String>; 2],
) -> Option<Duration> {
    first(annotation, annotations).map(Duration::from)
}

/// The annotation of the pool takes precedence over the cluster's. An invalid one is ignored.
fn first<T>(annotation: &Annotation<T>, annotations: &[BTreeMap<String, String>; 2]) -> Option<T> {
    let mut found = annotations
        .iter()
        .filter_map(|it| annotation.get(it).ok().flatten());
    found.next()
}
