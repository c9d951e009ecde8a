//! What payloads are made of: read from the namespace of the control plane, and checked against the token.
//!
//! A token says by hashes with which contents its payload is made. While an object has other contents, because it was not
//! updated yet, there is no payload.

use std::collections::BTreeMap;
use std::path::Path;

use api::hypershift::v1beta1::HostedControlPlane;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::Api;
use serde_json::{Value, json};

use control_plane_component::hash::{bytes_hash, data_hash, hash};

use super::super::read::{self, Error};
use super::super::token::Token;
use crate::components::kubeconfig::yaml;

/// The ConfigMap with the configuration of the cluster; each key is a file.
const FILES: &str = "machine-config-server";
/// Its key with the hash of the configuration.
const HASH: &str = "configuration-hash";
/// Its key with the authorities of the user.
const AUTHORITIES: &str = "user-ca-bundle-config.yaml";
/// The ConfigMap with the authorities of the cluster.
const BUNDLE: &str = "user-ca-bundle";
/// The ConfigMap with these and those of the proxy.
const ALL_AUTHORITIES: &str = "trusted-ca-bundle-managed";
/// The key of ConfigMaps with authorities.
const BUNDLE_KEY: &str = "ca-bundle.crt";
/// Key of a token with the operating system stream.
pub(super) const OS_STREAM: &str = "os-stream";

type Data = BTreeMap<String, String>;

/// What was read.
#[derive(Debug, Clone, Default)]
pub(super) struct Objects {
    pub(super) pull_secret: Vec<u8>,
    /// The authorities of the cluster, without those of its proxy.
    pub(super) trust_bundle: String,
    pub(super) bootstrap_kubeconfig: Vec<u8>,
    /// The data of the ConfigMap with files.
    pub(super) files: Data,
    /// All authorities, if their ConfigMap exists.
    pub(super) authorities: Option<String>,
    /// Name and data of the cloud provider's ConfigMap, where nodes need it.
    pub(super) cloud_config: Option<(&'static str, Data)>,
}

/// The hashes of a token. An empty one is not checked.
#[derive(Debug, Clone, Default)]
pub(super) struct Expected {
    pub(super) pull_secret: String,
    pub(super) trust_bundle: String,
    pub(super) configuration: String,
    pub(super) cloud_config: String,
}

/// An object and the token, or two objects, are not of the same time.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum Outdated {
    #[error(
        "waiting until the pull secret of the control plane is the one of the token (hash {0})"
    )]
    PullSecret(String),
    #[error("waiting until ConfigMap {BUNDLE} is the one of the token (hash {0})")]
    TrustBundle(String),
    #[error(
        "waiting until ConfigMap {FILES} has the configuration of the token (hash {expected}, and not {found:?})"
    )]
    Configuration { expected: String, found: String },
    #[error("waiting until ConfigMap {ALL_AUTHORITIES} has the authorities of ConfigMap {BUNDLE}")]
    AllAuthorities,
    #[error("waiting until ConfigMap {FILES} has the authorities of ConfigMap {ALL_AUTHORITIES}")]
    Authorities,
    #[error("waiting until the cloud provider's ConfigMap is the one of the token (hash {0})")]
    CloudConfig(String),
    #[error("ConfigMap {FILES}: the key {0:?} is not the name of a file")]
    Name(String),
}

// === impl Objects ===

impl Objects {
    pub(super) async fn read(
        client: &kube::Client,
        namespace: &str,
        hcp: &HostedControlPlane,
        pull_secret: Vec<u8>,
    ) -> Result<Self, Error> {
        let secrets: Api<Secret> = Api::namespaced(client.clone(), namespace);
        let maps: Api<ConfigMap> = Api::namespaced(client.clone(), namespace);
        let bundle = optional(&maps, BUNDLE).await?;
        let authorities = optional(&maps, ALL_AUTHORITIES).await?;
        let authorities = authorities.map(|mut data| data.remove(BUNDLE_KEY).unwrap_or_default());
        let files = read::get(&maps, format!("ConfigMap {FILES}"), FILES).await?;
        let cloud_config = match hcp.spec.platform.type_.cloud_config_map() {
            Some(name) => {
                let found = read::get(&maps, format!("ConfigMap {name}"), name).await?;
                Some((name, found.data.unwrap_or_default()))
            }
            None => None,
        };
        Ok(Self {
            pull_secret,
            trust_bundle: bundle
                .and_then(|mut data| data.remove(BUNDLE_KEY))
                .unwrap_or_default(),
            bootstrap_kubeconfig: read::secret(&secrets, "bootstrap-kubeconfig", "kubeconfig")
                .await?,
            files: files.data.unwrap_or_default(),
            authorities,
            cloud_config,
        })
    }

    /// The cloud provider's ConfigMap as a file.
    pub(super) fn cloud_config(&self, namespace: &str) -> Option<String> {
        let (name, data) = self.cloud_config.as_ref()?;
        Some(yaml(&json!({
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": { "name": name, "namespace": namespace },
            "data": data,
        })))
    }

    /// Compares with the hashes of the token.
    pub(super) fn check(&self, expected: &Expected) -> Result<(), Outdated> {
        let is_other = |hash: &str, found: &str| !hash.is_empty() && hash != found;
        // Earlier versions of the NodePool controller took the hash of the text.
        let text = hash(&self.pull_secret);
        if is_other(&expected.pull_secret, &bytes_hash(&self.pull_secret))
            && expected.pull_secret != text
        {
            return Err(Outdated::PullSecret(expected.pull_secret.clone()));
        }
        if is_other(&expected.trust_bundle, &hash(self.trust_bundle.as_bytes())) {
            return Err(Outdated::TrustBundle(expected.trust_bundle.clone()));
        }
        let found = self.files.get(HASH).cloned().unwrap_or_default();
        if is_other(&expected.configuration, &found) {
            let expected = expected.configuration.clone();
            return Err(Outdated::Configuration { expected, found });
        }
        self.check_files()?;
        let config = self.cloud_config.as_ref();
        let config = config.map(|(_, data)| data_hash(data));
        if is_other(&expected.cloud_config, &config.unwrap_or_default()) {
            return Err(Outdated::CloudConfig(expected.cloud_config.clone()));
        }
        Ok(())
    }

    fn check_files(&self) -> Result<(), Outdated> {
        let is_plain = |name: &str| {
            !name.contains('/') && payload::extract::below(Path::new(""), name).is_some()
        };
        if let Some(name) = self.files.keys().find(|name| !is_plain(name)) {
            return Err(Outdated::Name(name.clone()));
        }
        let Some(authorities) = &self.authorities else {
            return Ok(());
        };
        // The ConfigMap and the file are equal before the control plane has seen the authorities of the token, too.
        let authorities = words(authorities);
        if !authorities.contains(&words(&self.trust_bundle)) {
            return Err(Outdated::AllAuthorities);
        }
        let map = self.files.get(AUTHORITIES).map_or("", String::as_str);
        let map: Value = serde_saphyr::from_str(map).unwrap_or_default();
        let written = map["data"][BUNDLE_KEY].as_str().unwrap_or_default();
        // YAML does not keep all line breaks, and a bundle without certificates is left out.
        if words(written) == authorities {
            return Ok(());
        }
        Err(Outdated::Authorities)
    }
}

/// A text in which line breaks and other spaces are all the same.
fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

// === impl Expected ===

impl Expected {
    pub(super) fn of(token: &Token) -> Self {
        // Earlier versions of the NodePool controller, which did not write this key, took the hash of fewer fields. Pools
        // that are paused keep their tokens.
        let configuration = if token.has(OS_STREAM) {
            token.value("hc-configuration-hash")
        } else {
            String::new()
        };
        Self {
            pull_secret: token.value("pull-secret-hash"),
            trust_bundle: token.value("additional-trust-bundle-hash"),
            configuration,
            cloud_config: token.value("cloud-config-hash"),
        }
    }
}

async fn optional(api: &Api<ConfigMap>, name: &str) -> Result<Option<Data>, Error> {
    match read::get(api, format!("ConfigMap {name}"), name).await {
        Ok(found) => Ok(Some(found.data.unwrap_or_default())),
        Err(Error::Missing { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::ByteString;
    use support::testing::{Answer, Expect, Scenario};

    use super::*;

    const NAMESPACE: &str = "clusters-one";

    fn objects() -> Objects {
        let authorities =
            json!({ "kind": "ConfigMap", "data": { BUNDLE_KEY: "COMPANY\nPROXY\n" } });
        Objects {
            pull_secret: b"{}".to_vec(),
            trust_bundle: "COMPANY\n".to_owned(),
            bootstrap_kubeconfig: b"kind: Config\n".to_vec(),
            files: Data::from([
                (HASH.to_owned(), "0a1b2c3d".to_owned()),
                (AUTHORITIES.to_owned(), yaml(&authorities)),
            ]),
            authorities: Some("COMPANY\nPROXY\n".to_owned()),
            cloud_config: Some((
                "azure-cloud-config",
                Data::from([("cloud.conf".to_owned(), "{}".to_owned())]),
            )),
        }
    }

    fn expected() -> Expected {
        Expected {
            pull_secret: hash(b"[123 125]"),
            trust_bundle: hash(b"COMPANY\n"),
            configuration: "0a1b2c3d".to_owned(),
            cloud_config: hash(b"cloud.conf\0{}\0"),
        }
    }

    #[test]
    fn hashes_have_the_known_values() {
        assert_eq!(hash(b""), "811c9dc5");
        assert_eq!(hash(b"foobar"), "bf9cf968");
        assert_eq!(bytes_hash(&[1, 2, 3]), hash(b"[1 2 3]"));
        assert_eq!(bytes_hash(&[]), hash(b"[]"));
        assert_eq!(data_hash(&Data::new()), "");
    }

    /// Objects of a control plane on a platform.
    async fn read(platform: &str) -> Result<Objects, Error> {
        let hcp: HostedControlPlane = serde_json::from_value(json!({
            "metadata": { "name": "one", "namespace": NAMESPACE },
            "spec": {
                "releaseImage": "images.example.com/release:4.22.0",
                "infraID": "one-x", "issuerURL": "https://kubernetes.default.svc",
                "platform": { "type": platform },
                "dns": { "baseDomain": "example.com" },
                "services": [], "etcd": { "managementType": "Managed" },
                "pullSecret": { "name": "pull-secret" }, "sshKey": { "name": "" },
            },
        }))
        .unwrap();
        let map = |name: &str, data: Value| {
            let path = format!("/api/v1/namespaces/{NAMESPACE}/configmaps/{name}");
            let map = json!({ "metadata": { "name": name, "namespace": NAMESPACE }, "data": data });
            Expect::get(&path).answer(Answer::ok(&map))
        };
        let config = |text: &str| json!({ "cloud.conf": text });
        let secret = json!({ "metadata": {}, "data": { "kubeconfig": "e30=" } });
        let path = format!("/api/v1/namespaces/{NAMESPACE}/secrets/bootstrap-kubeconfig");
        let scenario = Scenario::new([]).always([
            map(BUNDLE, json!({})),
            map(ALL_AUTHORITIES, json!({})),
            map(FILES, json!({})),
            map("azure-cloud-config", config("{}")),
            map("openstack-cloud-config", config("[Global]\n")),
            Expect::get(&path).answer(Answer::ok(&secret)),
        ]);
        let read = Objects::read(&scenario.client(), NAMESPACE, &hcp, Vec::new()).await;
        scenario.finish();
        read
    }

    #[tokio::test]
    async fn payloads_include_the_cloud_config_of_the_platform() {
        for (platform, expected) in [
            ("Azure", Some(("azure-cloud-config", "{}"))),
            ("OpenStack", Some(("openstack-cloud-config", "[Global]\n"))),
            ("AWS", None),
            ("KubeVirt", None),
        ] {
            let objects = read(platform).await.unwrap();
            let file = objects.cloud_config(NAMESPACE);
            let file = file.map(|it| serde_saphyr::from_str::<Value>(&it).unwrap());
            let expected_file = expected.map(|(name, text)| {
                json!({
                    "apiVersion": "v1",
                    "kind": "ConfigMap",
                    "metadata": { "name": name, "namespace": NAMESPACE },
                    "data": { "cloud.conf": text },
                })
            });
            assert_eq!(file, expected_file, "{platform}");
            let hash = expected.map(|(_, text)| hash(format!("cloud.conf\0{text}\0").as_bytes()));
            let found = |cloud_config: String| {
                objects.check(&Expected {
                    cloud_config,
                    ..Expected::default()
                })
            };
            assert_eq!(found(hash.unwrap_or_default()), Ok(()), "{platform}");
            let other = "ffffffff".to_owned();
            let outdated = Err(Outdated::CloudConfig(other.clone()));
            assert_eq!(found(other), outdated, "{platform}");
        }
    }

    #[test]
    fn tokens_of_earlier_versions_have_no_hash_of_the_configuration() {
        for (stream, expected) in [
            (None, ""),
            (Some(""), "0a1b2c3d"),
            (Some("rhel-9"), "0a1b2c3d"),
        ] {
            let stream = stream.map(|stream| (OS_STREAM, stream));
            let data = [("token", "t"), ("hc-configuration-hash", "0a1b2c3d")];
            let data = data.into_iter().chain(stream);
            let secret = Secret {
                data: Some(
                    data.map(|(key, text)| (key.to_owned(), ByteString(text.into())))
                        .collect(),
                ),
                ..Secret::default()
            };
            let token = Token::read(secret).unwrap();
            assert_eq!(Expected::of(&token).configuration, expected, "{stream:?}");
        }
    }

    #[test]
    fn objects_are_used_only_if_they_are_those_of_the_token() {
        type Change = fn(&mut Objects, &mut Expected);
        let other = || "ffffffff".to_owned();
        let table: [(&str, Change, Result<(), Outdated>); 15] = [
            ("all as expected", |_, _| {}, Ok(())),
            (
                "nothing expected",
                |_, it| *it = Expected::default(),
                Ok(()),
            ),
            (
                "pull secret, hashed by an earlier version",
                |_, it| it.pull_secret = hash(b"{}"),
                Ok(()),
            ),
            (
                "pull secret",
                |_, it| it.pull_secret = "ffffffff".to_owned(),
                Err(Outdated::PullSecret(other())),
            ),
            (
                "trust bundle",
                |_, it| it.trust_bundle = "ffffffff".to_owned(),
                Err(Outdated::TrustBundle(other())),
            ),
            (
                "configuration",
                |_, it| it.configuration = "ffffffff".to_owned(),
                Err(Outdated::Configuration {
                    expected: other(),
                    found: "0a1b2c3d".to_owned(),
                }),
            ),
            (
                "cloud configuration",
                |_, it| it.cloud_config = "ffffffff".to_owned(),
                Err(Outdated::CloudConfig(other())),
            ),
            (
                "authorities changed",
                |it, _| it.authorities = Some("COMPANY\n".to_owned()),
                Err(Outdated::Authorities),
            ),
            (
                "authorities with other line breaks",
                |it, _| it.authorities = Some("COMPANY\r\nPROXY\r\n".to_owned()),
                Ok(()),
            ),
            (
                "authorities that the control plane has not seen",
                |it, expected| {
                    it.trust_bundle = "OTHER\n".to_owned();
                    expected.trust_bundle = hash(b"OTHER\n");
                },
                Err(Outdated::AllAuthorities),
            ),
            (
                "authorities of the user with other line breaks",
                |it, expected| {
                    it.trust_bundle = "\nCOMPANY\r\nPROXY\n".to_owned();
                    expected.trust_bundle = String::new();
                },
                Ok(()),
            ),
            (
                "authorities removed from the files",
                |it, _| {
                    it.files.remove(AUTHORITIES);
                },
                Err(Outdated::Authorities),
            ),
            (
                "no authorities at all",
                |it, expected| {
                    it.files.remove(AUTHORITIES);
                    it.authorities = Some(String::new());
                    it.trust_bundle = String::new();
                    expected.trust_bundle = String::new();
                },
                Ok(()),
            ),
            (
                "authorities without a ConfigMap",
                |it, _| it.authorities = None,
                Ok(()),
            ),
            (
                "a key that is a path",
                |it, _| {
                    it.files.insert("..".to_owned(), String::new());
                },
                Err(Outdated::Name("..".to_owned())),
            ),
        ];
        for (name, change, result) in table {
            let (mut objects, mut expected) = (objects(), expected());
            change(&mut objects, &mut expected);
            assert_eq!(objects.check(&expected), result, "{name}");
        }
    }
}
