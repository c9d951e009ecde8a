//! Files of images, extracted to disk from a registry.

use std::fs;

use payload::extract::{Caps, Extracted, Pattern, Store};
use payload::{Error, PullSecret, Reason, Releases};
use serde_json::json;
use tempfile::tempdir;

use crate::image::Image;
use crate::releases;
use crate::server::Server;

const PROGRAM: &str = "usr/bin/machine-config-operator";

/// An image with programs in its lower layer, and templates in both.
fn image() -> Image {
    Image::new(
        "amd64",
        &json!({}),
        &[
            &[
                (PROGRAM, b"a program"),
                ("usr/lib/os-release", b"VERSION_ID=\"9.4\"\n"),
                ("etc/mcc/templates/common/a.yaml", b"lower"),
                ("etc/mcc/templates/common/b.yaml", b"b"),
            ],
            &[
                ("etc/mcc/templates/common/a.yaml", b"upper"),
                ("etc/mcc/templates/common/.wh.b.yaml", b""),
            ],
        ],
    )
}

async fn extract(releases: &Releases, image: &str, store: &Store) -> Result<Extracted, Error> {
    let wanted = [
        Pattern::file(PROGRAM),
        Pattern::file("usr/bin/machine-config-operator.rhel9"),
        Pattern::file("usr/lib/os-release"),
        Pattern::below("etc/mcc/templates"),
    ];
    let pull_secret = PullSecret::anonymous();
    releases.extract(image, &pull_secret, &wanted, store).await
}

#[tokio::test]
async fn files_of_all_layers_are_extracted_and_downloaded_once() {
    let server = Server::start().await;
    let image = image();
    server.push("mco", &image);
    let home = tempdir().unwrap();
    let store = Store::new(home.path().join("store"), Caps::default());
    let extracted = extract(&releases(&[&server]), &server.tag("mco"), &store)
        .await
        .unwrap();
    let paths: Vec<_> = extracted.paths().collect();
    assert_eq!(
        paths,
        [
            "etc/mcc/templates/common/a.yaml",
            PROGRAM,
            "usr/lib/os-release"
        ]
    );
    let text = |path| extracted.text(path).unwrap().unwrap();
    assert_eq!(text("etc/mcc/templates/common/a.yaml"), "upper");
    assert_eq!(text("usr/lib/os-release"), "VERSION_ID=\"9.4\"\n");
    let to = home.path().join("program");
    assert!(extracted.copy(PROGRAM, &to).unwrap());
    assert_eq!(fs::read(to).unwrap(), b"a program");
    // Also after a restart: only whether the image may be read is checked again.
    let again = extract(&releases(&[&server]), &server.tag("mco"), &store)
        .await
        .unwrap();
    assert!(again.contains(PROGRAM));
    for layer in [image.base(), image.top()] {
        assert_eq!(server.requests(layer), 1, "{layer}");
    }
}

/// The process that runs them may have been restarted.
#[tokio::test]
async fn extracted_files_do_not_need_the_registry() {
    let mut server = Server::start().await;
    let image = image();
    server.push("mco", &image);
    let home = tempdir().unwrap();
    let store = Store::new(home.path(), Caps::default());
    let by_digest = server.digest(&image.manifest);
    let first = releases(&[&server]);
    extract(&first, &by_digest, &store).await.unwrap();
    server.stop().await;
    let restarted = releases(&[&server]);
    let extracted = extract(&restarted, &by_digest, &store).await.unwrap();
    assert!(extracted.contains(PROGRAM));
    // A tag may name another image by now.
    let error = extract(&restarted, &server.tag("mco"), &store)
        .await
        .unwrap_err();
    assert_eq!(error.kind(), Reason::Unreachable, "{error}");
}

#[tokio::test]
async fn layers_that_are_changed_on_the_way_leave_nothing_behind() {
    let server = Server::start().await;
    let image = image();
    server.push("mco", &image);
    server.tamper(image.base());
    let home = tempdir().unwrap();
    let store = Store::new(home.path().join("store"), Caps::default());
    let error = extract(&releases(&[&server]), &server.tag("mco"), &store)
        .await
        .unwrap_err();
    assert_eq!(error.kind(), Reason::Corrupt, "{error}");
    let contents = fs::read_dir(home.path().join("store/contents")).unwrap();
    let files = contents.filter(|entry| entry.as_ref().unwrap().path().is_file());
    // The one file of the upper layer.
    assert_eq!(files.count(), 1);
}

#[tokio::test]
async fn oversized_files_are_refused_with_their_path() {
    let server = Server::start().await;
    server.push("mco", &image());
    let home = tempdir().unwrap();
    let caps = Caps {
        file: 8,
        ..Caps::default()
    };
    let store = Store::new(home.path(), caps);
    let error = extract(&releases(&[&server]), &server.tag("mco"), &store)
        .await
        .unwrap_err();
    assert_eq!(error.kind(), Reason::TooLarge, "{error}");
    assert!(error.to_string().contains(PROGRAM), "{error}");
}
