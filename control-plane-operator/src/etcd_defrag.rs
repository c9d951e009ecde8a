//! `control-plane-operator etcd-defrag-controller`: gives the space back that etcd's deleted data still takes.
//!
//! Defragmenting stops a member for a moment. So only one of the sidecars acts, one member at a time, the leader of etcd
//! last, with a pause in between, and only while all members are well.

mod etcd;
mod plan;

use std::path::PathBuf;
use std::time::Duration;

use prometheus_client::registry::Registry;
use support::args::{ApiServerArgs, LeaderArgs, LoggingArgs, Time};
use support::error::chain;
use support::health::Health;
use support::lease::{self, Claim, Elector};
use support::shutdown;

use crate::error::{Failure, Usage};
use crate::tool;
use etcd::{Connection, Credentials};
use plan::Limits;

/// Lease that the sidecars take turns by.
const LEASE: &str = "etcd-defrag-controller-leader-elect";
/// Failures in a row after which they are logged as errors.
const TOLERATED: u32 = 3;

/// The flags of `etcd-defrag-controller`.
#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    /// Namespace of etcd: the Lease is there.
    #[arg(long, value_name = "NAME", env = "NAMESPACE")]
    pub namespace: String,
    /// Name of this pod: part of its identity.
    #[arg(long, value_name = "NAME", env = "HOSTNAME")]
    pub pod_name: String,
    /// Any member of etcd; it names the others.
    #[arg(long, value_name = "URL", default_value = "https://etcd-client:2379")]
    pub endpoint: http::Uri,
    /// Authority of etcd's certificates.
    #[arg(
        long,
        value_name = "FILE",
        default_value = "/etc/etcd/tls/etcd-ca/ca.crt"
    )]
    pub ca_file: PathBuf,
    /// Certificate of a client.
    #[arg(
        long,
        value_name = "FILE",
        default_value = "/etc/etcd/tls/client/etcd-client.crt"
    )]
    pub cert_file: PathBuf,
    /// Key of that certificate.
    #[arg(
        long,
        value_name = "FILE",
        default_value = "/etc/etcd/tls/client/etcd-client.key"
    )]
    pub key_file: PathBuf,
    /// Between two rounds.
    #[arg(long, value_name = "TIME", default_value = "10m")]
    pub period: Time,
    /// Between two members.
    #[arg(long, value_name = "TIME", default_value = "36s")]
    pub pause: Time,
    /// Members with a smaller database are left alone.
    #[arg(long, value_name = "BYTES", default_value_t = 100 * 1024 * 1024)]
    pub min_size: u64,
    /// Members of whose database less is free are left alone.
    #[arg(long, value_name = "PERCENT", default_value_t = 45, value_parser = clap::value_parser!(u64).range(1..=99))]
    pub min_fragmentation: u64,
    /// How the API server is reached.
    #[command(flatten, next_help_heading = "API server")]
    pub api_server: ApiServerArgs,
    /// Which of the sidecars acts.
    #[command(flatten, next_help_heading = "Leader election")]
    pub leader: LeaderArgs,
    /// What is logged.
    #[command(flatten, next_help_heading = "Logging")]
    pub logging: LoggingArgs,
}

/// Defragments, again and again.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let leader = &args.leader;
    let settings = leader.settings(&args.namespace, LEASE, &args.pod_name);
    if args.leader.leader_elect {
        settings.check().map_err(|message| Usage { message })?;
    }
    tool::run(&args.logging, lead(args, settings))
}

async fn lead(args: &Args, settings: lease::Settings) -> Result<(), Failure> {
    if !args.leader.leader_elect {
        let (_term, claim) = Claim::alone(&settings);
        rounds(args, claim).await;
        return Ok(());
    }
    let config = support::client::config(&args.api_server).await?;
    let client = support::client::connect(config)?;
    // The metrics of this container are not collected.
    let mut registry = Registry::default();
    let check = Health::new(&mut registry).check("lease", "not read yet");
    let metrics = lease::Metrics::new(&mut registry);
    let (_signal, drain) = shutdown::channel();
    let elector = Elector::new(client, settings, metrics, check);
    elector.run(drain, |claim| rounds(args, claim)).await;
    Ok(())
}

async fn rounds(args: &Args, claim: Claim) {
    let mut failures = 0;
    loop {
        match round(args, &claim).await {
            Ok(()) => failures = 0,
            Err(error) => {
                failures += 1;
                let problem = chain(error.as_ref());
                if failures >= TOLERATED {
                    tracing::error!(problem, failures, "Etcd is not defragmented any more");
                } else {
                    tracing::warn!(problem, failures, "Etcd was not defragmented");
                }
            }
        }
        tokio::time::sleep(args.period.0).await;
    }
}

async fn round(args: &Args, claim: &Claim) -> Result<(), Failure> {
    let credentials = Credentials {
        ca: args.ca_file.clone(),
        certificate: args.cert_file.clone(),
        key: args.key_file.clone(),
    };
    let limits = Limits {
        size: args.min_size,
        percent: args.min_fragmentation,
    };
    let members = etcd::look(&credentials, &args.endpoint).await?;
    let due = plan::due(&members, limits)?;
    for (index, member) in due.into_iter().enumerate() {
        if index > 0 {
            tokio::time::sleep(args.pause.0).await;
        }
        if !claim.is_held() {
            return Ok(());
        }
        defragment(&credentials, member).await?;
    }
    Ok(())
}

async fn defragment(credentials: &Credentials, member: &plan::Member) -> Result<(), Failure> {
    let connection = Connection::open(credentials, &member.url)?;
    // A member that has fallen ill since the look is left alone.
    connection.status().await?;
    let begun = std::time::Instant::now();
    connection.defragment().await?;
    let after = connection.status().await?;
    tracing::info!(
        member = member.name,
        before = member.size,
        after = after.size,
        took = ?Duration::from_millis(u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX)),
        "Defragmented"
    );
    Ok(())
}
