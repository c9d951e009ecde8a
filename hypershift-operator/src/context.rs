//! What everything that a leader does has in common. It lives as long as the term.

use std::sync::Arc;
use std::time::Duration;

use kube::Api;
use kube::api::DynamicObject;
use kube::runtime::events::{Recorder, Reporter};
use ownership::Scope;
use ownership_reader::Reader;
use payload::Releases;
use support::apply::Applier;

use crate::config::{Cloud, Config, Images};
use crate::fleet::Fleet;
use crate::hosted_cluster::{Cache, Id, MANAGER_OF_ALL, VirtualizationCache, resource};
use crate::metrics::Metrics;
use crate::migration::{self, Migrations, Passes};

/// Who sends Events.
const CONTROLLER: &str = "hypershift.openshift.io/hypershift-operator";

/// A leader's means.
pub(crate) struct Context {
    pub(crate) scope: Scope,
    /// Refuses to write when the term is over.
    pub(crate) client: kube::Client,
    pub(crate) evidence: Reader,
    pub(crate) fleet: Fleet,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) recorder: Recorder,
    /// Where operator-legacy runs, and its name.
    pub(crate) legacy_deployment: Id,
    /// Images that this operator chooses.
    pub(crate) images: Images,
    /// What this operator has of clouds.
    pub(crate) cloud: Cloud,
    /// Reads releases. It outlives the term: what was read once is not read again.
    pub(crate) releases: Releases,
    /// How often a hosted cluster is gone through in which nothing happens.
    pub(crate) review: Duration,
    /// What the management cluster has.
    pub(crate) management: Cache,
    /// What infrastructure clusters have.
    pub(crate) virtualization: VirtualizationCache,
    /// The fencing epoch of the term.
    pub(crate) epoch: i32,
    /// What is under way for each cluster.
    pub(crate) passes: Passes,
    /// Who is migrated, and how.
    pub(crate) migrations: Migrations,
}

// === impl Context ===

impl Context {
    /// The means of a term that is led with this client.
    pub(crate) fn new(
        config: &Config,
        client: kube::Client,
        releases: Releases,
        metrics: &Arc<Metrics>,
        migration: &Arc<migration::Metrics>,
        epoch: i32,
    ) -> Self {
        let reporter = Reporter {
            controller: CONTROLLER.to_owned(),
            instance: Some(config.lease.identity.clone()),
        };
        Self {
            scope: config.scope,
            evidence: Reader::new(client.clone(), config.groups.clone()),
            fleet: Fleet::new(metrics),
            metrics: Arc::clone(metrics),
            recorder: Recorder::new(client.clone(), reporter),
            legacy_deployment: Id {
                namespace: config.namespace.clone(),
                name: config.legacy_deployment.clone(),
            },
            images: config.images.clone(),
            cloud: config.cloud.clone(),
            releases,
            review: config.review,
            management: Cache::default(),
            virtualization: VirtualizationCache::default(),
            epoch,
            passes: Passes::default(),
            migrations: Migrations::new(config.migration.clone(), migration),
            client,
        }
    }

    /// The means of a term whose migrations nobody counts.
    #[cfg(test)]
    pub(crate) fn for_tests(
        config: &Config,
        client: kube::Client,
        releases: Releases,
        metrics: &Arc<Metrics>,
    ) -> Self {
        let mut registry = prometheus_client::registry::Registry::default();
        let migration = Arc::new(migration::Metrics::new(&mut registry));
        Self::new(config, client, releases, metrics, &migration, 1)
    }

    /// Writes what belongs to hosted clusters.
    pub(crate) fn applier(&self) -> Applier {
        Applier::new(self.client.clone(), MANAGER_OF_ALL)
    }

    /// The HostedClusters beside this one.
    pub(crate) fn hosted_clusters(&self, id: &Id) -> Api<DynamicObject> {
        Api::namespaced_with(self.client.clone(), &id.namespace, &resource())
    }
}
