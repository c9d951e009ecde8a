//! Token Secrets: parsing, and the next action. Pure.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::time::Duration;

use api::annotations::node_pool::{
    IGNITION_CONFIG, IGNITION_REACHED, LAST_TOKEN_GENERATION_TIME, NODE_POOL, TAINTS,
    TOKEN_EXPIRATION, UPGRADE_TYPE,
};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::read::GzDecoder;
use flate2::{Compression, GzBuilder};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::{Value, json};

use super::cache::LIFETIME;
use crate::hex;

/// Rotation interval: half of a payload's lifetime, so that the previous token stays valid for the other half.
const ROTATION: SignedDuration =
    SignedDuration::from_hours(5).saturating_add(SignedDuration::from_mins(30));
/// Maximum size of a decompressed pool configuration.
const MAX_CONFIG_SIZE: u64 = 16 << 20;
/// Magic bytes of gzip.
const GZIP: [u8; 2] = [0x1f, 0x8b];
/// Reason of a rendered payload.
pub(super) const AS_EXPECTED: &str = "AsExpected";

/// Key of a token Secret: why it has a payload or not.
pub(super) const REASON: &str = "reason";
/// Key of a token Secret: the payload, for in-place upgrades.
const PAYLOAD: &str = "payload";
/// Key of a token Secret: the reference of the release.
pub(super) const RELEASE: &str = "release";
/// Key of a token Secret: the release whose payload this server has rendered itself, since it has no programs for that.
pub(super) const OWN: &str = "rendered-without-programs";

/// A payload.
#[derive(Clone, Copy)]
pub(super) struct Made<'a> {
    pub(super) payload: &'a [u8],
    /// Whether this server has rendered it, because the release has no programs for that.
    pub(super) is_own: bool,
    /// Whether it replaces another one in the Secret.
    pub(super) is_due: bool,
}

/// A parsed token Secret.
#[derive(Clone)]
pub(super) struct Token {
    pub(super) metadata: ObjectMeta,
    /// The current token, for new machines.
    pub(super) current: String,
    /// The previous token, for machines that are booting.
    pub(super) previous: String,
    /// Manifests, as YAML.
    pub(super) config: String,
    /// The release's version.
    pub(super) version: String,
    /// The pool, as `<namespace>/<name>`.
    pub(super) pool: String,
    /// Taints of the pool's nodes.
    pub(super) taints: Vec<Value>,
    /// Whether the payload is stored in the Secret, for in-place upgrades.
    pub(super) is_in_place: bool,
    data: BTreeMap<String, ByteString>,
}

/// The Secret is not a valid token.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{problem}")]
pub(super) struct Malformed {
    problem: String,
}

/// The next action for a Secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum TokenAction {
    /// Delete it, because it has expired.
    Delete,
    /// Rotate the token.
    Rotate,
    /// Wait for this duration.
    Wait(Duration),
}

/// Whether a Secret is a token.
pub(super) fn is_token(metadata: &ObjectMeta) -> bool {
    let annotations = metadata.annotations.as_ref();
    annotations.is_some_and(|all| matches!(IGNITION_CONFIG.get(all), Ok(Some(true))))
}

/// Whether a token is of an earlier configuration.
pub(super) fn is_outdated(metadata: &ObjectMeta) -> bool {
    let annotations = metadata.annotations.as_ref();
    annotations.is_some_and(|all| all.contains_key(TOKEN_EXPIRATION.key()))
}

/// Decides the next action.
pub(super) fn next_action(metadata: &ObjectMeta, now: Timestamp) -> TokenAction {
    if is_outdated(metadata) {
        // It is not rotated; it stays valid until it expires. Without a valid time it never would.
        let expires = time(metadata, TOKEN_EXPIRATION.key());
        let left = expires.and_then(|expires| left(expires, now));
        return left.map_or(TokenAction::Delete, TokenAction::Wait);
    }
    let Some(generated) = time(metadata, LAST_TOKEN_GENERATION_TIME.key()) else {
        return TokenAction::Rotate;
    };
    left(generated + ROTATION, now).map_or(TokenAction::Rotate, TokenAction::Wait)
}

fn time(metadata: &ObjectMeta, annotation: &str) -> Option<Timestamp> {
    let annotations = metadata.annotations.as_ref()?;
    annotations.get(annotation)?.parse().ok()
}

fn left(until: Timestamp, now: Timestamp) -> Option<Duration> {
    let left = until.duration_since(now);
    if left.is_zero() {
        return None;
    }
    left.try_into().ok()
}

/// A version 4 UUID of these random bytes.
pub(super) fn uuid(mut bytes: [u8; 16]) -> String {
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let hex = hex::encode(&bytes);
    let parts = [
        &hex[..8],
        &hex[8..12],
        &hex[12..16],
        &hex[16..20],
        &hex[20..],
    ];
    parts.join("-")
}

// === impl Token ===

impl Token {
    /// Reads a Secret.
    pub(super) fn read(secret: Secret) -> Result<Self, Malformed> {
        let data = secret.data.unwrap_or_default();
        let text = |key: &str| text(&data, key);
        let token = text("token")?;
        if token.is_empty() {
            return Err(Malformed::new("key token is empty"));
        }
        let annotations = secret.metadata.annotations.clone().unwrap_or_default();
        let upgrade_type = annotations.get(UPGRADE_TYPE.key());
        Ok(Self {
            previous: text("old_token")?,
            config: config(&data)?,
            version: text("release-version")?,
            pool: annotations
                .get(NODE_POOL.key())
                .cloned()
                .unwrap_or_default(),
            taints: taints(annotations.get(TAINTS.key())),
            is_in_place: upgrade_type.is_some_and(|it| it == "InPlace"),
            metadata: secret.metadata,
            current: token,
            data,
        })
    }

    /// The text under a key; empty if there is none.
    pub(super) fn value(&self, key: &str) -> String {
        text(&self.data, key).unwrap_or_default()
    }

    /// Whether there is a value under a key, also an empty one.
    pub(super) fn has(&self, key: &str) -> bool {
        self.data.contains_key(key)
    }

    /// Whether a machine has fetched the payload.
    pub(super) fn is_reached(metadata: &ObjectMeta) -> bool {
        let annotations = metadata.annotations.as_ref();
        annotations.is_some_and(|all| matches!(IGNITION_REACHED.get(all), Ok(Some(true))))
    }

    /// Returns the patch that reports the result of rendering; `None` if it is already reported.
    pub(super) fn status_patch(
        &self,
        reason: &str,
        message: &str,
        made: Option<Made<'_>>,
    ) -> Option<Value> {
        let mut data = json!({});
        let mut desired = vec![
            (REASON, reason.as_bytes().to_vec()),
            ("message", message.as_bytes().to_vec()),
        ];
        match made {
            Some(made) if self.is_in_place => {
                if made.is_due || !self.has(PAYLOAD) {
                    desired.push((PAYLOAD, compressed(made.payload)));
                }
            }
            // The pool was upgraded in place before.
            Some(_) if self.has(PAYLOAD) => data[PAYLOAD] = Value::Null,
            Some(_) | None => {}
        }
        let release = self.value(RELEASE);
        match made {
            Some(made) if made.is_own && !release.is_empty() => {
                desired.push((OWN, release.into_bytes()));
            }
            Some(made) if !made.is_own && self.has(OWN) => data[OWN] = Value::Null,
            Some(_) | None => {}
        }
        for (key, value) in desired {
            if self.data.get(key).map(|known| &known.0) != Some(&value) {
                data[key] = json!(STANDARD.encode(value));
            }
        }
        if data == json!({}) {
            return None;
        }
        Some(json!({ "metadata": self.precondition(), "data": data }))
    }

    /// Returns the patch that rotates the token. Booting machines can still use the previous one.
    pub(super) fn rotation(&self, fresh: &str, now: Timestamp) -> Value {
        let mut metadata = self.precondition();
        metadata["annotations"] = json!({ LAST_TOKEN_GENERATION_TIME.key(): now.to_string() });
        json!({
            "metadata": metadata,
            "data": {
                "token": STANDARD.encode(fresh),
                "old_token": STANDARD.encode(&self.current),
            },
        })
    }

    /// The precondition of a patch: if another replica has written, the change is decided again.
    fn precondition(&self) -> Value {
        json!({
            "uid": self.metadata.uid,
            "resourceVersion": self.metadata.resource_version,
        })
    }
}

// === impl Malformed ===

impl Malformed {
    fn new(problem: impl Into<String>) -> Self {
        Self {
            problem: problem.into(),
        }
    }
}

fn text(data: &BTreeMap<String, ByteString>, key: &str) -> Result<String, Malformed> {
    let bytes = data.get(key).map_or(&[][..], |value| &value.0);
    let text = std::str::from_utf8(bytes);
    let text = text.map_err(|_| Malformed::new(format!("key {key} is not UTF-8")))?;
    Ok(text.to_owned())
}

/// Reads the manifests: plain, gzipped, or gzipped and base64-encoded.
fn config(data: &BTreeMap<String, ByteString>) -> Result<String, Malformed> {
    let unusable = || Malformed::new("key config is neither text nor gzip");
    let Some(ByteString(bytes)) = data.get("config") else {
        return Ok(String::new());
    };
    let decoded = STANDARD.decode(bytes).unwrap_or_else(|_| bytes.clone());
    if !decoded.starts_with(&GZIP) {
        return String::from_utf8(bytes.clone()).map_err(|_| unusable());
    }
    let mut text = String::new();
    let mut decompressed = GzDecoder::new(&*decoded).take(MAX_CONFIG_SIZE);
    decompressed
        .read_to_string(&mut text)
        .map_err(|_| unusable())?;
    Ok(text)
}

/// Compresses and encodes a payload deterministically.
fn compressed(payload: &[u8]) -> Vec<u8> {
    use std::io::Write as _;
    let mut writer = GzBuilder::new()
        .mtime(0)
        .write(Vec::new(), Compression::best());
    let written = writer.write_all(payload).and_then(|()| writer.finish());
    let bytes = written.expect("invariant: writing to memory cannot fail");
    STANDARD.encode(bytes).into_bytes()
}

fn taints(annotation: Option<&String>) -> Vec<Value> {
    let taints = annotation.and_then(|text| serde_json::from_str(text).ok());
    taints.unwrap_or_default()
}

/// A payload must live for two rotations.
const _: () = assert!(ROTATION.as_secs() * 2 == LIFETIME.as_secs().cast_signed());

#[cfg(test)]
mod tests {
    use super::*;

    fn metadata(annotations: &[(&str, &str)]) -> ObjectMeta {
        let pairs = annotations.iter();
        ObjectMeta {
            name: Some("token-a".to_owned()),
            uid: Some("u".to_owned()),
            resource_version: Some("7".to_owned()),
            annotations: Some(
                pairs
                    .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
                    .collect(),
            ),
            ..ObjectMeta::default()
        }
    }

    fn secret(upgrade_type: &str, data: &[(&str, &[u8])]) -> Secret {
        Secret {
            metadata: metadata(&[
                (UPGRADE_TYPE.key(), upgrade_type),
                (NODE_POOL.key(), "clusters/workers"),
            ]),
            data: Some(
                data.iter()
                    .map(|(key, value)| ((*key).to_owned(), ByteString(value.to_vec())))
                    .collect(),
            ),
            ..Secret::default()
        }
    }

    #[test]
    fn only_annotated_secrets_are_tokens() {
        assert!(is_token(&metadata(&[(IGNITION_CONFIG.key(), "true")])));
        assert!(!is_token(&metadata(&[(IGNITION_CONFIG.key(), "false")])));
        assert!(!is_token(&ObjectMeta::default()));
    }

    #[test]
    fn token_action_depends_on_time() {
        let now: Timestamp = "2030-01-01T12:00:00Z".parse().unwrap();
        let generated = LAST_TOKEN_GENERATION_TIME.key();
        let expires = TOKEN_EXPIRATION.key();
        for (annotations, expected) in [
            (
                vec![(generated, "2030-01-01T11:59:00Z")],
                TokenAction::Wait(Duration::from_mins(329)),
            ),
            (
                vec![(generated, "2030-01-01T06:30:00Z")],
                TokenAction::Rotate,
            ),
            (
                vec![(generated, "2029-01-01T06:30:00Z")],
                TokenAction::Rotate,
            ),
            (vec![(generated, "yesterday")], TokenAction::Rotate),
            (vec![], TokenAction::Rotate),
            // An outdated token is never rotated.
            (
                vec![
                    (generated, "2029-01-01T06:30:00Z"),
                    (expires, "2030-01-01T12:00:10Z"),
                ],
                TokenAction::Wait(Duration::from_secs(10)),
            ),
            (vec![(expires, "2030-01-01T12:00:00Z")], TokenAction::Delete),
            (vec![(expires, "2030-01-01T11:00:00Z")], TokenAction::Delete),
            (
                vec![(generated, "2030-01-01T11:59:00Z"), (expires, "tomorrow")],
                TokenAction::Delete,
            ),
        ] {
            assert_eq!(
                next_action(&metadata(&annotations), now),
                expected,
                "{annotations:?}"
            );
        }
    }

    #[test]
    fn configs_are_read_plain_gzipped_or_encoded() {
        let text = b"kind: MachineConfig\n".as_slice();
        let encoded = compressed(text);
        let gzip = STANDARD.decode(&encoded).unwrap();
        for config in [text, &encoded, &gzip] {
            let token =
                Token::read(secret("Replace", &[("token", b"t"), ("config", config)])).unwrap();
            assert_eq!(token.config.as_bytes(), text);
        }
        let broken = [&GZIP[..], b"x"].concat();
        for data in [
            [("token", b"".as_slice()), ("config", b"")],
            [("token", b"t"), ("config", &broken)],
        ] {
            assert!(Token::read(secret("Replace", &data)).is_err());
        }
    }

    #[test]
    fn status_patch_is_empty_if_unchanged() {
        let made = Some(Made {
            payload: b"{}",
            is_own: false,
            is_due: true,
        });
        let token = |data: &[(&str, &[u8])], kind| {
            let data = [&[("token", b"t".as_slice())], data].concat();
            Token::read(secret(kind, &data)).unwrap()
        };
        let fresh = token(&[], "Replace");
        let change = fresh.status_patch(AS_EXPECTED, "done", made).unwrap();
        assert_eq!(change["metadata"]["resourceVersion"], "7");
        assert_eq!(
            change["data"],
            json!({ "reason": STANDARD.encode(AS_EXPECTED), "message": STANDARD.encode("done") })
        );
        let reported = [("reason", AS_EXPECTED.as_bytes()), ("message", b"done")];
        assert_eq!(
            token(&reported, "Replace").status_patch(AS_EXPECTED, "done", made),
            None
        );
        let in_place = token(&reported, "InPlace")
            .status_patch(AS_EXPECTED, "done", made)
            .unwrap();
        assert_eq!(
            in_place["data"]["payload"],
            json!(STANDARD.encode(compressed(b"{}")))
        );
        let failed = token(&reported, "InPlace")
            .status_patch("InvalidConfig", "no", None)
            .unwrap();
        assert!(failed["data"].get("payload").is_none());
        let other = [&reported[..], &[("payload", b"other".as_slice())]].concat();
        for (name, kind, is_due, data, expected) in [
            (
                "due",
                "InPlace",
                true,
                &other[..],
                Some(json!(STANDARD.encode(compressed(b"{}")))),
            ),
            // Of another server: it is not replaced each time.
            ("not due", "InPlace", false, &other[..], None),
            (
                "not due, but missing",
                "InPlace",
                false,
                &reported[..],
                Some(json!(STANDARD.encode(compressed(b"{}")))),
            ),
            (
                "of a pool that is replaced now",
                "Replace",
                false,
                &other[..],
                Some(Value::Null),
            ),
        ] {
            let made = made.map(|made| Made { is_due, ..made });
            let change = token(data, kind).status_patch(AS_EXPECTED, "done", made);
            let found = change.and_then(|it| it["data"].get("payload").cloned());
            assert_eq!(found, expected, "{name}");
        }
    }

    /// Without a registry, the server knows by this that it may go on.
    #[test]
    fn the_release_of_payloads_without_programs_is_remembered() {
        let release = "images.example.com/release@sha256:0";
        let reported = [("reason", AS_EXPECTED.as_bytes()), ("message", b"done")];
        let known = (OWN, release.as_bytes());
        let other = (OWN, b"images.example.com/release@sha256:1".as_slice());
        for (name, before, is_own, expected) in [
            ("first", None, true, Some(json!(STANDARD.encode(release)))),
            ("known", Some(known), true, None),
            (
                "of another release",
                Some(other),
                true,
                Some(json!(STANDARD.encode(release))),
            ),
            ("made by programs", None, false, None),
            (
                "made by programs now",
                Some(known),
                false,
                Some(Value::Null),
            ),
        ] {
            let data = [("token", b"t".as_slice()), (RELEASE, release.as_bytes())];
            let data: Vec<_> = data.into_iter().chain(reported).chain(before).collect();
            let token = Token::read(secret("Replace", &data)).unwrap();
            let made = Made {
                payload: b"{}",
                is_own,
                is_due: true,
            };
            let change = token.status_patch(AS_EXPECTED, "done", Some(made));
            let found = change.and_then(|it| it["data"].get(OWN).cloned());
            assert_eq!(found, expected, "{name}");
            assert_eq!(
                token.status_patch("InvalidConfig", "no", None).unwrap()["data"].get(OWN),
                None
            );
        }
    }

    #[test]
    fn rotation_keeps_the_previous_token() {
        let token = Token::read(secret("Replace", &[("token", b"first")])).unwrap();
        let now = "2030-01-01T12:00:00Z".parse().unwrap();
        let change = token.rotation("second", now);
        assert_eq!(change["data"]["token"], STANDARD.encode("second"));
        assert_eq!(change["data"]["old_token"], STANDARD.encode("first"));
        assert_eq!(change["metadata"]["uid"], "u");
    }

    #[test]
    fn uuids_have_version_4() {
        assert_eq!(uuid([0xff; 16]), "ffffffff-ffff-4fff-bfff-ffffffffffff");
        assert_eq!(uuid([0; 16]), "00000000-0000-4000-8000-000000000000");
    }
}
