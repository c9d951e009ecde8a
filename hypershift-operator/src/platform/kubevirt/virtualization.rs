//! KubeVirt of the infrastructure cluster: the management cluster, or another one that a user's kubeconfig names.
//!
//! A user's kubeconfig is untrusted: one that would make this process run a program or read a file is rejected, and its
//! server may take little time, memory and connections.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use api::hypershift::v1beta1::platform::PlatformType;
use http::Request;
use http_body_util::{BodyExt as _, Limited};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::APIGroup;
use k8s_openapi::apimachinery::pkg::version::Info;
use kube::client::Body;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::core::Status;
use kube::{Client, Config};
use serde::de::DeserializeOwned;
use serde_json::Value;
use support::error::chain;
use support::reconcile::is_missing;
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout};

use super::infrastructure::external;
use crate::facts::{Facts, Virtualization};

/// How long a result is cached.
const CACHE_DURATION: Duration = Duration::from_mins(1);
/// Timeout of a request.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);
/// The longest response that is read, in bytes.
const LONGEST_BODY: usize = 64 * 1024;
/// The longest version that is reported.
const LONGEST: usize = 64;
/// The API group of KubeVirt with its version.
const KUBEVIRT: &str = "/apis/subresources.kubevirt.io";

/// The infrastructure cluster: a key and version of a Secret, or `None` for the management cluster.
type Place = Option<(String, String)>;

/// Cached results by infrastructure cluster.
#[derive(Debug, Default)]
pub(crate) struct Cache {
    results: Mutex<HashMap<Place, (Instant, Virtualization)>>,
    /// Held during requests to servers that users of a namespace name.
    requests: Mutex<HashMap<String, Arc<Mutex<()>>>>,
}

/// KubeVirt of the infrastructure cluster. If its kubeconfig is missing, no request is made: that is reported with all
/// references.
pub(crate) async fn find(facts: &Facts, client: &Client, cache: &Cache) -> Option<Virtualization> {
    if facts.cluster.spec.platform.type_ != PlatformType::KubeVirt {
        return None;
    }
    let (place, kubeconfig) = match external(facts) {
        None => (None, None),
        Some((name, key)) => {
            let secret = facts.secret(name)?;
            let kubeconfig = secret.data.as_ref()?.get(key)?;
            let uid = secret.metadata.uid.clone().unwrap_or_default();
            let version = secret.metadata.resource_version.clone();
            let place = (format!("{uid}/{key}"), version.unwrap_or_default());
            (Some(place), Some(&kubeconfig.0))
        }
    };
    if let Some(cached) = cache.get_cached(&place).await {
        return Some(cached);
    }
    let Some(bytes) = kubeconfig else {
        let found = virtualization(client).await;
        // Only success is cached, so that fixes are noticed at once.
        if matches!(found, Virtualization::Found { .. }) {
            cache.insert(place, found.clone()).await;
        }
        return Some(found);
    };
    let found = cache.once(&facts.id.namespace, place, of_kubeconfig(bytes));
    Some(found.await)
}

// === impl Cache ===

impl Cache {
    async fn get_cached(&self, place: &Place) -> Option<Virtualization> {
        let results = self.results.lock().await;
        let (at, cached) = results.get(place)?;
        (at.elapsed() < CACHE_DURATION).then(|| cached.clone())
    }

    /// The result of a request to a user's server, one at a time for each namespace. Failures are cached, too: a fixed
    /// kubeconfig is another place.
    async fn once(
        &self,
        namespace: &str,
        place: Place,
        request: impl Future<Output = Virtualization>,
    ) -> Virtualization {
        let lock = {
            let mut requests = self.requests.lock().await;
            requests.retain(|_, lock| Arc::strong_count(lock) > 1);
            Arc::clone(requests.entry(namespace.to_owned()).or_default())
        };
        let _one = lock.lock().await;
        if let Some(cached) = self.get_cached(&place).await {
            return cached;
        }
        let found = request.await;
        self.insert(place, found.clone()).await;
        found
    }

    async fn insert(&self, place: Place, found: Virtualization) {
        let mut results = self.results.lock().await;
        results.retain(|_, (at, _)| at.elapsed() < CACHE_DURATION);
        results.insert(place, (Instant::now(), found));
    }
}

/// Another cluster's, by a kubeconfig.
async fn of_kubeconfig(kubeconfig: &[u8]) -> Virtualization {
    let kubeconfig = match read(kubeconfig) {
        Ok(kubeconfig) => kubeconfig,
        Err(why) => return Virtualization::Unusable(why),
    };
    let options = KubeConfigOptions::default();
    // The error of the library could quote the content.
    let unusable = || Virtualization::Unusable(WITHOUT_CONTEXT.to_owned());
    let Ok(config) = Config::from_custom_kubeconfig(kubeconfig, &options).await else {
        return unusable();
    };
    match Client::try_from(config) {
        Ok(client) => virtualization(&client).await,
        Err(_) => unusable(),
    }
}

const WITHOUT_CONTEXT: &str = "is not usable: its current context must name a cluster with server and certificate-authority-data, and a user with a token or client-certificate-data";

/// Parses an untrusted kubeconfig.
fn read(bytes: &[u8]) -> Result<Kubeconfig, String> {
    let text = std::str::from_utf8(bytes).map_err(|_| "is not UTF-8 text".to_owned())?;
    let kubeconfig =
        Kubeconfig::from_yaml(text).map_err(|_| "is not a valid kubeconfig".to_owned())?;
    match outside(&kubeconfig) {
        None => Ok(kubeconfig),
        Some(field) => Err(format!(
            "has {field}, which refers to a file or program: inline the data in base64"
        )),
    }
}

/// A field that makes the reader run a program or read a local file.
fn outside(kubeconfig: &Kubeconfig) -> Option<&'static str> {
    let clusters = kubeconfig.clusters.iter();
    let mut clusters = clusters.filter_map(|it| it.cluster.as_ref());
    if clusters.any(|it| it.certificate_authority.is_some()) {
        return Some("certificate-authority");
    }
    let users = kubeconfig.auth_infos.iter();
    users.filter_map(|it| it.auth_info.as_ref()).find_map(|it| {
        let fields = [
            ("exec", it.exec.is_some()),
            ("auth-provider", it.auth_provider.is_some()),
            ("tokenFile", it.token_file.is_some()),
            ("client-certificate", it.client_certificate.is_some()),
            ("client-key", it.client_key.is_some()),
        ];
        let found = fields.into_iter().find(|(_, is_there)| *is_there);
        found.map(|(field, _)| field)
    })
}

/// Requests the versions of a cluster, with a timeout.
async fn virtualization(client: &Client) -> Virtualization {
    match timeout(REQUEST_TIMEOUT, request_versions(client)).await {
        Ok(Ok(found)) => found,
        Ok(Err(error)) => Virtualization::Unreachable(describe(&error)),
        Err(_) => Virtualization::Unreachable(format!("no response within {REQUEST_TIMEOUT:?}")),
    }
}

/// An error without the response body: users who may name a server here may not read its responses.
fn describe(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) => format!("it responds with status {}", status.code),
        kube::Error::SerdeError(_) => "its response is not that of an API server".to_owned(),
        error => chain(error),
    }
}

async fn request_versions(client: &Client) -> kube::Result<Virtualization> {
    let kubernetes = get::<Info>(client, "/version").await?.git_version;
    let group = match get::<APIGroup>(client, KUBEVIRT).await {
        Ok(group) => group,
        Err(error) if is_missing(&error) => return Ok(Virtualization::Absent),
        Err(error) => return Err(error),
    };
    let version = group
        .preferred_version
        .or_else(|| group.versions.into_iter().next());
    let Some(version) = version else {
        return Ok(Virtualization::Absent);
    };
    let path = format!("/apis/{}/version", version.group_version);
    let response: Value = get(client, &path).await?;
    let kubevirt = response["gitVersion"].as_str().unwrap_or_default();
    Ok(Virtualization::Found {
        kubernetes: cut(&kubernetes),
        kubevirt: cut(kubevirt),
    })
}

/// Truncates a version, which is untrusted.
fn cut(version: &str) -> String {
    version.chars().take(LONGEST).collect()
}

/// Reads a short response. The library would read one of any length, also that of an error.
async fn get<T: DeserializeOwned>(client: &Client, path: &str) -> kube::Result<T> {
    let request = Request::get(path).body(Body::empty());
    let response = client
        .send(request.map_err(kube::Error::HttpError)?)
        .await?;
    let code = response.status();
    if !code.is_success() {
        let status = Status::failure("", "").with_code(code.as_u16());
        return Err(kube::Error::Api(Box::new(status)));
    }
    let body = Limited::new(response.into_body(), LONGEST_BODY).collect();
    let body = body.await.map_err(kube::Error::Service)?;
    serde_json::from_slice(&body.to_bytes()).map_err(kube::Error::SerdeError)
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use support::testing::{Answer, Expect, Scenario};

    use super::*;

    const VERSION: &str = "/apis/subresources.kubevirt.io/v1/version";

    /// A Kubernetes API server with this response about KubeVirt.
    async fn results(calls: Vec<Expect>) -> Virtualization {
        let version = json!({
            "major": "1", "minor": "33", "gitVersion": "v1.33.5", "gitCommit": "", "gitTreeState": "",
            "buildDate": "", "goVersion": "", "compiler": "", "platform": "",
        });
        let server = Expect::get("/version").answer(Answer::ok(&version));
        let scenario = Scenario::new([server].into_iter().chain(calls));
        let found = virtualization(&scenario.client()).await;
        scenario.finish();
        found
    }

    #[tokio::test]
    async fn versions_are_those_reported_by_the_servers() {
        let version = json!({ "groupVersion": "subresources.kubevirt.io/v1", "version": "v1" });
        let group = json!({
            "kind": "APIGroup",
            "apiVersion": "v1",
            "name": "subresources.kubevirt.io",
            "versions": [version],
            "preferredVersion": version,
        });
        let group = || Expect::get(KUBEVIRT).answer(Answer::ok(&group));
        let own = Expect::get(VERSION).answer(Answer::ok(&json!({ "gitVersion": "v1.6.0" })));
        let found = Virtualization::Found {
            kubernetes: "v1.33.5".to_owned(),
            kubevirt: "v1.6.0".to_owned(),
        };
        assert_eq!(results(vec![group(), own]).await, found);
        let missing = Expect::get(KUBEVIRT).answer(Answer::error(404, "NotFound"));
        assert_eq!(results(vec![missing]).await, Virtualization::Absent);
        for (code, reason) in [(403, "Forbidden"), (503, "ServiceUnavailable")] {
            let refused = Expect::get(VERSION).answer(Answer::error(code, reason));
            let found = results(vec![group(), refused]).await;
            let expected = format!("it responds with status {code}");
            assert_eq!(found, Virtualization::Unreachable(expected));
        }
    }

    #[tokio::test]
    async fn long_responses_are_not_read_to_the_end() {
        let endless = "x".repeat(LONGEST_BODY);
        let long = json!({ "kind": "APIGroup", "name": endless, "versions": [] });
        let long = Expect::get(KUBEVIRT).answer(Answer::ok(&long));
        let Virtualization::Unreachable(message) = results(vec![long]).await else {
            panic!("it was read");
        };
        assert!(message.contains("length limit exceeded"), "{message}");
        assert!(message.len() < 200, "{message}");
    }

    #[tokio::test(start_paused = true)]
    async fn users_servers_are_requested_one_at_a_time_and_rarely() {
        let cache = Cache::default();
        let place = |version: &str| Some(("uid/kubeconfig".to_owned(), version.to_owned()));
        let failed = || Virtualization::Unreachable("no".to_owned());
        let slow = async |namespace, version| {
            let request = async {
                tokio::time::sleep(REQUEST_TIMEOUT).await;
                failed()
            };
            cache.once(namespace, place(version), request).await
        };
        let begun = Instant::now();
        // The second is the first, the third waits for it, and the fourth is of another namespace.
        let all = tokio::join!(
            slow("a", "1"),
            slow("a", "1"),
            slow("a", "2"),
            slow("b", "3")
        );
        assert_eq!(begun.elapsed(), REQUEST_TIMEOUT * 2);
        assert_eq!(all.0, failed());
        let begun = Instant::now();
        slow("a", "1").await;
        assert_eq!(begun.elapsed(), Duration::ZERO, "the failure is cached");
        tokio::time::advance(CACHE_DURATION).await;
        slow("a", "1").await;
        assert_eq!(begun.elapsed(), CACHE_DURATION + REQUEST_TIMEOUT);
        assert!(
            cache.requests.lock().await.len() <= 1,
            "others are forgotten"
        );
    }

    fn kubeconfig(cluster: &Value, user: &Value) -> Vec<u8> {
        let config = json!({
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{ "name": "c", "cluster": cluster }],
            "users": [{ "name": "u", "user": user }],
            "contexts": [{ "name": "x", "context": { "cluster": "c", "user": "u" } }],
            "current-context": "x",
        });
        config.to_string().into_bytes()
    }

    #[test]
    fn user_kubeconfigs_cannot_run_programs_or_read_files() {
        let server = json!({ "server": "https://192.0.2.1:6443" });
        let token = json!({ "token": "t" });
        for (cluster, user, expected) in [
            (server.clone(), token.clone(), None),
            (
                json!({ "server": "https://192.0.2.1", "certificate-authority": "/etc/passwd" }),
                token,
                Some("certificate-authority"),
            ),
            (
                server.clone(),
                json!({ "exec": { "apiVersion": "client.authentication.k8s.io/v1", "command": "/bin/true" } }),
                Some("exec"),
            ),
            (
                server.clone(),
                json!({ "auth-provider": { "name": "oidc", "config": {} } }),
                Some("auth-provider"),
            ),
            (
                server.clone(),
                json!({ "tokenFile": "/var/run/secrets/kubernetes.io/serviceaccount/token" }),
                Some("tokenFile"),
            ),
            (
                server.clone(),
                json!({ "client-certificate": "/a", "client-key": "/b" }),
                Some("client-certificate"),
            ),
            (server, json!({ "client-key": "/b" }), Some("client-key")),
        ] {
            let found = read(&kubeconfig(&cluster, &user));
            match expected {
                None => assert!(found.is_ok(), "{user}"),
                Some(field) => {
                    let message = found.unwrap_err();
                    assert!(message.contains(field), "{message}");
                }
            }
        }
    }

    #[tokio::test]
    async fn unreadable_kubeconfigs_are_reported_without_content() {
        for bytes in [
            &b"\xff"[..],
            b"s3cret",
            b"clusters: s3cret",
            b"{current-context: s3cret}",
        ] {
            let Virtualization::Unusable(message) = of_kubeconfig(bytes).await else {
                unreachable!("{bytes:?}");
            };
            assert!(!message.contains("s3cret"), "{message}");
        }
    }
}
