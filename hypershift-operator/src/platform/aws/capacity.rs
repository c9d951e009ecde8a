//! What an instance type has, as EC2 says: the cluster autoscaler needs it for a NodePool without machines.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use support::aws::credentials::{of_file, token_service};
use support::aws::{self, Query, Signer};
use support::error::chain;
use support::outbound::Http;
use support::xml;
use tokio::time::{Instant, timeout};

use crate::platform::capacity::{Capacity, Known, TO_ADMINISTRATORS, Unknown, is_fresh};

/// How long a NodePool waits for EC2.
const PATIENCE: Duration = Duration::from_secs(10);
const SERVICE: &str = "ec2";
const VERSION: &str = "2016-11-15";
/// Name of the session of a role.
const SESSION: &str = "hypershift-operator-scale-from-zero";
/// Where the response has the instance type.
const ITEM: &str = "DescribeInstanceTypesResponse/instanceTypeSet/item/";

/// A region and an instance type.
type Key = (String, String);

/// Asks EC2, and caches what it says.
#[derive(Debug)]
pub(crate) struct Ec2 {
    http: Http,
    /// A shared credentials file, which is read for each request: it may be replaced.
    credentials: PathBuf,
    /// The URL of a service that replaces EC2, and of one that replaces STS.
    endpoints: [Option<String>; 2],
    known: Mutex<HashMap<Key, (Instant, Known)>>,
}

// === impl Ec2 ===

impl Ec2 {
    /// Uses the credentials of a file, and endpoints of the environment.
    pub(crate) fn new(credentials: PathBuf) -> Self {
        let endpoints = [SERVICE, "sts"].map(|service| aws::endpoint(service, &variable));
        Self::with_endpoints(credentials, endpoints)
    }

    fn with_endpoints(credentials: PathBuf, endpoints: [Option<String>; 2]) -> Self {
        Self {
            http: Http::new(),
            credentials,
            endpoints,
            known: Mutex::default(),
        }
    }

    /// What machines of an instance type have.
    pub(crate) async fn capacity(&self, region: &str, instance_type: &str) -> Known {
        // Users choose it, and it becomes a part of a host name.
        if !aws::is_region(region) {
            return Err(Unknown::temporary(format!(
                "{region:?} is not a region of AWS: correct spec.platform.aws.region of the HostedCluster"
            )));
        }
        let key = (region.to_owned(), instance_type.to_owned());
        if let Some(known) = self.cached(&key) {
            return known;
        }
        let found = match timeout(PATIENCE, self.describe(region, instance_type)).await {
            Ok(Ok(capacity)) => Ok(capacity),
            Ok(Err(error)) => {
                let cause = chain(&error);
                tracing::warn!(
                    error = cause,
                    "Failed to get the capacity of an instance type"
                );
                Err(unknown(&error, region, instance_type))
            }
            Err(_) => Err(Unknown::temporary(format!(
                "EC2 did not describe instance type {instance_type} in {region} within {PATIENCE:?}: it is tried again"
            ))),
        };
        let mut all = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|_, (at, known)| is_fresh(at.elapsed(), known));
        all.insert(key, (Instant::now(), found.clone()));
        found
    }

    fn cached(&self, key: &Key) -> Option<Known> {
        let all = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let (at, known) = all.get(key)?;
        is_fresh(at.elapsed(), known).then(|| known.clone())
    }

    async fn describe(&self, region: &str, instance_type: &str) -> Result<Capacity, aws::Error> {
        let [ec2, sts] = &self.endpoints;
        let source = of_file(&self.credentials, &variable)?;
        let sts = sts
            .clone()
            .unwrap_or_else(|| token_service(region, &|_| None));
        let credentials = source.load(&self.http, &sts, SESSION).await?;
        let of_aws = || format!("https://{SERVICE}.{region}.{}", aws::domain(region));
        let url = ec2.clone().unwrap_or_else(of_aws);
        let query = Query {
            url: &url,
            action: "DescribeInstanceTypes",
            version: VERSION,
            parameters: &[("InstanceType.1", instance_type)],
            about: instance_type,
        };
        let signer = Signer {
            credentials: &credentials,
            region,
            service: SERVICE,
        };
        let response = query.send(&self.http, Some(signer)).await?;
        let found = read(&response);
        found.ok_or_else(|| query.unexpected("it has no processors or no memory"))
    }
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// What the author of a NodePool can know of a failure.
fn unknown(error: &aws::Error, region: &str, instance_type: &str) -> Unknown {
    let subject = format!("instance type {instance_type} in {region}");
    Unknown::temporary(match error {
        aws::Error::Refused { code, .. } if code == "InvalidInstanceType" => {
            format!("EC2 does not have {subject}: correct spec.platform.aws.instanceType")
        }
        aws::Error::Refused { code, .. } => {
            format!("EC2 refuses to describe {subject} ({code}): {TO_ADMINISTRATORS}")
        }
        _ => format!("EC2 could not be asked about {subject}: {TO_ADMINISTRATORS}"),
    })
}

/// The first instance type of a response.
fn read(response: &str) -> Option<Capacity> {
    let leaves = xml::leaves(response);
    let texts = |path: &'static str| {
        let at = leaves
            .iter()
            .filter(move |(it, _)| it.strip_prefix(ITEM) == Some(path));
        at.map(|(_, text)| text.as_str())
    };
    let gpus = texts("gpuInfo/gpus/item/count").filter_map(|count| count.parse::<u32>().ok());
    Some(Capacity {
        processors: texts("vCpuInfo/defaultVCpus").next()?.parse().ok()?,
        memory: texts("memoryInfo/sizeInMiB").next()?.parse().ok()?,
        gpus: gpus.sum(),
    })
}

#[cfg(test)]
mod tests;
