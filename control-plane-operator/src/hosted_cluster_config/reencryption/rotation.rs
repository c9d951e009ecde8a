//! The steps of a rotation, and how they are reported. Pure.

use api::conditions::{EncryptionReason, Status};
use api::hypershift::v1beta1::secret_encryption::azure::AzureKeyVaultType;
use api::hypershift::v1beta1::secret_encryption::status::{
    EncryptionMigrationHistory, EncryptionMigrationState, SecretEncryptionKeyStatus,
    SecretEncryptionStatus,
};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::migration::Progress;
use crate::encryption::key::{self, Requested};

/// How many rotations the history keeps.
const HISTORY: usize = 5;

/// What has to be done.
#[derive(Debug, Clone, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "there is one value at a time")]
pub(super) enum Situation {
    /// The key is in use.
    Idle,
    /// Nothing is encrypted.
    Off,
    /// The first key is in use.
    New(SecretEncryptionKeyStatus),
    /// The spec has another key.
    Changed {
        from: SecretEncryptionKeyStatus,
        to: SecretEncryptionKeyStatus,
    },
    /// This key is being introduced. Another change of the spec waits.
    Rotating(SecretEncryptionKeyStatus),
}

/// How far a rotation is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Phase {
    /// The configuration does not have the key.
    NotDeployed,
    /// Not all API servers read with it; why.
    NotReadByAll(String),
    /// All API servers read with it.
    ReadByAll,
    /// Not all API servers write with it; why.
    NotWrittenByAll(String),
    /// Stored objects are being rewritten.
    Migrating(Progress),
}

/// The new status.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Change {
    pub(super) encryption: SecretEncryptionStatus,
    pub(super) report: Report,
}

/// The condition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Report {
    Absent,
    Is(Status, EncryptionReason, String),
}

/// What the status says of a rotation.
#[derive(Debug, Clone)]
pub(super) struct Rotation {
    status: SecretEncryptionStatus,
    vault: Option<AzureKeyVaultType>,
    now: Timestamp,
}

// === impl Rotation ===

impl Rotation {
    pub(super) fn new(
        status: SecretEncryptionStatus,
        vault: Option<AzureKeyVaultType>,
        now: Timestamp,
    ) -> Self {
        Self { status, vault, now }
    }

    pub(super) fn vault(&self) -> Option<AzureKeyVaultType> {
        self.vault
    }

    pub(super) fn now(&self) -> Timestamp {
        self.now
    }

    pub(super) fn fingerprint(&self, key: &SecretEncryptionKeyStatus) -> String {
        key::fingerprint(key, self.vault)
    }

    /// Compares the keys of the spec with those of the status.
    pub(super) fn situation(&self, keys: Option<Requested>) -> Situation {
        let Some(Requested { active: to, backup }) = keys else {
            return Situation::Off;
        };
        let is_same =
            |key: &SecretEncryptionKeyStatus| self.fingerprint(key) == self.fingerprint(&to);
        let SecretEncryptionStatus {
            active_key,
            target_key,
            history: _,
        } = &self.status;
        match (active_key, target_key) {
            (Some(_), Some(target)) => Situation::Rotating(target.clone()),
            (Some(active), None) if is_same(active) => Situation::Idle,
            (Some(active), None) => Situation::Changed {
                from: active.clone(),
                to,
            },
            // Stored objects may still be encrypted with the key that users keep for reading.
            (None, _) => match backup.filter(|backup| !is_same(backup)) {
                Some(from) => Situation::Changed { from, to },
                None => Situation::New(to),
            },
        }
    }

    /// Forgets a rotation, because encryption is not configured.
    pub(super) fn stop(self) -> Change {
        let ended = self.seconds();
        let mut encryption = self.status;
        if encryption.target_key.take().is_some()
            && let Some(current) = encryption.history.first_mut()
        {
            current.state = EncryptionMigrationState::Interrupted;
            current.completion_time = Some(ended);
        }
        Change {
            encryption,
            report: Report::Absent,
        }
    }

    /// Records the first key.
    pub(super) fn begin(self, key: SecretEncryptionKeyStatus) -> Change {
        let encryption = SecretEncryptionStatus {
            active_key: Some(key),
            target_key: None,
            ..self.status
        };
        let message = "Encryption key initialized".to_owned();
        let report = Report::Is(Status::True, EncryptionReason::Completed, message);
        Change { encryption, report }
    }

    /// Records a new key.
    pub(super) fn start(
        mut self,
        from: SecretEncryptionKeyStatus,
        to: &SecretEncryptionKeyStatus,
    ) -> Change {
        self.status.active_key = Some(from);
        self.status.target_key = Some(to.clone());
        self.proceed(to, &Phase::NotDeployed)
    }

    /// Records how far a rotation is.
    pub(super) fn proceed(mut self, target: &SecretEncryptionKeyStatus, phase: &Phase) -> Change {
        self.open(target, phase.state());
        if *phase == Phase::Migrating(Progress::Done) {
            if let Some(current) = self.status.history.first_mut() {
                current.completion_time = Some(Time(seconds(self.now)));
            }
            self.status.active_key = self.status.target_key.take();
        }
        Change {
            encryption: self.status,
            report: phase.report(),
        }
    }

    /// Sets the state of the entry of this rotation, which is the first one.
    fn open(&mut self, target: &SecretEncryptionKeyStatus, state: EncryptionMigrationState) {
        let to = key::reference(target, self.vault);
        let current = self.status.history.first_mut();
        if let Some(current) = current.filter(|it| it.completion_time.is_none() && it.to == to) {
            current.state = state;
            return;
        }
        let from = self.status.active_key.as_ref();
        let entry = EncryptionMigrationHistory {
            state,
            started_time: self.seconds(),
            completion_time: None,
            from: key::reference(from.unwrap_or(target), self.vault),
            to,
        };
        self.status.history.insert(0, entry);
        self.status.history.truncate(HISTORY);
    }

    fn seconds(&self) -> Time {
        Time(seconds(self.now))
    }
}

/// Times of the API have a resolution of one second.
fn seconds(now: Timestamp) -> Timestamp {
    Timestamp::from_second(now.as_second()).unwrap_or(now)
}

// === impl Phase ===

impl Phase {
    fn state(&self) -> EncryptionMigrationState {
        match self {
            Self::NotDeployed | Self::NotReadByAll(_) => EncryptionMigrationState::ReadOnlyDeploy,
            Self::ReadByAll | Self::NotWrittenByAll(_) => EncryptionMigrationState::WritePromote,
            Self::Migrating(Progress::Running(_) | Progress::Failed(_)) => {
                EncryptionMigrationState::Migrating
            }
            Self::Migrating(Progress::Done) => EncryptionMigrationState::Completed,
        }
    }

    fn report(&self) -> Report {
        let waiting = EncryptionReason::WaitingForConvergence;
        let (status, reason, message) = match self {
            Self::NotDeployed => (
                Status::False,
                EncryptionReason::ReadOnlyRolloutInProgress,
                "Adding the new key to the API servers, for reading".to_owned(),
            ),
            Self::NotReadByAll(why) => (
                Status::False,
                waiting,
                format!("Waiting for all API servers to read with the new key: {why}"),
            ),
            Self::ReadByAll => (
                Status::False,
                EncryptionReason::WritePromotionInProgress,
                "All API servers read with the new key and will write with it".to_owned(),
            ),
            Self::NotWrittenByAll(why) => (
                Status::False,
                waiting,
                format!("Waiting for all API servers to write with the new key: {why}"),
            ),
            Self::Migrating(Progress::Running(what)) => (
                Status::False,
                EncryptionReason::InProgress,
                format!("Rewriting stored objects with the new key: {what}"),
            ),
            Self::Migrating(Progress::Failed(what)) => (
                Status::False,
                EncryptionReason::Failed,
                format!("Failed to rewrite stored objects: {what}"),
            ),
            Self::Migrating(Progress::Done) => (
                Status::True,
                EncryptionReason::Completed,
                "All stored objects are encrypted with the current key".to_owned(),
            ),
        };
        Report::Is(status, reason, message)
    }
}

#[cfg(test)]
mod tests;
