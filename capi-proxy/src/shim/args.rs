//! The flags of `conversion-webhook`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;

use support::args::Time;

use super::route::Route;
use crate::args::{GroupArgs, LoggingArgs};

/// The flags of `conversion-webhook`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct ConversionArgs {
    /// Listen address for the API server (HTTPS).
    #[arg(
        long,
        value_name = "IP:PORT",
        env = "CAPI_CONVERSION_LISTEN",
        default_value = "0.0.0.0:8443"
    )]
    pub listen: SocketAddr,
    /// Listen address for probes and metrics: /livez, /readyz, /metrics.
    #[arg(
        long,
        value_name = "IP:PORT",
        env = "CAPI_CONVERSION_ADMIN_LISTEN",
        default_value = "127.0.0.1:8081"
    )]
    pub admin_listen: SocketAddr,
    /// Write the listen addresses as JSON to this file once connections are accepted.
    #[arg(long, value_name = "FILE")]
    pub address_file: Option<PathBuf>,
    /// PEM file with the serving certificate. Reloaded when it changes.
    #[arg(long, value_name = "FILE", env = "CAPI_CONVERSION_TLS_CERT_FILE")]
    pub tls_cert_file: PathBuf,
    /// PEM file with the private key of the serving certificate.
    #[arg(long, value_name = "FILE", env = "CAPI_CONVERSION_TLS_KEY_FILE")]
    pub tls_key_file: PathBuf,
    /// PEM file with the CAs of client certificates. Without it, clients are not authenticated: API servers have no client
    /// certificate for conversion webhooks. Reloaded when it changes.
    #[arg(long, value_name = "FILE", env = "CAPI_CONVERSION_CLIENT_CA_FILE")]
    pub client_ca_file: Option<PathBuf>,
    /// Webhook server of a stock manager that converts the kinds of a private group. May be repeated; the most specific
    /// kind wins
    #[arg(
        long = "backend",
        value_name = "GROUP[/KIND[*]]=https://HOST:PORT",
        env = "CAPI_CONVERSION_BACKENDS",
        value_delimiter = ',',
        required = true
    )]
    pub backends: Vec<Route>,
    /// PEM file with the CAs of the backends. Reloaded when it changes.
    #[arg(long, value_name = "FILE", env = "CAPI_CONVERSION_BACKEND_CA")]
    pub backend_ca: PathBuf,
    /// Server name in the certificates of the backends [default: the host of the URL]
    #[arg(long, value_name = "NAME", env = "CAPI_CONVERSION_BACKEND_NAME")]
    pub backend_server_name: Option<String>,
    /// Maximum size of a review in bytes. A list is one review
    #[arg(long, value_name = "BYTES", default_value_t = 256 * 1024 * 1024)]
    pub max_review: usize,
    /// Memory for all reviews in bytes. Converting a review takes six times its size. When memory is exhausted, the
    /// largest review of the client that uses most is rejected with 503 and Retry-After
    #[arg(long, value_name = "BYTES", default_value_t = 1536 * 1024 * 1024)]
    pub max_memory: u64,
    /// Maximum number of connections. Beyond it, a connection of the client with the most is closed
    #[arg(long, value_name = "NUMBER", default_value_t = 512)]
    pub max_connections: u64,
    /// Maximum number of connections per client address. Beyond it, the one that has been idle longest is closed
    #[arg(long, value_name = "NUMBER", default_value_t = 128)]
    pub max_connections_per_client: u64,
    /// Timeout for reading a review
    #[arg(long, value_name = "TIME", default_value = "20s")]
    pub read_timeout: Time,
    /// Timeout for the response of a backend, including retries. The API server waits 30s
    #[arg(long, value_name = "TIME", default_value = "25s")]
    pub backend_timeout: Time,
    /// Interval of readiness probes of the backends.
    #[arg(long, value_name = "TIME", default_value = "5s")]
    pub probe_interval: Time,
    /// Time to keep serving after SIGTERM or SIGINT, until API servers no longer use this replica. It is not ready
    /// meanwhile, and closes each connection after its next response. A second signal ends it. Without it, there is no
    /// delay
    #[arg(long, value_name = "TIME")]
    pub shutdown_delay: Option<Time>,
    /// Time for reviews to complete after the shutdown delay.
    #[arg(long, value_name = "TIME", default_value = "25s")]
    pub drain_timeout: Time,
    /// The log.
    #[command(flatten, next_help_heading = "Logging")]
    pub logging: LoggingArgs,
    /// Additional groups.
    #[command(flatten, next_help_heading = "Groups")]
    pub groups: GroupArgs,
}

const EXAMPLES: &str = "\
Example, in a pod with the stock core manager beside it:
  capi-proxy conversion-webhook --tls-cert-file /certs/tls.crt --tls-key-file /certs/tls.key \\
    --backend cluster.hypershift.openshift.io=https://localhost:9443 --backend-ca /certs/ca.crt";
