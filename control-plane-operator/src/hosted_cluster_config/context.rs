//! The context of all controllers: clients of both clusters, and caches.

use std::fmt::Debug;
use std::hash::Hash;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use futures::future::LocalBoxFuture;
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use k8s_openapi::api::core::v1::Node;
use kube::api::DynamicObject;
use kube::runtime::reflector::store::Writer;
use kube::runtime::reflector::{Lookup, Store};
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, ResourceExt as _};
use payload::Releases;
use serde::de::DeserializeOwned;
use support::apply::Applier;
use support::controller::Manager;
use support::error::chain;
use support::health::{Check, Health};
use support::reconcile::{Backoff, is_missing};
use support::watch::watch_failed;

use super::controller::{Schedule, Subject, Wake, run_controller};
use super::error::Error;
use super::machines::{self, Machine};
use super::{
    Args, ControllerName, NodeClients, cleanup, control_plane, in_place, nodes, resources, signing,
    spot, status,
};
use crate::tool;

/// Field manager in the hosted cluster.
const MANAGER: &str = "hosted-cluster-config-operator";
/// A platform without Machines.
const IBM_CLOUD: &str = "IBMCloud";
/// The platform of control planes with machines outside of Cluster API, or with Agents.
const PLATFORM_NONE: &str = "None";
/// Resync period.
const PERIOD: Duration = Duration::from_mins(1);

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
    /// Image of the machine-config-daemon for in-place upgrades.
    pub(super) daemon_image: Option<String>,
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
}

/// The writers of the caches.
struct Caches {
    control_planes: Writer<DynamicObject>,
    machines: Writer<DynamicObject>,
    machine_sets: Writer<DynamicObject>,
    nodes: Writer<Node>,
    requests: Writer<CertificateSigningRequest>,
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
}

// === impl Context ===

impl Context {
    /// Runs all controllers while the process is the leader.
    pub(super) async fn run(
        args: &Args,
        management: kube::Client,
        guest: kube::Client,
        releases: Releases,
        health: &Arc<Health>,
        manager: &Manager,
    ) {
        let (ctx, mut caches) = Self::new(args, management, guest, releases).await;
        let wakes = Wakes {
            hcp: Wake::new(),
            cluster: Wake::new(),
            resources: Wake::new(),
        };
        let mut work = Vec::new();
        if args.controllers.contains(&ControllerName::Resources) {
            let wake = &wakes.resources;
            let sources = std::mem::take(&mut caches.sources);
            work.extend(sources.watches(&ctx.management, &ctx.namespace, wake, health));
            work.extend(ctx.resources.cache.watches(wake));
        }
        work.extend(ctx.watches(caches, &wakes, health));
        for controller in &args.controllers {
            work.push(ctx.controller(*controller, manager, &wakes));
        }
        futures::future::join_all(work).await;
    }

    async fn new(
        args: &Args,
        management: kube::Client,
        guest: kube::Client,
        releases: Releases,
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
            sources: source_writers,
        };
        let ctx = Self {
            applier: Applier::new(guest.clone(), MANAGER),
            namespace: args.namespace.clone(),
            node_clients: args.node_clients,
            initial_ca: args.initial_ca_file.clone(),
            signer_ca: args.cluster_signer_ca_file.clone(),
            resources: resources::Resources::new(args, &guest, sources, releases, MANAGER),
            daemon_image: args.machine_config_daemon_image.clone(),
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
            management,
            guest,
        };
        (ctx, caches)
    }

    /// Updates the caches, and triggers the controllers that read them.
    fn watches(
        &self,
        caches: Caches,
        wakes: &Wakes,
        health: &Arc<Health>,
    ) -> Vec<LocalBoxFuture<'_, ()>> {
        let check = |name, text| health.check(name, text);
        let hcp = vec![
            wakes.hcp.clone(),
            wakes.cluster.clone(),
            wakes.resources.clone(),
        ];
        let wakes = || vec![wakes.cluster.clone()];
        let mut work: Vec<LocalBoxFuture<'_, ()>> = vec![
            Box::pin(run_watch(
                self.in_namespace(&control_plane::resource()),
                caches.control_planes,
                hcp,
                check("control-plane", "the HostedControlPlane is not watched yet"),
            )),
            Box::pin(run_watch(
                Api::all(self.guest.clone()),
                caches.nodes,
                wakes(),
                check("nodes", "Nodes are not watched yet"),
            )),
            Box::pin(run_watch(
                Api::all(self.guest.clone()),
                caches.requests,
                wakes(),
                check("requests", "CertificateSigningRequests are not watched yet"),
            )),
        ];
        if self.has_machines {
            work.push(Box::pin(run_watch(
                self.in_namespace(&self.machine),
                caches.machines,
                wakes(),
                check("machines", "Machines are not watched yet"),
            )));
            work.push(Box::pin(run_watch(
                self.in_namespace(&self.machine_set),
                caches.machine_sets,
                wakes(),
                check("machine-sets", "MachineSets are not watched yet"),
            )));
        }
        work
    }

    fn in_namespace(&self, resource: &kube::api::ApiResource) -> Api<DynamicObject> {
        Api::namespaced_with(self.management.clone(), &self.namespace, resource)
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
            ControllerName::Hcpstatus => ("hcpstatus", cluster, PERIOD),
            ControllerName::Spotremediation => ("spotremediation", cluster, PERIOD),
            ControllerName::Inplaceupgrader => ("inplaceupgrader", cluster, in_place::PERIOD),
            ControllerName::Cleanup => ("cleanup", hcp, cleanup::PERIOD),
        };
        let schedule = Schedule { name, wake, period };
        let subject = &self.subject;
        match controller {
            ControllerName::Resources => {
                let pass = || resources::pass(self);
                Box::pin(run_controller(schedule, manager, subject, pass))
            }
            ControllerName::Signing => {
                let pass = || signing::pass(self);
                Box::pin(run_controller(schedule, manager, subject, pass))
            }
            ControllerName::Node => {
                let pass = || nodes::pass(self);
                Box::pin(run_controller(schedule, manager, subject, pass))
            }
            ControllerName::Hcpstatus => {
                let pass = || status::pass(self);
                Box::pin(run_controller(schedule, manager, subject, pass))
            }
            ControllerName::Spotremediation => {
                let pass = || spot::pass(self);
                Box::pin(run_controller(schedule, manager, subject, pass))
            }
            ControllerName::Inplaceupgrader => {
                let pass = || in_place::pass(self);
                Box::pin(run_controller(schedule, manager, subject, pass))
            }
            ControllerName::Cleanup => {
                let pass = || cleanup::pass(self);
                Box::pin(run_controller(schedule, manager, subject, pass))
            }
        }
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

/// Updates a cache from a watch, and triggers controllers on changes.
pub(super) async fn run_watch<K>(api: Api<K>, writer: Writer<K>, wakes: Vec<Wake>, check: Check)
where
    K: kube::Resource + Clone + DeserializeOwned + Debug + Send + Sync + 'static,
    K::DynamicType: Eq + Hash + Clone + Unpin,
{
    let events = watcher(api, watcher::Config::default())
        .backoff(Backoff::default())
        .modify(|found| found.meta_mut().managed_fields = None)
        .reflect(writer);
    let mut events = std::pin::pin!(events);
    while let Some(event) = events.next().await {
        match event {
            Ok(_) => {
                check.pass();
                wakes.iter().for_each(Wake::wake);
            }
            Err(error) if watch_failed(&error) => check.fail(chain(&error)),
            Err(error) => tracing::debug!(problem = chain(&error), "Watch failed"),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use support::testing::{Answer, Expect, Scenario};

    use super::*;

    /// Agent clusters have Machines, although their control plane has platform None.
    #[tokio::test]
    async fn machines_are_watched_where_they_can_exist() {
        let machine = machines::resource(api::group::CapiTypes::Private);
        let path = format!("/apis/{}", machine.api_version);
        let list = json!({ "groupVersion": machine.api_version, "resources": [] });
        for (platform, answer, expected) in [
            ("AWS", None, true),
            ("IBMCloud", None, false),
            ("None", Some(Answer::ok(&list)), true),
            ("None", Some(Answer::error(404, "NotFound")), false),
        ] {
            let requested = answer.map(|answer| Expect::get(&path).answer(answer));
            let scenario = Scenario::new(requested);
            let found = may_have_machines(platform, &scenario.client(), &machine).await;
            assert_eq!(found, expected, "{platform}");
            scenario.finish();
        }
    }

    #[test]
    fn control_planes_of_other_releases_are_skipped() {
        let found = json!({ "metadata": { "name": "a" }, "spec": { "releaseImage": "new" } });
        let found: DynamicObject = serde_json::from_value(found).unwrap();
        for (release, expected) in [(Some("new"), true), (Some("old"), false), (None, true)] {
            assert_eq!(is_of_release(&found, release), expected, "{release:?}");
        }
    }
}
