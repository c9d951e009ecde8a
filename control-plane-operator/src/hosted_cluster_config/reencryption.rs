//! Encrypts what is stored in etcd again after a change of the encryption key.
//!
//! ```text
//!   API servers read with the new key ──> they write with it ──> stored objects are rewritten ──> the old key is dropped
//!   (control-plane-operator)              (control-plane-operator)  (kube-storage-version-migrator)
//! ```
//!
//! Where a rotation is follows from the live configuration and the pods of the API servers, never from the history.
//! The control-plane-operator reads `status.secretEncryption`, and changes the configuration accordingly.

mod metrics;
mod migration;
mod rotation;

use std::sync::Arc;
use std::time::Duration;

use api::conditions::ClusterCondition;
use api::hypershift::v1beta1::HostedControlPlane;
use api::hypershift::v1beta1::configuration::authentication::AuthenticationType;
use api::hypershift::v1beta1::secret_encryption::status::{
    SecretEncryptionKeyStatus, SecretEncryptionStatus,
};
use jiff::Timestamp;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Pod, Secret};
use kube::api::{DynamicObject, ListParams};
use kube::core::Selector;
use kube::{Api, ResourceExt as _};
use serde_json::{Value, json};
use support::error::chain;

use super::context::Context;
use super::control_plane::{self, DesiredCondition};
use super::error::Error;
use crate::encryption::config::{Config, Role};
use crate::encryption::key::{self, SECRET_KEY, requested};
use crate::encryption::{FILE, SECRET, SERVER, hash, rollout};
pub(super) use metrics::Metrics;
use rotation::{Change, Phase, Report, Rotation, Situation};

/// How often a rotation is looked at: terminating pods and migrations are not watched.
pub(super) const PERIOD: Duration = Duration::from_secs(30);
const FIELD: &str = "secretEncryption";
/// Suffix of resources that exist only with the OAuth server.
const OAUTH: &str = ".oauth.openshift.io";

/// What is known of the API servers.
struct Servers {
    /// The Secrets of the control plane.
    secrets: Vec<Arc<DynamicObject>>,
    deployment: Option<Arc<Deployment>>,
    pods: Api<Pod>,
}

/// Takes the next step of a rotation.
pub(super) async fn pass(ctx: &Context) -> Result<(), Error> {
    let Some(object) = ctx.control_plane().await? else {
        return Ok(());
    };
    if object.metadata.deletion_timestamp.is_some() {
        return Ok(());
    }
    let servers = Servers {
        secrets: ctx.resources.sources.secrets().await?,
        deployment: ctx.api_servers().await?,
        pods: Api::namespaced(ctx.management.clone(), &ctx.namespace),
    };
    let change = reconcile(&ctx.control_planes(), &object, &servers, &ctx.guest).await?;
    ctx.metrics.encryption().record(&object, change.as_ref());
    Ok(())
}

async fn reconcile(
    control_planes: &Api<DynamicObject>,
    object: &DynamicObject,
    servers: &Servers,
    guest: &kube::Client,
) -> Result<Option<Change>, Error> {
    let hcp = control_plane::typed(object)?;
    let now = Timestamp::now();
    let Some(change) = decide(&hcp, servers, guest, now).await? else {
        return Ok(None);
    };
    let generation = object.metadata.generation;
    control_plane::write(control_planes, object, |status| {
        put(status, &change, generation, now);
    })
    .await?;
    Ok(Some(change))
}

async fn decide(
    hcp: &HostedControlPlane,
    servers: &Servers,
    guest: &kube::Client,
    now: Timestamp,
) -> Result<Option<Change>, Error> {
    let status = hcp.status.as_ref();
    let status = status.and_then(|status| status.secret_encryption.clone());
    let spec = hcp.spec.secret_encryption.as_ref();
    let rotation = Rotation::new(
        status.unwrap_or_default(),
        spec.and_then(key::vault_type),
        now,
    );
    let keys = spec.map(|spec| requested(spec, |name| servers.value(name, SECRET_KEY)));
    let keys = keys.transpose();
    let keys = keys.map_err(|it| Error::waiting(format!("{} with {}", it.object, it.what)))?;
    Ok(match rotation.situation(keys) {
        Situation::Idle => None,
        Situation::Off => Some(rotation.stop()),
        Situation::New(key) => Some(rotation.begin(key)),
        Situation::Changed { from, to } => Some(rotation.start(from, &to)),
        Situation::Rotating(target) => {
            let phase = phase(&rotation, &target, hcp, servers, guest).await?;
            Some(rotation.proceed(&target, &phase))
        }
    })
}

/// Finds out how far the API servers are, and rewrites objects once all of them encrypt with the new key.
async fn phase(
    rotation: &Rotation,
    target: &SecretEncryptionKeyStatus,
    hcp: &HostedControlPlane,
    servers: &Servers,
    guest: &kube::Client,
) -> Result<Phase, Error> {
    let Some(text) = servers.value(SECRET, FILE) else {
        return Ok(Phase::NotDeployed);
    };
    let config = Config::parse(&text).map_err(|problem| Error::Form {
        object: format!("Secret {SECRET}"),
        problem,
    })?;
    let role = config.role(target, rotation.vault());
    if role == Role::Absent {
        return Ok(Phase::NotDeployed);
    }
    let lacking = servers.lacking(&hash(&text)).await;
    Ok(match (role, lacking) {
        (Role::Absent, _) => Phase::NotDeployed,
        (Role::Read, Some(lacking)) => Phase::NotReadByAll(lacking),
        (Role::Read, None) => Phase::ReadByAll,
        (Role::Write, Some(lacking)) => Phase::NotWrittenByAll(lacking),
        (Role::Write, None) => {
            let resources = resources(&config, hcp);
            let key = rotation.fingerprint(target);
            Phase::Migrating(migration::run(guest, &resources, &key, rotation.now()).await?)
        }
    })
}

/// The encrypted resources that can exist.
fn resources(config: &Config, hcp: &HostedControlPlane) -> Vec<String> {
    let configuration = hcp.spec.configuration.as_ref();
    let authentication = configuration.and_then(|it| it.authentication.as_ref());
    let type_ = authentication.and_then(|it| it.type_);
    let has_oauth = type_ != Some(AuthenticationType::Oidc);
    let resources = config.resources.iter().cloned();
    resources
        .filter(|resource| has_oauth || !resource.ends_with(OAUTH))
        .collect()
}

fn put(status: &mut Value, change: &Change, generation: Option<i64>, now: Timestamp) {
    let known = status.get(FIELD).cloned().unwrap_or_default();
    let known = serde_json::from_value::<SecretEncryptionStatus>(known).unwrap_or_default();
    if known != change.encryption {
        status[FIELD] = json!(change.encryption);
    }
    let is_empty = change.encryption == SecretEncryptionStatus::default();
    if let Some(fields) = status.as_object_mut().filter(|_| is_empty) {
        // The API does not accept an empty object.
        fields.remove(FIELD);
    }
    let type_ = ClusterCondition::EtcdDataEncryptionUpToDate;
    match &change.report {
        Report::Absent => {
            let conditions = status.get_mut("conditions");
            if let Some(conditions) = conditions.and_then(Value::as_array_mut) {
                conditions.retain(|condition| condition["type"] != type_.as_str());
            }
        }
        Report::Is(status_of, reason, message) => {
            let desired = DesiredCondition {
                type_,
                status: *status_of,
                reason: reason.as_str(),
                message: message.clone(),
            };
            control_plane::set(status, &[desired], generation, now);
        }
    }
}

// === impl Servers ===

impl Servers {
    fn value(&self, name: &str, key: &str) -> Option<Vec<u8>> {
        let found = self.secrets.iter().find(|it| it.name_any() == name)?;
        let secret: Secret = serde_json::from_value(json!({ "data": found.data["data"] })).ok()?;
        secret.data?.remove(key).map(|value| value.0)
    }

    /// What is lacking until all API servers have read the configuration with this hash.
    async fn lacking(&self, hash: &str) -> Option<String> {
        let deployment = self.deployment.as_deref();
        let lacking = rollout::unfinished(deployment, hash);
        if lacking.is_some() {
            return lacking;
        }
        match self.terminating().await {
            Ok(None) => None,
            Ok(Some(pod)) => Some(format!("Pod {pod} is terminating")),
            // A pod that may still serve with the old configuration would write with the old key.
            Err(problem) => Some(format!("failed to list Pods of {SERVER}: {problem}")),
        }
    }

    async fn terminating(&self) -> Result<Option<String>, String> {
        let spec = self.deployment.as_ref().and_then(|it| it.spec.as_ref());
        let selector = spec.map(|spec| spec.selector.clone()).unwrap_or_default();
        let selector: Selector = selector.try_into().map_err(|error| chain(&error))?;
        let params = ListParams::default().labels_from(&selector);
        let pods = self.pods.list_metadata(&params).await;
        let pods = pods.map_err(|error| chain(&error))?;
        let mut pods = pods.items.into_iter();
        let terminating = pods.find(|pod| pod.metadata.deletion_timestamp.is_some());
        Ok(terminating.map(|pod| pod.name_any()))
    }
}

#[cfg(test)]
mod tests;
