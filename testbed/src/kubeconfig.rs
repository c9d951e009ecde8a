//! Kubeconfig files, written as JSON (which is YAML).

use std::path::Path;

use anyhow::Result;
use serde_json::{Value, json};

use crate::certs::{Certificate, encoded, write};
use crate::control_plane::Endpoint;

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
    let config = config(&cluster, &user(credentials));
    write(path, &format!("{config:#}\n"))
}

/// A kubeconfig with one context that refers to no file: where others read it, there are none.
pub fn whole(endpoint: &Endpoint, certificate: &Certificate) -> Result<Value> {
    let cluster = json!({
        "server": endpoint.server,
        "certificate-authority-data": encoded(&endpoint.authority)?,
    });
    let user = json!({
        "client-certificate-data": encoded(&certificate.certificate)?,
        "client-key-data": encoded(&certificate.key)?,
    });
    Ok(config(&cluster, &user))
}

fn config(cluster: &Value, user: &Value) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{ "name": "testbed", "cluster": cluster }],
        "users": [{ "name": "testbed", "user": user }],
        "contexts": [{ "name": "testbed", "context": { "cluster": "testbed", "user": "testbed" } }],
        "current-context": "testbed",
    })
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
