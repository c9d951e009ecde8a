//! The status of the HostedControlPlane: conditions, addresses, names of kubeconfigs. Pure.

use api::conditions::ClusterCondition as Type;
use api::hypershift::v1beta1::versions::ControlPlaneUpdateState;
use api::hypershift::v1beta1::{ControlPlaneComponentStatus, HostedControlPlane};
use control_plane_component::dependency::GROUP;
use control_plane_component::status::{
    AVAILABLE, ROLLOUT_COMPLETE, is_true, waiting_for_deployment,
};
use control_plane_component::{Component, Context, Objects};
use k8s_openapi::api::apps::v1::{Deployment, StatefulSet};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use serde_json::{Value, json};

use super::history;
use crate::components;

/// A condition without its times.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Evaluation {
    pub(super) type_: Type,
    pub(super) status: &'static str,
    pub(super) reason: String,
    pub(super) message: String,
}

impl Evaluation {
    pub(super) fn yes(type_: Type) -> Self {
        Self {
            type_,
            status: "True",
            reason: "AsExpected".to_owned(),
            message: "As expected".to_owned(),
        }
    }

    pub(super) fn no(type_: Type, reason: &str, message: impl Into<String>) -> Self {
        Self {
            type_,
            status: "False",
            reason: reason.to_owned(),
            message: message.into(),
        }
    }

    pub(super) fn unknown(type_: Type, message: impl Into<String>) -> Self {
        Self {
            status: "Unknown",
            ..Self::no(type_, "StatusUnknown", message)
        }
    }

    fn is_met(&self) -> bool {
        self.status == "True"
    }

    /// Converts it to a condition; the transition time changes only with the status.
    pub(super) fn condition(self, hcp: &HostedControlPlane, now: &Time) -> Condition {
        let before = hcp.status.iter().flat_map(|status| &status.conditions);
        let same = before
            .into_iter()
            .find(|before| before.type_ == self.type_.as_str() && before.status == self.status);
        Condition {
            type_: self.type_.as_str().to_owned(),
            status: self.status.to_owned(),
            reason: self.reason,
            message: self.message,
            observed_generation: hcp.metadata.generation,
            last_transition_time: same
                .map_or_else(|| now.clone(), |same| same.last_transition_time.clone()),
        }
    }
}

/// Whether all required addresses are known.
pub(super) fn infrastructure(missing: &[&str]) -> Evaluation {
    if missing.is_empty() {
        return Evaluation::yes(Type::InfrastructureReady);
    }
    let message = format!("Waiting for {}", missing.join(", "));
    Evaluation::no(Type::InfrastructureReady, "WaitingForAvailable", message)
}

/// Whether etcd has a quorum.
fn etcd(context: &Context<'_>) -> Evaluation {
    if !context.is_etcd_managed() {
        return Evaluation::yes(Type::EtcdAvailable);
    }
    let Some(set) = context
        .objects
        .typed::<StatefulSet>("apps", "StatefulSet", "etcd")
    else {
        return Evaluation::no(
            Type::EtcdAvailable,
            "StatefulSetNotFound",
            "Waiting for StatefulSet etcd to be created",
        );
    };
    let members = set.spec.and_then(|spec| spec.replicas).unwrap_or(1);
    let ready = set
        .status
        .and_then(|status| status.ready_replicas)
        .unwrap_or(0);
    if ready > members / 2 {
        return Evaluation {
            reason: "QuorumAvailable".to_owned(),
            message: format!("{ready} of {members} members are ready"),
            ..Evaluation::yes(Type::EtcdAvailable)
        };
    }
    let message = format!(
        "{ready} of {members} members are ready; {} are required for a quorum",
        members / 2 + 1
    );
    Evaluation::no(Type::EtcdAvailable, "EtcdWaitingForQuorum", message)
}

/// Whether the API server is available.
fn api_server(context: &Context<'_>) -> Evaluation {
    let type_ = Type::KubeApiServerAvailable;
    let Some(deployment) =
        context
            .objects
            .typed::<Deployment>("apps", "Deployment", "kube-apiserver")
    else {
        return Evaluation::no(
            type_,
            "NotFound",
            "Waiting for Deployment kube-apiserver to be created",
        );
    };
    let status = deployment.status.as_ref();
    let conditions = status.and_then(|status| status.conditions.as_ref());
    let mut conditions = conditions.into_iter().flatten();
    if conditions.any(|it| it.type_ == AVAILABLE && it.status == "True") {
        return Evaluation::yes(type_);
    }
    let message = waiting_for_deployment(&deployment, "kube-apiserver");
    Evaluation::no(type_, "WaitingForAvailable", message)
}

/// Whether all identity providers are valid. The others work, so the control plane is available without them.
fn identity_providers(context: &Context<'_>) -> Option<Evaluation> {
    let type_ = Type::ValidIdpConfiguration;
    if !context.is_oauth_enabled() {
        return None;
    }
    Some(match components::oauth_openshift::validate(context) {
        Ok(()) => Evaluation {
            reason: "IDPConfigurationValid".to_owned(),
            message: "Identity provider configuration is valid".to_owned(),
            ..Evaluation::yes(type_)
        },
        Err(message) => Evaluation::no(type_, "IDPConfigurationError", message),
    })
}

/// Whether the control plane is available. Until it is available for the first time, every component must be available.
fn available(context: &Context<'_>, needed: &[&Evaluation]) -> Evaluation {
    let type_ = Type::Available;
    if let Some(unmet) = needed.iter().find(|evaluation| !evaluation.is_met()) {
        return Evaluation::no(
            type_,
            &unmet.reason,
            format!("{}: {}", unmet.type_, unmet.message),
        );
    }
    if kubeconfig(context).is_none() {
        return Evaluation::no(
            type_,
            "KubeconfigWaitingForCreate",
            "Waiting for the admin kubeconfig to be created",
        );
    }
    let waiting = unavailable(context);
    if !was_available(context) && !waiting.is_empty() {
        let message = format!(
            "Waiting for components to become available: {}",
            waiting.join(", ")
        );
        return Evaluation::no(type_, "ComponentsNotAvailable", message);
    }
    Evaluation::yes(type_)
}

/// Whether components are unavailable after the control plane has been available.
fn degraded(context: &Context<'_>) -> Evaluation {
    let type_ = Type::Degraded;
    let waiting = unavailable(context);
    if was_available(context) && !waiting.is_empty() {
        return Evaluation {
            status: "True",
            ..Evaluation::no(
                type_,
                "UnavailableReplicas",
                format!("Components are not available: {}", waiting.join(", ")),
            )
        };
    }
    Evaluation {
        status: "False",
        ..Evaluation::yes(type_)
    }
}

/// Whether the control plane has been available before.
fn was_available(context: &Context<'_>) -> bool {
    let Some(status) = &context.hcp.status else {
        return false;
    };
    let history = status
        .control_plane_version
        .iter()
        .flat_map(|version| &version.history);
    let completed = history
        .into_iter()
        .any(|entry| entry.state == ControlPlaneUpdateState::Completed);
    completed || status.ready || is_true(&status.conditions, AVAILABLE)
}

fn enabled_components(context: &Context<'_>) -> impl Iterator<Item = &'static Component> {
    components::all()
        .iter()
        .filter(|component| component.has_workload() && component.is_enabled(context))
}

fn component_status(objects: &Objects, name: &str) -> ControlPlaneComponentStatus {
    let object = objects.get(GROUP, "ControlPlaneComponent", name);
    let status = object
        .map(|object| object["status"].clone())
        .unwrap_or_default();
    serde_json::from_value(status).unwrap_or_default()
}

fn unavailable(context: &Context<'_>) -> Vec<&'static str> {
    let all = enabled_components(context).map(|component| component.name);
    all.filter(|name| {
        !is_true(
            &component_status(context.objects, name).conditions,
            AVAILABLE,
        )
    })
    .collect()
}

/// Whether all components run the release.
fn is_rolled_out(context: &Context<'_>) -> bool {
    enabled_components(context).all(|component| {
        let status = component_status(context.objects, component.name);
        status.version.as_deref() == Some(context.release.version.as_str())
            && is_true(&status.conditions, ROLLOUT_COMPLETE)
    })
}

/// Name and key of the administrator's kubeconfig, if it exists.
fn kubeconfig(context: &Context<'_>) -> Option<Value> {
    let requested = context.spec().kubeconfig.as_ref();
    let name = requested.map_or("admin-kubeconfig", |requested| requested.name.as_str());
    let key = requested.map_or("kubeconfig", |requested| requested.key.as_str());
    context.objects.secret_value(name, key)?;
    Some(json!({ "name": name, "key": key }))
}

/// Returns all conditions. While applying fails, `Degraded` stays unchanged: consecutive failures set it, and the next
/// successful reconcile clears it.
pub(super) fn conditions(
    context: &Context<'_>,
    mut evaluations: Vec<Evaluation>,
    has_failed: bool,
    now: &Time,
) -> Vec<Condition> {
    evaluations.push(etcd(context));
    evaluations.push(api_server(context));
    let needed: Vec<_> = evaluations.iter().collect();
    let available = available(context, &needed);
    evaluations.push(available);
    evaluations.extend(identity_providers(context));
    evaluations.push(Evaluation::unknown(
        Type::ExternalDnsReachable,
        "DNS names are not checked",
    ));
    let kept = if has_failed {
        existing_condition(context.hcp, Type::Degraded).cloned()
    } else {
        None
    };
    if kept.is_none() {
        evaluations.push(degraded(context));
    }
    let decided = evaluations
        .into_iter()
        .map(|evaluation| evaluation.condition(context.hcp, now));
    decided.chain(kept).collect()
}

/// Returns an existing condition.
pub(super) fn existing_condition(hcp: &HostedControlPlane, type_: Type) -> Option<&Condition> {
    let status = hcp.status.as_ref()?;
    let mut all = status.conditions.iter();
    all.find(|condition| condition.type_ == type_.as_str())
}

/// Sets the version history. It is kept while the registry is unavailable.
pub(super) fn versions(context: &Context<'_>, has_release: bool, now: &Time, fields: &mut Value) {
    let before = context.hcp.status.as_ref();
    let history = before.and_then(|status| status.control_plane_version.as_ref());
    if !has_release {
        if history.is_some() {
            fields["controlPlaneVersion"] = json!(history);
        }
        return;
    }
    let (release, generation) = (context.release, context.hcp.metadata.generation);
    let complete = is_rolled_out(context);
    fields["controlPlaneVersion"] =
        json!(history::next(history, release, complete, generation, now));
    let (version, image) = if complete {
        (
            Some(release.version.clone()),
            Some(release.pull_spec.clone()),
        )
    } else {
        (
            before.and_then(|before| before.version.clone()),
            before.and_then(|before| before.release_image.clone()),
        )
    };
    fields["version"] = json!(version);
    fields["releaseImage"] = json!(image);
}

/// Returns the status without conditions and versions.
pub(super) fn fields(context: &Context<'_>, is_available: bool) -> Value {
    let mut status = json!({
        "ready": is_available,
        "initialized": true,
        "externalManagedControlPlane": true,
    });
    let api = &context.infra.api;
    if api.is_known() {
        status["controlPlaneEndpoint"] = json!({ "host": api.host, "port": api.port });
    }
    if context.infra.oauth.is_known() {
        let template = format!(
            "{}/oauth2callback/[identity-provider-name]",
            context.infra.oauth.url()
        );
        status["oauthCallbackURLTemplate"] = json!(template);
    }
    if let Some(kubeconfig) = kubeconfig(context) {
        status["kubeConfig"] = kubeconfig;
    }
    let custom = "custom-admin-kubeconfig";
    if context.objects.secret_value(custom, "kubeconfig").is_some() {
        status["customKubeconfig"] = json!({ "name": custom, "key": "kubeconfig" });
    }
    if let Some(password) = crate::kubeadmin::status(context) {
        status["kubeadminPassword"] = password;
    }
    status
}
