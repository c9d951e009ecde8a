//! Watches: events as they come, and ends where there is one.

use std::time::Duration;

use tokio::sync::mpsc;

use crate::harness::{
    Builder, Conn, Http1, Http2, Pki, Proxy, Request, TIMEOUT, WATCH, event, eventually, get,
    translated,
};

/// An HTTP/2 server that allows 100 watches a connection, as Kubernetes does.
fn kubernetes<F>(pki: &Pki, response: F) -> Http2
where
    F: AsyncFn(http::Request<()>, &mut crate::harness::Watch) + Send + 'static,
{
    Http2::watches(
        pki.tls(&pki.server("127.0.0.1"), &["h2", "http/1.1"]),
        100,
        response,
    )
}

async fn proxy_for(server: &Http2, pki: &Pki) -> Proxy {
    Builder::new(&server.url()).trusting(pki).start().await
}

/// Check W01.
#[tokio::test]
async fn a_watch_response_starts_before_the_first_event() {
    let pki = Pki::new();
    let server = kubernetes(&pki, async |_, watch| watch.wait().await);
    let proxy = proxy_for(&server, &pki).await;
    let mut client = proxy.connect().await;
    client.ask(WATCH).await;
    let head = client.head().await;
    assert_eq!(
        (head.status, head.header("transfer-encoding")),
        (200, Some("chunked"))
    );
    assert_eq!(
        server.requests()[0].uri().path(),
        "/apis/cluster.hypershift.openshift.io/v1beta2/machines"
    );
    let sent = &server.requests()[0];
    assert_eq!(sent.headers()["authorization"], "Bearer the-proxys-token");
}

/// Check W02.
#[tokio::test]
async fn each_event_is_delivered_without_delay() {
    let (next, permits) = mpsc::unbounded_channel();
    let permits = tokio::sync::Mutex::new(permits);
    let pki = Pki::new();
    let server = kubernetes(&pki, async move |_, watch| {
        let mut permits = permits.lock().await;
        let mut number = 0;
        while permits.recv().await.is_some() {
            watch.send(event(number, 100)).await;
            number += 1;
        }
    });
    let proxy = proxy_for(&server, &pki).await;
    let mut client = proxy.connect().await;
    client.ask(WATCH).await;
    client.head().await;
    for number in 0..100 {
        next.send(()).unwrap();
        assert_eq!(client.lines(1).await, translated(&event(number, 100)));
    }
}

/// Check W03.
#[tokio::test]
async fn events_in_any_chunks_arrive_once_and_in_order() {
    let server = Http1::plain(async |request: Request, conn: &mut Conn| {
        conn.begin(200).await;
        if request.path.contains("joined") {
            conn.chunk(event(1, 10) + &event(2, 20) + &event(3, 30))
                .await;
        } else {
            for number in 1..=3 {
                for byte in event(number, number * 10).bytes() {
                    conn.chunk([byte]).await;
                }
            }
        }
        conn.chunk("").await;
    });
    let proxy = Proxy::before(&server.url()).await;
    let expected: String = (1..=3)
        .map(|number| translated(&event(number, number * 10)))
        .collect();
    for path in [format!("{WATCH}&labelSelector=joined"), WATCH.to_owned()] {
        assert_eq!(get(&proxy, &path).await.text(), expected, "{path}");
    }
}

/// Checks W04, W05.
#[tokio::test]
async fn bookmarks_and_error_events_are_forwarded() {
    const EVENTS: &str = concat!(
        r#"{"type":"BOOKMARK","object":{"kind":"Machine","apiVersion":"cluster.hypershift.openshift.io/v1beta2","#,
        r#""metadata":{"resourceVersion":"9","annotations":{"k8s.io/initial-events-end":"true"}}}}"#,
        "\n",
        r#"{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","#,
        r#""message":"too old resource version: 1 (9)","reason":"Expired","code":410}}"#,
        "\n",
    );
    let pki = Pki::new();
    let server = kubernetes(&pki, async |_, watch| {
        watch.send(EVENTS).await;
    });
    let proxy = proxy_for(&server, &pki).await;
    let parameters = "&allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan&sendInitialEvents=true&timeoutSeconds=9";
    assert_eq!(
        get(&proxy, &format!("{WATCH}{parameters}")).await.text(),
        translated(EVENTS)
    );
    let query = server.requests()[0].uri().query().unwrap().to_owned();
    assert_eq!(
        query,
        format!("watch=true{parameters}"),
        "w11: parameters are the API server's business"
    );
}

/// Check W05.
#[tokio::test]
async fn a_rejected_watch_is_an_ordinary_error() {
    let status = r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"too old resource version: 1 (9)","reason":"Expired","code":410}"#;
    let server = Http1::plain(async move |_, conn: &mut Conn| conn.json(410, status).await);
    let proxy = Proxy::before(&server.url()).await;
    let response = get(&proxy, WATCH).await;
    assert_eq!((response.status, response.text()), (410, status.to_owned()));
}

/// Check W06.
#[tokio::test]
async fn only_a_completed_watch_ends_cleanly() {
    let pki = Pki::new();
    let server = kubernetes(&pki, async |_, watch| {
        watch.send(event(1, 1)).await;
    });
    let proxy = proxy_for(&server, &pki).await;
    assert_eq!(get(&proxy, WATCH).await.text(), translated(&event(1, 1)));

    let resetting = Http1::plain(async |_, conn: &mut Conn| {
        conn.begin(200).await;
        conn.chunk(event(1, 1)).await;
        conn.close();
    });
    let proxy = Proxy::before(&resetting.url()).await;
    let mut client = proxy.connect().await;
    client.ask(WATCH).await;
    client.head().await;
    assert_eq!(client.lines(1).await, translated(&event(1, 1)));
    assert_eq!(
        client.chunk().await,
        None,
        "interrupted, so that no client takes it for the end"
    );
}

/// Check F08.
#[tokio::test]
async fn events_before_a_malformed_event_are_delivered() {
    let server = Http1::plain(async |_, conn: &mut Conn| {
        conn.begin(200).await;
        conn.chunk(event(1, 1) + &event(2, 1)).await;
        conn.chunk("{]").await;
        conn.hang().await;
    });
    let proxy = Proxy::before(&server.url()).await;
    let mut client = proxy.connect().await;
    client.ask(WATCH).await;
    assert_eq!(client.head().await.status, 200);
    assert_eq!(
        client.lines(2).await,
        translated(&(event(1, 1) + &event(2, 1)))
    );
    assert_eq!(client.chunk().await, None);
}

/// Check W06.
#[tokio::test]
async fn a_watch_on_a_broken_connection_ends() {
    // The relay stops forwarding without closing, like a broken network.
    let pki = Pki::new();
    let server = kubernetes(&pki, async |_, watch| {
        watch.send(event(1, 1)).await;
        watch.wait().await;
    });
    let relay = crate::harness::Relay::to(&server.address).await;
    let proxy = Builder::new(&format!("https://{}", relay.address))
        .trusting(&pki)
        .args(&["--ping-interval=200ms", "--ping-timeout=3s"])
        .start()
        .await;
    let mut client = proxy.connect().await;
    client.ask(WATCH).await;
    client.head().await;
    assert_eq!(client.lines(1).await, translated(&event(1, 1)));
    assert!(
        client.is_silent(Duration::from_secs(4)).await,
        "pings get responses"
    );
    relay.freeze();
    assert_eq!(client.chunk().await, None, "the watch ends");
}

/// Check W07.
#[tokio::test]
async fn an_upstream_watch_ends_when_its_client_disconnects() {
    let pki = Pki::new();
    let server = kubernetes(&pki, async |_, watch| watch.wait().await);
    let proxy = proxy_for(&server, &pki).await;
    for _ in 0..50 {
        let mut client = proxy.connect().await;
        client.ask(WATCH).await;
        client.head().await;
    }
    eventually("all watches are over", async || server.open() == 0).await;
    let files = proxy.files();
    for _ in 0..500 {
        let mut client = proxy.connect().await;
        client.ask(WATCH).await;
        client.head().await;
    }
    eventually("all watches are over", async || server.open() == 0).await;
    proxy.settles_at(files).await;
    assert!(
        proxy
            .metric("hypershift_api_proxy_open_watches")
            .await
            .abs()
            < 0.5
    );
}

/// Check W07.
#[tokio::test]
async fn a_request_is_aborted_when_its_client_disconnects() {
    let (gone, mut ended) = mpsc::unbounded_channel();
    let server = Http1::plain(async move |_, conn: &mut Conn| {
        conn.gone().await;
        gone.send(()).unwrap();
    });
    let proxy = Proxy::before(&server.url()).await;
    for path in [
        WATCH,
        "/api/v1/pods",
        "/api/v1/namespaces/n/pods/p/log?follow=true",
    ] {
        let seen = server.requests().len();
        let mut client = proxy.connect().await;
        client.ask(path).await;
        eventually("the request has arrived", async || {
            server.requests().len() > seen
        })
        .await;
        drop(client);
        tokio::time::timeout(TIMEOUT, ended.recv())
            .await
            .unwrap()
            .unwrap();
    }
}

/// Check W08.
#[tokio::test]
async fn many_watches_share_connections_without_blocking_requests() {
    let pki = Pki::new();
    let (next, receiver) = tokio::sync::watch::channel(0);
    let server = kubernetes(&pki, async move |_, watch| {
        let mut receiver = receiver.clone();
        while receiver.changed().await.is_ok() {
            let number = *receiver.borrow_and_update();
            watch.send(event(number, 50)).await;
        }
    });
    let proxy = proxy_for(&server, &pki).await;
    let mut clients = Vec::new();
    for _ in 0..300 {
        let mut client = proxy.connect().await;
        client.ask(WATCH).await;
        clients.push(client);
    }
    for client in &mut clients {
        assert_eq!(client.head().await.status, 200);
    }
    assert_eq!(server.open(), 300);
    let peaks = server.peaks();
    assert!(
        peaks.iter().all(|peak| *peak < 80),
        "of 100 allowed: {peaks:?}"
    );
    assert!(
        peaks.len() <= 7,
        "places are used before connections are opened: {peaks:?}"
    );
    for number in 1..=5 {
        next.send(number).unwrap();
        for client in &mut clients {
            assert_eq!(client.lines(1).await, translated(&event(number, 50)));
        }
        assert_eq!(
            get(&proxy, "/api/v1/namespaces/n/secrets/s").await.status,
            200
        );
    }
    assert!((proxy.metric("hypershift_api_proxy_open_watches").await - 300.0).abs() < 0.5);
}

/// Check W08.
#[tokio::test]
async fn the_stream_limit_of_a_server_is_respected_immediately() {
    let pki = Pki::new();
    let tls = pki.tls(&pki.server("127.0.0.1"), &["h2", "http/1.1"]);
    let server = Http2::watches(tls, 10, async |_, watch| watch.wait().await);
    let proxy = proxy_for(&server, &pki).await;
    let mut clients = Vec::new();
    for _ in 0..40 {
        let mut client = proxy.connect().await;
        client.ask(WATCH).await;
        clients.push(client);
    }
    for client in &mut clients {
        client.head().await;
    }
    assert!(
        server.peaks().iter().all(|peak| *peak < 8),
        "{:?}",
        server.peaks()
    );
}

/// Check W09.
#[tokio::test]
async fn a_slow_watch_reader_slows_down_only_its_own_watch() {
    const EVENT: usize = 10_000;
    const COUNT: usize = 3_000;
    let pki = Pki::new();
    let (next, receiver) = tokio::sync::watch::channel(0);
    let server = kubernetes(&pki, async move |request, watch| {
        if request.uri().query().unwrap().contains("backlog") {
            for number in 0..COUNT {
                watch.send(event(number, EVENT)).await;
            }
            return;
        }
        let mut receiver = receiver.clone();
        while receiver.changed().await.is_ok() {
            let number = *receiver.borrow_and_update();
            watch.send(event(number, 50)).await;
        }
    });
    let proxy = proxy_for(&server, &pki).await;
    let mut slow = proxy.connect().await;
    let mut quick = proxy.connect().await;
    quick.ask(WATCH).await;
    quick.head().await;
    let before = proxy.resident();
    slow.ask(&format!("{WATCH}&labelSelector=backlog")).await;
    slow.head().await;
    for number in 1..=200 {
        next.send(number).unwrap();
        assert_eq!(quick.lines(1).await, translated(&event(number, 50)));
    }
    let grown = proxy.resident().saturating_sub(before);
    assert!(
        grown < 4 << 20,
        "of a backlog of 30 MB, {grown} bytes are held"
    );
    for number in 0..COUNT {
        assert!(
            slow.lines(1).await == translated(&event(number, EVENT)),
            "event {number}"
        );
    }
}

#[tokio::test]
async fn watches_work_without_http2() {
    let pki = Pki::new();
    let server = Http1::tls(
        pki.tls(&pki.server("127.0.0.1"), &["http/1.1"]),
        async |request: Request, conn: &mut Conn| {
            if request.path.contains("watch") {
                conn.begin(200).await;
                conn.chunk(event(1, 1)).await;
                conn.hang().await;
            } else {
                conn.json(200, "{}").await;
            }
        },
    );
    let proxy = Builder::new(&server.secure_url())
        .trusting(&pki)
        .start()
        .await;
    let mut clients = Vec::new();
    for _ in 0..20 {
        let mut client = proxy.connect().await;
        client.ask(WATCH).await;
        client.head().await;
        assert_eq!(client.lines(1).await, translated(&event(1, 1)));
        clients.push(client);
    }
    assert_eq!(get(&proxy, "/api/v1/pods").await.status, 200);
}
