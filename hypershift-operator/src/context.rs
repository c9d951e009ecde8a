//! What everything that a leader does has in common. It lives as long as the term.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use api::group::CapiTypes;
use k8s_openapi::NamespaceResourceScope;
use kube::api::DynamicObject;
use kube::runtime::events::{Recorder, Reporter};
use kube::{Api, Resource};
use ownership::{
    Decision, ObservedGroups, Scope, capi_types, decide, evaluate, expected_types, may_reconcile,
};
use ownership_reader::Reader;
use payload::Releases;
#[cfg(test)]
use prometheus_client::registry::Registry;
use serde::de::DeserializeOwned;
use support::apply::Applier;
use support::controller::Manager;
#[cfg(test)]
use support::health::Health;
use support::reconcile::is_missing;

use crate::cache::Cache;
use crate::cluster_ref::{Id, protocol, resource};
use crate::cluster_states::ClusterStates;
use crate::config::{Cloud, Config, EtcdBackups, Images};
use crate::control_plane_namespace::Namespace;
use crate::error::Error;
use crate::in_flight::InFlight;
use crate::management;
use crate::metrics::Metrics;
use crate::names::FIELD_MANAGER;
use crate::platform::aws::oidc;
use crate::platform::capacity::Provider;
use crate::platform::kubevirt::virtualization;

/// Who sends Events.
const CONTROLLER: &str = "hypershift.openshift.io/hypershift-operator";

/// A leader's means.
pub(crate) struct Context {
    pub(crate) scope: Scope,
    /// Refuses to write when the term is over.
    pub(crate) client: kube::Client,
    /// What is watched.
    pub(crate) cache: Arc<Cache>,
    pub(crate) observed_groups: Reader,
    pub(crate) cluster_states: ClusterStates,
    pub(crate) metrics: Arc<Metrics>,
    /// Runs the controllers, and the passes of all other loops.
    pub(crate) controllers: Manager,
    pub(crate) recorder: Recorder,
    /// Where operator-legacy runs, and its name.
    pub(crate) legacy_deployment: Id,
    /// Images that this operator chooses.
    pub(crate) images: Images,
    /// Cloud settings of this operator.
    pub(crate) cloud: Cloud,
    /// How backups of etcd are made.
    pub(crate) etcd_backups: EtcdBackups,
    /// Reads releases. It outlives the term: what was read once is not read again.
    pub(crate) releases: Releases,
    /// How often a hosted cluster is gone through in which nothing happens.
    pub(crate) review: Duration,
    /// Properties of the management cluster.
    pub(crate) management: management::Cache,
    /// What infrastructure clusters have.
    pub(crate) virtualization: virtualization::Cache,
    /// The cloud that says what a machine has, if it may be asked.
    pub(crate) capacity: Option<Provider>,
    /// The bucket with documents by which AWS validates tokens, if there is one.
    pub(crate) oidc: Option<oidc::Store>,
    /// The fencing epoch of the term.
    pub(crate) epoch: i32,
    /// What is under way for each cluster.
    pub(crate) in_flight: InFlight,
}

// === impl Context ===

impl Context {
    /// The means of a term that is led with this client.
    pub(crate) fn new(
        config: &Config,
        client: kube::Client,
        releases: Releases,
        metrics: &Arc<Metrics>,
        controllers: &Manager,
        epoch: i32,
    ) -> Self {
        let reporter = Reporter {
            controller: CONTROLLER.to_owned(),
            instance: Some(config.lease.identity.clone()),
        };
        Self {
            scope: config.scope,
            observed_groups: Reader::new(client.clone(), config.groups.clone()),
            cluster_states: ClusterStates::new(metrics),
            metrics: Arc::clone(metrics),
            controllers: controllers.clone(),
            recorder: Recorder::new(client.clone(), reporter),
            legacy_deployment: Id {
                namespace: config.namespace.clone(),
                name: config.legacy_deployment.clone(),
            },
            images: config.images.clone(),
            cloud: config.cloud.clone(),
            capacity: config.cloud.scale_from_zero.as_ref().map(Provider::new),
            oidc: config.cloud.oidc.clone().map(oidc::Store::new),
            etcd_backups: config.etcd_backups.clone(),
            releases,
            review: config.review,
            management: management::Cache::default(),
            cache: Arc::new(Cache::new()),
            virtualization: virtualization::Cache::default(),
            epoch,
            in_flight: InFlight::default(),
            client,
        }
    }

    /// The context of a term with epoch 1.
    #[cfg(test)]
    pub(crate) fn for_tests(
        config: &Config,
        client: kube::Client,
        releases: Releases,
        metrics: &Arc<Metrics>,
    ) -> Self {
        let registry = &mut Registry::default();
        let health = Health::new(registry);
        let controllers = Manager::new(registry, &health);
        Self::new(config, client, releases, metrics, &controllers, 1)
    }

    /// What the namespace of a control plane holds, of which annotations claim that it holds objects of one of the types
    /// only. If that is what the watches see there, no request is needed; for everything else, and for every doubt, it is
    /// looked at.
    pub(crate) async fn observe_groups(
        &self,
        namespace: &Namespace,
        expected: Option<CapiTypes>,
    ) -> Result<ObservedGroups, Error> {
        if let Namespace::Absent(_) = namespace {
            // A namespace that does not exist has no objects.
            return Ok(ObservedGroups::None);
        }
        let seen = self.cache.observed_groups(namespace.name());
        let reader = &self.observed_groups;
        match (seen, expected) {
            (Some(seen), Some(types))
                if !namespace.is_foreign()
                    && (seen == ObservedGroups::None
                        || seen == ObservedGroups::None.with(types)) =>
            {
                Ok(seen)
            }
            // What was read before the watches saw a change does not count any more.
            (Some(_), _) => Ok(reader.of(namespace).await?),
            (None, _) => Ok(reader.of_annotated(namespace, expected).await?),
        }
    }

    /// The types of a HostedCluster with this namespace, if this operator reconciles it.
    pub(crate) async fn reconciled_types(
        &self,
        cluster: &DynamicObject,
        namespace: &Namespace,
    ) -> Result<Option<CapiTypes>, Error> {
        let protocol = namespace.protocol(protocol(&cluster.metadata));
        if !may_reconcile(self.scope, &protocol) {
            return Ok(None);
        }
        let expected = expected_types(&protocol);
        let observed_groups = self.observe_groups(namespace, expected).await?;
        Ok(
            match decide(self.scope, &evaluate(&protocol, observed_groups)) {
                Decision::Reconcile => Some(capi_types(self.scope, &protocol, observed_groups)),
                Decision::Skip | Decision::Annotate(_) | Decision::ReportInvalid => None,
            },
        )
    }

    /// An object of a namespace, if it exists. A kind that is not served has no objects.
    pub(crate) async fn get<K>(&self, namespace: &str, name: &str) -> Result<Option<K>, Error>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>
            + Clone
            + Debug
            + DeserializeOwned,
    {
        let api: Api<K> = Api::namespaced(self.client.clone(), namespace);
        match api.get_opt(name).await {
            Ok(found) => Ok(found),
            Err(error) if is_missing(&error) => Ok(None),
            Err(source) => Err(Error::Read {
                what: format!("{} {namespace}/{name}", K::kind(&())),
                source,
            }),
        }
    }

    /// Writes what belongs to hosted clusters.
    pub(crate) fn applier(&self) -> Applier {
        let memory = Arc::clone(&self.cache);
        Applier::new(self.client.clone(), FIELD_MANAGER).with_memory(memory)
    }

    /// The HostedClusters beside this one.
    pub(crate) fn hosted_clusters(&self, id: &Id) -> Api<DynamicObject> {
        Api::namespaced_with(self.client.clone(), &id.namespace, &resource())
    }
}
