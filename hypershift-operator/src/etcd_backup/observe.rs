//! Reads what a backup depends on.

use api::group::CapiTypes;
use api::hypershift::v1beta1::etcd::EtcdManagementType;
use api::hypershift::v1beta1::{HcpEtcdBackup, HostedCluster, HostedControlPlane};
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{self, ContainerStatus, Pod, Secret};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Api;
use kube::api::{ApiResource, DynamicObject, ListParams};
use ownership::Scope;
use serde_json::json;

use super::credentials;
use super::job::{APP, BACKUP_UID, ETCD_BACKUP, HCP_NAMESPACE, UPLOAD};
use super::plan::{Etcd, JobState, Messages, Observed, Progress};
use crate::cache;
use crate::cluster_ref::Id;
use crate::context::Context;
use crate::control_plane_namespace::{ControlPlaneNamespace, Namespace};
use crate::error::Error;
use crate::in_flight::Pass;
use crate::names::{CLUSTER, USER};

/// The `StatefulSet` of etcd.
const ETCD: &str = "etcd";
/// Label of the pods of a Job.
const JOB_NAME: &str = "batch.kubernetes.io/job-name";
/// The longest message of a container, in characters. Its end has the error.
const LONGEST_MESSAGE: usize = 1024;

/// Whose control plane a namespace has.
pub(super) enum Owner {
    Cluster(Box<Cluster>),
    /// There is none, and why.
    None(String),
    /// Another operator reconciles the HostedCluster, or it is being migrated.
    Other,
}

/// A HostedCluster that this operator reconciles.
pub(super) struct Cluster {
    pub(super) id: Id,
    /// The proof that the namespace is that of its control plane.
    pub(super) namespace: ControlPlaneNamespace,
    /// The user of the pods there, if the management cluster does not choose one.
    pub(super) user: Option<i64>,
    pub(super) object: DynamicObject,
    pub(super) hosted: HostedCluster,
    pub(super) types: CapiTypes,
    _pass: Pass,
}

/// What was read for a backup.
pub(super) struct Read {
    pub(super) observed: Observed,
    pub(super) control_plane: Option<DynamicObject>,
}

/// Finds the HostedCluster by the annotation of the namespace. The backup itself and the HostedControlPlane prove nothing:
/// programs of the tenant write to the namespace.
pub(super) async fn owner(namespace: &str, ctx: &Context) -> Result<Owner, Error> {
    let none = |problem: String| match ctx.scope {
        // The other operator reports it.
        Scope::Legacy => Owner::Other,
        Scope::Private | Scope::All => Owner::None(problem),
    };
    let absent = || {
        format!(
            "namespace {namespace} has no hosted control plane: create the HCPEtcdBackup in the namespace of one"
        )
    };
    let Some(id) = metadata(namespace, ctx)
        .await?
        .and_then(|it| id(&it, namespace))
    else {
        return Ok(none(absent()));
    };
    let pass = ctx.in_flight.begin(&id).await;
    // Before that, it may have been another one.
    let found = metadata(namespace, ctx).await?;
    let owned = Namespace::evaluate(&id.namespace, &id.name, found.as_ref());
    let Some(proof) = owned.owned().cloned() else {
        return Ok(none(absent()));
    };
    let read = ctx.hosted_clusters(&id).get_opt(&id.name).await;
    let read = read.map_err(|source| Error::Read {
        what: format!("HostedCluster {id}"),
        source,
    })?;
    let Some(object) = read else {
        return Ok(none(format!("HostedCluster {id} does not exist")));
    };
    let Some(types) = ctx.reconciled_types(&object, &owned).await? else {
        return Ok(Owner::Other);
    };
    let hosted = typed(&object, "HostedCluster")?;
    Ok(Owner::Cluster(Box::new(Cluster {
        namespace: proof,
        user: found.as_ref().and_then(user),
        object,
        hosted,
        types,
        _pass: pass,
        id,
    })))
}

/// The HostedCluster that a namespace names, if its control plane is there.
fn id(metadata: &ObjectMeta, namespace: &str) -> Option<Id> {
    let key = cache::annotated(metadata, CLUSTER)?;
    let id = Id {
        namespace: key.namespace,
        name: key.name,
    };
    (id.control_plane_namespace() == namespace).then_some(id)
}

/// The user that the pods of a control plane run as.
fn user(metadata: &ObjectMeta) -> Option<i64> {
    let user = metadata.annotations.as_ref()?.get(USER)?;
    user.parse().ok().filter(|user| *user > 0)
}

async fn metadata(namespace: &str, ctx: &Context) -> Result<Option<ObjectMeta>, Error> {
    let api: Api<v1::Namespace> = Api::all(ctx.client.clone());
    let found = api.get_metadata_opt(namespace).await;
    let found = found.map_err(|source| Error::Read {
        what: format!("Namespace {namespace}"),
        source,
    })?;
    Ok(found.map(|it| it.metadata))
}

/// The backup Jobs of a control plane.
pub(super) async fn jobs(control_plane: &str, ctx: &Context) -> Result<Vec<JobState>, Error> {
    let namespace = &ctx.etcd_backups.namespace;
    let api: Api<Job> = Api::namespaced(ctx.client.clone(), namespace);
    let selector = format!("{APP}={ETCD_BACKUP},{HCP_NAMESPACE}={control_plane}");
    let list = api.list(&ListParams::default().labels(&selector)).await;
    let list = list.map_err(|source| Error::List {
        what: format!("backup Jobs of namespace {control_plane} in namespace {namespace}"),
        source,
    })?;
    Ok(list.items.iter().map(job_state).collect())
}

/// Everything that decides about a backup that is not complete.
pub(super) async fn backup(
    backup: &HcpEtcdBackup,
    cluster: &Cluster,
    jobs: Vec<JobState>,
    ctx: &Context,
) -> Result<Read, Error> {
    let id = &cluster.id;
    let resource = ApiResource::erase::<HostedControlPlane>(&());
    let api: Api<DynamicObject> =
        Api::namespaced_with(ctx.client.clone(), &cluster.namespace, &resource);
    let control_plane = api.get_opt(&id.name).await.map_err(|source| Error::Read {
        what: format!("HostedControlPlane {}/{}", cluster.namespace, id.name),
        source,
    })?;
    let no_control_plane = control_plane.is_none().then(|| {
        format!(
            "HostedControlPlane {}/{} does not exist",
            cluster.namespace, id.name
        )
    });
    let etcd = etcd(cluster, ctx).await?;
    let storage = &backup.spec.storage;
    let settings = &ctx.etcd_backups;
    let secret = ctx
        .get::<Secret>(&settings.namespace, credentials::name(storage))
        .await?;
    let credentials = credentials::resolve(
        storage,
        secret.as_ref(),
        id,
        &settings.namespace,
        settings.shares_credentials,
    );
    let observed = Observed {
        uid: backup.metadata.uid.clone().unwrap_or_default(),
        no_control_plane,
        etcd,
        jobs,
        credentials,
    };
    Ok(Read {
        observed,
        control_plane,
    })
}

async fn etcd(cluster: &Cluster, ctx: &Context) -> Result<Etcd, Error> {
    if cluster.hosted.spec.etcd.management_type == EtcdManagementType::Unmanaged {
        return Ok(Etcd::Unmanaged);
    }
    let found = ctx.get::<StatefulSet>(&cluster.namespace, ETCD).await?;
    let Some(found) = found else {
        return Ok(Etcd::Missing);
    };
    let desired = found.spec.and_then(|it| it.replicas).unwrap_or(1);
    let ready = found.status.and_then(|it| it.ready_replicas);
    Ok(Etcd::Members {
        ready: ready.unwrap_or_default(),
        desired,
    })
}

fn job_state(job: &Job) -> JobState {
    let metadata = &job.metadata;
    let annotations = metadata.annotations.as_ref();
    let backup = annotations.and_then(|it| it.get(BACKUP_UID)).cloned();
    JobState {
        name: metadata.name.clone().unwrap_or_default(),
        uid: metadata.uid.clone().unwrap_or_default(),
        backup: backup.unwrap_or_default(),
        progress: progress(job),
    }
}

fn progress(job: &Job) -> Progress {
    let conditions = job.status.as_ref().and_then(|it| it.conditions.as_ref());
    let find = |type_: &str| {
        let mut conditions = conditions.into_iter().flatten();
        conditions.find(|it| it.type_ == type_ && it.status == "True")
    };
    if find("Complete").is_some() {
        return Progress::Complete;
    }
    let Some(failed) = find("Failed") else {
        return Progress::Active;
    };
    let reason = failed.reason.as_deref().unwrap_or("unknown reason");
    Progress::Failed(match failed.message.as_deref() {
        Some(message) if !message.is_empty() => format!("{reason}: {message}"),
        Some(_) | None => reason.to_owned(),
    })
}

/// What the containers of a Job left: of the pods that belong to it.
pub(super) async fn messages(job: &JobState, ctx: &Context) -> Result<Messages, Error> {
    let namespace = &ctx.etcd_backups.namespace;
    let api: Api<Pod> = Api::namespaced(ctx.client.clone(), namespace);
    let selector = format!("{JOB_NAME}={}", job.name);
    let list = api.list(&ListParams::default().labels(&selector)).await;
    let list = list.map_err(|source| Error::List {
        what: format!("pods of Job {namespace}/{}", job.name),
        source,
    })?;
    let is_own = |pod: &&Pod| {
        let mut owners = pod.metadata.owner_references.iter().flatten();
        owners.any(|it| it.uid == job.uid)
    };
    let own: Vec<&Pod> = list.items.iter().filter(is_own).collect();
    Ok(messages_of(&own))
}

fn messages_of(pods: &[&Pod]) -> Messages {
    let mut messages = Messages::default();
    let statuses = pods.iter().filter_map(|it| it.status.as_ref());
    for status in statuses {
        let init = status.init_container_statuses.iter().flatten();
        let main = status.container_statuses.iter().flatten();
        for container in init.chain(main) {
            add(&mut messages, container);
        }
    }
    messages
}

fn add(messages: &mut Messages, container: &ContainerStatus) {
    let state = container.state.as_ref();
    let Some(terminated) = state.and_then(|it| it.terminated.as_ref()) else {
        return;
    };
    if terminated.exit_code == 0 {
        if container.name == UPLOAD {
            messages.url.clone_from(&terminated.message);
        }
        return;
    }
    if messages.failure.is_none() {
        let message = terminated.message.as_deref().unwrap_or_default().trim();
        let message = if message.is_empty() {
            format!("exit code {}", terminated.exit_code)
        } else {
            end(message)
        };
        messages.failure = Some((container.name.clone(), message));
    }
}

/// The end of a text.
fn end(text: &str) -> String {
    let skipped = text.chars().count().saturating_sub(LONGEST_MESSAGE);
    text.chars().skip(skipped).collect()
}

/// An object with its Rust type.
pub(super) fn typed<K: serde::de::DeserializeOwned>(
    found: &DynamicObject,
    kind: &str,
) -> Result<K, Error> {
    serde_json::from_value(json!(found)).map_err(|error| Error::Unreadable {
        object: format!("{kind} {}", Id::of(&found.metadata)),
        problem: error.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn the_progress_of_a_job_is_that_of_its_conditions() {
        let condition = |type_: &str, status: &str, message: Value| json!([{ "type": type_, "status": status, "reason": "DeadlineExceeded", "message": message }]);
        for (conditions, expected) in [
            (json!(null), Progress::Active),
            (condition("Suspended", "True", json!("a")), Progress::Active),
            (condition("Complete", "False", json!("a")), Progress::Active),
            (
                condition("Complete", "True", json!("a")),
                Progress::Complete,
            ),
            (
                condition("Failed", "True", json!("a")),
                Progress::Failed("DeadlineExceeded: a".to_owned()),
            ),
            (
                condition("Failed", "True", json!(null)),
                Progress::Failed("DeadlineExceeded".to_owned()),
            ),
        ] {
            let job = json!({
                "metadata": { "name": "a", "uid": "u", "annotations": { BACKUP_UID: "b" } },
                "status": { "conditions": conditions },
            });
            let job: Job = serde_json::from_value(job).unwrap();
            let expected = JobState {
                name: "a".to_owned(),
                uid: "u".to_owned(),
                backup: "b".to_owned(),
                progress: expected,
            };
            assert_eq!(job_state(&job), expected, "{conditions}");
        }
    }

    #[test]
    fn the_first_failed_container_is_reported() {
        let container = |name: &str, code: i32, message: Value| {
            json!({
                "name": name, "image": "", "imageID": "", "ready": false, "restartCount": 0,
                "state": { "terminated": { "exitCode": code, "message": message } },
            })
        };
        let long = format!("{}the cause", "a".repeat(5000));
        let pod = |init: Value, main: Value| -> Pod {
            let pod = json!({ "status": { "initContainerStatuses": [init], "containerStatuses": [main] } });
            serde_json::from_value(pod).unwrap()
        };
        let url = json!("s3://a/b.db");
        for (init, main, expected_url, failure) in [
            (
                container("snapshot", 0, json!("not a URL")),
                container(UPLOAD, 0, url.clone()),
                Some("s3://a/b.db"),
                None,
            ),
            (
                container("snapshot", 1, json!("no etcd\n")),
                container(UPLOAD, 1, json!("no file")),
                None,
                Some(("snapshot", "no etcd")),
            ),
            (
                container("snapshot", 0, json!(null)),
                container(UPLOAD, 137, json!(null)),
                None,
                Some((UPLOAD, "exit code 137")),
            ),
        ] {
            let pod = pod(init, main);
            let found = messages_of(&[&pod]);
            assert_eq!(found.url.as_deref(), expected_url);
            let found = found.failure;
            let found = found.as_ref().map(|(a, b)| (a.as_str(), b.as_str()));
            assert_eq!(found, failure);
        }
        let pod = pod(
            container("snapshot", 1, json!(long)),
            container(UPLOAD, 1, url),
        );
        let (_, message) = messages_of(&[&pod]).failure.unwrap();
        assert_eq!(message.chars().count(), LONGEST_MESSAGE);
        assert!(message.ends_with("the cause"), "{message}");
    }

    #[test]
    fn a_namespace_names_the_cluster_whose_control_plane_it_has() {
        let metadata = |annotations: Value| -> ObjectMeta {
            serde_json::from_value(json!({ "annotations": annotations })).unwrap()
        };
        let found = |owner: &str| id(&metadata(json!({ CLUSTER: owner })), "clusters-a-b");
        for (owner, expected) in [
            ("clusters/a-b", true),
            ("clusters-a/b", true),
            ("clusters/a", false),
            ("clusters", false),
        ] {
            assert_eq!(found(owner).is_some(), expected, "{owner}");
        }
        for (value, expected) in [("1001", Some(1001)), ("0", None), ("root", None)] {
            assert_eq!(user(&metadata(json!({ USER: value }))), expected, "{value}");
        }
    }
}
