//! Releases read from a registry on a real socket: authentication, downloads, and failures.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a failed expectation is a failed test"
)]

mod extract;
mod image;
mod server;
mod slow;
mod token;

use std::sync::Arc;
use std::time::Duration;

use api::hypershift::v1beta1::hosted_cluster::status::PayloadArch;
use api::hypershift::v1beta1::node_pool::Arch;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures::future::join_all;
use payload::{Error, Mirrors, Options, Overrides, PullSecret, Reason, Release, Releases};
use serde_json::{Value, json};

use image::{Blob, Image};
use server::{Access, Server};

const PASSWORD: &str = "open-sesame";

fn releases(servers: &[&Server]) -> Releases {
    Releases::new(options(servers)).unwrap()
}

fn options(servers: &[&Server]) -> Options {
    Options {
        plain_http: servers.iter().map(|server| server.host()).collect(),
        arch: Arch::Amd64,
        ..Options::default()
    }
}

fn secret(auths: &Value) -> PullSecret {
    let json = json!({ "auths": auths }).to_string();
    PullSecret::parse(json.as_bytes()).unwrap()
}

async fn anonymous(releases: &Releases, image: &str) -> Result<Arc<Release>, Error> {
    releases.get(image, &PullSecret::anonymous()).await
}

fn texts(error: &Error) -> String {
    format!("{} {error:?}", support::error::chain(error))
}

#[tokio::test]
async fn a_release_is_read_from_its_upper_layers_only() {
    let server = Server::start().await;
    let image = Image::release("4.22.1", "images.example.com");
    server.push("4.22.1", &image);
    let release = anonymous(&releases(&[&server]), &server.tag("4.22.1"))
        .await
        .unwrap();
    assert_eq!(release.version.to_string(), "4.22.1");
    assert_eq!(release.digest, image.manifest.digest);
    assert_eq!(release.architectures, PayloadArch::Amd64);
    assert_eq!(release.labels["io.openshift.release"], "4.22.1");
    assert_eq!(release.component_versions["etcd"], "3.6.5");
    assert!(
        release
            .component("etcd")
            .unwrap()
            .starts_with("images.example.com/etcd@")
    );
    let boot_images = release.boot_images.as_ref().unwrap();
    assert_eq!(boot_images.ami(Arch::Amd64, "us-east-1"), Some("ami-1"));
    assert_eq!(server.requests(image.top()), 1);
    assert_eq!(server.requests(image.base()), 0);
}

#[tokio::test]
async fn credentials_use_the_scheme_of_the_registry() {
    let pair = STANDARD.encode(format!("someone:{PASSWORD}"));
    let by_auth = json!({ "auth": pair });
    let by_name = json!({ "username": "someone", "password": PASSWORD });
    let refresh = json!({ "auth": STANDARD.encode("0000:"), "identitytoken": PASSWORD });
    let wrong = json!({ "username": "someone", "password": "wrong" });
    let known = "someone:open-sesame";
    for (name, access, entry, expected) in [
        ("basic", Access::Basic(known), by_auth.clone(), None),
        (
            "basic, other form",
            Access::Basic(known),
            by_name.clone(),
            None,
        ),
        ("token", Access::Token(known), by_auth, None),
        ("token, other form", Access::Token(known), by_name, None),
        (
            "refresh token",
            Access::Refresh(PASSWORD),
            refresh.clone(),
            None,
        ),
        (
            "basic, wrong",
            Access::Basic(known),
            wrong.clone(),
            Some(Reason::Unauthorized),
        ),
        (
            "token, wrong",
            Access::Token(known),
            wrong,
            Some(Reason::Unauthorized),
        ),
        (
            "refresh token, wrong",
            Access::Refresh("other"),
            refresh,
            Some(Reason::Unauthorized),
        ),
        (
            "basic, none",
            Access::Basic(known),
            json!({}),
            Some(Reason::PullSecretMissing),
        ),
        (
            "token, none",
            Access::Token(known),
            json!({}),
            Some(Reason::PullSecretMissing),
        ),
    ] {
        let server = Server::start().await;
        server.push("a", &Image::release("4.22.1", "images.example.com"));
        server.state().access = access;
        let auths = json!({ format!("{}/ocp", server.host()): entry, "other.example.com": { "auth": STANDARD.encode("a:b") } });
        let read = releases(&[&server])
            .get(&server.tag("a"), &secret(&auths))
            .await;
        let reason = read.as_ref().err().map(Error::kind);
        assert_eq!(reason, expected, "{name}: {read:?}");
        if let Err(error) = read {
            let text = texts(&error);
            assert!(text.contains(&server.tag("a")), "{name}: {text}");
            assert!(
                !text.contains(PASSWORD) && !text.contains("wrong"),
                "{name}: {text}"
            );
        }
    }
}

#[tokio::test]
async fn failures_have_a_reason_and_name_the_image() {
    let server = Server::start().await;
    let release = Image::release("4.22.1", "images.example.com");
    let plain = Image::new("amd64", &json!({}), &[&[("usr/bin/true", b"1")]]);
    let odd = Image::new(
        "amd64",
        &json!({}),
        &[&[("release-manifests/image-references", b"{}")]],
    );
    let alien = Image::release_for("z80", "4.22.1", "images.example.com");
    for (tag, image) in [
        ("good", &release),
        ("plain", &plain),
        ("odd", &odd),
        ("alien", &alien),
    ] {
        server.push(tag, image);
    }
    server.push_manifest("html", &Blob::new(b"<html>".to_vec()));
    server.push_manifest("huge", &Blob::new(vec![b' '; 5 << 20]));
    let releases = releases(&[&server]);
    for (image, expected) in [
        (server.tag("plain"), Reason::NotAPayload),
        (server.tag("odd"), Reason::NotAPayload),
        (server.tag("alien"), Reason::NotAPayload),
        (server.tag("absent"), Reason::NotFound),
        (server.tag("html"), Reason::Corrupt),
        (server.tag("huge"), Reason::TooLarge),
        ("127.0.0.1:1/ocp/releases:a".to_owned(), Reason::Unreachable),
        ("no reference".to_owned(), Reason::InvalidReference),
    ] {
        let error = anonymous(&releases, &image).await.unwrap_err();
        assert_eq!(error.kind(), expected, "{image}: {}", texts(&error));
        assert_eq!(error.image(), image);
        assert!(error.to_string().contains(&image), "{error}");
    }
}

#[tokio::test]
async fn content_with_another_digest_is_rejected() {
    for part in ["manifest", "configuration", "layer"] {
        let server = Server::start().await;
        let image = Image::release("4.22.1", "images.example.com");
        server.push("a", &image);
        server.tamper(match part {
            "manifest" => &image.manifest.digest,
            "layer" => image.top(),
            _ => &image.blobs[2].digest,
        });
        let read = anonymous(&releases(&[&server]), &server.digest(&image.manifest)).await;
        assert_eq!(read.unwrap_err().kind(), Reason::Corrupt, "{part}");
    }
}

#[tokio::test]
async fn a_list_is_for_several_architectures() {
    let server = Server::start().await;
    let amd = Image::release("4.22.1", "amd.example.com");
    let arm = Image::release_for("arm64", "4.22.1", "arm.example.com");
    let entry = |image: &Image, architecture: &str| {
        json!({ "digest": image.manifest.digest, "size": image.manifest.bytes.len(),
            "platform": { "os": "linux", "architecture": architecture } })
    };
    let list = Blob::json(
        &json!({ "schemaVersion": 2, "manifests": [entry(&arm, "arm64"), entry(&amd, "amd64")] }),
    );
    server.push("amd", &amd);
    server.push("arm", &arm);
    server.push_manifest("multi", &list);
    let releases = releases(&[&server]);
    let release = anonymous(&releases, &server.tag("multi")).await.unwrap();
    assert_eq!(release.architectures, PayloadArch::Multi);
    assert_eq!(release.digest, list.digest);
    assert!(
        release
            .component("etcd")
            .unwrap()
            .starts_with("amd.example.com")
    );
    let release = anonymous(&releases, &server.tag("arm")).await.unwrap();
    assert_eq!(release.architectures, PayloadArch::Arm64);
}

#[tokio::test]
async fn many_who_ask_at_once_cause_one_download() {
    let server = Server::start().await;
    let image = Image::release("4.22.1", "images.example.com");
    server.push("a", &image);
    let releases = releases(&[&server]);
    let name = server.tag("a");
    let all = join_all((0..100).map(|_| anonymous(&releases, &name))).await;
    let first = all[0].as_ref().unwrap();
    assert!(
        all.iter()
            .all(|one| Arc::ptr_eq(one.as_ref().unwrap(), first))
    );
    assert_eq!(server.requests(image.top()), 1);
    assert_eq!(server.requests("manifests/a"), 1);
}

#[tokio::test]
async fn cached_images_require_the_permission_of_each_user() {
    let server = Server::start().await;
    let image = Image::release("4.22.1", "images.example.com");
    server.push("a", &image);
    server.state().access = Access::Basic("someone:open-sesame");
    let releases = releases(&[&server]);
    let name = server.tag("a");
    let entry = |password: &str| json!({ "username": "someone", "password": password });
    let good = secret(&json!({ server.host(): entry(PASSWORD) }));
    let also_good = secret(&json!({ server.host(): entry(PASSWORD), "x.example.com": entry("x") }));
    let bad = secret(&json!({ server.host(): entry("bad") }));
    releases.get(&name, &good).await.unwrap();
    for (secret, expected) in [
        (&bad, Reason::Unauthorized),
        (&PullSecret::anonymous(), Reason::PullSecretMissing),
    ] {
        let error = releases.get(&name, secret).await.unwrap_err();
        assert_eq!(error.kind(), expected);
    }
    releases.get(&name, &also_good).await.unwrap();
    assert_eq!(server.requests(image.top()), 1);
}

#[tokio::test]
async fn transient_failures_are_retried() {
    let server = Server::start().await;
    let image = Image::release("4.22.1", "images.example.com");
    server.push("a", &image);
    server.state().busy = 2;
    server.state().cut = 2;
    let releases = releases(&[&server]);
    anonymous(&releases, &server.tag("a")).await.unwrap();
    server.push("b", &Image::release("4.22.2", "images.example.com"));
    server.state().busy = 50;
    let error = anonymous(&releases, &server.tag("b")).await.unwrap_err();
    assert_eq!(error.kind(), Reason::Unreachable);
    assert_eq!(server.requests("manifests/b"), 3);
}

#[tokio::test]
async fn mirrors_are_tried_in_their_order_and_then_the_image_itself() {
    let (mirror, origin) = (Server::start().await, Server::start().await);
    let image = Image::release("4.22.1", "images.example.com");
    origin.push("a", &image);
    let broken = "127.0.0.1:1/copy".to_owned();
    let source = format!("{}/ocp", origin.host());
    let mirrors = [(source, vec![broken, format!("{}/ocp", mirror.host())])];
    let name = origin.tag("a");
    let options = Options {
        mirrors: Mirrors::new(mirrors),
        ..options(&[&mirror, &origin])
    };
    let through_origin = Releases::new(options.clone()).unwrap();
    let release = anonymous(&through_origin, &name).await.unwrap();
    assert_eq!(release.mirror, None);

    mirror.push("a", &image);
    let requests_to_origin = origin.state().log.len();
    let through_mirror = Releases::new(options).unwrap();
    for _ in 0..2 {
        let release = anonymous(&through_mirror, &name).await.unwrap();
        assert_eq!(release.mirror.as_deref(), Some(mirror.tag("a").as_str()));
        assert_eq!(release.image, name);
    }
    assert_eq!(origin.state().log.len(), requests_to_origin);
    assert_eq!(mirror.requests(image.top()), 1);
}

#[tokio::test]
async fn overrides_are_for_the_control_plane_and_not_for_nodes() {
    let (inside, outside) = (Server::start().await, Server::start().await);
    let image = Image::release("4.22.1", &outside.host());
    inside.push("a", &image);
    outside.push("a", &image);
    let overrides = Overrides::new([(outside.host(), inside.host())]);
    let options = Options {
        overrides,
        ..options(&[&inside, &outside])
    };
    let releases = Releases::new(options).unwrap();
    let name = outside.tag("a");
    let release = anonymous(&releases, &name).await.unwrap();
    assert_eq!(outside.requests(""), 0);
    assert_eq!(release.image, name);
    assert!(
        release
            .component("etcd")
            .unwrap()
            .starts_with(&inside.host())
    );
    assert!(release.canonical["etcd"].starts_with(&outside.host()));
    let user = anonymous(&releases.for_user(), &name).await.unwrap();
    assert!(user.component("etcd").unwrap().starts_with(&outside.host()));
}

#[tokio::test]
async fn moved_tags_are_detected_and_registry_outages_tolerated() {
    let mut server = Server::start().await;
    server.push("a", &Image::release("4.22.1", "images.example.com"));
    let options = Options {
        believed: Duration::ZERO,
        ..options(&[&server])
    };
    let releases = Releases::new(options).unwrap();
    let name = server.tag("a");
    let version = async || {
        let release = anonymous(&releases, &name).await?;
        Ok::<_, Error>(release.version.to_string())
    };
    assert_eq!(version().await.unwrap(), "4.22.1");
    server.push("a", &Image::release("4.22.2", "images.example.com"));
    assert_eq!(version().await.unwrap(), "4.22.2");
    server.stop().await;
    assert_eq!(version().await.unwrap(), "4.22.2");
    let other = server.tag("b");
    let error = anonymous(&releases, &other).await.unwrap_err();
    assert_eq!(error.kind(), Reason::Unreachable);
}

#[tokio::test]
async fn contents_on_disk_need_no_registry() {
    let mut server = Server::start().await;
    let image = Image::release("4.22.1", "images.example.com");
    server.push("a", &image);
    let home = tempfile::tempdir().unwrap();
    let options = Options {
        directory: Some(home.path().to_owned()),
        ..options(&[&server])
    };
    let name = server.digest(&image.manifest);
    let first = anonymous(&Releases::new(options.clone()).unwrap(), &name)
        .await
        .unwrap();
    let second = anonymous(&Releases::new(options.clone()).unwrap(), &name)
        .await
        .unwrap();
    assert_eq!(first, second);
    assert_eq!(server.requests(image.top()), 1);
    server.stop().await;
    let third = anonymous(&Releases::new(options).unwrap(), &name)
        .await
        .unwrap();
    assert_eq!(first, third);
}

#[tokio::test]
async fn labels_of_any_image_can_be_read() {
    let server = Server::start().await;
    let label = "io.openshift.hypershift.control-plane-operator-subcommands";
    let image = Image::new("amd64", &json!({ label: "true" }), &[&[("bin/x", b"1")]]);
    server.push("cpo", &image);
    let releases = releases(&[&server]);
    for _ in 0..2 {
        let secret = PullSecret::anonymous();
        let labels = releases.labels(&server.tag("cpo"), &secret).await.unwrap();
        let can = payload::Capabilities::of_labels(&labels);
        assert!(can.has(payload::Capability::Subcommands));
        assert!(!can.has(payload::Capability::V2));
    }
    assert_eq!(server.requests(&image.blobs[0].digest), 0);
}

#[tokio::test]
async fn digests_of_any_image_can_be_read() {
    let server = Server::start().await;
    let image = Image::new("amd64", &json!({}), &[&[("configs/a", b"1")]]);
    server.push("index", &image);
    let releases = releases(&[&server]);
    let secret = PullSecret::anonymous();
    for releases in [releases.clone(), releases.for_tenant("catalogs")] {
        let digest = releases.digest(&server.tag("index"), &secret).await;
        let pinned = digest.unwrap();
        let repository: payload::Reference = server.tag("index").parse().unwrap();
        let by_digest = repository.with_digest(pinned.clone()).to_string();
        let again = releases.digest(&by_digest, &secret).await.unwrap();
        assert_eq!(again, pinned);
        let missing = releases.digest(&server.tag("other"), &secret).await;
        assert_eq!(missing.unwrap_err().kind(), payload::Reason::NotFound);
    }
    assert_eq!(server.requests(&image.blobs[0].digest), 0);
}

#[tokio::test]
async fn tls_is_verified_with_the_given_authorities() {
    let key = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    let pem = key.cert.pem().into_bytes();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let private = rustls::pki_types::PrivateKeyDer::Pkcs8(key.signing_key.serialize_der().into());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![key.cert.der().clone()], private)
        .unwrap();
    let server = Server::start_with(Some(Arc::new(config).into())).await;
    server.push("a", &Image::release("4.22.1", "images.example.com"));
    server.state().access = Access::Basic("someone:open-sesame");
    let entry = json!({ server.host(): { "username": "someone", "password": PASSWORD } });
    let secret = secret(&entry);
    let name = server.tag("a");

    let stranger = releases(&[]);
    let error = stranger.get(&name, &secret).await.unwrap_err();
    assert_eq!(error.kind(), Reason::Unreachable);
    assert!(texts(&error).contains("certificate"), "{}", texts(&error));
    let trusting = Options {
        ca_bundle: Some(pem),
        ..options(&[])
    };
    let trusting = Releases::new(trusting).unwrap();
    trusting.get(&name, &secret).await.unwrap();

    // A password is not sent in clear text.
    server.state().access = Access::Token("someone:open-sesame");
    server.state().realm = Some("http://127.0.0.1:1/token".to_owned());
    server.push("b", &Image::release("4.22.1", "images.example.com"));
    let error = trusting.get(&server.tag("b"), &secret).await.unwrap_err();
    assert_eq!(error.kind(), Reason::Unauthorized);
    assert!(error.to_string().contains("cannot be trusted"), "{error}");
}
