//! Backups of etcd: the operator creates a Job for an HCPEtcdBackup, which may use only a Secret that names its tenant.
//!
//! There are no nodes: the test reports what kubelet would report of the pods of etcd and of the Job.

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use testbed::client::{ApiClient, Patch, Resource};
use testbed::conditions::find;
use testbed::operator::{self, SOON};
use testbed::wait;

use crate::hosted_clusters_api::cluster::{Cluster, POLICIES, ROLES};
use crate::hosted_clusters_api::fixture::NAMESPACE;

const BACKUPS: Resource<'_> = Resource::new("hypershift.openshift.io/v1beta1", "hcpetcdbackups");
const JOBS: Resource<'_> = Resource::new("batch/v1", "jobs");
const PODS: Resource<'_> = Resource::new("v1", "pods");
/// The Secret with credentials for the storage.
const STORE: &str = "backup-store";
const CONSUMERS: &str = "hypershift.openshift.io/etcd-backup-consumers";
/// A role of AWS, in base64.
const ROLE: &str = "YXJuOmF3czppYW06OjEyMzQ1Njc4OTAxMjpyb2xlL2JhY2t1cHM=";
/// What lets a Job in to etcd.
const ROLE_NAME: &str = "etcd-backup-job";
const POLICY: &str = "allow-etcd-backup";

/// One backup is refused, two succeed, and the older one is deleted.
pub(crate) async fn are_made(cluster: &Cluster, admin: &ApiClient) -> Result<()> {
    let namespace = &cluster.namespace();
    etcd_is_ready(namespace, admin).await.context("etcd")?;
    admin.apply(&[secret(&json!({}))]).await?;
    admin.apply(&[backup(namespace, "refused")]).await?;
    let refused = ends(namespace, "refused", "BackupFailed", admin);
    let refused = refused.await.context("without consent")?;
    let message = find(&refused, "BackupCompleted").map(|it| it["message"].to_string());
    let message = message.unwrap_or_default();
    ensure!(
        message.contains(CONSUMERS) && message.contains(STORE),
        "{message}"
    );
    let jobs = admin.list(&JOBS.within(operator::NAMESPACE)).await?;
    ensure!(jobs.is_empty(), "a Job was created: {jobs:?}");
    let consent = json!({ CONSUMERS: NAMESPACE });
    admin.apply(&[secret(&consent)]).await?;
    for name in ["first", "second"] {
        succeeds(cluster, name, admin).await.context(name)?;
    }
    let first = BACKUPS.named(namespace, "first");
    wait::until("the older backup to be deleted", SOON, async || {
        let found = admin.find(&first).await?;
        ensure!(found.is_none(), "it is there");
        Ok(())
    })
    .await?;
    // One that has failed does not count.
    let refused = admin.find(&BACKUPS.named(namespace, "refused")).await?;
    ensure!(refused.is_some(), "the one that has failed is deleted");
    Ok(())
}

/// A backup with its Job, whose result the cluster has.
async fn succeeds(cluster: &Cluster, name: &str, admin: &ApiClient) -> Result<()> {
    let namespace = &cluster.namespace();
    admin.apply(&[backup(namespace, name)]).await?;
    let pod = wait::until("the pod of the Job", SOON, async || {
        let pods = admin.list(&PODS.within(operator::NAMESPACE)).await?;
        let mut own = pods
            .into_iter()
            .filter(|pod| pod["metadata"]["labels"]["hypershift.openshift.io/backup-name"] == name);
        own.next().context("there is none")
    })
    .await?;
    let labels = &pod["metadata"]["labels"];
    let of = &labels["hypershift.openshift.io/hcp-namespace"];
    ensure!(*of == namespace.as_str(), "it is for {of}");
    let policy = admin.get(&POLICIES.named(namespace, POLICY)).await?;
    let from = &policy["spec"]["ingress"][0]["from"][0]["podSelector"]["matchLabels"];
    for (label, value) in from.as_object().context("it lets all pods in")? {
        ensure!(labels[label] == *value, "{label} is not {value}");
    }
    admin.get(&ROLES.named(namespace, ROLE_NAME)).await?;
    let url = format!("s3://backups/one/{name}.db");
    let pod_name = pod["metadata"]["name"].as_str().unwrap_or_default();
    let path = format!("{}/status", PODS.named(operator::NAMESPACE, pod_name));
    let status = json!({ "status": { "phase": "Succeeded", "containerStatuses": [{
        "name": "upload", "image": "", "imageID": "", "ready": false, "restartCount": 0,
        "state": { "terminated": { "exitCode": 0, "message": url } },
    }]}});
    admin.patch(&path, Patch::Merge, &status).await?;
    let done = ends(namespace, name, "BackupSucceeded", admin).await?;
    ensure!(done["status"]["snapshotURL"] == url.as_str(), "{done}");
    let hosted = admin.get(&cluster.path()).await?;
    let last = &hosted["status"]["lastSuccessfulEtcdBackupURL"];
    ensure!(*last == url.as_str(), "the HostedCluster has {last}");
    cluster
        .reports(admin, "EtcdBackupSucceeded", "True", &url)
        .await?;
    for path in [
        ROLES.named(namespace, ROLE_NAME),
        POLICIES.named(namespace, POLICY),
    ] {
        ensure!(admin.find(&path).await?.is_none(), "{path} is there");
    }
    Ok(())
}

/// The backup, once it is final.
async fn ends(namespace: &str, name: &str, reason: &str, admin: &ApiClient) -> Result<Value> {
    let path = BACKUPS.named(namespace, name);
    wait::until(&format!("{name} to be final"), SOON, async || {
        let found = admin.get(&path).await?;
        let completed = find(&found, "BackupCompleted").context("it has no condition")?;
        ensure!(completed["reason"] == reason, "{completed}");
        Ok(found)
    })
    .await
}

fn backup(namespace: &str, name: &str) -> Value {
    json!({
        "apiVersion": "hypershift.openshift.io/v1beta1",
        "kind": "HCPEtcdBackup",
        "metadata": { "namespace": namespace, "name": name },
        "spec": { "storage": { "storageType": "S3", "s3": {
            "bucket": "backups",
            "region": "us-east-1",
            "keyPrefix": "one",
            "credentials": { "name": STORE },
        }}},
    })
}

fn secret(annotations: &Value) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": { "namespace": operator::NAMESPACE, "name": STORE, "annotations": annotations },
        "data": { "credentials": ROLE },
    })
}

/// Makes etcd with one member that is ready.
async fn etcd_is_ready(namespace: &str, admin: &ApiClient) -> Result<()> {
    let labels = json!({ "app": "etcd" });
    let set = json!({
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": { "namespace": namespace, "name": "etcd" },
        "spec": {
            "replicas": 1,
            "serviceName": "etcd",
            "selector": { "matchLabels": labels },
            "template": {
                "metadata": { "labels": labels },
                "spec": {
                    "securityContext": {
                        "runAsNonRoot": true,
                        "seccompProfile": { "type": "RuntimeDefault" },
                    },
                    "containers": [{
                        "name": "etcd",
                        "image": "images.example.com/etcd:v1",
                        "securityContext": {
                            "allowPrivilegeEscalation": false,
                            "capabilities": { "drop": ["ALL"] },
                        },
                    }],
                },
            },
        },
    });
    admin.apply(&[set]).await?;
    let pod = PODS.named(namespace, "etcd-0");
    wait::until("the pod of etcd", SOON, async || {
        admin.get(&pod).await.map(drop)
    })
    .await?;
    let condition = json!({ "type": "Ready", "status": "True" });
    let status = json!({ "status": { "phase": "Running", "conditions": [condition] } });
    admin
        .patch(&format!("{pod}/status"), Patch::Merge, &status)
        .await
        .map(drop)
}
