//! Many things at once, and for some time: nothing grows, nothing is lost.

use std::time::{Duration, Instant};

use tokio::task::JoinSet;

use crate::harness::{
    Builder, Client, Conn, Http1, Http2, MACHINE, MACHINES, PRIVATE, Pki, Proxy, Request, STANDARD,
    WATCH, event, get, translated,
};

/// A list of about `size` bytes, in pieces as TLS would deliver them.
async fn list(conn: &mut Conn, size: usize) {
    conn.begin(200).await;
    conn.chunk("{\"apiVersion\":\"cluster.hypershift.openshift.io/v1beta2\",\"items\":[")
        .await;
    let piece = format!("{PRIVATE},").repeat(16 * 1024 / PRIVATE.len());
    for _ in 0..size / piece.len() {
        conn.chunk(&piece).await;
        if !conn.is_open() {
            return;
        }
    }
    conn.chunk("{}]}").await;
    conn.chunk("").await;
}

/// Check F05.
#[tokio::test]
async fn streaming_large_lists_does_not_grow_memory() {
    let server = Http1::plain(async |request: Request, conn: &mut Conn| {
        list(
            conn,
            if request.path.contains("limit") {
                100_000
            } else {
                8 << 20
            },
        )
        .await;
    });
    let proxy = Proxy::before(&server.url()).await;
    // What is needed once is not growth.
    for _ in 0..4 {
        get(&proxy, &format!("{MACHINES}?limit=500")).await;
    }
    let before = proxy.resident();
    let mut clients = JoinSet::new();
    for _ in 0..4 {
        let address = proxy.listen.clone();
        clients.spawn(async move {
            let mut client = Client::connect(&address).await;
            client.ask(MACHINES).await;
            client.head().await;
            let mut length = 0;
            loop {
                let chunk = client.chunk().await.expect("a whole list");
                if chunk.is_empty() {
                    return length;
                }
                assert!(chunk.windows(10).all(|window| window != b"hypershift"));
                length += chunk.len();
            }
        });
    }
    let mut peak = 0;
    while !clients.is_empty() {
        if let Ok(Some(length)) =
            tokio::time::timeout(Duration::from_millis(20), clients.join_next()).await
        {
            assert!(length.unwrap() > 6 << 20);
        }
        peak = peak.max(proxy.resident());
    }
    let grown = peak.saturating_sub(before);
    assert!(grown < 4 << 20, "for four lists of 8 MB: {grown} bytes");
}

/// Check W10: for as long as a test may take: watches and requests come and go, and neither files nor memory pile up.
#[tokio::test]
async fn churn_leaks_no_memory_and_no_file_descriptors() {
    let pki = Pki::new();
    let tls = pki.tls(&pki.server("127.0.0.1"), &["h2", "http/1.1"]);
    let server = Http2::watches(tls, 100, async |_, watch| {
        let mut number = 0;
        while watch.send(event(number, number % 3000)).await {
            number += 1;
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    });
    let proxy = Builder::new(&server.url()).trusting(&pki).start().await;
    let mut settled = (0, 0);
    for round in 0..6 {
        churn(&proxy, Duration::from_secs(1)).await;
        crate::harness::eventually("all watches are over", async || server.open() == 0).await;
        if round == 1 {
            settled = (proxy.resident(), proxy.files());
        }
    }
    let (resident, files) = settled;
    let grown = proxy.resident().saturating_sub(resident);
    assert!(grown < 1 << 20, "{grown} bytes in four rounds");
    proxy.settles_at(files + 4).await;
}

/// Fifty clients, each with one watch after another; the events of each watch must be whole and in order.
async fn churn(proxy: &Proxy, time: Duration) {
    let mut clients = JoinSet::new();
    for number in 0..50_usize {
        let address = proxy.listen.clone();
        clients.spawn(async move {
            let started = Instant::now();
            while started.elapsed() < time {
                let mut client = Client::connect(&address).await;
                client.ask(WATCH).await;
                client.head().await;
                let text = client.lines(1 + number % 20).await;
                for (number, line) in text.lines().enumerate() {
                    assert_eq!(
                        format!("{line}\n"),
                        translated(&event(number, number % 3000))
                    );
                }
            }
        });
    }
    clients.join_all().await;
}

#[tokio::test]
async fn concurrent_clients_get_their_own_responses() {
    let server = Http1::plain(async |request: Request, conn: &mut Conn| {
        let response = format!(
            "{{\"apiVersion\":\"cluster.hypershift.openshift.io/v1beta2\",\"path\":\"{}\"}}",
            request.path
        );
        conn.json(200, &response).await;
    });
    let proxy = Proxy::before(&server.url()).await;
    let mut clients = JoinSet::new();
    for number in 0..64 {
        let address = proxy.listen.clone();
        clients.spawn(async move {
            let mut client = Client::connect(&address).await;
            for request in 0..50 {
                let response = client
                    .get(&format!("/api/v1/nodes/{number}-{request}"))
                    .await;
                assert_eq!(
                    response.json()["path"],
                    format!("/api/v1/nodes/{number}-{request}")
                );
                assert_eq!(response.json()["apiVersion"], "cluster.x-k8s.io/v1beta2");
            }
        });
    }
    clients.join_all().await;
    let connections = server
        .requests()
        .iter()
        .map(|request| request.connection)
        .max()
        .unwrap();
    assert!(
        connections < 200,
        "connections are used again: {connections}"
    );
    assert_eq!(
        proxy.connect().await.post(MACHINES, STANDARD).await.status,
        200
    );
    assert_eq!(get(&proxy, MACHINE).await.status, 200);
}
