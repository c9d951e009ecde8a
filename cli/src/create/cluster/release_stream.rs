//! The newest release of a release stream, for `--release-stream`.

use anyhow::Context;
use serde_json::Value;

use crate::Usage;
use crate::crds::source::url::{PlainHttp, Url, text};

/// Architectures that have release streams of their own; a stream ends in its name.
const ARCHES: [&str; 4] = ["arm64", "multi", "ppc64le", "s390x"];

/// Looks up the release image.
pub(super) async fn newest_release(stream: &str) -> anyhow::Result<String> {
    let address = address(stream)?;
    let url: Url = address.parse()?;
    let instead = "pass --release-image instead";
    let body = text(&url, PlainHttp::Loopback).await;
    let body = body.with_context(|| format!("failed to get {address}: {instead}"))?;
    newest(&body).with_context(|| format!("{address} lists no accepted release: {instead}"))
}

/// The URL of the releases of a stream.
fn address(stream: &str) -> Result<String, Usage> {
    let is_name =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-.".contains(&byte);
    if stream.is_empty() || !stream.bytes().all(is_name) {
        return Err(Usage::new(&format!(
            "--release-stream {stream:?}: use the name of a release stream, for example 4-stable-multi"
        )));
    }
    let suffix = stream.rsplit('-').next().unwrap_or_default();
    let arch = ARCHES
        .iter()
        .find(|arch| **arch == suffix)
        .unwrap_or(&"amd64");
    Ok(format!(
        "https://{arch}.ocp.releases.ci.openshift.org/api/v1/releasestream/{stream}/tags"
    ))
}

/// The image of the first accepted release. Releases are listed from the newest; release candidates are skipped.
fn newest(body: &str) -> Option<String> {
    let body: Value = serde_json::from_str(body).ok()?;
    let mut tags = body["tags"].as_array()?.iter();
    let tag = tags.find(|tag| {
        let name = tag["name"].as_str().unwrap_or_default();
        tag["phase"] == "Accepted" && !name.contains("-rc.") && !name.contains("-ec.")
    })?;
    Some(tag["pullSpec"].as_str()?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_are_looked_up_by_architecture() {
        for (stream, host) in [
            ("4-stable", "amd64"),
            ("4-stable-multi", "multi"),
            ("4-stable-arm64", "arm64"),
        ] {
            let expected = format!(
                "https://{host}.ocp.releases.ci.openshift.org/api/v1/releasestream/{stream}/tags"
            );
            assert_eq!(address(stream).ok(), Some(expected));
        }
        for stream in ["", "a/b", "a?b", "A"] {
            assert!(address(stream).is_err(), "{stream}");
        }
    }

    #[test]
    fn the_newest_accepted_release_is_chosen() {
        let body = r#"{ "name": "4-stable", "tags": [
            { "name": "4.21.0-rc.1", "phase": "Accepted", "pullSpec": "registry.example.com/release:4.21.0-rc.1" },
            { "name": "4.20.9", "phase": "Rejected", "pullSpec": "registry.example.com/release:4.20.9" },
            { "name": "4.20.8", "phase": "Accepted", "pullSpec": "registry.example.com/release:4.20.8" },
            { "name": "4.20.7", "phase": "Accepted", "pullSpec": "registry.example.com/release:4.20.7" }
        ] }"#;
        let expected = "registry.example.com/release:4.20.8";
        assert_eq!(newest(body).as_deref(), Some(expected));
        for none in ["", "{}", r#"{ "tags": [] }"#] {
            assert_eq!(newest(none), None, "{none}");
        }
    }
}
