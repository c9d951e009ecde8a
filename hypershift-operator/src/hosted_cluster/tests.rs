//! Names that other systems depend on.

use super::*;

#[test]
fn the_namespace_of_a_control_plane_has_no_dots() {
    let id = Id {
        namespace: "clusters".to_owned(),
        name: "a.example.com".to_owned(),
    };
    assert_eq!(id.control_plane_namespace(), "clusters-a-example-com");
    assert_eq!(id.to_string(), "clusters/a.example.com");
}

#[test]
fn the_log_message_is_the_one_that_alerts_look_for() {
    assert_eq!(INVALID_STATE, "Invalid annotation state detected");
}

#[test]
fn what_is_left_of_a_slim_cluster_is_its_own_condition() {
    let cluster = json!({
        "metadata": { "name": "one", "managedFields": [{ "manager": "m" }] },
        "spec": { "release": "x" },
        "status": { "conditions": [{ "type": "Available" }, { "type": "PrivateCAPITypes", "status": "True" }] },
    });
    let slim = slim(serde_json::from_value(cluster).unwrap());
    assert_eq!(slim.metadata.managed_fields, None);
    let expected =
        json!({ "status": { "conditions": [{ "type": "PrivateCAPITypes", "status": "True" }] } });
    assert_eq!(slim.data, expected);
}

#[test]
fn a_condition_that_another_operator_has_overwritten_is_due_again() {
    let verdict = Verdict {
        owner: crate::scope::Owner::New,
        mark: None,
        invalid: None,
    };
    let cluster = |status: &str, reason: &str, message: &str| {
        let condition = json!({ "type": "PrivateCAPITypes", "status": status, "reason": reason, "message": message });
        serde_json::from_value(json!({ "metadata": {}, "status": { "conditions": [condition] } }))
            .unwrap()
    };
    let own = due(
        Scope::Private,
        &cluster("False", "LegacyTypes", ""),
        verdict,
    )
    .unwrap();
    let object = own.object(None);
    let text = |field: &str| {
        object["status"]["conditions"][0][field]
            .as_str()
            .unwrap()
            .to_owned()
    };
    let told = cluster(&text("status"), &text("reason"), &text("message"));
    assert_eq!(due(Scope::Private, &told, verdict), None);
    assert_eq!(due(Scope::Legacy, &told, verdict), None);
}
