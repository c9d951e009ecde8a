//! The key of new clusters on KubeVirt that do not say how Secrets are encrypted in etcd.
//!
//! The Secret with the key is only created, never changed: without its key, what is in etcd cannot be read. Clusters that are
//! older than this default keep their settings.

use api::hypershift::v1beta1::HostedCluster;
use api::hypershift::v1beta1::platform::PlatformType;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::PostParams;
use kube::{Api, Resource as _};
use serde_json::json;
use support::apply::Applier;
use support::reconcile::is_conflict;

use super::{Id, defaults};
use crate::context::Context;
use crate::error::Error;
use crate::facts::Facts;
use crate::names::FIELD_MANAGER;

/// Field manager of the reference to the key, which is set once.
const MANAGER: &str = "hypershift-operator-encryption-key";
/// Key of the Secret.
const KEY: &str = "key";
/// Bytes of a key for AES.
const KEY_BYTES: usize = 32;
/// The label of Secrets that were created for an infrastructure, as `create cluster` sets it.
const CREATED_FOR: &str = "hypershift.openshift.io/auto-created-for-infra";

/// Creates the key of a cluster that needs one, and refers to it. If that is not possible, the facts get the reason.
/// Returns whether the HostedCluster was changed.
pub(super) async fn ensure(facts: &mut Facts, ctx: &Context) -> Result<bool, Error> {
    if !is_due(&facts.cluster) {
        return Ok(false);
    }
    let secret = format!("{}-etcd-encryption-key", facts.id.name);
    let problem = create(&facts.cluster, &facts.id, &secret, ctx).await?;
    if let Some(problem) = problem {
        facts.no_encryption_key = Some(problem);
        return Ok(false);
    }
    let Id { namespace, name } = &facts.id;
    let body = json!({
        "metadata": { "namespace": namespace, "name": name },
        "spec": { "secretEncryption": {
            "type": "aescbc",
            "aescbc": { "activeKey": { "name": secret } },
        } },
    });
    let once = Applier::new(ctx.client.clone(), MANAGER);
    once.apply_value(&super::resource(), body).await?;
    Ok(true)
}

/// Whether a cluster gets a generated key.
fn is_due(cluster: &HostedCluster) -> bool {
    let spec = &cluster.spec;
    spec.platform.type_ == PlatformType::KubeVirt
        && spec.secret_encryption.is_none()
        && defaults::is_new(cluster)
}

/// Creates the Secret. An existing one is used if it is this cluster's; otherwise, the result is the reason why it is not.
async fn create(
    cluster: &HostedCluster,
    id: &Id,
    name: &str,
    ctx: &Context,
) -> Result<Option<String>, Error> {
    let Some(desired) = secret(cluster, id, name) else {
        let problem = "failed to generate a key for spec.secretEncryption: the operating system returned no random bytes";
        return Ok(Some(problem.to_owned()));
    };
    let params = PostParams {
        field_manager: Some(FIELD_MANAGER.to_owned()),
        ..PostParams::default()
    };
    let object = format!("Secret {}/{name}", id.namespace);
    let api: Api<Secret> = Api::namespaced(ctx.client.clone(), &id.namespace);
    match api.create(&params, &desired).await {
        Ok(_) => return Ok(None),
        Err(error) if is_conflict(&error) => {}
        Err(source) => return Err(Error::Write { object, source }),
    }
    // An earlier reconcile was interrupted after it had created the Secret, or it is a Secret of another owner.
    match api.get(name).await {
        Ok(found) if is_own(&found, cluster) => Ok(None),
        Ok(_) => Ok(Some(format!(
            "spec.secretEncryption is not set, and {object} exists and was not created for this cluster or has no key: \
             delete it, or set spec.secretEncryption"
        ))),
        Err(source) => Err(Error::Read {
            what: object,
            source,
        }),
    }
}

/// A Secret with a new key, which is deleted with the cluster.
fn secret(cluster: &HostedCluster, id: &Id, name: &str) -> Option<Secret> {
    let mut key = vec![0; KEY_BYTES];
    let provider = rustls::crypto::aws_lc_rs::default_provider();
    provider.secure_random.fill(&mut key).ok()?;
    Some(Secret {
        metadata: ObjectMeta {
            namespace: Some(id.namespace.clone()),
            name: Some(name.to_owned()),
            owner_references: cluster.owner_ref(&()).map(|owner| vec![owner]),
            ..ObjectMeta::default()
        },
        type_: Some("Opaque".to_owned()),
        data: Some([(KEY.to_owned(), ByteString(key))].into()),
        ..Secret::default()
    })
}

/// Whether a Secret has a key, and was created for this cluster.
fn is_own(secret: &Secret, cluster: &HostedCluster) -> bool {
    let key = secret.data.as_ref().and_then(|data| data.get(KEY));
    let metadata = &secret.metadata;
    let uid = cluster.metadata.uid.as_ref();
    let mut owners = metadata.owner_references.iter().flatten();
    let is_owned = owners.any(|owner| Some(&owner.uid) == uid);
    let infra_id = cluster.spec.infra_id.as_ref();
    let label = metadata.labels.as_ref().and_then(|it| it.get(CREATED_FOR));
    let is_labelled = label.is_some() && label == infra_id;
    key.is_some_and(|key| key.0.len() == KEY_BYTES) && (is_owned || is_labelled)
}

#[cfg(test)]
mod tests;
