//! The Job that takes a snapshot and uploads it. Pure.
//!
//! Values of an HCPEtcdBackup are arguments of the form `--flag=value` only, so that none becomes a flag, and no shell reads
//! them. The pod has no token by default: the container that reads certificates has one for the API server, the upload one
//! for the cloud, and the container of the release's etcd has none.

use api::hypershift::v1beta1::HcpEtcdBackup;
use api::hypershift::v1beta1::hcp_etcd_backup::{
    HcpEtcdBackupAzureBlob, HcpEtcdBackupS3, HcpEtcdBackupStorage,
};
use serde_json::{Value, json};

use super::credentials::{Credentials, FILE};
use super::manifest::SERVICE_ACCOUNT;
use crate::cluster_ref::Id;
use crate::names::{CLUSTER, LONGEST_LABEL};

/// Label of backup Jobs and their pods.
pub(super) const APP: &str = "app";
/// Its value.
pub(super) const ETCD_BACKUP: &str = "etcd-backup";
/// Label: the namespace of the control plane.
pub(super) const HCP_NAMESPACE: &str = "hypershift.openshift.io/hcp-namespace";
/// Label: the name of the HCPEtcdBackup, as far as a label has room for it.
const BACKUP_LABEL: &str = "hypershift.openshift.io/backup-name";
/// Label: the name of the HostedControlPlane.
const HCP: &str = "hypershift.openshift.io/hcp";
/// Annotation: the name of the HCPEtcdBackup.
pub(super) const BACKUP_NAME: &str = "hypershift.openshift.io/backup-name";
/// Annotation: the UID of the HCPEtcdBackup. It proves whose Job it is.
pub(super) const BACKUP_UID: &str = "hypershift.openshift.io/backup-uid";
/// The container that uploads.
pub(super) const UPLOAD: &str = "upload";

/// Seconds after which a Job that has ended is deleted.
const TTL: i32 = 600;
/// Seconds that a Job may take.
const DEADLINE: i64 = 900;
/// Seconds that a token is valid.
const TOKEN: i64 = 3600;
const OPERATOR: &str = "/usr/bin/control-plane-operator";
const CERTIFICATES: &str = "/etc/etcd-certs";
const BACKUP: &str = "/etc/etcd-backup";
const SNAPSHOT: &str = "/etc/etcd-backup/snapshot.db";
const CREDENTIALS: &str = "/etc/etcd-backup-creds";
const API_TOKEN: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
const AWS_TOKEN: &str = "/var/run/secrets/aws-iam-token";
const AZURE_TOKEN: &str = "/var/run/secrets/azure-identity-token";

/// What a Job is made of.
#[derive(Debug)]
pub(super) struct Input<'a> {
    pub(super) backup: &'a HcpEtcdBackup,
    pub(super) cluster: &'a Id,
    /// The namespace of the operator.
    pub(super) namespace: &'a str,
    pub(super) images: &'a Images,
    pub(super) credentials: &'a Credentials,
    /// The user of the pods of the control plane, if the management cluster does not choose one.
    pub(super) user: Option<i64>,
}

/// The images of the containers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Images {
    /// The control-plane-operator.
    pub(super) operator: String,
    /// The release's etcd.
    pub(super) etcd: String,
}

/// The name of the Job. It has a part of the backup's UID: a backup that is created again gets a Job of its own.
pub(super) fn name(backup: &HcpEtcdBackup) -> String {
    /// Characters of the UID.
    const SUFFIX: usize = 8;
    let name = backup.metadata.name.as_deref().unwrap_or_default();
    let uid = backup.metadata.uid.as_deref().unwrap_or_default();
    let suffix: String = uid.chars().filter(|it| *it != '-').take(SUFFIX).collect();
    let prefix = "etcd-backup-";
    let room = LONGEST_LABEL - prefix.len() - SUFFIX - 1;
    let name: String = name.replace('.', "-").chars().take(room).collect();
    format!("{prefix}{}-{suffix}", name.trim_end_matches('-'))
}

/// The Job.
pub(super) fn job(input: &Input<'_>) -> Value {
    let labels = labels(input);
    let mut of_pods = labels.clone();
    if let Credentials::WorkloadIdentity { .. } = input.credentials {
        of_pods["azure.workload.identity/use"] = json!("true");
    }
    let metadata = &input.backup.metadata;
    json!({
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "namespace": input.namespace,
            "name": name(input.backup),
            "labels": labels,
            "annotations": {
                CLUSTER: input.cluster.to_string(),
                BACKUP_NAME: metadata.name,
                BACKUP_UID: metadata.uid,
            },
        },
        "spec": {
            "ttlSecondsAfterFinished": TTL,
            "activeDeadlineSeconds": DEADLINE,
            "backoffLimit": 0,
            "template": {
                "metadata": { "labels": of_pods },
                "spec": pod(input),
            },
        },
    })
}

fn labels(input: &Input<'_>) -> Value {
    let metadata = &input.backup.metadata;
    json!({
        APP: ETCD_BACKUP,
        HCP: label(&input.cluster.name),
        BACKUP_LABEL: label(metadata.name.as_deref().unwrap_or_default()),
        HCP_NAMESPACE: metadata.namespace,
    })
}

/// A name as far as the value of a label has room for it.
fn label(name: &str) -> String {
    let cut: String = name.chars().take(LONGEST_LABEL).collect();
    let is_inner = |it: char| !it.is_ascii_alphanumeric();
    cut.trim_end_matches(is_inner).to_owned()
}

fn pod(input: &Input<'_>) -> Value {
    let mut security = json!({
        "runAsNonRoot": true,
        "seccompProfile": { "type": "RuntimeDefault" },
    });
    if let Some(user) = input.user {
        security["runAsUser"] = json!(user);
    }
    let mut volumes = vec![
        json!({ "name": "etcd-certs", "emptyDir": {} }),
        json!({ "name": "etcd-backup", "emptyDir": {} }),
        api_token(),
    ];
    volumes.extend(volume(input.credentials));
    json!({
        "restartPolicy": "Never",
        "serviceAccountName": SERVICE_ACCOUNT,
        "automountServiceAccountToken": false,
        "enableServiceLinks": false,
        "securityContext": security,
        "initContainers": [fetch_certificates(input), snapshot(input)],
        "containers": [upload(input)],
        "volumes": volumes,
    })
}

/// What kubelet mounts by default, for one container only.
fn api_token() -> Value {
    json!({
        "name": "kube-api-access",
        "projected": { "sources": [
            { "serviceAccountToken": { "path": "token", "expirationSeconds": TOKEN } },
            { "configMap": {
                "name": "kube-root-ca.crt",
                "items": [{ "key": "ca.crt", "path": "ca.crt" }],
            } },
            { "downwardAPI": { "items": [{
                "path": "namespace",
                "fieldRef": { "fieldPath": "metadata.namespace" },
            }] } },
        ] },
    })
}

/// The volume with the credentials of the upload.
fn volume(credentials: &Credentials) -> Option<Value> {
    let token = |name: &str, audience: &str| {
        json!({
            "name": name,
            "projected": { "sources": [{ "serviceAccountToken": {
                "path": "token", "audience": audience, "expirationSeconds": TOKEN,
            } }] },
        })
    };
    match credentials {
        Credentials::AwsSts { .. } => Some(token("aws-iam-token", "sts.amazonaws.com")),
        Credentials::WorkloadIdentity { .. } => {
            Some(token("azure-identity-token", "api://AzureADTokenExchange"))
        }
        Credentials::AwsStatic { .. }
        | Credentials::ManagedIdentity { .. }
        | Credentials::ClientSecret { .. } => credentials.mounted().map(|secret| {
            json!({
                "name": "backup-credentials",
                "secret": {
                    "secretName": secret,
                    "items": [{ "key": FILE, "path": FILE }],
                },
            })
        }),
    }
}

fn fetch_certificates(input: &Input<'_>) -> Value {
    let namespace = input.backup.metadata.namespace.as_deref();
    let arguments = [
        "fetch-etcd-certs".to_owned(),
        format!("--hcp-namespace={}", namespace.unwrap_or_default()),
        format!("--output-dir={CERTIFICATES}"),
    ];
    let mounts = [
        writable("etcd-certs", CERTIFICATES),
        read_only("kube-api-access", API_TOKEN),
    ];
    container(
        "fetch-certs",
        &input.images.operator,
        OPERATOR,
        &arguments,
        &mounts,
    )
}

fn snapshot(input: &Input<'_>) -> Value {
    let namespace = input.backup.metadata.namespace.as_deref();
    let namespace = namespace.unwrap_or_default();
    let arguments = [
        format!("--endpoints=https://etcd-client.{namespace}.svc:2379"),
        format!("--cacert={CERTIFICATES}/ca.crt"),
        format!("--cert={CERTIFICATES}/etcd-client.crt"),
        format!("--key={CERTIFICATES}/etcd-client.key"),
        "snapshot".to_owned(),
        "save".to_owned(),
        SNAPSHOT.to_owned(),
    ];
    let mounts = [
        read_only("etcd-certs", CERTIFICATES),
        writable("etcd-backup", BACKUP),
    ];
    let mut container = container(
        "snapshot",
        &input.images.etcd,
        "etcdctl",
        &arguments,
        &mounts,
    );
    container["env"] = json!([{ "name": "ETCDCTL_API", "value": "3" }]);
    container
}

fn upload(input: &Input<'_>) -> Value {
    let mut arguments = vec![
        "etcd-upload".to_owned(),
        format!("--snapshot-path={SNAPSHOT}"),
    ];
    arguments.extend(storage(&input.backup.spec.storage));
    if input.credentials.mounted().is_some() {
        arguments.push(format!("--credentials-file={CREDENTIALS}/{FILE}"));
    }
    let mut mounts = vec![read_only("etcd-backup", BACKUP)];
    let mut environment = Vec::new();
    let mut set = |name: &str, value: &str| {
        environment.push(json!({ "name": name, "value": value }));
    };
    match input.credentials {
        Credentials::AwsSts { role } => {
            set("AWS_ROLE_ARN", role);
            set("AWS_WEB_IDENTITY_TOKEN_FILE", &format!("{AWS_TOKEN}/token"));
            mounts.push(read_only("aws-iam-token", AWS_TOKEN));
        }
        Credentials::WorkloadIdentity { client, tenant } => {
            // In place of an annotation of the service account, which backups of all tenants share.
            set("AZURE_CLIENT_ID", client);
            if let Some(tenant) = tenant {
                set("AZURE_TENANT_ID", tenant);
            }
            set(
                "AZURE_FEDERATED_TOKEN_FILE",
                &format!("{AZURE_TOKEN}/token"),
            );
            mounts.push(read_only("azure-identity-token", AZURE_TOKEN));
        }
        Credentials::ManagedIdentity { secret: Some(_) } => {
            arguments.push("--azure-auth-type=managed-identity".to_owned());
            mounts.push(read_only("backup-credentials", CREDENTIALS));
        }
        Credentials::ClientSecret { .. } => {
            arguments.push("--azure-auth-type=client-secret".to_owned());
            mounts.push(read_only("backup-credentials", CREDENTIALS));
        }
        Credentials::AwsStatic { .. } => {
            mounts.push(read_only("backup-credentials", CREDENTIALS));
        }
        Credentials::ManagedIdentity { secret: None } => {}
    }
    let mut container = container(
        UPLOAD,
        &input.images.operator,
        OPERATOR,
        &arguments,
        &mounts,
    );
    if !environment.is_empty() {
        container["env"] = json!(environment);
    }
    container
}

/// Where the snapshot goes.
fn storage(storage: &HcpEtcdBackupStorage) -> Vec<String> {
    let HcpEtcdBackupStorage {
        storage_type: _,
        s3,
        azure_blob,
    } = storage;
    let mut flags = Vec::new();
    if let Some(s3) = s3 {
        let HcpEtcdBackupS3 {
            bucket,
            region,
            key_prefix,
            credentials: _,
            kms_key_arn,
        } = s3;
        flags.extend([
            "--storage-type=S3".to_owned(),
            format!("--key-prefix={key_prefix}"),
            format!("--aws-bucket={bucket}"),
            format!("--aws-region={region}"),
        ]);
        let key = kms_key_arn.as_ref();
        flags.extend(key.map(|key| format!("--aws-kms-key-arn={}", key.0)));
    }
    if let Some(azure) = azure_blob {
        let HcpEtcdBackupAzureBlob {
            storage_account,
            container,
            key_prefix,
            credentials: _,
            encryption_key_url,
        } = azure;
        flags.extend([
            "--storage-type=AzureBlob".to_owned(),
            format!("--key-prefix={key_prefix}"),
            format!("--azure-container={container}"),
            format!("--azure-storage-account={storage_account}"),
        ]);
        let key = encryption_key_url.as_ref();
        flags.extend(key.map(|key| format!("--azure-encryption-scope={}", key.0)));
    }
    flags
}

fn container(
    name: &str,
    image: &str,
    command: &str,
    arguments: &[String],
    mounts: &[Value],
) -> Value {
    json!({
        "name": name,
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "command": [command],
        "args": arguments,
        "resources": { "requests": { "cpu": "10m", "memory": "50Mi" } },
        "securityContext": {
            "allowPrivilegeEscalation": false,
            "capabilities": { "drop": ["ALL"] },
            "readOnlyRootFilesystem": true,
            "runAsNonRoot": true,
        },
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": mounts,
    })
}

fn writable(volume: &str, path: &str) -> Value {
    json!({ "name": volume, "mountPath": path })
}

fn read_only(volume: &str, path: &str) -> Value {
    json!({ "name": volume, "mountPath": path, "readOnly": true })
}

#[cfg(test)]
mod tests;
