//! Copies: from beside the HostedCluster into the control plane's namespace, and back.

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use serde_json::{Value, json};

use super::Desired;
use crate::facts::references::{Purpose, Reference, is_reserved};
use crate::facts::{Facts, Found};
use crate::names;
use crate::platform::infrastructure;

/// The credentials of the platform: those that it has written, and copies of the user's.
pub(super) fn platform(facts: &Facts) -> Vec<Desired> {
    let mut secrets = infrastructure(facts.cluster.spec.platform.type_).secrets(facts);
    secrets.extend(copies(facts, &[Purpose::CloudCredentials]));
    secrets
}

/// The pull secret of the release.
pub(super) fn pull_secret(facts: &Facts) -> Vec<Desired> {
    copies(facts, &[Purpose::PullSecret])
}

/// The keys that Secrets are encrypted with.
pub(super) fn encryption(facts: &Facts) -> Vec<Desired> {
    copies(facts, &[Purpose::EncryptionKey])
}

/// All other referenced objects.
pub(super) fn references(facts: &Facts) -> Vec<Desired> {
    copies(
        facts,
        &[
            Purpose::AuditWebhook,
            Purpose::SshKey,
            Purpose::TrustBundle,
            Purpose::SigningKey,
            Purpose::EtcdClient,
            Purpose::Configuration,
        ],
    )
}

/// Secrets for the administrator, copied to the namespace of the HostedCluster.
pub(super) fn handover(facts: &Facts) -> Vec<Desired> {
    let cluster = &facts.id.name;
    let status = facts
        .control_plane
        .as_ref()
        .and_then(|it| it.status.as_ref());
    let custom = status.and_then(|it| it.custom_kubeconfig.as_ref());
    let password = status.and_then(|it| it.kubeadmin_password.as_ref());
    let copies = [
        (
            facts.admin_kubeconfig(),
            names::admin_kubeconfig_copy(cluster),
        ),
        (
            custom.and_then(|it| facts.handed_out(&it.name)),
            names::custom_kubeconfig_copy(cluster),
        ),
        (
            password.and_then(|it| facts.handed_out(&it.name)),
            names::password_copy(cluster),
        ),
    ];
    let owner = support::apply::owner(&facts.cluster);
    copies
        .into_iter()
        .filter_map(|(secret, name)| {
            let fields = json!({
                "metadata": { "ownerReferences": owner },
                "type": "Opaque",
                "data": secret?.data,
            });
            Some((name, fields))
        })
        .map(|(name, mut fields)| {
            let owners = fields["metadata"]["ownerReferences"].take();
            fields["metadata"]["ownerReferences"] = json!([owners]);
            Desired::new::<Secret>(&facts.id.namespace, &name, fields)
        })
        .collect()
}

fn copies(facts: &Facts, purposes: &[Purpose]) -> Vec<Desired> {
    let referenced = facts.referenced.iter();
    let referenced = referenced.filter(|(reference, _)| {
        purposes.contains(&reference.purpose) && !is_of_control_plane(facts, reference)
    });
    referenced
        .filter_map(|(reference, found)| copy(facts, reference, found))
        .collect()
}

/// Whether the copy would overwrite an object of the control plane. Validation reports it; nothing is written.
fn is_of_control_plane(facts: &Facts, reference: &Reference) -> bool {
    reference.purpose.keeps_name()
        && (is_reserved(&reference.name, facts.infra_id()) || facts.occupied.contains(reference))
}

fn copy(facts: &Facts, reference: &Reference, found: &Found) -> Option<Desired> {
    let name = target(reference);
    let namespace = &facts.namespace;
    match found {
        Found::Secret(secret) => {
            let fields =
                json!({ "type": kind(reference, secret), "data": data(reference, secret) });
            Some(Desired::new::<Secret>(namespace, name, fields))
        }
        Found::ConfigMap(map) => {
            let fields = json!({ "data": map.data, "binaryData": map.binary_data });
            Some(Desired::new::<ConfigMap>(namespace, name, fields))
        }
        Found::Missing => None,
    }
}

/// The name of the copy in the control plane namespace.
fn target(reference: &Reference) -> &str {
    match reference.purpose {
        Purpose::PullSecret => names::PULL_SECRET,
        Purpose::SshKey => names::SSH_KEY,
        Purpose::TrustBundle => names::TRUST_BUNDLE,
        Purpose::SigningKey => names::SIGNING_KEY,
        Purpose::KubevirtCredentials => names::KUBEVIRT_CREDENTIALS,
        Purpose::AuditWebhook
        | Purpose::EncryptionKey
        | Purpose::EtcdClient
        | Purpose::CloudCredentials
        | Purpose::Role
        | Purpose::Configuration => &reference.name,
    }
}

/// A Secret's type cannot be changed later: where the purpose does not decide it, it is the source's.
fn kind(reference: &Reference, secret: &Secret) -> String {
    match reference.purpose {
        Purpose::PullSecret => "kubernetes.io/dockerconfigjson".to_owned(),
        Purpose::SigningKey => "Opaque".to_owned(),
        Purpose::SshKey
        | Purpose::TrustBundle
        | Purpose::AuditWebhook
        | Purpose::EncryptionKey
        | Purpose::EtcdClient
        | Purpose::CloudCredentials
        | Purpose::KubevirtCredentials
        | Purpose::Role
        | Purpose::Configuration => secret.type_.clone().unwrap_or_else(|| "Opaque".to_owned()),
    }
}

fn data(reference: &Reference, secret: &Secret) -> Value {
    let data = secret.data.as_ref();
    let of = |key: &str| data.and_then(|data| data.get(key));
    match reference.purpose {
        Purpose::PullSecret => json!({ ".dockerconfigjson": of(".dockerconfigjson") }),
        // A private key in it stays in the Secret of the user.
        Purpose::SshKey => json!({ "id_rsa.pub": of("id_rsa.pub") }),
        Purpose::SigningKey => {
            let key = of("key");
            let public = key.and_then(|key| super::certificate::public_key(&key.0));
            json!({ "service-account.key": key, "service-account.pub": public })
        }
        Purpose::TrustBundle
        | Purpose::AuditWebhook
        | Purpose::EncryptionKey
        | Purpose::EtcdClient
        | Purpose::CloudCredentials
        | Purpose::KubevirtCredentials
        | Purpose::Role
        | Purpose::Configuration => json!(data),
    }
}
