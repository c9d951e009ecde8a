//! The command line. Its help is the reference; `docs/proxy.md` explains it.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;

use api::group::GroupPair;
use clap::{Args, Parser, Subcommand};
use clap_complete::Shell;
use http::{Method, StatusCode};
use support::args::{ApiServerArgs, LogFormat, LogLevel, Time};

pub use crate::shim::args::ConversionArgs;

/// Lets stock Cluster API controllers work on private API groups.
///
/// Clients talk plain HTTP to the proxy, on loopback, and see the standard groups (*.cluster.x-k8s.io). The API server
/// behind it stores the private ones (*.cluster.hypershift.openshift.io). Names are swapped both ways.
#[derive(Debug, Parser)]
#[command(name = "capi-proxy", version, max_term_width = 100, after_help = EXAMPLES)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

const EXAMPLES: &str = "\
Examples:
  In a pod, with its service account:
    capi-proxy serve

  On your machine, with the current context of a kubeconfig:
    capi-proxy serve --kubeconfig ~/.kube/config
    kubectl --server http://127.0.0.1:8080 get machines.cluster.x-k8s.io -A

  See what would become of a body:
    kubectl get cluster example -o json | capi-proxy translate \\
      --path /apis/cluster.x-k8s.io/v1beta2/namespaces/default/clusters/example --method PUT";

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Serve clients.
    Serve(Box<ServeArgs>),
    /// Convert objects of the private groups for the API server, by stock Cluster API beside it.
    ConversionWebhook(Box<ConversionArgs>),
    /// Read a body on standard input, write what it becomes to standard output.
    Translate(TranslateArgs),
    /// Print a completion script for a shell.
    Completions(CompletionsArgs),
}

/// The flags of `serve`.
#[derive(Debug, Args)]
pub struct ServeArgs {
    /// Address for clients: IP:PORT, or unix:PATH. May be repeated [default: port 8080 on loopback]
    #[arg(
        long,
        value_name = "ADDRESS",
        env = "CAPI_PROXY_LISTEN",
        value_delimiter = ','
    )]
    pub listen: Vec<Listen>,
    /// Address for probes and metrics: /healthz, /readyz, /metrics.
    #[arg(
        long,
        value_name = "IP:PORT",
        env = "CAPI_PROXY_ADMIN_LISTEN",
        default_value = "127.0.0.1:8081"
    )]
    pub admin_listen: SocketAddr,
    /// Write the addresses, as JSON, to this file once clients are served.
    #[arg(long, value_name = "FILE")]
    pub address_file: Option<PathBuf>,
    /// Count and log private names that are left in answers where none should be. Slow: for debugging.
    #[arg(long)]
    pub debug_leaks: bool,
    /// Threads that serve clients [default: 2, or 1 on a single core]
    #[arg(long, value_name = "N", env = "CAPI_PROXY_THREADS", value_parser = clap::value_parser!(u16).range(1..=64))]
    pub threads: Option<u16>,
    /// How the API server is reached.
    #[command(flatten, next_help_heading = "API server")]
    pub api_server: ApiServerArgs,
    /// What clients may do.
    #[command(flatten, next_help_heading = "Policy")]
    pub policy: PolicyArgs,
    /// How long things may take.
    #[command(flatten, next_help_heading = "Timeouts")]
    pub timeouts: TimeoutArgs,
    /// What is logged.
    #[command(flatten, next_help_heading = "Logging")]
    pub logging: LoggingArgs,
    /// Groups beyond the standard ones.
    #[command(flatten, next_help_heading = "Groups")]
    pub groups: GroupArgs,
}

/// What clients may do.
#[derive(Debug, Args)]
pub struct PolicyArgs {
    /// Allow --listen on an address that other machines can reach. Whoever reaches it has the proxy's rights.
    #[arg(long)]
    pub allow_remote: bool,
    /// Answer to this name in the Host header, too. May be repeated.
    #[arg(
        long,
        value_name = "NAME",
        env = "CAPI_PROXY_ALLOW_HOST",
        value_delimiter = ','
    )]
    pub allow_host: Vec<String>,
    /// Pass Impersonate-* headers on. They are used with the proxy's rights.
    #[arg(long)]
    pub allow_impersonation: bool,
    /// Answer 404 to clients that name a group by its private name.
    #[arg(long)]
    pub deny_private_names: bool,
    /// Require clients to send `Authorization: Bearer SECRET`, with the secret in this file.
    #[arg(long, value_name = "FILE")]
    pub shared_secret_file: Option<PathBuf>,
    /// Largest request body, in bytes.
    #[arg(long, value_name = "BYTES", default_value_t = 3 * 1024 * 1024)]
    pub max_request_body: u64,
}

/// How long things may take: a number with ms, s, m or h.
#[derive(Debug, Args)]
pub struct TimeoutArgs {
    /// For a request's head, from its first byte.
    #[arg(long, value_name = "TIME", default_value = "10s")]
    pub head_timeout: Time,
    /// Between two requests on a connection.
    #[arg(long, value_name = "TIME", default_value = "10m")]
    pub idle_timeout: Time,
    /// Between two pieces of a request's body.
    #[arg(long, value_name = "TIME", default_value = "60s")]
    pub body_timeout: Time,
    /// For a connection to the API server, with TLS.
    #[arg(long, value_name = "TIME", default_value = "5s")]
    pub connect_timeout: Time,
    /// Between two questions whether a silent connection to the API server is alive.
    #[arg(long, value_name = "TIME", default_value = "30s")]
    pub ping_interval: Time,
    /// For the answer to that question.
    #[arg(long, value_name = "TIME", default_value = "15s")]
    pub ping_timeout: Time,
    /// Between two questions whether the API server can be reached, while no client asks anything.
    #[arg(long, value_name = "TIME", default_value = "5s")]
    pub probe_interval: Time,
    /// For requests to end after SIGTERM or SIGINT.
    #[arg(
        long,
        value_name = "TIME",
        default_value = "10s",
        env = "CAPI_PROXY_DRAIN_TIMEOUT"
    )]
    pub drain_timeout: Time,
}

/// What is logged, to standard error.
#[derive(Debug, Args)]
pub struct LoggingArgs {
    /// Least severity that is logged.
    #[arg(long, value_enum, default_value_t = LogLevel::Info, env = "CAPI_PROXY_LOG_LEVEL")]
    pub log_level: LogLevel,
    /// Form of the log.
    #[arg(long, value_enum, default_value_t = LogFormat::Json, env = "CAPI_PROXY_LOG_FORMAT")]
    pub log_format: LogFormat,
}

/// Groups beyond the standard ones.
#[derive(Debug, Args)]
pub struct GroupArgs {
    /// Swap these two groups, too. May be repeated.
    #[arg(
        long = "group",
        value_name = "STANDARD=PRIVATE",
        env = "CAPI_PROXY_GROUPS",
        value_delimiter = ','
    )]
    pub groups: Vec<GroupPair>,
}

/// The flags of `translate`.
#[derive(Debug, Args)]
pub struct TranslateArgs {
    /// Path and query of the request, as a client sends it.
    #[arg(long, default_value = "/apis/cluster.x-k8s.io/v1beta2/clusters")]
    pub path: String,
    /// Method of the request.
    #[arg(long, default_value = "POST")]
    pub method: Method,
    /// Content type of the body.
    #[arg(long, value_name = "TYPE", default_value = "application/json")]
    pub content_type: String,
    /// The body is an answer's, not a request's.
    #[arg(long)]
    pub response: bool,
    /// Status code of the answer.
    #[arg(
        long,
        value_name = "CODE",
        default_value = "200",
        requires = "response"
    )]
    pub status: StatusCode,
    /// Groups beyond the standard ones.
    #[command(flatten)]
    pub groups: GroupArgs,
}

/// The arguments of `completions`.
#[derive(Debug, Args)]
pub struct CompletionsArgs {
    /// The shell.
    pub shell: Shell,
}

/// Where clients are served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Listen {
    /// An IP address and port.
    Tcp(SocketAddr),
    /// A Unix socket.
    Unix(PathBuf),
}

// === impl LoggingArgs ===

impl LoggingArgs {
    /// The flags as all programs have them; only the environment variables differ.
    pub(crate) fn shared(&self) -> support::args::LoggingArgs {
        support::args::LoggingArgs {
            log_level: self.log_level,
            log_format: self.log_format,
        }
    }
}

// === impl Listen ===

impl FromStr for Listen {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.strip_prefix("unix:") {
            Some("") => Err("write unix:PATH".to_owned()),
            Some(path) => Ok(Self::Unix(path.into())),
            None => text
                .parse()
                .map(Self::Tcp)
                .map_err(|_| "write IP:PORT, [IPv6]:PORT or unix:PATH".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn listeners_are_addresses_or_sockets() {
        assert_eq!(
            "[::1]:80".parse(),
            Ok(Listen::Tcp("[::1]:80".parse().unwrap()))
        );
        assert_eq!("unix:/run/a".parse(), Ok(Listen::Unix("/run/a".into())));
        for text in ["", "unix:", "localhost:80", "80", "/run/a"] {
            assert!(text.parse::<Listen>().is_err(), "{text}");
        }
    }
}
