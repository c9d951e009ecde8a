//! exec, attach, port-forward: tunnels, and what happens when there is none.

use crate::harness::{Conn, Http1, Proxy, Request, WATCH};

const EXEC: &str = "/api/v1/namespaces/n/pods/p/exec?command=sh";

fn upgrade(path: &str, protocol: &str) -> String {
    format!(
        "POST {path} HTTP/1.1\r\nhost: localhost\r\nconnection: Upgrade\r\nupgrade: {protocol}\r\n\r\n"
    )
}

/// Agrees, and sends back what it gets, in capitals.
async fn shout(request: Request, conn: &mut Conn) {
    let protocol = request.header("upgrade").unwrap();
    let head = format!(
        "HTTP/1.1 101 Switching Protocols\r\nconnection: Upgrade\r\nupgrade: {protocol}\r\nx-stream: yes\r\n\r\n"
    );
    conn.write(head).await;
    loop {
        let bytes = conn.read().await;
        if bytes.is_empty() {
            return;
        }
        conn.write(bytes.to_ascii_uppercase()).await;
    }
}

/// Check S10.
#[tokio::test]
async fn upgrades_are_tunnelled_in_both_directions() {
    let server = Http1::plain(shout);
    let proxy = Proxy::before(&server.url()).await;
    for (path, protocol) in [
        (EXEC, "SPDY/3.1"),
        ("/api/v1/namespaces/n/pods/p/attach", "websocket"),
        ("/api/v1/namespaces/n/pods/p/portforward", "SPDY/3.1"),
    ] {
        let mut client = proxy.connect().await;
        // Bytes that do not wait for the response, and that no HTTP reader may see.
        client.send(upgrade(path, protocol) + "early\n\0\r\n").await;
        let head = client.head().await;
        assert_eq!(head.status, 101, "{path}");
        assert_eq!(head.header("upgrade"), Some(protocol));
        assert_eq!(head.header("x-stream"), Some("yes"));
        assert_eq!(client.exactly(8).await, b"EARLY\n\0\r\n"[..8]);
        client.send("bye").await;
        assert_eq!(client.exactly(4).await, b"\nBYE");
    }
    let sent = server.requests();
    assert_eq!(sent[0].path, EXEC);
    assert_eq!(sent[0].header("connection"), Some("Upgrade"));
    assert_eq!(
        sent[0].header("authorization"),
        Some("Bearer the-proxys-token")
    );
}

/// Check S10.
#[tokio::test]
async fn unknown_upgrades_are_rejected_and_close_the_connection() {
    let server = Http1::plain(shout);
    let proxy = Proxy::before(&server.url()).await;
    for request in [
        upgrade(EXEC, "h2c"),
        upgrade(WATCH, "websocket"),
        upgrade("/api/v1/pods", "SPDY/3.1"),
    ] {
        let mut client = proxy.connect().await;
        client
            .send(request + "GET /api/v1/secrets HTTP/1.1\r\nhost: localhost\r\n\r\n")
            .await;
        client.response().await.refusal(400);
        assert_eq!(client.end().await, b"");
    }
    assert!(server.requests().is_empty());
}

/// Check S11.
#[tokio::test]
async fn a_refused_upgrade_closes_the_connection() {
    for status in [200, 403, 500] {
        let server = Http1::plain(async move |_, conn: &mut Conn| conn.json(status, "{}").await);
        let proxy = Proxy::before(&server.url()).await;
        let mut client = proxy.connect().await;
        client
            .send(
                upgrade(EXEC, "SPDY/3.1")
                    + "GET /api/v1/secrets HTTP/1.1\r\nhost: localhost\r\n\r\n",
            )
            .await;
        let response = client.response().await;
        assert_eq!(
            (response.status, response.text()),
            (status, "{}".to_owned())
        );
        assert_eq!(response.header("connection"), Some("close"));
        assert_eq!(client.end().await, b"", "a second request is not read");
        assert_eq!(server.only().path, EXEC);
    }
}

/// Check S11.
#[tokio::test]
async fn a_tunnel_closes_when_the_api_server_closes_it() {
    let server = Http1::plain(async |_, conn: &mut Conn| {
        conn.write(
            "HTTP/1.1 101 Switching Protocols\r\nconnection: Upgrade\r\nupgrade: SPDY/3.1\r\n\r\n",
        )
        .await;
        conn.write("HTTP/1.1 500 Error\r\n\r\n").await;
        conn.close();
    });
    let proxy = Proxy::before(&server.url()).await;
    let mut client = proxy.connect().await;
    client.send(upgrade(EXEC, "SPDY/3.1")).await;
    assert_eq!(client.head().await.status, 101);
    client
        .send("GET /api/v1/secrets HTTP/1.1\r\nhost: localhost\r\n\r\n")
        .await;
    assert_eq!(
        client.end().await,
        b"HTTP/1.1 500 Error\r\n\r\n",
        "passed on as bytes, and the end"
    );
    assert_eq!(server.requests().len(), 1);
}

/// Check S11.
#[tokio::test]
async fn an_upgrade_to_another_protocol_is_a_bad_gateway() {
    let server = Http1::plain(async |_, conn: &mut Conn| {
        conn.write(
            "HTTP/1.1 101 Switching Protocols\r\nconnection: Upgrade\r\nupgrade: h2c\r\n\r\n",
        )
        .await;
        conn.hang().await;
    });
    let proxy = Proxy::before(&server.url()).await;
    let mut client = proxy.connect().await;
    client.send(upgrade(EXEC, "websocket")).await;
    client.response().await.refusal(502);
    assert_eq!(client.end().await, b"");
}

/// Check W07.
#[tokio::test]
async fn a_tunnel_closes_when_the_client_disconnects() {
    let (gone, mut ended) = tokio::sync::mpsc::unbounded_channel();
    let server = Http1::plain(async move |request, conn: &mut Conn| {
        shout(request, conn).await;
        gone.send(()).unwrap();
    });
    let proxy = Proxy::before(&server.url()).await;
    let files = proxy.files();
    let mut client = proxy.connect().await;
    client.send(upgrade(EXEC, "SPDY/3.1")).await;
    assert_eq!(client.head().await.status, 101);
    drop(client);
    ended.recv().await.unwrap();
    proxy.settles_at(files).await;
}

/// Check T21.
#[tokio::test]
async fn an_unrequested_upgrade_is_a_bad_gateway() {
    for head in [
        "HTTP/1.1 101 Switching Protocols\r\nconnection: Upgrade\r\nupgrade: SPDY/3.1\r\n\r\n",
        "HTTP/1.1 101 Switching Protocols\r\n\r\n",
    ] {
        let server = Http1::plain(async move |_, conn: &mut Conn| {
            conn.write(head).await;
            conn.write("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
                .await;
        });
        let proxy = Proxy::before(&server.url()).await;
        for request in [
            format!("GET {EXEC} HTTP/1.1\r\nhost: localhost\r\n\r\n"),
            "GET /api/v1/pods HTTP/1.1\r\nhost: localhost\r\n\r\n".to_owned(),
        ] {
            let mut client = proxy.connect().await;
            client.send(request).await;
            client.response().await.refusal(502);
            assert_eq!(client.end().await, b"");
        }
    }
}
