//! Where credentials go: to the registry and its token service, and nowhere else.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use payload::Reason;
use serde_json::json;

use super::{PASSWORD, options, releases, secret};
use crate::image::Image;
use crate::server::{Access, Server};

const USER: &str = "someone:open-sesame";

fn entry() -> serde_json::Value {
    json!({ "auth": STANDARD.encode(format!("someone:{PASSWORD}")) })
}

/// A registry that names a token service, and the image in it.
async fn registry(realm: &str) -> (Server, String) {
    let server = Server::start().await;
    server.push("a", &Image::release("4.22.1", "images.example.com"));
    server.state().access = Access::Token(USER);
    server.state().realm = Some(realm.to_owned());
    let image = server.tag("a");
    (server, image)
}

/// Check T20.
#[tokio::test]
async fn credentials_stay_with_the_registry() {
    let (server, storage) = (Server::start().await, Server::start().await);
    let image = Image::release("4.22.1", "images.example.com");
    server.push("a", &image);
    storage.push("a", &image);
    server.state().access = Access::Token(USER);
    server.state().elsewhere = Some(storage.address);
    let secret = secret(&json!({ server.host(): entry() }));
    let releases = releases(&[&server]);
    releases.get(&server.tag("a"), &secret).await.unwrap();
    assert_eq!(storage.requests(image.top()), 1);
    assert_eq!(storage.state().authorized, Vec::<String>::new());
    assert!(!server.state().authorized.is_empty());
}

/// Check T20. The stand-in listens on all of 127.0.0.0/8: another address is another host.
#[tokio::test]
async fn a_token_service_on_another_host_gets_no_credentials() {
    let thief = Server::start_on("127.0.0.2").await;
    thief.state().access = Access::Token(USER);
    let realm = format!("http://{}/token", thief.address);
    for (password, identity) in [(PASSWORD, ""), ("", PASSWORD)] {
        let (server, image) = registry(&realm).await;
        let entry =
            json!({ "username": "someone", "password": password, "identitytoken": identity });
        let secret = secret(&json!({ server.host(): entry }));
        let error = releases(&[&server]).get(&image, &secret).await.unwrap_err();
        assert_eq!(error.kind(), Reason::Unauthorized);
        let text = error.to_string();
        assert!(text.contains("add an entry for 127.0.0.2"), "{text}");
    }
    assert_eq!(thief.state().log, Vec::<String>::new());
}

/// Check T20. The owner of the credentials vouches for the token service with an entry for it.
#[tokio::test]
async fn a_token_service_that_the_pull_secret_names_gets_credentials() {
    let service = Server::start_on("127.0.0.2").await;
    service.state().access = Access::Token(USER);
    let (server, image) = registry(&format!("http://{}/token", service.address)).await;
    let other = json!({ "auth": STANDARD.encode("other:password") });
    for (entry_of_service, expected) in [(other, Some(Reason::Unauthorized)), (entry(), None)] {
        let auths = json!({ server.host(): entry(), "127.0.0.2": entry_of_service });
        let read = releases(&[&server]).get(&image, &secret(&auths)).await;
        assert_eq!(read.err().map(|error| error.kind()), expected);
    }
    assert!(service.requests("/token") > 0);
}

/// Without credentials there is nothing to steal: a public image may have its token service anywhere.
#[tokio::test]
async fn anonymous_tokens_come_from_any_host() {
    let service = Server::start_on("127.0.0.2").await;
    let (server, image) = registry(&format!("http://{}/token", service.address)).await;
    let read = super::anonymous(&releases(&[&server]), &image).await;
    assert_eq!(read.unwrap_err().kind(), Reason::PullSecretMissing);
    assert_eq!(service.requests("/token"), 1);
    assert_eq!(service.state().authorized, Vec::<String>::new());
}

/// Check T20. The storage that a registry redirects to may request credentials: it gets none, wherever it requests them.
#[tokio::test]
async fn a_challenge_of_a_redirect_target_gets_no_credentials() {
    let (server, storage) = (Server::start().await, Server::start_on("127.0.0.2").await);
    let image = Image::release("4.22.1", "images.example.com");
    server.push("a", &image);
    server.state().elsewhere = Some(storage.address);
    let here = format!(
        "Bearer realm=\"http://{}/token\",service=\"x\"",
        server.address
    );
    let basic = "Basic realm=\"x\"".to_owned();
    for challenge in [here, basic] {
        storage.state().challenge = Some(challenge);
        let secret = secret(&json!({ server.host(): entry() }));
        let releases = payload::Releases::new(options(&[&server])).unwrap();
        let error = releases.get(&server.tag("a"), &secret).await.unwrap_err();
        assert_eq!(error.kind(), Reason::Unauthorized);
    }
    assert_eq!(server.state().authorized, Vec::<String>::new());
    assert_eq!(storage.state().authorized, Vec::<String>::new());
}
