//! Tokens and certificates that change while the proxy runs.

use std::fs;
use std::os::unix::fs::symlink;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use crate::harness::{
    Builder, Conn, Http1, MACHINE, MACHINES, PRIVATE, Pki, Proxy, Request, STANDARD, eventually,
    get,
};

/// Accepts only the current token.
fn guarded() -> (Http1, Arc<Mutex<String>>) {
    let token = Arc::new(Mutex::new("first".to_owned()));
    let accepted = Arc::clone(&token);
    let server = Http1::plain(async move |request: Request, conn: &mut Conn| {
        let expected = format!("Bearer {}", accepted.lock().unwrap());
        let right = request.header("authorization") == Some(&expected);
        let unauthorized = r#"{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Unauthorized","code":401}"#;
        if right {
            conn.json(200, PRIVATE).await
        } else {
            conn.json(401, unauthorized).await
        }
    });
    (server, token)
}

fn set(token: &Arc<Mutex<String>>, value: &str) {
    value.clone_into(&mut token.lock().unwrap());
}

/// Check S13.
#[tokio::test]
async fn a_rejected_token_is_reloaded_and_retried_once() {
    let (server, token) = guarded();
    let builder = Builder::new(&server.url()).user("{tokenFile: token}");
    fs::write(builder.path("token"), "first").unwrap();
    let proxy = builder.start().await;
    assert_eq!(get(&proxy, MACHINE).await.status, 200);

    // Both change at once: no request fails, with and without a body.
    set(&token, "second");
    fs::write(proxy.path("token"), "second\n").unwrap();
    assert_eq!(
        proxy.connect().await.post(MACHINES, STANDARD).await.status,
        200
    );
    assert_eq!(get(&proxy, MACHINE).await.status, 200);

    // The API server changes alone: the same token is not tried again.
    set(&token, "third");
    let before = server.requests().len();
    assert_eq!(get(&proxy, MACHINE).await.status, 401);
    assert_eq!(server.requests().len(), before + 1);
    let log = proxy.log();
    assert!(!log.contains("first") && !log.contains("second"), "{log}");
}

/// Check S13.
#[tokio::test]
async fn swapped_and_replaced_token_files_are_reloaded() {
    let (server, token) = guarded();
    let builder = Builder::new(&server.url()).user("{tokenFile: token}");
    let root = builder.directory();
    for (generation, contents) in [("one", "first"), ("two", "second")] {
        fs::create_dir(root.join(generation)).unwrap();
        fs::write(root.join(generation).join("token"), contents).unwrap();
    }
    symlink("one", root.join("..data")).unwrap();
    symlink("..data/token", root.join("token")).unwrap();
    let proxy = builder.start().await;
    assert_eq!(get(&proxy, MACHINE).await.status, 200);
    symlink("two", root.join("..data_tmp")).unwrap();
    fs::rename(root.join("..data_tmp"), root.join("..data")).unwrap();
    // The old one would still do: the change is noticed without a refusal.
    eventually("the new token is used", async || {
        get(&proxy, MACHINE).await;
        server.requests().last().unwrap().header("authorization") == Some("Bearer second")
    })
    .await;
    set(&token, "second");
    assert_eq!(get(&proxy, MACHINE).await.status, 200);
}

fn jwt(expires_in: Duration) -> String {
    let expires = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap()
        + expires_in;
    format!(
        "e30.{}.c2ln",
        URL_SAFE_NO_PAD.encode(format!("{{\"exp\":{}}}", expires.as_secs()))
    )
}

fn last_authorization(server: &Http1) -> Option<String> {
    let requests = server.requests();
    requests.last()?.header("authorization").map(str::to_owned)
}

/// Check S13.
#[tokio::test]
async fn the_last_valid_token_is_used_until_it_expires() {
    let server = Http1::object(PRIVATE);
    let builder = Builder::new(&server.url())
        .user("{tokenFile: token}")
        .args(&["--probe-interval=200ms"]);
    fs::write(builder.path("token"), jwt(Duration::from_hours(1))).unwrap();
    let proxy = builder.start().await;
    fs::write(proxy.path("token"), "").unwrap();
    eventually("the emptied file is noticed", async || {
        proxy.log().contains("Credentials cannot be read")
    })
    .await;
    assert_eq!(
        get(&proxy, MACHINE).await.status,
        200,
        "the last token is still good"
    );
    let first = last_authorization(&server);
    eventually("a token that expires soon is used", async || {
        fs::write(proxy.path("token"), jwt(Duration::from_secs(3))).unwrap();
        get(&proxy, MACHINE).await;
        last_authorization(&server) != first
    })
    .await;
    fs::remove_file(proxy.path("token")).unwrap();
    eventually("it expires", async || {
        get(&proxy, MACHINE).await.status == 503
    })
    .await;
    assert!(get(&proxy, MACHINE).await.refusal(503).contains("token"));
    eventually("the proxy is not ready", async || {
        proxy.admin("/readyz").await.status == 503
    })
    .await;
    assert_eq!(proxy.admin("/healthz").await.status, 200);
    fs::write(proxy.path("token"), jwt(Duration::from_mins(10))).unwrap();
    proxy.ready().await;
    assert_eq!(get(&proxy, MACHINE).await.status, 200);
}

/// A server of which the certificate can be exchanged.
struct Behind {
    server: Http1,
}

impl Behind {
    fn new(pki: &Pki, leaf: &crate::harness::Leaf) -> Self {
        let server = Http1::tls(pki.tls(leaf, &[]), async |_, conn: &mut Conn| {
            conn.json(200, PRIVATE).await;
            // The next request needs a new connection.
            conn.close();
        });
        Self { server }
    }
}

/// Check S14.
#[tokio::test]
async fn invalid_server_certificates_are_rejected() {
    let (pki, other_ca) = (Pki::new(), Pki::new());
    for (leaf, issuer, expected) in [
        (pki.server("elsewhere.example"), &pki, "not valid for name"),
        (pki.expired_server("127.0.0.1"), &pki, "expired"),
        (other_ca.server("127.0.0.1"), &other_ca, "UnknownIssuer"),
    ] {
        let behind = Behind::new(issuer, &leaf);
        let proxy = Builder::new(&behind.server.secure_url())
            .trusting(&pki)
            .serve()
            .await;
        let message = get(&proxy, MACHINE).await.refusal(503);
        assert!(
            message.contains("no TLS") && message.contains(expected),
            "{message}"
        );
        assert_eq!(proxy.admin("/readyz").await.status, 503);
        assert!(behind.server.requests().is_empty());
    }
}

/// Check S14.
#[tokio::test]
async fn a_rotated_ca_is_used_without_restart() {
    let (old, new) = (Pki::new(), Pki::new());
    let behind_old = Behind::new(&old, &old.server("127.0.0.1"));
    let behind_new = Behind::new(&new, &new.server("127.0.0.1"));
    // A relay, so that the address stays while the server changes.
    let relay = crate::harness::Relay::to(&behind_old.server.address).await;
    let proxy = Builder::new(&format!("https://{}", relay.address))
        .trusting(&old)
        .start()
        .await;
    assert_eq!(get(&proxy, MACHINE).await.status, 200);

    relay.redirect(&behind_new.server.address);
    get(&proxy, MACHINE).await.refusal(503);
    fs::write(proxy.path("ca.crt"), "-----BEGIN CERTIFICATE-----\nbroken").unwrap();
    eventually("the broken file is noticed", async || {
        proxy.log().contains("Credentials cannot be read")
    })
    .await;
    get(&proxy, MACHINE).await.refusal(503);
    fs::write(proxy.path("ca.crt"), new.authority()).unwrap();
    eventually("the new authority is trusted", async || {
        get(&proxy, MACHINE).await.status == 200
    })
    .await;

    relay.redirect(&behind_old.server.address);
    get(&proxy, MACHINE).await.refusal(503);
}

/// Check S14.
#[tokio::test]
async fn a_rotated_ca_retires_pooled_connections() {
    let pki = Pki::new();
    let server = Http1::tls(
        pki.tls(&pki.server("127.0.0.1"), &[]),
        async |_, conn: &mut Conn| {
            conn.json(200, PRIVATE).await;
        },
    );
    let proxy = Builder::new(&server.secure_url())
        .trusting(&pki)
        .args(&["--threads=1"])
        .start()
        .await;
    for _ in 0..3 {
        get(&proxy, MACHINE).await;
    }
    let connection = |server: &Http1| server.requests().last().unwrap().connection;
    let pooled = connection(&server);
    assert!(
        server
            .requests()
            .iter()
            .all(|request| request.connection == pooled),
        "one connection is kept"
    );
    fs::write(proxy.path("ca.crt"), Pki::new().authority()).unwrap();
    eventually("the pooled connection is given up", async || {
        get(&proxy, MACHINE).await.status == 503
    })
    .await;
}

#[tokio::test]
async fn unusable_kubeconfigs_fail_startup_with_the_reason() {
    for (user, expected) in [
        ("{exec: {command: aws}}", "exec is not supported"),
        (
            "{auth-provider: {name: oidc}}",
            "auth-provider is not supported",
        ),
        (
            "{username: a, password: hunter2}",
            "username is not supported",
        ),
    ] {
        let (status, log) = Builder::new("http://127.0.0.1:1").user(user).run().await;
        assert_eq!(status.code(), Some(64), "{log}");
        assert!(log.contains(expected) && !log.contains("hunter2"), "{log}");
    }
    let (status, log) = Builder::new("https://127.0.0.1:1").run().await;
    assert_eq!(status.code(), Some(64), "{log}");
    assert!(log.contains("certificate-authority"), "{log}");
}

/// Check F06.
#[tokio::test]
async fn missing_credentials_make_the_proxy_unready() {
    let (server, _) = guarded();
    let proxy = Builder::new(&server.url())
        .user("{tokenFile: token}")
        .args(&["--probe-interval=200ms"])
        .serve()
        .await;
    assert_eq!(proxy.admin("/healthz").await.status, 200);
    let problem = proxy.admin("/readyz").await;
    assert_eq!(problem.status, 503);
    let refusal = get(&proxy, MACHINE).await;
    assert_eq!(refusal.header("retry-after"), Some("1"));
    assert!(refusal.refusal(503).contains("failed to read"));
    fs::write(proxy.path("token"), "first").unwrap();
    proxy.ready().await;
    assert_eq!(get(&proxy, MACHINE).await.status, 200);
}

/// Check F06.
#[tokio::test]
async fn an_unreachable_server_makes_the_proxy_unready() {
    let nowhere = Builder::new("http://does-not-exist.invalid:80")
        .user("{}")
        .serve()
        .await;
    let message = get(&nowhere, MACHINE).await.refusal(503);
    assert!(
        message.contains("failed to resolve does-not-exist.invalid"),
        "{message}"
    );

    let (server, _) = guarded();
    let relay = crate::harness::Relay::to("127.0.0.1:1").await;
    let proxy = Builder::new(&format!("http://{}", relay.address))
        .user("{token: first}")
        .args(&["--probe-interval=200ms"])
        .serve()
        .await;
    assert_ne!(get(&proxy, MACHINE).await.status, 200);
    assert_eq!(proxy.admin("/readyz").await.status, 503);
    relay.redirect(&server.address);
    proxy.ready().await;
    assert_eq!(get(&proxy, MACHINE).await.status, 200);
}

/// Check F03: the proxy never ends because the API server is away.
#[tokio::test]
async fn readiness_follows_the_api_server() {
    let (server, _) = guarded();
    let relay = crate::harness::Relay::to(&server.address).await;
    let proxy: Proxy = Builder::new(&format!("http://{}", relay.address))
        .user("{token: first}")
        .args(&["--probe-interval=200ms", "--threads=1"])
        .start()
        .await;
    assert_eq!(get(&proxy, MACHINE).await.status, 200);
    relay.redirect("127.0.0.1:1");
    eventually("the proxy is not ready", async || {
        proxy.admin("/readyz").await.status == 503
    })
    .await;
    let refused = get(&proxy, MACHINE).await;
    assert!(matches!(refused.status, 502 | 503), "{}", refused.status);
    relay.redirect(&server.address);
    proxy.ready().await;
    assert_eq!(get(&proxy, MACHINE).await.status, 200);
}
