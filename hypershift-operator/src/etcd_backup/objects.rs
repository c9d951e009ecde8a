//! Writes the objects of a backup, and deletes them. An object that is found by its name belongs to the HostedCluster, or is
//! left as it is.

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Api;
use kube::api::{ApiResource, DynamicObject, PostParams};
use support::apply::Applier;
use support::reconcile::is_conflict;

use super::MANAGER;
use super::job::{self, BACKUP_UID, Input};
use super::manifest::{self, Manifest};
use super::observe::Cluster;
use crate::context::Context;
use crate::control_plane_namespace::owner;
use crate::error::Error;
use crate::names::{MANAGED_BY, OPERATOR};

/// Creates the Job, after what it needs. Returns why it may not, if an object is another one's.
pub(super) async fn start(
    input: &Input<'_>,
    cluster: &Cluster,
    ctx: &Context,
) -> Result<Option<String>, Error> {
    let applier = Applier::new(ctx.client.clone(), MANAGER);
    let account = manifest::service_account(input.namespace);
    // It is for all backups, so it belongs to no HostedCluster.
    let is_shared = |found: &ObjectMeta| owner(found).is_none();
    if let Some(problem) = apply(&account, is_shared, &applier).await? {
        return Ok(Some(problem));
    }
    let is_own = |found: &ObjectMeta| cluster.namespace.has(found);
    let access = manifest::access(&cluster.namespace, &cluster.id.to_string(), input.namespace);
    for manifest in &access {
        if let Some(problem) = apply(manifest, is_own, &applier).await? {
            return Ok(Some(problem));
        }
    }
    create(input, ctx).await
}

/// Deletes what lets Jobs in to etcd.
pub(super) async fn clean_up(cluster: &Cluster, ctx: &Context) -> Result<(), Error> {
    let applier = Applier::new(ctx.client.clone(), MANAGER);
    let is_own = |found: &ObjectMeta| {
        let labels = found.labels.as_ref();
        let is_managed =
            labels.is_some_and(|it| it.get(MANAGED_BY).is_some_and(|by| by == OPERATOR));
        is_managed && cluster.namespace.has(found)
    };
    for (resource, name) in manifest::access_names() {
        applier
            .prune(&resource, &cluster.namespace, &[name], is_own)
            .await?;
    }
    Ok(())
}

async fn apply(
    manifest: &Manifest,
    may_write: impl Fn(&ObjectMeta) -> bool,
    applier: &Applier,
) -> Result<Option<String>, Error> {
    let (namespace, name) = (manifest.namespace(), manifest.name());
    let object = format!("{} {namespace}/{name}", manifest.resource.kind);
    let client = applier.client().clone();
    let api: Api<DynamicObject> = Api::namespaced_with(client, namespace, &manifest.resource);
    let found = api.get_metadata_opt(name).await;
    let found = found.map_err(|source| Error::Read {
        what: object.clone(),
        source,
    })?;
    if found.is_some_and(|found| !may_write(&found.metadata)) {
        return Ok(Some(format!(
            "{object} belongs to another HostedCluster: delete it, and create an HCPEtcdBackup again"
        )));
    }
    applier
        .apply_value(&manifest.resource, manifest.body.clone())
        .await?;
    Ok(None)
}

/// Creates the Job. If it exists, it was created by a pass whose answer was lost.
async fn create(input: &Input<'_>, ctx: &Context) -> Result<Option<String>, Error> {
    let name = job::name(input.backup);
    let object = format!("Job {}/{name}", input.namespace);
    let desired: DynamicObject =
        serde_json::from_value(job::job(input)).map_err(|error| Error::Unreadable {
            object: object.clone(),
            problem: error.to_string(),
        })?;
    let resource = ApiResource::erase::<Job>(&());
    let api: Api<DynamicObject> =
        Api::namespaced_with(ctx.client.clone(), input.namespace, &resource);
    let params = PostParams {
        field_manager: Some(MANAGER.to_owned()),
        ..PostParams::default()
    };
    match api.create(&params, &desired).await {
        Ok(_) => return Ok(None),
        Err(error) if is_conflict(&error) => {}
        Err(source) => return Err(Error::Write { object, source }),
    }
    let found = api.get_metadata_opt(&name).await;
    let found = found.map_err(|source| Error::Read {
        what: object.clone(),
        source,
    })?;
    let annotations = found.and_then(|it| it.metadata.annotations);
    let uid = annotations.and_then(|mut it| it.remove(BACKUP_UID));
    if uid.is_some() && uid == input.backup.metadata.uid {
        return Ok(None);
    }
    Ok(Some(format!(
        "{object} exists and is not of this backup: delete it, and create an HCPEtcdBackup again"
    )))
}
