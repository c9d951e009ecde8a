//! What follows from what: tables.

use std::collections::BTreeSet;

use api::hypershift::v1beta1::AwsEndpointServiceStatus;
use jiff::Timestamp;
use kube::api::DynamicObject;
use serde_json::{Value, json};
use support::aws::Error;
use support::ec2::Tags;

use super::refused;
use crate::cluster_ref::Id;
use crate::private_link::aws::cloud::Connection;
use crate::private_link::aws::plan::{self, Connections, OWNER, Problem};
use crate::private_link::aws::provider::{metadata, status};
use crate::private_link::inputs::Owner;

#[test]
fn connections_are_rejected_while_they_are_open() {
    let wait = Connections::Wait;
    let reject = || Connections::Reject(vec!["e".to_owned()]);
    for (state, expected) in [
        ("pendingAcceptance", reject()),
        ("Pending", reject()),
        ("AVAILABLE", reject()),
        ("deleting", wait.clone()),
        ("rejected", wait.clone()),
        ("deleted", wait.clone()),
        ("failed", wait.clone()),
        ("expired", wait.clone()),
    ] {
        let found = Connection {
            endpoint: "e".to_owned(),
            state: state.to_owned(),
        };
        assert_eq!(plan::connections(&[found]), expected, "{state}");
    }
}

#[test]
fn tags_and_principals_follow_the_cluster() {
    let users = [
        ("team", "red"),
        (OWNER, "uid-two"),
        ("kubernetes.io/cluster/mgmt", "shared"),
    ];
    let tags = plan::tags(users.into_iter(), Some("mgmt"), "uid-one");
    let expected = [
        ("kubernetes.io/cluster/mgmt", "owned"),
        (OWNER, "uid-one"),
        ("team", "red"),
    ];
    let expected = expected.map(|(key, value)| (key.to_owned(), value.to_owned()));
    assert_eq!(tags, Tags::from(expected));

    let cluster = crate::facts::fixture::hosted_cluster("aws");
    let mut aws = cluster.spec.platform.aws.unwrap();
    let allowed = "arn:aws:iam::2:root".to_owned();
    aws.additional_allowed_principals = vec![allowed.clone()];
    aws.roles_ref.control_plane_operator_arn = "arn:aws:iam::1:role/path/to/cpo".to_owned();
    let expected = BTreeSet::from([allowed, "arn:aws:iam::1:role/cpo".to_owned()]);
    assert_eq!(plan::principals(&aws), expected);
}

#[test]
fn only_services_with_private_links_have_one() {
    for (name, expected) in [
        ("private-router", Some("private-router")),
        ("kube-apiserver-private", Some("kube-apiserver-private")),
        ("router-clusters-one", Some("private-router")),
        ("router-clusters-two", None),
        ("kube-apiserver", None),
    ] {
        assert_eq!(plan::service_of(name, "clusters-one"), expected, "{name}");
    }
}

#[test]
fn subnets_are_sorted_and_limited() {
    let subnets = |count: usize| (0..count).map(|it| format!("subnet-{}", 20 - it));
    assert_eq!(
        plan::subnets(subnets(2)).unwrap(),
        ["subnet-19", "subnet-20"]
    );
    let doubled = subnets(10).chain(subnets(10));
    assert_eq!(plan::subnets(doubled).unwrap().len(), 10);
    let problem = plan::subnets(subnets(11)).unwrap_err().message();
    assert!(problem.contains("are in 11 subnets"), "{problem}");
    assert_eq!(plan::karpenter_subnets("[\"a\",\"b\"]"), ["a", "b"]);
    assert_eq!(plan::karpenter_subnets("no list"), Vec::<String>::new());
}

#[test]
fn nothing_is_written_at_rest() {
    let owner = Owner {
        id: Id {
            namespace: "clusters".to_owned(),
            name: "one".to_owned(),
        },
        cluster: None,
    };
    let object = |finalizers: &[&str], annotations: Value, subnets: &[&str]| -> DynamicObject {
        serde_json::from_value(json!({
            "metadata": { "name": "private-router", "finalizers": finalizers, "annotations": annotations },
            "spec": { "networkLoadBalancerName": "one", "subnetIDs": subnets },
        }))
        .unwrap()
    };
    let finalizer = "hypershift.openshift.io/hypershift-operator-finalizer";
    let annotated = json!({ "hypershift.openshift.io/cluster": "clusters/one" });
    let subnets = ["a".to_owned()];
    for (found, expected) in [
        (object(&["x", finalizer], annotated.clone(), &["a"]), None),
        (
            object(&["x"], annotated.clone(), &["a"]),
            Some(json!(["x", finalizer])),
        ),
        (
            object(&[finalizer], json!({}), &["a"]),
            Some(json!([finalizer])),
        ),
        (
            object(&[finalizer], annotated, &["b"]),
            Some(json!([finalizer])),
        ),
    ] {
        let patch = metadata(&found, &owner, &subnets);
        let expected = expected.map(|finalizers| {
            json!({
                "metadata": {
                    "finalizers": finalizers,
                    "annotations": { "hypershift.openshift.io/cluster": "clusters/one" },
                },
                "spec": { "subnetIDs": ["a"] },
            })
        });
        assert_eq!(patch, expected);
    }
}

/// The message of a condition has no text of AWS: it may name accounts and resources of the management cluster.
#[test]
fn the_condition_says_what_has_become_of_it() {
    let secret = Error::Refused {
        what: "a call".to_owned(),
        status: 403,
        code: "UnauthorizedOperation".to_owned(),
        message: "arn:aws:sts::999999999999:assumed-role/operator".to_owned(),
    };
    let before = AwsEndpointServiceStatus {
        endpoint_service_name: Some("former".to_owned()),
        endpoint_id: Some("vpce-1".to_owned()),
        ..AwsEndpointServiceStatus::default()
    };
    let now: Timestamp = "2030-01-01T00:00:00Z".parse().unwrap();
    for (made, name, expected) in [
        (
            Ok("service".to_owned()),
            "service",
            (
                "True",
                "AWSSuccess",
                "VPC endpoint service service is available",
            ),
        ),
        (
            Err(Problem::Input("waiting for it".to_owned())),
            "former",
            ("False", "AWSError", "waiting for it"),
        ),
        (
            Err(Problem::Aws(secret)),
            "former",
            (
                "False",
                "AWSError",
                "AWS refuses it (UnauthorizedOperation): the administrator",
            ),
        ),
        (
            Err(Problem::Aws(refused("InvalidPrincipal"))),
            "former",
            (
                "False",
                "AWSError",
                "spec.platform.aws.additionalAllowedPrincipals",
            ),
        ),
    ] {
        let after = status(&before, &made, Some(3), now);
        let condition = &after.conditions[0];
        assert_eq!(condition.type_, "AWSEndpointServiceAvailable");
        let found = (condition.status.as_str(), condition.reason.as_str());
        assert_eq!(found, (expected.0, expected.1));
        assert!(
            condition.message.contains(expected.2),
            "{}",
            condition.message
        );
        assert!(!condition.message.contains("999999999999"));
        assert_eq!(after.endpoint_service_name.as_deref(), Some(name));
        assert_eq!(after.endpoint_id.as_deref(), Some("vpce-1"));
        let later = status(&after, &made, Some(3), Timestamp::now());
        assert_eq!(later, after, "nothing has changed");
    }
}
