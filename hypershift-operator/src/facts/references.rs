//! Secrets and `ConfigMaps` that a HostedCluster refers to, and their purposes: pure.

mod configuration;
mod power_vs;
mod reserved;

use api::hypershift::v1beta1::HostedCluster;

use super::{Facts, Found, aws_roles};
pub(crate) use power_vs::credentials as power_vs_credentials;
pub(crate) use reserved::is_reserved;

/// The key under which bundles of authorities are.
pub(crate) const CA_BUNDLE: &str = "ca-bundle.crt";

/// The kind of a referenced object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Kind {
    Secret,
    ConfigMap,
}

/// The purpose of an object.
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
    /// It holds an API key for a cloud.
    CloudCredentials,
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

// === impl Purpose ===

impl Purpose {
    /// Whether the copy in the control plane's namespace has the name that the user chose: the control plane refers to
    /// it by that name.
    pub(crate) fn keeps_name(self) -> bool {
        match self {
            Self::AuditWebhook
            | Self::EncryptionKey
            | Self::EtcdClient
            | Self::CloudCredentials
            | Self::Configuration => true,
            Self::PullSecret
            | Self::SshKey
            | Self::TrustBundle
            | Self::SigningKey
            | Self::KubevirtCredentials
            | Self::Role => false,
        }
    }
}

// === impl Reference ===

impl Reference {
    /// What is wrong with the object, if it is not as required: it is read from this namespace.
    pub(crate) fn problem(&self, namespace: &str, found: &Found) -> Option<String> {
        let Self {
            purpose: _,
            kind,
            name,
            field,
            keys,
        } = self;
        let kind = kind.as_str();
        if matches!(found, Found::Missing) {
            return Some(format!(
                "{field} names {kind} {namespace}/{name}, which does not exist: create it"
            ));
        }
        let missing: Vec<_> = keys.iter().filter(|key| !found.has(key)).cloned().collect();
        (!missing.is_empty()).then(|| {
            let keys = missing.join(", ");
            format!("{field} names {kind} {namespace}/{name}, which lacks {keys}: add it")
        })
    }
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

/// What is wrong with the objects for a purpose.
pub(crate) fn problems(facts: &Facts, purpose: Purpose) -> Vec<String> {
    let referenced = facts.referenced.iter();
    let referenced = referenced.filter(|(reference, _)| reference.purpose == purpose);
    let problems = referenced.filter_map(|(it, found)| it.problem(&facts.id.namespace, found));
    problems.collect()
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
    for (field, name) in aws_roles::secrets(cluster) {
        add(Purpose::Role, secret, &name, field, &[aws_roles::KEY]);
    }
    for (field, name, keys) in power_vs_credentials(cluster) {
        add(Purpose::CloudCredentials, secret, name, field, keys);
    }
    if let Some(it) = &spec.platform.openstack {
        let field = "platform.openstack.identityRef";
        let name = &it.identity_ref.name;
        add(
            Purpose::CloudCredentials,
            secret,
            name,
            field,
            &["clouds.yaml"],
        );
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
    let configuration = cluster.spec.configuration.iter();
    found.extend(configuration.flat_map(configuration::references));
    found
}

/// The Secret with the key for the IBM Cloud KMS, if the user provides one.
fn ibm_cloud_key(cluster: &HostedCluster) -> Option<&str> {
    let encryption = cluster.spec.secret_encryption.as_ref()?;
    let ibm_cloud = encryption.kms.as_ref()?.ibmcloud.as_ref()?;
    let unmanaged = ibm_cloud.auth.unmanaged.as_ref()?;
    Some(&unmanaged.credentials.name)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::facts::fixture;

    #[test]
    fn references_of_all_fields_are_collected() {
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

    /// Check F09: a name that no list of field names knew is found, with the field that names it.
    #[test]
    fn every_field_that_names_an_object_is_found() {
        let name = |name: &str| json!({ "name": name });
        let provider =
            |kind: &str, fields: serde_json::Value| json!({ "name": kind, kind: fields });
        let configuration = json!({
            "authentication": {
                "oauthMetadata": name("metadata"),
                "webhookTokenAuthenticator": { "kubeConfig": name("webhook") },
                "webhookTokenAuthenticators": [{ "kubeConfig": name("old-webhook") }],
                "oidcProviders": [{
                    "name": "oidc",
                    "issuer": {
                        "issuerURL": "https://oidc.example.com",
                        "audiences": ["a"],
                        "issuerCertificateAuthority": name("oidc-ca"),
                    },
                    "claimMappings": { "username": {} },
                    "oidcClients": [{
                        "componentName": "console",
                        "componentNamespace": "openshift-console",
                        "clientID": "id",
                        "clientSecret": name("console-client"),
                    }],
                }],
            },
            "image": { "additionalTrustedCA": name("image-ca") },
            "ingress": { "componentRoutes": [{
                "namespace": "openshift-console",
                "name": "console",
                "hostname": "console.example.com",
                "servingCertKeyPairSecret": name("console-cert"),
            }] },
            "scheduler": { "policy": name("policy") },
            "proxy": { "trustedCA": name("proxy-ca") },
            "oauth": {
                "templates": {
                    "login": name("login"),
                    "providerSelection": name("selection"),
                    "error": name("error"),
                },
                "identityProviders": [
                    provider("basicAuth", json!({
                        "ca": name("basic-ca"),
                        "tlsClientCert": name("basic-cert"),
                        "tlsClientKey": name("basic-key"),
                    })),
                    provider("keystone", json!({
                        "ca": name("keystone-ca"),
                        "tlsClientCert": name("keystone-cert"),
                        "tlsClientKey": name("keystone-key"),
                    })),
                    provider("github", json!({ "clientSecret": name("github"), "ca": name("github-ca") })),
                    provider("gitlab", json!({ "clientSecret": name("gitlab"), "ca": name("gitlab-ca") })),
                    provider("google", json!({ "clientSecret": name("google") })),
                    provider("htpasswd", json!({ "fileData": name("htpasswd") })),
                    provider("ldap", json!({ "bindPassword": name("ldap"), "ca": name("ldap-ca") })),
                    provider("requestHeader", json!({ "ca": name("header-ca") })),
                ],
            },
        });
        let mut cluster = fixture::hosted_cluster("none");
        cluster.spec.configuration = serde_json::from_value(configuration.clone()).unwrap();
        let found = references(&cluster);
        let of = |kind: Kind| {
            let of_kind = found.iter().filter(|it| it.kind == kind);
            let of_kind = of_kind.filter(|it| it.purpose == Purpose::Configuration);
            of_kind.map(|it| it.name.as_str()).collect::<Vec<_>>()
        };
        let secrets = [
            "basic-cert",
            "basic-key",
            "console-cert",
            "console-client",
            "error",
            "github",
            "gitlab",
            "google",
            "htpasswd",
            "keystone-cert",
            "keystone-key",
            "ldap",
            "login",
            "old-webhook",
            "selection",
            "webhook",
        ];
        assert_eq!(of(Kind::Secret), secrets);
        let config_maps = [
            "basic-ca",
            "github-ca",
            "gitlab-ca",
            "header-ca",
            "image-ca",
            "keystone-ca",
            "ldap-ca",
            "metadata",
            "oidc-ca",
            "policy",
            "proxy-ca",
        ];
        assert_eq!(of(Kind::ConfigMap), config_maps);
        for reference in found
            .iter()
            .filter(|it| it.purpose == Purpose::Configuration)
        {
            let path = reference.field.strip_prefix("spec.configuration.").unwrap();
            let pointer = path.replace(['.', '['], "/").replace(']', "");
            let named = configuration.pointer(&format!("/{pointer}/name"));
            assert_eq!(named, Some(&json!(reference.name)), "{}", reference.field);
        }
    }
}
