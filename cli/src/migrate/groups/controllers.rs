//! The hooks of a migration without an operator: stops the given controllers, and checks that they are stopped.

use std::collections::BTreeMap;
use std::str::FromStr;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Context;
use api::group::GroupTable;
use k8s_openapi::api::apps::v1::Deployment as Object;
use kube::api::{Patch, PatchParams};
use kube::{Api, Client};
use migration::failure::Reason;
use migration::journal::{Failure, Journal};
use migration::machine::Task;
use migration_executor::{Executor, Hooks, Options, Progress, Scope};
use serde_json::{Value, json};

use super::REPLICAS;
use crate::hosted::{FIELD_MANAGER, refused};

/// A Deployment by name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Deployment {
    namespace: String,
    name: String,
}

/// The site.
pub(super) struct Controllers {
    client: Client,
    namespaces: Vec<String>,
    table: GroupTable,
    calm: Duration,
    /// Since when the versions of all objects are these.
    seen: Mutex<Option<(Instant, BTreeMap<String, String>)>>,
}

// === impl Deployment ===

impl FromStr for Deployment {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once('/') {
            Some((namespace, name)) if !namespace.is_empty() && !name.is_empty() => Ok(Self {
                namespace: namespace.to_owned(),
                name: name.to_owned(),
            }),
            _ => Err("write NAMESPACE/NAME".to_owned()),
        }
    }
}

impl std::fmt::Display for Deployment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// How many replicas each has now.
pub(super) async fn replicas(client: &Client, deployments: &[Deployment]) -> anyhow::Result<Value> {
    let mut replicas = BTreeMap::new();
    for deployment in deployments {
        let api: Api<Object> = Api::namespaced(client.clone(), &deployment.namespace);
        let found = api
            .get(&deployment.name)
            .await
            .map_err(|error| refused(&error));
        let found = found.with_context(|| format!("cannot read Deployment {deployment}"))?;
        let count = found.spec.and_then(|spec| spec.replicas).unwrap_or(1);
        replicas.insert(deployment.to_string(), count);
    }
    Ok(json!(replicas))
}

// === impl Controllers ===

impl Controllers {
    pub(super) fn new(
        client: Client,
        namespaces: &[String],
        table: &GroupTable,
        calm: Duration,
    ) -> Self {
        Self {
            client,
            namespaces: namespaces.to_vec(),
            table: table.clone(),
            calm,
            seen: Mutex::default(),
        }
    }

    /// Scales to zero what was named, and waits until no pod is left and nothing has changed for a while.
    async fn quiesce(&self, journal: &Journal) -> Result<Progress, Failure> {
        for deployment in stopped(journal).keys() {
            self.scale(deployment, 0).await?;
            if let Some(pods) = self.pods(deployment).await? {
                return Ok(Progress::Waiting(pods));
            }
        }
        self.is_calm(journal).await
    }

    async fn is_calm(&self, journal: &Journal) -> Result<Progress, Failure> {
        let now = self.versions(journal).await?;
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let since = match &*seen {
            Some((since, before)) if *before == now => *since,
            _ => Instant::now(),
        };
        *seen = Some((since, now));
        if since.elapsed() >= self.calm {
            return Ok(Progress::Done);
        }
        let seconds = self.calm.as_secs();
        Ok(Progress::Waiting(format!(
            "no object to change for {seconds} s"
        )))
    }

    /// The versions of all objects that are moved.
    async fn versions(&self, journal: &Journal) -> Result<BTreeMap<String, String>, Failure> {
        let scope = Scope {
            namespaces: self.namespaces.clone(),
            table: self.table.clone(),
        };
        let failed = |error: migration_executor::Error| {
            Failure::new(
                Reason::ApiUnavailable,
                format!("cannot see whether objects change: {error}"),
            )
        };
        let options = Options::default();
        let opened = Executor::open(self.client.clone(), scope, &options).await;
        let mut reader = opened.map_err(failed)?;
        let groups = reader.groups(journal.direction);
        let snapshot = reader.survey(journal.direction).await.map_err(failed)?;
        let originals = snapshot
            .objects()
            .filter(|object| groups.is_source(&object.key().group));
        let versions = originals.map(|o| (o.key().to_string(), o.resource_version().to_owned()));
        Ok(versions.collect())
    }

    async fn scale_back(&self, journal: &Journal) -> Result<Progress, Failure> {
        for (deployment, replicas) in stopped(journal) {
            self.scale(&deployment, replicas).await?;
        }
        Ok(Progress::Done)
    }

    async fn scale(&self, deployment: &Deployment, replicas: i64) -> Result<(), Failure> {
        let api: Api<Object> = Api::namespaced(self.client.clone(), &deployment.namespace);
        let params = PatchParams {
            field_manager: Some(FIELD_MANAGER.to_owned()),
            ..PatchParams::default()
        };
        let patch = json!({ "spec": { "replicas": replicas } });
        let scaled = api
            .patch_scale(&deployment.name, &params, &Patch::Merge(&patch))
            .await;
        scaled.map(drop).map_err(|error| {
            let message = format!("cannot scale Deployment {deployment}: {}", refused(&error));
            Failure::new(Reason::QuiesceTimeout, message)
        })
    }

    /// What is left of a Deployment's pods, terminating ones included.
    async fn pods(&self, deployment: &Deployment) -> Result<Option<String>, Failure> {
        let failed = |error: kube::Error| {
            let message = format!("cannot see the pods of {deployment}: {}", refused(&error));
            Failure::new(Reason::ApiUnavailable, message)
        };
        let api: Api<Object> = Api::namespaced(self.client.clone(), &deployment.namespace);
        let found = api.get(&deployment.name).await.map_err(failed)?;
        let selector = found.spec.and_then(|spec| spec.selector.match_labels);
        let labels = selector.unwrap_or_default().into_iter();
        let labels: Vec<_> = labels
            .map(|(key, value)| format!("{key}={value}"))
            .collect();
        let pods: Api<k8s_openapi::api::core::v1::Pod> =
            Api::namespaced(self.client.clone(), &deployment.namespace);
        let params = kube::api::ListParams::default().labels(&labels.join(","));
        let left = pods
            .list_metadata(&params)
            .await
            .map_err(failed)?
            .items
            .len();
        Ok((left > 0).then(|| format!("{left} pods of Deployment {deployment} to end")))
    }
}

impl Hooks for Controllers {
    async fn perform(&self, task: Task, journal: &Journal) -> Result<Progress, Failure> {
        match task {
            Task::Quiesce | Task::QuiesceAgain => self.quiesce(journal).await,
            Task::ScaleBack => self.scale_back(journal).await,
            // The journal is the lock, and its entry is the commit; a person starts the other side's controllers.
            Task::Lock
            | Task::Deploy
            | Task::Health
            | Task::Commit
            | Task::Finish
            | Task::RestoreTemplates
            | Task::Unlock => Ok(Progress::Done),
        }
    }
}

/// What was scaled to zero, and what it had before.
fn stopped(journal: &Journal) -> BTreeMap<Deployment, i64> {
    let replicas = journal.counts[REPLICAS].as_object();
    let each = replicas.into_iter().flatten();
    let each = each.filter_map(|(name, count)| Some((name.parse().ok()?, count.as_i64()?)));
    each.collect()
}
