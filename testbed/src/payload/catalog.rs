//! A catalog with one operator, in the form of the Operator Lifecycle Manager: a bundle, and a file-based catalog with the
//! cache that opm makes of it.
//!
//! The operator is a container that waits. It declares that it does not support the next minor version of OpenShift.

use std::path::Path;
use std::process::Stdio;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::images;
use crate::binaries::{Binaries, Binary};
use crate::images::{Archive, Contents, File};
use crate::node::NodeTestbed;
use crate::registry;

/// The operator's package.
pub const PACKAGE: &str = "trivial";
/// Its channel.
pub const CHANNEL: &str = "stable";
/// The name of its `ClusterServiceVersion`.
pub const CSV: &str = "trivial.v1.0.0";
/// The last minor version of OpenShift that it supports.
pub const SUPPORTED: &str = "4.22";
/// The Deployment that it consists of.
pub const DEPLOYMENT: &str = "trivial-operator";
const VERSION: &str = "1.0.0";
const BUNDLE: &str = "olm/trivial-bundle";
/// The repositories that the default catalogs have in a registry's namespace.
const INDEXES: [&str; 3] = [
    "certified-operator-index",
    "community-operator-index",
    "redhat-operator-index",
];
/// The namespace of the catalogs in a registry.
const NAMESPACE: &str = "redhat";
/// Where an image has its catalog, and the cache of it.
const CONFIGS: &str = "/configs";
const CACHE: &str = "/tmp/cache";

/// Pushes the catalog as each of the default ones, for a minor version of OpenShift; gives its reference by digest.
pub async fn push(testbed: &NodeTestbed, version: &str) -> Result<String> {
    let programs = [Binary::Opm, Binary::GrpcHealthProbe];
    let binaries = Binaries::ensure(&programs, &testbed.progress).await?;
    let bundle = testbed
        .registry
        .push(BUNDLE, &bundle(&testbed.pause_image())?)
        .await?;
    let catalog = blobs(&bundle);
    let cache = cache(&binaries, &testbed.path().join("catalog"), &catalog).await?;
    let mut files = vec![File::text(
        format!("{CONFIGS}/{PACKAGE}/catalog.json"),
        catalog,
    )];
    files.extend(cache);
    let image = images::registry(&binaries, files)?;
    let mut reference = String::new();
    for index in INDEXES {
        let repository = format!("{NAMESPACE}/{index}");
        let tag = format!("v{version}");
        reference = testbed.registry.push_as(&repository, &tag, &image).await?;
    }
    Ok(reference)
}

/// The annotation value by which the default catalogs are those of the testbed's registry.
pub fn registries() -> String {
    format!("registry.redhat.io/redhat={}/{NAMESPACE}", registry::NAME)
}

/// The catalog: package, channel, bundle.
fn blobs(bundle: &str) -> String {
    let package = json!({ "schema": "olm.package", "name": PACKAGE, "defaultChannel": CHANNEL });
    let channel = json!({
        "schema": "olm.channel", "package": PACKAGE, "name": CHANNEL, "entries": [{ "name": CSV }],
    });
    let csv = csv("");
    let metadata = json!({
        "type": "olm.csv.metadata",
        "value": {
            "annotations": csv["metadata"]["annotations"],
            "displayName": csv["spec"]["displayName"],
            "installModes": csv["spec"]["installModes"],
            "provider": csv["spec"]["provider"],
        },
    });
    let bundle = json!({
        "schema": "olm.bundle", "package": PACKAGE, "name": CSV, "image": bundle,
        "properties": [
            { "type": "olm.package", "value": { "packageName": PACKAGE, "version": VERSION } },
            supported(),
            metadata,
        ],
    });
    [package, channel, bundle]
        .map(|blob| blob.to_string())
        .join("\n")
}

fn supported() -> Value {
    json!({ "type": "olm.maxOpenShiftVersion", "value": SUPPORTED })
}

/// The image from which the operator is installed.
fn bundle(operator: &str) -> Result<Archive> {
    let annotations = json!({ "annotations": {
        "operators.operatorframework.io.bundle.mediatype.v1": "registry+v1",
        "operators.operatorframework.io.bundle.manifests.v1": "manifests/",
        "operators.operatorframework.io.bundle.metadata.v1": "metadata/",
        "operators.operatorframework.io.bundle.package.v1": PACKAGE,
        "operators.operatorframework.io.bundle.channels.v1": CHANNEL,
    } });
    Archive::of(&Contents {
        // A pod of OLM names the program.
        entrypoint: "/none".to_owned(),
        command: &[],
        files: vec![
            // JSON is YAML.
            File::text("/manifests/csv.yaml", csv(operator).to_string()),
            File::text("/metadata/annotations.yaml", annotations.to_string()),
        ],
    })
}

fn csv(image: &str) -> Value {
    let labels = json!({ "name": DEPLOYMENT });
    let mode = |kind: &str, is_supported| json!({ "type": kind, "supported": is_supported });
    let properties = json!([supported()]).to_string();
    json!({
        "apiVersion": "operators.coreos.com/v1alpha1",
        "kind": "ClusterServiceVersion",
        "metadata": { "name": CSV, "annotations": { "olm.properties": properties } },
        "spec": {
            "displayName": "Trivial",
            "version": VERSION,
            "provider": { "name": "testbed" },
            "installModes": [
                mode("OwnNamespace", false),
                mode("SingleNamespace", false),
                mode("MultiNamespace", false),
                mode("AllNamespaces", true),
            ],
            "install": { "strategy": "deployment", "spec": { "deployments": [{
                "name": DEPLOYMENT,
                "spec": {
                    "replicas": 1,
                    "selector": { "matchLabels": labels },
                    "template": {
                        "metadata": { "labels": labels },
                        "spec": {
                            "securityContext": {
                                "runAsNonRoot": true,
                                "runAsUser": 65532,
                                "seccompProfile": { "type": "RuntimeDefault" },
                            },
                            "containers": [{
                                "name": "operator",
                                "image": image,
                                "securityContext": {
                                    "allowPrivilegeEscalation": false,
                                    "capabilities": { "drop": ["ALL"] },
                                },
                            }],
                        },
                    },
                },
            }] } },
        },
    })
}

/// The files of the cache, which opm refuses to make while it serves.
async fn cache(binaries: &Binaries, directory: &Path, catalog: &str) -> Result<Vec<File>> {
    let (configs, cache) = (directory.join("configs"), directory.join("cache"));
    std::fs::create_dir_all(configs.join(PACKAGE))?;
    std::fs::write(configs.join(PACKAGE).join("catalog.json"), catalog)?;
    let mut argument = std::ffi::OsString::from("--cache-dir=");
    argument.push(&cache);
    let output = tokio::process::Command::new(binaries.path(Binary::Opm)?)
        .arg("serve")
        .arg(&configs)
        .arg(argument)
        .args(["--cache-only", "--pprof-addr="])
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output()
        .await
        .context("cannot run opm")?;
    ensure!(
        output.status.success(),
        "opm cannot make the catalog's cache: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    let mut files = Vec::new();
    collect(&cache, CACHE, &mut files)?;
    ensure!(!files.is_empty(), "opm has made no cache");
    Ok(files)
}

/// The files below a directory, as files of an image.
fn collect(directory: &Path, at: &str, files: &mut Vec<File>) -> Result<()> {
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        let at = format!("{at}/{}", entry.file_name().to_string_lossy());
        if entry.file_type()?.is_dir() {
            collect(&entry.path(), &at, files)?;
        } else {
            // A reader locks it with a file beside it.
            files.push(File::shared(at, std::fs::read(entry.path())?));
        }
    }
    Ok(())
}
