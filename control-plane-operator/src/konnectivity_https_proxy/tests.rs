//! The HTTP proxy with a hosted cluster on loopback.

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

#[test]
fn component_command_lines_are_accepted() {
    let begin = ["control-plane-operator", "konnectivity-https-proxy"];
    for (flags, shown, family) in [
        (vec![], vec![], Family::Any),
        (vec!["run"], vec![], Family::Any),
        (
            vec![
                "run",
                "--connect-directly-to-cloud-apis",
                "--prefer-ipv4=true",
            ],
            vec![],
            Family::Ipv4,
        ),
        (
            vec![
                "run",
                "--serving-port=8092",
                "--connect-directly-to-cloud-apis=true",
            ],
            vec![],
            Family::Any,
        ),
        (
            vec![
                "run",
                "--http-proxy",
                "http://user:secret@proxy.example.com:3128",
                "--https-proxy=https://proxy.example.com",
                "--no-proxy=.svc,.cluster.local,10.0.0.0/16",
            ],
            vec![
                "http://proxy.example.com:3128",
                "https://proxy.example.com:443",
            ],
            Family::Any,
        ),
        (
            vec!["run", "--http-proxy=", "--https-proxy=", "--no-proxy="],
            vec![],
            Family::Any,
        ),
    ] {
        let line: Vec<_> = begin
            .iter()
            .chain(&flags)
            .map(ToString::to_string)
            .collect();
        let args = parse(&line);
        let proxies = proxies(&args).unwrap();
        let read: Vec<_> = proxies
            .http
            .iter()
            .chain(&proxies.https)
            .map(ToString::to_string)
            .collect();
        assert_eq!(read, shown, "{flags:?}");
        assert_eq!(args.konnectivity.family(), family, "{flags:?}");
        assert!(!format!("{args:?}").contains("secret"));
    }
    let line = [
        begin[0],
        begin[1],
        "--https-proxy=socks5://user:secret@proxy",
    ];
    let error = proxies(&parse(&line.map(str::to_owned)))
        .unwrap_err()
        .to_string();
    assert!(
        error.starts_with("--https-proxy: expected http://HOST:PORT"),
        "{error}"
    );
    assert!(!error.contains("secret"), "{error}");
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

#[tokio::test]
async fn the_proxy_of_the_hosted_cluster_is_used() {
    let to = Behavior::Connect(echo().await);
    let behind = [("app.example.com:443", to.clone())];
    let plain = ConnectServer::start(None, &behind).await;
    let pki = Pki::new();
    let secure = pki.server("secure.example.com", None);
    let secure = ConnectServer::start(Some(secure), &behind).await;
    let guest = Guest {
        targets: &[
            ("10.0.0.1:3128", Behavior::Connect(plain.address)),
            ("10.0.0.2:443", Behavior::Connect(secure.address)),
            ("10.0.0.3:80", Behavior::Connect(mirror().await)),
            ("10.0.0.7:443", to.clone()),
            ("10.0.0.8:443", to),
        ],
        services: &[],
        names: &[
            ("plain.example.com", &["10.0.0.1"]),
            ("secure.example.com", &["10.0.0.2"]),
            ("mirror.example.com", &["10.0.0.3"]),
            ("app.internal", &["10.0.0.7"]),
            ("sts.amazonaws.com", &["10.0.0.8"]),
        ],
    };
    let fixture = Fixture::start(&guest).await;
    let flags = |proxy| {
        [
            "--http-proxy=http://user:secret@mirror.example.com",
            proxy,
            "--no-proxy=.internal",
        ]
    };
    let plain_flag = flags("--https-proxy=http://user:secret@plain.example.com:3128");
    let secure_flag = flags("--https-proxy=https://user:secret@secure.example.com");
    for (flags, server) in [(plain_flag, &plain), (secure_flag, &secure)] {
        let tls = ProxyTls::trusting(pki.roots());
        let (proxy, _signal) = started_with(&fixture, &flags, tls).await;
        let (mut stream, head) = connect(proxy, "app.example.com:443").await;
        assert!(head.starts_with(ESTABLISHED), "{head}");
        is_echoed(&mut stream, b"hello").await;
        // The name is resolved by the proxy.
        assert_eq!(
            server.requests(),
            [
                "CONNECT app.example.com:443 HTTP/1.1\r\nHost: app.example.com:443\r\n\
              Proxy-Authorization: Basic dXNlcjpzZWNyZXQ=\r\n\r\n"
            ]
        );
        // Excluded.
        let (mut stream, _) = connect(proxy, "app.internal:443").await;
        is_echoed(&mut stream, b"hello").await;
        assert_eq!(fixture.targets().pop().unwrap(), "10.0.0.7:443");
        // The proxy does not reach it.
        let (_, head) = connect(proxy, "other.example.com:443").await;
        assert!(head.starts_with("HTTP/1.1 502 "), "{head}");
        // A cloud API that is not reached directly uses the proxy, too.
        let (_, head) = connect(proxy, "sts.amazonaws.com:443").await;
        assert!(head.starts_with("HTTP/1.1 502 "), "{head}");

        let request =
            "GET http://app.example.com/x HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
        let (stream, _) = send(proxy, request).await;
        let body = rest(stream).await;
        assert!(
            body.starts_with("GET http://app.example.com/x HTTP/1.1\r\n"),
            "{body}"
        );
        assert!(
            body.contains("proxy-authorization: Basic dXNlcjpzZWNyZXQ=\r\n"),
            "{body}"
        );
    }
}

#[tokio::test]
async fn cloud_apis_that_are_reached_directly_use_no_proxy_of_the_hosted_cluster() {
    let fixture = Fixture::start(&Guest::default()).await;
    let proxy = "--https-proxy=http://proxy.amazonaws.com:3128";
    let direct = "--connect-directly-to-cloud-apis";
    for (flags, host, expected) in [
        (vec![proxy], "sts.amazonaws.com", true),
        (vec![proxy, direct], "sts.amazonaws.com", false),
        (vec![proxy, direct], "quay.io", true),
    ] {
        let args = parse(&fixture.command_line("konnectivity-https-proxy", &flags));
        let proxies = proxies(&args).unwrap();
        let dialer = args.konnectivity.dialer(None, &proxies).await.unwrap();
        // The proxy itself is no cloud API.
        let own = "proxy.amazonaws.com".parse().unwrap();
        assert!(!dialer.cloud_apis.contains(&own), "{flags:?}");
        let target = Target::new(host.parse().unwrap(), 443);
        let found = Proxy::new(dialer, proxies)
            .proxy_of_tunnel(&target)
            .is_some();
        assert_eq!(found, expected, "{flags:?} {host}");
    }
}

#[tokio::test]
async fn certificates_of_proxies_are_verified() {
    let pki = Pki::new();
    let tls = pki.server("secure.example.com", None);
    let secure = ConnectServer::start(Some(tls), &[]).await;
    let guest = Guest {
        targets: &[("10.0.0.2:443", Behavior::Connect(secure.address))],
        names: &[("secure.example.com", &["10.0.0.2"])],
        ..Guest::default()
    };
    let fixture = Fixture::start(&guest).await;
    let flags = ["--https-proxy=https://user:secret@secure.example.com"];
    let tls = ProxyTls::trusting(Pki::new().roots());
    let (proxy, _signal) = started_with(&fixture, &flags, tls).await;
    let request = "CONNECT a.example.com:443 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    let (stream, head) = send(proxy, request).await;
    assert!(head.starts_with("HTTP/1.1 502 "), "{head}");
    let body = rest(stream).await;
    assert!(
        body.contains("failed to establish TLS with proxy https://secure.example.com:443"),
        "{body}"
    );
    assert!(!body.contains("secret"), "{body}");
}

#[tokio::test]
async fn credentials_are_not_logged() {
    let unauthorized = "HTTP/1.1 407 Proxy Authentication Required\r\n\r\n";
    let guest = Guest {
        targets: &[("10.0.0.1:3128", Behavior::Respond("HTTP/1.1 502 X\r\n\r\n"))],
        ..Guest::default()
    };
    let plain = ConnectServer::start(
        None,
        &[("a.example.com:443", Behavior::Respond(unauthorized))],
    )
    .await;
    let with_proxy = Guest {
        targets: &[("10.0.0.1:3128", Behavior::Connect(plain.address))],
        ..Guest::default()
    };
    for guest in [guest, with_proxy] {
        let fixture = Fixture::start(&guest).await;
        let (log, _guard) = Log::collect();
        let flags = [
            "--http-proxy=http://user:secret@10.0.0.1:3128",
            "--https-proxy=http://user:secret@10.0.0.1:3128",
        ];
        let (proxy, _signal) = started(&fixture, &flags).await;
        for request in [
            "CONNECT user:secret@a.example.com:443",
            "CONNECT a.example.com:443",
            "GET http://user:secret@a.example.com/",
        ] {
            let request = format!(
                "{request} HTTP/1.1\r\nHost: a\r\nProxy-Authorization: Basic c2VjcmV0\r\nConnection: close\r\n\r\n"
            );
            let (stream, head) = send(proxy, &request).await;
            let body = rest(stream).await;
            for hidden in ["secret", "c2VjcmV0", "dXNlcjpzZWNyZXQ="] {
                assert!(
                    !body.contains(hidden) && !head.contains(hidden),
                    "{head}{body}"
                );
                assert!(!log.text().contains(hidden), "{}", log.text());
            }
        }
        assert!(
            log.text().contains("Failed to open a connection"),
            "{}",
            log.text()
        );
    }
}

#[tokio::test]
async fn a_server_that_never_responds_times_out() {
    let guest = Guest {
        targets: &[("192.0.2.1:443", Behavior::Silent)],
        ..Guest::default()
    };
    let fixture = Fixture::start(&guest).await;
    let (proxy, _signal) = started(&fixture, &[]).await;
    let requesting = tokio::spawn(async move { connect(proxy, "192.0.2.1:443").await });
    fixture.konnectivity.requested().await;
    tokio::time::pause();
    let begun = Instant::now();
    let (_, head) = requesting.await.unwrap();
    assert!(head.starts_with("HTTP/1.1 504 "), "{head}");
    assert!(begun.elapsed().as_secs() <= 60, "{:?}", begun.elapsed());
}

#[tokio::test]
async fn silent_clients_are_disconnected() {
    let fixture = Fixture::start(&Guest::default()).await;
    let (proxy, _signal) = started(&fixture, &[]).await;
    let mut silent = TcpStream::connect(proxy).await.unwrap();
    silent.write_all(b"CONNECT a").await.unwrap();
    tokio::time::pause();
    let begun = Instant::now();
    let mut response = String::new();
    silent.read_to_string(&mut response).await.unwrap();
    assert!(begun.elapsed().as_secs() <= 60, "{:?}", begun.elapsed());
    assert!(
        response.is_empty() || response.starts_with("HTTP/1.1 408 "),
        "{response}"
    );
}

#[tokio::test]
async fn half_closed_clients_get_the_whole_response() {
    const RESPONSE: &[u8] = &[b'a'; 300_000];
    let guest = Guest {
        targets: &[(
            "192.0.2.1:443",
            Behavior::Connect(slow_response(RESPONSE).await),
        )],
        ..Guest::default()
    };
    let fixture = Fixture::start(&guest).await;
    let (proxy, _signal) = started(&fixture, &[]).await;
    let (mut stream, _) = connect(proxy, "192.0.2.1:443").await;
    stream.write_all(b"GET\n").await.unwrap();
    stream.shutdown().await.unwrap();
    let mut response = Vec::new();
    stream.read_to_end(&mut response).await.unwrap();
    assert_eq!(response.len(), RESPONSE.len());
}

/// Clients may send data before the tunnel is established.
#[tokio::test]
async fn early_data_of_clients_is_kept() {
    let guest = Guest {
        targets: &[("192.0.2.1:443", Behavior::Connect(echo().await))],
        ..Guest::default()
    };
    let fixture = Fixture::start(&guest).await;
    let (proxy, _signal) = started(&fixture, &[]).await;
    let request = "CONNECT 192.0.2.1:443 HTTP/1.1\r\nHost: a\r\n\r\nhello";
    let (mut stream, head) = send(proxy, request).await;
    assert!(head.starts_with(ESTABLISHED), "{head}");
    let mut answer = [0; 5];
    stream.read_exact(&mut answer).await.unwrap();
    assert_eq!(&answer, b"hello");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn parallel_streams_do_not_mix() {
    let guest = Guest {
        targets: &[("10.0.0.7:443", Behavior::Connect(echo().await))],
        names: &[("app.example.com", &["10.0.0.7"])],
        ..Guest::default()
    };
    let fixture = Fixture::start(&guest).await;
    let (proxy, _signal) = started(&fixture, &[]).await;
    let streams = (0..100_u8).map(|number| {
        tokio::spawn(async move {
            let (mut stream, head) = connect(proxy, "app.example.com:443").await;
            assert!(head.starts_with(ESTABLISHED), "{head}");
            for _ in 0..10 {
                is_echoed(&mut stream, &[number; 8000]).await;
            }
        })
    });
    for stream in streams.collect::<Vec<_>>() {
        stream.await.unwrap();
    }
}

#[tokio::test]
async fn open_tunnels_survive_the_begin_of_the_shutdown() {
    let guest = Guest {
        targets: &[("192.0.2.1:443", Behavior::Connect(echo().await))],
        ..Guest::default()
    };
    let fixture = Fixture::start(&guest).await;
    let (proxy, signal) = started(&fixture, &[]).await;
    let (mut stream, _) = connect(proxy, "192.0.2.1:443").await;
    // Without a request, a connection ends at once.
    let (idle, _) = send(proxy, "GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
    signal.begin();
    assert!(rest(idle).await.starts_with("this is a proxy"));
    is_echoed(&mut stream, b"hello").await;
    drop(stream);
    tokio::time::pause();
    signal.all_ended().await;
}

#[tokio::test]
async fn errors_at_the_start_name_what_is_missing() {
    let fixture = Fixture::start(&Guest::default()).await;
    let mut line = fixture.command_line("konnectivity-https-proxy", &[]);
    line.retain(|arg| !arg.starts_with("--ca-cert-path"));
    line.push("--ca-cert-path=/missing".to_owned());
    let (_signal, drain) = shutdown::channel();
    let error = serve(&parse(&line), Proxies::default(), drain)
        .await
        .unwrap_err();
    let text = support::error::chain(error.as_ref());
    assert!(
        text.starts_with("failed to read /missing: check the volume mounts"),
        "{text}"
    );
    assert!(!error.is::<Usage>(), "exit code 1");
}
