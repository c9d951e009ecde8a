//! The configuration, resolved from the command line before any I/O on the network.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use api::group::GroupTable;

use crate::args::{GroupArgs, Listen, PolicyArgs, ServeArgs, TimeoutArgs};
use crate::credentials::Source;
use crate::error::Error;
use crate::gate;
use crate::layer::authorization::SharedSecret;
use crate::layer::host::Hosts;
use crate::layer::impersonation::Impersonation;
use crate::layer::path::PrivateNames;
use crate::stack::Policy;
use crate::upstream;
use capi_translate::Rules;

/// Default port for clients.
const DEFAULT_PORT: u16 = 8080;
/// Default number of threads; more do not help.
const DEFAULT_THREADS: usize = 2;

/// The configuration of `serve`.
#[derive(Debug)]
pub(crate) struct Config {
    pub(crate) listeners: Vec<Address>,
    pub(crate) admin: SocketAddr,
    pub(crate) address_file: Option<PathBuf>,
    pub(crate) threads: usize,
    pub(crate) source: Source,
    pub(crate) rules: Rules,
    pub(crate) policy: Policy,
    pub(crate) client_limits: gate::Limits,
    pub(crate) upstream_limits: upstream::Limits,
    pub(crate) probe_interval: Duration,
    pub(crate) drain_timeout: Duration,
}

/// A listen address for clients.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Address {
    pub(crate) listen: Listen,
    pub(crate) requirement: Requirement,
}

/// Whether failing to listen is an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Requirement {
    Required,
    /// The machine may not have this address.
    Optional,
}

// === impl Config ===

impl Config {
    /// Resolves the flags, and reads the files that must not change while the proxy runs.
    pub(crate) fn new(args: &ServeArgs) -> Result<Self, Error> {
        let usage = |error: crate::credentials::Error| Error::Usage(error.chain());
        let source = Source::choose(
            args.api_server.kubeconfig.clone(),
            args.api_server.context.clone(),
        )
        .map_err(usage)?;
        source.check().map_err(usage)?;
        let TimeoutArgs {
            head_timeout,
            idle_timeout,
            body_timeout,
            connect_timeout,
            ping_interval,
            ping_timeout,
            probe_interval,
            drain_timeout,
        } = &args.timeouts;
        Ok(Self {
            listeners: addresses(&args.listen, &args.policy)?,
            admin: args.admin_listen,
            address_file: args.address_file.clone(),
            threads: args.threads.map_or_else(default_threads, usize::from),
            source,
            rules: if args.debug_leaks {
                rules(&args.groups)?.checking_leaks()
            } else {
                rules(&args.groups)?
            },
            policy: policy(&args.policy)?,
            client_limits: gate::Limits {
                head: head_timeout.0,
                idle: idle_timeout.0,
                body: body_timeout.0,
            },
            upstream_limits: upstream::Limits {
                connect: connect_timeout.0,
                ping: ping_interval.0,
                pong: ping_timeout.0,
            },
            probe_interval: probe_interval.0,
            drain_timeout: drain_timeout.0,
        })
    }
}

/// The group table, with the additional groups of the command line.
pub(crate) fn rules(args: &GroupArgs) -> Result<Rules, Error> {
    let table = args
        .groups
        .iter()
        .try_fold(GroupTable::default(), |table, pair| {
            table.with(pair.clone())
        });
    table
        .map(Rules::new)
        .map_err(|error| Error::Usage(error.to_string()))
}

fn addresses(listen: &[Listen], policy: &PolicyArgs) -> Result<Vec<Address>, Error> {
    if listen.is_empty() {
        let v4 = Listen::Tcp((Ipv4Addr::LOCALHOST, DEFAULT_PORT).into());
        let v6 = Listen::Tcp((Ipv6Addr::LOCALHOST, DEFAULT_PORT).into());
        return Ok(vec![
            Address {
                listen: v4,
                requirement: Requirement::Required,
            },
            Address {
                listen: v6,
                requirement: Requirement::Optional,
            },
        ]);
    }
    let remote = listen.iter().find_map(|listen| match listen {
        Listen::Tcp(address) if !address.ip().is_loopback() => Some(address),
        Listen::Tcp(_) | Listen::Unix(_) => None,
    });
    match remote {
        Some(address) if !policy.allow_remote => Err(Error::Usage(format!(
            "--listen {address} can be reached from other machines, which would get the permissions of the proxy: use 127.0.0.1, or \
             add --allow-remote"
        ))),
        _ => {
            let addresses = listen.iter().cloned().map(|listen| Address {
                listen,
                requirement: Requirement::Required,
            });
            Ok(addresses.collect())
        }
    }
}

fn policy(args: &PolicyArgs) -> Result<Policy, Error> {
    Ok(Policy {
        hosts: Hosts::new(args.allow_host.clone()),
        impersonation: if args.allow_impersonation {
            Impersonation::Allowed
        } else {
            Impersonation::Refused
        },
        private_names: if args.deny_private_names {
            PrivateNames::Denied
        } else {
            PrivateNames::Swapped
        },
        shared_secret: args
            .shared_secret_file
            .as_deref()
            .map(shared_secret)
            .transpose()?,
        max_request_body: args.max_request_body,
    })
}

fn shared_secret(path: &Path) -> Result<SharedSecret, Error> {
    let text = std::fs::read(path).map_err(|error| {
        Error::Usage(format!("--shared-secret-file {}: {error}", path.display()))
    })?;
    SharedSecret::parse(&text).ok_or_else(|| {
        Error::Usage(format!(
            "--shared-secret-file {}: the file contains no secret",
            path.display()
        ))
    })
}

fn default_threads() -> usize {
    thread::available_parallelism().map_or(1, |cores| cores.get().min(DEFAULT_THREADS))
}
