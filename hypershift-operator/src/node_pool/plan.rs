//! The desired objects of a pool: pure, from its facts and its evaluation.

use std::collections::{BTreeMap, BTreeSet};

use api::annotations::node_pool::TAINTS;
use api::conditions::PoolCondition;
use api::hypershift::v1beta1::node_pool::UpgradeType;
use k8s_openapi::api::core::v1::Secret;
use kube::api::ApiResource;
use serde_json::{Map, Value, json};

use super::conditions::Conditions;
use super::config::{Config, Context};
use super::facts::Facts;
use super::observed;
use super::secrets::{self, Outdated, Payload, Stub};
use super::token_fields::Fields;
use super::validate::Evaluation;
use super::workload::PAUSED;
use super::{adoption, autoscaling, capacity, health_check, proxy, tuning, workload};
use crate::names::node_pool as names;
use crate::platform::machines::{self, Template};

/// Everything that is written for a pool.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    pub(crate) hash: String,
    pub(crate) token: Token,
    pub(crate) user_data: Secret,
    /// Tokens of older configurations.
    pub(crate) outdated_tokens: Vec<(Secret, Outdated)>,
    /// User data that no machine needs any more.
    pub(crate) outdated_user_data: Vec<String>,
    /// Nothing on platforms whose machines another controller creates.
    pub(crate) machines: Option<Machines>,
    /// Nothing if the tuning stays as it is.
    pub(crate) tuning: tuning::Maps,
}

/// The token Secret: complete if new, otherwise only the fields of this operator.
#[derive(Clone)]
pub(crate) enum Token {
    New(Secret),
    Known(Secret),
}

/// The Cluster API objects.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Machines {
    /// What has the platform import the boot image that the template names.
    pub(crate) boot_image: Option<(ApiResource, Value)>,
    pub(crate) template: (ApiResource, Template),
    pub(crate) outdated_templates: Vec<String>,
    pub(crate) running: Running,
}

/// The Cluster API objects that need no new template.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Running {
    pub(crate) workload: (ApiResource, Value),
    /// The desired replicas, unless the autoscaler owns the number or it is not clear.
    pub(crate) replicas: Option<i32>,
    /// It was paused and has to be resumed.
    pub(crate) is_resumed: bool,
    pub(crate) health_checks: Vec<Value>,
    pub(crate) obsolete_health_checks: Vec<String>,
    /// Changes of machines that run: kind, name and patch. The patch names the machine's UID.
    pub(crate) patches: Vec<(ApiResource, String, Value)>,
}

// === impl Token ===

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::New(_) => "New",
            Self::Known(_) => "Known",
        })
    }
}

/// The objects to write; `fresh` is the token of a new configuration. `None` before the evaluation is complete.
pub(crate) fn plan(
    facts: &Facts,
    found: &Evaluation,
    conditions: &Conditions,
    fresh: &str,
) -> Option<Plan> {
    let Evaluation {
        release,
        config,
        hashes,
        tuning,
        machine,
        is_paused: _,
    } = found;
    let (release, config, hashes) = (release.as_ref()?, config.as_ref()?, hashes.as_ref()?);
    let (endpoint, ca) = (facts.ignition_endpoint()?, facts.ignition_ca.as_ref()?);
    let hash = hashes.with_version.clone();
    let reference = names::reference(&facts.pool);
    let inputs = secrets::Inputs {
        namespace: &facts.namespace,
        pool: facts.name(),
        reference: &reference,
        hash: &hash,
    };
    let version = release.version.to_string();
    let context = Context::of(&facts.cluster, &release.version);
    let settings = config.fingerprint(&context);
    let mut fields = Fields::of(facts, config);
    let token = facts.token(&hash);
    // Its ignition server has read it in this form. The capabilities may be those of another version, or unknown.
    if let Some(form) = token.and_then(secrets::form) {
        fields.form = form;
    }
    let payload = payload(facts, config, &version, &settings, &fields);
    let known = token.and_then(|it| it.data.as_ref()?.get("token"));
    let (token, value) = match known {
        Some(value) => (
            Token::Known(secrets::token_frame(inputs, payload)),
            value.0.as_slice(),
        ),
        None => (
            Token::New(secrets::token(inputs, payload, fresh, facts.now)),
            fresh.as_bytes(),
        ),
    };
    let proxy = proxy::of(&facts.cluster);
    let stub = Stub {
        endpoint,
        ca,
        token: value,
        proxy: proxy.as_ref(),
    };
    let machines = machine.as_ref().map(|machine| {
        let inputs = facts.machine_inputs(release);
        plan_machines(facts, machine, &inputs, &hash, &version, conditions)
    });
    Some(Plan {
        token,
        user_data: secrets::user_data(inputs, stub),
        outdated_tokens: outdated_tokens(facts, &hash),
        outdated_user_data: outdated_user_data(facts, &hash),
        machines,
        // Invalid tuning neither replaces nor removes what the nodes have.
        tuning: tuning.as_ref().map(|it| it.maps(facts)).unwrap_or_default(),
        hash,
    })
}

/// The names of Secrets that machines may still read.
fn user_data_in_use(facts: &Facts) -> BTreeSet<&str> {
    let machines = facts.machines.iter().map(|it| it.user_data.as_str());
    let sets = facts.machine_sets.iter().filter(|it| it.desired != Some(0));
    machines
        .chain(sets.map(|it| it.user_data.as_str()))
        .collect()
}

fn outdated_user_data(facts: &Facts, hash: &str) -> Vec<String> {
    let desired = names::user_data(facts.name(), hash);
    let in_use = user_data_in_use(facts);
    let names = facts.user_data.iter();
    let outdated = names.filter(|name| **name != desired && !in_use.contains(name.as_str()));
    outdated.cloned().collect()
}

/// Tokens of other configurations than this one.
pub(super) fn outdated_tokens(facts: &Facts, hash: &str) -> Vec<(Secret, Outdated)> {
    let desired = names::token(facts.name(), hash);
    let tokens = facts
        .tokens
        .iter()
        .filter(|it| it.metadata.name.as_ref() != Some(&desired));
    let outdated = tokens.map(|secret| {
        let annotations = secret.metadata.annotations.clone().unwrap_or_default();
        (
            secret.clone(),
            secrets::outdated_token(&annotations, facts.now),
        )
    });
    outdated
        .filter(|(_, what)| *what != Outdated::Keep)
        .collect()
}

fn payload<'a>(
    facts: &'a Facts,
    config: &'a Config,
    version: &'a str,
    settings: &'a str,
    fields: &'a Fields,
) -> Payload<'a> {
    Payload {
        upgrade_type: facts.upgrade_type(),
        release_image: &facts.pool.spec.release.image,
        version,
        config: &config.raw,
        inputs: settings,
        fields,
    }
}

fn plan_machines(
    facts: &Facts,
    machine: &machines::Machine,
    inputs: &machines::Inputs<'_>,
    hash: &str,
    version: &str,
    conditions: &Conditions,
) -> Machines {
    let template = adoption::template(facts, machine, inputs);
    let boot_image = machines::boot_image(inputs);
    let from_zero = capacity::from_zero(facts, &template.name);
    let inputs = workload::Inputs {
        capi: inputs.capi,
        pool: inputs.pool,
        cluster: &inputs.pool.spec.cluster_name,
        namespace: inputs.namespace,
        infra_id: inputs.infra_id,
        version,
        hash,
        template: &machine.template,
        template_name: &template.name,
        from_zero,
    };
    let now = facts.workload.as_ref().and_then(|it| it.desired);
    let health_checks =
        health_check::objects(&inputs, &facts.cluster, is_repaired(facts, conditions));
    Machines {
        boot_image,
        outdated_templates: outdated_templates(facts, &template.name),
        running: Running {
            workload: (
                workload::kind(inputs.capi, facts.upgrade_type()),
                workload::object(&inputs),
            ),
            replicas: autoscaling::replicas(inputs.pool, now, from_zero.is_possible()),
            is_resumed: facts
                .workload
                .as_ref()
                .is_some_and(|it| it.annotations.contains_key(PAUSED)),
            obsolete_health_checks: obsolete(facts.name(), &health_checks),
            health_checks,
            patches: patches(facts, machine),
        },
        template: (machine.template.clone(), template),
    }
}

/// Repair starts once a machine has fetched its configuration: before that, replacements would fail, too. It does not end
/// with the next configuration, which no machine has fetched at first.
pub(super) fn is_repaired(facts: &Facts, conditions: &Conditions) -> bool {
    let reached =
        api::conditions::status(conditions.list(), PoolCondition::ReachedIgnitionEndpoint);
    let is_started = reached == api::conditions::Status::True || facts.remediation.is_some();
    facts.pool.spec.management.auto_repair && is_started
}

/// Health checks that the pool is not to have.
pub(super) fn obsolete(pool: &str, desired: &[Value]) -> Vec<String> {
    let names = health_check::all_names(pool).into_iter();
    names
        .filter(|name| {
            !desired
                .iter()
                .any(|it| it["metadata"]["name"] == name.as_str())
        })
        .collect()
}

fn outdated_templates(facts: &Facts, desired: &str) -> Vec<String> {
    let in_use: BTreeSet<_> = facts
        .machine_sets
        .iter()
        .chain(&facts.workload)
        .map(|it| it.template.as_str())
        .collect();
    let templates = facts.templates.iter().map(|it| it.name.as_str());
    let outdated = templates.filter(|name| *name != desired && !in_use.contains(name));
    outdated.map(str::to_owned).collect()
}

/// Changes that reach machines while they run.
fn patches(facts: &Facts, machine: &machines::Machine) -> Vec<(ApiResource, String, Value)> {
    let mut patches = Vec::new();
    if facts.upgrade_type() == UpgradeType::Replace {
        let machines = facts.machines.iter().filter(|it| !it.is_deleting);
        let changed = machines.filter_map(|it| Some((it.name.clone(), node_patch(facts, it)?)));
        patches.extend(changed.map(|(name, patch)| (facts.capi().machine(), name, patch)));
    }
    for platform in &facts.platform_machines {
        let changed = machine
            .live
            .iter()
            .filter(|field| platform.spec.get(**field) != machine.spec.get(**field));
        let fields: Map<_, _> = changed
            .map(|field| {
                (
                    (*field).to_owned(),
                    exchange(platform.spec.get(*field), machine.spec.get(*field)),
                )
            })
            .collect();
        if !fields.is_empty() {
            let patch = json!({ "metadata": { "uid": platform.uid }, "spec": fields });
            patches.push((machine.made.clone(), platform.name.clone(), patch));
        }
    }
    patches
}

/// The merge patch from one map to another.
fn exchange(before: Option<&Value>, after: Option<&Value>) -> Value {
    let mut patch = after.cloned().unwrap_or(Value::Null);
    if let (Some(Value::Object(before)), Value::Object(patch)) = (before, &mut patch) {
        for key in before.keys() {
            patch.entry(key.clone()).or_insert(Value::Null);
        }
    }
    patch
}

/// The labels and taints of a node are changed on its machine, without a new one.
pub(super) fn node_patch(facts: &Facts, machine: &observed::Machine) -> Option<Value> {
    let desired = workload::node_labels(&facts.pool);
    let mut labels: BTreeMap<String, Value> = BTreeMap::new();
    for (key, value) in &desired {
        if machine.labels.get(key) != Some(value) {
            labels.insert(key.clone(), json!(value));
        }
    }
    let stale = machine
        .labels
        .keys()
        .filter(|key| workload::is_node_label(key) && !desired.contains_key(*key));
    labels.extend(stale.map(|key| (key.clone(), Value::Null)));
    let taints = workload::taints(&facts.pool);
    let mut metadata = Map::new();
    if !labels.is_empty() {
        metadata.insert("labels".to_owned(), json!(labels));
    }
    if machine.annotations.get(TAINTS.key()) != Some(&taints) {
        metadata.insert("annotations".to_owned(), json!({ TAINTS.key(): taints }));
    }
    if metadata.is_empty() {
        return None;
    }
    metadata.insert("uid".to_owned(), json!(machine.uid));
    Some(json!({ "metadata": metadata }))
}

#[cfg(test)]
mod tests;
