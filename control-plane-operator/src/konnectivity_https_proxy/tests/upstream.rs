//! The proxy of the hosted cluster behind this one.

use super::*;

#[tokio::test]
async fn the_proxy_of_the_hosted_cluster_is_used() {
    let to = Behavior::Connect(echo().await);
    let behind = [("app.example.com:443", to.clone())];
    let plain = ConnectServer::start(None, &behind).await;
    let pki = Pki::new();
    let secure = pki.server("secure.example.com", None);
    let secure = ConnectServer::start(Some(secure), &behind).await;
    let guest = Guest {
        targets: &[
            ("10.0.0.1:3128", Behavior::Connect(plain.address)),
            ("10.0.0.2:443", Behavior::Connect(secure.address)),
            ("10.0.0.3:80", Behavior::Connect(mirror().await)),
            ("10.0.0.7:443", to.clone()),
            ("10.0.0.8:443", to),
        ],
        services: &[],
        names: &[
            ("plain.example.com", &["10.0.0.1"]),
            ("secure.example.com", &["10.0.0.2"]),
            ("mirror.example.com", &["10.0.0.3"]),
            ("app.internal", &["10.0.0.7"]),
            ("sts.amazonaws.com", &["10.0.0.8"]),
        ],
    };
    let fixture = Fixture::start(&guest).await;
    let flags = |proxy| {
        [
            "--http-proxy=http://user:secret@mirror.example.com",
            proxy,
            "--no-proxy=.internal",
        ]
    };
    let plain_flag = flags("--https-proxy=http://user:secret@plain.example.com:3128");
    let secure_flag = flags("--https-proxy=https://user:secret@secure.example.com");
    for (flags, server) in [(plain_flag, &plain), (secure_flag, &secure)] {
        let tls = ProxyTls::trusting(pki.roots());
        let (proxy, _signal) = started_with(&fixture, &flags, tls).await;
        let (mut stream, head) = connect(proxy, "app.example.com:443").await;
        assert!(head.starts_with(ESTABLISHED), "{head}");
        is_echoed(&mut stream, b"hello").await;
        // The name is resolved by the proxy.
        assert_eq!(
            server.requests(),
            [
                "CONNECT app.example.com:443 HTTP/1.1\r\nHost: app.example.com:443\r\n\
              Proxy-Authorization: Basic dXNlcjpzZWNyZXQ=\r\n\r\n"
            ]
        );
        // Excluded.
        let (mut stream, _) = connect(proxy, "app.internal:443").await;
        is_echoed(&mut stream, b"hello").await;
        assert_eq!(fixture.targets().pop().unwrap(), "10.0.0.7:443");
        // The proxy does not reach it.
        let (_, head) = connect(proxy, "other.example.com:443").await;
        assert!(head.starts_with("HTTP/1.1 502 "), "{head}");
        // A cloud API that is not reached directly uses the proxy, too.
        let (_, head) = connect(proxy, "sts.amazonaws.com:443").await;
        assert!(head.starts_with("HTTP/1.1 502 "), "{head}");

        let request =
            "GET http://app.example.com/x HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
        let (stream, _) = send(proxy, request).await;
        let body = rest(stream).await;
        assert!(
            body.starts_with("GET http://app.example.com/x HTTP/1.1\r\n"),
            "{body}"
        );
        assert!(
            body.contains("proxy-authorization: Basic dXNlcjpzZWNyZXQ=\r\n"),
            "{body}"
        );
    }
}

#[tokio::test]
async fn cloud_apis_that_are_reached_directly_use_no_proxy_of_the_hosted_cluster() {
    let fixture = Fixture::start(&Guest::default()).await;
    let proxy = "--https-proxy=http://proxy.amazonaws.com:3128";
    let direct = "--connect-directly-to-cloud-apis";
    for (flags, host, expected) in [
        (vec![proxy], "sts.amazonaws.com", true),
        (vec![proxy, direct], "sts.amazonaws.com", false),
        (vec![proxy, direct], "quay.io", true),
    ] {
        let args = parse(&fixture.command_line("konnectivity-https-proxy", &flags));
        let proxies = proxies(&args).unwrap();
        let dialer = args.konnectivity.dialer(None, &proxies).await.unwrap();
        // The proxy itself is no cloud API.
        let own = "proxy.amazonaws.com".parse().unwrap();
        assert!(!dialer.cloud_apis.contains(&own), "{flags:?}");
        let target = Target::new(host.parse().unwrap(), 443);
        let found = Proxy::new(dialer, proxies)
            .proxy_of_tunnel(&target)
            .is_some();
        assert_eq!(found, expected, "{flags:?} {host}");
    }
}

#[tokio::test]
async fn certificates_of_proxies_are_verified() {
    let pki = Pki::new();
    let tls = pki.server("secure.example.com", None);
    let secure = ConnectServer::start(Some(tls), &[]).await;
    let guest = Guest {
        targets: &[("10.0.0.2:443", Behavior::Connect(secure.address))],
        names: &[("secure.example.com", &["10.0.0.2"])],
        ..Guest::default()
    };
    let fixture = Fixture::start(&guest).await;
    let flags = ["--https-proxy=https://user:secret@secure.example.com"];
    let tls = ProxyTls::trusting(Pki::new().roots());
    let (proxy, _signal) = started_with(&fixture, &flags, tls).await;
    let request = "CONNECT a.example.com:443 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    let (stream, head) = send(proxy, request).await;
    assert!(head.starts_with("HTTP/1.1 502 "), "{head}");
    let body = rest(stream).await;
    assert!(
        body.contains("failed to establish TLS with proxy https://secure.example.com:443"),
        "{body}"
    );
    assert!(!body.contains("secret"), "{body}");
}

#[tokio::test]
async fn credentials_are_not_logged() {
    let unauthorized = "HTTP/1.1 407 Proxy Authentication Required\r\n\r\n";
    let guest = Guest {
        targets: &[("10.0.0.1:3128", Behavior::Respond("HTTP/1.1 502 X\r\n\r\n"))],
        ..Guest::default()
    };
    let plain = ConnectServer::start(
        None,
        &[("a.example.com:443", Behavior::Respond(unauthorized))],
    )
    .await;
    let with_proxy = Guest {
        targets: &[("10.0.0.1:3128", Behavior::Connect(plain.address))],
        ..Guest::default()
    };
    for guest in [guest, with_proxy] {
        let fixture = Fixture::start(&guest).await;
        let (log, _guard) = Log::collect();
        let flags = [
            "--http-proxy=http://user:secret@10.0.0.1:3128",
            "--https-proxy=http://user:secret@10.0.0.1:3128",
        ];
        let (proxy, _signal) = started(&fixture, &flags).await;
        for request in [
            "CONNECT user:secret@a.example.com:443",
            "CONNECT a.example.com:443",
            "GET http://user:secret@a.example.com/",
        ] {
            let request = format!(
                "{request} HTTP/1.1\r\nHost: a\r\nProxy-Authorization: Basic c2VjcmV0\r\nConnection: close\r\n\r\n"
            );
            let (stream, head) = send(proxy, &request).await;
            let body = rest(stream).await;
            for hidden in ["secret", "c2VjcmV0", "dXNlcjpzZWNyZXQ="] {
                assert!(
                    !body.contains(hidden) && !head.contains(hidden),
                    "{head}{body}"
                );
                assert!(!log.text().contains(hidden), "{}", log.text());
            }
        }
        assert!(
            log.text().contains("Failed to open a connection"),
            "{}",
            log.text()
        );
    }
}
