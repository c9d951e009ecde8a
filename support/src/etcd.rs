//! A client of etcd's JSON gateway: its members, their health, and snapshots.

use std::path::{Path, PathBuf};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::{Request, Response, StatusCode, Uri};
use http_body_util::{BodyExt as _, Limited};
use kube::client::Body;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::time::timeout;

mod member_urls;
mod snapshot;

pub use member_urls::{ForeignUrl, MemberUrls, PODS};

/// Timeout of defragmenting: the member is blocked meanwhile.
const DEFRAGMENT_TIMEOUT: Duration = Duration::from_mins(2);
/// The longest response: etcd's own limit of a request is 1.5 MiB, and these name members only.
const LARGEST_RESPONSE: usize = 1 << 20;
/// How much of a refusal is reported.
const LONGEST_REFUSAL: usize = 200;
/// What a health check reads: any key, which need not exist.
const HEALTH_KEY: &str = "health";

/// Files of the client certificate and of the server CA.
#[derive(Debug, Clone)]
pub struct Credentials {
    /// The certificate authority of servers, PEM.
    pub ca: PathBuf,
    /// The client certificate, PEM.
    pub certificate: PathBuf,
    /// Its key, PEM.
    pub key: PathBuf,
}

/// How long a member may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// To accept a connection.
    pub connect: Duration,
    /// To respond to a request.
    pub request: Duration,
}

/// A connection to one member.
#[derive(Clone)]
pub struct Connection {
    client: kube::Client,
    request_timeout: Duration,
}

/// A member, as the cluster lists it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Member {
    /// Its name; empty for one that was added and has not started yet.
    pub name: String,
    /// Where other members reach it.
    pub peer_urls: Vec<String>,
    /// Where clients reach it.
    pub client_urls: Vec<String>,
}

/// Status of a member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    /// Size of the database file in bytes.
    pub size: u64,
    /// Bytes of it that are in use.
    pub in_use: u64,
    /// Whether it leads.
    pub is_leader: bool,
    /// Whether it has no vote yet.
    pub is_learner: bool,
    /// An alarm, or that there is no leader.
    pub problem: Option<String>,
}

/// A request to etcd failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file is not readable.
    #[error("failed to read {}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// The CA file contains no certificate.
    #[error("{} contains no certificate", path.display())]
    NoCertificate {
        /// The file.
        path: PathBuf,
    },
    /// The URL of a member is invalid.
    #[error("invalid member URL {url:?}")]
    Address {
        /// The text.
        url: String,
    },
    /// Creating the client or the request failed.
    #[error("failed to request {what} from etcd")]
    Request {
        /// What was requested.
        what: &'static str,
        /// The cause.
        source: kube::Error,
    },
    /// The response is not readable, or longer than 1 MiB.
    #[error("failed to read the response to a request of {what} from etcd")]
    Response {
        /// What was requested.
        what: &'static str,
        /// The cause.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// etcd refused the request.
    #[error("etcd refused to return {what}: {status}: {message}")]
    Refused {
        /// What was requested.
        what: &'static str,
        /// The HTTP status.
        status: StatusCode,
        /// The beginning of the response.
        message: String,
    },
    /// The request timed out.
    #[error("timed out requesting {what} from etcd")]
    Timeout {
        /// What was requested.
        what: &'static str,
    },
    /// A member reports an alarm.
    #[error("etcd reports the alarm {0}")]
    Alarm(String),
    /// The snapshot did not arrive as etcd sent it.
    #[error("the snapshot is damaged: {0}")]
    Snapshot(&'static str),
    /// The snapshot could not be stored.
    #[error("failed to write the snapshot")]
    Write(#[source] std::io::Error),
}

/// 64-bit numbers are strings in this format.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RawStatus {
    header: Header,
    db_size: Number,
    db_size_in_use: Number,
    leader: Number,
    is_learner: bool,
    errors: Vec<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Header {
    member_id: Number,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Members {
    members: Vec<RawMember>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct RawMember {
    name: String,
    #[serde(alias = "peerURLs", alias = "peerUrls")]
    peer_urls: Vec<String>,
    #[serde(alias = "clientURLs", alias = "clientUrls")]
    client_urls: Vec<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Alarms {
    alarms: Vec<Alarm>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Alarm {
    alarm: String,
}

/// A number, possibly in a string.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(from = "Value")]
struct Number(u64);

// === impl Number ===

impl From<Value> for Number {
    fn from(value: Value) -> Self {
        let text = value.as_str().and_then(|text| text.parse().ok());
        Self(text.or(value.as_u64()).unwrap_or_default())
    }
}

// === impl Connection ===

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(5),
            request: Duration::from_secs(10),
        }
    }
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Connection")
    }
}

impl Connection {
    /// Connects to a member. Files are read each time, because certificates are renewed.
    pub fn open(credentials: &Credentials, url: &str) -> Result<Self, Error> {
        Self::open_with(credentials, url, Timeouts::default())
    }

    /// The same with other timeouts.
    pub fn open_with(
        credentials: &Credentials,
        url: &str,
        timeouts: Timeouts,
    ) -> Result<Self, Error> {
        let address = || Error::Address {
            url: url.to_owned(),
        };
        let uri: Uri = url.parse().map_err(|_| address())?;
        if uri.scheme().is_none() || uri.host().is_none() {
            return Err(address());
        }
        let mut config = kube::Config::new(uri);
        config.root_cert = Some(authorities(&credentials.ca)?);
        config.auth_info.client_certificate = Some(text(&credentials.certificate));
        config.auth_info.client_key = Some(text(&credentials.key));
        config.connect_timeout = Some(timeouts.connect);
        config.default_retry = false;
        // Not `crate::client`: its write timeout is too short for defragmenting, so `call` sets timeouts.
        let client = kube::Client::try_from(config);
        let client = client.map_err(|source| Error::Request {
            what: "anything",
            source,
        })?;
        Ok(Self {
            client,
            request_timeout: timeouts.request,
        })
    }

    /// The members of the cluster.
    pub async fn members(&self) -> Result<Vec<Member>, Error> {
        let path = "/v3/cluster/member/list";
        let found: Members = self
            .call("the member list", path, &json!({}), self.request_timeout)
            .await?;
        Ok(found.members.into_iter().map(Member::from).collect())
    }

    /// Adds a member that will listen at a peer URL.
    pub async fn add_member(&self, peer_url: &str) -> Result<(), Error> {
        let path = "/v3/cluster/member/add";
        let body = json!({ "peerURLs": [peer_url] });
        let added: Value = self
            .call("a new member", path, &body, self.request_timeout)
            .await?;
        drop(added);
        Ok(())
    }

    /// The status of the member.
    pub async fn status(&self) -> Result<Status, Error> {
        let path = "/v3/maintenance/status";
        let raw: RawStatus = self
            .call("the status", path, &json!({}), self.request_timeout)
            .await?;
        Ok(raw.into())
    }

    /// Defragments the member.
    pub async fn defragment(&self) -> Result<(), Error> {
        let path = "/v3/maintenance/defragment";
        let what = "defragmenting";
        let done: Result<Value, _> = self.call(what, path, &json!({}), DEFRAGMENT_TIMEOUT).await;
        done.map(drop)
    }

    /// Whether the member answers a read with a quorum, and has no alarm. A client that may not read is answered, too.
    pub async fn check_health(&self, within: Duration) -> Result<(), Error> {
        let key = json!({ "key": STANDARD.encode(HEALTH_KEY) });
        let read: Result<Value, _> = self.call("a key", "/v3/kv/range", &key, within).await;
        match read {
            Err(error) if !error.is_forbidden() => return Err(error),
            Ok(_) | Err(_) => {}
        }
        let path = "/v3/maintenance/alarm";
        let body = json!({ "action": "GET" });
        let found: Alarms = self.call("the alarms", path, &body, within).await?;
        match found.alarms.into_iter().next() {
            Some(alarm) => Err(Error::Alarm(alarm.alarm)),
            None => Ok(()),
        }
    }

    async fn call<T: DeserializeOwned>(
        &self,
        what: &'static str,
        path: &str,
        body: &Value,
        time: Duration,
    ) -> Result<T, Error> {
        match timeout(time, self.exchange(what, path, body)).await {
            Ok(outcome) => outcome,
            Err(_) => Err(Error::Timeout { what }),
        }
    }

    /// Not by the client's own methods: they read responses of any size, and take errors for those of Kubernetes.
    async fn exchange<T: DeserializeOwned>(
        &self,
        what: &'static str,
        path: &str,
        body: &Value,
    ) -> Result<T, Error> {
        let response = self.send(what, path, body).await?;
        let status = response.status();
        let body = Limited::new(response.into_body(), LARGEST_RESPONSE);
        let body = body.collect().await;
        let body = body
            .map_err(|source| Error::Response { what, source })?
            .to_bytes();
        if !status.is_success() {
            let text = String::from_utf8_lossy(&body);
            let message = text.trim().chars().take(LONGEST_REFUSAL).collect();
            return Err(Error::Refused {
                what,
                status,
                message,
            });
        }
        serde_json::from_slice(&body).map_err(|source| Error::Response {
            what,
            source: source.into(),
        })
    }

    /// Sends a request whose response is a stream.
    async fn stream(&self, what: &'static str, path: &str) -> Result<Response<Body>, Error> {
        match timeout(self.request_timeout, self.send(what, path, &json!({}))).await {
            Ok(response) => response,
            Err(_) => Err(Error::Timeout { what }),
        }
    }

    async fn send(
        &self,
        what: &'static str,
        path: &str,
        body: &Value,
    ) -> Result<Response<Body>, Error> {
        let failed = |source| Error::Request { what, source };
        let request = Request::post(path).body(Body::from(body.to_string().into_bytes()));
        let request = request.map_err(|error| failed(kube::Error::HttpError(error)))?;
        self.client.send(request).await.map_err(failed)
    }
}

// === impl Error ===

impl Error {
    /// etcd's gateway has a code of gRPC in the body, and says by the HTTP status what it means.
    fn is_forbidden(&self) -> bool {
        matches!(self, Self::Refused { status, .. } if *status == StatusCode::FORBIDDEN)
    }
}

impl From<RawMember> for Member {
    fn from(raw: RawMember) -> Self {
        Self {
            name: raw.name,
            peer_urls: raw.peer_urls,
            client_urls: raw.client_urls,
        }
    }
}

impl From<RawStatus> for Status {
    fn from(raw: RawStatus) -> Self {
        Self {
            size: raw.db_size.0,
            in_use: raw.db_size_in_use.0,
            is_leader: raw.leader == raw.header.member_id,
            is_learner: raw.is_learner,
            problem: raw.errors.into_iter().next(),
        }
    }
}

fn authorities(path: &PathBuf) -> Result<Vec<Vec<u8>>, Error> {
    let pem = std::fs::read(path).map_err(|source| Error::File {
        path: path.clone(),
        source,
    })?;
    let found: Vec<_> = CertificateDer::pem_slice_iter(&pem)
        .filter_map(Result::ok)
        .map(|certificate| certificate.to_vec())
        .collect();
    if found.is_empty() {
        return Err(Error::NoCertificate { path: path.clone() });
    }
    Ok(found)
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests;
