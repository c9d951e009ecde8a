//! Which keys the API servers have, and which of them encrypts.
//!
//! | `status.secretEncryption` | first key, which encrypts | second key |
//! |---|---|---|
//! | no `activeKey` | the spec's | the spec's deprecated `backupKey` |
//! | no `targetKey` | `activeKey` | |
//! | `targetKey`, not read by all API servers | `activeKey` | `targetKey` |
//! | `targetKey`, read by all, or already first | `targetKey` | `activeKey` |

use api::hypershift::v1beta1::secret_encryption::status::{
    AescbcKeyStatus, EncryptionMigrationState, SecretEncryptionKeyStatus, SecretEncryptionStatus,
};
use control_plane_component::{Context, Error, Result};
use k8s_openapi::api::apps::v1::Deployment;

use super::live;
use crate::encryption::config::{Config, Role};
use crate::encryption::key::{self, SECRET_KEY, requested};
use crate::encryption::{FILE, SECRET, SERVER, hash, rollout, sha256};

/// The keys, in order: the first one encrypts, all of them decrypt.
pub(in super::super) fn keys(context: &Context<'_>) -> Result<Vec<SecretEncryptionKeyStatus>> {
    let Some(spec) = &context.spec().secret_encryption else {
        return Ok(Vec::new());
    };
    let status = context.hcp.status.as_ref();
    let status = status.and_then(|status| status.secret_encryption.as_ref());
    let Some((status, active)) = status.and_then(|it| Some((it, it.active_key.as_ref()?))) else {
        let secret = |name: &str| context.objects.secret_value(name, SECRET_KEY);
        let keys = requested(spec, secret)
            .map_err(|missing| Error::missing(missing.object, missing.what))?;
        return Ok(std::iter::once(keys.active).chain(keys.backup).collect());
    };
    let keys = match &status.target_key {
        None => vec![active],
        Some(target) if writes(context, status, target) => vec![target, active],
        Some(target) => vec![active, target],
    };
    Ok(keys.into_iter().cloned().collect())
}

/// Whether the target encrypts. It never becomes a reader again, since objects may be encrypted with it.
fn writes(
    context: &Context<'_>,
    status: &SecretEncryptionStatus,
    target: &SecretEncryptionKeyStatus,
) -> bool {
    let encryption = context.spec().secret_encryption.as_ref();
    let vault = encryption.and_then(key::vault_type);
    match live(context).role(target, vault) {
        Role::Absent => false,
        Role::Write => true,
        Role::Read => {
            let fingerprint = key::fingerprint(target, vault);
            is_read_by_all(status, &fingerprint) && has_rolled_out(context)
        }
    }
}

/// Whether the hosted-cluster-config-operator has found that all API servers read with the key. It looks for
/// terminating pods, too, which are not in the status of the Deployment.
fn is_read_by_all(status: &SecretEncryptionStatus, fingerprint: &str) -> bool {
    let current = status.history.first();
    current.is_some_and(|current| {
        let is_promoted = match current.state {
            EncryptionMigrationState::WritePromote | EncryptionMigrationState::Migrating => true,
            EncryptionMigrationState::ReadOnlyDeploy
            | EncryptionMigrationState::Completed
            | EncryptionMigrationState::Interrupted => false,
        };
        is_promoted && current.to.fingerprint == fingerprint
    })
}

/// Whether all API servers have the configuration that exists.
fn has_rolled_out(context: &Context<'_>) -> bool {
    let config = context.objects.secret_value(SECRET, FILE);
    let deployment: Option<Deployment> = context.objects.typed("apps", "Deployment", SERVER);
    let lacking = rollout::unfinished(deployment.as_ref(), &hash(&config.unwrap_or_default()));
    lacking.is_none()
}

/// Returns a key of a Secret. If the Secret is gone or has another key by now, the live configuration still has it.
pub(super) fn secret(
    context: &Context<'_>,
    live: &Config,
    key: &AescbcKeyStatus,
) -> Result<Vec<u8>> {
    let name = &key.secret.name;
    let found = context.objects.secret_value(name, SECRET_KEY);
    let found = found.filter(|found| sha256(found) == key.data_hash);
    let kept = || live.aescbc(&key.data_hash).map(<[u8]>::to_vec);
    found.or_else(kept).ok_or_else(|| {
        Error::missing(
            format!("Secret {name}"),
            "the key that objects are encrypted with: put it back",
        )
    })
}
