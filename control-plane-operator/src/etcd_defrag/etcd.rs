//! A client of etcd's JSON gateway.

use std::path::PathBuf;
use std::time::Duration;

use http::{Request, Uri};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use support::error::chain;

use super::plan::Member;

/// Timeout of connecting.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Timeout of a request.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
/// Timeout of defragmenting: the member is blocked meanwhile.
const DEFRAGMENT_TIMEOUT: Duration = Duration::from_mins(2);

/// Files of the client certificate and of the server CA.
#[derive(Debug, Clone)]
pub(super) struct Credentials {
    pub(super) ca: PathBuf,
    pub(super) certificate: PathBuf,
    pub(super) key: PathBuf,
}

/// A connection to one member.
#[derive(Clone)]
pub(super) struct Connection(kube::Client);

/// Status of a member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Status {
    pub(super) size: u64,
    in_use: u64,
    is_leader: bool,
    is_learner: bool,
    problem: Option<String>,
}

/// A request to etcd failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    /// A file is not readable.
    #[error("failed to read {}", path.display())]
    File {
        path: PathBuf,
        source: std::io::Error,
    },
    /// The CA file contains no certificate.
    #[error("{} contains no certificate", path.display())]
    NoCertificate { path: PathBuf },
    /// The URL of a member is invalid.
    #[error("invalid member URL {url:?}")]
    Address { url: String },
    /// Creating the client or the request failed.
    #[error("failed to request {what} from etcd")]
    Request {
        what: &'static str,
        source: kube::Error,
    },
    /// The request timed out.
    #[error("timed out requesting {what} from etcd")]
    Timeout { what: &'static str },
}

/// 64-bit numbers are strings in this format.
#[derive(Debug, Deserialize)]
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
    #[serde(alias = "clientURLs", alias = "clientUrls")]
    client_urls: Vec<String>,
}

/// A number, possibly in a string.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(from = "serde_json::Value")]
struct Number(u64);

// === impl Number ===

impl From<serde_json::Value> for Number {
    fn from(value: serde_json::Value) -> Self {
        let text = value.as_str().and_then(|text| text.parse().ok());
        Self(text.or(value.as_u64()).unwrap_or_default())
    }
}

impl Default for RawStatus {
    fn default() -> Self {
        Self {
            header: Header::default(),
            db_size: Number(0),
            db_size_in_use: Number(0),
            leader: Number(0),
            is_learner: false,
            errors: Vec::new(),
        }
    }
}

/// Returns all members with their status.
pub(super) async fn observe_members(
    credentials: &Credentials,
    any: &Uri,
) -> Result<Vec<Member>, Error> {
    let members = Connection::open(credentials, &any.to_string())?
        .members()
        .await?;
    let mut observed = Vec::new();
    for member in members {
        let url = member.client_urls.into_iter().next().unwrap_or_default();
        let status = match Connection::open(credentials, &url) {
            Ok(connection) => connection.status().await,
            Err(error) => Err(error),
        };
        observed.push(member_of(member.name, url, status));
    }
    Ok(observed)
}

fn member_of(name: String, url: String, status: Result<Status, Error>) -> Member {
    let status = status.unwrap_or_else(|error| Status {
        size: 0,
        in_use: 0,
        is_leader: false,
        is_learner: false,
        problem: Some(chain(&error)),
    });
    Member {
        name,
        url,
        size: status.size,
        in_use: status.in_use,
        is_leader: status.is_leader,
        is_learner: status.is_learner,
        problem: status.problem,
    }
}

// === impl Connection ===

impl Connection {
    /// Connects to a member. Files are read each time, because certificates are renewed.
    pub(super) fn open(credentials: &Credentials, url: &str) -> Result<Self, Error> {
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
        config.connect_timeout = Some(CONNECT_TIMEOUT);
        config.default_retry = false;
        // Not `support::client`: its write timeout is too short for defragmenting, so `call` sets timeouts.
        let client = kube::Client::try_from(config);
        client.map(Self).map_err(|source| Error::Request {
            what: "anything",
            source,
        })
    }

    async fn members(&self) -> Result<Vec<RawMember>, Error> {
        let response: Members = self
            .call(
                "the member list",
                "/v3/cluster/member/list",
                REQUEST_TIMEOUT,
            )
            .await?;
        Ok(response.members)
    }

    pub(super) async fn status(&self) -> Result<Status, Error> {
        let raw: RawStatus = self
            .call("the status", "/v3/maintenance/status", REQUEST_TIMEOUT)
            .await?;
        Ok(raw.into())
    }

    pub(super) async fn defragment(&self) -> Result<(), Error> {
        let path = "/v3/maintenance/defragment";
        let what = "defragmenting";
        let done: Result<serde_json::Value, _> = self.call(what, path, DEFRAGMENT_TIMEOUT).await;
        done.map(drop)
    }

    async fn call<T: DeserializeOwned>(
        &self,
        what: &'static str,
        path: &str,
        time: Duration,
    ) -> Result<T, Error> {
        let failed = |source| Error::Request { what, source };
        let request = Request::post(path).body(b"{}".to_vec());
        let request = request.map_err(|error| failed(kube::Error::HttpError(error)))?;
        match tokio::time::timeout(time, self.0.request(request)).await {
            Ok(response) => response.map_err(failed),
            Err(_) => Err(Error::Timeout { what }),
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
    use rustls::pki_types::CertificateDer;
    use rustls::pki_types::pem::PemObject;

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

fn text(path: &std::path::Path) -> String {
    path.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use support::testing::{Answer, Expect, Scenario};

    use super::*;

    #[tokio::test]
    async fn etcd_responses_are_parsed() {
        let status = json!({
            "header": { "cluster_id": "1", "member_id": "18446744073709551615", "raft_term": "2" },
            "version": "3.6.5", "dbSize": "209715200", "leader": "18446744073709551615",
            "dbSizeInUse": "1048576", "raftIndex": "9",
        });
        let list = json!({ "members": [{
            "ID": "7", "name": "etcd-0", "peerURLs": ["https://a:2380"], "clientURLs": ["https://a:2379"],
        }]});
        let scenario = Scenario::new([
            Expect::post("/v3/cluster/member/list").answer(Answer::ok(&list)),
            Expect::post("/v3/maintenance/status").answer(Answer::ok(&status)),
            Expect::post("/v3/maintenance/defragment").answer(Answer::error(503, "Unavailable")),
        ]);
        let connection = Connection(scenario.client());
        let members = connection.members().await.unwrap();
        assert_eq!(members[0].client_urls, ["https://a:2379"]);
        let expected = Status {
            size: 209_715_200,
            in_use: 1_048_576,
            is_leader: true,
            is_learner: false,
            problem: None,
        };
        assert_eq!(connection.status().await.unwrap(), expected);
        assert!(connection.defragment().await.is_err());
        scenario.finish();
    }

    #[test]
    fn unreachable_members_are_unhealthy() {
        let member = member_of("a".into(), String::new(), Err(Error::Timeout { what: "x" }));
        assert_eq!(
            member.problem.as_deref(),
            Some("timed out requesting x from etcd")
        );
    }

    #[test]
    fn invalid_member_urls_are_rejected() {
        let credentials = Credentials {
            ca: "/none".into(),
            certificate: "/none".into(),
            key: "/none".into(),
        };
        for url in ["", "/", "etcd-0:2379"] {
            let opened = Connection::open(&credentials, url);
            assert!(matches!(opened, Err(Error::Address { .. })), "{url}");
        }
    }
}
