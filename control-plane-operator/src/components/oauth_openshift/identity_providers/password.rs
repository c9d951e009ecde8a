//! Providers that verify passwords, so that clients without a browser can use them, too.

use api::hypershift::v1beta1::configuration::oauth::identity_provider::directory::{
    BasicAuthIdentityProvider, HtpasswdIdentityProvider, KeystoneIdentityProvider,
    LdapIdentityProvider,
};
use api::hypershift::v1beta1::references::NameReference;
use serde_json::{Value, json};

use super::error::Refusal;
use super::files::{BIND_PASSWORD, FILE_DATA, Files, TLS_CLIENT_CERT, TLS_CLIENT_KEY};
use super::{Provider, required, text};

pub(super) fn basic_auth(
    section: &BasicAuthIdentityProvider,
    files: &mut Files<'_>,
) -> Result<Provider, Refusal> {
    let mut config = json!({ "url": required(section.url.as_ref(), "url")? });
    files.optional_ca(section.ca.as_ref(), &mut config)?;
    let (certificate, key) = (&section.tls_client_cert, &section.tls_client_key);
    client_certificate(certificate.as_ref(), key.as_ref(), files, &mut config)?;
    Ok(provider("BasicAuthPasswordIdentityProvider", config))
}

pub(super) fn htpasswd(
    section: &HtpasswdIdentityProvider,
    files: &mut Files<'_>,
) -> Result<Provider, Refusal> {
    let file = files.secret(section.file_data.as_ref(), FILE_DATA)?;
    let config = json!({ "file": file });
    Ok(provider("HTPasswdPasswordIdentityProvider", config))
}

pub(super) fn keystone(
    section: &KeystoneIdentityProvider,
    files: &mut Files<'_>,
) -> Result<Provider, Refusal> {
    let mut config = json!({
        "url": required(section.url.as_ref(), "url")?,
        "domainName": required(section.domain_name.as_ref(), "domainName")?,
        // Names may be given to other users; Keystone's IDs are unique.
        "useKeystoneIdentity": true,
    });
    files.optional_ca(section.ca.as_ref(), &mut config)?;
    let (certificate, key) = (&section.tls_client_cert, &section.tls_client_key);
    client_certificate(certificate.as_ref(), key.as_ref(), files, &mut config)?;
    Ok(provider("KeystonePasswordIdentityProvider", config))
}

pub(super) fn ldap(
    section: &LdapIdentityProvider,
    files: &mut Files<'_>,
) -> Result<Provider, Refusal> {
    let attributes = section.attributes.clone().unwrap_or_default();
    let mut config = json!({
        "url": required(section.url.as_ref(), "url")?,
        "bindDN": text(section.bind_dn.as_ref()),
        "insecure": section.insecure.unwrap_or_default(),
        "attributes": {
            "id": attributes.id,
            "preferredUsername": attributes.preferred_username,
            "name": attributes.name,
            "email": attributes.email,
        },
    });
    let password = files.optional_secret(section.bind_password.as_ref(), BIND_PASSWORD)?;
    if let Some(file) = password {
        config["bindPassword"] = json!({ "file": file });
    }
    files.optional_ca(section.ca.as_ref(), &mut config)?;
    Ok(provider("LDAPPasswordIdentityProvider", config))
}

fn provider(kind: &'static str, config: Value) -> Provider {
    Provider {
        kind,
        challenge: true,
        login: true,
        config,
    }
}

/// Sets the certificate with which the OAuth server authenticates.
fn client_certificate(
    certificate: Option<&NameReference>,
    key: Option<&NameReference>,
    files: &mut Files<'_>,
    config: &mut Value,
) -> Result<(), Refusal> {
    let is_set =
        |reference: Option<&NameReference>| reference.is_some_and(|it| !it.name.is_empty());
    if is_set(certificate) != is_set(key) {
        return Err(Refusal::Pair);
    }
    for (field, reference, file) in [
        ("certFile", certificate, TLS_CLIENT_CERT),
        ("keyFile", key, TLS_CLIENT_KEY),
    ] {
        if let Some(path) = files.optional_secret(reference, file)? {
            config[field] = json!(path);
        }
    }
    Ok(())
}
