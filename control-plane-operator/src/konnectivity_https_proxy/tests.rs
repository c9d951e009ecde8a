//! The HTTP proxy with a hosted cluster on loopback.

mod command_line;
mod streams;
mod upstream;

use std::net::SocketAddr;

use clap::Parser;
use support::shutdown::{self, Signal};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::Instant;

use super::*;
use crate::args::{Cli, Command};
use crate::konnectivity::http_proxy::ProxyTls;
use crate::konnectivity::resolver::Family;
use crate::konnectivity::target::Target;
use crate::konnectivity::testing::{
    Behavior, ConnectServer, Fixture, Guest, Log, Pki, echo, head, listen, slow_response,
};

const ESTABLISHED: &str = "HTTP/1.1 200 OK";

fn parse(args: &[String]) -> Args {
    match Cli::try_parse_from(args).unwrap().command {
        Command::KonnectivityHttpsProxy(args) => *args,
        other => panic!("{other:?}"),
    }
}

/// Starts a proxy, which runs until the signal is dropped or begins.
async fn started_with(fixture: &Fixture, flags: &[&str], tls: ProxyTls) -> (SocketAddr, Signal) {
    let args = parse(&fixture.command_line("konnectivity-https-proxy", flags));
    let proxies = proxies(&args).unwrap();
    let dialer = args.konnectivity.dialer(Some(resolver(&args)), &proxies);
    let dialer = dialer.await.unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (signal, drain) = shutdown::channel();
    let proxy = Proxy::new(dialer, proxies).with_tls(tls);
    tokio::spawn(proxy.run(listener, drain));
    (address, signal)
}

async fn started(fixture: &Fixture, flags: &[&str]) -> (SocketAddr, Signal) {
    started_with(fixture, flags, ProxyTls::default()).await
}

/// Sends the head of a request, and reads the head of the response.
async fn send(proxy: SocketAddr, request: &str) -> (TcpStream, String) {
    let mut stream = TcpStream::connect(proxy).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let head = head(&mut stream).await.unwrap_or_default();
    (stream, head)
}

async fn connect(proxy: SocketAddr, target: &str) -> (TcpStream, String) {
    let request = format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n");
    send(proxy, &request).await
}

async fn rest(mut stream: TcpStream) -> String {
    let mut text = String::new();
    stream.read_to_string(&mut text).await.unwrap();
    text
}

async fn is_echoed(stream: &mut TcpStream, text: &[u8]) {
    stream.write_all(text).await.unwrap();
    let mut answer = vec![0; text.len()];
    stream.read_exact(&mut answer).await.unwrap();
    assert_eq!(answer, text);
}

/// An HTTP server whose responses have the request's head as body.
async fn mirror() -> SocketAddr {
    listen(|mut stream| async move {
        if let Some(head) = head(&mut stream).await {
            let length = head.len();
            let response = format!(
                "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nProxy-Authenticate: a\r\nConnection: X-Hop\r\n\
                 X-Hop: a\r\nX-End: b\r\n\r\n{head}"
            );
            let _ = stream.write_all(response.as_bytes()).await;
        }
    })
    .await
}

#[tokio::test]
async fn names_are_resolved_before_the_tunnel() {
    let to = Behavior::Connect(echo().await);
    let guest = Guest {
        targets: &[
            ("10.0.0.7:443", to.clone()),
            ("172.31.0.20:443", to.clone()),
            ("[fd00::7]:443", to),
        ],
        services: &[("shop/api", "172.31.0.20")],
        names: &[
            ("app.example.com", &["10.0.0.7"]),
            ("both.example.com", &["10.0.0.8", "fd00::7"]),
            ("sts.amazonaws.com", &["10.0.0.7"]),
        ],
    };
    for (target, host, expected) in [
        (
            "app.example.com:443",
            "app.example.com",
            vec!["10.0.0.7:443"],
        ),
        ("api.shop.svc:443", "api.shop.svc", vec!["172.31.0.20:443"]),
        ("10.0.0.7:443", "10.0.0.7", vec!["10.0.0.7:443"]),
        // The first address is not reachable.
        (
            "both.example.com:443",
            "both.example.com",
            vec!["10.0.0.8:443", "[fd00::7]:443"],
        ),
        // Cloud APIs, too, unless they are reached directly.
        (
            "sts.amazonaws.com:443",
            "sts.amazonaws.com",
            vec!["10.0.0.7:443"],
        ),
    ] {
        let fixture = Fixture::start(&guest).await;
        let (proxy, _signal) = started(&fixture, &[]).await;
        let (mut stream, head) = connect(proxy, target).await;
        assert!(head.starts_with(ESTABLISHED), "{target}: {head}");
        is_echoed(&mut stream, b"hello").await;
        assert_eq!(fixture.targets(), expected, "{target}");
        let last = fixture.konnectivity.requests().pop().unwrap();
        assert!(
            last.ends_with(&format!("\r\nHost: {host}\r\n\r\n")),
            "{last}"
        );
    }
}

#[tokio::test]
async fn failures_have_a_status_and_a_cause() {
    let respond = Behavior::Respond;
    let guest = Guest {
        targets: &[
            (
                "192.0.2.1:443",
                respond("HTTP/1.1 500 X\r\n\r\ncurrently no tunnels available"),
            ),
            (
                "192.0.2.2:443",
                respond("HTTP/1.1 502 X\r\n\r\nconnection refused"),
            ),
            (
                "192.0.2.3:443",
                respond("HTTP/1.1 504 X\r\n\r\ni/o timeout"),
            ),
            (
                "192.0.2.4:443",
                respond("HTTP/1.1 405 X\r\n\r\nonly CONNECT"),
            ),
            ("192.0.2.5:443", respond("HTTP/1.1 200 OK\r\n\r\nearly")),
        ],
        ..Guest::default()
    };
    let fixture = Fixture::start(&guest).await;
    let (proxy, _signal) = started(&fixture, &[]).await;
    for (request, status, text) in [
        ("CONNECT 192.0.2.1:443", 503, "check that nodes are ready"),
        (
            "CONNECT 192.0.2.2:443",
            502,
            "it responded with status 502: connection refused",
        ),
        (
            "CONNECT 192.0.2.3:443",
            504,
            "it responded with status 504: i/o timeout",
        ),
        (
            "CONNECT 192.0.2.4:443",
            503,
            "check that the server runs with --mode=http-connect",
        ),
        (
            "CONNECT 192.0.2.5:443",
            503,
            "it sent data together with the head",
        ),
        (
            "CONNECT a.example.com:443",
            502,
            "the DNS server responded: Non-Existent Domain",
        ),
        (
            "GET http://192.0.2.2:443/",
            502,
            "failed to connect to 192.0.2.2:443",
        ),
        ("GET https://192.0.2.2/", 400, "use CONNECT for https URLs"),
        ("GET /", 400, "this is a proxy"),
        ("CONNECT a..b:443", 400, "not an IP address or a DNS name"),
    ] {
        let request = format!("{request} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
        let (stream, head) = send(proxy, &request).await;
        assert!(
            head.starts_with(&format!("HTTP/1.1 {status} ")),
            "{request} {head}"
        );
        let body = rest(stream).await;
        assert!(body.contains(text), "{request} {body}");
    }
}

#[tokio::test]
async fn oversized_heads_are_refused() {
    let fixture = Fixture::start(&Guest::default()).await;
    let (proxy, _signal) = started(&fixture, &[]).await;
    let long = "a".repeat(100_000);
    let (_, head) = send(
        proxy,
        &format!("GET http://a/ HTTP/1.1\r\nX: {long}\r\n\r\n"),
    )
    .await;
    assert!(head.starts_with("HTTP/1.1 431 "), "{head}");
}

#[tokio::test]
async fn plain_requests_are_forwarded() {
    let to = Behavior::Connect(mirror().await);
    let guest = Guest {
        targets: &[("10.0.0.7:8080", to.clone()), ("10.0.0.7:80", to)],
        names: &[("app.example.com", &["10.0.0.7"])],
        ..Guest::default()
    };
    let fixture = Fixture::start(&guest).await;
    let (proxy, _signal) = started(&fixture, &[]).await;
    for (url, line, host) in [
        (
            "http://app.example.com:8080/x?y=z",
            "GET /x?y=z HTTP/1.1",
            "app.example.com:8080",
        ),
        (
            "http://u:p@app.example.com",
            "GET / HTTP/1.1",
            "app.example.com",
        ),
    ] {
        let request = format!(
            "GET {url} HTTP/1.1\r\nHost: other\r\nProxy-Authorization: Basic c2VjcmV0\r\n\
             Authorization: Bearer token\r\nConnection: close\r\n\r\n"
        );
        let (stream, head) = send(proxy, &request).await;
        let head = head.to_ascii_lowercase();
        assert!(
            head.contains("x-end: b") && !head.contains("x-hop"),
            "{head}"
        );
        assert!(!head.contains("proxy-authenticate"), "{head}");
        let body = rest(stream).await;
        let sent: Vec<_> = body.split("\r\n").collect();
        assert_eq!(sent[0], line);
        assert!(sent.contains(&format!("host: {host}").as_str()), "{body}");
        assert!(sent.contains(&"authorization: Bearer token"), "{body}");
        assert!(!body.contains("c2VjcmV0"), "{body}");
    }
}
