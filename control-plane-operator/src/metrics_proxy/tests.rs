//! Tests of `metrics-proxy`: who may request what.

use clap::Parser as _;
use serde_json::json;

use super::*;
use crate::args::{Cli, Command};

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

/// A pod that serves one metric, and one that does not answer.
#[tokio::test]
async fn failed_pods_do_not_hide_the_others() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut head = [0; 1024];
            let _ = stream.read(&mut head).await.unwrap();
            let response =
                "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nup 1\n";
            stream.write_all(response.as_bytes()).await.unwrap();
        }
    });
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
