//! Requests to real servers with TLS, through a tunnel on loopback.

use std::convert::Infallible;
use std::fs;
use std::net::SocketAddr;
use std::sync::Mutex;

use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use hyper::server::conn::http1::Builder;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use support::error::chain;

use super::*;
use crate::konnectivity::testing::{Behavior, ConnectServer, Fixture, Guest, Pki, listen};

/// The address of the provider in the network of the hosted cluster.
const ADDRESS: &str = "10.0.0.9";
const NAME: &str = "sso.example.com";

/// The requests of a provider: line and body.
type Seen = Arc<Mutex<Vec<(String, String)>>>;

/// A provider, and its requests so far.
struct Provider {
    address: SocketAddr,
    pki: Pki,
    seen: Seen,
}

// === impl Provider ===

impl Provider {
    /// A provider with these responses by path: status and body.
    async fn start(responses: Vec<(&'static str, u16, String)>) -> Self {
        let pki = Pki::new();
        let tls = pki.server(NAME, None);
        let seen = Seen::default();
        let (requests, responses) = (Arc::clone(&seen), Arc::new(responses));
        let address = listen(move |stream| {
            let (tls, responses) = (tls.clone(), Arc::clone(&responses));
            let requests = Arc::clone(&requests);
            async move {
                let Ok(stream) = tls.accept(stream).await else {
                    return;
                };
                let service = service_fn(|request: Request<Incoming>| {
                    let responses = Arc::clone(&responses);
                    let requests = Arc::clone(&requests);
                    async move {
                        Ok::<_, Infallible>(respond(request, &responses, &requests).await)
                    }
                });
                let serving = Builder::new().serve_connection(TokioIo::new(stream), service);
                let _ = serving.await;
            }
        })
        .await;
        Self { address, pki, seen }
    }

    fn seen(&self) -> Vec<(String, String)> {
        self.seen.lock().unwrap().clone()
    }

    /// A hosted cluster where this provider is reachable.
    async fn cluster(&self) -> Fixture {
        let target = format!("{ADDRESS}:443");
        let guest = Guest {
            targets: &[(&target, Behavior::Connect(self.address))],
            names: &[
                (NAME, &[ADDRESS]),
                ("local.example.com", &["127.0.0.1", "169.254.169.254"]),
            ],
            ..Guest::default()
        };
        Fixture::start(&guest).await
    }

    fn inquiry(&self, issuer: &str) -> Inquiry {
        Inquiry {
            name: "sso".to_owned(),
            source: Source::Issuer(issuer.to_owned()),
            client_id: "cluster".to_owned(),
            client_secret: b"a&b=c".to_vec(),
            secret_version: "1".to_owned(),
            needs_probe: true,
            authorities: self.pki.pem().into_bytes(),
            earlier: None,
        }
    }
}

async fn respond(
    request: Request<Incoming>,
    responses: &[(&'static str, u16, String)],
    seen: &Seen,
) -> Response<Full<Bytes>> {
    let (parts, body) = request.into_parts();
    let path = parts.uri.path().to_owned();
    let host = parts.headers[HOST].to_str().unwrap();
    let line = format!("{} {host}{path}", parts.method);
    let body = body.collect().await.unwrap().to_bytes();
    let body = String::from_utf8(body.to_vec()).unwrap();
    seen.lock().unwrap().push((line, body));
    let found = responses.iter().find(|(known, ..)| *known == path);
    let (status, text) = found.map_or((404, String::new()), |(_, status, text)| {
        (*status, text.clone())
    });
    let mut response = Response::new(Full::new(Bytes::from(text)));
    *response.status_mut() = StatusCode::from_u16(status).unwrap();
    response
}

fn network(fixture: &Fixture) -> Network {
    let file = |name: &str| fs::read(fixture.dir.path().join(name)).unwrap();
    Network(Arc::new(Materials {
        server: Target::new(
            Host::Ip(fixture.konnectivity.address.ip()),
            fixture.konnectivity.address.port(),
        ),
        authorities: file("ca.crt"),
        certificate: file("tls.crt"),
        key: file("tls.key"),
        kubeconfig: file("kubeconfig"),
        proxies: Proxies::default(),
        trusted: Vec::new(),
        family: Family::Any,
    }))
}

fn document() -> Value {
    json!({
        "issuer": format!("https://{NAME}"),
        "authorization_endpoint": format!("https://{NAME}/auth"),
        "token_endpoint": format!("https://{NAME}/token"),
    })
}

const DOCUMENT: &str = "/realm/.well-known/openid-configuration";

#[tokio::test]
async fn endpoints_are_read_through_the_tunnel() {
    let provider = Provider::start(vec![
        (DOCUMENT, 200, document().to_string()),
        ("/token", 401, r#"{"error":"invalid_grant"}"#.to_owned()),
    ])
    .await;
    let cluster = provider.cluster().await;
    let network = network(&cluster);
    let inquiry = provider.inquiry(&format!("https://{NAME}/realm/"));
    let found = network.endpoints(&inquiry).await.unwrap();
    assert_eq!(found.authorize, format!("https://{NAME}/auth"));
    assert!(
        network
            .supports_passwords(&inquiry, &found.token)
            .await
            .unwrap()
    );
    assert_eq!(
        cluster.targets(),
        [format!("{ADDRESS}:443"), format!("{ADDRESS}:443")]
    );
    let form = "client_id=cluster&client_secret=a%26b%3Dc&grant_type=password&scope=openid&username=test&password=test";
    let expected = [
        (format!("GET {NAME}{DOCUMENT}"), String::new()),
        (format!("POST {NAME}/token"), form.to_owned()),
    ];
    assert_eq!(provider.seen(), expected);
}

#[tokio::test]
async fn responses_that_are_no_document_are_refused() {
    let large = format!("{{{}}}", " ".repeat(exchange::MAX_BODY));
    for (status, body, expected) in [
        (
            302,
            String::new(),
            "responded with status 302 Found, and redirects are not followed",
        ),
        (
            404,
            "secret".to_owned(),
            "responded with status 404 Not Found: check issuer",
        ),
        (500, document().to_string(), "responded with status 500"),
        (
            200,
            "<html>secret</html>".to_owned(),
            "is not a discovery document",
        ),
        (200, large, "exceeds 131072 bytes"),
    ] {
        let provider = Provider::start(vec![(DOCUMENT, status, body)]).await;
        let cluster = provider.cluster().await;
        let inquiry = provider.inquiry(&format!("https://{NAME}/realm"));
        let error = network(&cluster).endpoints(&inquiry).await.unwrap_err();
        let error = chain(&error);
        assert!(error.contains(expected), "{error}");
        assert!(!error.contains("secret"), "{error}");
        assert_eq!(provider.seen().len(), 1, "{error}");
    }
}

#[tokio::test]
async fn providers_of_another_authority_are_refused() {
    let provider = Provider::start(vec![(DOCUMENT, 200, document().to_string())]).await;
    let cluster = provider.cluster().await;
    let mut inquiry = provider.inquiry(&format!("https://{NAME}/realm"));
    inquiry.authorities = Pki::new().pem().into_bytes();
    let error = network(&cluster).endpoints(&inquiry).await.unwrap_err();
    let error = chain(&error);
    assert!(
        error.contains("set ca to a ConfigMap with its authority"),
        "{error}"
    );
    assert!(provider.seen().is_empty());
    // The certificate is of the name, and not of the address.
    let inquiry = provider.inquiry(&format!("https://{ADDRESS}/realm"));
    let error = network(&cluster).endpoints(&inquiry).await.unwrap_err();
    assert!(matches!(error, Error::Tls { .. }), "{error}");
}

/// Users choose the URL: it must lead neither to the management cluster nor to the host of an agent.
#[tokio::test]
async fn only_the_network_of_the_hosted_cluster_is_reached() {
    let provider = Provider::start(vec![(DOCUMENT, 200, document().to_string())]).await;
    let cluster = provider.cluster().await;
    let network = network(&cluster);
    for (issuer, expected) in [
        (
            "https://127.0.0.1/realm",
            "invalid issuer: the host is a loopback",
        ),
        (
            "https://localhost/realm",
            "invalid issuer: the host is a loopback",
        ),
        (
            "https://169.254.169.254",
            "invalid issuer: the host is a loopback",
        ),
        (
            "http://sso.example.com",
            "invalid issuer: expected https://HOST",
        ),
        (
            "https://local.example.com",
            "resolves to loopback or link-local addresses only",
        ),
    ] {
        let error = network
            .endpoints(&provider.inquiry(issuer))
            .await
            .unwrap_err();
        assert!(
            chain(&error).contains(expected),
            "{issuer}: {}",
            chain(&error)
        );
    }
    assert!(cluster.targets().is_empty(), "{:?}", cluster.targets());
    // What only the management cluster resolves or reaches is requested from the tunnel, which refuses it here.
    let address = format!("https://{}/realm", provider.address);
    let error = network
        .endpoints(&provider.inquiry(&address))
        .await
        .unwrap_err();
    assert!(chain(&error).contains("invalid issuer"), "{error}");
    let error = network
        .endpoints(&provider.inquiry("https://10.0.0.77"))
        .await
        .unwrap_err();
    assert!(matches!(error, Error::Dial(_)), "{error}");
    assert_eq!(cluster.targets(), ["10.0.0.77:443"]);
    let error = network
        .supports_passwords(&provider.inquiry("https://a"), "https://[::1]:6443/")
        .await;
    assert!(chain(&error.unwrap_err()).contains("invalid token_endpoint"));
    assert!(provider.seen().is_empty());
}

/// The result is in a condition that the author reads: it must not show which names exist in the management cluster.
#[tokio::test]
async fn names_are_not_resolved_by_the_management_cluster() {
    let cluster = Fixture::start(&Guest::default()).await;
    let provider = Provider::start(Vec::new()).await;
    // The system's resolver reads the first one as 10.0.0.77, and does not know the second one.
    for host in ["10.77", "absent.invalid"] {
        let inquiry = provider.inquiry(&format!("https://{host}/realm"));
        let error = network(&cluster).endpoints(&inquiry).await.unwrap_err();
        let expected = format!("failed to resolve {host} with DNS of the hosted cluster");
        assert!(chain(&error).starts_with(&expected), "{}", chain(&error));
    }
    assert!(cluster.targets().is_empty(), "{:?}", cluster.targets());
}

/// Time is simulated: the first timer that is waited for ends the request.
#[tokio::test(start_paused = true)]
async fn a_provider_that_does_not_respond_is_given_up() {
    let target = format!("{ADDRESS}:443");
    let guest = Guest {
        targets: &[(&target, Behavior::Silent)],
        ..Guest::default()
    };
    let cluster = Fixture::start(&guest).await;
    let provider = Provider::start(Vec::new()).await;
    let inquiry = provider.inquiry(&format!("https://{ADDRESS}"));
    let started = tokio::time::Instant::now();
    let error = network(&cluster).endpoints(&inquiry).await.unwrap_err();
    assert!(matches!(error, Error::TimedOut(_)), "{error}");
    assert!(started.elapsed() < TIMEOUT + Duration::from_secs(1));
    assert!(
        error
            .to_string()
            .contains("no response from 10.0.0.9:443 within 30s"),
        "{error}"
    );
}

#[tokio::test]
async fn the_proxy_of_the_hosted_cluster_is_used() {
    let provider = Provider::start(vec![(DOCUMENT, 200, document().to_string())]).await;
    let direct = format!("{NAME}:443");
    let proxy = ConnectServer::start(None, &[(&direct, Behavior::Connect(provider.address))]).await;
    let guest = Guest {
        targets: &[("10.0.0.3:3128", Behavior::Connect(proxy.address))],
        ..Guest::default()
    };
    let cluster = Fixture::start(&guest).await;
    let mut materials = network(&cluster).0;
    Arc::get_mut(&mut materials).unwrap().proxies = Proxies {
        https: ProxyUrl::read("http://u:p@10.0.0.3:3128").unwrap(),
        ..Proxies::default()
    };
    let inquiry = provider.inquiry(&format!("https://{NAME}/realm"));
    Network(materials).endpoints(&inquiry).await.unwrap();
    assert_eq!(cluster.targets(), ["10.0.0.3:3128"]);
    assert!(proxy.requests()[0].contains("Proxy-Authorization: Basic dTpw"));
}
