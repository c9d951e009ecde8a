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
    /// Address for the API server, by HTTPS.
    #[arg(
        long,
        value_name = "IP:PORT",
        env = "CAPI_CONVERSION_LISTEN",
        default_value = "0.0.0.0:8443"
    )]
    pub listen: SocketAddr,
    /// Address for probes and metrics: /healthz, /readyz, /metrics.
    #[arg(
        long,
        value_name = "IP:PORT",
        env = "CAPI_CONVERSION_ADMIN_LISTEN",
        default_value = "127.0.0.1:8081"
    )]
    pub admin_listen: SocketAddr,
    /// Write the addresses, as JSON, to this file once the API server is served.
    #[arg(long, value_name = "FILE")]
    pub address_file: Option<PathBuf>,
    /// File with the certificate that is shown to the API server, PEM. Read again when it changes.
    #[arg(long, value_name = "FILE", env = "CAPI_CONVERSION_TLS_CERT_FILE")]
    pub tls_cert_file: PathBuf,
    /// File with its private key, PEM.
    #[arg(long, value_name = "FILE", env = "CAPI_CONVERSION_TLS_KEY_FILE")]
    pub tls_key_file: PathBuf,
    /// File with PEM certificates, one of which has to have signed the certificate of each client. Without it clients
    /// show none: API servers have no certificate for conversion webhooks. Read again when it changes.
    #[arg(long, value_name = "FILE", env = "CAPI_CONVERSION_CLIENT_CA_FILE")]
    pub client_ca_file: Option<PathBuf>,
    /// Who converts the kinds of a private group: a stock manager's webhook server. May be repeated; the route with
    /// the longest kind wins
    #[arg(
        long = "backend",
        value_name = "GROUP[/KIND[*]]=https://HOST:PORT",
        env = "CAPI_CONVERSION_BACKENDS",
        value_delimiter = ',',
        required = true
    )]
    pub backends: Vec<Route>,
    /// File with PEM certificates, one of which has signed the backends' certificates. Read again when it changes.
    #[arg(long, value_name = "FILE", env = "CAPI_CONVERSION_BACKEND_CA")]
    pub backend_ca: PathBuf,
    /// Name that the backends' certificates are for [default: the host of the URL]
    #[arg(long, value_name = "NAME", env = "CAPI_CONVERSION_BACKEND_NAME")]
    pub backend_server_name: Option<String>,
    /// Largest review, in bytes. A list is converted in one piece
    #[arg(long, value_name = "BYTES", default_value_t = 256 * 1024 * 1024)]
    pub max_review: usize,
    /// Memory for all reviews together, in bytes. A review takes six times its size while it is converted. When there is
    /// too little, the largest review of the client that uses most is refused with 503 and Retry-After
    #[arg(long, value_name = "BYTES", default_value_t = 1536 * 1024 * 1024)]
    pub max_memory: u64,
    /// Connections in all. When there are too many, one of the client with the most is closed
    #[arg(long, value_name = "NUMBER", default_value_t = 512)]
    pub max_connections: u64,
    /// Connections of one client address. When there are too many, the one that was answered longest ago is closed
    #[arg(long, value_name = "NUMBER", default_value_t = 128)]
    pub max_connections_per_client: u64,
    /// For a review to arrive
    #[arg(long, value_name = "TIME", default_value = "20s")]
    pub read_timeout: Time,
    /// For the answer of the backends, over all tries. The API server itself waits 30s
    #[arg(long, value_name = "TIME", default_value = "25s")]
    pub backend_timeout: Time,
    /// Between two questions whether the backends can convert.
    #[arg(long, value_name = "TIME", default_value = "5s")]
    pub probe_interval: Time,
    /// For reviews to end after SIGTERM or SIGINT.
    #[arg(long, value_name = "TIME", default_value = "25s")]
    pub drain_timeout: Time,
    /// What is logged.
    #[command(flatten, next_help_heading = "Logging")]
    pub logging: LoggingArgs,
    /// Groups beyond the standard ones.
    #[command(flatten, next_help_heading = "Groups")]
    pub groups: GroupArgs,
}

const EXAMPLES: &str = "\
Example, in a pod with the stock core manager beside it:
  capi-proxy conversion-webhook --tls-cert-file /certs/tls.crt --tls-key-file /certs/tls.key \\
    --backend cluster.hypershift.openshift.io=https://localhost:9443 --backend-ca /certs/ca.crt";
