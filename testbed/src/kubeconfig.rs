//! Kubeconfig files, written as JSON (which is YAML).

use std::path::Path;

use anyhow::Result;
use serde_json::{Value, json};

use crate::certs::{Certificate, write};

/// How a kubeconfig's user proves who it is.
#[derive(Debug, Clone, Copy)]
pub enum Credentials<'a> {
    /// Not at all: a proxy does it.
    None,
    /// By a client certificate.
    Certificate(&'a Certificate),
    /// By a token in a file that is read again as it changes.
    TokenFile(&'a Path),
}

/// Writes a kubeconfig with one context.
pub fn write_kubeconfig(
    path: &Path,
    server: &str,
    authority: Option<&Path>,
    credentials: Credentials<'_>,
) -> Result<()> {
    let mut cluster = json!({ "server": server });
    if let Some(authority) = authority {
        cluster["certificate-authority"] = json!(authority);
    }
    let config = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{ "name": "testbed", "cluster": cluster }],
        "users": [{ "name": "testbed", "user": user(credentials) }],
        "contexts": [{ "name": "testbed", "context": { "cluster": "testbed", "user": "testbed" } }],
        "current-context": "testbed",
    });
    write(path, &format!("{config:#}\n"))
}

fn user(credentials: Credentials<'_>) -> Value {
    match credentials {
        Credentials::None => json!({}),
        Credentials::Certificate(certificate) => json!({
            "client-certificate": certificate.certificate,
            "client-key": certificate.key,
        }),
        Credentials::TokenFile(path) => json!({ "tokenFile": path }),
    }
}
