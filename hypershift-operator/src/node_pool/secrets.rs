//! The two Secrets of a configuration: the ignition token, and the user data with the ignition endpoint.

use std::collections::BTreeMap;
use std::io::Write as _;

use api::annotations::node_pool::{
    IGNITION_CONFIG, LAST_TOKEN_GENERATION_TIME, NODE_POOL, TOKEN_EXPIRATION, UPGRADE_TYPE,
};
use api::hypershift::v1beta1::node_pool::UpgradeType;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use flate2::{Compression, GzBuilder};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::api::ObjectMeta;
use serde_json::{Value, json};

use crate::names::node_pool as names;

/// How long machines that have begun to start may still use the token of an older configuration.
const OUTDATED: SignedDuration = SignedDuration::from_hours(2);

/// The inputs of both Secrets.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Inputs<'a> {
    /// The control plane's namespace.
    pub(crate) namespace: &'a str,
    /// The pool's name, and `<namespace>/<name>`.
    pub(crate) pool: &'a str,
    pub(crate) reference: &'a str,
    pub(crate) hash: &'a str,
}

/// The input of the ignition server in the token Secret.
#[derive(Clone, Copy)]
pub(crate) struct Payload<'a> {
    pub(crate) upgrade_type: UpgradeType,
    pub(crate) release_image: &'a str,
    pub(crate) version: &'a str,
    pub(crate) config: &'a str,
    /// Hashes of contents that the payload is rendered with, so that it is not rendered with older ones.
    pub(crate) pull_secret: &'a [u8],
    pub(crate) trust_bundle: Option<&'a str>,
    pub(crate) global: &'a str,
}

/// The inputs of the user data.
#[derive(Clone, Copy)]
pub(crate) struct Stub<'a> {
    /// Host, and port unless it is 443.
    pub(crate) endpoint: &'a str,
    /// The certificate authority of the ignition server, PEM.
    pub(crate) ca: &'a [u8],
    pub(crate) token: &'a [u8],
    pub(crate) proxy: Option<&'a Proxy>,
}

/// The proxy that machines use from their first request on.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Proxy {
    pub(crate) http: String,
    pub(crate) https: String,
    /// Hosts that are reached without it.
    pub(crate) exempt: Vec<String>,
}

/// What to do with a Secret of an older configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Outdated {
    Keep,
    /// It may go at this time: the ignition server removes it then.
    Expire(String),
    Delete,
}

/// The Secret with the token. `token` is the initial value: the ignition server renews it, so it is written once.
pub(crate) fn token(
    inputs: Inputs<'_>,
    payload: Payload<'_>,
    token: &str,
    now: Timestamp,
) -> Secret {
    let mut secret = token_frame(inputs, payload);
    let annotations = secret.metadata.annotations.get_or_insert_default();
    annotations.insert(LAST_TOKEN_GENERATION_TIME.key().to_owned(), now.to_string());
    let data = secret.data.get_or_insert_default();
    data.insert("token".to_owned(), ByteString(token.as_bytes().to_vec()));
    secret
}

/// The same without the fields that the ignition server owns after creation.
pub(crate) fn without_token(mut secret: Secret) -> Secret {
    if let Some(annotations) = &mut secret.metadata.annotations {
        annotations.remove(LAST_TOKEN_GENERATION_TIME.key());
    }
    if let Some(data) = &mut secret.data {
        data.remove("token");
    }
    secret
}

/// The fields that are applied in every reconcile.
pub(crate) fn token_frame(inputs: Inputs<'_>, payload: Payload<'_>) -> Secret {
    let Payload {
        upgrade_type,
        release_image,
        version,
        config,
        pull_secret,
        trust_bundle,
        global,
    } = payload;
    let upgrade_type = match upgrade_type {
        UpgradeType::Replace => "Replace",
        UpgradeType::InPlace => "InPlace",
    };
    let hash = |content: &[u8]| names::hash(content).into_bytes();
    let data = [
        ("release", release_image.as_bytes().to_vec()),
        ("release-version", version.as_bytes().to_vec()),
        ("config", compressed(config)),
        ("pull-secret-hash", hash(pull_secret)),
        (
            "additional-trust-bundle-hash",
            trust_bundle.map_or_else(Vec::new, |it| hash(it.as_bytes())),
        ),
        ("hc-configuration-hash", hash(global.as_bytes())),
    ];
    let mut metadata = metadata(inputs, names::token(inputs.pool, inputs.hash));
    let annotations = metadata.annotations.get_or_insert_default();
    annotations.insert(IGNITION_CONFIG.key().to_owned(), "true".to_owned());
    annotations.insert(UPGRADE_TYPE.key().to_owned(), upgrade_type.to_owned());
    secret(metadata, data)
}

/// The Secret that machines are started with.
pub(crate) fn user_data(inputs: Inputs<'_>, stub: Stub<'_>) -> Secret {
    let data = [
        ("disableTemplating", BASE64.encode("true").into_bytes()),
        ("value", stub.ignition(inputs).to_string().into_bytes()),
    ];
    secret(
        metadata(inputs, names::user_data(inputs.pool, inputs.hash)),
        data,
    )
}

/// What to do with the token of an older configuration.
pub(crate) fn outdated_token(annotations: &BTreeMap<String, String>, now: Timestamp) -> Outdated {
    match annotations
        .get(TOKEN_EXPIRATION.key())
        .map(|it| it.parse::<Timestamp>())
    {
        Some(Ok(time)) if time > now => Outdated::Keep,
        // The controller that removes it does not run.
        Some(Ok(_)) => Outdated::Delete,
        Some(Err(_)) | None => Outdated::Expire((now + OUTDATED).to_string()),
    }
}

/// Gzip and base64, the same bytes for the same text.
pub(crate) fn compressed(text: &str) -> Vec<u8> {
    let mut writer = GzBuilder::new()
        .mtime(0)
        .write(Vec::new(), Compression::best());
    let written = writer
        .write_all(text.as_bytes())
        .and_then(|()| writer.finish());
    let bytes = written.expect("invariant: memory takes what is written to it");
    BASE64.encode(bytes).into_bytes()
}

// === impl Stub ===

impl Stub<'_> {
    fn ignition(&self, inputs: Inputs<'_>) -> Value {
        let Self {
            endpoint,
            ca,
            token,
            proxy,
        } = self;
        let header = |name: &str, value: &str| json!({ "name": name, "value": value });
        let mut ignition = json!({
            "version": "3.2.0",
            "security": { "tls": { "certificateAuthorities": [
                { "source": format!("data:text/plain;base64,{}", BASE64.encode(ca)) },
            ] } },
            "config": { "merge": [{
                "source": format!("https://{endpoint}/ignition"),
                "httpHeaders": [
                    header("Authorization", &format!("Bearer {}", BASE64.encode(token))),
                    header("NodePool", inputs.reference),
                    header("TargetConfigVersionHash", inputs.hash),
                ],
            }] },
        });
        if let Some(proxy) = proxy {
            ignition["proxy"] = proxy.ignition();
        }
        json!({ "ignition": ignition })
    }
}

// === impl Proxy ===

impl Proxy {
    fn ignition(&self) -> Value {
        let mut proxy = json!({});
        let urls = [("httpProxy", &self.http), ("httpsProxy", &self.https)];
        for (name, url) in urls.into_iter().filter(|(_, url)| !url.is_empty()) {
            proxy[name] = json!(url);
        }
        if !self.exempt.is_empty() {
            proxy["noProxy"] = json!(self.exempt);
        }
        proxy
    }
}

fn metadata(inputs: Inputs<'_>, name: String) -> ObjectMeta {
    let pool = NODE_POOL.key().to_owned();
    ObjectMeta {
        namespace: Some(inputs.namespace.to_owned()),
        name: Some(name),
        annotations: Some(BTreeMap::from([(pool, inputs.reference.to_owned())])),
        ..ObjectMeta::default()
    }
}

fn secret<const N: usize>(metadata: ObjectMeta, data: [(&str, Vec<u8>); N]) -> Secret {
    let data = data.map(|(key, value)| (key.to_owned(), ByteString(value)));
    Secret {
        metadata,
        data: Some(BTreeMap::from(data)),
        ..Secret::default()
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;

    const ASK: Inputs<'_> = Inputs {
        namespace: "clusters-dev",
        pool: "workers",
        reference: "clusters/workers",
        hash: "0a1b2c3d",
    };

    fn payload(config: &str) -> Payload<'_> {
        Payload {
            upgrade_type: UpgradeType::Replace,
            release_image: "images.example.com/release:4.22.0",
            version: "4.22.0",
            config,
            pull_secret: b"{}",
            trust_bundle: None,
            global: "",
        }
    }

    fn text(secret: &Secret, key: &str) -> String {
        String::from_utf8(secret.data.as_ref().unwrap()[key].0.clone()).unwrap()
    }

    #[test]
    fn the_token_secret_describes_the_payload() {
        let now: Timestamp = "2026-11-22T00:00:00Z".parse().unwrap();
        let secret = token(ASK, payload("kind: MachineConfig"), "a-token", now);
        assert_eq!(
            secret.metadata.name.as_deref(),
            Some("token-workers-0a1b2c3d")
        );
        assert_eq!(
            text(&secret, "release"),
            "images.example.com/release:4.22.0"
        );
        let config = BASE64.decode(text(&secret, "config")).unwrap();
        let mut read = String::new();
        flate2::read::GzDecoder::new(&*config)
            .read_to_string(&mut read)
            .unwrap();
        assert_eq!(read, "kind: MachineConfig");
        let annotations = secret.metadata.annotations.clone().unwrap();
        assert!(IGNITION_CONFIG.is_true(&annotations));
        assert_eq!(annotations[NODE_POOL.key()], "clusters/workers");
        assert_eq!(annotations[UPGRADE_TYPE.key()], "Replace");
        assert_eq!(
            annotations[LAST_TOKEN_GENERATION_TIME.key()],
            "2026-11-22T00:00:00Z"
        );
        let frame = token_frame(ASK, payload("kind: MachineConfig"));
        assert_eq!(frame, without_token(secret));
        assert!(!frame.data.unwrap().contains_key("token"));
    }

    #[test]
    fn user_data_has_the_ignition_endpoint_and_token() {
        let proxy = Proxy {
            http: "http://proxy.example.com:3128".to_owned(),
            https: String::new(),
            exempt: vec![".example.com".to_owned()],
        };
        let stub = Stub {
            endpoint: "ignition.example.com:31000",
            ca: b"PEM",
            token: b"a-token",
            proxy: Some(&proxy),
        };
        let secret = user_data(ASK, stub);
        assert_eq!(
            secret.metadata.name.as_deref(),
            Some("user-data-workers-0a1b2c3d")
        );
        assert_eq!(text(&secret, "disableTemplating"), "dHJ1ZQ==");
        let value: Value = serde_json::from_str(&text(&secret, "value")).unwrap();
        assert_eq!(
            value,
            json!({ "ignition": {
                "version": "3.2.0",
                "security": { "tls": { "certificateAuthorities": [{ "source": "data:text/plain;base64,UEVN" }] } },
                "config": { "merge": [{
                    "source": "https://ignition.example.com:31000/ignition",
                    "httpHeaders": [
                        { "name": "Authorization", "value": "Bearer YS10b2tlbg==" },
                        { "name": "NodePool", "value": "clusters/workers" },
                        { "name": "TargetConfigVersionHash", "value": "0a1b2c3d" },
                    ],
                }] },
                "proxy": { "httpProxy": "http://proxy.example.com:3128", "noProxy": [".example.com"] },
            } })
        );
    }

    #[test]
    fn outdated_tokens_expire_after_two_hours() {
        let now: Timestamp = "2026-11-22T10:00:00Z".parse().unwrap();
        let at =
            |time: &str| BTreeMap::from([(TOKEN_EXPIRATION.key().to_owned(), time.to_owned())]);
        for (annotations, expected) in [
            (
                BTreeMap::new(),
                Outdated::Expire("2026-11-22T12:00:00Z".to_owned()),
            ),
            (
                at("soon"),
                Outdated::Expire("2026-11-22T12:00:00Z".to_owned()),
            ),
            (at("2026-11-22T11:00:00Z"), Outdated::Keep),
            (at("2026-11-22T09:59:59Z"), Outdated::Delete),
        ] {
            assert_eq!(
                outdated_token(&annotations, now),
                expected,
                "{annotations:?}"
            );
        }
    }

    #[test]
    fn rendering_is_deterministic() {
        assert_eq!(
            compressed("kind: MachineConfig"),
            compressed("kind: MachineConfig")
        );
    }
}
