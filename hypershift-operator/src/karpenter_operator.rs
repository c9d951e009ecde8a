//! `hypershift-operator karpenter-operator`: runs in the control plane of one hosted cluster on AWS, and has Karpenter make
//! its nodes.
//!
//! ```text
//!   hosted cluster                         control plane
//!   OpenshiftEC2NodeClass ──┬── ignition ──> Secrets with token and user data, ConfigMaps of kubelets
//!                           └── node_class ─> EC2NodeClass, status; ConfigMap karpenter-subnets
//!   NodeClaim, Node ────────┬── status ────> HostedControlPlane: status.autoNode
//!                           └── approver      CertificateSigningRequests
//!                               karpenter ──> kinds of Karpenter, Deployment karpenter; at the end, its machines
//! ```
//!
//! A controller reads what it needs, decides in pure code, and writes what differs. One process acts, elected by a Lease.
//! Users of the hosted cluster write classes and NodeClaims: what they contain reaches EC2 by the role of their cluster only,
//! and the control plane in objects whose names and sizes this program chooses.
//!
//! - `context`, `control_plane`, `kinds`, `loops`, `term`: what all controllers share, and how they run.
//! - `classes`, `claims`, `instances`: what is read of classes, NodeClaims and instances.
//! - `kubelet`, `tags`, `version`, `updates`, `ec2_node_class`, `mirror`, `subnets`, `admission`: decisions about a class.
//! - `component`, `deletion`: parts of `karpenter`.

mod admission;
mod approver;
mod claims;
mod classes;
mod component;
mod context;
mod control_plane;
mod deletion;
mod ec2_node_class;
mod error;
#[cfg(test)]
mod fixtures;
mod ignition;
mod instances;
mod karpenter;
mod kinds;
mod kubelet;
mod loops;
mod mirror;
mod node_class;
mod status;
mod subnets;
mod tags;
mod term;
mod updates;
mod version;

use std::sync::Arc;
use std::time::Duration;

use control_plane_component::settings::Settings;
use k8s_openapi::api::core::v1::ObjectReference;
use kube::runtime::events::{Recorder, Reporter};
use payload::{Mirrors, Options, Releases};
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;
use support::admin::{self, Admin};
use support::args::ApiServerArgs;
use support::controller::Manager;
use support::error::chain;
use support::health::Health;
use support::lease::{self, Claim, Elector};
use support::shutdown::Drain;
use support::{client, fence, shutdown};

use crate::args::KarpenterArgs;
use crate::error::Fatal;
use crate::program::{self, Signal};
use context::{Context, MANAGER, Means};
use loops::Subject;

/// Lease for leader election.
const LEASE: &str = "karpenter-operator-leader-elect";
/// User agent, for the audit logs of both API servers.
const PROGRAM: &str = concat!("karpenter-operator/", env!("CARGO_PKG_VERSION"));
/// Prefix of metrics.
const PREFIX: &str = "karpenter_operator";
/// Delay before giving up the Lease after a failed start.
const RETRY_INTERVAL: Duration = Duration::from_secs(5);

/// What all terms of leadership share.
struct Process {
    releases: Releases,
    health: Arc<Health>,
    manager: Manager,
}

/// Runs until SIGTERM or SIGINT.
pub(crate) fn run(args: &KarpenterArgs) -> Result<(), Fatal> {
    let lease = lease_settings(args);
    if args.leader.leader_elect {
        lease.check().map_err(|message| Fatal::Usage { message })?;
    }
    // A signal aborts all work, which is safe because each write is atomic.
    program::run(&args.logging, Signal::Ends, serve(args, lease))
}

fn lease_settings(args: &KarpenterArgs) -> lease::Settings {
    args.leader.settings(&args.namespace, LEASE, &args.pod_name)
}

async fn serve(args: &KarpenterArgs, lease: lease::Settings) -> Result<(), Fatal> {
    let management = client::config(&args.api_server).await?;
    let mut registry = Registry::default();
    let own = registry.sub_registry_with_prefix(PREFIX);
    let build = Info::new(vec![("version", env!("CARGO_PKG_VERSION"))]);
    own.register("build", "The version of the program", build);
    let health = Health::new(own);
    let metrics = lease::Metrics::new(own);
    let process = Process {
        releases: releases(args)?,
        manager: Manager::new(own, &health),
        health: Arc::clone(&health),
    };
    let listener = admin::listen(args.metrics_addr)
        .await
        .map_err(Fatal::Listen)?;
    tokio::spawn(Admin { health, registry }.serve(listener));
    let (_signal, drain) = shutdown::channel();
    if !args.leader.leader_elect {
        let (_term, claim) = Claim::alone(&lease);
        lead(args, &management, &process, claim, drain).await;
        return Ok(());
    }
    let client = client::connect(&management).map_err(Fatal::Connect)?;
    let check = process
        .health
        .check("lease", "the lease has not been read yet");
    let elector = Elector::new(client, lease, metrics, check);
    let until = drain.clone();
    elector
        .run(until, |claim| {
            lead(args, &management, &process, claim, drain.clone())
        })
        .await;
    Ok(())
}

/// Runs one term of leadership.
async fn lead(
    args: &KarpenterArgs,
    management: &kube::Config,
    process: &Process,
    claim: Claim,
    drain: Drain,
) {
    match start(args, management, process, &claim).await {
        Ok((ctx, subject)) => term::run(&ctx, &subject, process, drain).await,
        Err(error) => {
            tracing::error!(error = chain(&error), "Failed to start");
            tokio::time::sleep(RETRY_INTERVAL).await;
        }
    }
}

/// Connects to both clusters.
async fn start(
    args: &KarpenterArgs,
    management: &kube::Config,
    process: &Process,
    claim: &Claim,
) -> Result<(Context, Subject), Fatal> {
    let guest = ApiServerArgs {
        kubeconfig: Some(args.target_kubeconfig.clone()),
        context: None,
    };
    let guest = client::config(&guest).await?;
    let management = fence::client(management, claim, PROGRAM).map_err(Fatal::Connect)?;
    let guest = fence::client(&guest, claim, PROGRAM).map_err(Fatal::Connect)?;
    let subject = subject(args, &management);
    let groups = management.list_api_groups().await;
    let groups = groups.map_err(|error| Fatal::Program(Box::new(error)))?;
    let served = groups.groups.into_iter().map(|it| it.name);
    let ctx = Context::new(Means {
        settings: settings(args, served.collect()),
        management,
        guest,
        namespace: args.namespace.clone(),
        name: args.hosted_control_plane.clone(),
        capi_types: args.capi_types,
        ignition_endpoint: args.ignition_endpoint.clone(),
        releases: process.releases.clone(),
    });
    Ok((ctx, subject))
}

/// Events are about the control plane.
fn subject(args: &KarpenterArgs, client: &kube::Client) -> Subject {
    let reporter = Reporter {
        controller: MANAGER.to_owned(),
        instance: Some(args.pod_name.clone()),
    };
    Subject {
        recorder: Recorder::new(client.clone(), reporter),
        object: ObjectReference {
            api_version: Some("hypershift.openshift.io/v1beta1".to_owned()),
            kind: Some("HostedControlPlane".to_owned()),
            namespace: Some(args.namespace.clone()),
            name: Some(args.hosted_control_plane.clone()),
            ..ObjectReference::default()
        },
    }
}

/// How component karpenter is rendered.
fn settings(args: &KarpenterArgs, served_groups: Vec<String>) -> Settings {
    Settings {
        image_overrides: args.image_overrides.0.iter().cloned().collect(),
        capi_types: args.capi_types,
        uid: args.default_security_context_uid,
        served_groups,
        ..Settings::new(args.control_plane_operator_image.as_str())
    }
}

fn releases(args: &KarpenterArgs) -> Result<Releases, Fatal> {
    let options = Options {
        mirrors: Mirrors::new(args.openshift_img_overrides.grouped()),
        ..args.releases.options().map_err(Fatal::file)?
    };
    Releases::new(options).map_err(Fatal::Releases)
}
