//! The Secret of a token: what it says, and what is to be done with it. Pure.

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

/// Half of a payload's life: then there is a new token, and the old one is good for the other half.
const ROTATION: SignedDuration =
    SignedDuration::from_hours(5).saturating_add(SignedDuration::from_mins(30));
/// Nothing of a pool is longer, when it is unpacked.
const LONGEST: u64 = 16 << 20;
/// How a gzip stream begins.
const GZIP: [u8; 2] = [0x1f, 0x8b];
/// The reason of a payload that could be made.
pub(super) const AS_EXPECTED: &str = "AsExpected";

/// What a Secret says.
#[derive(Clone)]
pub(super) struct Token {
    pub(super) metadata: ObjectMeta,
    /// The token that new machines are given.
    pub(super) current: String,
    /// The one that machines know that are starting.
    pub(super) before: String,
    /// Manifests, as YAML.
    pub(super) config: String,
    /// The release's version.
    pub(super) version: String,
    /// The pool, as `<namespace>/<name>`.
    pub(super) pool: String,
    /// Taints of the pool's nodes.
    pub(super) taints: Vec<Value>,
    /// Whether the payload itself is wanted in the Secret.
    pub(super) is_in_place: bool,
    data: BTreeMap<String, ByteString>,
}

/// A Secret that says it is a token's and is none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{problem}")]
pub(super) struct Malformed {
    problem: String,
}

/// The next step for a Secret, whatever its configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Duty {
    /// Its time is over.
    Delete,
    /// It is old enough for a new token.
    Rotate,
    /// Nothing, for so long.
    Wait(Duration),
}

/// Whether a Secret is a token's.
pub(super) fn is_token(metadata: &ObjectMeta) -> bool {
    let annotations = metadata.annotations.as_ref();
    annotations.is_some_and(|all| matches!(IGNITION_CONFIG.get(all), Ok(Some(true))))
}

/// What time demands.
pub(super) fn duty(metadata: &ObjectMeta, now: Timestamp) -> Duty {
    if let Some(expires) = time(metadata, TOKEN_EXPIRATION.key()) {
        // It expires: machines that know it may still use it, and it needs no successor.
        return left(expires, now).map_or(Duty::Delete, Duty::Wait);
    }
    let Some(generated) = time(metadata, LAST_TOKEN_GENERATION_TIME.key()) else {
        return Duty::Rotate;
    };
    left(generated + ROTATION, now).map_or(Duty::Rotate, Duty::Wait)
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
    let hex: Vec<_> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let hex = hex.concat();
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
            return Err(Malformed::new("there is no token in it"));
        }
        let annotations = secret.metadata.annotations.clone().unwrap_or_default();
        let upgrade_type = annotations.get(UPGRADE_TYPE.key());
        Ok(Self {
            before: text("old_token")?,
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

    /// Whether a machine has come with it.
    pub(super) fn is_reached(metadata: &ObjectMeta) -> bool {
        let annotations = metadata.annotations.as_ref();
        annotations.is_some_and(|all| matches!(IGNITION_REACHED.get(all), Ok(Some(true))))
    }

    /// The patch that reports how rendering went; none if it is reported already.
    pub(super) fn verdict(
        &self,
        reason: &str,
        message: &str,
        payload: Option<&[u8]>,
    ) -> Option<Value> {
        let mut data = json!({});
        let mut wanted = vec![
            ("reason", reason.as_bytes().to_vec()),
            ("message", message.as_bytes().to_vec()),
        ];
        if let Some(payload) = payload.filter(|_| self.is_in_place) {
            wanted.push(("payload", packed(payload)));
        }
        for (key, value) in wanted {
            if self.data.get(key).map(|known| &known.0) != Some(&value) {
                data[key] = json!(STANDARD.encode(value));
            }
        }
        if data == json!({}) {
            return None;
        }
        Some(json!({ "metadata": self.precondition(), "data": data }))
    }

    /// The change that brings a new token. Machines that are starting know the one before.
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

    /// Another replica may have written: then the change is decided again.
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
    let text = text.map_err(|_| Malformed::new(format!("its key {key} is no text")))?;
    Ok(text.to_owned())
}

/// The manifests: as they are, packed, or packed and encoded.
fn config(data: &BTreeMap<String, ByteString>) -> Result<String, Malformed> {
    let unusable = || Malformed::new("its key config is no text, packed or not");
    let Some(ByteString(bytes)) = data.get("config") else {
        return Ok(String::new());
    };
    let decoded = STANDARD.decode(bytes).unwrap_or_else(|_| bytes.clone());
    if !decoded.starts_with(&GZIP) {
        return String::from_utf8(bytes.clone()).map_err(|_| unusable());
    }
    let mut text = String::new();
    let mut unpacked = GzDecoder::new(&*decoded).take(LONGEST);
    unpacked.read_to_string(&mut text).map_err(|_| unusable())?;
    Ok(text)
}

/// Packed and encoded; the same bytes for the same payload.
fn packed(payload: &[u8]) -> Vec<u8> {
    use std::io::Write as _;
    let mut writer = GzBuilder::new()
        .mtime(0)
        .write(Vec::new(), Compression::best());
    let written = writer.write_all(payload).and_then(|()| writer.finish());
    let bytes = written.expect("invariant: memory takes what is written to it");
    STANDARD.encode(bytes).into_bytes()
}

fn taints(annotation: Option<&String>) -> Vec<Value> {
    let taints = annotation.and_then(|text| serde_json::from_str(text).ok());
    taints.unwrap_or_default()
}

/// A payload outlives the token that it was made for by half.
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
    fn time_decides_what_is_due() {
        let now: Timestamp = "2030-01-01T12:00:00Z".parse().unwrap();
        let generated = LAST_TOKEN_GENERATION_TIME.key();
        let expires = TOKEN_EXPIRATION.key();
        for (annotations, expected) in [
            (
                vec![(generated, "2030-01-01T11:59:00Z")],
                Duty::Wait(Duration::from_mins(329)),
            ),
            (vec![(generated, "2030-01-01T06:30:00Z")], Duty::Rotate),
            (vec![(generated, "2029-01-01T06:30:00Z")], Duty::Rotate),
            (vec![(generated, "yesterday")], Duty::Rotate),
            (vec![], Duty::Rotate),
            // An outdated token is never renewed.
            (
                vec![
                    (generated, "2029-01-01T06:30:00Z"),
                    (expires, "2030-01-01T12:00:10Z"),
                ],
                Duty::Wait(Duration::from_secs(10)),
            ),
            (vec![(expires, "2030-01-01T12:00:00Z")], Duty::Delete),
            (vec![(expires, "2030-01-01T11:00:00Z")], Duty::Delete),
        ] {
            assert_eq!(
                duty(&metadata(&annotations), now),
                expected,
                "{annotations:?}"
            );
        }
    }

    #[test]
    fn configurations_are_read_however_they_are_packed() {
        let text = b"kind: MachineConfig\n".as_slice();
        let encoded = packed(text);
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
    fn a_verdict_is_written_once() {
        let token = |data: &[(&str, &[u8])], kind| {
            let data = [&[("token", b"t".as_slice())], data].concat();
            Token::read(secret(kind, &data)).unwrap()
        };
        let fresh = token(&[], "Replace");
        let change = fresh.verdict(AS_EXPECTED, "done", Some(b"{}")).unwrap();
        assert_eq!(change["metadata"]["resourceVersion"], "7");
        assert_eq!(
            change["data"],
            json!({ "reason": STANDARD.encode(AS_EXPECTED), "message": STANDARD.encode("done") })
        );
        let told = [("reason", AS_EXPECTED.as_bytes()), ("message", b"done")];
        assert_eq!(
            token(&told, "Replace").verdict(AS_EXPECTED, "done", Some(b"{}")),
            None
        );
        let in_place = token(&told, "InPlace")
            .verdict(AS_EXPECTED, "done", Some(b"{}"))
            .unwrap();
        assert_eq!(
            in_place["data"]["payload"],
            json!(STANDARD.encode(packed(b"{}")))
        );
        let failed = token(&told, "InPlace")
            .verdict("InvalidConfig", "no", None)
            .unwrap();
        assert!(failed["data"].get("payload").is_none());
    }

    #[test]
    fn a_rotation_keeps_the_token_before() {
        let token = Token::read(secret("Replace", &[("token", b"first")])).unwrap();
        let now = "2030-01-01T12:00:00Z".parse().unwrap();
        let change = token.rotation("second", now);
        assert_eq!(change["data"]["token"], STANDARD.encode("second"));
        assert_eq!(change["data"]["old_token"], STANDARD.encode("first"));
        assert_eq!(change["metadata"]["uid"], "u");
    }

    #[test]
    fn uuids_have_their_form() {
        assert_eq!(uuid([0xff; 16]), "ffffffff-ffff-4fff-bfff-ffffffffffff");
        assert_eq!(uuid([0; 16]), "00000000-0000-4000-8000-000000000000");
    }
}
