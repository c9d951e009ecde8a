//! Starting, ending, and starting again.

use std::time::Duration;

use rustix::process::Signal;
use tokio::sync::mpsc;

use crate::harness::{
    Builder, Client, Conn, Http1, Http2, MACHINE, MACHINES, PRIVATE, Pki, Proxy, Request, STANDARD,
    WATCH, event, eventually, get, translated,
};

/// Check F07.
#[tokio::test]
async fn shutdown_drains_requests_and_ends_watches() {
    for signal in [Signal::TERM, Signal::INT] {
        let (finish, permits) = mpsc::unbounded_channel::<()>();
        let permits = tokio::sync::Mutex::new(permits);
        let server = Http1::plain(async move |request: Request, conn: &mut Conn| {
            if request.path.contains("watch") {
                conn.begin(200).await;
                conn.chunk(event(1, 10)).await;
                conn.hang().await;
            } else {
                permits.lock().await.recv().await;
                conn.json(200, PRIVATE).await;
            }
        });
        let mut proxy = Proxy::before(&server.url()).await;
        let mut watch = proxy.connect().await;
        watch.ask(WATCH).await;
        watch.head().await;
        assert_eq!(watch.lines(1).await, translated(&event(1, 10)));
        let mut busy = proxy.connect().await;
        busy.ask(MACHINE).await;
        let mut idle = proxy.connect().await;
        eventually("the request is on its way", async || {
            server.requests().len() == 2
        })
        .await;

        proxy.signal(signal);
        assert_eq!(
            watch.chunk().await.as_deref(),
            Some(&b""[..]),
            "the watch has an end"
        );
        assert_eq!(idle.end().await, b"", "an idle connection is closed");
        assert_eq!(proxy.admin("/readyz").await.status, 503);
        let refused = tokio::net::TcpStream::connect(&proxy.listen).await;
        assert!(refused.is_err(), "no connection is accepted any more");
        finish.send(()).unwrap();
        let response = busy.response().await;
        assert_eq!(
            (response.status, response.text()),
            (200, STANDARD.to_owned())
        );
        let (status, _) = proxy.ended().await;
        assert_eq!(status.code(), Some(0));
    }
}

/// Check F07.
#[tokio::test]
async fn shutdown_ends_a_watch_after_a_complete_event() {
    let (finish, permits) = mpsc::unbounded_channel::<()>();
    let permits = tokio::sync::Mutex::new(permits);
    let server = Http1::plain(async move |_, conn: &mut Conn| {
        let event = event(1, 10_000);
        conn.begin(200).await;
        conn.chunk(&event[..5_000]).await;
        permits.lock().await.recv().await;
        conn.chunk(&event[5_000..]).await;
        conn.hang().await;
    });
    let mut proxy = Proxy::before(&server.url()).await;
    let mut watch = proxy.connect().await;
    watch.ask(WATCH).await;
    watch.head().await;
    let begun = watch.chunk().await.unwrap();
    proxy.signal(Signal::TERM);
    eventually("the drain has begun", async || {
        proxy.admin("/readyz").await.status == 503
    })
    .await;
    assert!(watch.is_silent(Duration::from_millis(50)).await);
    finish.send(()).unwrap();
    let rest = watch.lines(1).await;
    assert!(String::from_utf8(begun).unwrap() + &rest == translated(&event(1, 10_000)));
    assert_eq!(watch.chunk().await.as_deref(), Some(&b""[..]));
    assert_eq!(proxy.ended().await.0.code(), Some(0));
}

/// Check F07.
#[tokio::test]
async fn the_drain_timeout_aborts_requests() {
    let server = Http1::plain(async |_, conn: &mut Conn| conn.hang().await);
    let mut proxy = Builder::new(&server.url())
        .args(&["--drain-timeout=300ms"])
        .start()
        .await;
    let mut client = proxy.connect().await;
    client.ask(MACHINE).await;
    eventually("the request is on its way", async || {
        server.requests().len() == 1
    })
    .await;
    proxy.signal(Signal::TERM);
    let (status, time) = proxy.ended().await;
    assert_eq!(status.code(), Some(0));
    // Without the flag it takes 10 s.
    assert!(time < Duration::from_secs(10), "{time:?}");
    assert_eq!(client.end().await, b"");
    assert!(proxy.log().contains("Aborting requests"));
}

/// Check F02.
#[tokio::test]
async fn a_restarted_proxy_serves_before_a_lease_expires() {
    let server = Http1::object(PRIVATE);
    let mut proxy = Proxy::before(&server.url()).await;
    for _ in 0..3 {
        assert_eq!(get(&proxy, MACHINE).await.status, 200);
        let down = std::time::Instant::now();
        proxy.restart().await;
        assert_eq!(get(&proxy, MACHINE).await.status, 200);
        // The renew deadline of a leader is 10 s, and it tries every 2 s.
        assert!(
            down.elapsed() < Duration::from_secs(8),
            "{:?}",
            down.elapsed()
        );
    }
}

/// Check F01: creates objects through a proxy that is killed again and again, as client-go does: a request that fails is sent
/// again, and "already exists" is success.
#[tokio::test]
async fn objects_are_created_exactly_once_when_the_proxy_is_killed() {
    use std::collections::HashMap;
    use std::sync::{Arc, Mutex};
    const OBJECTS: usize = 1000;
    const CLIENTS: usize = 20;

    let store: Arc<Mutex<HashMap<String, usize>>> = Arc::default();
    let created = Arc::clone(&store);
    let server = Http1::plain(async move |request: Request, conn: &mut Conn| {
        // A body that was cut would not parse.
        let object: serde_json::Value =
            serde_json::from_slice(&request.body).expect("a whole body");
        let name = object["metadata"]["name"].as_str().unwrap().to_owned();
        assert_eq!(
            object["apiVersion"],
            "cluster.hypershift.openshift.io/v1beta2"
        );
        let first = {
            let mut store = created.lock().unwrap();
            let count = store.entry(name).or_insert(0);
            let first = *count == 0;
            *count += usize::from(first);
            first
        };
        conn.json(if first { 201 } else { 409 }, "{}").await;
    });
    let mut proxy = Proxy::before(&server.url()).await;
    let (address, (done, mut progress)) = (proxy.listen.clone(), mpsc::unbounded_channel());
    let mut clients = tokio::task::JoinSet::new();
    for client in 0..CLIENTS {
        let (address, done) = (address.clone(), done.clone());
        clients.spawn(async move {
            for number in (client..OBJECTS).step_by(CLIENTS) {
                create(&address, number).await;
                done.send(()).unwrap();
            }
        });
    }
    for _ in 0..5 {
        for _ in 0..OBJECTS / 10 {
            progress.recv().await.unwrap();
        }
        proxy.restart().await;
    }
    clients.join_all().await;
    let store = store.lock().unwrap();
    assert_eq!(store.len(), OBJECTS);
    assert!(store.values().all(|count| *count == 1));
}

async fn create(address: &str, number: usize) {
    let filler = "x".repeat(3000);
    let body = format!(
        "{{\"apiVersion\":\"cluster.x-k8s.io/v1beta2\",\"metadata\":{{\"name\":\"m{number}\"}},\"spec\":\"{filler}\"}}"
    );
    loop {
        let attempt = async {
            let mut client = Client::try_connect(address).await?;
            let head = format!(
                "POST {MACHINES} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
                body.len()
            );
            client.send(head + &body).await;
            client.try_head().await
        };
        match attempt.await.map(|head| head.status) {
            Some(201 | 409) => return,
            Some(502 | 503) | None => tokio::time::sleep(Duration::from_millis(5)).await,
            Some(other) => panic!("m{number}: {other}"),
        }
    }
}

#[tokio::test]
async fn shutdown_ends_http2_watches_cleanly() {
    let pki = Pki::new();
    let tls = pki.tls(&pki.server("127.0.0.1"), &["h2", "http/1.1"]);
    let server = Http2::watches(tls, 100, async |_, watch| watch.wait().await);
    let mut proxy = Builder::new(&server.url()).trusting(&pki).start().await;
    let mut watch = proxy.connect().await;
    watch.ask(WATCH).await;
    watch.head().await;
    proxy.signal(Signal::TERM);
    assert_eq!(watch.chunk().await.as_deref(), Some(&b""[..]));
    assert_eq!(proxy.ended().await.0.code(), Some(0));
}

/// Check F05.
#[tokio::test]
async fn an_unwritable_address_file_is_reported() {
    let server = Http1::object(PRIVATE);
    let (status, log) = Builder::new(&server.url())
        .args(&["--address-file=/proc/no/such/file"])
        .run()
        .await;
    assert_eq!(status.code(), Some(1));
    assert!(log.contains("failed to write /proc/no/such/file"), "{log}");
}

#[tokio::test]
async fn an_address_in_use_is_reported() {
    let server = Http1::object(PRIVATE);
    let proxy = Proxy::before(&server.url()).await;
    let listen = format!("--listen={}", proxy.listen);
    let (status, log) = Builder::new(&server.url())
        .listening_elsewhere()
        .args(&[&listen])
        .run()
        .await;
    assert_eq!(status.code(), Some(1));
    assert!(
        log.contains(&format!("failed to listen on {}", proxy.listen)) && log.contains("in use"),
        "{log}"
    );
}
