//! Images: that of the provider, and those that volumes are filled from.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard};

use anyhow::Result;
use serde_json::Value;

use crate::binaries::{Binaries, Binary};
use crate::images::{Archive, Contents, File};
use crate::node::NodeTestbed;

/// The name of the provider's image.
const PROVIDER: &str = "capi-provider-kubevirt";
/// Where the provider's program is in it: HyperShift's Deployment names it so.
const PROGRAM: &str = "/manager";

/// Pushes the image of the stock provider; returns its reference.
pub async fn provider(testbed: &NodeTestbed) -> Result<String> {
    let wanted = [Binary::KubevirtProvider];
    let binaries = Binaries::ensure(&wanted, &testbed.progress).await?;
    let program = binaries.path(Binary::KubevirtProvider)?.to_owned();
    let archive = Archive::of(&Contents {
        files: vec![File::program(PROGRAM, program)],
        entrypoint: PROGRAM.to_owned(),
        command: &[],
    })?;
    testbed.registry.push(PROVIDER, &archive).await
}

/// The name of the image that disks are filled from.
const DISK: &str = "rhcos";

/// Pushes an image that disks can be filled from; returns its reference.
pub(super) async fn disk(testbed: &NodeTestbed) -> Result<String> {
    let archive = Archive::of(&Contents {
        files: vec![File::text("/disk/disk.img", "the disk of a testbed")],
        entrypoint: "/disk".to_owned(),
        command: &[],
    })?;
    testbed.registry.push(DISK, &archive).await
}

/// Where the content of a volume comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Source<'a> {
    /// From an image: its URL.
    Image(&'a str),
    /// From another volume.
    Clone {
        /// Its namespace.
        namespace: &'a str,
        /// Its name.
        name: &'a str,
    },
    /// It has none.
    Blank,
}

/// The source of a `DataVolume`, unless it has none that is known here.
pub(super) fn source(volume: &Value) -> Option<Source<'_>> {
    let source = &volume["spec"]["source"];
    let url = |kind: &str| source[kind]["url"].as_str();
    if let Some(url) = url("registry").or_else(|| url("http")) {
        return Some(Source::Image(url));
    }
    if let Some(name) = source["pvc"]["name"].as_str() {
        let namespace = source["pvc"]["namespace"].as_str();
        let own = volume["metadata"]["namespace"].as_str();
        let namespace = namespace.or(own).unwrap_or_default();
        return Some(Source::Clone { namespace, name });
    }
    source["blank"].is_object().then_some(Source::Blank)
}

/// How often each image was imported.
#[derive(Debug, Default)]
pub(super) struct Imports(Mutex<BTreeMap<String, usize>>);

// === impl Imports ===

impl Imports {
    /// Records an import of an image.
    pub(super) fn add(&self, image: &str) {
        *self.lock().entry(image.to_owned()).or_default() += 1;
    }

    /// The number of imports by image.
    pub(super) fn by_image(&self) -> BTreeMap<String, usize> {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, usize>> {
        self.0
            .lock()
            .expect("invariant: no thread panics while holding it")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_source_of_a_volume_is_an_image_a_volume_or_empty() {
        let cloned = |namespace| Source::Clone {
            namespace,
            name: "cache",
        };
        for (given, expected) in [
            (
                json!({ "registry": { "url": "docker://a@sha256:b", "pullMethod": "node" } }),
                Some(Source::Image("docker://a@sha256:b")),
            ),
            (
                json!({ "http": { "url": "https://a/b.qcow2.gz" } }),
                Some(Source::Image("https://a/b.qcow2.gz")),
            ),
            (
                json!({ "pvc": { "namespace": "other", "name": "cache" } }),
                Some(cloned("other")),
            ),
            (json!({ "pvc": { "name": "cache" } }), Some(cloned("own"))),
            (json!({ "blank": {} }), Some(Source::Blank)),
            (json!({ "s3": { "url": "https://a" } }), None),
            (Value::Null, None),
        ] {
            let volume = json!({
                "metadata": { "namespace": "own" },
                "spec": { "source": given },
            });
            assert_eq!(source(&volume), expected, "{volume}");
        }
    }
}
