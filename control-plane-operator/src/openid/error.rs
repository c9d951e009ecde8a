//! Why endpoints of a provider are unknown. Users read it in a condition: it never has a secret, nor text of a response.

use http::StatusCode;

use super::exchange::MAX_BODY;
use super::network::TIMEOUT;
use super::url::InvalidUrl;
use crate::konnectivity::{dialer, http_proxy, target::Target};

/// Why endpoints of a provider are unknown.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// A URL of the user.
    #[error("invalid {field}: {problem}")]
    Url {
        field: &'static str,
        problem: InvalidUrl,
    },
    /// A URL of the discovery document.
    #[error("invalid {field} in the discovery document: {problem}")]
    Endpoint {
        field: &'static str,
        problem: InvalidUrl,
    },
    /// An object of the control plane does not exist yet.
    #[error("waiting for {kind} {name} with key {key}")]
    Missing {
        kind: &'static str,
        name: String,
        key: &'static str,
    },
    /// An object of the control plane is invalid.
    #[error("invalid {object}: expected {expected}")]
    Object {
        object: String,
        expected: &'static str,
    },
    /// The hosted cluster's proxy.
    #[error("invalid httpsProxy of the proxy configuration")]
    ProxyUrl(#[source] crate::konnectivity::proxies::InvalidUrl),
    /// The hosted cluster's API.
    #[error("failed to create a client of the hosted cluster")]
    Guest(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The connection.
    #[error(transparent)]
    Dial(#[from] dialer::Error),
    /// The connection through the hosted cluster's proxy.
    #[error(transparent)]
    Proxy(#[from] http_proxy::Error),
    /// TLS with the provider.
    #[error(
        "failed to establish TLS with {target}: check its certificate, and set ca to a ConfigMap with its authority"
    )]
    Tls {
        target: Target,
        source: std::io::Error,
    },
    /// The request.
    #[error("failed to send a request to {target}")]
    Http {
        target: Target,
        source: hyper::Error,
    },
    /// No response in time.
    #[error("no response from {0} within {TIMEOUT:?}: check that it is reachable from the nodes")]
    TimedOut(Target),
    /// The response is a redirect.
    #[error(
        "{url} responded with status {status}, and redirects are not followed: set issuer to the URL that it redirects to"
    )]
    Redirect { url: String, status: StatusCode },
    /// The response is a failure.
    #[error("{url} responded with status {status}: check issuer")]
    Status { url: String, status: StatusCode },
    /// The response is too large.
    #[error("the response of {0} exceeds {MAX_BODY} bytes")]
    TooLarge(Target),
    /// The response is no discovery document.
    #[error(
        "the response is not a discovery document: expected JSON with authorization_endpoint and token_endpoint; check issuer"
    )]
    Document,
}
