//! Which Secrets a backup may use, and how the upload authenticates with one. Pure.
//!
//! An HCPEtcdBackup names a Secret of the operator's namespace, where the operator's own Secrets and those for other
//! tenants are. So a Secret says itself whose backups may use it.

use api::hypershift::v1beta1::hcp_etcd_backup::{HcpEtcdBackupStorage, HcpEtcdBackupStorageType};
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Deserialize;

use crate::cluster_ref::Id;

/// Annotation of a Secret: whose backups may use it, as `<namespace>` of HostedClusters or `<namespace>/<name>` of one,
/// separated by commas.
pub(super) const CONSUMERS: &str = "hypershift.openshift.io/etcd-backup-consumers";
/// Label of a Secret for backups, with the value `true`. The OADP plugin's copies have it.
pub(super) const SHARED: &str = "hypershift.openshift.io/etcd-backup";
/// Key of the file with credentials.
pub(super) const FILE: &str = "credentials";
/// Key of the file with variables, as Velero has it for Azure.
const VARIABLES: &str = "cloud";

/// How the upload authenticates.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Credentials {
    /// A role of AWS, with a token of the service account.
    AwsSts { role: String },
    /// A shared credentials file of AWS.
    AwsStatic { secret: String },
    /// An application of Azure, with a token of the service account.
    WorkloadIdentity {
        client: String,
        /// `None` if the webhook of the management cluster sets it.
        tenant: Option<String>,
    },
    /// A managed identity of Azure: the one whose certificate the file has, or without a file that of the machine.
    ManagedIdentity { secret: Option<String> },
    /// An application of Azure with a secret.
    ClientSecret { secret: String },
}

/// What is read of a JSON file for Azure.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct AzureFile {
    client_secret: String,
}

/// The name of the Secret that the storage names.
pub(super) fn name(storage: &HcpEtcdBackupStorage) -> &str {
    let s3 = storage.s3.as_ref().map(|it| &it.credentials);
    let azure = storage.azure_blob.as_ref().map(|it| &it.credentials);
    s3.or(azure).map_or("", |it| it.name.as_str())
}

/// How the upload authenticates with the Secret, or why it may not.
///
/// A Secret that does not exist and one that is not for the HostedCluster have the same message: a tenant does not learn
/// which Secrets there are.
pub(super) fn resolve(
    storage: &HcpEtcdBackupStorage,
    secret: Option<&Secret>,
    cluster: &Id,
    namespace: &str,
    shares: bool,
) -> Result<Credentials, String> {
    let name = name(storage);
    let permitted = secret.filter(|it| is_permitted(&it.metadata, cluster, shares));
    let Some(secret) = permitted else {
        return Err(format!(
            "Secret {namespace}/{name} does not exist, or backups of HostedCluster {cluster} may not use it. Its \
             administrator lists in annotation {CONSUMERS} of the Secret the namespaces of the HostedClusters that may: \
             kubectl annotate secret -n {namespace} {name} {CONSUMERS}={}",
            cluster.namespace
        ));
    };
    match storage.storage_type {
        HcpEtcdBackupStorageType::S3 => aws(secret, namespace, name),
        HcpEtcdBackupStorageType::AzureBlob => azure(secret, namespace, name),
    }
}

/// Whether backups of the HostedCluster may use a Secret.
pub(super) fn is_permitted(secret: &ObjectMeta, cluster: &Id, shares: bool) -> bool {
    let labels = secret.labels.as_ref();
    if shares && labels.is_some_and(|it| it.get(SHARED).is_some_and(|it| it == "true")) {
        return true;
    }
    let annotations = secret.annotations.as_ref();
    let Some(listed) = annotations.and_then(|it| it.get(CONSUMERS)) else {
        return false;
    };
    let one = cluster.to_string();
    let mut listed = listed.split(',').map(str::trim);
    listed.any(|it| it == one || it == cluster.namespace)
}

fn aws(secret: &Secret, namespace: &str, name: &str) -> Result<Credentials, String> {
    let Some(file) = text(secret, FILE) else {
        return Err(format!(
            "Secret {namespace}/{name} has no key {FILE}: add it with a shared credentials file of AWS, or with the ARN \
             of a role"
        ));
    };
    if !file.starts_with("arn:") {
        return Ok(Credentials::AwsStatic {
            secret: name.to_owned(),
        });
    }
    if file.contains(char::is_whitespace) {
        return Err(format!(
            "key {FILE} of Secret {namespace}/{name} begins with an ARN and has more than that: write the ARN of one \
             role only"
        ));
    }
    Ok(Credentials::AwsSts {
        role: file.to_owned(),
    })
}

fn azure(secret: &Secret, namespace: &str, name: &str) -> Result<Credentials, String> {
    let file = text(secret, FILE);
    let mounted = file.map(|_| name.to_owned());
    if let Some(variables) = text(secret, VARIABLES) {
        let Some(client) = variable(variables, "AZURE_CLIENT_ID") else {
            return Ok(Credentials::ManagedIdentity { secret: mounted });
        };
        return Ok(Credentials::WorkloadIdentity {
            client: client.to_owned(),
            tenant: variable(variables, "AZURE_TENANT_ID").map(str::to_owned),
        });
    }
    let parsed = file.and_then(|it| serde_json::from_str::<AzureFile>(it).ok());
    if parsed.is_some_and(|it| !it.client_secret.is_empty()) {
        return Ok(Credentials::ClientSecret {
            secret: name.to_owned(),
        });
    }
    if file.is_none() && secret.data.as_ref().is_some_and(|it| it.contains_key(FILE)) {
        return Err(format!(
            "key {FILE} of Secret {namespace}/{name} is empty, or is not text: write JSON with tenantId, clientId and \
             clientSecret to it, or remove it to use the identity of the machine"
        ));
    }
    Ok(Credentials::ManagedIdentity { secret: mounted })
}

/// The text of a key, without blanks around it. `None` if there is none.
fn text<'a>(secret: &'a Secret, key: &str) -> Option<&'a str> {
    let value = secret.data.as_ref()?.get(key)?;
    let text = std::str::from_utf8(&value.0).ok()?.trim();
    (!text.is_empty()).then_some(text)
}

/// The value of a variable, if it is set: lines have the form `NAME=value`, with or without quotes.
fn variable<'a>(file: &'a str, name: &str) -> Option<&'a str> {
    let mut lines = file.lines().map(str::trim);
    let value = lines.find_map(|line| {
        let line = line.strip_prefix("export ").unwrap_or(line);
        let (key, value) = line.split_once('=')?;
        (key.trim() == name).then(|| value.trim())
    })?;
    let value = value.trim_matches(['"', '\'']);
    (!value.is_empty()).then_some(value)
}

// === impl Credentials ===

impl Credentials {
    /// The Secret whose file is mounted.
    pub(super) fn mounted(&self) -> Option<&str> {
        match self {
            Self::AwsStatic { secret } | Self::ClientSecret { secret } => Some(secret),
            Self::ManagedIdentity { secret } => secret.as_deref(),
            Self::AwsSts { .. } | Self::WorkloadIdentity { .. } => None,
        }
    }
}

#[cfg(test)]
mod tests;
