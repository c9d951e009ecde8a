//! Documents from a live cluster.

use std::path::PathBuf;

use api::group::{CapiTypes, GroupTable};
use http::Request;
use kube::{
    Client,
    config::{KubeConfigOptions, Kubeconfig},
};
use serde::Deserialize;
use serde_json::{Map, Value};
use support::client;

use super::SourceError;
use crate::crds::{Batch, Document, Origin};

const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
/// CRDs are large: a page of them is a few MB.
const PAGE: usize = 50;

/// How to reach the cluster. Without a file: what kubectl would use, or the pod's service account.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Access {
    /// A kubeconfig file.
    pub kubeconfig: Option<PathBuf>,
    /// A context of it other than the current one.
    pub context: Option<String>,
}

/// Why a cluster cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ClusterError {
    /// The kubeconfig is unusable.
    #[error("the kubeconfig cannot be used: check --kubeconfig and --context")]
    Kubeconfig(#[source] Box<kube::config::KubeconfigError>),
    /// Neither a kubeconfig nor a service account.
    #[error("there is neither a kubeconfig nor a service account: name a file with --kubeconfig")]
    NoConfig(#[source] Box<kube::config::InferConfigError>),
    /// The API server cannot be reached, or says no.
    #[error(
        "the request failed: the API server must be reachable, and allow to list customresourcedefinitions.apiextensions.k8s.io"
    )]
    Request(#[source] Box<kube::Error>),
}

/// A page of a list. Items of a list carry neither `apiVersion` nor `kind`.
#[derive(Debug, Deserialize)]
struct Page {
    #[serde(default)]
    metadata: PageMetadata,
    items: Vec<Map<String, Value>>,
}

#[derive(Debug, Default, Deserialize)]
struct PageMetadata {
    #[serde(default, rename = "continue")]
    next: String,
}

/// Reads every CRD of a cluster but those of private groups, which may be installed there already.
pub async fn read(access: &Access, table: &GroupTable) -> Result<Batch, SourceError> {
    let client = connect(access).await?;
    let items = list(&client)
        .await
        .map_err(|error| ClusterError::Request(Box::new(error)))?;
    let documents = items
        .into_iter()
        .filter(|item| !is_private(item, table))
        .map(document)
        .collect();
    Ok(Batch {
        name: "the cluster".to_owned(),
        documents,
    })
}

/// A client of the cluster, whose requests have deadlines.
pub(crate) async fn connect(access: &Access) -> Result<Client, ClusterError> {
    connect_as(access, None).await
}

/// The same, impersonating a user.
pub(crate) async fn connect_as(
    access: &Access,
    user: Option<&str>,
) -> Result<Client, ClusterError> {
    let bad_file = |error| ClusterError::Kubeconfig(Box::new(error));
    let options = KubeConfigOptions {
        context: access.context.clone(),
        ..KubeConfigOptions::default()
    };
    let mut config = match &access.kubeconfig {
        Some(path) => {
            let kubeconfig = Kubeconfig::read_from(path).map_err(bad_file)?;
            client::from_kubeconfig(kubeconfig, &options)
                .await
                .map_err(bad_file)?
        }
        None if access.context.is_some() => {
            client::from_environment(&options).await.map_err(bad_file)?
        }
        None => client::infer()
            .await
            .map_err(|error| ClusterError::NoConfig(Box::new(error)))?,
    };
    if let Some(user) = user {
        config.auth_info.impersonate = Some(user.to_owned());
    }
    client::connect(&config).map_err(|error| ClusterError::Request(Box::new(error)))
}

/// All CRDs of the cluster.
pub(crate) async fn list(client: &Client) -> kube::Result<Vec<Map<String, Value>>> {
    let mut items = Vec::new();
    let mut next = String::new();
    loop {
        let path = page_path(&next);
        let request = Request::get(path)
            .body(Vec::new())
            .map_err(kube::Error::HttpError)?;
        let page: Page = client.request(request).await?;
        items.extend(page.items);
        if page.metadata.next.is_empty() {
            return Ok(items);
        }
        next = page.metadata.next;
    }
}

fn page_path(next: &str) -> String {
    if next.is_empty() {
        return format!("{CRDS}?limit={PAGE}");
    }
    // Tokens are base64 for URLs, and percent signs keep what else might come.
    let escaped: String = next
        .bytes()
        .map(|byte| {
            if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
                char::from(byte).to_string()
            } else {
                format!("%{byte:02X}")
            }
        })
        .collect();
    format!("{CRDS}?limit={PAGE}&continue={escaped}")
}

fn is_private(item: &Map<String, Value>, table: &GroupTable) -> bool {
    item.get("spec")
        .and_then(|spec| spec["group"].as_str())
        .and_then(|group| table.find(group.as_bytes()))
        .is_some_and(|(_, types)| types == CapiTypes::Private)
}

fn document(mut item: Map<String, Value>) -> Document {
    item.shift_insert(0, "apiVersion".to_owned(), "apiextensions.k8s.io/v1".into());
    item.shift_insert(1, "kind".to_owned(), "CustomResourceDefinition".into());
    Document {
        origin: Origin {
            source: "the cluster".to_owned(),
            document: None,
        },
        value: Value::Object(item),
    }
}

#[cfg(test)]
mod tests;
