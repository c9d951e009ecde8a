//! The part of AWS.

use std::time::Duration;

use api::hypershift::v1beta1::platform::aws::AwsEndpointAccess;
use api::hypershift::v1beta1::{AwsEndpointService, HostedControlPlane};
use control_plane_component::Objects;
use jiff::Timestamp;
use kube::ResourceExt as _;
use serde_json::Value;
use support::controller::{DEADLINE, Settings};
use support::error::chain;
use tokio::sync::Mutex;

use super::calls::Aws;
use super::endpoint::{self, Progress, Removal};
use super::objects::{self, EXTERNAL, FINALIZER, LINKS};
use super::plan::{Cluster, Link, Problem, ROUTER};
use super::status;
use crate::hosted_control_plane::aws::access::Access;
use crate::private_link::control::{self, DEBOUNCE, Next, Pass, RESYNC, Removed};

/// When it is tried again after a problem, and when AWS gets too many requests.
const RETRY_INTERVAL: Duration = Duration::from_secs(20);
const THROTTLED_INTERVAL: Duration = Duration::from_mins(2);

/// AWS.
pub(in crate::private_link) struct Provider {
    access: Mutex<Access>,
}

// === impl Provider ===

impl Provider {
    pub(in crate::private_link) fn new(client: &kube::Client, namespace: &str) -> Self {
        Self {
            access: Mutex::new(Access::new(client.clone(), namespace)),
        }
    }

    async fn try_ensure(&self, hcp: &HostedControlPlane, link: &Link) -> Result<Progress, Problem> {
        let cluster = Cluster::of(hcp)?;
        let aws = Aws::of(hcp, &mut *self.access.lock().await).await?;
        endpoint::ensure(&aws, &cluster, link).await
    }

    async fn try_remove(&self, hcp: &HostedControlPlane, link: &Link) -> Result<Removal, Problem> {
        let cluster = Cluster::of(hcp)?;
        let aws = Aws::of(hcp, &mut *self.access.lock().await).await?;
        endpoint::remove(&aws, &cluster, link).await
    }
}

impl control::Provider for Provider {
    type Link = AwsEndpointService;

    const SETTINGS: Settings = Settings {
        controller: "awsendpointservice",
        kind: "AWSEndpointService",
        concurrency: 2,
        debounce: DEBOUNCE,
        deadline: DEADLINE,
    };
    const SERVICES: &'static [&'static str] = &LINKS;
    const FINALIZER: &'static str = FINALIZER;
    const HOLD: Option<&'static str> = None;
    const EXTERNAL: &'static str = EXTERNAL;

    fn is_private(hcp: &HostedControlPlane) -> bool {
        let aws = hcp.spec.platform.aws.as_ref();
        aws.is_some_and(|it| it.endpoint_access != AwsEndpointAccess::Public)
    }

    fn link(hcp: &HostedControlPlane, objects: &Objects, service: &str) -> Option<Value> {
        let balancer = objects::balancer(objects, service)?;
        Some(objects::link(hcp, service, &balancer))
    }

    fn has(live: &AwsEndpointService, desired: &Value) -> bool {
        objects::has(live, desired)
    }

    fn is_offered(live: &AwsEndpointService) -> bool {
        !status::link(live).service.is_empty()
    }

    fn digest(hcp: &HostedControlPlane, live: &AwsEndpointService, _: &[String]) -> u64 {
        status::digest(hcp, live)
    }

    async fn ensure(
        &self,
        hcp: &HostedControlPlane,
        live: &AwsEndpointService,
        _: &[String],
    ) -> Pass {
        if let Some(pass) = Pass::add_finalizer(live, FINALIZER) {
            return pass;
        }
        let made = self.try_ensure(hcp, &status::link(live)).await;
        let change = report(live, &made);
        match &made {
            Ok(Progress::Record(_)) => Pass::reported(change, Next::Continue),
            Ok(Progress::Done(done)) => {
                let host = done.dns_names.first().map(String::as_str);
                let externals = || objects::externals(hcp, host.unwrap_or_default());
                Pass {
                    externals: (live.name_any() == ROUTER).then(externals),
                    ..Pass::reported(change, Next::Rest(RESYNC))
                }
            }
            Err(problem) => Pass::reported(change, Next::Rest(pause(problem))),
        }
    }

    async fn remove(
        &self,
        hcp: &HostedControlPlane,
        live: &AwsEndpointService,
        _: &[String],
    ) -> Removed {
        match self.try_remove(hcp, &status::link(live)).await {
            Ok(Removal::Done) => Removed::Done,
            Ok(Removal::Waiting) => Removed::Waiting,
            Err(problem) => {
                let pause = pause(&problem);
                Removed::Failed(report(live, &Err(problem)), pause)
            }
        }
    }
}

/// The change of the status, if there is one.
fn report(live: &AwsEndpointService, made: &Result<Progress, Problem>) -> Option<Value> {
    if let Err(Problem::Aws(error)) = made {
        tracing::warn!(error = chain(error), "Failed to reconcile a VPC endpoint");
    }
    let before = live.status.clone().unwrap_or_default();
    let after = status::status(&before, made, live.metadata.generation, Timestamp::now());
    status::patch(&before, &after)
}

fn pause(problem: &Problem) -> Duration {
    if problem.is_throttled() {
        return THROTTLED_INTERVAL;
    }
    RETRY_INTERVAL
}
