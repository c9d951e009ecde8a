//! The status of the HostedControlPlane: conditions, addresses, names of kubeconfigs. Pure.

use api::conditions::ClusterCondition as Type;
use api::hypershift::v1beta1::versions::ControlPlaneUpdateState;
use api::hypershift::v1beta1::{ControlPlaneComponentStatus, HostedControlPlane};
use control_plane_component::dependency::GROUP;
use control_plane_component::status::{AVAILABLE, ROLLOUT_COMPLETE, is_true};
use control_plane_component::{Component, Context, Objects};
use k8s_openapi::api::apps::v1::{Deployment, StatefulSet};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use serde_json::{Value, json};

use super::history;
use crate::components;

/// A condition, before it is compared with the former one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Verdict {
    pub(super) type_: Type,
    pub(super) status: &'static str,
    pub(super) reason: String,
    pub(super) message: String,
}

impl Verdict {
    pub(super) fn yes(type_: Type) -> Self {
        Self {
            type_,
            status: "True",
            reason: "AsExpected".to_owned(),
            message: "All is well".to_owned(),
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

    fn holds(&self) -> bool {
        self.status == "True"
    }

    /// As a condition; it keeps its time as long as its status is the same.
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

/// Whether the infrastructure has its addresses.
pub(super) fn infrastructure(missing: &[&str]) -> Verdict {
    if missing.is_empty() {
        return Verdict::yes(Type::InfrastructureReady);
    }
    let message = format!("not known yet: {}", missing.join(", "));
    Verdict::no(Type::InfrastructureReady, "WaitingForAvailable", message)
}

/// Whether etcd has a quorum.
fn etcd(context: &Context<'_>) -> Verdict {
    if !context.is_etcd_managed() {
        return Verdict::yes(Type::EtcdAvailable);
    }
    let Some(set) = context
        .objects
        .typed::<StatefulSet>("apps", "StatefulSet", "etcd")
    else {
        return Verdict::no(
            Type::EtcdAvailable,
            "StatefulSetNotFound",
            "the StatefulSet etcd is not there yet",
        );
    };
    let members = set.spec.and_then(|spec| spec.replicas).unwrap_or(1);
    let ready = set
        .status
        .and_then(|status| status.ready_replicas)
        .unwrap_or(0);
    if ready > members / 2 {
        return Verdict {
            reason: "QuorumAvailable".to_owned(),
            message: format!("{ready} of {members} members are ready"),
            ..Verdict::yes(Type::EtcdAvailable)
        };
    }
    let message = format!(
        "{ready} of {members} members are ready, and {} are needed",
        members / 2 + 1
    );
    Verdict::no(Type::EtcdAvailable, "EtcdWaitingForQuorum", message)
}

/// Whether the API server answers.
fn api_server(context: &Context<'_>) -> Verdict {
    let type_ = Type::KubeApiServerAvailable;
    let Some(deployment) =
        context
            .objects
            .typed::<Deployment>("apps", "Deployment", "kube-apiserver")
    else {
        return Verdict::no(
            type_,
            "NotFound",
            "the Deployment kube-apiserver is not there yet",
        );
    };
    let conditions = deployment
        .status
        .and_then(|status| status.conditions)
        .unwrap_or_default();
    match conditions
        .iter()
        .find(|condition| condition.type_ == AVAILABLE)
    {
        Some(condition) if condition.status == "True" => Verdict::yes(type_),
        Some(condition) => {
            let message = condition.message.clone().unwrap_or_default();
            Verdict::no(type_, "WaitingForAvailable", message)
        }
        None => Verdict::no(
            type_,
            "WaitingForAvailable",
            "the Deployment kube-apiserver has no pod that is ready yet",
        ),
    }
}

/// Whether the cluster can be used. Until it could for the first time, every component has to be there.
fn available(context: &Context<'_>, needed: &[&Verdict]) -> Verdict {
    let type_ = Type::Available;
    if let Some(lacks) = needed.iter().find(|verdict| !verdict.holds()) {
        return Verdict::no(
            type_,
            &lacks.reason,
            format!("{}: {}", lacks.type_, lacks.message),
        );
    }
    if kubeconfig(context).is_none() {
        return Verdict::no(
            type_,
            "KubeconfigWaitingForCreate",
            "the kubeconfig is not there yet",
        );
    }
    let waiting = unavailable(context);
    if !was_available(context) && !waiting.is_empty() {
        let message = format!("components are not available yet: {}", waiting.join(", "));
        return Verdict::no(type_, "ComponentsNotAvailable", message);
    }
    Verdict::yes(type_)
}

/// Whether something that has worked does not.
fn degraded(context: &Context<'_>) -> Verdict {
    let type_ = Type::Degraded;
    let waiting = unavailable(context);
    if was_available(context) && !waiting.is_empty() {
        return Verdict {
            status: "True",
            ..Verdict::no(
                type_,
                "UnavailableReplicas",
                format!("components are not available: {}", waiting.join(", ")),
            )
        };
    }
    Verdict {
        status: "False",
        ..Verdict::yes(type_)
    }
}

/// Whether the cluster could be used at any time: now, or when a release was complete.
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

fn wanted(context: &Context<'_>) -> impl Iterator<Item = &'static Component> {
    components::all()
        .iter()
        .filter(|component| component.is_wanted(context))
}

fn told(objects: &Objects, name: &str) -> ControlPlaneComponentStatus {
    let object = objects.get(GROUP, "ControlPlaneComponent", name);
    let status = object
        .map(|object| object["status"].clone())
        .unwrap_or_default();
    serde_json::from_value(status).unwrap_or_default()
}

fn unavailable(context: &Context<'_>) -> Vec<&'static str> {
    let all = wanted(context).map(|component| component.name);
    all.filter(|name| !is_true(&told(context.objects, name).conditions, AVAILABLE))
        .collect()
}

/// Whether all components run the release.
fn is_rolled_out(context: &Context<'_>) -> bool {
    wanted(context).all(|component| {
        let told = told(context.objects, component.name);
        told.version.as_deref() == Some(context.release.version.as_str())
            && is_true(&told.conditions, ROLLOUT_COMPLETE)
    })
}

/// Name and key of the administrator's kubeconfig, once it is there.
fn kubeconfig(context: &Context<'_>) -> Option<Value> {
    let wish = context.spec().kubeconfig.as_ref();
    let name = wish.map_or("admin-kubeconfig", |wish| wish.name.as_str());
    let key = wish.map_or("kubeconfig", |wish| wish.key.as_str());
    context.objects.secret_value(name, key)?;
    Some(json!({ "name": name, "key": key }))
}

/// All conditions. As long as writes fail, `Degraded` stays as it is: a few failures in a row set it, and the next pass
/// that succeeds clears it.
pub(super) fn conditions(
    context: &Context<'_>,
    mut verdicts: Vec<Verdict>,
    has_failed: bool,
    now: &Time,
) -> Vec<Condition> {
    verdicts.push(etcd(context));
    verdicts.push(api_server(context));
    let needed: Vec<_> = verdicts.iter().collect();
    let available = available(context, &needed);
    verdicts.push(available);
    verdicts.push(Verdict::unknown(
        Type::ExternalDnsReachable,
        "names are not looked up from here",
    ));
    let kept = if has_failed {
        current(context, Type::Degraded)
    } else {
        None
    };
    if kept.is_none() {
        verdicts.push(degraded(context));
    }
    let decided = verdicts
        .into_iter()
        .map(|verdict| verdict.condition(context.hcp, now));
    decided.chain(kept).collect()
}

/// A condition as it is.
fn current(context: &Context<'_>, type_: Type) -> Option<Condition> {
    let status = context.hcp.status.as_ref()?;
    let mut all = status.conditions.iter();
    all.find(|condition| condition.type_ == type_.as_str())
        .cloned()
}

/// Adds which versions there have been. What is known stays known while the registry cannot be asked.
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

/// All of the status but conditions and versions: what is known so far.
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
    if let Some(password) = crate::kubeadmin::told(context) {
        status["kubeadminPassword"] = password;
    }
    status
}
