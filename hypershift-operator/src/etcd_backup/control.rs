//! The controller of HCPEtcdBackups.
//!
//! A backup is final only after everything that follows from it is written: access to etcd is removed, and the HostedCluster
//! and the HostedControlPlane have the result. A pass that was interrupted before is repeated.

use std::sync::Arc;
use std::time::Duration;

use api::hypershift::v1beta1::hcp_etcd_backup::HcpEtcdBackupStatus;
use api::hypershift::v1beta1::{HcpEtcdBackup, HostedControlPlane};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::api::{ApiResource, DynamicObject};
use kube::runtime::events::Recorder;
use kube::runtime::reflector::Store;
use kube::runtime::reflector::store::Writer;
use kube::{Api, Resource as _, ResourceExt as _};
use serde_json::json;
use support::apply::{self, Part, merge};
use support::controller::{
    Action, DEADLINE, Failure, ObjectKey, Reconciler, Settings, record_generation,
};
use support::reconcile::is_missing;
use support::shutdown::Drain;

use super::credentials::Credentials;
use super::images::{NoImages, images};
use super::job::Input;
use super::observe::{self, Cluster, Owner};
use super::plan::{self, JobState, Step};
use super::requests::{self, resource};
use super::retention::{self, Sibling};
use super::status::{self, Reason, Report, State};
use super::{MANAGER, objects};
use crate::cache;
use crate::context::Context;
use crate::error::{Error, step};

/// How backups are reconciled.
const SETTINGS: Settings = Settings {
    controller: "hcpetcdbackup",
    kind: "HCPEtcdBackup",
    // Two backups of a control plane must not both find that no Job runs.
    concurrency: 1,
    debounce: Duration::from_millis(100),
    deadline: DEADLINE,
};
/// When etcd and Jobs are looked at again.
const POLL_INTERVAL: Duration = Duration::from_secs(10);
/// When it is checked again which operator reconciles the HostedCluster.
const RESYNC: Duration = Duration::from_mins(5);

/// Reconciles backups.
struct Controller<'a> {
    ctx: &'a Arc<Context>,
    store: Store<DynamicObject>,
}

/// A backup that is not complete, and where its state is reported.
struct Unfinished<'a> {
    backup: &'a HcpEtcdBackup,
    cluster: &'a Cluster,
    control_plane: Option<DynamicObject>,
    jobs: &'a [JobState],
}

/// Reconciles until the shutdown begins. Reconciles in flight are completed.
pub(super) async fn run(ctx: &Arc<Context>, drain: Drain) {
    let writer = Writer::new(resource());
    let store = writer.as_reader();
    let requests = requests::all(ctx, writer);
    let synced = Arc::clone(&ctx.cache);
    let listed = store.clone();
    let ready = async move {
        // It fails only when the watch has ended, which ends this term of leadership, too.
        let _ = listed.wait_until_ready().await;
        synced.until_synced().await;
    };
    let controller = Controller { ctx, store };
    ctx.controllers
        .run(SETTINGS, &controller, requests, ready, drain)
        .await;
}

// === impl Controller ===

impl Reconciler for Controller<'_> {
    type Error = Error;

    async fn reconcile(&self, key: &ObjectKey) -> Result<Action, Error> {
        let found = cache::get(&self.store, resource(), key);
        let Some(found) = found.filter(|it| it.metadata.deletion_timestamp.is_none()) else {
            return self.forget(key).await;
        };
        record_generation(found.metadata.generation);
        let backup: HcpEtcdBackup = observe::typed(&found, SETTINGS.kind)?;
        match observe::owner(&key.namespace, self.ctx).await? {
            Owner::Cluster(cluster) => Box::pin(self.back_up(&backup, &cluster)).await,
            Owner::None(problem) => {
                if status::state(backup.status.as_ref()) == State::Unfinished {
                    let report = Report::new(Reason::BackupFailed, problem);
                    self.write_status(&backup, &report, None).await?;
                }
                Ok(Action::await_change())
            }
            Owner::Other => Ok(Action::requeue(RESYNC)),
        }
    }

    async fn failed(&self, _: &ObjectKey, failure: &Failure<Error>) {
        self.ctx.metrics.error(step(failure), failure.reason());
    }

    fn events(&self, key: &ObjectKey) -> Option<(Recorder, ObjectReference)> {
        let found = cache::get(&self.store, resource(), key)?;
        let object = found.object_ref(&resource());
        Some((self.ctx.recorder.clone(), object))
    }
}

impl Controller<'_> {
    /// A backup is gone: if it was deleted while its Job was running, access to etcd is still there.
    async fn forget(&self, key: &ObjectKey) -> Result<Action, Error> {
        if let Owner::Cluster(cluster) = observe::owner(&key.namespace, self.ctx).await? {
            let jobs = observe::jobs(&key.namespace, self.ctx).await?;
            self.clean_up(&key.name, &cluster, &jobs).await?;
        }
        Ok(Action::await_change())
    }

    async fn back_up(&self, backup: &HcpEtcdBackup, cluster: &Cluster) -> Result<Action, Error> {
        // client
        let jobs = observe::jobs(&cluster.namespace, self.ctx).await?;
        if status::state(backup.status.as_ref()) != State::Unfinished {
            let name = backup.name_any();
            self.clean_up(&name, cluster, &jobs).await?;
            self.delete_expired(&cluster.namespace).await?;
            return Ok(Action::await_change());
        }
        let read = observe::backup(backup, cluster, jobs, self.ctx).await?;
        // pure
        let step = plan::next(&read.observed);
        // client
        let unfinished = Unfinished {
            backup,
            cluster,
            control_plane: read.control_plane,
            jobs: &read.observed.jobs,
        };
        match step {
            Step::Wait(report) => self.wait(&unfinished, &report).await,
            Step::Start(credentials) => self.start(&unfinished, &credentials).await,
            Step::Collect(job) => self.collect(&unfinished, &job).await,
            Step::End(report) => self.end(&unfinished, &report, None).await,
        }
    }

    /// Creates the Job.
    async fn start(
        &self,
        unfinished: &Unfinished<'_>,
        credentials: &Credentials,
    ) -> Result<Action, Error> {
        let cluster = unfinished.cluster;
        let images = match images(cluster, self.ctx).await? {
            Ok(images) => images,
            Err(NoImages::Waiting(message)) => {
                let report = Report::new(Reason::BackupInProgress, message);
                return self.wait(unfinished, &report).await;
            }
            Err(NoImages::Failed(message)) => return self.fail(unfinished, message).await,
        };
        let input = Input {
            backup: unfinished.backup,
            cluster: &cluster.id,
            namespace: &self.ctx.etcd_backups.namespace,
            images: &images,
            credentials,
            user: cluster.user,
        };
        match objects::start(&input, cluster, self.ctx).await? {
            Some(problem) => self.fail(unfinished, problem).await,
            None => self.wait(unfinished, &plan::in_progress()).await,
        }
    }

    /// The Job has ended.
    async fn collect(&self, unfinished: &Unfinished<'_>, job: &JobState) -> Result<Action, Error> {
        let messages = observe::messages(job, self.ctx).await?;
        match plan::result(job, &messages) {
            Ok(url) => {
                let message = format!("Snapshot uploaded to {url}");
                let report = Report::new(Reason::BackupSucceeded, message);
                self.end(unfinished, &report, Some(&url)).await
            }
            Err(problem) => self.fail(unfinished, problem).await,
        }
    }

    async fn wait(&self, unfinished: &Unfinished<'_>, report: &Report) -> Result<Action, Error> {
        self.report(unfinished, report).await?;
        self.write_status(unfinished.backup, report, None).await?;
        Ok(Action::requeue(POLL_INTERVAL))
    }

    async fn fail(&self, unfinished: &Unfinished<'_>, problem: String) -> Result<Action, Error> {
        let report = Report::new(Reason::BackupFailed, problem);
        self.end(unfinished, &report, None).await
    }

    /// The backup is complete. Its own status is last.
    async fn end(
        &self,
        unfinished: &Unfinished<'_>,
        report: &Report,
        url: Option<&str>,
    ) -> Result<Action, Error> {
        let (backup, cluster) = (unfinished.backup, unfinished.cluster);
        let name = backup.name_any();
        self.clean_up(&name, cluster, unfinished.jobs).await?;
        if let Some(url) = url {
            self.record_url(cluster, url).await?;
        }
        self.report(unfinished, report).await?;
        self.write_status(backup, report, url).await?;
        // Its event requests the next reconcile, which deletes earlier backups.
        Ok(Action::await_change())
    }

    /// Writes the URL to the HostedCluster, if the HostedCluster is still as it was read.
    async fn record_url(&self, cluster: &Cluster, url: &str) -> Result<(), Error> {
        let hosted = &cluster.hosted;
        let before = hosted.status.as_ref();
        let before = before.and_then(|it| it.last_successful_etcd_backup_url.as_deref());
        if before == Some(url) {
            return Ok(());
        }
        let api = self.ctx.hosted_clusters(&cluster.id);
        let read = &cluster.object.metadata;
        let change = json!({ "status": { "lastSuccessfulEtcdBackupURL": url } });
        let merged = merge(&api, read, Part::Status, change, MANAGER).await;
        merged.map_err(|source| Error::Status {
            object: cluster.id.to_string(),
            source,
        })
    }

    /// Writes the condition of the HostedControlPlane, if it changes, and if the object is still as it was read. The
    /// controller of the HostedCluster copies it.
    async fn report(&self, unfinished: &Unfinished<'_>, report: &Report) -> Result<(), Error> {
        let Some(control_plane) = &unfinished.control_plane else {
            return Ok(());
        };
        let conditions = &control_plane.data["status"]["conditions"];
        let conditions: Vec<Condition> =
            serde_json::from_value(conditions.clone()).unwrap_or_default();
        let metadata = &control_plane.metadata;
        let now = Timestamp::now();
        let due = status::of_control_plane(&conditions, report, metadata.generation, now);
        let Some(condition) = due else {
            return Ok(());
        };
        let resource = ApiResource::erase::<HostedControlPlane>(&());
        let namespace = control_plane.namespace().unwrap_or_default();
        let api: Api<DynamicObject> =
            Api::namespaced_with(self.ctx.client.clone(), &namespace, &resource);
        let object = json!({
            "apiVersion": resource.api_version,
            "kind": resource.kind,
            "status": { "conditions": [condition] },
        });
        let written = apply::status(&api, metadata, object, MANAGER).await;
        written.map(drop).map_err(|source| Error::Write {
            object: format!(
                "the status of HostedControlPlane {namespace}/{}",
                control_plane.name_any()
            ),
            source,
        })
    }

    /// Writes the status of the backup, if it changes.
    async fn write_status(
        &self,
        backup: &HcpEtcdBackup,
        report: &Report,
        url: Option<&str>,
    ) -> Result<(), Error> {
        let before = backup.status.as_ref();
        let metadata = &backup.metadata;
        let mut after = status::status(before, report, metadata.generation, Timestamp::now());
        if let Some(url) = url {
            after.snapshot_url = Some(url.to_owned());
            after.encryption_metadata = status::encryption(&backup.spec.storage);
        }
        let Some(change) = status::change(before, &after) else {
            return Ok(());
        };
        let namespace = backup.namespace().unwrap_or_default();
        let api = self.backups(&namespace);
        let merged = merge(&api, metadata, Part::Status, change, MANAGER).await;
        merged.map_err(|source| Error::Write {
            object: format!(
                "the status of HCPEtcdBackup {namespace}/{}",
                backup.name_any()
            ),
            source,
        })
    }

    /// Removes access to etcd, unless another backup of the control plane needs it.
    async fn clean_up(
        &self,
        name: &str,
        cluster: &Cluster,
        jobs: &[JobState],
    ) -> Result<(), Error> {
        let siblings = self.siblings(&cluster.namespace);
        if retention::is_access_needed(&siblings, name, jobs) {
            return Ok(());
        }
        objects::clean_up(cluster, self.ctx).await
    }

    /// Deletes the oldest backups above the number to keep.
    async fn delete_expired(&self, namespace: &str) -> Result<(), Error> {
        let siblings = self.siblings(namespace);
        let api = self.backups(namespace);
        for expired in retention::expired(&siblings, self.ctx.etcd_backups.max_count) {
            match apply::delete(&api, expired).await {
                Err(source) if !is_missing(&source) => {
                    let name = expired.name.as_deref().unwrap_or_default();
                    return Err(Error::Delete {
                        object: format!("HCPEtcdBackup {namespace}/{name}"),
                        source,
                    });
                }
                Ok(()) | Err(_) => {}
            }
        }
        Ok(())
    }

    /// The backups of a control plane.
    fn siblings(&self, namespace: &str) -> Vec<Sibling> {
        let all = self.store.state();
        let own = all
            .iter()
            .filter(|it| it.metadata.namespace.as_deref() == Some(namespace));
        let siblings = own.map(|it| {
            let status = it.data["status"].clone();
            let status: Option<HcpEtcdBackupStatus> = serde_json::from_value(status).ok();
            Sibling {
                metadata: it.metadata.clone(),
                state: status::state(status.as_ref()),
            }
        });
        siblings.collect()
    }

    fn backups(&self, namespace: &str) -> Api<DynamicObject> {
        Api::namespaced_with(self.ctx.client.clone(), namespace, &resource())
    }
}

#[cfg(test)]
mod tests;
