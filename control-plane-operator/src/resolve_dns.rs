//! `control-plane-operator resolve-dns`: waits until a DNS name resolves.
//!
//! Members of etcd find each other by pod DNS names. With `--self-register` the pod first creates its own
//! EndpointSlice, because the built-in controllers create theirs only after the pod status is reported. The pod owns
//! the EndpointSlice, which is garbage collected with it.

mod slice;

use std::net::IpAddr;

use support::args::{ApiServerArgs, LoggingArgs, Time};
use support::error::chain;

use crate::error::{Failure, Usage};
use crate::tool::{self, LogFilter};

/// The flags of `resolve-dns`.
#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    /// DNS name to resolve; with --self-register POD.SERVICE.NAMESPACE.svc
    #[arg(value_name = "NAME")]
    pub name: String,
    /// Create an EndpointSlice for this pod in the Service of the name, and wait for its address.
    #[arg(long, requires = "pod_ip")]
    pub self_register: bool,
    /// IP address of this pod.
    #[arg(long, value_name = "IP", env = "POD_IP")]
    pub pod_ip: Option<IpAddr>,
    /// Polling interval.
    #[arg(long, value_name = "TIME", default_value = "1s")]
    pub period: Time,
    /// API server flags.
    #[command(flatten, next_help_heading = "API server")]
    pub api_server: ApiServerArgs,
    /// Logging flags.
    #[command(flatten, next_help_heading = "Logging")]
    pub logging: LoggingArgs,
}

/// Runs the subcommand.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let register = match (args.self_register, args.pod_ip) {
        (true, Some(address)) => Some(slice::Entry::new(&args.name, address).map_err(usage)?),
        _ => None,
    };
    tool::run(&args.logging, resolve(args, register))
}

fn usage(message: String) -> Usage {
    Usage { message }
}

async fn resolve(args: &Args, register: Option<slice::Entry>) -> Result<(), Failure> {
    let expected = register.as_ref().map(|entry| entry.address);
    if let Some(entry) = register {
        self_register(args, &entry).await?;
    }
    let mut filter = LogFilter::default();
    loop {
        match lookup(&args.name, expected).await {
            Ok(()) => return Ok(()),
            Err(problem) if filter.is_new(&problem) => {
                tracing::info!(name = args.name, problem, "Waiting");
            }
            Err(_) => {}
        }
        tokio::time::sleep(args.period.0).await;
    }
}

async fn self_register(args: &Args, entry: &slice::Entry) -> Result<(), Failure> {
    let config = support::client::config(&args.api_server).await?;
    let client = support::client::connect(&config)?;
    let mut filter = LogFilter::default();
    while let Err(error) = slice::write(&client, entry).await {
        let problem = chain(&error);
        if filter.is_new(&problem) {
            tracing::warn!(problem, "Failed to write EndpointSlice");
        }
        tokio::time::sleep(args.period.0).await;
    }
    Ok(())
}

/// Resolves the name. A stale record with another address, from before a restart, is not accepted.
async fn lookup(name: &str, expected: Option<IpAddr>) -> Result<(), String> {
    let found = tokio::net::lookup_host((name, 0)).await;
    let found = found.map_err(|error| error.to_string())?;
    let addresses: Vec<_> = found.map(|address| address.ip()).collect();
    match expected {
        _ if addresses.is_empty() => Err("no address found".to_owned()),
        Some(expected) if !addresses.contains(&expected) => {
            Err(format!("does not resolve to {expected} yet"))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::args::Cli;

    #[tokio::test]
    async fn names_must_resolve_to_the_pod_ip() {
        let loopback = "127.0.0.1".parse().unwrap();
        assert_eq!(lookup("127.0.0.1", None).await, Ok(()));
        assert_eq!(lookup("127.0.0.1", Some(loopback)).await, Ok(()));
        let other = Some("10.0.0.1".parse().unwrap());
        assert!(lookup("127.0.0.1", other).await.is_err());
    }

    #[test]
    fn self_registration_requires_a_pod_ip() {
        let begin = ["control-plane-operator", "resolve-dns", "a.b.c.svc"];
        assert!(Cli::try_parse_from(begin).is_ok());
        let with = |more: &[&'static str]| Cli::try_parse_from(begin.iter().chain(more));
        assert!(with(&["--self-register", "--pod-ip=10.0.0.1"]).is_ok());
        assert!(with(&["--self-register"]).is_err());
    }
}
