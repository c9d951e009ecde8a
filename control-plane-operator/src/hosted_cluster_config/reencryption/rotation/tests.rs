//! Tests of the steps of a rotation.

use serde_json::{Value, json};

use super::*;

fn key(arn: &str) -> SecretEncryptionKeyStatus {
    serde_json::from_value(json!({ "provider": "AWS", "aws": { "arn": arn } })).unwrap()
}

fn now() -> Timestamp {
    "2030-01-02T00:00:00.5Z".parse().unwrap()
}

fn rotation(active: Option<&str>, target: Option<&str>, history: Vec<Value>) -> Rotation {
    let status = SecretEncryptionStatus {
        active_key: active.map(key),
        target_key: target.map(key),
        history: history
            .into_iter()
            .map(|entry| serde_json::from_value(entry).unwrap())
            .collect(),
    };
    Rotation::new(status, None, now())
}

fn entry(to: &str, state: &str, ended: Option<&str>) -> Value {
    let reference =
        |arn: &str| json!({ "provider": "AWS", "fingerprint": key::fingerprint(&key(arn), None) });
    json!({
        "state": state, "startedTime": "2030-01-01T00:00:00Z", "completionTime": ended,
        "from": reference("arn:old"), "to": reference(to),
    })
}

fn requested(active: &str, backup: Option<&str>) -> Requested {
    Requested {
        active: key(active),
        backup: backup.map(key),
    }
}

#[test]
fn situations_follow_spec_and_status() {
    let changed = |from: &str| Situation::Changed {
        from: key(from),
        to: key("arn:a"),
    };
    let new = Situation::New(key("arn:a"));
    let rotating = Situation::Rotating(key("arn:b"));
    let spec = |backup| Some(requested("arn:a", backup));
    for (case, spec, active, target, expected) in [
        ("off", None, Some("arn:a"), Some("arn:b"), Situation::Off),
        ("first key", spec(None), None, None, new.clone()),
        ("backup is equal", spec(Some("arn:a")), None, None, new),
        ("backup", spec(Some("arn:o")), None, None, changed("arn:o")),
        ("same key", spec(None), Some("arn:a"), None, Situation::Idle),
        (
            "later backup",
            spec(Some("arn:o")),
            Some("arn:a"),
            None,
            Situation::Idle,
        ),
        (
            "another key",
            spec(None),
            Some("arn:o"),
            None,
            changed("arn:o"),
        ),
        (
            "rotating",
            spec(None),
            Some("arn:o"),
            Some("arn:b"),
            rotating.clone(),
        ),
        (
            "changed back",
            spec(None),
            Some("arn:a"),
            Some("arn:b"),
            rotating,
        ),
    ] {
        let found = rotation(active, target, Vec::new()).situation(spec);
        assert_eq!(found, expected, "{case}");
    }
}

/// One row for each phase: state, status and reason, and a part of the message.
#[test]
fn phases_are_reported() {
    let why = || "why".to_owned();
    for (phase, state, status, reason, message) in [
        (
            Phase::NotDeployed,
            "ReadOnlyDeploy",
            Status::False,
            "ReadOnlyRolloutInProgress",
            "for reading",
        ),
        (
            Phase::NotReadByAll(why()),
            "ReadOnlyDeploy",
            Status::False,
            "ReEncryptionWaitingForKASConvergence",
            "to read with the new key: why",
        ),
        (
            Phase::ReadByAll,
            "WritePromote",
            Status::False,
            "WritePromotionInProgress",
            "will write",
        ),
        (
            Phase::NotWrittenByAll(why()),
            "WritePromote",
            Status::False,
            "ReEncryptionWaitingForKASConvergence",
            "to write with the new key: why",
        ),
        (
            Phase::Migrating(Progress::Running(why())),
            "Migrating",
            Status::False,
            "ReEncryptionInProgress",
            "why",
        ),
        (
            Phase::Migrating(Progress::Failed(why())),
            "Migrating",
            Status::False,
            "ReEncryptionFailed",
            "why",
        ),
        (
            Phase::Migrating(Progress::Done),
            "Completed",
            Status::True,
            "ReEncryptionCompleted",
            "current key",
        ),
    ] {
        let is_done = state == "Completed";
        let known = rotation(
            Some("arn:old"),
            Some("arn:a"),
            vec![entry("arn:a", "Migrating", None)],
        );
        let Change { encryption, report } = known.proceed(&key("arn:a"), &phase);
        let Report::Is(found, found_reason, text) = report else {
            panic!("{state}: no condition");
        };
        assert_eq!((found, found_reason.as_str()), (status, reason));
        assert!(text.contains(message), "{text}");
        let ended = is_done.then_some("2030-01-02T00:00:00Z");
        let history = json!(encryption.history);
        assert_eq!(history[0]["state"], state);
        assert_eq!(history[0]["startedTime"], "2030-01-01T00:00:00Z");
        assert_eq!(
            history[0].get("completionTime"),
            ended.map(|it| json!(it)).as_ref()
        );
        assert_eq!(encryption.history.len(), 1, "{state}");
        let expected = if is_done {
            ("arn:a", None)
        } else {
            ("arn:old", Some("arn:a"))
        };
        assert_eq!(encryption.active_key, Some(key(expected.0)));
        assert_eq!(encryption.target_key, expected.1.map(key));
    }
}

#[test]
fn rotations_are_recorded_newest_first() {
    let ended = Some("2030-01-01T01:00:00Z");
    let old = |number: usize| entry(&format!("arn:{number}"), "Completed", ended);
    let full: Vec<_> = (0..5).map(old).collect();
    // A rotation back to an earlier key is another one.
    let again = vec![entry("arn:a", "Completed", ended)];
    for (history, length) in [(Vec::new(), 1), (again, 2), (full, 5)] {
        let known = rotation(Some("arn:old"), None, history);
        let change = known.start(key("arn:old"), &key("arn:a"));
        let history = json!(change.encryption.history);
        assert_eq!(history.as_array().unwrap().len(), length);
        let mut expected = entry("arn:a", "ReadOnlyDeploy", None);
        expected["startedTime"] = json!("2030-01-02T00:00:00Z");
        expected.as_object_mut().unwrap().remove("completionTime");
        assert_eq!(history[0], expected);
        assert_eq!(change.encryption.target_key, Some(key("arn:a")));
    }
}

#[test]
fn the_first_key_is_recorded_as_in_use() {
    let change = rotation(None, None, Vec::new()).begin(key("arn:a"));
    assert_eq!(change.encryption.active_key, Some(key("arn:a")));
    let message = "Encryption key initialized".to_owned();
    let expected = Report::Is(Status::True, EncryptionReason::Completed, message);
    assert_eq!(change.report, expected);
}

#[test]
fn a_rotation_is_interrupted_when_encryption_is_not_configured() {
    let history = || vec![entry("arn:a", "Migrating", None)];
    for (target, state) in [(Some("arn:a"), "Interrupted"), (None, "Migrating")] {
        let change = rotation(Some("arn:old"), target, history()).stop();
        assert_eq!(change.report, Report::Absent);
        assert_eq!(change.encryption.active_key, Some(key("arn:old")));
        assert_eq!(change.encryption.target_key, None);
        assert_eq!(json!(change.encryption.history)[0]["state"], state);
    }
}
