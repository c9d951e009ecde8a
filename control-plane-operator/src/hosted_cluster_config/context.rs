//! What all passes have: clients of both clusters, and caches of what they look at.

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
use serde::de::DeserializeOwned;
use support::apply::Applier;
use support::controller::Manager;
use support::error::chain;
use support::health::{Check, Health};
use support::reconcile::{Backoff, is_missing};
use support::watch::watch_failed;

use super::drive::{Subject, Wake, drive};
use super::error::Error;
use super::machines::{self, Machine};
use super::{
    Args, NodeClients, Part, cleanup, control_plane, in_place, nodes, resources, signing, spot,
    status,
};
use crate::settings::CapiTypes;
use crate::tool;

/// Who writes into the hosted cluster, as its API server keeps it.
const MANAGER: &str = "hosted-cluster-config-operator";
/// The platform that never has Machines.
const WITHOUT_MACHINES: &str = "IBMCloud";
/// The one that a control plane has whose machines Cluster API knows nothing of, or an Agent service has found.
const PERHAPS_MACHINES: &str = "None";
/// How often a pass runs without a change.
const PERIOD: Duration = Duration::from_mins(1);

/// What all passes have.
pub(super) struct Context {
    pub(super) management: kube::Client,
    pub(super) guest: kube::Client,
    /// Writes into the hosted cluster.
    pub(super) applier: Applier,
    pub(super) namespace: String,
    pub(super) node_clients: NodeClients,
    pub(super) signer_ca: Option<PathBuf>,
    /// Image of the daemon that upgrades nodes where they are.
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

/// The writing ends of the caches.
struct Caches {
    control_planes: Writer<DynamicObject>,
    machines: Writer<DynamicObject>,
    machine_sets: Writer<DynamicObject>,
    nodes: Writer<Node>,
    requests: Writer<CertificateSigningRequest>,
}

// === impl Context ===

impl Context {
    /// Runs all passes for as long as the process leads.
    pub(super) async fn run(
        args: &Args,
        management: kube::Client,
        guest: kube::Client,
        health: &Arc<Health>,
        manager: &Manager,
    ) {
        let (ctx, caches) = Self::new(args, management, guest).await;
        let (hcp_wake, wake) = (Wake::new(), Wake::new());
        let mut work = ctx.watches(caches, &hcp_wake, &wake, health);
        for part in &args.controllers {
            work.push(ctx.part(*part, manager, &hcp_wake, &wake));
        }
        futures::future::join_all(work).await;
    }

    async fn new(args: &Args, management: kube::Client, guest: kube::Client) -> (Self, Caches) {
        let side = match args.capi_types {
            CapiTypes::Private => api::group::Side::Private,
            CapiTypes::Standard => api::group::Side::Standard,
        };
        let (machine, machine_set) = (machines::resource(side), machines::set_resource(side));
        let caches = Caches {
            control_planes: Writer::new(control_plane::resource()),
            machines: Writer::new(machine.clone()),
            machine_sets: Writer::new(machine_set.clone()),
            nodes: Writer::default(),
            requests: Writer::default(),
        };
        let ctx = Self {
            applier: Applier::new(guest.clone(), MANAGER),
            namespace: args.namespace.clone(),
            node_clients: args.node_clients,
            signer_ca: args.cluster_signer_ca_file.clone(),
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

    /// Keeps the caches, and wakes the passes that look at them.
    fn watches(
        &self,
        caches: Caches,
        hcp: &Wake,
        fleet: &Wake,
        health: &Arc<Health>,
    ) -> Vec<LocalBoxFuture<'_, ()>> {
        let check = |name, text| health.check(name, text);
        let wakes = || vec![fleet.clone()];
        let mut work: Vec<LocalBoxFuture<'_, ()>> = vec![
            Box::pin(keep(
                self.in_namespace(&control_plane::resource()),
                caches.control_planes,
                vec![hcp.clone(), fleet.clone()],
                check("control-plane", "the HostedControlPlane is not watched yet"),
            )),
            Box::pin(keep(
                Api::all(self.guest.clone()),
                caches.nodes,
                wakes(),
                check("nodes", "Nodes are not watched yet"),
            )),
            Box::pin(keep(
                Api::all(self.guest.clone()),
                caches.requests,
                wakes(),
                check("requests", "CertificateSigningRequests are not watched yet"),
            )),
        ];
        if self.has_machines {
            work.push(Box::pin(keep(
                self.in_namespace(&self.machine),
                caches.machines,
                wakes(),
                check("machines", "Machines are not watched yet"),
            )));
            work.push(Box::pin(keep(
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

    fn part<'a>(
        &'a self,
        part: Part,
        manager: &'a Manager,
        hcp: &'a Wake,
        fleet: &'a Wake,
    ) -> LocalBoxFuture<'a, ()> {
        let subject = &self.subject;
        match part {
            Part::Resources => {
                let pass = || resources::pass(self);
                Box::pin(drive("resources", manager, hcp, PERIOD, subject, pass))
            }
            Part::Signing => {
                let pass = || signing::pass(self);
                Box::pin(drive("signing", manager, fleet, PERIOD, subject, pass))
            }
            Part::Node => {
                let pass = || nodes::pass(self);
                Box::pin(drive("node", manager, fleet, PERIOD, subject, pass))
            }
            Part::Hcpstatus => {
                let pass = || status::pass(self);
                Box::pin(drive("hcpstatus", manager, fleet, PERIOD, subject, pass))
            }
            Part::Spotremediation => {
                let (name, pass) = ("spotremediation", || spot::pass(self));
                Box::pin(drive(name, manager, fleet, PERIOD, subject, pass))
            }
            Part::Inplaceupgrader => {
                let (name, pass) = ("inplaceupgrader", || in_place::pass(self));
                let period = in_place::PERIOD;
                Box::pin(drive(name, manager, fleet, period, subject, pass))
            }
            Part::Cleanup => {
                let pass = || cleanup::pass(self);
                let period = cleanup::PERIOD;
                Box::pin(drive("cleanup", manager, hcp, period, subject, pass))
            }
        }
    }

    /// The HostedControlPlane, if it is this program's to act on.
    pub(super) async fn control_plane(&self) -> Result<Option<Arc<DynamicObject>>, Error> {
        let found = self.any_control_plane().await?;
        Ok(found.filter(|it| is_of(it, self.release.as_deref())))
    }

    /// The HostedControlPlane of any release. During an upgrade the running program goes on reporting its status.
    pub(super) async fn any_control_plane(&self) -> Result<Option<Arc<DynamicObject>>, Error> {
        ready(&self.control_planes, "the HostedControlPlane").await?;
        let found = self
            .control_planes
            .find(|it| it.name_any() == self.subject.name);
        Ok(found)
    }

    /// The kind, to write to.
    pub(super) fn control_planes(&self) -> Api<DynamicObject> {
        let resource = control_plane::resource();
        Api::namespaced_with(self.management.clone(), &self.namespace, &resource)
    }

    pub(super) async fn nodes(&self) -> Result<Vec<Arc<Node>>, Error> {
        ready(&self.nodes, "Nodes").await?;
        Ok(self.nodes.state())
    }

    pub(super) async fn requests(&self) -> Result<Vec<Arc<CertificateSigningRequest>>, Error> {
        ready(&self.requests, "CertificateSigningRequests").await?;
        Ok(self.requests.state())
    }

    /// The kind, to write to.
    pub(super) fn machine_set_api(&self) -> Api<DynamicObject> {
        Api::namespaced_with(self.management.clone(), &self.namespace, &self.machine_set)
    }

    pub(super) async fn machine_sets(&self) -> Result<Vec<Arc<DynamicObject>>, Error> {
        if !self.has_machines {
            return Ok(Vec::new());
        }
        ready(&self.machine_sets, "MachineSets").await?;
        Ok(self.machine_sets.state())
    }

    pub(super) async fn machines(&self) -> Result<Vec<Machine>, Error> {
        if !self.has_machines {
            return Ok(Vec::new());
        }
        ready(&self.machines, "Machines").await?;
        let machines = self.machines.state();
        Ok(machines
            .iter()
            .map(|machine| Machine::read(machine))
            .collect())
    }
}

/// Whether there may be Machines. Without Cluster API on the management cluster there is nothing to look at.
async fn may_have_machines(
    platform: &str,
    management: &kube::Client,
    machine: &kube::api::ApiResource,
) -> bool {
    match platform {
        WITHOUT_MACHINES => false,
        PERHAPS_MACHINES => {
            let served = management.list_api_group_resources(&machine.api_version);
            !matches!(served.await, Err(error) if is_missing(&error))
        }
        _ => true,
    }
}

/// Whether a HostedControlPlane is of the release that this program is part of, where that is known.
fn is_of(found: &DynamicObject, release: Option<&str>) -> bool {
    let image = found.data["spec"]["releaseImage"].as_str();
    release.is_none_or(|release| image == Some(release))
}

/// A cache that is not full yet is no truth.
async fn ready<K>(store: &Store<K>, what: &str) -> Result<(), Error>
where
    K: 'static + Lookup + Clone,
    K::DynamicType: Eq + Hash + Clone,
{
    let full = tokio::time::timeout(Duration::from_secs(1), store.wait_until_ready()).await;
    match full {
        Ok(Ok(())) => Ok(()),
        _ => Err(Error::waiting(format!("a first list of {what}"))),
    }
}

/// Keeps a cache, and says when it changes.
async fn keep<K>(api: Api<K>, writer: Writer<K>, wakes: Vec<Wake>, check: Check)
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

    /// Machines of an Agent service are Cluster API's, although the control plane says that it has no platform.
    #[tokio::test]
    async fn machines_are_looked_for_wherever_there_may_be_some() {
        let machine = machines::resource(api::group::Side::Private);
        let path = format!("/apis/{}", machine.api_version);
        let list = json!({ "groupVersion": machine.api_version, "resources": [] });
        for (platform, answer, expected) in [
            ("AWS", None, true),
            ("IBMCloud", None, false),
            ("None", Some(Answer::ok(&list)), true),
            ("None", Some(Answer::error(404, "NotFound")), false),
        ] {
            let asked = answer.map(|answer| Expect::get(&path).answer(answer));
            let scenario = Scenario::new(asked);
            let found = may_have_machines(platform, &scenario.client(), &machine).await;
            assert_eq!(found, expected, "{platform}");
            scenario.finish();
        }
    }

    #[test]
    fn a_control_plane_of_another_release_is_left_alone() {
        let found = json!({ "metadata": { "name": "a" }, "spec": { "releaseImage": "new" } });
        let found: DynamicObject = serde_json::from_value(found).unwrap();
        for (release, expected) in [(Some("new"), true), (Some("old"), false), (None, true)] {
            assert_eq!(is_of(&found, release), expected, "{release:?}");
        }
    }
}
