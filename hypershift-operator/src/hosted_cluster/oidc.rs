//! The documents by which AWS validates tokens of a HostedCluster: stored once there is an API server that issues tokens, and
//! deleted with the HostedCluster. A finalizer says that they are there.

use api::hypershift::v1beta1::HostedCluster;
use api::hypershift::v1beta1::platform::PlatformType;
use k8s_openapi::api::core::v1::Secret;
use serde_json::json;
use support::apply::Applier;

use crate::context::Context;
use crate::error::Error;
use crate::facts::{Facts, OidcDocuments};
use crate::names;
use crate::platform::aws::oidc::{Documents, Owner, Store};

/// The finalizer of a HostedCluster with documents. It is the one of other operators, too.
pub(super) const FINALIZER: &str = "hypershift.io/aws-oidc-discovery";
/// Field manager of the finalizer.
const MANAGER: &str = "hypershift-operator-oidc";
/// Key of the Secret of the signing key.
const PUBLIC_KEY: &str = "service-account.pub";

/// Whether the operator stores documents of such a cluster: users with a signing key of their own do that themselves.
pub(super) fn are_stored(cluster: &HostedCluster) -> bool {
    let spec = &cluster.spec;
    spec.platform.type_ == PlatformType::Aws && spec.service_account_signing_key.is_none()
}

/// Whether they are stored already.
pub(super) fn is_recorded(cluster: &HostedCluster) -> bool {
    let mut finalizers = cluster.metadata.finalizers.iter().flatten();
    finalizers.any(|it| it == FINALIZER)
}

/// Stores them, if that is due, and records the result.
pub(super) async fn ensure(facts: &mut Facts, ctx: &Context) -> Result<(), Error> {
    if !is_due(facts) {
        return Ok(());
    }
    let stored = match &ctx.oidc {
        None => OidcDocuments::Unconfigured,
        Some(bucket) => {
            let secret = ctx
                .get::<Secret>(&facts.namespace, names::SIGNING_KEY)
                .await?;
            store(facts, secret.as_ref(), bucket).await
        }
    };
    facts.oidc_documents = Some(stored);
    Ok(())
}

fn is_due(facts: &Facts) -> bool {
    let control_plane = facts.control_plane.as_ref();
    let status = control_plane.and_then(|it| it.status.as_ref());
    are_stored(&facts.cluster)
        && !is_recorded(&facts.cluster)
        && status.is_some_and(|it| it.kube_config.is_some())
}

async fn store(facts: &Facts, secret: Option<&Secret>, bucket: &Store) -> OidcDocuments {
    let key = secret.and_then(|it| it.data.as_ref()?.get(PUBLIC_KEY));
    let pem = key.and_then(|it| std::str::from_utf8(&it.0).ok());
    let documents = Documents::new(&facts.cluster.spec.issuer_url, pem.unwrap_or_default());
    let documents = match documents {
        Ok(documents) => documents,
        Err(invalid) => {
            let (namespace, name) = (&facts.namespace, names::SIGNING_KEY);
            return OidcDocuments::Failed(format!(
                "failed to read key {PUBLIC_KEY} of Secret {namespace}/{name}: {invalid}. The control-plane-operator makes \
                 another one if the Secret is deleted"
            ));
        }
    };
    match bucket.publish(owner(facts), &documents).await {
        Ok(()) => OidcDocuments::Stored,
        Err(problem) => OidcDocuments::Failed(problem),
    }
}

/// Adds the finalizer, if they were stored now.
pub(super) async fn record(facts: &Facts, ctx: &Context) -> Result<(), Error> {
    if facts.oidc_documents != Some(OidcDocuments::Stored) {
        return Ok(());
    }
    let body = json!({ "metadata": {
        "namespace": facts.id.namespace,
        "name": facts.id.name,
        // A HostedCluster that was deleted meanwhile is not made again.
        "uid": facts.cluster.metadata.uid,
        "finalizers": [FINALIZER],
    }});
    let applier = Applier::new(ctx.client.clone(), MANAGER);
    applier.apply_value(&super::resource(), body).await?;
    Ok(())
}

/// Records in documents that another operator has stored whose they are, as long as the signing key proves it: only such
/// documents are deleted. If that fails, they are kept.
pub(super) async fn claim(facts: &Facts, ctx: &Context) -> Result<(), Error> {
    let is_recorded = is_recorded(&facts.cluster) && !facts.infra_id().is_empty();
    let Some(bucket) = ctx.oidc.as_ref().filter(|_| is_recorded) else {
        return Ok(());
    };
    let secret = ctx
        .get::<Secret>(&facts.namespace, names::SIGNING_KEY)
        .await?;
    if secret.is_none() {
        return Ok(());
    }
    if let OidcDocuments::Failed(problem) = store(facts, secret.as_ref(), bucket).await {
        tracing::warn!(problem, "OIDC documents not marked for their deletion");
    }
    Ok(())
}

/// Deletes those that are stored. Returns the problem, if there is one, and where they are.
pub(super) async fn delete(facts: &Facts, ctx: &Context) -> Result<(), (String, String)> {
    let infra_id = facts.infra_id();
    let Some(store) = &ctx.oidc else {
        let problem = format!(
            "this operator has no bucket with OIDC documents: the administrator of the management cluster runs it with \
             --oidc-storage-provider-s3-bucket-name, -region and -credentials, or deletes the documents and removes \
             finalizer {FINALIZER} from the HostedCluster"
        );
        return Err((infra_id.to_owned(), problem));
    };
    if infra_id.is_empty() {
        return Ok(());
    }
    let deleted = store.delete(owner(facts)).await;
    deleted.map_err(|problem| (store.place(infra_id), problem))
}

fn owner(facts: &Facts) -> Owner<'_> {
    let uid = facts.cluster.metadata.uid.as_deref();
    Owner {
        uid: uid.unwrap_or_default(),
        infra_id: facts.infra_id(),
    }
}

#[cfg(test)]
mod tests;
