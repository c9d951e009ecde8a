//! The operators that run, each behind a relay of its own. One that is killed is followed by another.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use http::request::Parts;
use testbed::operator::{Identity, Replica, Server, Times};
use testbed::relay::{Moment, Relay};
use testbed::simulation::{ControlPlaneOperator, Launched};

use crate::hosted_clusters_faults::fault_points::Who;
use crate::hosted_clusters_faults::fixture::{Fixture, Programs};

/// hypershift-operator's way to the API server ends with it.
struct Hypershift {
    replica: Replica,
    _relay: Relay,
}

struct ControlPlane {
    launched: Launched,
    _relay: Relay,
}

/// Both operators of an installation.
pub(crate) struct Replicas<'a> {
    fixture: &'a Fixture<'a>,
    identity: Identity,
    control_plane: ControlPlaneOperator,
    first: Option<Hypershift>,
    second: Option<ControlPlane>,
    /// hypershift-operator is not meant to run.
    is_stopped: bool,
    /// So many have been started.
    pub(crate) started: usize,
    last_start: Instant,
}

// === impl Replicas ===

impl<'a> Replicas<'a> {
    /// Starts hypershift-operator. The other one starts with the cluster.
    pub(crate) async fn start(
        fixture: &'a Fixture<'a>,
        programs: &Programs,
        proxy: &str,
    ) -> Result<Self> {
        let mut replicas = Self {
            identity: fixture.identity(programs, proxy).await?,
            control_plane: Fixture::control_plane_operator(programs),
            fixture,
            first: None,
            second: None,
            is_stopped: false,
            started: 0,
            last_start: Instant::now(),
        };
        replicas.start_hypershift().await?;
        Ok(replicas)
    }

    /// Who the API server knows them as.
    pub(crate) fn usernames(&self) -> [String; 2] {
        [self.identity.username(), self.control_plane.username()]
    }

    /// Kills one at once, and starts its replacement.
    pub(crate) async fn replace(&mut self, who: Who) -> Result<()> {
        match who {
            Who::Hypershift => {
                self.first = None;
                self.start_hypershift().await
            }
            Who::ControlPlane => {
                self.second = None;
                self.follow().await
            }
        }
    }

    /// Has the control-plane-operator be what its Deployment says: there or not, and with which variables.
    pub(crate) async fn follow(&mut self) -> Result<()> {
        let admin = &self.fixture.testbed.admin;
        let expected = self.control_plane.expected_env(admin).await?;
        let running = self.second.as_ref().map(|it| &it.launched.environment);
        if expected.as_ref() == running {
            return Ok(());
        }
        self.second = None;
        let Some(environment) = expected else {
            return Ok(());
        };
        let relay = self.relay(Who::ControlPlane).await?;
        let url = relay.server();
        let pod = self.pod("control-plane-operator");
        let started = self.control_plane.start(
            self.fixture.testbed,
            &pod,
            environment,
            Server {
                url: &url,
                authority: None,
            },
            Times::SHORT,
        );
        // Its service account is created before its Deployment, and deleted before it, too.
        let Ok(launched) = started.await else {
            return Ok(());
        };
        self.second = Some(ControlPlane {
            launched,
            _relay: relay,
        });
        Ok(())
    }

    /// Fails unless who should run leads, and has for a moment.
    pub(crate) async fn lead(&self, settled: Duration) -> Result<()> {
        if self.is_stopped {
            ensure!(
                self.second.is_some(),
                "the control-plane-operator does not run"
            );
        } else {
            let first = self
                .first
                .as_ref()
                .context("hypershift-operator does not run")?;
            first.replica.is_ready().await?;
        }
        let calm = self.last_start.elapsed();
        ensure!(calm >= settled, "an operator was started {calm:?} ago");
        Ok(())
    }

    /// Stops hypershift-operator at once.
    pub(crate) fn stop_hypershift(&mut self) {
        self.first = None;
        self.is_stopped = true;
    }

    pub(crate) async fn start_hypershift(&mut self) -> Result<()> {
        self.is_stopped = false;
        let relay = self.relay(Who::Hypershift).await?;
        let url = relay.server();
        let server = Server {
            url: &url,
            authority: None,
        };
        let pod = self.pod("operator");
        let testbed = self.fixture.testbed;
        let mut replica = self
            .identity
            .replica_at(testbed, &pod, server, Times::SHORT)?;
        replica.service.start().await?;
        self.first = Some(Hypershift {
            replica,
            _relay: relay,
        });
        Ok(())
    }

    async fn relay(&self, who: Who) -> Result<Relay> {
        let fault_points = self.fixture.fault_points.clone();
        let intercept = move |request: &Parts, moment: Moment| {
            fault_points.lock().intercept(who, request, moment)
        };
        Relay::before(&self.fixture.testbed.control_plane.endpoint(), intercept).await
    }

    /// The name of the next pod: each is another one, as pods are.
    fn pod(&mut self, of: &str) -> String {
        self.started += 1;
        self.last_start = Instant::now();
        // Few logs, because there are many lifecycles.
        format!("{of}-{}", self.started % 4)
    }
}
