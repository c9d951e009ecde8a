//! Who may request what, and with whose permissions.

use std::os::unix::fs::PermissionsExt;

use crate::harness::{Builder, Client, Conn, Http1, MACHINE, PRIVATE, Pki, Proxy, Request, get};

/// Checks S01, S02.
#[tokio::test]
async fn ambiguous_paths_are_not_forwarded() {
    let server = Http1::object(PRIVATE);
    let proxy = Proxy::before(&server.url()).await;
    for path in [
        "/apis/cluster.x-k8s.io/v1beta1/../../../api/v1/secrets",
        "/apis/cluster.x-k8s.io/v1beta1/%2e%2e/%2e%2e/%2E%2E/api/v1/secrets",
        "/apis/cluster.x-k8s.io/v1beta1/.%2e/secrets",
        "//apis//cluster.x-k8s.io",
        "/apis/cluster.x-k8s.io%2Fv1beta1",
        "/apis/./cluster.x-k8s.io",
        "/apis/cluster.x-k8s.io;a=b/v1beta1",
        "/apis\\cluster.x-k8s.io",
        "/apis/cluster.x-k8s.io%5Cv1beta1",
        "/apis/cluster.x-k8s.io/%00",
        "/api/v1/%25%32%65%25%32%65/secrets",
    ] {
        get(&proxy, path).await.refusal(400);
    }
    assert!(server.requests().is_empty(), "{:#?}", server.requests());
}

/// Check S18.
#[tokio::test]
async fn queries_are_forwarded_unchanged() {
    let server = Http1::object(PRIVATE);
    let proxy = Proxy::before(&server.url()).await;
    let query =
        "labelSelector=a%3Db%26c&fieldSelector=x+y&limit=500&continue=e%2Ff%3D%3D&resourceVersion=";
    get(&proxy, &format!("{MACHINE}?{query}")).await;
    assert!(
        server.only().path.ends_with(&format!("?{query}")),
        "{}",
        server.only().path
    );
}

/// Check S18.
#[tokio::test]
async fn duplicate_query_parameters_follow_the_api_server() {
    // The API server takes the first of two.
    let server =
        Http1::plain(async |_, conn: &mut Conn| conn.json(200, "{\"kind\":\"Status\"}").await);
    let proxy = Proxy::before(&server.url()).await;
    let path = "/api/v1/pods?watch=false&watch=true";
    let response = get(&proxy, path).await;
    assert_eq!(server.only().path, path);
    assert_eq!(
        response.header("content-length"),
        Some("17"),
        "an ordinary response is not a stream"
    );
}

/// Check S04.
#[tokio::test]
async fn foreign_hosts_and_web_pages_are_rejected_before_forwarding() {
    let server = Http1::object(PRIVATE);
    let proxy = Builder::new(&server.url())
        .args(&["--allow-host=proxy.internal"])
        .start()
        .await;
    for headers in [
        "host: evil.com\r\n",
        "host: localhost.evil.com:8080\r\n",
        "host: 169.254.169.254\r\n",
        "",
        "host: localhost\r\norigin: http://localhost\r\n",
        "host: localhost\r\nreferer: http://localhost/\r\n",
    ] {
        let mut client = proxy.connect().await;
        client
            .send(format!("GET {MACHINE} HTTP/1.1\r\n{headers}\r\n"))
            .await;
        client.response().await.refusal(403);
    }
    assert!(server.requests().is_empty());
    for host in ["localhost:1", "127.0.0.1", "[::1]:8080", "proxy.internal"] {
        let mut client = proxy.connect().await;
        client
            .send(format!("GET {MACHINE} HTTP/1.1\r\nhost: {host}\r\n\r\n"))
            .await;
        assert_eq!(client.response().await.status, 200, "{host}");
    }
    let seen = server.requests();
    assert!(
        seen.iter()
            .all(|request| request.header("host") == Some(server.address.as_str())),
        "{seen:#?}"
    );
}

/// Check S05.
#[tokio::test]
async fn connection_header_cannot_remove_other_headers() {
    let server = Http1::object(PRIVATE);
    let proxy = Builder::new(&server.url())
        .args(&["--allow-impersonation"])
        .start()
        .await;
    for named in [
        "Impersonate-User",
        "Authorization",
        "Content-Length",
        "close, impersonate-user",
    ] {
        let mut client = proxy.connect().await;
        client
            .send(format!(
                "GET {MACHINE} HTTP/1.1\r\nhost: localhost\r\nimpersonate-user: alice\r\nconnection: {named}\r\n\r\n"
            ))
            .await;
        client.response().await.refusal(400);
    }
    assert!(server.requests().is_empty());
}

/// Check S06.
#[tokio::test]
async fn impersonation_is_rejected_unless_allowed() {
    let server = Http1::object(PRIVATE);
    let headers = "impersonate-user: jane\r\nimpersonate-group: a\r\nimpersonate-group: b\r\n";
    let refusing = Proxy::before(&server.url()).await;
    let refused = refusing
        .connect()
        .await
        .write("GET", MACHINE, headers, b"")
        .await;
    assert!(refused.refusal(403).contains("--allow-impersonation"));
    assert!(server.requests().is_empty());

    let allowing = Builder::new(&server.url())
        .args(&["--allow-impersonation"])
        .start()
        .await;
    assert_eq!(
        allowing
            .connect()
            .await
            .write("GET", MACHINE, headers, b"")
            .await
            .status,
        200
    );
    let sent = server.only().headers;
    let sent: Vec<_> = sent
        .iter()
        .filter(|(name, _)| name.starts_with("impersonate-"))
        .map(|(_, value)| value)
        .collect();
    assert_eq!(sent, ["jane", "a", "b"]);
}

/// Check S07.
#[tokio::test]
async fn client_authorization_is_forwarded_instead_of_ours() {
    let server = Http1::plain(async |request: Request, conn: &mut Conn| {
        let ours = request.header("authorization") == Some("Bearer the-proxys-token");
        let body = r#"{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Unauthorized","code":401}"#;
        if ours {
            conn.json(200, PRIVATE).await
        } else {
            conn.json(401, body).await
        }
    });
    let proxy = Proxy::before(&server.url()).await;
    assert_eq!(get(&proxy, MACHINE).await.status, 200);
    let own = "authorization: Bearer theirs\r\n";
    let refused = proxy.connect().await.write("GET", MACHINE, own, b"").await;
    assert_eq!(refused.status, 401, "its refusal is passed on");
    let two = proxy
        .connect()
        .await
        .write("GET", MACHINE, &own.repeat(2), b"")
        .await;
    two.refusal(400);
    let seen: Vec<_> = server.requests();
    let seen: Vec<_> = seen
        .iter()
        .map(|request| request.header("authorization").unwrap())
        .collect();
    assert_eq!(
        seen,
        ["Bearer the-proxys-token", "Bearer theirs"],
        "and never tried again with our token"
    );
}

/// Check S07.
#[tokio::test]
async fn client_authorization_is_sent_without_our_certificate() {
    let pki = Pki::new();
    let tls = pki.tls(&pki.server("127.0.0.1"), &[]);
    let server = Http1::tls(tls, async |_, conn: &mut Conn| {
        conn.json(200, PRIVATE).await
    });
    let builder = Builder::new(&server.secure_url()).trusting(&pki);
    let leaf = pki.client();
    std::fs::write(builder.path("client.crt"), leaf.certificate).unwrap();
    std::fs::write(builder.path("client.key"), leaf.key).unwrap();
    let proxy = builder
        .user("{client-certificate: client.crt, client-key: client.key}")
        .start()
        .await;
    for _ in 0..2 {
        get(&proxy, MACHINE).await;
        proxy
            .connect()
            .await
            .write("GET", MACHINE, "authorization: Bearer theirs\r\n", b"")
            .await;
    }
    let seen: Vec<_> = server
        .requests()
        .iter()
        .map(|request| (request.certified, request.header("authorization").is_some()))
        .collect();
    assert_eq!(
        seen,
        [(true, false), (false, true), (true, false), (false, true)]
    );
}

/// Check S12.
#[tokio::test]
async fn redirects_are_forwarded_and_not_followed() {
    let elsewhere = Http1::object(PRIVATE);
    let location = elsewhere.url();
    let server = Http1::plain(async move |_, conn: &mut Conn| {
        conn.respond(
            307,
            &format!("location: {location}/apis/cluster.hypershift.openshift.io/v1beta2\r\n"),
            b"",
        )
        .await;
    });
    let proxy = Proxy::before(&server.url()).await;
    let response = get(&proxy, MACHINE).await;
    assert_eq!(response.status, 307);
    let expected = format!("{}/apis/cluster.x-k8s.io/v1beta2", elsewhere.url());
    assert_eq!(response.header("location"), Some(expected.as_str()));
    assert!(
        elsewhere.requests().is_empty(),
        "our token stays where it belongs"
    );
}

/// Check S15.
#[tokio::test]
async fn a_unix_socket_is_accessible_to_owner_and_group_only() {
    let server = Http1::object(PRIVATE);
    let builder = Builder::new(&server.url());
    let path = builder.path("socket");
    // What a killed process leaves behind is replaced.
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    let listen = format!("--listen=unix:{}", path.display());
    let proxy = builder.listening_elsewhere().args(&[&listen]).start().await;
    let mode = std::fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o660);
    assert_eq!(
        Client::connect(&proxy.listen)
            .await
            .get(MACHINE)
            .await
            .status,
        200
    );
}

/// Check S15.
#[tokio::test]
async fn the_shared_secret_is_required_and_not_forwarded() {
    let server = Http1::object(PRIVATE);
    let builder = Builder::new(&server.url());
    let path = builder.path("secret");
    std::fs::write(&path, "open sesame\n").unwrap();
    let proxy = builder
        .args(&[&format!("--shared-secret-file={}", path.display())])
        .start()
        .await;
    for headers in [
        "",
        "authorization: Bearer wrong\r\n",
        "authorization: Basic open sesame\r\n",
    ] {
        proxy
            .connect()
            .await
            .write("GET", MACHINE, headers, b"")
            .await
            .refusal(401);
    }
    assert!(server.requests().is_empty());
    let response = proxy
        .connect()
        .await
        .write("GET", MACHINE, "authorization: Bearer open sesame\r\n", b"")
        .await;
    assert_eq!(response.status, 200);
    assert_eq!(
        server.only().header("authorization"),
        Some("Bearer the-proxys-token")
    );
}

/// Check S15.
#[tokio::test]
async fn listening_beyond_loopback_needs_a_flag_and_logs_a_warning() {
    let server = Http1::object(PRIVATE);
    let listen = "--listen=0.0.0.0:0";
    let (status, log) = Builder::new(&server.url())
        .listening_elsewhere()
        .args(&[listen])
        .run()
        .await;
    assert_eq!(status.code(), Some(64));
    assert!(log.contains("--allow-remote"), "{log}");
    let proxy = Builder::new(&server.url())
        .listening_elsewhere()
        .args(&[listen, "--allow-remote"])
        .serve()
        .await;
    assert!(
        proxy
            .log()
            .contains("Clients on other machines can use the permissions of the proxy"),
        "{}",
        proxy.log()
    );
}

#[tokio::test]
async fn private_names_from_clients_are_translated_or_denied() {
    let server = Http1::object("{}");
    let private = "/apis/cluster.hypershift.openshift.io/v1beta2/machines";
    let swapping = Proxy::before(&server.url()).await;
    get(&swapping, private).await;
    assert_eq!(
        server.only().path,
        "/apis/cluster.x-k8s.io/v1beta2/machines",
        "where RBAC decides"
    );
    let denying = Builder::new(&server.url())
        .args(&["--deny-private-names"])
        .start()
        .await;
    get(&denying, private).await.refusal(404);
    assert_eq!(server.requests().len(), 1);
}
