//! `control-plane-operator etcd-defrag-controller`: defragments etcd to release disk space of deleted data.
//!
//! Defragmenting blocks a member. Therefore only the elected sidecar acts, on one member at a time, the etcd leader
//! last, with a pause in between, and only while all members are healthy. A member can advertise any URL, so it connects to
//! members only at the names of their pods.

mod plan;

use std::path::PathBuf;
use std::time::Duration;

use prometheus_client::registry::Registry;
use support::args::{ApiServerArgs, LeaderArgs, LoggingArgs, Time};
use support::error::chain;
use support::etcd::{self, Connection, Credentials, ForeignUrl, MemberUrls, Status};
use support::health::Health;
use support::lease::{self, Claim, Elector};
use support::shutdown;

use crate::error::{Failure, Usage};
use crate::tool;
use plan::{Limits, Member};

/// Lease for leader election among the sidecars.
const LEASE: &str = "etcd-defrag-controller-leader-elect";
/// Consecutive failures after which they are logged as errors.
const TOLERATED: u32 = 3;

/// The flags of `etcd-defrag-controller`.
#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    /// Namespace of etcd and of the Lease.
    #[arg(long, value_name = "NAME", env = "NAMESPACE")]
    pub namespace: String,
    /// Name of this pod, for leader election.
    #[arg(long, value_name = "NAME", env = "HOSTNAME")]
    pub pod_name: String,
    /// URL of any etcd member; the others are discovered from it.
    #[arg(long, value_name = "URL", default_value = "https://etcd-client:2379")]
    pub endpoint: http::Uri,
    /// File with the CA certificate of etcd.
    #[arg(
        long,
        value_name = "FILE",
        default_value = "/etc/etcd/tls/etcd-ca/ca.crt"
    )]
    pub ca_file: PathBuf,
    /// File with the client certificate.
    #[arg(
        long,
        value_name = "FILE",
        default_value = "/etc/etcd/tls/client/etcd-client.crt"
    )]
    pub cert_file: PathBuf,
    /// File with the key of the client certificate.
    #[arg(
        long,
        value_name = "FILE",
        default_value = "/etc/etcd/tls/client/etcd-client.key"
    )]
    pub key_file: PathBuf,
    /// Interval between two rounds.
    #[arg(long, value_name = "TIME", default_value = "10m")]
    pub period: Time,
    /// Pause between two members.
    #[arg(long, value_name = "TIME", default_value = "36s")]
    pub pause: Time,
    /// Minimum database size to defragment a member.
    #[arg(long, value_name = "BYTES", default_value_t = 100 * 1024 * 1024)]
    pub min_size: u64,
    /// Minimum percentage of free space in the database to defragment a member.
    #[arg(long, value_name = "PERCENT", default_value_t = 45, value_parser = clap::value_parser!(u64).range(1..=99))]
    pub min_fragmentation: u64,
    /// API server flags.
    #[command(flatten, next_help_heading = "API server")]
    pub api_server: ApiServerArgs,
    /// Leader election flags.
    #[command(flatten, next_help_heading = "Leader election")]
    pub leader: LeaderArgs,
    /// Logging flags.
    #[command(flatten, next_help_heading = "Logging")]
    pub logging: LoggingArgs,
}

/// Defragments periodically.
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
    let client = support::client::connect(&config)?;
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
                    tracing::error!(problem, failures, "Failed to defragment etcd repeatedly");
                } else {
                    tracing::warn!(problem, failures, "Failed to defragment etcd");
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
    let members = observe_members(&credentials, args).await?;
    let due = plan::select(&members, limits)?;
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

async fn defragment(credentials: &Credentials, member: &Member) -> Result<(), Failure> {
    let connection = Connection::open(credentials, &member.url)?;
    // Skip a member that has become unhealthy in the meantime.
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

/// Returns all members with their status.
async fn observe_members(credentials: &Credentials, args: &Args) -> Result<Vec<Member>, Failure> {
    let connection = Connection::open(credentials, &args.endpoint.to_string())?;
    let urls = MemberUrls::new(&args.namespace, None);
    let mut observed = Vec::new();
    for (name, url) in addresses(connection.members().await?, &urls)? {
        let status = match Connection::open(credentials, &url) {
            Ok(connection) => connection.status().await,
            Err(error) => Err(error),
        };
        observed.push(member_of(name, url, status));
    }
    Ok(observed)
}

/// The name of each member and the URL of its pod, which is empty before it has started. The URLs of all members are checked
/// before the first one is followed.
fn addresses(
    members: Vec<etcd::Member>,
    urls: &MemberUrls,
) -> Result<Vec<(String, String)>, ForeignUrl> {
    let address = |member: etcd::Member| {
        let url = urls.of(&member)?.unwrap_or_default().to_owned();
        Ok((member.name, url))
    };
    members.into_iter().map(address).collect()
}

fn member_of(name: String, url: String, status: Result<Status, etcd::Error>) -> Member {
    let status = status.unwrap_or_else(|error| Status {
        size: 0,
        in_use: 0,
        is_leader: false,
        is_learner: false,
        problem: Some(chain(&error)),
    });
    Member {
        name,
        url,
        size: status.size,
        in_use: status.in_use,
        is_leader: status.is_leader,
        is_learner: status.is_learner,
        problem: status.problem,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A member could make the sidecar connect to any host.
    #[test]
    fn only_urls_of_pods_are_followed() {
        let urls = MemberUrls::new("clusters-dev", None);
        let url = |name: &str| format!("https://{name}.etcd-discovery.clusters-dev.svc:2379");
        let member = |name: &str, urls: &[&str]| etcd::Member {
            name: name.to_owned(),
            client_urls: urls.iter().map(|url| (*url).to_owned()).collect(),
            ..etcd::Member::default()
        };
        let own = member("etcd-0", &[&url("etcd-0")]);
        let found = addresses(vec![own.clone(), member("", &[])], &urls);
        let expected = [
            ("etcd-0".to_owned(), url("etcd-0")),
            (String::new(), String::new()),
        ];
        assert_eq!(found, Ok(expected.into()));
        for foreign in ["https://192.0.2.1:2379", "https://etcd-client:2379"] {
            let error = addresses(vec![own.clone(), member("etcd-1", &[foreign])], &urls);
            let error = error.unwrap_err();
            assert_eq!(
                (error.member.as_str(), error.url.as_str()),
                ("etcd-1", foreign)
            );
        }
    }

    #[test]
    fn unreachable_members_are_unhealthy() {
        let timeout = Err(etcd::Error::Timeout { what: "x" });
        let member = member_of("a".into(), String::new(), timeout);
        assert_eq!(
            member.problem.as_deref(),
            Some("timed out requesting x from etcd")
        );
    }
}
