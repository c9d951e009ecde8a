//! The context of all controllers: clients of both clusters, and caches.

mod watches;

use std::hash::Hash;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures::future::LocalBoxFuture;
use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration,
};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use k8s_openapi::api::core::v1::{ConfigMap, Node};
use kube::api::DynamicObject;
use kube::runtime::reflector::store::Writer;
use kube::runtime::reflector::{Lookup, Store};
use kube::{Api, ResourceExt as _};
use payload::Releases;
use support::apply::Applier;
use support::controller::{Manager, Wake};
use support::reconcile::is_missing;

use super::controller::{Schedule, Subject, run_controller};
use super::error::Error;
use super::machines::{self, Machine};
use super::metrics::Metrics;
use super::{
    Args, ControllerName, NodeClients, Process, cleanup, control_plane, endpoint_slices, in_place,
    metrics, nodes, recovery, reencryption, resources, service_authorities, signing, spot, status,
    webhook_validation,
};
use crate::tool;
pub(super) use watches::run_watch;

/// Field manager in the hosted cluster.
const MANAGER: &str = "hosted-cluster-config-operator";
/// A platform without Machines.
const IBM_CLOUD: &str = "IBMCloud";
/// The platform of control planes with machines outside of Cluster API, or with Agents.
const PLATFORM_NONE: &str = "None";
/// Resync period.
const PERIOD: Duration = Duration::from_mins(1);
/// Controllers that read objects of the control plane.
const READERS_OF_SOURCES: [ControllerName; 4] = [
    ControllerName::Resources,
    ControllerName::WebhookValidation,
    ControllerName::ControllerManagerCa,
    ControllerName::Reencryption,
];

/// The context of all controllers.
pub(super) struct Context {
    pub(super) management: kube::Client,
    pub(super) guest: kube::Client,
    /// Applies objects in the hosted cluster.
    pub(super) applier: Applier,
    pub(super) namespace: String,
    pub(super) node_clients: NodeClients,
    pub(super) initial_ca: Option<PathBuf>,
    pub(super) signer_ca: Option<PathBuf>,
    pub(super) resources: resources::Resources,
    pub(super) metrics: metrics::Term,
    pub(super) cleanup: cleanup::State,
    pub(super) recovery: recovery::State,
    /// Image of the machine-config-daemon for in-place upgrades.
    pub(super) daemon_image: Option<String>,
    /// Kubeconfig of the cluster that runs the virtual machines, if it is another one.
    pub(super) infra_kubeconfig: Option<PathBuf>,
    pub(super) machine: kube::api::ApiResource,
    machine_set: kube::api::ApiResource,
    subject: Subject,
    release: Option<String>,
    has_machines: bool,
    control_planes: Store<DynamicObject>,
    machines: Store<DynamicObject>,
    machine_sets: Store<DynamicObject>,
    nodes: Store<Node>,
    requests: Store<CertificateSigningRequest>,
    validating: Store<ValidatingWebhookConfiguration>,
    mutating: Store<MutatingWebhookConfiguration>,
    config_maps: [Store<ConfigMap>; 2],
    api_servers: Store<Deployment>,
}

/// The writers of the caches.
struct Caches {
    control_planes: Writer<DynamicObject>,
    machines: Writer<DynamicObject>,
    machine_sets: Writer<DynamicObject>,
    nodes: Writer<Node>,
    requests: Writer<CertificateSigningRequest>,
    validating: Writer<ValidatingWebhookConfiguration>,
    mutating: Writer<MutatingWebhookConfiguration>,
    config_maps: [Writer<ConfigMap>; 2],
    api_servers: Writer<Deployment>,
    sources: resources::Writers,
}

/// Triggers of the controllers.
struct Wakes {
    /// After changes of the HostedControlPlane.
    hcp: Wake,
    /// After changes of the HostedControlPlane, nodes, machines and requests.
    cluster: Wake,
    /// After changes of the HostedControlPlane, and of all that `resources` reads.
    resources: Wake,
    /// After changes of webhook configurations, and of Services in the control plane.
    webhooks: Wake,
    /// After changes of the HostedControlPlane, and of ConfigMaps with authorities.
    authorities: Wake,
    /// After changes of the HostedControlPlane, its Secrets, and the Deployment of its API servers.
    encryption: Wake,
}

// === impl Context ===

impl Context {
    /// Runs all controllers while the process is the leader.
    pub(super) async fn run(args: &Args, clients: (kube::Client, kube::Client), process: &Process) {
        let (health, manager) = (&process.health, &process.manager);
        let (releases, metrics) = (process.releases.clone(), process.metrics.clone());
        let (ctx, mut caches) = Self::new(args, clients, releases, metrics).await;
        let wakes = Wakes {
            hcp: Wake::new(),
            cluster: Wake::new(),
            resources: Wake::new(),
            webhooks: Wake::new(),
            authorities: Wake::new(),
            encryption: Wake::new(),
        };
        let mut work = Vec::new();
        let runs = |name| args.controllers.contains(&name);
        if runs(ControllerName::Resources) {
            work.extend(ctx.resources.cache.watches(&wakes.resources));
        }
        if READERS_OF_SOURCES.into_iter().any(runs) {
            let readers = [&wakes.resources, &wakes.webhooks, &wakes.encryption].map(Wake::clone);
            let sources = std::mem::take(&mut caches.sources);
            work.extend(sources.watches(&ctx.management, &ctx.namespace, &readers, health));
        }
        work.extend(ctx.watches(caches, &wakes, health));
        for controller in args.controllers() {
            work.push(ctx.controller(controller, manager, &wakes));
        }
        futures::future::join_all(work).await;
    }

    /// The context of a term; the clients are of the management cluster and of the hosted cluster.
    async fn new(
        args: &Args,
        (management, guest): (kube::Client, kube::Client),
        releases: Releases,
        metrics: Metrics,
    ) -> (Self, Caches) {
        let (sources, source_writers) = resources::Sources::new();
        let capi_types = args.capi_types;
        let (machine, machine_set) = (
            machines::resource(capi_types),
            machines::set_resource(capi_types),
        );
        let caches = Caches {
            control_planes: Writer::new(control_plane::resource()),
            machines: Writer::new(machine.clone()),
            machine_sets: Writer::new(machine_set.clone()),
            nodes: Writer::default(),
            requests: Writer::default(),
            validating: Writer::default(),
            mutating: Writer::default(),
            config_maps: [Writer::default(), Writer::default()],
            api_servers: Writer::default(),
            sources: source_writers,
        };
        let ctx = Self {
            applier: Applier::new(guest.clone(), MANAGER),
            namespace: args.namespace.clone(),
            node_clients: args.node_clients,
            initial_ca: args.initial_ca_file.clone(),
            signer_ca: args.cluster_signer_ca_file.clone(),
            resources: resources::Resources::new(args, &guest, sources, releases, MANAGER),
            metrics: metrics.term(),
            cleanup: cleanup::State::default(),
            recovery: recovery::State::default(),
            daemon_image: args.machine_config_daemon_image.clone(),
            infra_kubeconfig: args.kubevirt_infra_kubeconfig.clone(),
            has_machines: may_have_machines(&args.platform_type, &management, &machine).await,
            machine,
            machine_set,
            subject: Subject {
                name: args.hosted_control_plane.clone(),
                found: caches.control_planes.as_reader(),
                recorder: tool::recorder(&management, MANAGER),
            },
            release: args.operate_on_release_image.clone(),
            control_planes: caches.control_planes.as_reader(),
            machines: caches.machines.as_reader(),
            machine_sets: caches.machine_sets.as_reader(),
            nodes: caches.nodes.as_reader(),
            requests: caches.requests.as_reader(),
            validating: caches.validating.as_reader(),
            mutating: caches.mutating.as_reader(),
            config_maps: caches.config_maps.each_ref().map(Writer::as_reader),
            api_servers: caches.api_servers.as_reader(),
            management,
            guest,
        };
        (ctx, caches)
    }

    fn controller<'a>(
        &'a self,
        controller: ControllerName,
        manager: &'a Manager,
        wakes: &'a Wakes,
    ) -> LocalBoxFuture<'a, ()> {
        let (hcp, cluster) = (&wakes.hcp, &wakes.cluster);
        let (name, wake, period) = match controller {
            ControllerName::Resources => ("resources", &wakes.resources, PERIOD),
            ControllerName::Signing => ("signing", cluster, PERIOD),
            ControllerName::Node => ("node", cluster, PERIOD),
            ControllerName::Machine => ("machine", cluster, PERIOD),
            ControllerName::Hcpstatus => ("hcpstatus", cluster, PERIOD),
            ControllerName::Spotremediation => ("spotremediation", cluster, PERIOD),
            ControllerName::Inplaceupgrader => ("inplaceupgrader", cluster, in_place::PERIOD),
            ControllerName::Cleanup => ("cleanup", hcp, cleanup::PERIOD),
            ControllerName::ControllerManagerCa => {
                ("controller-manager-ca", &wakes.authorities, PERIOD)
            }
            ControllerName::WebhookValidation => ("webhook-validation", &wakes.webhooks, PERIOD),
            ControllerName::Recovery => ("recovery", hcp, recovery::PERIOD),
            ControllerName::Reencryption => {
                ("reencryption", &wakes.encryption, reencryption::PERIOD)
            }
        };
        let schedule = Schedule { name, wake, period };
        match controller {
            ControllerName::Resources => self.start(schedule, manager, resources::pass),
            ControllerName::Signing => self.start(schedule, manager, signing::pass),
            ControllerName::Node => self.start(schedule, manager, nodes::pass),
            ControllerName::Machine => self.start(schedule, manager, endpoint_slices::pass),
            ControllerName::Hcpstatus => self.start(schedule, manager, status::pass),
            ControllerName::Spotremediation => self.start(schedule, manager, spot::pass),
            ControllerName::Inplaceupgrader => self.start(schedule, manager, in_place::pass),
            ControllerName::Cleanup => self.start(schedule, manager, cleanup::pass),
            ControllerName::ControllerManagerCa => {
                self.start(schedule, manager, service_authorities::pass)
            }
            ControllerName::WebhookValidation => {
                self.start(schedule, manager, webhook_validation::pass)
            }
            ControllerName::Recovery => self.start(schedule, manager, recovery::pass),
            ControllerName::Reencryption => self.start(schedule, manager, reencryption::pass),
        }
    }

    fn start<'a, F>(
        &'a self,
        schedule: Schedule<'a>,
        manager: &'a Manager,
        pass: impl Fn(&'a Self) -> F + 'a,
    ) -> LocalBoxFuture<'a, ()>
    where
        F: Future<Output = Result<(), Error>> + 'a,
    {
        let pass = move || pass(self);
        Box::pin(run_controller(schedule, manager, &self.subject, pass))
    }

    /// Returns the HostedControlPlane if its release is this operator's.
    pub(super) async fn control_plane(&self) -> Result<Option<Arc<DynamicObject>>, Error> {
        let found = self.any_control_plane().await?;
        Ok(found.filter(|it| is_of_release(it, self.release.as_deref())))
    }

    /// Returns the HostedControlPlane of any release. During an upgrade, the old program continues to report status.
    pub(super) async fn any_control_plane(&self) -> Result<Option<Arc<DynamicObject>>, Error> {
        wait_until_synced(&self.control_planes, "the HostedControlPlane").await?;
        let found = self
            .control_planes
            .find(|it| it.name_any() == self.subject.name);
        Ok(found)
    }

    /// API client for writes.
    pub(super) fn control_planes(&self) -> Api<DynamicObject> {
        let resource = control_plane::resource();
        Api::namespaced_with(self.management.clone(), &self.namespace, &resource)
    }

    pub(super) async fn nodes(&self) -> Result<Vec<Arc<Node>>, Error> {
        wait_until_synced(&self.nodes, "Nodes").await?;
        Ok(self.nodes.state())
    }

    pub(super) async fn requests(&self) -> Result<Vec<Arc<CertificateSigningRequest>>, Error> {
        wait_until_synced(&self.requests, "CertificateSigningRequests").await?;
        Ok(self.requests.state())
    }

    /// The Deployment of the API servers.
    pub(super) async fn api_servers(&self) -> Result<Option<Arc<Deployment>>, Error> {
        wait_until_synced(&self.api_servers, "Deployments").await?;
        Ok(self.api_servers.state().pop())
    }

    pub(super) async fn validating_webhooks(
        &self,
    ) -> Result<Vec<Arc<ValidatingWebhookConfiguration>>, Error> {
        wait_until_synced(&self.validating, "ValidatingWebhookConfigurations").await?;
        Ok(self.validating.state())
    }

    pub(super) async fn mutating_webhooks(
        &self,
    ) -> Result<Vec<Arc<MutatingWebhookConfiguration>>, Error> {
        wait_until_synced(&self.mutating, "MutatingWebhookConfigurations").await?;
        Ok(self.mutating.state())
    }

    /// The ConfigMaps with authorities of the hosted cluster that exist.
    pub(super) async fn authorities(&self) -> Result<Vec<Arc<ConfigMap>>, Error> {
        for store in &self.config_maps {
            wait_until_synced(store, "ConfigMaps with authorities").await?;
        }
        Ok(self.config_maps.iter().flat_map(Store::state).collect())
    }

    /// API client for writes.
    pub(super) fn machine_set_api(&self) -> Api<DynamicObject> {
        Api::namespaced_with(self.management.clone(), &self.namespace, &self.machine_set)
    }

    pub(super) async fn machine_sets(&self) -> Result<Vec<Arc<DynamicObject>>, Error> {
        if !self.has_machines {
            return Ok(Vec::new());
        }
        wait_until_synced(&self.machine_sets, "MachineSets").await?;
        Ok(self.machine_sets.state())
    }

    pub(super) async fn machines(&self) -> Result<Vec<Machine>, Error> {
        if !self.has_machines {
            return Ok(Vec::new());
        }
        wait_until_synced(&self.machines, "Machines").await?;
        let machines = self.machines.state();
        Ok(machines
            .iter()
            .map(|machine| Machine::read(machine))
            .collect())
    }
}

/// Whether Machines can exist. Without Cluster API on the management cluster, they are not watched.
async fn may_have_machines(
    platform: &str,
    management: &kube::Client,
    machine: &kube::api::ApiResource,
) -> bool {
    match platform {
        IBM_CLOUD => false,
        PLATFORM_NONE => {
            let served = management.list_api_group_resources(&machine.api_version);
            !matches!(served.await, Err(error) if is_missing(&error))
        }
        _ => true,
    }
}

/// Whether a HostedControlPlane has this operator's release, if it is known.
fn is_of_release(found: &DynamicObject, release: Option<&str>) -> bool {
    let image = found.data["spec"]["releaseImage"].as_str();
    release.is_none_or(|release| image == Some(release))
}

/// Waits for the initial list: decisions on a partial cache would be wrong.
pub(super) async fn wait_until_synced<K>(store: &Store<K>, what: &str) -> Result<(), Error>
where
    K: 'static + Lookup + Clone,
    K::DynamicType: Eq + Hash + Clone,
{
    let full = tokio::time::timeout(Duration::from_secs(1), store.wait_until_ready()).await;
    match full {
        Ok(Ok(())) => Ok(()),
        _ => Err(Error::waiting(format!("the initial list of {what}"))),
    }
}

#[cfg(test)]
pub(super) mod testing;

#[cfg(test)]
mod tests;
