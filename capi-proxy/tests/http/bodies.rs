//! Bodies of requests and responses: translated, streamed, limited, refused.

use crate::harness::{
    Builder, Conn, Http1, MACHINE, MACHINES, PRIVATE, Proxy, Request, STANDARD, eventually, get,
};

const JSON: &str = "content-type: application/json\r\n";

/// Check R01.
#[tokio::test]
async fn requests_and_responses_are_translated() {
    let server = Http1::plain(async |_, conn: &mut Conn| {
        let headers = "content-type: application/json\r\naudit-id: 7\r\nx-kubernetes-pf-flowschema-uid: b\r\n\
                       warning: 299 - \"cluster.hypershift.openshift.io/v1beta1 Machine is deprecated\"\r\n";
        conn.respond(200, headers, PRIVATE.as_bytes()).await;
    });
    let proxy = Proxy::before(&server.url()).await;
    let headers =
        "content-type: application/json\r\nuser-agent: manager/v1 cluster.x-k8s.io/v1beta2\r\n";
    let path = format!("{MACHINE}?fieldManager=cluster.x-k8s.io");
    let response = proxy
        .connect()
        .await
        .write("PUT", &path, headers, STANDARD.as_bytes())
        .await;
    assert_eq!(
        (response.status, response.text()),
        (200, STANDARD.to_owned())
    );
    assert_eq!(
        response.header("content-length"),
        Some(STANDARD.len().to_string().as_str())
    );
    assert_eq!(response.header("audit-id"), Some("7"));
    assert_eq!(
        response.header("warning"),
        Some("299 - \"cluster.x-k8s.io/v1beta1 Machine is deprecated\"")
    );
    let sent = server.only();
    assert_eq!(
        sent.path,
        "/apis/cluster.hypershift.openshift.io/v1beta2/namespaces/n/machines/m?fieldManager=cluster.x-k8s.io"
    );
    assert_eq!(sent.text(), PRIVATE);
    assert_eq!(
        sent.header("content-length"),
        Some(PRIVATE.len().to_string().as_str())
    );
    assert_eq!(
        sent.header("user-agent"),
        Some("manager/v1 cluster.x-k8s.io/v1beta2")
    );
    assert_eq!(sent.header("accept-encoding"), Some("identity"));
}

/// Check R20.
#[tokio::test]
async fn errors_keep_their_code_and_name_the_standard_group() {
    let status = r#"{"kind":"Status","apiVersion":"v1","status":"Failure","message":"machines.cluster.hypershift.openshift.io \"m\" not found","reason":"NotFound","details":{"name":"m","group":"cluster.hypershift.openshift.io","kind":"machines"},"code":404}"#;
    let server = Http1::plain(async move |_, conn: &mut Conn| conn.json(404, status).await);
    let proxy = Proxy::before(&server.url()).await;
    let response = get(&proxy, MACHINE).await;
    assert_eq!(response.status, 404);
    assert_eq!(
        response.text(),
        status.replace("cluster.hypershift.openshift.io", "cluster.x-k8s.io")
    );
}

/// Check R14.
#[tokio::test]
async fn etags_are_salted_and_unsalted() {
    let server = Http1::plain(async |request: Request, conn: &mut Conn| {
        match request.header("if-none-match") {
            Some("\"abc\"") => {
                conn.write("HTTP/1.1 304 Not Modified\r\netag: \"abc\"\r\n\r\n")
                    .await
            }
            _ => {
                conn.respond(
                    200,
                    "content-type: application/json\r\netag: \"abc\"\r\n",
                    b"{}",
                )
                .await
            }
        }
    });
    let proxy = Proxy::before(&server.url()).await;
    let first = get(&proxy, "/apis").await;
    let etag = first.header("etag").unwrap().to_owned();
    assert_ne!(etag, "\"abc\"");
    let again = proxy
        .connect()
        .await
        .write("GET", "/apis", &format!("if-none-match: {etag}\r\n"), b"")
        .await;
    assert_eq!(
        (again.status, again.header("etag")),
        (304, Some(etag.as_str()))
    );
    let direct = proxy
        .connect()
        .await
        .write("GET", "/apis", "if-none-match: \"abc\"\r\n", b"")
        .await;
    assert_eq!(direct.status, 200, "what was cached without us is not ours");
}

/// Checks R23, R24.
#[tokio::test]
async fn untranslatable_encodings_are_rejected() {
    let server = Http1::plain(async |request: Request, conn: &mut Conn| {
        match request.path.rsplit('/').next() {
            Some("gzip") => {
                conn.respond(
                    200,
                    "content-type: application/json\r\ncontent-encoding: gzip\r\n",
                    b"??",
                )
                .await
            }
            Some("cbor") => {
                conn.respond(200, "content-type: application/cbor\r\n", b"??")
                    .await
            }
            _ => conn.json(200, PRIVATE).await,
        }
    });
    let proxy = Proxy::before(&server.url()).await;
    let mut client = proxy.connect().await;
    let gzip = "content-type: application/json\r\ncontent-encoding: gzip\r\n";
    client
        .write("POST", MACHINES, gzip, b"\x1f\x8b")
        .await
        .refusal(415);
    client
        .write(
            "POST",
            MACHINES,
            "content-type: application/cbor\r\n",
            b"\xd9",
        )
        .await
        .refusal(415);
    client
        .write("GET", MACHINES, "accept: application/cbor\r\n", b"")
        .await
        .refusal(406);
    assert!(server.requests().is_empty(), "no upstream write");
    get(&proxy, &format!("{MACHINES}/gzip")).await.refusal(502);
    get(&proxy, &format!("{MACHINES}/cbor")).await.refusal(502);
    let errors = proxy
        .metric("hypershift_api_proxy_translation_errors_total{error_type=\"encoding\"}")
        .await;
    assert!((errors - 5.0).abs() < 0.5, "{errors}");
}

#[tokio::test]
async fn pod_logs_pass_unchanged() {
    let log = b"cluster.hypershift.openshift.io \xff\x00\n";
    let server = Http1::plain(async move |_, conn: &mut Conn| {
        conn.respond(
            200,
            "content-type: text/plain\r\ncontent-encoding: x\r\netag: \"a\"\r\n",
            log,
        )
        .await;
    });
    let proxy = Proxy::before(&server.url()).await;
    let path = "/api/v1/namespaces/n/pods/p/log?follow=true";
    let response = proxy
        .connect()
        .await
        .write("GET", path, "accept-encoding: gzip\r\naccept: x/y\r\n", b"")
        .await;
    assert_eq!(response.body, log);
    assert_eq!(response.header("etag"), Some("\"a\""));
    let sent = server.only();
    assert_eq!(
        (sent.header("accept-encoding"), sent.header("accept")),
        (Some("gzip"), Some("x/y"))
    );
}

#[tokio::test]
async fn large_bodies_are_streamed_and_small_ones_buffered() {
    let item = PRIVATE;
    let server = Http1::plain(async move |request: Request, conn: &mut Conn| {
        if request.method == "POST" {
            conn.json(201, "{}").await;
            return;
        }
        conn.begin(200).await;
        conn.chunk(b"{\"apiVersion\":\"cluster.hypershift.openshift.io/v1beta2\",\"items\":[")
            .await;
        for _ in 0..if request.path.contains("limit=5") {
            5
        } else {
            5000
        } {
            conn.chunk(format!("{item},")).await;
        }
        conn.chunk("{}]}").await;
        conn.chunk("").await;
    });
    let proxy = Proxy::before(&server.url()).await;
    let expected = |count: usize| {
        format!(
            "{{\"apiVersion\":\"cluster.x-k8s.io/v1beta2\",\"items\":[{}{{}}]}}",
            format!("{STANDARD},").repeat(count)
        )
    };
    let small = get(&proxy, &format!("{MACHINES}?limit=5")).await;
    assert_eq!(
        (small.text(), small.header("content-length").is_some()),
        (expected(5), true)
    );
    let large = get(&proxy, MACHINES).await;
    assert_eq!(large.header("transfer-encoding"), Some("chunked"));
    assert!(large.text() == expected(5000));

    let body = expected(3000);
    let response = proxy
        .connect()
        .await
        .write("POST", MACHINES, JSON, body.as_bytes())
        .await;
    assert_eq!(response.status, 201);
    let sent = server.requests().pop().unwrap();
    assert!(sent.text() == body.replace("cluster.x-k8s.io", "cluster.hypershift.openshift.io"));
}

/// Check S20.
#[tokio::test]
async fn request_bodies_are_limited_with_any_framing() {
    let server = Http1::object("{}");
    let proxy = Proxy::before(&server.url()).await;
    let mut client = proxy.connect().await;
    let head = format!("POST {MACHINES} HTTP/1.1\r\nhost: localhost\r\n{JSON}");
    client
        .send(format!("{head}content-length: 10485760\r\n\r\n"))
        .await;
    client.response().await.refusal(413);
    assert!(server.requests().is_empty());

    let mut endless = proxy.connect().await;
    endless
        .send(format!(
            "{head}transfer-encoding: chunked\r\n\r\n2\r\n[0\r\n"
        ))
        .await;
    let chunk = format!("10000\r\n{}\r\n", ",0".repeat(0x8000));
    for _ in 0..64 {
        endless.send(&chunk).await;
    }
    endless.response().await.refusal(413);
    assert!(server.requests().is_empty(), "half a body is no request");

    let small = Builder::new(&server.url())
        .args(&["--max-request-body=100"])
        .start()
        .await;
    small
        .connect()
        .await
        .post(MACHINES, &format!("\"{}\"", "a".repeat(99)))
        .await
        .refusal(413);
    assert_eq!(
        small
            .connect()
            .await
            .post(MACHINES, &format!("\"{}\"", "a".repeat(98)))
            .await
            .status,
        200
    );
}

#[tokio::test]
async fn a_body_rejected_midway_is_not_forwarded() {
    let server = Http1::object("{}");
    let proxy = Proxy::before(&server.url()).await;
    let body = format!("[{}\"unfinished", "1234567890,".repeat(10_000));
    let response = proxy.connect().await.post(MACHINES, &body).await;
    assert!(response.refusal(400).len() > 10);
    assert!(server.requests().is_empty());
    let errors = proxy
        .metric("hypershift_api_proxy_translation_errors_total{error_type=\"malformed\"}")
        .await;
    assert!((errors - 1.0).abs() < 0.5, "{errors}");
}

#[tokio::test]
async fn a_disconnect_within_a_body_aborts_the_write() {
    let server = Http1::object("{}");
    let proxy = Proxy::before(&server.url()).await;
    let files = proxy.files();
    let mut client = proxy.connect().await;
    client
        .send(format!(
            "POST {MACHINES} HTTP/1.1\r\nhost: localhost\r\n{JSON}content-length: 200000\r\n\r\n"
        ))
        .await;
    client.send(format!("[{}", "1,".repeat(50_000))).await;
    eventually("the request is on its way", async || proxy.files() > files).await;
    drop(client);
    proxy.settles_at(files).await;
    assert!(server.requests().is_empty());
}

#[tokio::test]
async fn expect_continue_gets_a_response_before_the_body() {
    let server = Http1::object("{}");
    let proxy = Proxy::before(&server.url()).await;
    let mut client = proxy.connect().await;
    let length = STANDARD.len();
    client
        .send(format!(
            "POST {MACHINES} HTTP/1.1\r\nhost: localhost\r\n{JSON}expect: 100-continue\r\ncontent-length: {length}\r\n\r\n"
        ))
        .await;
    assert_eq!(client.head().await.status, 100);
    client.send(STANDARD).await;
    assert_eq!(client.response().await.status, 200);
    assert_eq!(
        (server.only().text(), server.only().header("expect")),
        (PRIVATE.to_owned(), None)
    );
}

/// Check F08.
#[tokio::test]
async fn a_malformed_response_is_an_error_or_truncated() {
    let good = format!("{{\"items\":[{}{{}}]}}", format!("{PRIVATE},").repeat(2000));
    let server = Http1::plain(async move |request: Request, conn: &mut Conn| {
        let whole = good.as_bytes();
        match request.path.rsplit('/').next().unwrap() {
            "small" => {
                conn.json(
                    200,
                    "{\"apiVersion\":\"cluster.hypershift.openshift.io/v1beta2\"",
                )
                .await
            }
            "early" => conn.json(200, &format!("}}{good}")).await,
            "late" => {
                conn.begin(200).await;
                conn.chunk(&whole[..150_000]).await;
                conn.chunk(b"]]]").await;
                conn.chunk(b"").await;
            }
            "truncated" => {
                conn.begin(200).await;
                conn.chunk(&whole[..150_000]).await;
                conn.chunk(b"").await;
            }
            _ => {
                conn.begin(200).await;
                conn.chunk(&whole[..150_000]).await;
                conn.close();
            }
        }
    });
    let proxy = Proxy::before(&server.url()).await;
    for path in ["small", "early"] {
        get(&proxy, &format!("{MACHINES}/{path}"))
            .await
            .refusal(502);
    }
    for path in ["late", "truncated", "lost"] {
        let mut client = proxy.connect().await;
        client.ask(&format!("{MACHINES}/{path}")).await;
        let head = client.head().await;
        assert_eq!(head.status, 200, "{path}: it began well");
        assert_eq!(client.body(&head).await, None, "{path}");
    }
    let errors = proxy
        .metric("hypershift_api_proxy_translation_errors_total{error_type=\"malformed\"}")
        .await;
    assert!((errors - 4.0).abs() < 0.5, "{errors}");
}

#[tokio::test]
async fn writes_of_webhook_configurations_are_rejected() {
    let server = Http1::object("{}");
    let proxy = Proxy::before(&server.url()).await;
    let path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
    proxy.connect().await.post(path, "{}").await.refusal(403);
    assert!(server.requests().is_empty());
}
