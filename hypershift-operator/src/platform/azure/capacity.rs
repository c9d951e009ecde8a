//! What a VM size has, as Azure says: the cluster autoscaler needs it for a NodePool without machines.
//!
//! The Resource SKUs API cannot be asked about one size. It lists those of a location, which are cached.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use support::azure::{self, AuthType, Cloud, Source};
use support::azure_resources::is_name;
use support::error::chain;
use support::rest::{Calls as _, Client, Error, Request};
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout};

use crate::platform::capacity::{Capacity, Known, TO_ADMINISTRATORS, Unknown, is_fresh};

/// How long a NodePool waits for Azure, whose lists are long.
const PATIENCE: Duration = Duration::from_secs(30);
/// The version of the API.
const VERSION: &str = "2021-07-01";
/// The largest page of a list, in bytes. Those of large locations have some MiB.
const LARGEST_PAGE: usize = 32 << 20;
/// The longest list, in pages.
const PAGES: usize = 100;
/// The variable with the URL of Microsoft Entra ID, where it is not the one of the cloud.
const AUTHORITY: &str = "AZURE_AUTHORITY_HOST";

/// What the sizes of a location have, by their names in lower case: Azure ignores case.
type Sizes = HashMap<String, Capacity>;
type Listed = Result<Arc<Sizes>, Unknown>;

/// Lists VM sizes, and caches them.
#[derive(Debug)]
pub(crate) struct VmSizes {
    /// JSON with an application and a subscription, which is read for each list: it may be replaced.
    credentials: PathBuf,
    /// The URLs of Microsoft Entra ID and of Azure Resource Manager.
    authority: String,
    management: String,
    /// By location. It is locked while Azure is asked: NodePools that ask at the same time wait for one list.
    listed: Mutex<HashMap<String, (Instant, Listed)>>,
}

// === impl VmSizes ===

impl VmSizes {
    /// Uses the credentials of a file, and the endpoints of a cloud.
    pub(crate) fn new(credentials: PathBuf, cloud: Cloud) -> Self {
        let endpoints = cloud.endpoints();
        let authority = std::env::var(AUTHORITY).ok().filter(|it| !it.is_empty());
        let authority = authority.unwrap_or_else(|| endpoints.authority.to_owned());
        Self::with_endpoints(credentials, authority, endpoints.management.to_owned())
    }

    fn with_endpoints(credentials: PathBuf, authority: String, management: String) -> Self {
        Self {
            credentials,
            authority,
            management,
            listed: Mutex::default(),
        }
    }

    /// What machines of a size have.
    pub(crate) async fn capacity(&self, location: &str, vm_size: &str) -> Known {
        // Users choose it, and it becomes a part of a filter.
        if location.is_empty() || !location.chars().all(|it| it.is_ascii_alphanumeric()) {
            return Err(Unknown::permanent(format!(
                "{location:?} is not a location of Azure (for example eastus), and spec.platform.azure.location of the \
                 HostedCluster cannot be changed: set autoScaling.min to 1"
            )));
        }
        let sizes = self.sizes(&location.to_ascii_lowercase()).await?;
        let found = sizes.get(&vm_size.to_ascii_lowercase()).copied();
        found.ok_or_else(|| {
            Unknown::permanent(format!(
                "Azure does not have VM size {vm_size} in {location}: correct spec.platform.azure.vmSize"
            ))
        })
    }

    async fn sizes(&self, location: &str) -> Listed {
        let mut listed = self.listed.lock().await;
        if let Some((at, known)) = listed.get(location)
            && is_fresh(at.elapsed(), known)
        {
            return known.clone();
        }
        let found = match timeout(PATIENCE, self.list(location)).await {
            Ok(Ok(sizes)) => Ok(Arc::new(sizes)),
            Ok(Err(error)) => {
                let cause = chain(&error);
                tracing::warn!(error = cause, "Failed to list the VM sizes of a location");
                Err(unknown(&error, location))
            }
            Err(_) => Err(Unknown::temporary(format!(
                "Azure did not list the VM sizes of {location} within {PATIENCE:?}: it is tried again"
            ))),
        };
        listed.retain(|_, (at, known)| is_fresh(at.elapsed(), known));
        listed.insert(location.to_owned(), (Instant::now(), found.clone()));
        found
    }

    async fn list(&self, location: &str) -> Result<Sizes, Error> {
        let (source, subscription) = self.identity()?;
        let client = Client::new(source).with_largest_response(LARGEST_PAGE);
        let mut request = Request::get(format!(
            "{}/subscriptions/{subscription}/providers/Microsoft.Compute/skus?api-version={VERSION}\
             &$filter=location%20eq%20%27{location}%27",
            self.management
        ));
        let mut sizes = Sizes::new();
        for _ in 0..PAGES {
            let page = client.call(&request).await?.body;
            let items = page["value"].as_array().into_iter().flatten();
            sizes.extend(items.filter_map(read));
            let Some(next) = page["nextLink"].as_str().filter(|it| !it.is_empty()) else {
                return Ok(sizes);
            };
            if !self.is_own(next) {
                return Err(unexpected(&request, "its next page is on another host"));
            }
            request = Request::get(next);
        }
        Err(unexpected(&request, "the list does not end"))
    }

    /// Whether a URL is one of Azure Resource Manager: the token goes nowhere else.
    fn is_own(&self, url: &str) -> bool {
        let rest = url.strip_prefix(self.management.as_str());
        rest.is_some_and(|rest| rest.starts_with('/') || rest.starts_with(":443/"))
    }

    /// The application, and the subscription.
    fn identity(&self) -> Result<(Source, String), Error> {
        let path = self.credentials.display();
        let text = std::fs::read(&self.credentials)
            .map_err(|error| Error::Credentials(format!("failed to read {path}: {error}")))?;
        let file: Value = serde_json::from_slice(&text).unwrap_or_default();
        let subscription = file["subscriptionId"].as_str().filter(|it| is_name(it));
        let subscription = subscription.ok_or_else(|| {
            Error::Credentials(format!(
                "{path}: expected JSON with subscriptionId, tenantId, clientId and clientSecret"
            ))
        })?;
        let scope = format!("{}/.default", self.management);
        let variable = |name: &str| (name == AUTHORITY).then(|| self.authority.clone());
        let source = azure::source(
            Some(&self.credentials),
            AuthType::ClientSecret,
            &scope,
            &variable,
        )?;
        Ok((source, subscription.to_owned()))
    }
}

fn unexpected(request: &Request, problem: &str) -> Error {
    Error::Response {
        what: request.what(),
        problem: problem.to_owned(),
    }
}

/// What the author of a NodePool can know of a failure.
fn unknown(error: &Error, location: &str) -> Unknown {
    let subject = format!("VM sizes of {location}");
    Unknown::temporary(match error {
        Error::Refused { status, code, .. } => {
            format!("Azure refuses to list the {subject} ({status} {code}): {TO_ADMINISTRATORS}")
        }
        _ => format!("Azure could not be asked about the {subject}: {TO_ADMINISTRATORS}"),
    })
}

/// The name and the capacity of a SKU, if it is a VM size.
fn read(sku: &Value) -> Option<(String, Capacity)> {
    if sku["resourceType"].as_str() != Some("virtualMachines") {
        return None;
    }
    let capabilities = sku["capabilities"].as_array()?;
    let capability = |name: &str| {
        let found = capabilities
            .iter()
            .find(|it| it["name"].as_str() == Some(name))?;
        found["value"].as_str()
    };
    let gpus = capability("GPUs").and_then(|it| it.parse().ok());
    let capacity = Capacity {
        processors: capability("vCPUs")?.parse().ok()?,
        memory: mebibytes(capability("MemoryGB")?)?,
        gpus: gpus.unwrap_or_default(),
    };
    Some((sku["name"].as_str()?.to_ascii_lowercase(), capacity))
}

/// A number of GiB, which may have decimals, in MiB.
fn mebibytes(gibibytes: &str) -> Option<u64> {
    let (whole, decimals) = gibibytes.split_once('.').unwrap_or((gibibytes, "0"));
    let decimals = decimals.get(..decimals.len().min(6))?;
    let scale = 10_u64.pow(u32::try_from(decimals.len()).ok()?);
    let part = decimals.parse::<u64>().ok()? * 1024 / scale;
    whole
        .parse::<u64>()
        .ok()?
        .checked_mul(1024)?
        .checked_add(part)
}

#[cfg(test)]
mod tests;
