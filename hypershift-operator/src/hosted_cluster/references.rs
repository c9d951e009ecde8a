//! Which Secrets and `ConfigMaps` a HostedCluster refers to, and what each is needed for: pure.

use api::hypershift::v1beta1::HostedCluster;
use serde_json::Value;

use crate::platform::aws::roles;

/// The field of `spec.configuration` that names it decides what kind of object it is.
const SECRETS: [&str; 11] = [
    "bindPassword",
    "clientSecret",
    "error",
    "fileData",
    "kubeConfig",
    "login",
    "providerSelection",
    "servingCertKeyPairSecret",
    "servingCertificate",
    "tlsClientCert",
    "tlsClientKey",
];
/// Likewise.
const CONFIG_MAPS: [&str; 6] = [
    "additionalTrustedCA",
    "ca",
    "clientCA",
    "issuerCertificateAuthority",
    "oauthMetadata",
    "trustedCA",
];

/// The key under which bundles of authorities are.
pub(crate) const CA_BUNDLE: &str = "ca-bundle.crt";

/// What kind of object is referred to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Kind {
    Secret,
    ConfigMap,
}

/// What an object is needed for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Purpose {
    PullSecret,
    SshKey,
    AuditWebhook,
    TrustBundle,
    SigningKey,
    EncryptionKey,
    EtcdClient,
    KubevirtCredentials,
    /// It holds a cloud's role.
    Role,
    Configuration,
}

/// One reference.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Reference {
    pub(crate) purpose: Purpose,
    pub(crate) kind: Kind,
    pub(crate) name: String,
    /// The field that names it.
    pub(crate) field: String,
    /// The keys that it must have.
    pub(crate) keys: Vec<String>,
}

// === impl Kind ===

impl Kind {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Secret => "Secret",
            Self::ConfigMap => "ConfigMap",
        }
    }
}

/// All references of a cluster, in the order of its fields.
pub(crate) fn references(cluster: &HostedCluster) -> Vec<Reference> {
    let spec = &cluster.spec;
    let mut found = Vec::new();
    let mut add = |purpose, kind, name: &str, field: &str, keys: &[&str]| {
        if !name.is_empty() {
            found.push(Reference {
                purpose,
                kind,
                name: name.to_owned(),
                field: format!("spec.{field}"),
                keys: keys.iter().map(|&key| key.to_owned()).collect(),
            });
        }
    };
    let secret = Kind::Secret;
    add(
        Purpose::PullSecret,
        secret,
        &spec.pull_secret.name,
        "pullSecret",
        &[".dockerconfigjson"],
    );
    if let Some(it) = &spec.ssh_key {
        add(Purpose::SshKey, secret, &it.name, "sshKey", &["id_rsa.pub"]);
    }
    if let Some(it) = &spec.audit_webhook {
        add(
            Purpose::AuditWebhook,
            secret,
            &it.name,
            "auditWebhook",
            &["webhook-kubeconfig"],
        );
    }
    if let Some(it) = &spec.additional_trust_bundle {
        let field = "additionalTrustBundle";
        add(
            Purpose::TrustBundle,
            Kind::ConfigMap,
            &it.name,
            field,
            &[CA_BUNDLE],
        );
    }
    if let Some(it) = &spec.service_account_signing_key {
        add(
            Purpose::SigningKey,
            secret,
            &it.name,
            "serviceAccountSigningKey",
            &["key"],
        );
    }
    let aescbc = spec
        .secret_encryption
        .as_ref()
        .and_then(|it| it.aescbc.as_ref());
    if let Some(it) = aescbc {
        let field = "secretEncryption.aescbc.activeKey";
        add(
            Purpose::EncryptionKey,
            secret,
            &it.active_key.name,
            field,
            &["key"],
        );
        if let Some(it) = &it.backup_key {
            let field = "secretEncryption.aescbc.backupKey";
            add(Purpose::EncryptionKey, secret, &it.name, field, &["key"]);
        }
    }
    if let Some(it) = ibm_cloud_key(cluster) {
        let field = "secretEncryption.kms.ibmcloud.auth.unmanaged.credentials";
        add(Purpose::EncryptionKey, secret, it, field, &["iam_apikey"]);
    }
    for (field, name) in roles::secrets(cluster) {
        add(Purpose::Role, secret, &name, field, &[roles::KEY]);
    }
    if let Some(it) = &spec.etcd.unmanaged {
        let keys = ["etcd-client-ca.crt", "etcd-client.crt", "etcd-client.key"];
        let field = "etcd.unmanaged.tls.clientSecret";
        add(
            Purpose::EtcdClient,
            secret,
            &it.tls.client_secret.name,
            field,
            &keys,
        );
    }
    let kubevirt = spec
        .platform
        .kubevirt
        .as_ref()
        .and_then(|it| it.credentials.as_ref());
    if let Some(it) = kubevirt.and_then(|it| it.infra_kube_config_secret.as_ref()) {
        let field = "platform.kubevirt.credentials.infraKubeConfigSecret";
        add(
            Purpose::KubevirtCredentials,
            secret,
            &it.name,
            field,
            &[&it.key],
        );
    }
    found.extend(in_configuration(cluster));
    found
}

/// The Secret with the key for IBM Cloud's key service, where the user brings one.
fn ibm_cloud_key(cluster: &HostedCluster) -> Option<&str> {
    let encryption = cluster.spec.secret_encryption.as_ref()?;
    let ibm_cloud = encryption.kms.as_ref()?.ibmcloud.as_ref()?;
    let unmanaged = ibm_cloud.auth.unmanaged.as_ref()?;
    Some(&unmanaged.credentials.name)
}

/// The references of `spec.configuration`, whose parts are many: each is a field of a known name that holds a `name`.
fn in_configuration(cluster: &HostedCluster) -> Vec<Reference> {
    let configuration = serde_json::to_value(&cluster.spec.configuration).unwrap_or_default();
    let mut found = Vec::new();
    walk(&configuration, "spec.configuration", &mut found);
    found.sort();
    found.dedup_by(|one, other| (one.kind, &one.name) == (other.kind, &other.name));
    found
}

fn walk(value: &Value, path: &str, found: &mut Vec<Reference>) {
    match value {
        Value::Object(fields) => {
            for (field, value) in fields {
                let path = format!("{path}.{field}");
                found.extend(reference(field, value, &path));
                walk(value, &path, found);
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                walk(item, &format!("{path}[{index}]"), found);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn reference(field: &str, value: &Value, path: &str) -> Option<Reference> {
    let kind = if SECRETS.contains(&field) {
        Kind::Secret
    } else if CONFIG_MAPS.contains(&field) {
        Kind::ConfigMap
    } else {
        return None;
    };
    let name = value
        .get("name")?
        .as_str()
        .filter(|name| !name.is_empty())?;
    Some(Reference {
        purpose: Purpose::Configuration,
        kind,
        name: name.to_owned(),
        field: path.to_owned(),
        keys: Vec::new(),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::fixture;
    use super::*;

    #[test]
    fn references_are_found_wherever_they_are() {
        let mut cluster = fixture::hosted_cluster("none");
        let configuration = json!({
            "apiServer": {
                "audit": { "profile": "Default" },
                "clientCA": { "name": "clients" },
                "servingCerts": { "namedCertificates": [{ "servingCertificate": { "name": "serving" } }] },
            },
            "oauth": {
                "identityProviders": [{
                    "name": "sso",
                    "type": "OpenID",
                    "mappingMethod": "claim",
                    "openID": {
                        "clientID": "id",
                        "clientSecret": { "name": "sso-client" },
                        "ca": { "name": "sso-ca" },
                        "issuer": "https://sso.example.com",
                        "claims": {},
                    },
                }],
                "tokenConfig": {},
                "templates": {},
            },
        });
        cluster.spec.configuration = serde_json::from_value(configuration).unwrap();
        let found: Vec<_> = references(&cluster)
            .into_iter()
            .map(|it| (it.kind.as_str(), it.name))
            .collect();
        let expected = [
            ("Secret", "pull"),
            ("Secret", "ssh"),
            ("Secret", "serving"),
            ("Secret", "sso-client"),
            ("ConfigMap", "clients"),
            ("ConfigMap", "sso-ca"),
        ];
        assert_eq!(found, expected.map(|(kind, name)| (kind, name.to_owned())));
    }
}
