//! What becomes of a tunnel once it is open, and of clients that are slow to ask for one.

use super::*;

#[tokio::test]
async fn a_server_that_never_responds_times_out() {
    let guest = Guest {
        targets: &[("192.0.2.1:443", Behavior::Silent)],
        ..Guest::default()
    };
    let fixture = Fixture::start(&guest).await;
    let (proxy, _signal) = started(&fixture, &[]).await;
    let requesting = tokio::spawn(async move { connect(proxy, "192.0.2.1:443").await });
    fixture.konnectivity.requested().await;
    tokio::time::pause();
    let begun = Instant::now();
    let (_, head) = requesting.await.unwrap();
    assert!(head.starts_with("HTTP/1.1 504 "), "{head}");
    assert!(begun.elapsed().as_secs() <= 60, "{:?}", begun.elapsed());
}

#[tokio::test]
async fn silent_clients_are_disconnected() {
    let fixture = Fixture::start(&Guest::default()).await;
    let (proxy, _signal) = started(&fixture, &[]).await;
    let mut silent = TcpStream::connect(proxy).await.unwrap();
    silent.write_all(b"CONNECT a").await.unwrap();
    tokio::time::pause();
    let begun = Instant::now();
    let mut response = String::new();
    silent.read_to_string(&mut response).await.unwrap();
    assert!(begun.elapsed().as_secs() <= 60, "{:?}", begun.elapsed());
    assert!(
        response.is_empty() || response.starts_with("HTTP/1.1 408 "),
        "{response}"
    );
}

#[tokio::test]
async fn half_closed_clients_get_the_whole_response() {
    const RESPONSE: &[u8] = &[b'a'; 300_000];
    let guest = Guest {
        targets: &[(
            "192.0.2.1:443",
            Behavior::Connect(slow_response(RESPONSE).await),
        )],
        ..Guest::default()
    };
    let fixture = Fixture::start(&guest).await;
    let (proxy, _signal) = started(&fixture, &[]).await;
    let (mut stream, _) = connect(proxy, "192.0.2.1:443").await;
    stream.write_all(b"GET\n").await.unwrap();
    stream.shutdown().await.unwrap();
    let mut response = Vec::new();
    stream.read_to_end(&mut response).await.unwrap();
    assert_eq!(response.len(), RESPONSE.len());
}

/// Clients may send data before the tunnel is established.
#[tokio::test]
async fn early_data_of_clients_is_kept() {
    let guest = Guest {
        targets: &[("192.0.2.1:443", Behavior::Connect(echo().await))],
        ..Guest::default()
    };
    let fixture = Fixture::start(&guest).await;
    let (proxy, _signal) = started(&fixture, &[]).await;
    let request = "CONNECT 192.0.2.1:443 HTTP/1.1\r\nHost: a\r\n\r\nhello";
    let (mut stream, head) = send(proxy, request).await;
    assert!(head.starts_with(ESTABLISHED), "{head}");
    let mut answer = [0; 5];
    stream.read_exact(&mut answer).await.unwrap();
    assert_eq!(&answer, b"hello");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn parallel_streams_do_not_mix() {
    let guest = Guest {
        targets: &[("10.0.0.7:443", Behavior::Connect(echo().await))],
        names: &[("app.example.com", &["10.0.0.7"])],
        ..Guest::default()
    };
    let fixture = Fixture::start(&guest).await;
    let (proxy, _signal) = started(&fixture, &[]).await;
    let streams = (0..100_u8).map(|number| {
        tokio::spawn(async move {
            let (mut stream, head) = connect(proxy, "app.example.com:443").await;
            assert!(head.starts_with(ESTABLISHED), "{head}");
            for _ in 0..10 {
                is_echoed(&mut stream, &[number; 8000]).await;
            }
        })
    });
    for stream in streams.collect::<Vec<_>>() {
        stream.await.unwrap();
    }
}

#[tokio::test]
async fn open_tunnels_survive_the_begin_of_the_shutdown() {
    let guest = Guest {
        targets: &[("192.0.2.1:443", Behavior::Connect(echo().await))],
        ..Guest::default()
    };
    let fixture = Fixture::start(&guest).await;
    let (proxy, signal) = started(&fixture, &[]).await;
    let (mut stream, _) = connect(proxy, "192.0.2.1:443").await;
    // Without a request, a connection ends at once.
    let (idle, _) = send(proxy, "GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
    signal.begin();
    assert!(rest(idle).await.starts_with("this is a proxy"));
    is_echoed(&mut stream, b"hello").await;
    drop(stream);
    tokio::time::pause();
    signal.all_ended().await;
}
