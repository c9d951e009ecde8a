//! What is written to the status.

use std::cell::RefCell;

use serde_json::Value;
use tokio::time::Instant;

use super::*;

fn hcp(status: &Value) -> HostedControlPlane {
    let text = include_str!(
        "../../../../control-plane-component/tests/data/base/hosted-control-plane.yaml"
    );
    let mut hcp: Value = serde_saphyr::from_str(text).unwrap();
    hcp["status"] = json!({
        "ready": true,
        "initialized": true,
        "externalManagedControlPlane": true,
    });
    for (field, value) in status.as_object().into_iter().flatten() {
        hcp["status"][field] = value.clone();
    }
    serde_json::from_value(hcp).unwrap()
}

fn now() -> Time {
    Time("2030-01-31T12:00:00Z".parse().unwrap())
}

fn api_server_available(status: &str) -> Value {
    json!({ "conditions": [{
        "type": "KubeAPIServerAvailable", "status": status, "reason": "r", "message": "",
        "lastTransitionTime": "2030-01-01T00:00:00Z",
    }] })
}

#[test]
fn conditions_that_were_not_evaluated_stay_as_they_are() {
    let kms = json!({
        "type": "ValidAWSKMSConfig", "status": "True", "reason": "AsExpected", "message": "",
        "lastTransitionTime": "2030-01-01T00:00:00Z",
    });
    let other = json!({
        "type": "Available", "status": "True", "reason": "AsExpected", "message": "",
        "lastTransitionTime": "2030-01-01T00:00:00Z",
    });
    let group = json!({ "aws": { "defaultWorkerSecurityGroupID": "sg-1" } });
    let before = hcp(&json!({ "conditions": [kms, other], "platform": group }));
    let identity = Evaluation::yes(Type::ValidAwsIdentityProvider);
    let written = status(&before, vec![identity.clone()], None, &now()).unwrap();
    let conditions = written["conditions"].as_array().unwrap();
    let types: Vec<_> = conditions.iter().map(|it| &it["type"]).collect();
    assert_eq!(types, ["ValidAWSIdentityProvider", "ValidAWSKMSConfig"]);
    assert_eq!(conditions[1], kms);
    assert_eq!(written["platform"], group);
    // The same again is not written.
    let mut after = before.clone();
    let written = serde_json::from_value(written["conditions"].clone()).unwrap();
    after.status.as_mut().unwrap().conditions = written;
    let later = Time("2030-01-31T13:00:00Z".parse().unwrap());
    assert_eq!(status(&after, vec![identity], None, &later), None);
}

#[test]
fn the_group_is_written_once_it_is_known() {
    let written = status(
        &hcp(&json!({})),
        Vec::new(),
        Some("sg-1".to_owned()),
        &now(),
    );
    let written = written.unwrap();
    let id = &written["platform"]["aws"]["defaultWorkerSecurityGroupID"];
    assert_eq!(*id, "sg-1");
    assert_eq!(status(&hcp(&json!({})), Vec::new(), None, &now()), None);
}

#[test]
fn only_clusters_on_aws_with_an_api_server_are_asked_about() {
    let mut elsewhere = hcp(&json!({}));
    assert!(is_on_aws(&elsewhere));
    elsewhere.spec.platform.type_ = PlatformType::None;
    assert!(!is_on_aws(&elsewhere));
    for (status, expected) in [("True", true), ("False", false)] {
        let hcp = hcp(&api_server_available(status));
        assert_eq!(is_api_server_available(&hcp), expected, "{status}");
    }
    assert!(!is_api_server_available(&hcp(&json!({}))));
}

#[tokio::test(start_paused = true)]
async fn a_pause_ends_with_a_deletion_or_an_api_server() {
    let mut deleted = hcp(&json!({}));
    deleted.metadata.deletion_timestamp = Some(now());
    for (name, after, ends) in [
        ("deleted", deleted, true),
        ("available", hcp(&api_server_available("True")), true),
        ("another change", hcp(&json!({ "ready": false })), false),
    ] {
        let current = RefCell::new(hcp(&json!({})));
        let counter = watch::Sender::new(0);
        let mut changes = counter.subscribe();
        let read = || Some(current.borrow().clone());
        let change = async {
            *current.borrow_mut() = after;
            counter.send_replace(1);
        };
        let begin = Instant::now();
        tokio::join!(rest(PAUSES.1, &read, &mut changes), change);
        assert_eq!(begin.elapsed() < PAUSES.1, ends, "{name}");
    }
}
