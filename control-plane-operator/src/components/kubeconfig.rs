//! Kubeconfigs of the guest: made from a client certificate and an authority that are there as Secrets.

use control_plane_component::{Context, Error, Result};
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use serde_json::{Value, json};

const KEY: &str = "kubeconfig";
const AUTHORITY: &str = "root-ca";

/// What a kubeconfig is made of.
#[derive(Debug, Clone)]
pub(crate) struct Kubeconfig<'a> {
    /// URL of the API server.
    pub(crate) server: String,
    /// Certificates of authorities, as PEM.
    pub(crate) authority: &'a [u8],
    /// Certificate and key of the user, as PEM.
    pub(crate) user: (&'a [u8], &'a [u8]),
}

// === impl Kubeconfig ===

impl Kubeconfig<'_> {
    /// As text.
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

/// JSON is YAML, and a form that never changes by itself.
pub(crate) fn yaml(value: &Value) -> String {
    serde_saphyr::to_string(value).unwrap_or_else(|_| value.to_string())
}

/// The value of a Secret that has to be there.
pub(crate) fn secret_value(context: &Context<'_>, name: &str, key: &str) -> Result<Vec<u8>> {
    context
        .objects
        .secret_value(name, key)
        .ok_or_else(|| Error::missing(format!("Secret {name}"), format!("key {key}")))
}

/// A kubeconfig for the user of a client certificate.
pub(crate) fn text(context: &Context<'_>, certificate: &str, server: String) -> Result<String> {
    let authority = secret_value(context, AUTHORITY, "ca.crt")?;
    with_authority(context, certificate, server, &authority)
}

/// The same, with authorities of the caller's.
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

/// Puts a text into a Secret.
pub(crate) fn put(secret: &mut Secret, key: &str, text: String) {
    let data = secret.data.get_or_insert_default();
    data.insert(key.to_owned(), ByteString(text.into_bytes()));
}

/// Adapts the Secret with the kubeconfig of a component of the control plane: by the Service of the API server.
pub(crate) fn service(
    certificate: &'static str,
) -> impl Fn(&Context<'_>, &mut Secret) -> Result<()> + Send + Sync {
    move |context, secret| {
        let text = text(context, certificate, context.api_service_url())?;
        put(secret, KEY, text);
        Ok(())
    }
}

/// Adapts the Secret with the kubeconfig of a container in the pod of the API server.
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
