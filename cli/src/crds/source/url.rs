//! Documents from a URL, by a client that does no more than this needs.
//!
//! HTTPS everywhere; plain HTTP to this machine only, unless asked for. Redirects are followed, never from HTTPS to
//! plain HTTP. Proxies and credentials are not supported: pipe the output of a full client into `--from-file -`.

use std::{fmt, net::IpAddr, str::FromStr, sync::Arc, time::Duration};

use http::{Request, Response, StatusCode, Uri, header, uri::PathAndQuery};
use http_body_util::{BodyExt, Empty, Limited};
use hyper::body::{Bytes, Incoming};
use hyper_util::rt::TokioIo;
use rustls::{ClientConfig, RootCertStore, pki_types::ServerName};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
};
use tokio_rustls::{TlsConnector, client::TlsStream};

use super::SourceError;
use crate::crds::{Batch, parse};

/// Redirects followed before giving up; release hosts use one or two.
const MAX_REDIRECTS: usize = 5;
/// Release manifests are a few MB.
const MAX_BODY: usize = 64 << 20;
/// For the whole of a fetch, redirects included.
const TIMEOUT: Duration = Duration::from_mins(2);

/// Where plain HTTP is allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlainHttp {
    /// To this machine.
    Loopback,
    /// Everywhere.
    Anywhere,
}

/// A URL of one of the two schemes, without credentials.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Url {
    uri: Uri,
    scheme: Scheme,
    host: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scheme {
    Http,
    Https,
}

/// A text that is no URL that can be fetched.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not an http or https URL without credentials: write https://HOST/PATH")]
pub struct InvalidUrl {
    text: String,
}

/// Why a URL cannot be fetched.
#[derive(Debug, thiserror::Error)]
pub enum UrlError {
    /// Plain HTTP to another machine.
    #[error(
        "plain HTTP to another machine can be altered on its way: use https, or allow it with --allow-http"
    )]
    PlainHttp,
    /// The machine has no certificates to trust.
    #[error(
        "no trusted certificates were found on this machine: install ca-certificates, or set SSL_CERT_FILE"
    )]
    NoRoots,
    /// The TLS library refuses its configuration.
    #[error("TLS cannot be set up")]
    Tls(#[from] rustls::Error),
    /// No connection.
    #[error("cannot connect to {host}")]
    Connect {
        /// Host and port.
        host: String,
        /// What the system says.
        #[source]
        source: std::io::Error,
    },
    /// The exchange broke.
    #[error("the connection failed")]
    Http(#[from] hyper::Error),
    /// The answer is neither success nor a redirect.
    #[error("the server answers {status}: check the URL")]
    Status {
        /// The status.
        status: StatusCode,
    },
    /// A redirect that is not followed.
    #[error(
        "it redirects to {location:?}, which is not followed: fetch it with another client, and use --from-file -"
    )]
    Redirect {
        /// Where to.
        location: String,
    },
    /// A chain of redirects without end.
    #[error("it redirects more than {MAX_REDIRECTS} times: check the URL")]
    TooManyRedirects,
    /// The body breaks off or is too long.
    #[error("the body cannot be read (at most {} MiB are): check the URL", MAX_BODY >> 20)]
    Body(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The body is not text.
    #[error("the body is not UTF-8 text: check the URL")]
    NotText,
    /// It takes too long.
    #[error("it took more than {} seconds: try again, or use another client and --from-file -", TIMEOUT.as_secs())]
    Timeout,
}

// === impl Url ===

impl FromStr for Url {
    type Err = InvalidUrl;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::parse(text).ok_or_else(|| InvalidUrl {
            // What stands before the host may be a password.
            text: text.rsplit('@').next().unwrap_or_default().to_owned(),
        })
    }
}

/// Without the query, which may hold a signature.
impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}://{}{}",
            self.scheme.name(),
            self.authority(),
            self.uri.path()
        )
    }
}

impl Url {
    fn parse(text: &str) -> Option<Self> {
        let uri: Uri = text.parse().ok()?;
        let scheme = match uri.scheme_str()? {
            "http" => Scheme::Http,
            "https" => Scheme::Https,
            _ => return None,
        };
        let authority = uri.authority()?;
        if authority.as_str().contains('@') {
            return None;
        }
        let host = authority.host().trim_matches(['[', ']']).to_owned();
        (!host.is_empty()).then_some(Self { uri, scheme, host })
    }

    fn authority(&self) -> &str {
        self.uri
            .authority()
            .map_or("", http::uri::Authority::as_str)
    }

    fn port(&self) -> u16 {
        self.uri.port_u16().unwrap_or(match self.scheme {
            Scheme::Http => 80,
            Scheme::Https => 443,
        })
    }

    fn is_loopback(&self) -> bool {
        self.host == "localhost"
            || self
                .host
                .parse::<IpAddr>()
                .is_ok_and(|address| address.is_loopback())
    }

    /// Whether the policy on plain HTTP lets this URL be fetched.
    pub fn check(&self, plain_http: PlainHttp) -> Result<(), UrlError> {
        let allowed =
            self.scheme == Scheme::Https || plain_http == PlainHttp::Anywhere || self.is_loopback();
        allowed.then_some(()).ok_or(UrlError::PlainHttp)
    }

    /// The URL that an answer's `Location` leads to.
    fn join(&self, location: &str) -> Result<Self, UrlError> {
        let refused = || UrlError::Redirect {
            location: location.to_owned(),
        };
        let next = if location.starts_with('/') && !location.starts_with("//") {
            let text = format!("{}://{}{location}", self.scheme.name(), self.authority());
            Self::parse(&text)
        } else {
            Self::parse(location)
        };
        let next = next.ok_or_else(refused)?;
        if self.scheme == Scheme::Https && next.scheme == Scheme::Http {
            return Err(refused());
        }
        Ok(next)
    }
}

// === impl Scheme ===

impl Scheme {
    fn name(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
        }
    }
}

/// Fetches a URL and parses what it answers, trusting the machine's certificates.
pub async fn read(url: &Url, plain_http: PlainHttp) -> Result<Batch, SourceError> {
    let failed = |source| SourceError::Url {
        url: url.to_string(),
        source,
    };
    let text = text(url, plain_http).await.map_err(failed)?;
    let name = url.to_string();
    let documents = parse(&name, &text)?;
    Ok(Batch { name, documents })
}

/// Fetches the text of a URL, trusting the machine's certificates.
pub(crate) async fn text(url: &Url, plain_http: PlainHttp) -> Result<String, UrlError> {
    url.check(plain_http)?;
    tokio::time::timeout(TIMEOUT, fetch(url, plain_http, None))
        .await
        .map_err(|_| UrlError::Timeout)?
}

/// Fetches a URL. Without `tls`, servers are trusted by the machine's certificates.
async fn fetch(
    url: &Url,
    plain_http: PlainHttp,
    mut tls: Option<Arc<ClientConfig>>,
) -> Result<String, UrlError> {
    let mut url = url.clone();
    for _ in 0..=MAX_REDIRECTS {
        url.check(plain_http)?;
        let response = match url.scheme {
            Scheme::Http => exchange(&url, connect(&url).await?).await?,
            Scheme::Https => {
                let config = match tls.take() {
                    Some(config) => config,
                    None => tls_config(native_roots()?)?,
                };
                tls = Some(Arc::clone(&config));
                exchange(&url, connect_tls(&url, config).await?).await?
            }
        };
        let status = response.status();
        if status.is_success() {
            return body_text(response).await;
        }
        let location = response.headers().get(header::LOCATION);
        match location.and_then(|value| value.to_str().ok()) {
            Some(location) if status.is_redirection() => url = url.join(location)?,
            _ => return Err(UrlError::Status { status }),
        }
    }
    Err(UrlError::TooManyRedirects)
}

async fn connect(url: &Url) -> Result<TcpStream, UrlError> {
    TcpStream::connect((url.host.as_str(), url.port()))
        .await
        .map_err(|source| connect_error(url, source))
}

async fn connect_tls(
    url: &Url,
    config: Arc<ClientConfig>,
) -> Result<TlsStream<TcpStream>, UrlError> {
    let name = ServerName::try_from(url.host.clone())
        .map_err(|error| connect_error(url, std::io::Error::other(error)))?;
    TlsConnector::from(config)
        .connect(name, connect(url).await?)
        .await
        .map_err(|source| connect_error(url, source))
}

fn connect_error(url: &Url, source: std::io::Error) -> UrlError {
    UrlError::Connect {
        host: url.authority().to_owned(),
        source,
    }
}

async fn exchange<S>(url: &Url, stream: S) -> Result<Response<Incoming>, UrlError>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    // It ends with the response's body; its errors reach the body, too.
    tokio::spawn(connection);
    let path = url.uri.path_and_query().map_or("/", PathAndQuery::as_str);
    let request = Request::get(path)
        .header(header::HOST, url.authority())
        .header(header::ACCEPT, "*/*")
        .header(header::USER_AGENT, "hypershift")
        .body(Empty::<Bytes>::new())
        .expect("invariant: the parts of a parsed URI are valid");
    Ok(sender.send_request(request).await?)
}

async fn body_text(response: Response<Incoming>) -> Result<String, UrlError> {
    let body = Limited::new(response.into_body(), MAX_BODY);
    let bytes = body.collect().await.map_err(UrlError::Body)?.to_bytes();
    String::from_utf8(bytes.into()).map_err(|_| UrlError::NotText)
}

fn native_roots() -> Result<RootCertStore, UrlError> {
    let mut roots = RootCertStore::empty();
    let found = rustls_native_certs::load_native_certs();
    let (added, _) = roots.add_parsable_certificates(found.certs);
    if added == 0 {
        return Err(UrlError::NoRoots);
    }
    Ok(roots)
}

fn tls_config(roots: RootCertStore) -> Result<Arc<ClientConfig>, UrlError> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(Arc::new(config))
}

#[cfg(test)]
mod tests;
