//! The status of a backup, and the condition of the control plane about it. Pure.

use api::conditions::ClusterCondition;
use api::hypershift::v1beta1::etcd::backup::{AwsEtcdBackupKey, AzureEtcdBackupKey};
use api::hypershift::v1beta1::hcp_etcd_backup::{
    HcpEtcdBackupEncryption, HcpEtcdBackupStatus, HcpEtcdBackupStorage,
};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use serde_json::{Value, json};

/// The condition of an HCPEtcdBackup.
pub(super) const COMPLETED: &str = "BackupCompleted";
/// The longest message, in characters: a condition takes 32768 bytes.
const LONGEST_MESSAGE: usize = 8192;

/// Why a backup is in its state: the reason of its condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reason {
    BackupSucceeded,
    BackupFailed,
    /// Another backup of the same control plane was in progress.
    BackupRejected,
    BackupInProgress,
    /// It starts when etcd is healthy.
    EtcdUnhealthy,
}

/// The state of a backup.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Report {
    pub(super) reason: Reason,
    pub(super) message: String,
}

/// The state of a backup from its status. A final one does not change any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    Unfinished,
    Succeeded,
    /// Failed or rejected.
    Failed,
}

/// The state of a backup with this status.
pub(super) fn state(status: Option<&HcpEtcdBackupStatus>) -> State {
    let conditions = status.map(|it| it.conditions.as_slice());
    let mut conditions = conditions.unwrap_or_default().iter();
    let Some(completed) = conditions.find(|it| it.type_ == COMPLETED) else {
        return State::Unfinished;
    };
    if completed.status == "True" {
        return State::Succeeded;
    }
    let failed = [Reason::BackupFailed, Reason::BackupRejected];
    if failed.iter().any(|it| it.as_str() == completed.reason) {
        return State::Failed;
    }
    State::Unfinished
}

/// The status of a backup after a pass.
pub(super) fn status(
    before: Option<&HcpEtcdBackupStatus>,
    report: &Report,
    generation: Option<i64>,
    now: Timestamp,
) -> HcpEtcdBackupStatus {
    let before = before.cloned().unwrap_or_default();
    let completed = condition(COMPLETED, report, generation, now);
    HcpEtcdBackupStatus {
        conditions: support::conditions::with(&before.conditions, completed),
        ..before
    }
}

/// The condition of the control plane about its last backup. One that was rejected, or waits, is not about a backup that
/// was begun: the condition is about the other one.
pub(super) fn of_control_plane(
    conditions: &[Condition],
    report: &Report,
    generation: Option<i64>,
    now: Timestamp,
) -> Option<Condition> {
    match report.reason {
        Reason::BackupRejected | Reason::EtcdUnhealthy => return None,
        Reason::BackupSucceeded | Reason::BackupFailed | Reason::BackupInProgress => {}
    }
    let about = ClusterCondition::EtcdBackupSucceeded.as_str();
    let desired = condition(about, report, generation, now);
    let after = support::conditions::with(conditions, desired);
    let find = |all: &[Condition]| all.iter().find(|it| it.type_ == about).cloned();
    let after = find(&after);
    if after == find(conditions) {
        None
    } else {
        after
    }
}

/// The key that encrypts a backup, as its specification says.
pub(super) fn encryption(storage: &HcpEtcdBackupStorage) -> Option<HcpEtcdBackupEncryption> {
    let aws = storage.s3.as_ref().and_then(|it| it.kms_key_arn.clone());
    let azure = storage.azure_blob.as_ref();
    let azure = azure.and_then(|it| it.encryption_key_url.clone());
    if aws.is_none() && azure.is_none() {
        return None;
    }
    Some(HcpEtcdBackupEncryption {
        aws: aws.map(|kms_key_arn| AwsEtcdBackupKey { kms_key_arn }),
        azure: azure.map(|encryption_key_url| AzureEtcdBackupKey { encryption_key_url }),
    })
}

/// What is written to the status, if it is another one.
pub(super) fn change(
    before: Option<&HcpEtcdBackupStatus>,
    after: &HcpEtcdBackupStatus,
) -> Option<Value> {
    (before != Some(after)).then(|| json!({ "status": after }))
}

fn condition(type_: &str, report: &Report, generation: Option<i64>, now: Timestamp) -> Condition {
    Condition {
        type_: type_.to_owned(),
        status: report.reason.status().to_owned(),
        reason: report.reason.as_str().to_owned(),
        message: report.message.chars().take(LONGEST_MESSAGE).collect(),
        observed_generation: generation,
        last_transition_time: Time(now),
    }
}

// === impl Report ===

impl Report {
    pub(super) fn new(reason: Reason, message: impl Into<String>) -> Self {
        Self {
            reason,
            message: message.into(),
        }
    }
}

// === impl Reason ===

impl Reason {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::BackupSucceeded => "BackupSucceeded",
            Self::BackupFailed => "BackupFailed",
            Self::BackupRejected => "BackupRejected",
            Self::BackupInProgress => "BackupInProgress",
            Self::EtcdUnhealthy => "EtcdUnhealthy",
        }
    }

    fn status(self) -> &'static str {
        match self {
            Self::BackupSucceeded => "True",
            Self::BackupFailed
            | Self::BackupRejected
            | Self::BackupInProgress
            | Self::EtcdUnhealthy => "False",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [(Reason, State); 5] = [
        (Reason::BackupSucceeded, State::Succeeded),
        (Reason::BackupFailed, State::Failed),
        (Reason::BackupRejected, State::Failed),
        (Reason::BackupInProgress, State::Unfinished),
        (Reason::EtcdUnhealthy, State::Unfinished),
    ];

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn only_final_reasons_end_a_backup() {
        assert_eq!(state(None), State::Unfinished);
        assert_eq!(
            state(Some(&HcpEtcdBackupStatus::default())),
            State::Unfinished
        );
        for (reason, expected) in ALL {
            let report = Report::new(reason, "a message");
            let status = status(None, &report, Some(1), at(1));
            assert_eq!(state(Some(&status)), expected, "{reason:?}");
            let condition = json!(status.conditions[0]);
            let succeeded = reason == Reason::BackupSucceeded;
            let expected = if succeeded { "True" } else { "False" };
            assert_eq!(condition["status"], expected, "{reason:?}");
        }
    }

    #[test]
    fn a_status_is_written_only_if_it_changes() {
        let waiting = Report::new(Reason::EtcdUnhealthy, "2/3");
        let first = status(None, &waiting, Some(1), at(1));
        assert!(change(None, &first).is_some());
        let same = status(Some(&first), &waiting, Some(1), at(9));
        assert_eq!(change(Some(&first), &same), None);
        let other = Report::new(Reason::EtcdUnhealthy, "1/3");
        let other = status(Some(&first), &other, Some(1), at(9));
        assert!(change(Some(&first), &other).is_some());
    }

    #[test]
    fn the_control_plane_reports_backups_that_were_begun() {
        for (reason, expected) in [
            (Reason::BackupSucceeded, true),
            (Reason::BackupFailed, true),
            (Reason::BackupInProgress, true),
            (Reason::BackupRejected, false),
            (Reason::EtcdUnhealthy, false),
        ] {
            let report = Report::new(reason, "a message");
            let first = of_control_plane(&[], &report, Some(1), at(1));
            assert_eq!(first.is_some(), expected, "{reason:?}");
            let Some(first) = first else {
                continue;
            };
            assert_eq!(first.type_, "EtcdBackupSucceeded");
            assert_eq!(first.reason, reason.as_str());
            let again = of_control_plane(&[first], &report, Some(1), at(9));
            assert_eq!(again, None, "{reason:?}");
        }
    }

    #[test]
    fn the_key_of_the_specification_is_reported() {
        let storage =
            |storage: Value| -> HcpEtcdBackupStorage { serde_json::from_value(storage).unwrap() };
        let credentials = json!({ "name": "store" });
        let arn = "arn:aws:kms:eu-west-1:123456789012:key/k";
        let url = "https://vault.vault.azure.net/keys/k";
        let mut s3 = json!({ "storageType": "S3", "s3": {
            "bucket": "b", "region": "r", "keyPrefix": "p", "credentials": credentials,
        }});
        assert_eq!(encryption(&storage(s3.clone())), None);
        s3["s3"]["kmsKeyARN"] = json!(arn);
        let found = json!(encryption(&storage(s3)));
        assert_eq!(found, json!({ "aws": { "kmsKeyARN": arn } }));
        let azure = json!({ "storageType": "AzureBlob", "azureBlob": {
            "container": "b", "storageAccount": "a", "keyPrefix": "p", "credentials": credentials,
            "encryptionKeyURL": url,
        }});
        let found = json!(encryption(&storage(azure)));
        assert_eq!(found, json!({ "azure": { "encryptionKeyURL": url } }));
    }
}
