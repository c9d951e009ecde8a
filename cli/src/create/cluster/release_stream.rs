//! The newest release of a release stream, for `--release-stream`.

use anyhow::{Context, bail};
use http::{Request, StatusCode};
use hyper::body::Bytes;
use payload::{Minor, Version};
use serde_json::Value;
use support::outbound::Http;

use crate::Usage;

/// Architectures that have release streams of their own; a stream ends in its name.
const ARCHES: [&str; 4] = ["arm64", "multi", "ppc64le", "s390x"];
/// What to do when there is no release.
const INSTEAD: &str = "pass --release-image instead";

/// Looks up the release image of the newest release that is not newer than `limit`.
pub(super) async fn newest_release(stream: &str, limit: Minor) -> anyhow::Result<String> {
    let address = address(stream)?;
    let build = || Request::get(&address).body(Bytes::new());
    let response = Http::new().send(build).await;
    let response = response.with_context(|| format!("failed to get {address}: {INSTEAD}"))?;
    if response.status() != StatusCode::OK {
        bail!(
            "failed to get {address}: the server responds {}: check the name of the stream, or {INSTEAD}",
            response.status()
        );
    }
    newest(response.body(), limit).with_context(|| {
        format!("{address} lists no accepted release up to {limit}: choose an older stream, or {INSTEAD}")
    })
}

/// Whether the images of a stream are for all architectures.
pub(super) fn is_multi(stream: &str) -> bool {
    stream.contains("multi")
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
fn newest(body: &[u8], limit: Minor) -> Option<String> {
    let body: Value = serde_json::from_slice(body).ok()?;
    let mut tags = body["tags"].as_array()?.iter();
    let tag = tags.find(|tag| {
        let name = tag["name"].as_str().unwrap_or_default();
        let version = name.parse::<Version>();
        tag["phase"] == "Accepted"
            && !name.contains("-rc.")
            && !name.contains("-ec.")
            && version.is_ok_and(|version| version.minor() <= limit)
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
    fn the_newest_accepted_release_that_is_supported_is_chosen() {
        let body = r#"{ "name": "4-stable", "tags": [
            { "name": "4.21.0-rc.1", "phase": "Accepted", "pullSpec": "registry.example.com/release:4.21.0-rc.1" },
            { "name": "4.20.9", "phase": "Rejected", "pullSpec": "registry.example.com/release:4.20.9" },
            { "name": "4.20.8", "phase": "Accepted", "pullSpec": "registry.example.com/release:4.20.8" },
            { "name": "4.20.7", "phase": "Accepted", "pullSpec": "registry.example.com/release:4.20.7" },
            { "name": "4.19.9", "phase": "Accepted", "pullSpec": "registry.example.com/release:4.19.9" }
        ] }"#;
        for (limit, expected) in [
            (Minor::NEWEST, Some("registry.example.com/release:4.20.8")),
            (Minor::of_4(20), Some("registry.example.com/release:4.20.8")),
            (Minor::of_4(19), Some("registry.example.com/release:4.19.9")),
            (Minor::of_4(18), None),
        ] {
            assert_eq!(newest(body.as_bytes(), limit).as_deref(), expected);
        }
        for none in ["", "{}", r#"{ "tags": [] }"#] {
            assert_eq!(newest(none.as_bytes(), Minor::NEWEST), None, "{none}");
        }
    }
}
