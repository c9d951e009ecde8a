//! A term of leadership: all controllers, and the watches that trigger them.

use std::sync::Arc;

use api::hypershift::v1beta1::HostedControlPlane;
use futures::future::{LocalBoxFuture, join_all};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use k8s_openapi::api::core::v1::{Node, Secret};
use kube::Api;
use kube::api::{ApiResource, DynamicObject};
use kube::core::PartialObjectMeta;
use kube::runtime::watcher::Config;
use support::controller::{Action, Manager, Wake};
use support::health::Health;
use support::shutdown::Drain;

use super::context::Context;
use super::error::Error;
use super::loops::{Subject, run_controller, run_watch};
use super::{Process, approver, ignition, karpenter, kinds, node_class, status};
use crate::watches::{self, Lenient};

type Work<'a> = Vec<LocalBoxFuture<'a, ()>>;

/// What triggers each controller.
struct Wakes {
    karpenter: Wake,
    ignition: Wake,
    node_class: Wake,
    approver: Wake,
    status: Wake,
}

/// What is needed to run a controller.
struct Starter<'a> {
    ctx: &'a Context,
    subject: &'a Subject,
    manager: &'a Manager,
    drain: Drain,
}

/// Runs all controllers.
pub(super) async fn run(ctx: &Context, subject: &Subject, process: &Process, drain: Drain) {
    let wakes = Wakes {
        karpenter: Wake::new(),
        ignition: Wake::new(),
        node_class: Wake::new(),
        approver: Wake::new(),
        status: Wake::new(),
    };
    let starter = Starter {
        ctx,
        subject,
        manager: &process.manager,
        drain,
    };
    let mut work: Work<'_> = vec![
        starter.start("karpenter", &wakes.karpenter, karpenter::pass),
        starter.start("karpenterignition", &wakes.ignition, ignition::pass),
        starter.start("nodeclass", &wakes.node_class, node_class::pass),
        starter.start("machine-approver", &wakes.approver, approver::pass),
        starter.start("status", &wakes.status, status::pass),
    ];
    work.extend(watches_here(ctx, &wakes, &process.health));
    work.extend(watches_there(ctx, &wakes, &process.health));
    join_all(work).await;
}

/// Watches of the control plane.
fn watches_here(ctx: &Context, wakes: &Wakes, health: &Arc<Health>) -> Work<'static> {
    let watch = |kind: &ApiResource, config: Config, wakes: &[&Wake], check: &'static str| {
        let api = Api::namespaced_with(ctx.management.clone(), &ctx.namespace, kind);
        start_watch(api, config, wakes, health, check)
    };
    let own = watches::config().fields(&format!("metadata.name={}", ctx.name));
    vec![
        watch(
            &kind::<HostedControlPlane>(),
            own,
            &wakes.all(),
            "control-plane",
        ),
        watch(
            &kind::<Deployment>(),
            watches::config(),
            &[&wakes.karpenter],
            "deployments",
        ),
        watch(
            &kind::<Secret>(),
            watches::config(),
            &wakes.of_inputs(),
            "secrets",
        ),
        watch(
            &kinds::config_map(),
            watches::config(),
            &wakes.of_inputs(),
            "config-maps",
        ),
        watch(
            &ctx.capi.cluster(),
            watches::config(),
            &[&wakes.karpenter],
            "cluster",
        ),
    ]
}

/// Watches of the hosted cluster.
fn watches_there(ctx: &Context, wakes: &Wakes, health: &Arc<Health>) -> Work<'static> {
    let nodes = [&wakes.approver, &wakes.status];
    let watched = [
        (kinds::node_class(), wakes.of_inputs().to_vec(), "classes"),
        (
            kinds::ec2_node_class(),
            vec![&wakes.node_class],
            "ec2-node-classes",
        ),
        (kinds::node_claim(), nodes.to_vec(), "node-claims"),
        (kind::<Node>(), nodes.to_vec(), "nodes"),
        (
            kind::<CertificateSigningRequest>(),
            vec![&wakes.approver],
            "requests",
        ),
    ];
    let start = |(kind, wakes, check): (ApiResource, Vec<&Wake>, &'static str)| {
        let api = Api::all_with(ctx.guest.clone(), &kind);
        start_watch(api, watches::config(), &wakes, health, check)
    };
    watched.into_iter().map(start).collect()
}

fn start_watch(
    api: Api<Lenient<PartialObjectMeta<DynamicObject>>>,
    config: Config,
    wakes: &[&Wake],
    health: &Arc<Health>,
    check: &'static str,
) -> LocalBoxFuture<'static, ()> {
    let wakes = wakes.iter().map(|it| (*it).clone()).collect();
    let check = health.check(check, "it is not watched yet");
    run_watch(api, config, wakes, check)
}

fn kind<K: kube::Resource<DynamicType = ()>>() -> ApiResource {
    ApiResource::erase::<K>(&())
}

// === impl Starter ===

impl<'a> Starter<'a> {
    fn start<F>(
        &self,
        name: &'static str,
        wake: &'a Wake,
        pass: impl Fn(&'a Context) -> F + 'a,
    ) -> LocalBoxFuture<'a, ()>
    where
        F: Future<Output = Result<Action, Error>> + 'a,
    {
        let (ctx, drain) = (self.ctx, self.drain.clone());
        let pass = move || pass(ctx);
        Box::pin(run_controller(
            name,
            wake,
            self.manager,
            self.subject,
            drain,
            pass,
        ))
    }
}

// === impl Wakes ===

impl Wakes {
    fn all(&self) -> [&Wake; 5] {
        // Without `..`, so that none is forgotten.
        let Self {
            karpenter,
            ignition,
            node_class,
            approver,
            status,
        } = self;
        [karpenter, ignition, node_class, approver, status]
    }

    /// Those that read Secrets, ConfigMaps and classes.
    fn of_inputs(&self) -> [&Wake; 3] {
        [&self.karpenter, &self.ignition, &self.node_class]
    }
}
