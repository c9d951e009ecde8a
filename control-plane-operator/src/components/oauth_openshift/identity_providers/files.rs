//! Files of an identity provider: keys of Secrets and ConfigMaps, each in a volume of its own.

use api::hypershift::v1beta1::references::NameReference;
use control_plane_component::Context;
use k8s_openapi::api::core::v1::{ConfigMap, Volume, VolumeMount};
use serde_json::{Value, json};
use x509_parser::pem::Pem;

use super::error::Refusal;
use crate::components::edit;

const SECRET: &str = "Secret";
const CONFIG_MAP: &str = "ConfigMap";
/// Key of the CA certificates in a ConfigMap.
const CA: &str = "ca.crt";

/// A key of a Secret that a provider refers to.
#[derive(Debug, Clone, Copy)]
pub(super) struct SecretFile {
    /// The field in the API.
    pub(super) field: &'static str,
    /// The field in names of volumes and paths.
    path: &'static str,
    key: &'static str,
}

pub(super) const TLS_CLIENT_CERT: SecretFile =
    SecretFile::new("tlsClientCert", "tls-client-cert", "tls.crt");
pub(super) const TLS_CLIENT_KEY: SecretFile =
    SecretFile::new("tlsClientKey", "tls-client-key", "tls.key");
pub(super) const CLIENT_SECRET: SecretFile =
    SecretFile::new("clientSecret", "client-secret", "clientSecret");
pub(super) const FILE_DATA: SecretFile = SecretFile::new("fileData", "file-data", "htpasswd");
pub(super) const BIND_PASSWORD: SecretFile =
    SecretFile::new("bindPassword", "bind-password", "bindPassword");

/// The files of one provider.
pub(super) struct Files<'a> {
    pub(super) context: &'a Context<'a>,
    index: usize,
    pub(super) volumes: Vec<Volume>,
    pub(super) mounts: Vec<VolumeMount>,
    /// The CA certificates, PEM.
    pub(super) authorities: Vec<u8>,
}

// === impl SecretFile ===

impl SecretFile {
    const fn new(field: &'static str, path: &'static str, key: &'static str) -> Self {
        Self { field, path, key }
    }

    /// The key in the Secret.
    pub(super) fn key(self) -> &'static str {
        self.key
    }
}

// === impl Files ===

impl<'a> Files<'a> {
    /// No files, of the provider with this index.
    pub(super) fn new(context: &'a Context<'a>, index: usize) -> Self {
        Self {
            context,
            index,
            volumes: Vec::new(),
            mounts: Vec::new(),
            authorities: Vec::new(),
        }
    }

    /// Adds a key of a Secret, and returns its path.
    pub(super) fn secret(
        &mut self,
        reference: Option<&NameReference>,
        file: SecretFile,
    ) -> Result<String, Refusal> {
        let SecretFile { field, path, key } = file;
        let name = named(reference).ok_or(Refusal::Reference(field, SECRET, key))?;
        let secret = self.context.objects.secret(name);
        let data = secret.ok_or_else(|| object(SECRET, name, key))?.data;
        let data = data.unwrap_or_default();
        let value = data
            .get(key)
            .ok_or_else(|| missing_key(SECRET, name, key))?;
        // A file without users is valid.
        if value.0.is_empty() && field != FILE_DATA.field {
            let name = name.to_owned();
            return Err(Refusal::Empty { name, key });
        }
        let volume = format!("idp-secret-{}-{path}", self.index);
        let directory = format!("/etc/oauth/idp/idp_secret_{}_{path}", self.index);
        self.volumes.push(edit::secret_volume(&volume, name));
        self.mounts.push(edit::mount(volume, &directory));
        Ok(format!("{directory}/{key}"))
    }

    /// Like `secret`, unless there is no reference.
    pub(super) fn optional_secret(
        &mut self,
        reference: Option<&NameReference>,
        file: SecretFile,
    ) -> Result<Option<String>, Refusal> {
        named(reference)
            .is_some()
            .then(|| self.secret(reference, file))
            .transpose()
    }

    /// Adds CA certificates of a ConfigMap, and returns their path.
    pub(super) fn ca(&mut self, reference: Option<&NameReference>) -> Result<String, Refusal> {
        let name = named(reference).ok_or(Refusal::Reference("ca", CONFIG_MAP, CA))?;
        let config_map = self.context.objects.config_map(name);
        let config_map = config_map.ok_or_else(|| object(CONFIG_MAP, name, CA))?;
        let bundle = bundle(config_map).ok_or_else(|| missing_key(CONFIG_MAP, name, CA))?;
        if !has_certificate(&bundle) {
            return Err(Refusal::NotPem {
                name: name.to_owned(),
                key: CA,
            });
        }
        let volume = format!("idp-cm-{}-ca", self.index);
        let directory = format!("/etc/oauth/idp/idp_cm_{}_ca", self.index);
        self.authorities = bundle;
        self.volumes.push(edit::config_volume(&volume, name));
        self.mounts.push(edit::mount(volume, &directory));
        Ok(format!("{directory}/{CA}"))
    }

    /// Sets `ca` of a provider's configuration, unless there is no reference.
    pub(super) fn optional_ca(
        &mut self,
        reference: Option<&NameReference>,
        config: &mut Value,
    ) -> Result<(), Refusal> {
        if let Some(path) = self.optional_ca_path(reference)? {
            config["ca"] = json!(path);
        }
        Ok(())
    }

    /// Like `ca`, unless there is no reference.
    pub(super) fn optional_ca_path(
        &mut self,
        reference: Option<&NameReference>,
    ) -> Result<Option<String>, Refusal> {
        named(reference)
            .is_some()
            .then(|| self.ca(reference))
            .transpose()
    }
}

/// The name in a reference, unless it is empty.
fn named(reference: Option<&NameReference>) -> Option<&str> {
    let name = reference?.name.as_str();
    (!name.is_empty()).then_some(name)
}

fn object(kind: &'static str, name: &str, key: &'static str) -> Refusal {
    let name = name.to_owned();
    Refusal::Object { kind, name, key }
}

fn missing_key(kind: &'static str, name: &str, key: &'static str) -> Refusal {
    let name = name.to_owned();
    Refusal::Key { kind, name, key }
}

fn bundle(config_map: ConfigMap) -> Option<Vec<u8>> {
    let text = config_map.data.unwrap_or_default().remove(CA);
    let bytes = config_map.binary_data.unwrap_or_default().remove(CA);
    text.map(String::into_bytes)
        .or_else(|| bytes.map(|bytes| bytes.0))
}

fn has_certificate(bundle: &[u8]) -> bool {
    let blocks = Pem::iter_from_buffer(bundle);
    let mut blocks = blocks.filter_map(Result::ok);
    blocks.any(|block| block.label == "CERTIFICATE" && block.parse_x509().is_ok())
}
