//! The SOCKS5 proxy with a hosted cluster on loopback.

use std::net::SocketAddr;

use clap::Parser;
use support::shutdown::{self, Signal};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::Instant;

use super::*;
use crate::args::{Cli, Command};
use crate::konnectivity::bypass::CloudApis;
use crate::konnectivity::dialer::Dialer;
use crate::konnectivity::no_proxy::NoProxy;
use crate::konnectivity::proxies::ProxyUrl;
use crate::konnectivity::resolver::Family;
use crate::konnectivity::testing::{
    Behavior, ConnectServer, Fixture, Guest, Log, Pki, echo, slow_response,
};

const GUEST_DNS: &str = "--resolve-from-guest-cluster-dns";
const MANAGEMENT_DNS: &str = "--resolve-from-management-cluster-dns=true";

fn parse(args: &[String]) -> Args {
    match Cli::try_parse_from(args).unwrap().command {
        Command::KonnectivitySocks5Proxy(args) => *args,
        other => panic!("{other:?}"),
    }
}

async fn dialer(fixture: &Fixture, flags: &[&str]) -> Dialer {
    let args = parse(&fixture.command_line("konnectivity-socks5-proxy", flags));
    let proxies = Proxies::default();
    let dialer = args.konnectivity.dialer(resolver(&args), &proxies);
    dialer.await.unwrap()
}

/// Starts a proxy, which runs until the signal is dropped or begins.
async fn serving(dialer: Dialer) -> (SocketAddr, Signal) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (signal, drain) = shutdown::channel();
    tokio::spawn(Proxy::new(dialer).run(listener, drain));
    (address, signal)
}

async fn started(fixture: &Fixture, flags: &[&str]) -> (SocketAddr, Signal) {
    serving(dialer(fixture, flags).await).await
}

/// Requests a connection to a name, and returns the stream and the code of the reply.
async fn request(proxy: SocketAddr, host: &str, port: u16) -> (TcpStream, u8) {
    let mut stream = TcpStream::connect(proxy).await.unwrap();
    stream.write_all(&[5, 1, 0]).await.unwrap();
    let mut greeting = [0; 2];
    stream.read_exact(&mut greeting).await.unwrap();
    assert_eq!(greeting, [5, 0]);
    let length = u8::try_from(host.len()).unwrap();
    let mut request = vec![5, 1, 0, 3, length];
    request.extend(host.bytes());
    request.extend(port.to_be_bytes());
    stream.write_all(&request).await.unwrap();
    let mut reply = [0; 10];
    stream.read_exact(&mut reply).await.unwrap();
    (stream, reply[1])
}

async fn is_echoed(stream: &mut TcpStream, text: &[u8]) {
    stream.write_all(text).await.unwrap();
    let mut answer = vec![0; text.len()];
    stream.read_exact(&mut answer).await.unwrap();
    assert_eq!(answer, text);
}

#[test]
fn component_command_lines_are_accepted() {
    let begin = ["control-plane-operator", "konnectivity-socks5-proxy"];
    for (flags, dns) in [
        (vec![], Some(Dns::Management)),
        (vec!["run"], Some(Dns::Management)),
        (vec!["run", GUEST_DNS], Some(Dns::Guest)),
        (
            vec!["run", GUEST_DNS, MANAGEMENT_DNS],
            Some(Dns::GuestThenManagement),
        ),
        (
            vec![
                "run",
                "--resolve-from-guest-cluster-dns=false",
                MANAGEMENT_DNS,
            ],
            Some(Dns::Management),
        ),
        (vec!["run", "--disable-resolver"], None),
    ] {
        let line: Vec<_> = begin
            .iter()
            .chain(&flags)
            .map(ToString::to_string)
            .collect();
        let settings = resolver(&parse(&line));
        assert_eq!(settings.map(|settings| settings.dns), dns, "{flags:?}");
    }
    let args = parse(&begin.map(str::to_owned));
    let common = &args.konnectivity;
    assert_eq!(common.konnectivity_hostname, "konnectivity-server-local");
    assert_eq!(
        (common.konnectivity_port, common.serving_port),
        (8090, 8090)
    );
    let paths = [
        &common.ca_cert_path,
        &common.tls_cert_path,
        &common.tls_key_path,
    ];
    assert_eq!(
        paths.map(|path| path.display().to_string()),
        [
            "/etc/konnectivity/proxy-ca/ca.crt",
            "/etc/konnectivity/proxy-client/tls.crt",
            "/etc/konnectivity/proxy-client/tls.key"
        ]
    );
    assert!(!common.connect_directly_to_cloud_apis);
    assert_eq!(common.family(), Family::Any);
    let line = [begin[0], begin[1], "run", "--prefer-ipv4=true"];
    let args = parse(&line.map(str::to_owned));
    assert_eq!(args.konnectivity.family(), Family::Ipv4);
    for bad in ["walk", "--prefer-ipv4=maybe", "--serving-port=70000"] {
        assert!(
            Cli::try_parse_from([begin[0], begin[1], bad]).is_err(),
            "{bad}"
        );
    }
}

#[tokio::test]
async fn targets_are_resolved_as_the_flags_say() {
    let to = Behavior::Connect(echo().await);
    let guest = Guest {
        targets: &[
            ("172.31.0.20:443", to.clone()),
            ("10.0.0.7:443", to.clone()),
            ("app.example.com:443", to.clone()),
            ("192.0.2.9:443", to),
        ],
        services: &[("shop/api", "172.31.0.20"), ("shop/headless", "None")],
        names: &[
            ("app.example.com", &["10.0.0.7"]),
            ("headless.shop.svc", &["10.0.0.7"]),
        ],
    };
    for (flags, host, expected) in [
        (vec![], "api.shop.svc", "172.31.0.20:443"),
        (vec![], "192.0.2.9", "192.0.2.9:443"),
        (vec![GUEST_DNS], "api.shop", "172.31.0.20:443"),
        (vec![GUEST_DNS], "App.Example.com", "10.0.0.7:443"),
        (vec![GUEST_DNS], "headless.shop.svc", "10.0.0.7:443"),
        (
            vec!["--disable-resolver"],
            "app.example.com",
            "app.example.com:443",
        ),
        (vec!["--disable-resolver"], "192.0.2.9", "192.0.2.9:443"),
        (
            vec![GUEST_DNS, "--connect-directly-to-cloud-apis"],
            "192.0.2.9",
            "192.0.2.9:443",
        ),
    ] {
        let fixture = Fixture::start(&guest).await;
        let (proxy, _signal) = started(&fixture, &flags).await;
        let (mut stream, code) = request(proxy, host, 443).await;
        assert_eq!(code, 0, "{flags:?} {host}");
        is_echoed(&mut stream, b"hello").await;
        assert_eq!(fixture.targets(), [expected], "{flags:?} {host}");
    }
}

#[tokio::test]
async fn failures_have_replies() {
    let respond = Behavior::Respond;
    let guest = Guest {
        targets: &[
            (
                "192.0.2.1:443",
                respond("HTTP/1.1 500 Internal Server Error\r\n\r\ncurrently no tunnels available"),
            ),
            (
                "192.0.2.2:443",
                respond("HTTP/1.1 502 Bad Gateway\r\n\r\nrefused"),
            ),
            (
                "192.0.2.3:443",
                respond("HTTP/1.1 504 Gateway Timeout\r\n\r\ni/o timeout"),
            ),
            ("192.0.2.4:443", respond("HTTP/1.1 200 OK\r\n\r\nearly")),
            ("192.0.2.5:443", respond("")),
        ],
        ..Guest::default()
    };
    let fixture = Fixture::start(&guest).await;
    let (log, _guard) = Log::collect();
    let (proxy, _signal) = started(&fixture, &[GUEST_DNS]).await;
    for (host, expected, logged) in [
        (
            "192.0.2.1",
            3,
            "no agent is connected; check that nodes are ready",
        ),
        (
            "192.0.2.2",
            5,
            "an agent failed to connect; check that the target is reachable",
        ),
        ("192.0.2.3", 6, "status 504: i/o timeout"),
        (
            "192.0.2.4",
            3,
            "it sent data together with the head of its response",
        ),
        (
            "192.0.2.5",
            3,
            "closed the connection without a complete response",
        ),
        (
            "unknown.example.com",
            4,
            "failed to resolve unknown.example.com with DNS of the hosted cluster",
        ),
    ] {
        let (_, code) = request(proxy, host, 443).await;
        assert_eq!(code, expected, "{host}");
        assert!(log.text().contains(logged), "{host}: {}", log.text());
    }
}

#[tokio::test]
async fn failed_guest_dns_falls_back_to_the_management_cluster() {
    let port = echo().await.port();
    let fixture = Fixture::start(&Guest::default()).await;
    let (proxy, _signal) = started(&fixture, &[GUEST_DNS, MANAGEMENT_DNS]).await;
    // The management cluster resolves it, and only there it is this machine.
    let (mut stream, code) = request(proxy, "localhost", port).await;
    assert_eq!(code, 0);
    is_echoed(&mut stream, b"hello").await;
    assert_eq!(fixture.targets(), Vec::<String>::new());
    // From then on, DNS of the hosted cluster is not asked until the retry.
    let asked = fixture.konnectivity.requests().len();
    let (_, code) = request(proxy, "localhost", port).await;
    assert_eq!((code, fixture.konnectivity.requests().len()), (0, asked));
}

#[tokio::test]
async fn cloud_apis_use_the_proxy_of_the_management_cluster() {
    let to = Behavior::Connect(echo().await);
    let fixture = Fixture::start(&Guest::default()).await;
    let pki = Pki::new();
    for (tls, scheme) in [
        (None, "http"),
        (Some(pki.server("127.0.0.1", None)), "https"),
    ] {
        let targets = [("sts.amazonaws.com:443", to.clone())];
        let management = ConnectServer::start(tls, &targets).await;
        let url = format!("{scheme}://user:secret@{}", management.address);
        let mut dialer = dialer(&fixture, &[]).await;
        dialer.cloud_apis = CloudApis::direct([]);
        dialer.proxy_tls = crate::konnectivity::http_proxy::ProxyTls::trusting(pki.roots());
        dialer.management = Proxies {
            https: ProxyUrl::read(&url).unwrap(),
            // Loopback is never proxied, the target is.
            no_proxy: NoProxy::new(".example.com"),
            ..Proxies::default()
        };
        let (proxy, _signal) = serving(dialer).await;
        let (mut stream, code) = request(proxy, "sts.amazonaws.com", 443).await;
        assert_eq!(code, 0, "{scheme}");
        is_echoed(&mut stream, b"hello").await;
        assert_eq!(
            management.requests(),
            [
                "CONNECT sts.amazonaws.com:443 HTTP/1.1\r\nHost: sts.amazonaws.com:443\r\n\
              Proxy-Authorization: Basic dXNlcjpzZWNyZXQ=\r\n\r\n"
            ]
        );
        assert_eq!(fixture.konnectivity.requests(), Vec::<String>::new());
    }
}

#[tokio::test]
async fn certificates_are_verified_by_both_sides() {
    let pki = Pki::new();
    let wrong_name = pki.server("other.example.com", Some(&pki));
    let wrong_authority = Pki::new().server("127.0.0.1", Some(&pki));
    let wrong_client = pki.server("127.0.0.1", Some(&Pki::new()));
    let mut pki = Some(pki);
    for (tls, expected) in [
        (wrong_name, "not valid for"),
        (wrong_authority, "invalid peer certificate"),
        (wrong_client, "konnectivity-server 127.0.0.1"),
    ] {
        let fixture = Fixture::with(pki.take().unwrap(), tls, &Guest::default()).await;
        let (log, _guard) = Log::collect();
        let (proxy, _signal) = started(&fixture, &["--disable-resolver"]).await;
        let (_, code) = request(proxy, "192.0.2.1", 443).await;
        assert_eq!(code, 3, "{expected}");
        assert!(log.text().contains(expected), "{}", log.text());
        assert_eq!(fixture.konnectivity.requests(), Vec::<String>::new());
        pki = Some(fixture.pki);
    }
}

#[tokio::test]
async fn a_server_that_never_responds_times_out() {
    let guest = Guest {
        targets: &[("192.0.2.1:443", Behavior::Silent)],
        ..Guest::default()
    };
    let fixture = Fixture::start(&guest).await;
    let (proxy, _signal) = started(&fixture, &["--disable-resolver"]).await;
    let requesting = tokio::spawn(request(proxy, "192.0.2.1", 443));
    fixture.konnectivity.requested().await;
    tokio::time::pause();
    let begun = Instant::now();
    let (_, code) = requesting.await.unwrap();
    assert_eq!(code, 6);
    assert!(begun.elapsed().as_secs() <= 60, "{:?}", begun.elapsed());
}

#[tokio::test]
async fn silent_clients_are_disconnected() {
    let fixture = Fixture::start(&Guest::default()).await;
    let (proxy, _signal) = started(&fixture, &["--disable-resolver"]).await;
    let mut silent = TcpStream::connect(proxy).await.unwrap();
    silent.write_all(&[5]).await.unwrap();
    tokio::time::pause();
    let begun = Instant::now();
    assert_eq!(silent.read(&mut [0; 1]).await.unwrap(), 0);
    assert!(begun.elapsed().as_secs() <= 10, "{:?}", begun.elapsed());
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
    let (proxy, _signal) = started(&fixture, &["--disable-resolver"]).await;
    let (mut stream, _) = request(proxy, "192.0.2.1", 443).await;
    stream.write_all(b"GET\n").await.unwrap();
    stream.shutdown().await.unwrap();
    let mut response = Vec::new();
    stream.read_to_end(&mut response).await.unwrap();
    assert_eq!(response.len(), RESPONSE.len());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn parallel_streams_do_not_mix() {
    let guest = Guest {
        targets: &[("10.0.0.7:443", Behavior::Connect(echo().await))],
        names: &[("app.example.com", &["10.0.0.7"])],
        ..Guest::default()
    };
    let fixture = Fixture::start(&guest).await;
    let (proxy, _signal) = started(&fixture, &[GUEST_DNS]).await;
    let streams = (0..100_u8).map(|number| {
        tokio::spawn(async move {
            let (mut stream, code) = request(proxy, "app.example.com", 443).await;
            assert_eq!(code, 0);
            for _ in 0..10 {
                is_echoed(&mut stream, &[number; 8000]).await;
            }
        })
    });
    for stream in streams.collect::<Vec<_>>() {
        stream.await.unwrap();
    }
    assert_eq!(fixture.targets().len(), 100);
}

#[tokio::test]
async fn open_streams_survive_the_begin_of_the_shutdown() {
    let guest = Guest {
        targets: &[("192.0.2.1:443", Behavior::Connect(echo().await))],
        ..Guest::default()
    };
    let fixture = Fixture::start(&guest).await;
    let (proxy, signal) = started(&fixture, &["--disable-resolver"]).await;
    let (mut stream, _) = request(proxy, "192.0.2.1", 443).await;
    signal.begin();
    is_echoed(&mut stream, b"hello").await;
    while TcpStream::connect(proxy).await.is_ok() {
        tokio::task::yield_now().await;
    }
    drop(stream);
    tokio::time::pause();
    signal.all_ended().await;
}

#[tokio::test]
async fn errors_at_the_start_name_what_is_missing() {
    let fixture = Fixture::start(&Guest::default()).await;
    let listener = TcpListener::bind("0.0.0.0:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let taken = format!("--serving-port={port}");
    for (flag, expected) in [
        (
            "--ca-cert-path=/missing",
            "failed to read /missing: check the volume mounts, or set --ca-cert-path",
        ),
        ("--tls-cert-path=/missing", "set --tls-cert-path"),
        ("--tls-key-path=/missing", "set --tls-key-path"),
        (
            "--kubeconfig=/missing",
            "failed to read kubeconfig /missing",
        ),
        (
            "--kubeconfig=/dev/null",
            "failed to use the kubeconfig of the hosted cluster",
        ),
        (&taken, "set --serving-port"),
    ] {
        let mut line = fixture.command_line("konnectivity-socks5-proxy", &[]);
        let name = flag.split('=').next().unwrap();
        line.retain(|arg| !arg.starts_with(name));
        line.push(flag.to_owned());
        let (_signal, drain) = shutdown::channel();
        let error = serve(&parse(&line), drain).await.unwrap_err();
        let text = support::error::chain(error.as_ref());
        assert!(text.contains(expected), "{flag}: {text}");
        assert!(!error.is::<crate::error::Usage>(), "{flag}: exit code 1");
    }
}
