//! Requests to infrastructure clusters: the management cluster, or another one that a user's kubeconfig names.
//!
//! A user's kubeconfig is untrusted: its server may take little time, memory and connections.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use http::Request;
use http_body_util::{BodyExt as _, Limited};
use kube::api::{ApiResource, DeleteParams, DynamicObject, Preconditions};
use kube::client::Body;
use kube::core::Status;
use kube::{Client, Resource as _};
use serde::de::{DeserializeOwned, IgnoredAny};
use support::error::chain;
use support::kubeconfig;
use support::reconcile::{is_conflict, is_missing};
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout_at};

use super::infrastructure::external;
use crate::facts::{Facts, InfraTime};

/// How long a result is cached.
pub(super) const CACHE_DURATION: Duration = Duration::from_mins(1);
/// Timeout of a request.
pub(super) const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);
/// The longest response that is read, in bytes.
pub(super) const LONGEST_BODY: usize = 64 * 1024;
/// The longest name of a namespace.
const LONGEST_NAMESPACE: usize = 63;
/// The longest name of an object.
const LONGEST_NAME: usize = 253;

/// What was asked: a key and version of a Secret with more, or `None` for the management cluster.
pub(crate) type Place = Option<(String, String)>;

/// The kubeconfig of a user.
pub(crate) struct Given<'a> {
    /// Which version of which Secret it is.
    pub(crate) place: (String, String),
    pub(crate) kubeconfig: &'a [u8],
    /// Namespace and name of the Secret.
    pub(crate) secret: String,
}

/// A cluster that virtual machines run on, and their namespace in it.
#[derive(Clone)]
pub(crate) struct InfraCluster {
    client: Client,
    namespace: String,
    /// When no more requests are sent to a user's server, and what is reported then.
    limit: Option<(Instant, String)>,
}

/// Results of requests to infrastructure clusters.
#[derive(Debug)]
pub(crate) struct Recent<T> {
    results: Mutex<HashMap<Place, (Instant, T)>>,
    /// Held during requests to servers that users of a namespace name.
    requests: Mutex<HashMap<String, Arc<Mutex<()>>>>,
}

// === impl InfraCluster ===

impl InfraCluster {
    /// The management cluster, with the namespace of a control plane.
    pub(crate) fn local(client: Client, namespace: &str) -> Self {
        Self {
            client,
            namespace: namespace.to_owned(),
            limit: None,
        }
    }

    /// The cluster of a user's kubeconfig, to which requests are sent until the deadline. An error says what is wrong with it.
    pub(crate) async fn external(
        user: &Given<'_>,
        namespace: &str,
        deadline: Instant,
    ) -> Result<Self, String> {
        let is_namespace = namespace.len() <= LONGEST_NAMESPACE && !namespace.contains('.');
        if !is_namespace || !is_name(namespace) {
            return Err(
                "is used with a spec.platform.kubevirt.credentials.infraNamespace that is not the name of a namespace"
                    .to_owned(),
            );
        }
        Ok(Self {
            client: connect(user.kubeconfig).await?,
            namespace: namespace.to_owned(),
            limit: Some((deadline, user.silence())),
        })
    }

    /// The cluster of the kubeconfig that a cluster refers to.
    pub(crate) async fn of(
        facts: &Facts,
        user: &Given<'_>,
        deadline: Instant,
    ) -> Result<Self, String> {
        let kubevirt = facts.cluster.spec.platform.kubevirt.as_ref();
        let credentials = kubevirt.and_then(|it| it.credentials.as_ref());
        let namespace = credentials.map_or("", |it| it.infra_namespace.as_str());
        let infra = Self::external(user, namespace, deadline).await;
        infra.map_err(|why| format!("the kubeconfig of the infrastructure cluster {why}"))
    }

    pub(crate) fn namespace(&self) -> &str {
        &self.namespace
    }

    /// Requests for objects of a kind in the namespace.
    pub(super) fn requests(&self, kind: &ApiResource) -> kube::core::Request {
        kube::core::Request::new(DynamicObject::url_path(kind, Some(&self.namespace)))
    }

    /// Sends a request for objects of a kind in the namespace.
    pub(super) async fn send<T: DeserializeOwned>(
        &self,
        request: Result<Request<Vec<u8>>, kube::core::request::Error>,
        longest: usize,
    ) -> kube::Result<T> {
        let request = request.map_err(kube::Error::BuildRequest)?.map(Body::from);
        let late = Instant::now() + REQUEST_TIMEOUT;
        let limit = self.limit.as_ref();
        let late = limit.map_or(late, |(deadline, _)| late.min(*deadline));
        let answer = timeout_at(late, send(&self.client, request, longest)).await;
        answer.unwrap_or_else(|_| {
            let silence = limit.map_or("no response in time", |(_, silence)| silence);
            Err(kube::Error::Service(silence.into()))
        })
    }

    /// Deletes the object with this UID, and no other one of its name.
    pub(super) async fn delete(
        &self,
        objects: &kube::core::Request,
        name: &str,
        uid: Option<&str>,
    ) -> kube::Result<()> {
        let params = DeleteParams {
            preconditions: Some(Preconditions {
                uid: uid.map(str::to_owned),
                resource_version: None,
            }),
            ..DeleteParams::default()
        };
        let request = objects.delete(name, &params);
        match self.send::<IgnoredAny>(request, LONGEST_BODY).await {
            Err(error) if !is_missing(&error) && !is_conflict(&error) => Err(error),
            Ok(_) | Err(_) => Ok(()),
        }
    }
}

// === impl Given ===

impl Given<'_> {
    /// What is reported if the server does not respond in time.
    pub(crate) fn silence(&self) -> String {
        let server = kubeconfig::server(self.kubeconfig);
        format!(
            "no response in time from {} (Secret {}), whose responses may take {:?} of one reconcile: check that the server is \
             reachable and not overloaded, or correct the Secret",
            server.as_deref().unwrap_or("the server"),
            self.secret,
            InfraTime::TOTAL
        )
    }
}

// === impl Recent ===

impl<T> Default for Recent<T> {
    fn default() -> Self {
        Self {
            results: Mutex::default(),
            requests: Mutex::default(),
        }
    }
}

impl<T: Clone> Recent<T> {
    pub(super) async fn get(&self, place: &Place) -> Option<T> {
        let results = self.results.lock().await;
        let (at, cached) = results.get(place)?;
        (at.elapsed() < CACHE_DURATION).then(|| cached.clone())
    }

    /// The result of a request to a user's server, one at a time for each namespace, until the deadline that the request
    /// gets. Failures are cached, too: a fixed kubeconfig is another place. None if no time is left; that is not cached.
    pub(crate) async fn once<F: Future<Output = T>>(
        &self,
        namespace: &str,
        place: Place,
        time: &InfraTime,
        request: impl FnOnce(Instant) -> F,
    ) -> Option<T> {
        let lock = {
            let mut requests = self.requests.lock().await;
            requests.retain(|_, lock| Arc::strong_count(lock) > 1);
            Arc::clone(requests.entry(namespace.to_owned()).or_default())
        };
        let _one = lock.lock().await;
        if let Some(cached) = self.get(&place).await {
            return Some(cached);
        }
        if time.is_over() {
            return None;
        }
        let begun = Instant::now();
        let found = request(time.deadline()).await;
        time.count(begun.elapsed());
        self.insert(place, found.clone()).await;
        Some(found)
    }

    pub(super) async fn insert(&self, place: Place, found: T) {
        let mut results = self.results.lock().await;
        results.retain(|_, (at, _)| at.elapsed() < CACHE_DURATION);
        results.insert(place, (Instant::now(), found));
    }
}

/// The kubeconfig that a cluster refers to; if it is missing, that is reported with all references.
pub(crate) fn given(facts: &Facts) -> Option<Given<'_>> {
    let (name, key) = external(facts)?;
    let secret = facts.secret(name)?;
    let kubeconfig = secret.data.as_ref()?.get(key)?;
    let uid = secret.metadata.uid.as_deref().unwrap_or_default();
    let version = secret.metadata.resource_version.clone();
    Some(Given {
        place: (format!("{uid}/{key}"), version.unwrap_or_default()),
        kubeconfig: &kubeconfig.0,
        secret: format!("{}/{name}", facts.id.namespace),
    })
}

/// A client by an untrusted kubeconfig. An error says what is wrong with it, without its content.
pub(super) async fn connect(kubeconfig: &[u8]) -> Result<Client, String> {
    let config = kubeconfig::untrusted(kubeconfig).await?;
    kubeconfig::client(config).map_err(|_| kubeconfig::UNUSABLE.to_owned())
}

/// An error without the response body: users who may name a server here may not read its responses.
pub(super) fn describe(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) => format!("it responds with status {}", status.code),
        kube::Error::SerdeError(_) => "its response is not that of an API server".to_owned(),
        error => chain(error),
    }
}

/// Whether a text is the name of an object. What a user's server returns may be anything.
pub(super) fn is_name(text: &str) -> bool {
    let is_valid = |it: u8| it.is_ascii_lowercase() || it.is_ascii_digit() || b"-.".contains(&it);
    let is_end = |it: Option<&u8>| it.is_some_and(u8::is_ascii_alphanumeric);
    let bytes = text.as_bytes();
    bytes.len() <= LONGEST_NAME
        && bytes.iter().all(|it| is_valid(*it))
        && is_end(bytes.first())
        && is_end(bytes.last())
}

/// Reads a short response. The library would read one of any length, also that of an error.
pub(super) async fn send<T: DeserializeOwned>(
    client: &Client,
    request: Request<Body>,
    longest: usize,
) -> kube::Result<T> {
    let response = client.send(request).await?;
    let code = response.status();
    if !code.is_success() {
        let status = Status::failure("", "").with_code(code.as_u16());
        return Err(kube::Error::Api(Box::new(status)));
    }
    let body = Limited::new(response.into_body(), longest).collect();
    let body = body.await.map_err(kube::Error::Service)?;
    serde_json::from_slice(&body.to_bytes()).map_err(kube::Error::SerdeError)
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn users_servers_are_requested_one_at_a_time_and_rarely() {
        let recent = Recent::default();
        let place = |version: &str| Some(("uid/kubeconfig".to_owned(), version.to_owned()));
        let slow = async |namespace, version| {
            let request = |_| async {
                tokio::time::sleep(REQUEST_TIMEOUT).await;
                "failed"
            };
            let time = InfraTime::default();
            recent.once(namespace, place(version), &time, request).await
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
        assert_eq!(all.0, Some("failed"));
        let begun = Instant::now();
        slow("a", "1").await;
        assert_eq!(begun.elapsed(), Duration::ZERO, "the failure is cached");
        tokio::time::advance(CACHE_DURATION).await;
        slow("a", "1").await;
        assert_eq!(begun.elapsed(), CACHE_DURATION + REQUEST_TIMEOUT);
        assert!(
            recent.requests.lock().await.len() <= 1,
            "others are forgotten"
        );
    }

    /// Check T02: each request may wait for its deadline, and the reconcile ends.
    #[tokio::test(start_paused = true)]
    async fn requests_of_a_reconcile_share_their_time() {
        let recent = Recent::default();
        let place = |name: &str| Some((name.to_owned(), "1".to_owned()));
        let time = InfraTime::default();
        let slow = async |name, time: &InfraTime| {
            let request = |deadline: Instant| async move {
                let late = deadline.min(Instant::now() + Duration::from_secs(4));
                tokio::time::sleep_until(late).await;
                "failed"
            };
            recent.once("a", place(name), time, request).await
        };
        let begun = Instant::now();
        for name in ["one", "two", "three"] {
            assert_eq!(slow(name, &time).await, Some("failed"), "{name}");
        }
        assert_eq!(begun.elapsed(), InfraTime::TOTAL);
        assert_eq!(slow("four", &time).await, None);
        assert_eq!(slow("one", &time).await, Some("failed"), "it is cached");
        assert_eq!(begun.elapsed(), InfraTime::TOTAL);
        // The next reconcile.
        let found = slow("four", &InfraTime::default()).await;
        assert_eq!(found, Some("failed"), "the lack of time was not cached");
    }

    /// Check T02: a server that sends a byte now and then gets as long as one that is silent.
    #[tokio::test]
    async fn servers_that_drip_are_given_up_on() {
        drop(rustls::crypto::aws_lc_rs::default_provider().install_default());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let server = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            // A client does not expect a response before it has sent its request.
            let mut request = [0; 4096];
            assert!(stream.read(&mut request).await.unwrap() > 0);
            let head = "HTTP/1.1 200 OK\r\nContent-Length: 10000\r\n\r\n";
            let mut sent = stream.write_all(head.as_bytes()).await;
            while sent.is_ok() {
                tokio::time::sleep(Duration::from_millis(20)).await;
                sent = stream.write_all(b" ").await;
            }
        });
        let mut config = kube::Config::new(format!("http://{address}").parse().unwrap());
        config.root_cert = Some(Vec::new());
        let begun = Instant::now();
        let infra = InfraCluster {
            client: Client::try_from(config).unwrap(),
            namespace: "machines".to_owned(),
            limit: Some((
                begun + Duration::from_millis(500),
                "no response in time".to_owned(),
            )),
        };
        // The deadline is that of all requests of a pass.
        for _ in 0..2 {
            let request = Request::get("/version").body(Vec::new()).unwrap();
            let answer = infra.send::<serde_json::Value>(Ok(request), LONGEST_BODY);
            let message = describe(&answer.await.unwrap_err());
            assert!(message.contains("no response in time"), "{message}");
        }
        assert!(begun.elapsed() < REQUEST_TIMEOUT, "{:?}", begun.elapsed());
        server.abort();
    }

    #[tokio::test]
    async fn names_of_users_do_not_change_paths() {
        for namespace in ["", "a.b", "../kube-system", "a/b", "A", "-a", "a?b"] {
            let user = Given {
                place: ("uid/kubeconfig".to_owned(), "1".to_owned()),
                kubeconfig: b"{}",
                secret: "clusters/infra".to_owned(),
            };
            let found = InfraCluster::external(&user, namespace, Instant::now()).await;
            let message = found.err().unwrap();
            assert!(message.contains("infraNamespace"), "{namespace}: {message}");
        }
        for (name, expected) in [
            ("kv-boot-image-cache-x7k2p", true),
            ("a.b", true),
            ("a%2fb", false),
        ] {
            assert_eq!(is_name(name), expected, "{name}");
        }
        assert!(!is_name(&"a".repeat(254)));
    }
}
