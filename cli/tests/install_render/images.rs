//! Images of a list, and operators without pods.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::json;

use crate::{objects, render, text};

#[test]
fn images_of_a_list_are_used() {
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("install-image-refs.json");
    let tags = ["hypershift-operator", "cluster-api", "external-dns"];
    let tags = tags.map(
        |tag| json!({ "name": tag, "from": { "name": format!("images.example.com/{tag}:v2") } }),
    );
    let stream = json!({ "kind": "ImageStream", "spec": { "tags": tags } });
    fs::write(&file, stream.to_string()).expect("it can be written");
    let refs = format!("--image-refs={}", file.display());
    let flags = [
        refs.as_str(),
        "--outputs=resources",
        "--registry-overrides=images.example.com=mirror.example.com",
        "--external-dns-provider=google",
        "--external-dns-domain-filter=clusters.example.com",
        "--external-dns-txt-owner-id=a",
        "--development",
    ];
    let output = Command::new(env!("CARGO_BIN_EXE_hypershift"))
        .args(["install", "render"])
        .args(flags)
        .env_remove("HYPERSHIFT_IMAGE")
        .output()
        .expect("the binary runs");
    let objects = objects(&text(&output));
    let deployment = |name: &str| {
        let mut objects = objects.iter();
        let found = objects.find(|it| it["kind"] == "Deployment" && it["metadata"]["name"] == name);
        &found.expect("it is rendered")["spec"]
    };
    let container = |name: &str| &deployment(name)["template"]["spec"]["containers"][0];
    let mirrored = |tag: &str| json!(format!("mirror.example.com/{tag}:v2"));
    assert_eq!(container("external-dns")["image"], mirrored("external-dns"));
    let operator = container("operator");
    assert_eq!(operator["image"], mirrored("hypershift-operator"));
    let variable = json!({ "name": "IMAGE_CLUSTER_API", "value": mirrored("cluster-api") });
    let variables = operator["env"].as_array().expect("it has variables");
    assert!(variables.contains(&variable), "{variables:?}");
    assert_eq!(deployment("operator")["replicas"], 0);
    let refused = render(&[refs.as_str()]);
    assert_eq!(refused.status.code(), Some(64), "--hypershift-image, too");
}
