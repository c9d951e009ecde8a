//! `control-plane-operator resolve-dns`: waits until a name can be resolved.
//!
//! Members of etcd find each other by the names of their pods. With `--self-register` the pod first writes an
//! EndpointSlice of its own, because that of Kubernetes comes only after the pod's status has gone through two
//! controllers. It belongs to the pod and goes with it.

mod slice;

use std::net::IpAddr;

use support::args::{ApiServerArgs, LoggingArgs, Time};
use support::error::chain;

use crate::error::{Failure, Usage};
use crate::tool::{self, Once};

/// The flags of `resolve-dns`.
#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    /// Name to resolve; with --self-register POD.SERVICE.NAMESPACE.svc
    #[arg(value_name = "NAME")]
    pub name: String,
    /// Write an EndpointSlice for this pod under the Service of the name, and wait for its address.
    #[arg(long, requires = "pod_ip")]
    pub self_register: bool,
    /// Address of this pod.
    #[arg(long, value_name = "IP", env = "POD_IP")]
    pub pod_ip: Option<IpAddr>,
    /// Between two looks.
    #[arg(long, value_name = "TIME", default_value = "1s")]
    pub period: Time,
    /// How the API server is reached.
    #[command(flatten, next_help_heading = "API server")]
    pub api_server: ApiServerArgs,
    /// What is logged.
    #[command(flatten, next_help_heading = "Logging")]
    pub logging: LoggingArgs,
}

/// Waits.
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
    let wanted = register.as_ref().map(|entry| entry.address);
    if let Some(entry) = register {
        self_register(args, &entry).await?;
    }
    let mut once = Once::default();
    loop {
        match look_up(&args.name, wanted).await {
            Ok(()) => return Ok(()),
            Err(problem) if once.is_news(&problem) => {
                tracing::info!(name = args.name, problem, "Waiting");
            }
            Err(_) => {}
        }
        tokio::time::sleep(args.period.0).await;
    }
}

async fn self_register(args: &Args, entry: &slice::Entry) -> Result<(), Failure> {
    let config = support::client::config(&args.api_server).await?;
    let client = support::client::connect(config)?;
    let mut once = Once::default();
    while let Err(error) = slice::write(&client, entry).await {
        let problem = chain(&error);
        if once.is_news(&problem) {
            tracing::warn!(problem, "EndpointSlice cannot be written");
        }
        tokio::time::sleep(args.period.0).await;
    }
    Ok(())
}

/// An answer of before a restart counts as none: it names an address that is no more.
async fn look_up(name: &str, wanted: Option<IpAddr>) -> Result<(), String> {
    let found = tokio::net::lookup_host((name, 0)).await;
    let found = found.map_err(|error| error.to_string())?;
    let addresses: Vec<_> = found.map(|address| address.ip()).collect();
    match wanted {
        _ if addresses.is_empty() => Err("it has no address".to_owned()),
        Some(wanted) if !addresses.contains(&wanted) => {
            Err(format!("it does not have the address {wanted} yet"))
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
    async fn a_name_counts_when_it_has_the_pods_address() {
        let loopback = "127.0.0.1".parse().unwrap();
        assert_eq!(look_up("127.0.0.1", None).await, Ok(()));
        assert_eq!(look_up("127.0.0.1", Some(loopback)).await, Ok(()));
        let other = Some("10.0.0.1".parse().unwrap());
        assert!(look_up("127.0.0.1", other).await.is_err());
    }

    #[test]
    fn registering_needs_an_address() {
        let begin = ["control-plane-operator", "resolve-dns", "a.b.c.svc"];
        assert!(Cli::try_parse_from(begin).is_ok());
        let with = |more: &[&'static str]| Cli::try_parse_from(begin.iter().chain(more));
        assert!(with(&["--self-register", "--pod-ip=10.0.0.1"]).is_ok());
        assert!(with(&["--self-register"]).is_err());
    }
}
