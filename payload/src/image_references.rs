//! The file `image-references` of a release: an ImageStream with a tag for each component.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::version::Version;

/// Its path in a release image.
pub const PATH: &str = "release-manifests/image-references";
/// The annotation of a tag with the versions of what is in its image: `name=version,...`.
const VERSIONS: &str = "io.openshift.build.versions";
/// The name under which the release's own version is found among the versions of its components.
const RELEASE: &str = "release";

/// The content of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageReferences {
    /// The version of the release.
    pub version: Version,
    /// Images by component.
    pub images: BTreeMap<String, String>,
    /// Versions by component.
    pub versions: BTreeMap<String, String>,
}

/// An invalid file.
#[derive(Debug, thiserror::Error)]
pub enum InvalidImageReferences {
    /// It is not JSON, or not an ImageStream.
    #[error("{PATH} is not an ImageStream")]
    Json(#[source] serde_json::Error),
    /// It is an object of another kind.
    #[error("{PATH} is a {kind:?}, and should be an ImageStream of image.openshift.io/v1")]
    Kind {
        /// What it is.
        kind: String,
    },
    /// Its name is not a version.
    #[error("{PATH} is not named by the version of a release")]
    Version(#[source] crate::version::InvalidVersion),
    /// It contains no image.
    #[error("{PATH} names no image")]
    Empty,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ImageStream {
    api_version: String,
    kind: String,
    #[serde(default)]
    metadata: Metadata,
    #[serde(default)]
    spec: Spec,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Metadata {
    name: String,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Spec {
    tags: Vec<Tag>,
}

#[derive(Deserialize)]
struct Tag {
    name: String,
    #[serde(default)]
    annotations: Option<BTreeMap<String, String>>,
    #[serde(default)]
    from: Option<Source>,
}

#[derive(Deserialize)]
struct Source {
    kind: String,
    name: String,
}

// === impl ImageReferences ===

impl ImageReferences {
    /// Reads the file.
    pub fn parse(json: &[u8]) -> Result<Self, InvalidImageReferences> {
        let stream: ImageStream =
            serde_json::from_slice(json).map_err(InvalidImageReferences::Json)?;
        if stream.kind != "ImageStream" || stream.api_version != "image.openshift.io/v1" {
            let kind = format!("{} of {}", stream.kind, stream.api_version);
            return Err(InvalidImageReferences::Kind { kind });
        }
        let version = stream.metadata.name.parse();
        let version: Version = version.map_err(InvalidImageReferences::Version)?;
        let versions = versions(&version, &stream.spec.tags);
        let images: BTreeMap<_, _> = stream.spec.tags.into_iter().filter_map(image).collect();
        if images.is_empty() {
            return Err(InvalidImageReferences::Empty);
        }
        Ok(Self {
            version,
            images,
            versions,
        })
    }
}

/// A tag that refers to another tag, or to nothing, is not an image of the release.
fn image(tag: Tag) -> Option<(String, String)> {
    let from = tag.from.filter(|from| from.kind == "DockerImage")?;
    Some((tag.name, from.name))
}

/// The versions in the annotations of tags. Of several versions of one component the newest applies.
fn versions(release: &Version, tags: &[Tag]) -> BTreeMap<String, String> {
    let mut versions = BTreeMap::from([(RELEASE.to_owned(), release.to_string())]);
    let texts = tags
        .iter()
        .filter_map(|tag| tag.annotations.as_ref()?.get(VERSIONS));
    for (name, version) in texts.flat_map(|text| text.split(',')).filter_map(pair) {
        let known = versions.entry(name.to_owned());
        let known = known.or_insert_with(|| version.to_owned());
        if name != RELEASE && is_newer(version, known) {
            version.clone_into(known);
        }
    }
    versions
}

fn pair(text: &str) -> Option<(&str, &str)> {
    let (name, version) = text.split_once('=')?;
    Some((name.trim(), version.trim()))
}

fn is_newer(version: &str, known: &str) -> bool {
    let parse = |text| semver::Version::parse(text).ok();
    parse(version) > parse(known)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn stream(name: &str, tags: &Value) -> Vec<u8> {
        let stream = json!({
            "kind": "ImageStream", "apiVersion": "image.openshift.io/v1",
            "metadata": { "name": name, "creationTimestamp": null },
            "spec": { "lookupPolicy": { "local": false }, "tags": tags },
        });
        stream.to_string().into_bytes()
    }

    #[test]
    fn tags_are_components_with_versions() {
        let tags = json!([
            { "name": "hyperkube", "from": { "kind": "DockerImage", "name": "images.example.com/r@sha256:1" },
              "annotations": { "io.openshift.build.versions": "kubernetes=1.35.4, kubectl = 1.35.4" } },
            { "name": "tests", "from": { "kind": "DockerImage", "name": "images.example.com/r@sha256:2" },
              "annotations": { "io.openshift.build.versions": "kubernetes=1.35.1,release=9.9.9" } },
            { "name": "alias", "from": { "kind": "ImageStreamTag", "name": "hyperkube" } },
            { "name": "nothing", "annotations": null },
        ]);
        let read = ImageReferences::parse(&stream("4.22.1", &tags)).unwrap();
        assert_eq!(read.version.to_string(), "4.22.1");
        let names: Vec<_> = read.images.keys().map(String::as_str).collect();
        assert_eq!(names, ["hyperkube", "tests"]);
        assert_eq!(read.versions["kubernetes"], "1.35.4");
        assert_eq!(read.versions["kubectl"], "1.35.4");
        assert_eq!(read.versions["release"], "4.22.1");
    }

    #[test]
    fn other_documents_are_refused() {
        let image = json!([{ "name": "a", "from": { "kind": "DockerImage", "name": "b" } }]);
        for (name, bytes, expected) in [
            ("no JSON", b"<html>".to_vec(), "not an ImageStream"),
            (
                "another kind",
                br#"{"apiVersion":"v1","kind":"Pod"}"#.to_vec(),
                "\"Pod of v1\"",
            ),
            (
                "no version",
                stream("latest", &image),
                "not named by the version",
            ),
            ("no images", stream("4.22.0", &json!([])), "names no image"),
        ] {
            let error = ImageReferences::parse(&bytes).unwrap_err().to_string();
            assert!(error.contains(expected), "{name}: {error}");
        }
    }
}
