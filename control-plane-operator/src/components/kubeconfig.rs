//! Kubeconfigs of the guest, built from the Secrets of a client certificate and of an authority.

use control_plane_component::{Context, Error, Result};
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use serde_json::{Value, json};

const KEY: &str = "kubeconfig";
const AUTHORITY: &str = "root-ca";

/// Input of a kubeconfig.
#[derive(Debug, Clone)]
pub(crate) struct Kubeconfig<'a> {
    /// URL of the API server.
    pub(crate) server: String,
    /// CA certificates, PEM.
    pub(crate) authority: &'a [u8],
    /// Client certificate and key, PEM.
    pub(crate) user: (&'a [u8], &'a [u8]),
}

// === impl Kubeconfig ===

impl Kubeconfig<'_> {
    /// Formats it as YAML.
    pub(crate) fn text(&self) -> String {
        let (certificate, key) = self.user;
        yaml(&json!({
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{ "name": "cluster", "cluster": {
                "server": self.server, "certificate-authority-data": base64(self.authority),
            } }],
            "contexts": [{ "name": "admin", "context": {
                "cluster": "cluster", "user": "admin", "namespace": "default",
            } }],
            "current-context": "admin",
            "users": [{ "name": "admin", "user": {
                "client-certificate-data": base64(certificate), "client-key-data": base64(key),
            } }],
        }))
    }
}

pub(crate) fn base64(bytes: &[u8]) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.encode(bytes)
}

/// Formats a value as YAML. JSON, the fallback, is valid YAML.
pub(crate) fn yaml(value: &Value) -> String {
    serde_saphyr::to_string(value).unwrap_or_else(|_| value.to_string())
}

/// Returns a value of a required Secret.
pub(crate) fn secret_value(context: &Context<'_>, name: &str, key: &str) -> Result<Vec<u8>> {
    context
        .objects
        .secret_value(name, key)
        .ok_or_else(|| Error::missing(format!("Secret {name}"), format!("key {key}")))
}

/// Builds a kubeconfig for a client certificate.
pub(crate) fn text(context: &Context<'_>, certificate: &str, server: String) -> Result<String> {
    let authority = secret_value(context, AUTHORITY, "ca.crt")?;
    with_authority(context, certificate, server, &authority)
}

/// Builds a kubeconfig with custom CA certificates.
pub(crate) fn with_authority(
    context: &Context<'_>,
    certificate: &str,
    server: String,
    authority: &[u8],
) -> Result<String> {
    let user = (
        context.objects.secret_value(certificate, "tls.crt"),
        context.objects.secret_value(certificate, "tls.key"),
    );
    let (Some(tls), Some(key)) = user else {
        return Err(Error::missing(
            format!("Secret {certificate}"),
            "key tls.crt or tls.key",
        ));
    };
    let kubeconfig = Kubeconfig {
        server,
        authority,
        user: (&tls, &key),
    };
    Ok(kubeconfig.text())
}

/// Sets a key of a Secret.
pub(crate) fn put(secret: &mut Secret, key: &str, text: String) {
    let data = secret.data.get_or_insert_default();
    data.insert(key.to_owned(), ByteString(text.into_bytes()));
}

/// Adapts the kubeconfig Secret of a control plane component, which uses the API server's Service.
pub(crate) fn service(
    certificate: &'static str,
) -> impl Fn(&Context<'_>, &mut Secret) -> Result<()> + Send + Sync {
    move |context, secret| {
        let text = text(context, certificate, context.api_service_url())?;
        put(secret, KEY, text);
        Ok(())
    }
}

/// Adapts the kubeconfig Secret of a container in the API server's pod.
pub(crate) fn local(
    certificate: &'static str,
) -> impl Fn(&Context<'_>, &mut Secret) -> Result<()> + Send + Sync {
    move |context, secret| {
        let server = control_plane_component::facts::url("localhost", context.api_pod_port());
        let text = text(context, certificate, server)?;
        put(secret, KEY, text);
        Ok(())
    }
}
