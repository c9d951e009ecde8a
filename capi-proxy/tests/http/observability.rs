//! Logs and metrics of the proxy, and what they never contain.

use std::fs;

use crate::harness::{
    Builder, Conn, Http1, MACHINE, MACHINES, PRIVATE, Proxy, Request, WATCH, event, get,
};

/// Check S16.
#[tokio::test]
async fn no_secret_is_logged_at_any_level() {
    for format in ["json", "text"] {
        for level in ["error", "warn", "info", "debug", "trace"] {
            let server = Http1::plain(async |request: Request, conn: &mut Conn| {
                match request.path.as_str() {
                path if path.contains("broken") => conn.json(200, "{\"apiVersion\":\"cluster.hypershift.openshift.io/v1\",\"data\":\"s3cr3t-response\"").await,
                path if path.contains("lost") => conn.close(),
                path if path.contains("watch") => {
                    conn.begin(200).await;
                    conn.chunk("{\"type\":\"ADDED\",\"object\":{\"data\":\"s3cr3t-event\"}}\n]").await;
                    conn.chunk("").await;
                }
                _ => conn.respond(200, "content-type: application/json\r\nx: s3cr3t-header\r\n", b"{\"a\":\"s3cr3t-response\"}").await,
            }
            });
            let flags = [
                format!("--log-level={level}"),
                format!("--log-format={format}"),
            ];
            let builder = Builder::new(&server.url())
                .user("{tokenFile: token}")
                .args(&[&flags[0], &flags[1]]);
            fs::write(builder.path("token"), "s3cr3t-token").unwrap();
            let proxy = builder.start().await;
            get(&proxy, MACHINE).await;
            get(&proxy, &format!("{MACHINES}/broken"))
                .await
                .refusal(502);
            get(&proxy, &format!("{MACHINES}/lost")).await.refusal(502);
            let mut watch = proxy.connect().await;
            watch.ask(WATCH).await;
            let head = watch.head().await;
            assert_eq!(watch.body(&head).await, None);
            let secret = "/api/v1/namespaces/n/secrets";
            proxy
                .connect()
                .await
                .post(secret, "{\"data\":{\"a\":\"s3cr3t-body\"}}")
                .await;
            proxy
                .connect()
                .await
                .post(
                    secret,
                    "{\"apiVersion\":\"cluster.x-k8s.io/v1\",\"data\":\"s3cr3t-body\"",
                )
                .await
                .refusal(400);
            let own = "authorization: Bearer s3cr3t-own\r\ncookie: s3cr3t-cookie\r\n";
            proxy
                .connect()
                .await
                .write("GET", &format!("{MACHINE}?token=s3cr3t-query"), own, b"")
                .await;
            proxy
                .connect()
                .await
                .write("GET", MACHINE, &own.repeat(2), b"")
                .await
                .refusal(400);
            fs::write(
                proxy.path("kubeconfig"),
                "users: [{name: a, user: {token: s3cr3t-new, : [}}]",
            )
            .unwrap();
            crate::harness::eventually("the kubeconfig is read again", async || {
                level == "error" || proxy.log().contains("Credentials cannot be read")
            })
            .await;
            let log = proxy.log();
            assert!(!log.contains("s3cr3t"), "{level}: {log}");
            assert_eq!(
                log.contains("Request ended"),
                matches!(level, "debug" | "trace"),
                "{level}"
            );
        }
    }
}

#[tokio::test]
async fn the_log_has_fields_and_constant_messages() {
    let server =
        Http1::plain(
            async |request: Request, conn: &mut Conn| match request.path.as_str() {
                path if path.contains("lost") => conn.close(),
                path if path.contains("cbor") => {
                    conn.respond(200, "content-type: application/cbor\r\n", b"x")
                        .await
                }
                _ => {
                    conn.json(
                        200,
                        "{\"apiVersion\":\"cluster.hypershift.openshift.io/v1\"",
                    )
                    .await
                }
            },
        );
    let proxy = Proxy::before(&server.url()).await;
    for path in ["broken", "lost", "cbor"] {
        get(&proxy, &format!("{MACHINES}/{path}"))
            .await
            .refusal(502);
    }
    let log = proxy.log();
    let entries: Vec<serde_json::Value> = log
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    for (message, error_type) in [
        ("Translation error", Some("malformed")),
        ("Proxy request failed", None),
        ("Unsupported resource type", None),
    ] {
        let entry = entries
            .iter()
            .find(|entry| entry["message"] == message)
            .unwrap_or_else(|| panic!("{message}: {log}"));
        assert_eq!(
            (&entry["method"], &entry["resource"], &entry["code"]),
            (&"get".into(), &"machines".into(), &502.into()),
            "{message}"
        );
        assert_eq!(entry["error_type"].as_str(), error_type);
    }
}

/// Check S17.
#[tokio::test]
async fn probes_and_metrics_have_no_cluster_data_and_bounded_size() {
    let server = Http1::plain(async |request: Request, conn: &mut Conn| {
        let (code, body) = if request.path.contains("pods") {
            (404, "{}")
        } else {
            (200, PRIVATE)
        };
        conn.json(code, body).await;
    });
    let proxy = Proxy::before(&server.url()).await;
    let mut client = proxy.connect().await;
    for number in 0..600 {
        let group = ["cluster.x-k8s.io", "example.com"][number % 2];
        client
            .get(&format!(
                "/apis/{group}/v1/namespaces/hidden{number}/hidden{number}s/hidden{number}"
            ))
            .await;
        client.get(&format!("/hidden{number}/hidden")).await;
        client
            .write(
                "PATCH",
                &format!("/api/v1/namespaces/hidden{number}/pods/hidden"),
                "content-type: application/merge-patch+json\r\n",
                b"{}",
            )
            .await;
    }
    let metrics = proxy.admin("/metrics").await;
    assert_eq!(
        metrics.header("content-type"),
        Some("application/openmetrics-text; version=1.0.0; charset=utf-8")
    );
    let text = metrics.text();
    assert!(!text.contains("hidden"), "{text}");
    assert!(text.lines().count() < 200, "{text}");
    assert!(text.contains("hypershift_api_proxy_requests_total{method=\"patch\",resource=\"pods\",code=\"404\"} 600"), "{text}");
    assert!(text.contains("resource=\"other\""), "{text}");
    for (path, code) in [
        ("/healthz", 200),
        ("/readyz", 200),
        ("/", 404),
        ("/api/v1/secrets", 404),
    ] {
        let response = proxy.admin(path).await;
        assert_eq!(response.status, code, "{path}");
        assert!(!response.text().contains("hidden"));
    }
    assert_eq!(
        client.get("/healthz").await.text(),
        "ok",
        "the proxy's own, on the first port too"
    );
}

#[tokio::test]
async fn stored_standard_names_are_counted_and_shown_as_private() {
    let server = Http1::plain(async |request: Request, conn: &mut Conn| {
        let stored = event(1, 1).replace("cluster.hypershift.openshift.io", "cluster.x-k8s.io");
        if request.path.contains("watch") {
            conn.begin(200).await;
            conn.chunk(stored).await;
            conn.chunk("").await;
        } else {
            conn.json(
                200,
                r#"{"metadata":{"ownerReferences":[{"apiVersion":"cluster.x-k8s.io/v1beta2"}]}}"#,
            )
            .await;
        }
    });
    let proxy = Proxy::before(&server.url()).await;
    let response = get(&proxy, "/api/v1/namespaces/n/secrets/s").await;
    assert!(
        response
            .text()
            .contains("cluster.hypershift.openshift.io/v1beta2"),
        "{}",
        response.text()
    );
    get(&proxy, WATCH).await;
    let count = proxy
        .metric("hypershift_api_proxy_foreign_names_total")
        .await;
    assert!((count - 2.0).abs() < 0.5, "{count}");
}

#[tokio::test]
async fn untranslated_private_names_are_counted_with_debug_leaks() {
    let server = Http1::plain(async |_: Request, conn: &mut Conn| {
        conn.json(
            200,
            r#"{"status":{"note":"in cluster.hypershift.openshift.io"}}"#,
        )
        .await;
    });
    let proxy = Builder::new(&server.url())
        .args(&["--debug-leaks"])
        .start()
        .await;
    get(&proxy, "/api/v1/namespaces/n/secrets/s").await;
    let count = proxy
        .metric("hypershift_api_proxy_leaked_names_total")
        .await;
    assert!((count - 1.0).abs() < 0.5, "{count}");
}
