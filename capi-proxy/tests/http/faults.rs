//! An API server that is down, busy, slow, or sends GOAWAY.

use std::time::Duration;

use crate::harness::{
    Builder, Conn, Http1, Http2, MACHINE, MACHINES, PRIVATE, Pki, Proxy, Relay, Request, STANDARD,
    WATCH, event, get, translated,
};

/// Check F03.
#[tokio::test]
async fn overload_responses_are_forwarded_without_retry() {
    let server = Http1::plain(async |request: Request, conn: &mut Conn| {
        let status = if request.path.contains("busy") {
            429
        } else {
            503
        };
        let body = format!(
            "{{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"status\":\"Failure\",\"code\":{status}}}"
        );
        conn.respond(
            status,
            "content-type: application/json\r\nretry-after: 7\r\n",
            body.as_bytes(),
        )
        .await;
    });
    let proxy = Proxy::before(&server.url()).await;
    for (path, code) in [("/api/v1/busy", 429), (MACHINE, 503), (WATCH, 503)] {
        let response = get(&proxy, path).await;
        assert_eq!(
            (response.status, response.header("retry-after")),
            (code, Some("7"))
        );
    }
    assert_eq!(
        proxy.connect().await.post(MACHINES, STANDARD).await.status,
        503
    );
    assert_eq!(server.requests().len(), 4);
}

/// Check F03.
#[tokio::test]
async fn an_unreachable_server_is_a_retriable_error() {
    let proxy = Builder::new("http://127.0.0.1:1").serve().await;
    for response in [get(&proxy, MACHINE).await, get(&proxy, WATCH).await] {
        assert_eq!(response.header("retry-after"), Some("1"));
        let message = response.refusal(503);
        assert!(
            message.contains("http://127.0.0.1:1") && message.contains("refused"),
            "{message}"
        );
    }
}

/// Check F03.
#[tokio::test]
async fn a_write_without_response_is_not_retried() {
    let server = Http1::plain(async |request: Request, conn: &mut Conn| {
        if request.method == "GET" {
            conn.json(200, PRIVATE).await
        } else {
            conn.close()
        }
    });
    let proxy = Builder::new(&server.url())
        .args(&["--threads=1"])
        .start()
        .await;
    // On a fresh connection, and on one that was used before.
    for _ in 0..2 {
        let response = proxy.connect().await.post(MACHINES, STANDARD).await;
        assert_eq!(
            response.header("retry-after"),
            None,
            "whether it was written is unknown"
        );
        response.refusal(502);
        assert_eq!(get(&proxy, MACHINE).await.status, 200);
    }
    let writes = server
        .requests()
        .iter()
        .filter(|request| request.method == "POST")
        .count();
    assert_eq!(writes, 2);
}

/// Check F03.
#[tokio::test]
async fn a_read_on_a_closed_connection_is_retried() {
    let server = Http1::plain(async |request: Request, conn: &mut Conn| {
        // A kept connection is closed when its second request arrives.
        if request.path.contains("second") && conn.responded() > 0 {
            conn.close();
        } else {
            conn.json(200, PRIVATE).await;
        }
    });
    let proxy = Builder::new(&server.url())
        .args(&["--threads=1"])
        .start()
        .await;
    assert_eq!(get(&proxy, MACHINE).await.status, 200);
    assert_eq!(get(&proxy, &format!("{MACHINES}/second")).await.status, 200);
    let seen: Vec<_> = server
        .requests()
        .iter()
        .map(|request| request.connection)
        .collect();
    assert_eq!(seen.len(), 3);
    assert!(seen[0] == seen[1] && seen[1] != seen[2], "{seen:?}");
}

/// Check F04.
#[tokio::test]
async fn a_slow_and_lossy_network_keeps_the_order_of_events() {
    let server = Http1::plain(async |request: Request, conn: &mut Conn| {
        if request.path.contains("watch") {
            conn.begin(200).await;
            for number in 0..200 {
                conn.chunk(event(number, 500)).await;
            }
            conn.chunk("").await;
        } else {
            conn.json(200, PRIVATE).await;
        }
    });
    let relay = Relay::slow(&server.address, Duration::from_millis(500), 20).await;
    let proxy = Builder::new(&format!("http://{}", relay.address))
        .start()
        .await;
    let expected: String = (0..200)
        .map(|number| translated(&event(number, 500)))
        .collect();
    assert!(get(&proxy, WATCH).await.text() == expected);
    assert_eq!(
        proxy.connect().await.post(MACHINES, STANDARD).await.text(),
        STANDARD
    );
}

/// Check F04.
#[tokio::test]
async fn connecting_times_out() {
    // A listener that accepts connections and sends nothing.
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let pki = Pki::new();
    let server = format!("https://{}", silent.local_addr().unwrap());
    let proxy = Builder::new(&server)
        .trusting(&pki)
        .args(&["--connect-timeout=300ms"])
        .serve()
        .await;
    for path in [MACHINE, WATCH] {
        let message = get(&proxy, path).await.refusal(503);
        assert!(message.contains("no response within 0.3 s"), "{message}");
    }
}

#[tokio::test]
async fn new_watches_use_a_new_connection_after_goaway() {
    let pki = Pki::new();
    let tls = pki.tls(&pki.server("127.0.0.1"), &["h2", "http/1.1"]);
    let server = Http2::watches(tls, 100, async |request, watch| {
        if request.uri().query().unwrap().contains("goaway") {
            watch.goaway();
        }
        watch.send(event(1, 1)).await;
        watch.wait().await;
    });
    let proxy = Builder::new(&server.url())
        .trusting(&pki)
        .args(&["--threads=1"])
        .start()
        .await;
    let mut watches = Vec::new();
    for path in [WATCH, &format!("{WATCH}&goaway=1"), WATCH, WATCH] {
        let mut client = proxy.connect().await;
        client.ask(path).await;
        assert_eq!(client.head().await.status, 200, "{path}");
        assert_eq!(client.lines(1).await, translated(&event(1, 1)), "{path}");
        watches.push(client);
    }
    assert_eq!(
        (server.open(), server.peaks().len()),
        (4, 2),
        "old watches stay, new ones go elsewhere"
    );
    for watch in &mut watches {
        assert!(
            watch.is_silent(Duration::from_millis(20)).await,
            "and none was cut"
        );
    }
}
