//! Tests of `metrics-proxy`: who may request what.

use std::net::SocketAddr;

use clap::Parser as _;
use http_body_util::BodyExt as _;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use super::*;
use crate::args::{Cli, Command};
use crate::error::exit_code;

fn config() -> Config {
    let component = json!({ "name": "etcd", "selector": { "app": "etcd" }, "metricsPort": 2381 });
    let config = json!({
        "endpointResolver": { "url": "https://endpoint-resolver.clusters-dev.svc" },
        "components": [component],
    });
    serde_json::from_value(config).unwrap()
}

#[test]
fn only_verified_clients_read_metrics() {
    let get = Method::GET;
    for (method, path, peer, expected) in [
        (&get, "/metrics/etcd", Peer::Verified, Ok("etcd")),
        (
            &get,
            "/metrics/etcd",
            Peer::Unknown,
            Err(Refused::Unauthenticated),
        ),
        (
            &get,
            "/metrics/other",
            Peer::Unknown,
            Err(Refused::Unauthenticated),
        ),
        (
            &get,
            "/metrics/other",
            Peer::Verified,
            Err(Refused::Unknown),
        ),
        (&get, "/metrics/", Peer::Verified, Err(Refused::Path)),
        (&get, "/metrics", Peer::Verified, Err(Refused::Path)),
        (&get, "/metrics/etcd/", Peer::Verified, Err(Refused::Path)),
        (&get, "/metrics/etcd/a", Peer::Verified, Err(Refused::Path)),
        (
            &Method::POST,
            "/metrics/etcd",
            Peer::Verified,
            Err(Refused::Method),
        ),
    ] {
        let found = requested(&config(), method, path, peer).map(|it| it.name.clone());
        assert_eq!(
            found,
            expected.map(str::to_owned),
            "{method} {path} {peer:?}"
        );
    }
    for (refused, status) in [
        (Refused::Unauthenticated, StatusCode::UNAUTHORIZED),
        (Refused::Unknown, StatusCode::NOT_FOUND),
        (Refused::Path, StatusCode::BAD_REQUEST),
    ] {
        assert_eq!(refused.response().status(), status);
    }
}

#[test]
fn configuration_has_defaults() {
    let config = config();
    let etcd = config.component("etcd").unwrap();
    assert_eq!(etcd.metrics_path, "/metrics");
    assert_eq!(etcd.metrics_scheme, config::Scheme::Https);
    let none = json!({ "endpointResolver": { "url": "https://a" }, "components": null });
    let none: Config = serde_json::from_value(none).unwrap();
    assert!(none.component("etcd").is_none());
}

#[test]
fn component_command_line_is_accepted() {
    let line = [
        "control-plane-operator",
        "metrics-proxy",
        "--namespace=clusters-dev",
        "--config-file",
        "/etc/metrics-proxy/config/config.yaml",
    ];
    let args = |more: &[&'static str]| {
        let line = line.iter().chain(more);
        let Command::MetricsProxy(args) = Cli::try_parse_from(line).unwrap().command else {
            panic!("another subcommand");
        };
        args
    };
    assert_eq!(args(&[]).metrics_set, CollectedMetrics::All);
    assert_eq!(args(&[]).serving_port, 9443);
    for (set, expected) in [
        ("telemetry", CollectedMetrics::Telemetry),
        ("Telemetry", CollectedMetrics::Telemetry),
        ("sre", CollectedMetrics::Sre),
        ("ALL", CollectedMetrics::All),
    ] {
        assert_eq!(args(&["--metrics-set", set]).metrics_set, expected, "{set}");
    }
    assert!(Cli::try_parse_from(line.iter().take(3)).is_err());
}

/// A server of this address that answers every request with this.
async fn answering(status: &str, body: &str) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let length = body.len();
    let answer =
        format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}");
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let _ = stream.read(&mut [0; 4096]).await;
            let _ = stream.write_all(answer.as_bytes()).await;
        }
    });
    address
}

#[tokio::test]
async fn answers_follow_the_resolver_and_the_pods() {
    let pod = answering("200 OK", "up 1\n").await;
    let broken = answering("500 Internal Server Error", "no").await;
    let pods = |ips: &[&str]| {
        let pods: Vec<_> = ips
            .iter()
            .map(|ip| json!({ "name": format!("pod-{ip}"), "ip": ip }))
            .collect();
        json!({ "pods": pods }).to_string()
    };
    let labelled = "up{pod=\"pod-127.0.0.1\"";
    // No process listens at 127.0.0.9.
    let failed =
        "metrics_aggregator_pod_scrape_errors_total{component=\"etcd\",pod=\"pod-127.0.0.9\"} 1";
    for (name, resolver, target, expected, parts) in [
        (
            "the resolver fails",
            ("500 Internal Server Error", String::new()),
            pod,
            StatusCode::INTERNAL_SERVER_ERROR,
            &["failed to resolve the component's pods"][..],
        ),
        (
            "the resolver's response is none",
            ("200 OK", "{".to_owned()),
            pod,
            StatusCode::INTERNAL_SERVER_ERROR,
            &["failed to resolve the component's pods"][..],
        ),
        (
            "no pod",
            ("404 Not Found", "no ready pod".to_owned()),
            pod,
            StatusCode::OK,
            &[][..],
        ),
        (
            "an empty list",
            ("200 OK", pods(&[])),
            pod,
            StatusCode::OK,
            &[][..],
        ),
        (
            "all pods fail",
            ("200 OK", pods(&["127.0.0.1", "127.0.0.9"])),
            broken,
            StatusCode::BAD_GATEWAY,
            &["failed to scrape all pods of the component"][..],
        ),
        (
            "one pod fails",
            ("200 OK", pods(&["127.0.0.1", "127.0.0.9"])),
            pod,
            StatusCode::OK,
            &[labelled, failed][..],
        ),
    ] {
        let resolver = answering(resolver.0, &resolver.1).await;
        let component = json!({
            "name": "etcd", "selector": { "app": "etcd" }, "metricsPort": target.port(),
            "metricsScheme": "http",
        });
        let (status, body) = answer(resolver, component).await;
        assert_eq!(status, expected, "{name}: {body}");
        assert_eq!(body.is_empty(), parts.is_empty(), "{name}: {body}");
        for part in parts {
            assert!(body.contains(part), "{name}: {body}");
        }
    }
    let component = json!({ "name": "etcd", "metricsPort": pod.port() });
    let closed = SocketAddr::from(([127, 0, 0, 9], 1));
    let (status, _) = answer(closed, component).await;
    assert_eq!(status, StatusCode::INTERNAL_SERVER_ERROR, "no resolver");
}

/// What the proxy answers for a component.
async fn answer(resolver: SocketAddr, component: serde_json::Value) -> (StatusCode, String) {
    let config = json!({
        "endpointResolver": { "url": format!("http://{resolver}") }, "components": [component],
    });
    let config: Config = serde_json::from_value(config).unwrap();
    let proxy = Proxy {
        resolver: Resolver::new(&config.endpoint_resolver).unwrap(),
        config,
        namespace: "clusters-dev".to_owned(),
        set: CollectedMetrics::All,
    };
    let request = Request::get("/metrics/etcd").body(Bytes::new()).unwrap();
    let (head, body) = proxy.respond(request, Peer::Verified).await.into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    (head.status, String::from_utf8(body.to_vec()).unwrap())
}

#[test]
fn an_unusable_configuration_is_a_usage_error() {
    let directory = tempfile::tempdir().unwrap();
    for (name, content, expected) in [
        ("missing", None, "No such file"),
        ("not YAML", Some("{"), "config.yaml: "),
        ("no resolver", Some("components: []"), "endpointResolver"),
        (
            "no port",
            Some("endpointResolver: {url: 'https://a'}\ncomponents: [{name: etcd}]"),
            "metricsPort",
        ),
        (
            "an unknown scheme",
            Some(
                "endpointResolver: {url: 'https://a'}\n\
                 components: [{name: etcd, metricsPort: 1, metricsScheme: ftp}]",
            ),
            "ftp",
        ),
    ] {
        let path = directory.path().join("config.yaml");
        if let Some(content) = content {
            std::fs::write(&path, content).unwrap();
        }
        let file = format!("--config-file={}", path.display());
        let line = [
            "control-plane-operator",
            "metrics-proxy",
            "--namespace=a",
            &file,
        ];
        let Command::MetricsProxy(args) = Cli::try_parse_from(line).unwrap().command else {
            panic!("another subcommand");
        };
        let error = run(&args).unwrap_err();
        let text = error.to_string();
        let prefix = format!("failed to use --config-file {}", path.display());
        assert!(text.starts_with(&prefix), "{name}: {text}");
        assert!(text.contains(expected), "{name}: {text}");
        let code = format!("{:?}", exit_code(error.as_ref()));
        assert_eq!(
            code,
            format!("{:?}", std::process::ExitCode::from(64)),
            "{name}"
        );
    }
}

/// A pod that serves one metric, and one that does not answer.
#[tokio::test]
async fn failed_pods_do_not_hide_the_others() {
    let port = answering("200 OK", "up 1\n").await.port();
    let component: Component = serde_json::from_value(json!({
        "name": "etcd", "metricsPort": port, "metricsScheme": "http",
    }))
    .unwrap();
    let pod = |ip: &str| Target {
        name: "etcd-0".to_owned(),
        ip: ip.to_owned(),
    };
    let scraped = scrape::pod(&component, &pod("127.0.0.1")).await;
    assert_eq!(scraped.unwrap(), "up 1\n");
    let refused = Component {
        metrics_port: 1,
        ..component
    };
    let error = scrape::pod(&refused, &pod("127.0.0.1")).await.unwrap_err();
    assert!(error.to_string().contains("http://127.0.0.1:1"), "{error}");
}
