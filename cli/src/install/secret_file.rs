//! Credentials that the operators read from a file: a key of a Secret, which is the user's or which the installation makes.

use std::fs;
use std::path::Path;

use anyhow::Context;
use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::{Value, json};
use support::aws::credentials::of_file;

use super::kind::Kind;
use super::object::Object;
use super::parameters::{Known, Parameters};

/// A key of a Secret in the namespace of the operators.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SecretFile {
    pub(super) secret: String,
    pub(super) key: String,
    /// What it has, where the installation makes the Secret.
    pub(super) content: Option<String>,
}

// === impl SecretFile ===

impl SecretFile {
    /// In a Secret that the installation makes.
    pub(super) fn made(secret: &str, key: &str, content: String) -> Self {
        Self {
            content: Some(content),
            ..Self::existing(secret, key)
        }
    }

    /// In a Secret of the user.
    pub(super) fn existing(secret: &str, key: &str) -> Self {
        Self {
            secret: secret.to_owned(),
            key: key.to_owned(),
            content: None,
        }
    }

    /// The Secret, unless it is the user's.
    pub(super) fn object(&self, namespace: &str) -> Option<Object> {
        let content = self.content.as_ref()?;
        let fields = json!({ "data": { self.key.as_str(): STANDARD.encode(content) } });
        Some(Object::new(Kind::Secret, namespace, &self.secret, fields))
    }

    /// Puts parameters in the place of the names of a Secret of the user and of its key.
    pub(super) fn parameterize(&mut self, parameters: &mut Parameters, secret: Known, key: Known) {
        if self.content.is_none() {
            parameters.take(secret, &mut self.secret);
            parameters.take(key, &mut self.key);
        }
    }

    /// The volume of an operator's pod with this file, and where its container has the volume.
    pub(super) fn volume(&self, volume: &str, directory: &str, file: &str) -> (Value, Value) {
        let mount = json!({ "name": volume, "mountPath": directory, "readOnly": true });
        let volume = json!({
            "name": volume,
            "secret": {
                "secretName": self.secret,
                "items": [{ "key": self.key, "path": file }],
            },
        });
        (volume, mount)
    }
}

/// The content of a shared credentials file of AWS. The operators would fail with each hosted cluster or NodePool: the file is
/// checked here. Its content is not repeated.
pub(super) fn read_aws(path: &Path) -> anyhow::Result<String> {
    of_file(path, &|_| None)?;
    fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}
