//! Requests that two readers could read differently, and other protocols.

use std::time::Duration;

use tokio::task::JoinSet;

use crate::harness::{
    Builder, Client, Conn, Http1, MACHINE, MACHINES, PRIVATE, Proxy, WATCH, event, get, translated,
};

/// A request that must not get through if it is taken for a second one.
const SMUGGLED: &str = "GET /api/v1/secrets HTTP/1.1\r\nhost: localhost\r\n\r\n";

/// Checks S03, S08.
#[tokio::test]
async fn ambiguous_requests_are_rejected_and_close_the_connection() {
    let server = Http1::object(PRIVATE);
    let proxy = Proxy::before(&server.url()).await;
    let post = format!(
        "POST {MACHINES} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
    );
    let cases = [
        (
            "absolute form",
            "GET http://169.254.169.254/ HTTP/1.1\r\nhost: localhost\r\n\r\n".to_owned(),
            400,
        ),
        (
            "authority form",
            "GET localhost:80 HTTP/1.1\r\nhost: localhost\r\n\r\n".to_owned(),
            400,
        ),
        (
            "connect",
            "CONNECT localhost:80 HTTP/1.1\r\nhost: localhost\r\n\r\n".to_owned(),
            405,
        ),
        (
            "length and encoding",
            format!("{post}content-length: 4\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n"),
            400,
        ),
        (
            "two lengths",
            format!("{post}content-length: 2\r\ncontent-length: 2\r\n\r\n{{}}"),
            400,
        ),
        (
            "two different lengths",
            format!("{post}content-length: 2\r\ncontent-length: 0\r\n\r\n{{}}"),
            400,
        ),
        (
            "signed length",
            format!("{post}content-length: +2\r\n\r\n{{}}"),
            400,
        ),
        (
            "identity, chunked",
            format!("{post}transfer-encoding: identity, chunked\r\n\r\n0\r\n\r\n"),
            400,
        ),
        (
            "folded line",
            "GET / HTTP/1.1\r\nhost: localhost\r\nx: a\r\n b\r\n\r\n".to_owned(),
            400,
        ),
        (
            "bare line feed",
            format!("GET {MACHINE} HTTP/1.1\nhost: localhost\n\n"),
            400,
        ),
        (
            "two hosts",
            "GET / HTTP/1.1\r\nhost: localhost\r\nhost: localhost\r\n\r\n".to_owned(),
            400,
        ),
        (
            "HTTP/1.0",
            format!("GET {MACHINE} HTTP/1.0\r\nhost: localhost\r\n\r\n"),
            505,
        ),
    ];
    for (name, request, code) in cases {
        let mut client = proxy.connect().await;
        client.send(request + SMUGGLED).await;
        let response = client.response().await;
        assert_eq!(response.status, code, "{name}");
        response.refusal(code);
        assert_eq!(response.header("connection"), Some("close"), "{name}");
        assert_eq!(client.end().await, b"", "{name}: nothing follows");
    }
    assert!(server.requests().is_empty(), "{:#?}", server.requests());
}

/// Check S08.
#[tokio::test]
async fn a_smuggled_request_is_not_forwarded() {
    let server = Http1::object(PRIVATE);
    let proxy = Proxy::before(&server.url()).await;
    let mut client = proxy.connect().await;
    let good = format!("GET {MACHINE} HTTP/1.1\r\nhost: localhost\r\n\r\n");
    client
        .send(format!(
            "{good}GET /api/v1/secrets HTTP/1.1\nhost: localhost\n\n"
        ))
        .await;
    assert_eq!(
        client.response().await.status,
        200,
        "the first gets a response"
    );
    client.response().await.refusal(400);
    assert_eq!(client.end().await, b"");
    assert!(server.only().path.ends_with("/machines/m"));
}

/// Check S08.
#[tokio::test]
async fn invalid_chunked_framing_is_rejected() {
    let server = Http1::object(PRIVATE);
    let proxy = Proxy::before(&server.url()).await;
    let post = format!(
        "POST {MACHINES} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n"
    );
    for bad in [
        "2;a=b\r\n{}\r\n0\r\n\r\n",
        "2\r\n{}x\r\n0\r\n\r\n",
        "0x2\r\n{}\r\n0\r\n\r\n",
        "2\n{}\n0\n\n",
    ] {
        let mut client = proxy.connect().await;
        client.send(format!("{post}{bad}{SMUGGLED}")).await;
        client.response().await.refusal(400);
        assert_eq!(client.end().await, b"", "{bad:?}");
    }
    assert!(server.requests().is_empty(), "{:#?}", server.requests());
    let mut client = proxy.connect().await;
    client
        .send(format!("{post}1\r\n{{\r\n1\r\n}}\r\n0\r\nx: y\r\n\r\n"))
        .await;
    assert_eq!(client.response().await.status, 200);
    assert_eq!(server.only().text(), "{}");
}

#[tokio::test]
async fn pipelined_requests_get_responses_in_order() {
    let server = Http1::plain(async |request, conn: &mut Conn| {
        conn.json(200, &format!("\"{}\"", request.path)).await
    });
    let proxy = Proxy::before(&server.url()).await;
    let mut client = proxy.connect().await;
    let request =
        |number: usize| format!("GET /api/v1/pods/{number} HTTP/1.1\r\nhost: localhost\r\n\r\n");
    client.send((0..20).map(request).collect::<String>()).await;
    for number in 0..20 {
        assert_eq!(
            client.response().await.text(),
            format!("\"/api/v1/pods/{number}\"")
        );
    }
}

/// Check S09.
#[tokio::test]
async fn http2_floods_are_rejected_without_memory_growth() {
    let server = Http1::plain(async |request: crate::harness::Request, conn: &mut Conn| {
        if request.path.contains("watch") {
            conn.begin(200).await;
            conn.chunk(event(1, 10)).await;
            while conn.read().await != b"next" && conn.is_open() {}
        } else {
            conn.json(200, PRIVATE).await;
        }
    });
    let proxy = Proxy::before(&server.url()).await;
    let mut watch = proxy.connect().await;
    watch.ask(WATCH).await;
    watch.head().await;
    assert_eq!(watch.lines(1).await, translated(&event(1, 10)));
    get(&proxy, MACHINE).await;
    let before = proxy.resident();

    let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    let settings = [0, 0, 0, 4, 0, 0, 0, 0, 0].repeat(10_000);
    let resets = [0, 0, 4, 3, 0, 0, 0, 0, 1, 0, 0, 0, 8].repeat(10_000);
    let huge = [
        b"GET / HTTP/1.1\r\nhost: localhost\r\nx: ".to_vec(),
        vec![b'a'; 1 << 20],
    ]
    .concat();
    for flood in [
        [preface.clone(), settings].concat(),
        [preface, resets].concat(),
        huge,
    ] {
        let mut clients = JoinSet::new();
        for _ in 0..50 {
            let (address, flood) = (proxy.listen.clone(), flood.clone());
            clients.spawn(async move {
                let mut client = Client::connect(&address).await;
                client.send(flood).await;
                client.end().await
            });
        }
        clients.join_all().await;
    }
    let grown = proxy.resident().saturating_sub(before);
    assert!(grown < 4 << 20, "grew by {grown} bytes");
    assert_eq!(get(&proxy, MACHINE).await.status, 200);
    assert!(
        watch.is_silent(Duration::from_millis(50)).await,
        "the watch is still open"
    );
    assert!(
        server
            .requests()
            .iter()
            .all(|request| request.path.contains("machines"))
    );
}

/// Check S19.
#[tokio::test]
async fn slow_clients_time_out_and_watches_stay_open() {
    let server = Http1::plain(async |_, conn: &mut Conn| {
        conn.begin(200).await;
        conn.hang().await;
    });
    let proxy = Builder::new(&server.url())
        .args(&["--head-timeout=400ms", "--body-timeout=400ms"])
        .start()
        .await;
    let mut watch = proxy.connect().await;
    watch.ask(WATCH).await;
    watch.head().await;
    let before = proxy.resident();
    let mut clients = JoinSet::new();
    for number in 0..200 {
        let address = proxy.listen.clone();
        clients.spawn(async move {
            let mut client = Client::connect(&address).await;
            if number % 2 == 0 {
                client.send("GET / HTTP/1.1\r\nx: ").await;
            } else {
                // In one piece: it is the body that is slow, and not the head.
                let head = format!("POST {MACHINES} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n");
                client.send(head + "content-length: 100\r\n\r\n{").await;
            }
            client.response().await.refusal(408);
        });
    }
    clients.join_all().await;
    let grown = proxy.resident().saturating_sub(before);
    assert!(grown < 8 << 20, "grew by {grown} bytes");
    assert!(watch.is_silent(Duration::from_millis(50)).await);
    assert_eq!(server.requests().len(), 1, "no half request was sent");
}

/// Check S19.
#[tokio::test]
async fn a_request_that_arrives_byte_by_byte_is_served() {
    let server = Http1::object(PRIVATE);
    let proxy = Proxy::before(&server.url()).await;
    let mut client = proxy.connect().await;
    for byte in format!("GET {MACHINE} HTTP/1.1\r\nhost: localhost\r\n\r\n").bytes() {
        client.send([byte]).await;
    }
    assert_eq!(client.response().await.status, 200);
}
