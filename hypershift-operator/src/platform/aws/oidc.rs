//! The documents by which AWS validates tokens of a hosted cluster: who issues them, and the key that signs them. They are in
//! a bucket of S3 that all hosted clusters share.
//!
//! The author of a cluster chooses the prefix of its documents (`spec.infraID`). A client that writes below the prefix of
//! another cluster can act in its roles. Documents that exist are therefore replaced and deleted only by their own cluster:
//! their metadata has its UID. Other operators write no metadata: their documents are a cluster's if they have its key, and
//! are written again with its UID before they can be deleted.

use std::time::Duration;

use serde_json::Value;
use support::aws::credentials::{of_file, token_service};
use support::aws::oidc::{self, DISCOVERY, KEYS};
use support::aws::rsa::InvalidKey;
use support::aws::s3::{Before, Bucket, Objects, Stored};
use support::aws::{self, Credentials};
use support::error::chain;
use support::outbound::Http;
use tokio::time::timeout;

use crate::config::OidcStorage;

/// How long a HostedCluster waits for S3.
const PATIENCE: Duration = Duration::from_secs(20);
/// Name of the session of a role.
const SESSION: &str = "hypershift-operator-oidc";
/// What to do about a problem that only administrators can solve.
const TO_ADMINISTRATORS: &str = "the administrator of the management cluster finds the cause in the log of the operator, and checks \
     --oidc-storage-provider-s3-credentials";

/// The documents of a cluster.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Documents {
    discovery: Value,
    keys: Value,
}

/// Whose documents they are.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Owner<'a> {
    /// The UID of the HostedCluster.
    pub(crate) uid: &'a str,
    /// Its `spec.infraID`.
    pub(crate) infra_id: &'a str,
}

/// The bucket.
#[derive(Debug)]
pub(crate) struct Store {
    http: Http,
    storage: OidcStorage,
    /// The URL of a service that replaces S3, and of one that replaces STS.
    endpoints: [Option<String>; 2],
}

/// A request that was not fulfilled.
#[derive(Debug)]
enum Failure {
    /// The documents are another cluster's.
    Taken,
    Aws(aws::Error),
}

// === impl Documents ===

impl Documents {
    /// The documents of an issuer with this public key in PEM.
    pub(crate) fn new(issuer: &str, pem: &str) -> Result<Self, InvalidKey> {
        Ok(Self {
            discovery: oidc::discovery(issuer),
            keys: oidc::keys(pem)?,
        })
    }
}

// === impl Failure ===

impl From<aws::Error> for Failure {
    fn from(error: aws::Error) -> Self {
        Self::Aws(error)
    }
}

// === impl Store ===

impl Store {
    /// Uses endpoints of the environment.
    pub(crate) fn new(storage: OidcStorage) -> Self {
        let endpoints = ["s3", "sts"].map(|service| aws::endpoint(service, &variable));
        Self::with_endpoints(storage, endpoints)
    }

    fn with_endpoints(storage: OidcStorage, endpoints: [Option<String>; 2]) -> Self {
        Self {
            http: Http::new(),
            storage,
            endpoints,
        }
    }

    /// Where the documents of a cluster are.
    pub(crate) fn place(&self, infra_id: &str) -> String {
        format!("s3://{}/{infra_id}", self.storage.bucket)
    }

    /// Writes the documents of a cluster. An error is for its author: what only administrators may see is in the log.
    pub(crate) async fn publish(
        &self,
        owner: Owner<'_>,
        documents: &Documents,
    ) -> Result<(), String> {
        let published = timeout(PATIENCE, self.try_publish(owner, documents)).await;
        self.evaluate(owner, "store", published.ok())
    }

    /// Deletes the documents of a cluster, if they are its. An error is for its author.
    pub(crate) async fn delete(&self, owner: Owner<'_>) -> Result<(), String> {
        let deleted = timeout(PATIENCE, self.try_delete(owner)).await;
        self.evaluate(owner, "delete", deleted.ok())
    }

    async fn try_publish(&self, owner: Owner<'_>, documents: &Documents) -> Result<(), Failure> {
        let credentials = self.credentials().await?;
        let objects = self.objects(&credentials);
        // The key first: it identifies the cluster.
        for (name, document) in [(KEYS, &documents.keys), (DISCOVERY, &documents.discovery)] {
            let key = format!("{}/{name}", owner.infra_id);
            let body = format!("{document:#}");
            let put = objects.put(&key, owner.uid, &body, Before::Nothing);
            if put.await? {
                continue;
            }
            let found = objects.get(&key).await?;
            if found.is_some_and(|it| !is_own(&it, owner, document)) {
                return Err(Failure::Taken);
            }
            let put = objects.put(&key, owner.uid, &body, Before::Anything);
            put.await?;
        }
        Ok(())
    }

    async fn try_delete(&self, owner: Owner<'_>) -> Result<(), Failure> {
        let credentials = self.credentials().await?;
        let objects = self.objects(&credentials);
        for name in [DISCOVERY, KEYS] {
            let key = format!("{}/{name}", owner.infra_id);
            let found = match objects.get(&key).await {
                Err(error) if error.code() == "NoSuchBucket" => None,
                found => found?,
            };
            match found {
                Some(found) if found.owner.as_deref() == Some(owner.uid) => {
                    objects.delete(&key).await?;
                }
                Some(_) => {
                    let place = self.place(owner.infra_id);
                    tracing::warn!(
                        place,
                        name,
                        "Keeping an OIDC document that is not the cluster's"
                    );
                }
                None => {}
            }
        }
        Ok(())
    }

    async fn credentials(&self) -> Result<Credentials, aws::Error> {
        let [_, sts] = &self.endpoints;
        let source = of_file(&self.storage.credentials, &variable)?;
        let sts = sts.clone();
        let sts = sts.unwrap_or_else(|| token_service(&self.storage.region, &|_| None));
        source.load(&self.http, &sts, SESSION).await
    }

    fn objects<'a>(&'a self, credentials: &'a Credentials) -> Objects<'a> {
        let [s3, _] = &self.endpoints;
        Objects {
            http: &self.http,
            bucket: Bucket {
                name: &self.storage.bucket,
                region: &self.storage.region,
                endpoint: s3.as_deref(),
            },
            credentials,
        }
    }

    /// The result for the author of the cluster. Nothing is a time-out.
    fn evaluate(
        &self,
        owner: Owner<'_>,
        action: &str,
        result: Option<Result<(), Failure>>,
    ) -> Result<(), String> {
        let (bucket, place) = (&self.storage.bucket, self.place(owner.infra_id));
        match result {
            Some(Ok(())) => Ok(()),
            Some(Err(Failure::Taken)) => Err(format!(
                "the OIDC documents at {place} are those of another cluster with spec.infraID {}: create this cluster again \
                 with another infraID, or, if that cluster does not exist any more, have the administrator of the management \
                 cluster delete them",
                owner.infra_id
            )),
            Some(Err(Failure::Aws(error))) => {
                let cause = chain(&error);
                tracing::warn!(error = cause, place, action, "OIDC documents not changed");
                Err(match error.code() {
                    "NoSuchBucket" => format!(
                        "failed to {action} the OIDC documents: S3 has no bucket {bucket}. The administrator of the \
                         management cluster creates it, or corrects --oidc-storage-provider-s3-bucket-name"
                    ),
                    "" => format!(
                        "failed to {action} the OIDC documents at {place}: S3 could not be used. It is tried again; {TO_ADMINISTRATORS}"
                    ),
                    code => format!(
                        "failed to {action} the OIDC documents at {place}: S3 refuses it ({code}): {TO_ADMINISTRATORS}"
                    ),
                })
            }
            None => Err(format!(
                "failed to {action} the OIDC documents at {place}: S3 did not respond within {PATIENCE:?}. It is tried again"
            )),
        }
    }
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// Whether a document that was found is the cluster's: it has written it, or it says the same.
fn is_own(found: &Stored, owner: Owner<'_>, document: &Value) -> bool {
    if let Some(uid) = &found.owner {
        return uid == owner.uid;
    }
    let said: Option<Value> = serde_json::from_slice(&found.body).ok();
    said.is_some_and(
        |it| match (&it["keys"][0]["kid"], &document["keys"][0]["kid"]) {
            (Value::String(found), Value::String(own)) => found == own,
            _ => it == *document,
        },
    )
}

#[cfg(test)]
mod tests;
