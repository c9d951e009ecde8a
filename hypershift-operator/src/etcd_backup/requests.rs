//! Requests of reconciles: the backups that have changed, and those whose Job has.

use std::sync::Arc;

use api::hypershift::v1beta1::HcpEtcdBackup;
use futures::{Stream, StreamExt as _, stream};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Api;
use kube::api::{ApiResource, DynamicObject};
use kube::runtime::WatchStreamExt as _;
use kube::runtime::reflector::store::Writer;
use support::controller::ObjectKey;
use support::error::chain;

use super::job::{APP, BACKUP_NAME, ETCD_BACKUP, HCP_NAMESPACE};
use crate::context::Context;
use crate::watches::{self, Lenient};

/// The kind.
pub(super) fn resource() -> ApiResource {
    ApiResource::erase::<HcpEtcdBackup>(&())
}

/// All of them. The writer gets the backups.
pub(super) fn all(
    ctx: &Arc<Context>,
    writer: Writer<DynamicObject>,
) -> impl Stream<Item = ObjectKey> + Send + use<> {
    stream::select(backups(ctx, writer).boxed(), of_jobs(ctx).boxed())
}

fn backups(
    ctx: &Arc<Context>,
    writer: Writer<DynamicObject>,
) -> impl Stream<Item = ObjectKey> + Send + use<> {
    let api: Api<Lenient<DynamicObject>> = Api::all_with(ctx.client.clone(), &resource());
    let events = watches::watch_optional(api, watches::config(), ctx.cache.crds());
    let events = watches::readable(events)
        .modify(|found| found.metadata.managed_fields = None)
        .reflect(writer)
        .touched_objects();
    events.filter_map(|event| {
        let key = event.map(|found| ObjectKey::of(&found.metadata));
        let key = key.inspect_err(|error| {
            tracing::debug!(error = chain(error), "Failed to watch HCPEtcdBackups");
        });
        std::future::ready(key.ok())
    })
}

/// The backups whose Job has changed.
fn of_jobs(ctx: &Arc<Context>) -> impl Stream<Item = ObjectKey> + Send + use<> {
    let namespace = &ctx.etcd_backups.namespace;
    let api: Api<Job> = Api::namespaced(ctx.client.clone(), namespace);
    let config = watches::config().labels(&format!("{APP}={ETCD_BACKUP}"));
    let events = watches::watch(api, config).touched_objects();
    events.filter_map(|event| {
        let event = event.inspect_err(|error| {
            tracing::debug!(error = chain(error), "Failed to watch backup Jobs");
        });
        let job = event.ok();
        std::future::ready(job.and_then(|job| key(&job.metadata)))
    })
}

/// The backup of a Job.
fn key(job: &ObjectMeta) -> Option<ObjectKey> {
    let namespace = job.labels.as_ref()?.get(HCP_NAMESPACE)?;
    let name = job.annotations.as_ref()?.get(BACKUP_NAME)?;
    Some(ObjectKey::new(namespace, name))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn a_job_names_its_backup() {
        let key = |labels: Value, annotations: Value| {
            let metadata = json!({ "labels": labels, "annotations": annotations });
            super::key(&serde_json::from_value(metadata).unwrap())
        };
        let label = json!({ HCP_NAMESPACE: "clusters-one" });
        let annotation = json!({ BACKUP_NAME: "nightly" });
        let expected = ObjectKey::new("clusters-one", "nightly");
        assert_eq!(key(label.clone(), annotation.clone()), Some(expected));
        assert_eq!(key(label, json!({})), None);
        assert_eq!(key(json!({}), annotation), None);
    }
}
