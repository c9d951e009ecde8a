//! Which images machines boot from: the stream metadata that a release carries.

use std::collections::BTreeMap;

use api::hypershift::v1beta1::node_pool::Arch;
use serde::Deserialize;

/// Boot images of one operating system stream, for each architecture and platform.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Stream {
    /// The stream's name.
    pub stream: String,
    architectures: BTreeMap<String, Architecture>,
}

/// The streams of a release: the usual one, and since 5.0 those that pools may choose from.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Streams {
    /// The usual one.
    pub default: Option<Stream>,
    /// All by their names, such as `rhel-9`.
    pub named: BTreeMap<String, Stream>,
}

/// What there is for one architecture.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
struct Architecture {
    artifacts: BTreeMap<String, Artifact>,
}

/// Disks to download.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
struct Artifact {
    release: String,
}

impl Stream {
    /// The image in a region of AWS.
    pub fn ami(&self, _arch: Arch, _region: &str) -> Option<&str> {
        todo!()
    }
}
