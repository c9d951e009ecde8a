//! One hosted cluster whose two operators run as processes: control planes come up as far as their pods are simulated.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::{
    ControlPlaneOperator, Launched, Releases, Simulation, desired_with_all, install_kinds,
};
use crate::audit::{Event, Mark};
use crate::client::Resource;
use crate::conditions::{is_true, untrue};
use crate::operator::{Identity, Operator, Replica, SOON, Server, Times};
use crate::service_account::ensure_namespace;
use crate::testbed::Testbed;
use crate::wait;

/// The namespace of the HostedCluster.
const NAMESPACE: &str = "clusters";
/// Its name.
const NAME: &str = "example";
/// The namespace of its control plane.
const CONTROL_PLANE: &str = "clusters-example";
const HYPERSHIFT: &str = "hypershift.openshift.io/v1beta1";
const CONTROL_PLANES: Resource<'_> = Resource::new(HYPERSHIFT, "hostedcontrolplanes");
const COMPONENTS: Resource<'_> = Resource::new(HYPERSHIFT, "controlplanecomponents");
/// The controllers of kube-controller-manager that take part; [`Simulation`] replaces those that make pods.
const CONTROLLERS: &str = "garbage-collector-controller,namespace-controller,serviceaccount-controller,root-ca-certificate-publisher-controller";
/// How long no write must have come from the operators until they are idle.
const QUIESCENCE_PERIOD: Duration = Duration::from_secs(5);
/// How long the control plane may take to come up.
const TIMEOUT: Duration = Duration::from_mins(5);

/// The programs of the operators.
#[derive(Debug, Clone)]
pub struct Programs {
    /// hypershift-operator.
    pub hypershift: PathBuf,
    /// control-plane-operator.
    pub control_plane: PathBuf,
}

/// A hosted cluster with its operators, which end when it is dropped.
#[derive(Debug)]
pub struct SimulatedCluster<'a> {
    testbed: &'a Testbed,
    identity: Identity,
    control_plane: ControlPlaneOperator,
    _replica: Replica,
    launched: Option<Launched>,
    _simulation: Simulation,
    _releases: Releases,
    started: usize,
}

// === impl SimulatedCluster ===

impl<'a> SimulatedCluster<'a> {
    /// Creates a HostedCluster on AWS with everything that has components of its own, and waits until all components of its control plane are rolled out.
    pub async fn start(testbed: &'a mut Testbed, programs: &Programs) -> Result<Self> {
        install_kinds(testbed).await?;
        let manager = &mut testbed.control_plane.controller_manager;
        manager.add_flag("controllers", CONTROLLERS);
        testbed.start_controller_manager().await?;
        let testbed: &'a Testbed = testbed;
        ensure_namespace(&testbed.admin, NAMESPACE).await?;
        let releases = Releases::start(testbed).await?;
        let release = releases.push("4.22.0").await?;
        let identity = Identity::create(testbed, Operator::Private, &programs.hypershift)
            .await?
            .with_flag("insecure-registries", releases.address())
            .with_flag("capi-proxy-image", "images.example.com/capi-proxy:v1");
        let mut replica = identity.replica(testbed, "operator-1")?;
        replica.service.start().await?;
        wait::until("hypershift-operator to be ready", SOON, async || {
            replica.is_ready().await
        })
        .await?;
        let mut cluster = Self {
            _simulation: Simulation::start(&testbed.admin),
            identity,
            control_plane: ControlPlaneOperator {
                namespace: CONTROL_PLANE.to_owned(),
                program: programs.control_plane.clone(),
            },
            _replica: replica,
            launched: None,
            _releases: releases,
            started: 0,
            testbed,
        };
        testbed
            .admin
            .apply(&desired_with_all(NAME, &release)?)
            .await?;
        cluster.comes_up().await?;
        Ok(cluster)
    }

    async fn comes_up(&mut self) -> Result<()> {
        let mut last = Err(anyhow::anyhow!("nothing was read"));
        let begun = std::time::Instant::now();
        while begun.elapsed() < TIMEOUT {
            self.follow().await?;
            last = self.is_rolled_out().await.map(drop);
            if last.is_ok() {
                return self.wait_until_idle().await;
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
        last.context("the control plane does not come up")
    }

    /// Starts the control-plane-operator as its Deployment says, and again if that changes.
    async fn follow(&mut self) -> Result<()> {
        let expected = self.control_plane.expected_env(&self.testbed.admin).await?;
        let running = self.launched.as_ref().map(|it| &it.environment);
        if expected.as_ref() == running {
            return Ok(());
        }
        self.launched = None;
        let Some(environment) = expected else {
            return Ok(());
        };
        let endpoint = self.testbed.control_plane.endpoint();
        let server = Server {
            url: &endpoint.server,
            authority: Some(&endpoint.authority),
        };
        self.started += 1;
        let pod = format!("control-plane-operator-{}", self.started);
        let started = self
            .control_plane
            .start(self.testbed, &pod, environment, server, Times::PATIENT)
            .await;
        // Its service account is made before its Deployment; a failure is tried again.
        self.launched = started.ok();
        Ok(())
    }

    /// The components, if the control plane is available and all of them are rolled out.
    pub async fn is_rolled_out(&self) -> Result<Vec<Value>> {
        let admin = &self.testbed.admin;
        let control_plane = admin
            .get(&CONTROL_PLANES.named(CONTROL_PLANE, NAME))
            .await?;
        ensure!(
            is_true(&control_plane, "Available"),
            "the control plane: {}",
            untrue(&control_plane)
        );
        let components = admin.list(&COMPONENTS.within(CONTROL_PLANE)).await?;
        ensure!(!components.is_empty(), "there are no components");
        for component in &components {
            let name = &component["metadata"]["name"];
            let done = is_true(component, "RolloutComplete");
            ensure!(done, "{name}: {}", untrue(component));
        }
        Ok(components)
    }

    /// Waits until neither operator has written for a while.
    pub async fn wait_until_idle(&self) -> Result<()> {
        wait::until("the operators to be idle", TIMEOUT, async || {
            let mark = self.testbed.control_plane.audit.mark()?;
            tokio::time::sleep(QUIESCENCE_PERIOD).await;
            let written = self.requests(mark)?.into_iter().find(Event::is_write);
            ensure!(
                written.is_none(),
                "{}",
                written.map_or_else(String::new, |it| it.summary())
            );
            Ok(())
        })
        .await
    }

    /// The requests of the control-plane-operator and of hypershift-operator since the mark, but of their Leases.
    fn requests(&self, mark: Mark) -> Result<Vec<Event>> {
        let users = [self.username(), self.identity.username()];
        let mut events = self.testbed.control_plane.audit.since(mark)?;
        events.retain(|event| users.contains(&event.user.username) && !is_idle(event));
        Ok(events)
    }

    /// The requests of the control-plane-operator since the mark, but watches and those of its Lease.
    pub fn own_requests(&self, mark: Mark) -> Result<Vec<Event>> {
        let mut events = self.requests(mark)?;
        events.retain(|event| event.user.username == self.username());
        Ok(events)
    }

    /// The requests of the control-plane-operator for its Lease since the mark.
    pub fn lease_requests(&self, mark: Mark) -> Result<Vec<Event>> {
        let mut events = self.testbed.control_plane.audit.since(mark)?;
        let own = self.username();
        events.retain(|event| event.user.username == own && is_of_lease(event));
        Ok(events)
    }

    /// A mark at the present end of the audit log.
    pub fn mark(&self) -> Result<Mark> {
        self.testbed.control_plane.audit.mark()
    }

    /// Where the kubeconfigs and logs are.
    pub fn testbed(&self) -> &'a Testbed {
        self.testbed
    }

    /// The process of the control-plane-operator.
    pub fn pid(&self) -> Result<u32> {
        let launched = self.launched.as_ref();
        let pid = launched.and_then(|it| it.service.pid());
        pid.context("the control-plane-operator does not run")
    }

    fn username(&self) -> String {
        self.control_plane.username()
    }
}

/// A request that each program makes all the time: watches, which stay open, and those of its Lease.
fn is_idle(event: &Event) -> bool {
    event.verb == "watch" || is_of_lease(event)
}

fn is_of_lease(event: &Event) -> bool {
    event.object_ref.resource == "leases"
}
