//! The status at each stage of the life of a cluster.

use api::group::CapiTypes;
use api::hypershift::v1beta1::HostedControlPlane;
use serde_json::json;

use super::*;
use crate::facts::fixture;
use crate::facts::{InfraPolicy, ReleaseIs};
use crate::hosted_cluster::validate::validate;

fn status_of(facts: &Facts, failures: &[String]) -> Value {
    let findings = validate(facts);
    let outcome = Outcome {
        facts,
        findings: &findings,
        pause: &Pause::Active,
        failures,
        now: "2030-01-31T12:00:00.5Z".parse().unwrap(),
    };
    status(&outcome)
}

fn condition(status: &Value, about: &str) -> (String, String, String) {
    let conditions = status["conditions"].as_array().unwrap();
    let found = conditions.iter().find(|it| it["type"] == about);
    let found = found.unwrap_or_else(|| unreachable!("no {about} in {status}"));
    let text = |field: &str| found[field].as_str().unwrap().to_owned();
    (text("status"), text("reason"), text("message"))
}

fn facts() -> Facts {
    fixture::facts(fixture::hosted_cluster("none"), CapiTypes::Private)
}

/// A control plane with this condition.
fn with_control_plane(facts: &mut Facts, status: Value) {
    let spec = crate::hosted_cluster::build::control_plane_spec(facts);
    let mut control_plane = HostedControlPlane::new("one", spec);
    control_plane.status = serde_json::from_value(status).unwrap();
    facts.control_plane = Some(control_plane);
}

fn available(history: &str) -> Value {
    let said = |about: &str, status: &str| {
        json!({
            "type": about,
            "status": status,
            "reason": "AsExpected",
            "message": "",
            "lastTransitionTime": "2030-01-31T11:00:00Z",
        })
    };
    json!({
        "ready": true,
        "initialized": true,
        "controlPlaneEndpoint": { "host": "api.one.example.com", "port": 6443 },
        "versionStatus": {
            "desired": { "version": "4.20.1", "image": fixture::RELEASE },
            "history": [{
                "state": history,
                "startedTime": "2030-01-31T11:00:00Z",
                "completionTime": null,
                "version": "4.20.1",
                "image": fixture::RELEASE,
                "verified": false,
            }],
            "observedGeneration": 1,
            "availableUpdates": null,
        },
        "conditions": [said("Available", "True"), said("ClusterVersionFailing", "False"), said("EtcdAvailable", "True")],
    })
}

#[test]
fn status_before_the_control_plane_exists() {
    let status = status_of(&facts(), &[]);
    let (is, reason, message) = condition(&status, "Available");
    assert_eq!(
        (is.as_str(), reason.as_str()),
        ("False", "WaitingForAvailable")
    );
    assert_eq!(message, "Creating the control plane");
    assert_eq!(condition(&status, "Progressing").0, "True");
    assert_eq!(condition(&status, "EtcdAvailable").1, "StatusUnknown");
    assert_eq!(status["version"]["history"][0]["state"], "Partial");
    assert_eq!(
        status["version"]["history"][0]["startedTime"],
        "2030-01-31T12:00:00Z"
    );
    assert_eq!(status["version"]["availableUpdates"], Value::Null);
    assert_eq!(status["payloadArch"], "AMD64");
}

#[test]
fn findings_also_show_in_available_and_progressing() {
    let mut facts = facts();
    facts.release = ReleaseIs::NoPullSecret;
    let status = status_of(&facts, &[]);
    assert_eq!(condition(&status, "ValidReleaseImage").1, "SecretNotFound");
    assert_eq!(condition(&status, "Available").1, "SecretNotFound");
    let (is, reason, message) = condition(&status, "Progressing");
    assert_eq!((is.as_str(), reason.as_str()), ("False", "Blocked"));
    assert!(message.contains("clusters/pull"), "{message}");
}

/// Check T02.
#[test]
fn a_release_in_download_is_unknown_and_changes_nothing() {
    let mut facts = facts();
    let reading = |facts: &mut Facts| {
        let reason = payload::Reason::InProgress;
        let error = payload::Error::new(fixture::RELEASE, reason, "it is read");
        facts.release = ReleaseIs::Unreadable(error);
    };
    reading(&mut facts);
    let (is, reason, message) = condition(&status_of(&facts, &[]), "ValidReleaseImage");
    assert_eq!((&*is, &*reason), ("Unknown", "ReadInProgress"));
    assert!(message.contains(fixture::RELEASE), "{message}");
    assert!(!validate(&facts).allow_changes());
}

#[test]
fn control_plane_conditions_are_copied() {
    let mut facts = facts();
    with_control_plane(&mut facts, available("Completed"));
    let status = status_of(&facts, &[]);
    assert_eq!(condition(&status, "Available").0, "True");
    assert_eq!(condition(&status, "Progressing").0, "False");
    assert_eq!(condition(&status, "ClusterVersionSucceeding").0, "True");
    assert_eq!(condition(&status, "EtcdAvailable").0, "True");
    let endpoint = json!({ "host": "api.one.example.com", "port": 6443 });
    assert_eq!(status["controlPlaneEndpoint"], endpoint, "a node port");
    with_control_plane(&mut facts, available("Partial"));
    assert_eq!(condition(&status_of(&facts, &[]), "Progressing").0, "True");
}

#[test]
fn pools_that_cannot_be_migrated_live_are_named() {
    let about = "KubeVirtNodesLiveMigratable";
    let mut facts = fixture::facts(fixture::hosted_cluster("kubevirt"), CapiTypes::Private);
    for (pools, expected) in [
        (vec![], None),
        (vec![("a", true)], Some(("True", "AsExpected", ""))),
        (
            vec![("a", false), ("b", true), ("c", false)],
            Some(("False", "KubeVirtNodesNotLiveMigratable", ": a, c")),
        ),
    ] {
        let pools = pools.into_iter().map(|(name, is)| (name.to_owned(), is));
        facts.live_migration = Some(pools.collect());
        let status = status_of(&facts, &[]);
        match expected {
            None => assert!(!status.to_string().contains(about)),
            Some((is, reason, message)) => {
                let found = condition(&status, about);
                assert_eq!((&*found.0, &*found.1), (is, reason));
                assert!(found.2.ends_with(message), "{}", found.2);
            }
        }
        facts.cluster.status = serde_json::from_value(status).unwrap();
    }
    facts.live_migration = None;
    assert_eq!(condition(&status_of(&facts, &[]), about).0, "False");
}

#[test]
fn the_policy_of_machines_elsewhere_is_reported_until_it_is_applied() {
    let about = "ValidKubeVirtInfraNetworkPolicyRBAC";
    let mut cluster = fixture::hosted_cluster("kubevirt");
    let kubevirt = json!({ "generateID": "x7k2p", "credentials": {
        "infraKubeConfigSecret": { "name": "infra", "key": "kubeconfig" },
        "infraNamespace": "machines",
    }});
    cluster.spec.platform.kubevirt = serde_json::from_value(kubevirt).unwrap();
    let mut facts = fixture::facts(cluster, CapiTypes::Private);
    let forbidden = || "it responds with status 403".to_owned();
    for (policy, expected) in [
        (None, None),
        (
            Some(InfraPolicy::WithoutNetworks(forbidden())),
            Some(("False", "InfraClusterNetworkReadFailed")),
        ),
        (
            Some(InfraPolicy::Refused(forbidden())),
            Some(("False", "InfraClusterNetworkPolicyCreateFailed")),
        ),
        // Such as while the cluster is paused.
        (
            None,
            Some(("False", "InfraClusterNetworkPolicyCreateFailed")),
        ),
        (Some(InfraPolicy::Applied), Some(("True", "AsExpected"))),
    ] {
        facts.infra_policy = policy;
        let status = status_of(&facts, &[]);
        match expected {
            None => assert!(!status.to_string().contains(about)),
            Some((is, reason)) => {
                let found = condition(&status, about);
                assert_eq!((&*found.0, &*found.1), (is, reason));
            }
        }
        facts.cluster.status = serde_json::from_value(status).unwrap();
    }
}

#[test]
fn routes_publish_the_api_server_on_port_443() {
    let mut facts = fixture::facts(fixture::hosted_cluster("aws"), CapiTypes::Standard);
    with_control_plane(&mut facts, available("Completed"));
    assert_eq!(status_of(&facts, &[])["controlPlaneEndpoint"]["port"], 443);
}

#[test]
fn the_same_facts_give_the_same_status_at_any_time() {
    let mut facts = facts();
    let first = status_of(&facts, &[]);
    facts.cluster.status = serde_json::from_value(first.clone()).unwrap();
    let findings = validate(&facts);
    let later = Outcome {
        facts: &facts,
        findings: &findings,
        pause: &Pause::Active,
        failures: &[],
        now: "2031-01-31T12:00:00Z".parse().unwrap(),
    };
    assert_eq!(status(&later), first);
}

#[test]
fn failures_and_pauses_are_reported() {
    let facts = facts();
    let failed = status_of(
        &facts,
        &["operators: cannot apply Deployment clusters-one/cluster-api".to_owned()],
    );
    let (is, reason, message) = condition(&failed, "ReconciliationSucceeded");
    assert_eq!(
        (is.as_str(), reason.as_str()),
        ("False", "ReconciliationError")
    );
    assert!(message.contains("cluster-api"));
    let findings = validate(&facts);
    let outcome = Outcome {
        facts: &facts,
        findings: &findings,
        pause: &Pause::Indefinite,
        failures: &[],
        now: "2030-01-31T12:00:00Z".parse().unwrap(),
    };
    assert_eq!(
        condition(&status(&outcome), "ReconciliationActive").1,
        "ReconciliationPaused"
    );
}

#[test]
fn an_unavailable_deployment_is_reported_with_its_replicas() {
    let mut facts = facts();
    with_control_plane(&mut facts, available("Completed"));
    for (replicas, available, expected) in [(None, None, "0/1"), (Some(3), Some(1), "1/3")] {
        let deployment = json!({
            "spec": { "replicas": replicas, "selector": {}, "template": {} },
            "status": { "availableReplicas": available },
        });
        let deployment = serde_json::from_value(deployment).unwrap();
        facts.deployments = [("cluster-api".to_owned(), deployment)].into();
        let status = status_of(&facts, &[]);
        let (_, reason, message) = condition(&status, "Degraded");
        assert_eq!(reason, "UnavailableReplicas");
        let expected =
            format!("Waiting for Deployment cluster-api to become available ({expected})");
        assert_eq!(message, expected);
    }
}
