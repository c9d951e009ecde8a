//! An installation is upgraded from the previous release, while hosted clusters are there.
//!
//! There is no released version yet. The previous one is what this command installs with other references of images,
//! and with objects under the installation's label that this one does not make.

use std::sync::{Arc, Mutex};

use anyhow::{Context, Result, ensure};
use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::jiff::Timestamp;
use kube::api::{Api, WatchEvent, WatchParams};
use serde_json::{Value, json};
use testbed::client::Resource;
use testbed::node::NodeTestbed;
use testbed::operator::Operator;
use testbed::wait;
use tokio::task::JoinHandle;

use crate::install::command::{Hypershift, NAMESPACE};
use crate::install::nodes::{self, Images};

const HOSTED_CLUSTERS: &str = "/apis/hypershift.openshift.io/v1beta1/hostedclusters";
const DEPLOYMENTS: &str = "/apis/apps/v1/deployments/";
const CONFIG_MAPS: Resource<'_> = Resource::new("v1", "configmaps");
const CLUSTER_ROLES: Resource<'_> = Resource::new("rbac.authorization.k8s.io/v1", "clusterroles");

/// One state of a lease: who holds it, and until when it was renewed.
#[derive(Debug, Clone)]
struct Term {
    holder: Option<String>,
    acquired: Option<Timestamp>,
    renewed: Option<Timestamp>,
}

/// All states of a lease, as they come.
struct Watched {
    operator: Operator,
    terms: Arc<Mutex<Vec<Term>>>,
    task: JoinHandle<()>,
}

/// From `old` to `new`: predicted by a dry run, rolled out without a gap in leadership, with pruned objects gone, and nothing else
/// has moved.
pub(crate) async fn from_the_previous_release(
    testbed: &NodeTestbed,
    hypershift: &Hypershift,
    new: &Images,
) -> Result<()> {
    let relics = relics();
    for (path, relic) in &relics {
        apply_as_installer(testbed, path, relic).await?;
    }
    let (made, clusters) = (nodes::made(testbed).await?, hosted_clusters(testbed).await?);
    let predicted = new.install(hypershift, &["--dry-run"]).await?.succeeded()?;
    for line in [
        "ConfigMap hypershift/settings-of-old: remove, no longer wanted",
        "ClusterRole hypershift-reader-of-old: remove, no longer wanted",
    ] {
        ensure!(predicted.contains(line), "no {line:?} in:\n{predicted}");
    }
    ensure!(made == nodes::made(testbed).await?, "a dry run has written");

    let watched = Operator::ALL.map(|operator| Watched::start(testbed, operator));
    new.install(hypershift, &[]).await?.succeeded()?;
    for operator in Operator::ALL {
        // Old pods end a moment after they are no longer counted.
        let what = format!("the pods of {} alone", operator.name());
        wait::until(&what, nodes::WITHIN, async || {
            nodes::all_run(testbed, operator.name()).await
        })
        .await?;
    }
    for watched in watched {
        watched.was_handed_over(testbed).await?;
    }
    for (path, _) in &relics {
        ensure!(testbed.admin.find(path).await?.is_none(), "{path} is left");
    }
    let moved: Vec<_> = nodes::made(testbed)
        .await?
        .into_iter()
        .filter(|line| !made.contains(line) && !line.starts_with(DEPLOYMENTS))
        .collect();
    ensure!(moved.is_empty(), "the upgrade has moved {moved:?}");
    let after = hosted_clusters(testbed).await?;
    ensure!(
        clusters == after,
        "hosted clusters were {clusters:?} and are {after:?}"
    );
    Ok(())
}

/// What a release of old made and this one does not, with where it is.
fn relics() -> [(String, Value); 2] {
    let labels = json!({
        "app.kubernetes.io/managed-by": "hypershift-install",
        "app.kubernetes.io/part-of": "hypershift",
        "hypershift.openshift.io/installation": NAMESPACE,
    });
    let settings = json!({
        "apiVersion": CONFIG_MAPS.api_version,
        "kind": "ConfigMap",
        "metadata": { "name": "settings-of-old", "labels": labels },
        "data": { "of": "old" },
    });
    let reader = json!({
        "apiVersion": CLUSTER_ROLES.api_version,
        "kind": "ClusterRole",
        "metadata": { "name": "hypershift-reader-of-old", "labels": labels },
        "rules": [{ "apiGroups": [""], "resources": ["nodes"], "verbs": ["get"] }],
    });
    [
        (CONFIG_MAPS.named(NAMESPACE, "settings-of-old"), settings),
        (
            format!("{}/hypershift-reader-of-old", CLUSTER_ROLES.all()),
            reader,
        ),
    ]
}

/// As the previous release applied it.
async fn apply_as_installer(testbed: &NodeTestbed, path: &str, object: &Value) -> Result<()> {
    let path = format!("{path}?fieldManager=hypershift-install");
    let request = http::Request::patch(path)
        .header(http::header::CONTENT_TYPE, "application/apply-patch+yaml")
        .body(object.to_string().into_bytes())?;
    let _: Value = testbed.admin.kube().request(request).await?;
    Ok(())
}

/// Every hosted cluster with its marks and its version.
async fn hosted_clusters(testbed: &NodeTestbed) -> Result<Vec<String>> {
    let clusters = testbed.admin.list(HOSTED_CLUSTERS).await?;
    ensure!(
        !clusters.is_empty(),
        "there is no hosted cluster to be left alone"
    );
    let each = clusters.iter().map(|cluster| &cluster["metadata"]);
    Ok(each
        .map(|metadata| {
            format!(
                "{} {} {}",
                metadata["name"], metadata["resourceVersion"], metadata["annotations"]
            )
        })
        .collect())
}

// === impl Term ===

impl Term {
    fn of(lease: Lease) -> Option<Self> {
        let spec = lease.spec?;
        Some(Self {
            holder: spec.holder_identity.filter(|holder| !holder.is_empty()),
            acquired: spec.acquire_time.map(|time| time.0),
            renewed: spec.renew_time.map(|time| time.0),
        })
    }
}

// === impl Watched ===

impl Watched {
    fn start(testbed: &NodeTestbed, operator: Operator) -> Self {
        let terms = Arc::default();
        let leases: Api<Lease> = Api::namespaced(testbed.admin.kube().clone(), NAMESPACE);
        Self {
            operator,
            terms: Arc::clone(&terms),
            task: tokio::spawn(follow(leases, operator, terms)),
        }
    }

    /// Checks that each leader gave the lease back before the next one took it: none had to wait for its end. How long
    /// there was no leader is printed.
    async fn was_handed_over(&self, testbed: &NodeTestbed) -> Result<()> {
        let name = self.operator.name();
        let what = format!("a new leader of {name}");
        wait::until(&what, nodes::WITHIN, async || {
            let terms = self.terms();
            let holders = terms.iter().filter_map(|term| term.holder.as_ref());
            let now = terms.last().and_then(|term| term.holder.clone());
            ensure!(
                now.is_some() && holders.clone().next() != now.as_ref(),
                "{now:?} leads"
            );
            Ok(())
        })
        .await?;
        let terms = self.terms();
        let mut longest = 0.0_f64;
        for (before, after) in terms.iter().zip(terms.iter().skip(1)) {
            let Some(taken) = after
                .holder
                .as_ref()
                .filter(|_| before.holder != after.holder)
            else {
                continue;
            };
            ensure!(
                before.holder.is_none(),
                "{taken} took the lease of {name} from {:?}, which had not given it back",
                before.holder
            );
            let (from, to) = (before.renewed, after.acquired);
            let (from, to) = (from.context("never renewed")?, to.context("never taken")?);
            longest = longest.max(to.duration_since(from).as_secs_f64());
        }
        testbed.progress.note(&format!(
            "{name} was without a leader for {longest:.2} s at most"
        ));
        Ok(())
    }

    fn terms(&self) -> Vec<Term> {
        let terms = self.terms.lock();
        terms
            .expect("invariant: no thread panics while holding it")
            .clone()
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Writes down each state of a lease, from the present one on.
async fn follow(leases: Api<Lease>, operator: Operator, terms: Arc<Mutex<Vec<Term>>>) {
    let only = WatchParams::default().fields(&format!("metadata.name={}", operator.lease()));
    // A watch that cannot be had leaves no terms, which fails the test.
    let Ok(events) = leases.watch(&only, "0").await else {
        return;
    };
    let mut events = events.into_stream().boxed();
    while let Some(Ok(event)) = events.next().await {
        if let WatchEvent::Added(lease) | WatchEvent::Modified(lease) = event {
            let mut terms = terms
                .lock()
                .expect("invariant: no thread panics while holding it");
            terms.extend(Term::of(lease));
        }
    }
}
