//! What a pool goes on with while its specification is refused. Pure.
//!
//! Nothing new is rolled out: the workload keeps what its machines are made of, and only what needs no new machines
//! follows the specification: the number of machines, labels and taints of nodes, and their repair. The user data keeps
//! up with the token, which the ignition server renews, so that machines can be added and replaced.

use std::collections::BTreeMap;

use api::annotations::node_pool::{CURRENT_CONFIG_VERSION, MAX_UNAVAILABLE, TARGET_CONFIG_VERSION};
use api::hypershift::v1beta1::node_pool::UpgradeType;
use k8s_openapi::api::core::v1::Secret;
use kube::api::ApiResource;
use serde_json::Value;

use super::capacity::{self, FromZero};
use super::conditions::Conditions;
use super::facts::Facts;
use super::observed::Workload;
use super::plan::Running;
use super::secrets::{self, Outdated, Stub};
use super::validate::{autoscaling_problem, update_problem};
use super::workload::{INTERRUPTIBLE_LABEL, PAUSED};
use super::{autoscaling, health_check, plan, proxy, workload};
use crate::names::node_pool as names;
use crate::platform::machines;

/// Fields of a machine that decide what it is: with others, machines are replaced.
const IDENTITY: [&str; 3] = ["bootstrap", "infrastructureRef", "version"];

/// What is written for a pool that is refused.
#[derive(Debug, Clone)]
pub(crate) struct Held {
    /// With the current token.
    pub(crate) user_data: Option<Secret>,
    /// Tokens of older configurations.
    pub(crate) outdated_tokens: Vec<(Secret, Outdated)>,
    /// Nothing on platforms whose machines another controller creates.
    pub(crate) machines: Option<Running>,
}

/// What a pool goes on with; nothing if it has nothing yet.
pub(crate) fn held(facts: &Facts, conditions: &Conditions) -> Option<Held> {
    let hash = hash(facts);
    let held = Held {
        user_data: hash.and_then(|hash| user_data(facts, hash)),
        outdated_tokens: hash.map_or_else(Vec::new, |hash| plan::outdated_tokens(facts, hash)),
        machines: running(facts).and_then(|it| machines(facts, it, conditions)),
    };
    let is_empty = held.user_data.is_none() && held.machines.is_none();
    (!is_empty).then_some(held)
}

/// The workload, if machines can be made of it.
fn running(facts: &Facts) -> Option<&Workload> {
    let workload = facts.workload.as_ref();
    workload.filter(|it| !it.is_deleting && !it.user_data.is_empty() && !it.template.is_empty())
}

/// The hash of the configuration that new machines get.
fn hash(facts: &Facts) -> Option<&str> {
    if machines::template_kind(facts.capi(), facts.pool.spec.platform.type_).is_none() {
        // Users have the user data of this configuration.
        return facts.annotation(CURRENT_CONFIG_VERSION.key());
    }
    let name = &running(facts)?.user_data;
    let (_, hash) = name.rsplit_once('-')?;
    (names::user_data(facts.name(), hash) == *name).then_some(hash)
}

/// The user data of this configuration with its current token.
fn user_data(facts: &Facts, hash: &str) -> Option<Secret> {
    let token = facts.token(hash)?.data.as_ref()?.get("token")?;
    let (endpoint, ca) = (facts.ignition_endpoint()?, facts.ignition_ca.as_ref()?);
    let reference = names::reference(&facts.pool);
    let inputs = secrets::Inputs {
        namespace: &facts.namespace,
        pool: facts.name(),
        reference: &reference,
        hash,
    };
    let proxy = proxy::of(&facts.cluster);
    let stub = Stub {
        endpoint,
        ca,
        token: &token.0,
        proxy: proxy.as_ref(),
    };
    Some(secrets::user_data(inputs, stub))
}

fn machines(facts: &Facts, live: &Workload, conditions: &Conditions) -> Option<Running> {
    let capi = facts.capi();
    let template = machines::template_kind(capi, facts.pool.spec.platform.type_)?;
    let from_zero = match capacity::from_zero(facts, &live.template) {
        // The cloud was asked about the machines of the specification.
        FromZero::Known(_) | FromZero::Kept(_) => FromZero::Kept(Some(&live.annotations)),
        known @ (FromZero::Impossible | FromZero::Template) => known,
    };
    let target = live.annotations.get(TARGET_CONFIG_VERSION.key());
    let inputs = workload::Inputs {
        capi,
        pool: &facts.pool,
        cluster: &facts.pool.spec.cluster_name,
        namespace: &facts.namespace,
        infra_id: facts.infra_id(),
        version: live.spec["template"]["spec"]["version"]
            .as_str()
            .unwrap_or_default(),
        hash: target.map(String::as_str).unwrap_or_default(),
        template: &template,
        template_name: &live.template,
        from_zero,
    };
    let is_repaired = plan::is_repaired(facts, conditions);
    let health_checks = health_check::objects(&inputs, &facts.cluster, is_repaired);
    let mut obsolete_health_checks = plan::obsolete(facts.name(), &health_checks);
    if is_spot(live) {
        // Its machines may be taken back as before.
        obsolete_health_checks.retain(|it| it == facts.name());
    }
    let scaled = autoscaling_problem(&facts.pool).is_none();
    let replicas = autoscaling::replicas(&facts.pool, live.desired, from_zero.is_possible());
    Some(Running {
        workload: (
            workload::kind(capi, facts.upgrade_type()),
            object(facts, live, &inputs),
        ),
        replicas: replicas.filter(|_| scaled),
        is_resumed: live.annotations.contains_key(PAUSED),
        health_checks,
        obsolete_health_checks,
        patches: patches(facts),
    })
}

/// The workload as the specification has it, but for what is refused and what would replace machines.
fn object(facts: &Facts, live: &Workload, inputs: &workload::Inputs<'_>) -> Value {
    let mut object = workload::object(inputs);
    let spec = &live.spec;
    let template = &mut object["spec"]["template"];
    for field in IDENTITY {
        keep(&mut template["spec"], &spec["template"]["spec"], field);
    }
    let labels = &spec["template"]["metadata"]["labels"];
    keep(
        &mut template["metadata"]["labels"],
        labels,
        INTERRUPTIBLE_LABEL,
    );
    let annotations = &mut object["metadata"]["annotations"];
    if facts.upgrade_type() == UpgradeType::InPlace {
        keep_annotation(annotations, &live.annotations, TARGET_CONFIG_VERSION.key());
    }
    if autoscaling_problem(&facts.pool).is_some() {
        for key in autoscaling::annotations(&facts.pool, inputs.from_zero).keys() {
            keep_annotation(annotations, &live.annotations, key);
        }
    }
    if update_problem(&facts.pool).is_some() {
        match facts.upgrade_type() {
            UpgradeType::InPlace => {
                keep_annotation(annotations, &live.annotations, MAX_UNAVAILABLE.key());
            }
            UpgradeType::Replace => keep(&mut object["spec"], spec, "rollout"),
        }
    }
    object
}

/// Whether its machines may be taken back at any time.
fn is_spot(live: &Workload) -> bool {
    let labels = &live.spec["template"]["metadata"]["labels"];
    labels.get(INTERRUPTIBLE_LABEL).is_some()
}

/// The field as it is.
fn keep(object: &mut Value, live: &Value, field: &str) {
    match live.get(field) {
        Some(value) => object[field] = value.clone(),
        None => {
            if let Some(fields) = object.as_object_mut() {
                fields.remove(field);
            }
        }
    }
}

fn keep_annotation(object: &mut Value, live: &BTreeMap<String, String>, key: &str) {
    match live.get(key) {
        Some(value) => object[key] = Value::from(value.as_str()),
        None => {
            if let Some(fields) = object.as_object_mut() {
                fields.remove(key);
            }
        }
    }
}

/// Labels and taints of nodes.
fn patches(facts: &Facts) -> Vec<(ApiResource, String, Value)> {
    if facts.upgrade_type() != UpgradeType::Replace {
        return Vec::new();
    }
    let machines = facts.machines.iter().filter(|it| !it.is_deleting);
    let changed = machines.filter_map(|it| Some((it.name.clone(), plan::node_patch(facts, it)?)));
    let kind = facts.capi().machine();
    changed
        .map(|(name, patch)| (kind.clone(), name, patch))
        .collect()
}

#[cfg(test)]
mod tests;
