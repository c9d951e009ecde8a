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

/// Run stock Cluster API controllers on private API groups.
///
/// Clients connect to the proxy with plain HTTP on loopback and use the standard groups (*.cluster.x-k8s.io). The API
/// server behind it stores private groups (*.cluster.hypershift.openshift.io). The proxy translates names both ways.
#[derive(Debug, Parser)]
#[command(name = "capi-proxy", version, max_term_width = 100, after_help = EXAMPLES)]
pub struct Cli {
    /// The command.
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

  Translate a body:
    kubectl get cluster example -o json | capi-proxy translate \\
      --path /apis/cluster.x-k8s.io/v1beta2/namespaces/default/clusters/example --method PUT";

/// Commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run the proxy.
    Serve(Box<ServeArgs>),
    /// Run the conversion webhook of the private CRDs, with stock Cluster API managers as backends.
    ConversionWebhook(Box<ConversionArgs>),
    /// Translate a body from standard input to standard output.
    Translate(TranslateArgs),
    /// Print a shell completion script.
    Completions(CompletionsArgs),
}

/// The flags of `serve`.
#[derive(Debug, Args)]
pub struct ServeArgs {
    /// Listen address for clients: IP:PORT or unix:PATH. May be repeated [default: port 8080 on loopback]
    #[arg(
        long,
        value_name = "ADDRESS",
        env = "CAPI_PROXY_LISTEN",
        value_delimiter = ','
    )]
    pub listen: Vec<Listen>,
    /// Listen address for probes and metrics: /livez, /readyz, /metrics.
    #[arg(
        long,
        value_name = "IP:PORT",
        env = "CAPI_PROXY_ADMIN_LISTEN",
        default_value = "127.0.0.1:8081"
    )]
    pub admin_listen: SocketAddr,
    /// Write the listen addresses as JSON to this file once connections are accepted.
    #[arg(long, value_name = "FILE")]
    pub address_file: Option<PathBuf>,
    /// Count and log private names that remain in responses. Slow, for debugging only.
    #[arg(long)]
    pub debug_leaks: bool,
    /// Worker threads [default: 2, or 1 on a single core]
    #[arg(long, value_name = "N", env = "CAPI_PROXY_THREADS", value_parser = clap::value_parser!(u16).range(1..=64))]
    pub threads: Option<u16>,
    /// Connection to the API server.
    #[command(flatten, next_help_heading = "API server")]
    pub api_server: ApiServerArgs,
    /// Permissions of clients.
    #[command(flatten, next_help_heading = "Policy")]
    pub policy: PolicyArgs,
    /// Timeouts.
    #[command(flatten, next_help_heading = "Timeouts")]
    pub timeouts: TimeoutArgs,
    /// The log.
    #[command(flatten, next_help_heading = "Logging")]
    pub logging: LoggingArgs,
    /// Additional groups.
    #[command(flatten, next_help_heading = "Groups")]
    pub groups: GroupArgs,
}

/// Permissions of clients.
#[derive(Debug, Args)]
pub struct PolicyArgs {
    /// Allow --listen on addresses other than loopback. Clients that reach it have the permissions of the proxy.
    #[arg(long)]
    pub allow_remote: bool,
    /// Additional name to accept in the Host header. May be repeated.
    #[arg(
        long,
        value_name = "NAME",
        env = "CAPI_PROXY_ALLOW_HOST",
        value_delimiter = ','
    )]
    pub allow_host: Vec<String>,
    /// Forward Impersonate-* headers. They take effect with the permissions of the proxy.
    #[arg(long)]
    pub allow_impersonation: bool,
    /// Return 404 for requests that use a private group name.
    #[arg(long)]
    pub deny_private_names: bool,
    /// Require `Authorization: Bearer SECRET` from clients, with the secret in this file.
    #[arg(long, value_name = "FILE")]
    pub shared_secret_file: Option<PathBuf>,
    /// Largest request body, in bytes.
    #[arg(long, value_name = "BYTES", default_value_t = 3 * 1024 * 1024)]
    pub max_request_body: u64,
}

/// Timeouts: a number with ms, s, m or h.
#[derive(Debug, Args)]
pub struct TimeoutArgs {
    /// Timeout for a request head, from its first byte.
    #[arg(long, value_name = "TIME", default_value = "10s")]
    pub head_timeout: Time,
    /// Timeout for idle client connections.
    #[arg(long, value_name = "TIME", default_value = "10m")]
    pub idle_timeout: Time,
    /// Timeout between two reads of a request body.
    #[arg(long, value_name = "TIME", default_value = "60s")]
    pub body_timeout: Time,
    /// Timeout for connecting to the API server, including TLS.
    #[arg(long, value_name = "TIME", default_value = "5s")]
    pub connect_timeout: Time,
    /// Interval of keepalive pings on idle connections to the API server.
    #[arg(long, value_name = "TIME", default_value = "30s")]
    pub ping_interval: Time,
    /// Timeout for the response to a ping.
    #[arg(long, value_name = "TIME", default_value = "15s")]
    pub ping_timeout: Time,
    /// Interval of readiness probes of the API server while there are no requests.
    #[arg(long, value_name = "TIME", default_value = "5s")]
    pub probe_interval: Time,
    /// Time for requests to complete after SIGTERM or SIGINT.
    #[arg(
        long,
        value_name = "TIME",
        default_value = "10s",
        env = "CAPI_PROXY_DRAIN_TIMEOUT"
    )]
    pub drain_timeout: Time,
}

/// The log, on standard error.
#[derive(Debug, Args)]
pub struct LoggingArgs {
    /// Log level.
    #[arg(long, value_enum, default_value_t = LogLevel::Info, env = "CAPI_PROXY_LOG_LEVEL")]
    pub log_level: LogLevel,
    /// Log format.
    #[arg(long, value_enum, default_value_t = LogFormat::Json, env = "CAPI_PROXY_LOG_FORMAT")]
    pub log_format: LogFormat,
}

/// Additional groups.
#[derive(Debug, Args)]
pub struct GroupArgs {
    /// Additional pair of groups to translate. May be repeated.
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
    /// Path and query of the request, as sent by the client.
    #[arg(long, default_value = "/apis/cluster.x-k8s.io/v1beta2/clusters")]
    pub path: String,
    /// Method of the request.
    #[arg(long, default_value = "POST")]
    pub method: Method,
    /// Content type of the body.
    #[arg(long, value_name = "TYPE", default_value = "application/json")]
    pub content_type: String,
    /// Translate the body of a response instead of a request.
    #[arg(long)]
    pub response: bool,
    /// Status code of the response.
    #[arg(
        long,
        value_name = "CODE",
        default_value = "200",
        requires = "response"
    )]
    pub status: StatusCode,
    /// Additional groups.
    #[command(flatten)]
    pub groups: GroupArgs,
}

/// The arguments of `completions`.
#[derive(Debug, Args)]
pub struct CompletionsArgs {
    /// The shell.
    pub shell: Shell,
}

/// A listen address for clients.
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
            Some("") => Err("expected unix:PATH".to_owned()),
            Some(path) => Ok(Self::Unix(path.into())),
            None => text
                .parse()
                .map(Self::Tcp)
                .map_err(|_| "expected IP:PORT, [IPv6]:PORT or unix:PATH".to_owned()),
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
