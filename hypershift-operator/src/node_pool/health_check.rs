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

use super::names;
use super::workload::{Ask, CLUSTER_LABEL, INTERRUPTIBLE_LABEL, selector};
use crate::platform::aws::machines::is_spot;

/// How long a node may be unhealthy.
const TIMEOUT: Duration = Duration::from_mins(8);
/// The same where a machine is one that somebody has to look after.
const METAL_TIMEOUT: Duration = Duration::from_mins(16);
/// How long a machine may take to become a node.
const STARTUP_TIMEOUT: Duration = Duration::from_mins(20);
/// As long as this many nodes are unhealthy at most, they are replaced.
const MAX_UNHEALTHY: i32 = 2;

/// The checks that a pool has; none unless its machines are to be repaired.
pub(crate) fn objects(ask: &Ask<'_>, cluster: &HostedCluster, is_repaired: bool) -> Vec<Value> {
    let mut checks = Vec::new();
    if is_repaired {
        checks.push(repair(ask, cluster));
    }
    if is_spot(ask.pool) {
        checks.push(spot(ask));
    }
    checks
}

/// The names of all that a pool can have.
pub(crate) fn all_names(pool: &str) -> [String; 2] {
    [pool.to_owned(), spot_name(pool)]
}

fn repair(ask: &Ask<'_>, cluster: &HostedCluster) -> Value {
    let timeout = match ask.pool.spec.platform.type_ {
        PlatformType::Agent | PlatformType::None => METAL_TIMEOUT,
        PlatformType::Aws
        | PlatformType::Azure
        | PlatformType::IbmCloud
        | PlatformType::KubeVirt
        | PlatformType::PowerVs => TIMEOUT,
    };
    let annotations = [&ask.pool.metadata, &cluster.metadata]
        .map(|it| it.annotations.clone().unwrap_or_default());
    let timeout = span(&MACHINE_HEALTH_CHECK_TIMEOUT, &annotations).unwrap_or(timeout);
    let startup =
        span(&MACHINE_HEALTH_CHECK_NODE_STARTUP_TIMEOUT, &annotations).unwrap_or(STARTUP_TIMEOUT);
    let most = first(&MACHINE_HEALTH_CHECK_MAX_UNHEALTHY, &annotations);
    let most = most.map_or(json!(MAX_UNHEALTHY), |it| {
        it.parse::<i32>().map_or(json!(it), |it| json!(it))
    });
    check(
        ask,
        names::of(ask.pool),
        &selector(ask),
        timeout,
        startup,
        &most,
    )
}

/// Instances that are taken back are replaced however many they are.
fn spot(ask: &Ask<'_>) -> Value {
    let mut labels = selector(ask);
    labels.insert(INTERRUPTIBLE_LABEL.to_owned(), String::new());
    let name = spot_name(names::of(ask.pool));
    check(
        ask,
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
    ask: &Ask<'_>,
    name: &str,
    selector: &BTreeMap<String, String>,
    timeout: Duration,
    startup: Duration,
    most: &Value,
) -> Value {
    let condition = |status: &str| json!({ "type": "Ready", "status": status, "timeoutSeconds": timeout.as_secs() });
    json!({
        "metadata": {
            "namespace": ask.namespace,
            "name": name,
            "annotations": { NODE_POOL.key(): names::reference(ask.pool) },
            "labels": { CLUSTER_LABEL: ask.infra_id },
        },
        "spec": {
            "clusterName": ask.infra_id,
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

/// The pool's word goes before the cluster's. A word that cannot be read is none.
fn first<T>(annotation: &Annotation<T>, annotations: &[BTreeMap<String, String>; 2]) -> Option<T> {
    let mut found = annotations
        .iter()
        .filter_map(|it| annotation.get(it).ok().flatten());
    found.next()
}
