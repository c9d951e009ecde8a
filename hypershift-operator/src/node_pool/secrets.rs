//! The two Secrets of a configuration: the ignition token, and the user data with the ignition endpoint.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};

use api::annotations::node_pool::{
    CONFIG_INPUTS, IGNITION_CONFIG, IGNITION_REACHED, LAST_TOKEN_GENERATION_TIME, NODE_POOL,
    TAINTS, TOKEN_EXPIRATION, UPGRADE_TYPE,
};
use api::hypershift::v1beta1::node_pool::UpgradeType;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use flate2::read::GzDecoder;
use flate2::{Compression, GzBuilder};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::api::ObjectMeta;
use serde_json::{Value, json};

use super::token_fields::{Fields, Form, Reached};
use crate::names::node_pool as names;

/// How long machines that have begun to start may still use the token of an older configuration.
const OUTDATED: SignedDuration = SignedDuration::from_hours(2);
/// The first bytes of gzip.
const GZIP: [u8; 2] = [0x1f, 0x8b];
/// The largest configuration that is read back.
const LARGEST_CONFIG: u64 = 16 << 20;

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
    /// Identifies what the hash covers besides.
    pub(crate) inputs: &'a str,
    pub(crate) fields: &'a Fields,
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
    if payload.fields.reached == Reached::Assumed {
        annotations.insert(IGNITION_REACHED.key().to_owned(), "True".to_owned());
    }
    let data = secret.data.get_or_insert_default();
    data.insert("token".to_owned(), ByteString(token.as_bytes().to_vec()));
    secret
}

/// The same without the fields that the ignition server owns after creation.
pub(crate) fn without_token(mut secret: Secret) -> Secret {
    if let Some(annotations) = &mut secret.metadata.annotations {
        annotations.remove(LAST_TOKEN_GENERATION_TIME.key());
        annotations.remove(IGNITION_REACHED.key());
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
        inputs: settings,
        fields,
    } = payload;
    let Fields {
        form,
        reached: _,
        pull_secret,
        trust_bundle,
        configuration,
        cloud_config,
        os_stream,
        taints,
    } = fields;
    let upgrade_type = match upgrade_type {
        UpgradeType::Replace => "Replace",
        UpgradeType::InPlace => "InPlace",
    };
    let config = match form {
        Form::Encoded => compressed(config),
        Form::Compressed => gzip(config),
    };
    let text = |text: &str| text.as_bytes().to_vec();
    let data = [
        ("release", text(release_image)),
        ("release-version", text(version)),
        ("config", config),
        ("pull-secret-hash", text(pull_secret)),
        ("additional-trust-bundle-hash", text(trust_bundle)),
        ("hc-configuration-hash", text(configuration)),
        ("cloud-config-hash", text(cloud_config)),
        ("os-stream", text(os_stream)),
    ];
    let mut metadata = metadata(inputs, names::token(inputs.pool, inputs.hash));
    let annotations = metadata.annotations.get_or_insert_default();
    annotations.insert(IGNITION_CONFIG.key().to_owned(), "true".to_owned());
    annotations.insert(UPGRADE_TYPE.key().to_owned(), upgrade_type.to_owned());
    annotations.insert(CONFIG_INPUTS.key().to_owned(), settings.to_owned());
    if !taints.is_empty() {
        annotations.insert(TAINTS.key().to_owned(), taints.clone());
    }
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
    BASE64.encode(gzip(text)).into_bytes()
}

fn gzip(text: &str) -> Vec<u8> {
    let mut writer = GzBuilder::new()
        .mtime(0)
        .write(Vec::new(), Compression::best());
    let written = writer
        .write_all(text.as_bytes())
        .and_then(|()| writer.finish());
    written.expect("invariant: memory takes what is written to it")
}

/// The text under a key.
pub(crate) fn text(secret: &Secret, key: &str) -> Option<String> {
    let value = secret.data.as_ref()?.get(key)?;
    String::from_utf8(value.0.clone()).ok()
}

/// The configuration in a token Secret, in each form that an operator has written: compressed and encoded, compressed
/// only, or as it is.
pub(crate) fn config(secret: &Secret) -> Option<String> {
    let bytes = &secret.data.as_ref()?.get("config")?.0;
    if bytes.starts_with(&GZIP) {
        return decompressed(bytes);
    }
    match BASE64.decode(bytes) {
        Ok(inner) if inner.starts_with(&GZIP) => decompressed(&inner),
        Ok(_) | Err(_) => text(secret, "config"),
    }
}

/// The form of the configuration in a token Secret, if it is one that this operator writes.
pub(crate) fn form(secret: &Secret) -> Option<Form> {
    let bytes = &secret.data.as_ref()?.get("config")?.0;
    if bytes.starts_with(&GZIP) {
        return Some(Form::Compressed);
    }
    let inner = BASE64.decode(bytes).ok()?;
    inner.starts_with(&GZIP).then_some(Form::Encoded)
}

fn decompressed(bytes: &[u8]) -> Option<String> {
    let mut text = String::new();
    let mut reader = GzDecoder::new(bytes).take(LARGEST_CONFIG);
    reader.read_to_string(&mut text).ok()?;
    Some(text)
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
    use super::*;

    const ASK: Inputs<'_> = Inputs {
        namespace: "clusters-dev",
        pool: "workers",
        reference: "clusters/workers",
        hash: "0a1b2c3d",
    };

    fn fields(form: Form, reached: Reached) -> Fields {
        Fields {
            form,
            reached,
            pull_secret: "829b997b".to_owned(),
            trust_bundle: String::new(),
            configuration: "77074ba4".to_owned(),
            cloud_config: "bf9cf968".to_owned(),
            os_stream: "rhel-9",
            taints: String::new(),
        }
    }

    fn payload<'a>(config: &'a str, fields: &'a Fields) -> Payload<'a> {
        Payload {
            upgrade_type: UpgradeType::Replace,
            release_image: "images.example.com/release:4.22.0",
            version: "4.22.0",
            config,
            inputs: "4d5e6f70",
            fields,
        }
    }

    fn text(secret: &Secret, key: &str) -> String {
        super::text(secret, key).unwrap()
    }

    #[test]
    fn configurations_are_read_in_every_form() {
        let encoded = compressed("kind: MachineConfig");
        let gzip = BASE64.decode(&encoded).unwrap();
        let broken = gzip[..gzip.len() - 9].to_vec();
        for (name, bytes, expected) in [
            (
                "compressed and encoded",
                encoded,
                Some("kind: MachineConfig"),
            ),
            ("compressed", gzip, Some("kind: MachineConfig")),
            (
                "plain",
                b"kind: KubeletConfig".to_vec(),
                Some("kind: KubeletConfig"),
            ),
            ("truncated", broken, None),
            ("no text", vec![0xff, 0xfe], None),
        ] {
            let data = [("config".to_owned(), ByteString(bytes))];
            let secret = Secret {
                data: Some(data.into()),
                ..Secret::default()
            };
            assert_eq!(config(&secret).as_deref(), expected, "{name}");
        }
        assert_eq!(config(&Secret::default()), None);
        assert_eq!(form(&Secret::default()), None);
    }

    #[test]
    fn the_token_secret_describes_the_payload() {
        let now: Timestamp = "2026-11-22T00:00:00Z".parse().unwrap();
        let fields = fields(Form::Encoded, Reached::Reported);
        let payload = payload("kind: MachineConfig", &fields);
        let secret = token(ASK, payload, "a-token", now);
        assert_eq!(
            secret.metadata.name.as_deref(),
            Some("token-workers-0a1b2c3d")
        );
        assert_eq!(
            text(&secret, "release"),
            "images.example.com/release:4.22.0"
        );
        assert_eq!(config(&secret).as_deref(), Some("kind: MachineConfig"));
        let annotations = secret.metadata.annotations.clone().unwrap();
        assert_eq!(annotations[CONFIG_INPUTS.key()], "4d5e6f70");
        assert!(IGNITION_CONFIG.is_true(&annotations));
        assert_eq!(annotations[NODE_POOL.key()], "clusters/workers");
        assert_eq!(annotations[UPGRADE_TYPE.key()], "Replace");
        assert_eq!(
            annotations[LAST_TOKEN_GENERATION_TIME.key()],
            "2026-11-22T00:00:00Z"
        );
        for (key, expected) in [
            ("release-version", "4.22.0"),
            ("pull-secret-hash", "829b997b"),
            ("additional-trust-bundle-hash", ""),
            ("hc-configuration-hash", "77074ba4"),
            ("cloud-config-hash", "bf9cf968"),
            ("os-stream", "rhel-9"),
        ] {
            assert_eq!(text(&secret, key), expected, "{key}");
        }
        assert!(!annotations.contains_key(IGNITION_REACHED.key()));
        let frame = token_frame(ASK, payload);
        assert_eq!(frame, without_token(secret));
        assert!(!frame.data.unwrap().contains_key("token"));
    }

    #[test]
    fn the_token_secret_has_the_taints_of_new_nodes() {
        for taints in ["", r#"[{"effect":"NoSchedule","key":"gpu","value":""}]"#] {
            let fields = Fields {
                taints: taints.to_owned(),
                ..fields(Form::Encoded, Reached::Reported)
            };
            let frame = token_frame(ASK, payload("kind: MachineConfig", &fields));
            let annotations = frame.metadata.annotations.unwrap();
            let found = annotations.get(TAINTS.key()).map(String::as_str);
            assert_eq!(found, Some(taints).filter(|it| !it.is_empty()));
        }
    }

    #[test]
    fn the_token_secret_follows_the_control_plane() {
        let now: Timestamp = "2026-11-22T00:00:00Z".parse().unwrap();
        for (form, is_text) in [(Form::Encoded, true), (Form::Compressed, false)] {
            let fields = fields(form, Reached::Assumed);
            let secret = token(ASK, payload("kind: MachineConfig", &fields), "a", now);
            assert_eq!(config(&secret).as_deref(), Some("kind: MachineConfig"));
            assert_eq!(super::form(&secret), Some(form));
            let bytes = &secret.data.as_ref().unwrap()["config"].0;
            assert_eq!(std::str::from_utf8(bytes).is_ok(), is_text, "{form:?}");
            let annotations = secret.metadata.annotations.clone().unwrap();
            assert!(IGNITION_REACHED.is_true(&annotations));
            // Afterwards it is the ignition server's.
            let kept = without_token(secret).metadata.annotations.unwrap();
            assert!(!kept.contains_key(IGNITION_REACHED.key()));
        }
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
