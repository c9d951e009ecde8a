//! Fetching from a server on this machine.

use std::{convert::Infallible, net::SocketAddr};

use http_body_util::Full;
use hyper::{server::conn::http1, service::service_fn};
use rustls::{
    ServerConfig,
    pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer},
};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use super::*;

/// Answers by path: `/<status>/<location or body>`.
async fn answer(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let path = request.uri().path().to_owned();
    let (status, rest) = path[1..].split_once('/').unwrap_or(("404", ""));
    let response = Response::builder()
        .status(status)
        .header(header::LOCATION, format!("/{rest}"))
        .body(Full::from(rest.to_owned()))
        .unwrap();
    Ok(response)
}

async fn serve(tls: Option<Arc<ServerConfig>>) -> SocketAddr {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serve_connection(stream, tls.clone()));
        }
    });
    address
}

async fn serve_connection(stream: TcpStream, tls: Option<Arc<ServerConfig>>) {
    let server = http1::Builder::new();
    // Clients that do not trust the server break the handshake, and the client's error is what tests look at.
    let Some(tls) = tls else {
        drop(
            server
                .serve_connection(TokioIo::new(stream), service_fn(answer))
                .await,
        );
        return;
    };
    if let Ok(stream) = TlsAcceptor::from(tls).accept(stream).await {
        drop(
            server
                .serve_connection(TokioIo::new(stream), service_fn(answer))
                .await,
        );
    }
}

/// A server's configuration and a client's that trusts it.
fn tls_pair() -> (Arc<ServerConfig>, Arc<ClientConfig>) {
    let issued = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let certificate = issued.cert.der().clone();
    let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(issued.signing_key.serialize_der()));
    let server = ServerConfig::builder_with_provider(Arc::new(
        rustls::crypto::aws_lc_rs::default_provider(),
    ))
    .with_safe_default_protocol_versions()
    .unwrap()
    .with_no_client_auth()
    .with_single_cert(vec![certificate.clone()], key)
    .unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(certificate).unwrap();
    (Arc::new(server), tls_config(roots).unwrap())
}

fn url(text: &str) -> Url {
    text.parse().unwrap()
}

#[tokio::test]
async fn fetches_and_follows_redirects_over_http_to_this_machine() {
    let address = serve(None).await;
    for path in ["200/kind:A", "302/307/200/kind:A"] {
        let text = fetch(
            &url(&format!("http://{address}/{path}")),
            PlainHttp::Loopback,
            None,
        )
        .await;
        assert_eq!(text.unwrap(), "kind:A", "{path}");
    }
}

#[tokio::test]
async fn parses_what_it_fetches() {
    let address = serve(None).await;
    let batch = read(
        &url(&format!("http://{address}/200/%7B%7D?token=secret")),
        PlainHttp::Loopback,
    )
    .await;
    let error = batch.map(|batch| batch.name);
    // The body is the escaped text, a YAML directive that is none.
    let message = error.unwrap_err().to_string();
    assert!(!message.contains("secret"), "{message}");
}

#[tokio::test]
async fn uses_tls_with_trusted_servers_only() {
    let (server, trusting) = tls_pair();
    let (_, suspicious) = tls_pair();
    let port = serve(Some(server)).await.port();
    let target = url(&format!("https://localhost:{port}/200/body"));
    let text = fetch(&target, PlainHttp::Loopback, Some(trusting)).await;
    assert_eq!(text.unwrap(), "body");
    let error = fetch(&target, PlainHttp::Loopback, Some(suspicious))
        .await
        .unwrap_err();
    assert!(matches!(error, UrlError::Connect { .. }), "{error}");
}

#[tokio::test]
async fn gives_up_on_errors_and_endless_redirects() {
    let address = serve(None).await;
    let get = |path: String| async move {
        let target = url(&format!("http://{address}/{path}"));
        fetch(&target, PlainHttp::Loopback, None).await.unwrap_err()
    };
    let error = get("404/x".to_owned()).await;
    assert!(
        matches!(error, UrlError::Status { status } if status == 404),
        "{error}"
    );
    let error = get("302/".repeat(MAX_REDIRECTS + 1) + "200/x").await;
    assert!(matches!(error, UrlError::TooManyRedirects), "{error}");
}

#[test]
fn plain_http_stays_on_this_machine() {
    for (text, allowed) in [
        ("http://localhost:8080/a", true),
        ("http://127.0.0.1/a", true),
        ("http://[::1]:1/a", true),
        ("https://example.com/a", true),
        ("http://example.com/a", false),
        ("http://10.0.0.1/a", false),
        ("http://localhost.example.com/a", false),
    ] {
        assert_eq!(
            url(text).check(PlainHttp::Loopback).is_ok(),
            allowed,
            "{text}"
        );
        assert!(url(text).check(PlainHttp::Anywhere).is_ok(), "{text}");
    }
}

#[test]
fn redirects_never_leave_https_and_stay_understood() {
    let from = url("https://example.com:8443/a?b=c");
    for (location, expected) in [
        ("/x?y=z", "https://example.com:8443/x"),
        ("https://other.example.com/x", "https://other.example.com/x"),
    ] {
        assert_eq!(from.join(location).unwrap().to_string(), expected);
    }
    for location in [
        "http://example.com/x",
        "//example.com/x",
        "x",
        "",
        "ftp://example.com/x",
    ] {
        assert!(
            matches!(from.join(location), Err(UrlError::Redirect { .. })),
            "{location}"
        );
    }
}

#[test]
fn urls_with_credentials_are_refused_without_showing_them() {
    let error = "https://me:secret@example.com/x"
        .parse::<Url>()
        .unwrap_err();
    assert!(!error.to_string().contains("secret"), "{error}");
    for text in ["", "example.com", "ftp://example.com", "https://", "/path"] {
        assert!(text.parse::<Url>().is_err(), "{text}");
    }
}
