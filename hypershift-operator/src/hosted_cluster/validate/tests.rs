//! Wrong input, row by row: which condition it gives, and the words that say what to change.

mod authentication;
mod platforms;

use api::annotations::cluster::SKIP_KAS_CONFLICT_SAN_VALIDATION;
use api::group::Side;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use serde_json::{Value, json};

use super::*;
use crate::hosted_cluster::facts::{AgentNamespace, Found, ReleaseIs};
use crate::hosted_cluster::fixture;
use crate::hosted_cluster::references::references;

/// What is done to a cluster that lacks nothing.
type Change = fn(&mut Facts);

fn facts(platform: &str, change: Change) -> Facts {
    let mut facts = fixture::facts(fixture::hosted_cluster(platform), Side::Private);
    change(&mut facts);
    facts
}

/// Overwrites part of the specification, as a user would with YAML.
fn edit(facts: &mut Facts, path: &str, value: Value) {
    let mut spec = serde_json::to_value(&facts.cluster.spec).unwrap();
    let (parent, field) = path.rsplit_once('/').unwrap();
    spec.pointer_mut(parent).unwrap()[field] = value;
    facts.cluster.spec = serde_json::from_value(spec).unwrap();
}

fn missing(facts: &mut Facts, name: &str) {
    for (reference, found) in &mut facts.referenced {
        if reference.name == name {
            *found = Found::Missing;
        }
    }
}

/// Has the specification name an object that was looked for.
fn refers(facts: &mut Facts, field: &str, name: &str, found: Found) {
    edit(facts, field, json!({ "name": name }));
    let mut all = references(&facts.cluster).into_iter();
    let reference = all.find(|it| it.name == name).unwrap();
    facts.referenced.push((reference, found));
}

/// A Secret with what an audit webhook needs.
fn webhook() -> Found {
    let data = [("webhook-kubeconfig".to_owned(), ByteString::default())];
    Found::Secret(Box::new(Secret {
        data: Some(data.into()),
        ..Secret::default()
    }))
}

/// A Secret or ConfigMap without any key.
fn empty() -> Found {
    Found::Secret(Box::default())
}

#[test]
fn a_certificate_for_a_name_of_the_control_plane_may_be_meant() {
    let facts = facts("none", |it| {
        let certificates = json!({ "apiServer": {
            "audit": { "profile": "Default" },
            "servingCerts": { "namedCertificates": [{ "names": ["*.default.svc"] }] },
        }});
        edit(it, "/configuration", certificates);
        let meant = SKIP_KAS_CONFLICT_SAN_VALIDATION.key().to_owned();
        it.cluster.metadata.annotations = Some([(meant, "true".to_owned())].into());
    });
    assert!(validate(&facts).configuration.is_good());
}

#[test]
fn nothing_speaks_against_a_complete_cluster() {
    for platform in ["aws", "agent", "kubevirt", "none"] {
        for side in [Side::Private, Side::Standard] {
            let facts = fixture::facts(fixture::hosted_cluster(platform), side);
            let verdicts = validate(&facts);
            assert!(verdicts.allow_changes(), "{platform}: {verdicts:?}");
        }
    }
}

#[test]
fn every_rule_of_the_configuration_says_what_to_change() {
    let table: [(&str, &str, Change, &str); 26] = [
        (
            "no signing key",
            "none",
            |it| refers(it, "/serviceAccountSigningKey", "signer", Found::Missing),
            "spec.serviceAccountSigningKey names the Secret clusters/signer, which is not there: create it",
        ),
        (
            "a signing key's Secret without the key",
            "none",
            |it| refers(it, "/serviceAccountSigningKey", "signer", empty()),
            "Secret clusters/signer, which lacks key: add it",
        ),
        (
            "a bundle of authorities without its key",
            "none",
            |it| refers(it, "/additionalTrustBundle", "authorities", empty()),
            "ConfigMap clusters/authorities, which lacks ca-bundle.crt: add it",
        ),
        (
            "a public Route of the API server without a name",
            "aws",
            |it| {
                let way = json!({ "type": "Route" });
                edit(it, "/services/0/servicePublishingStrategy", way);
            },
            "publishes APIServer by a Route without hostname",
        ),
        (
            "a node port of another service on AWS",
            "aws",
            |it| {
                let way = json!({ "type": "LoadBalancer" });
                edit(it, "/services/1/servicePublishingStrategy", way);
            },
            "is published by Route",
        ),
        (
            "no range of addresses",
            "none",
            |it| edit(it, "/networking/clusterNetwork/0/cidr", json!("10.132.0.0")),
            "which is no CIDR: write ADDRESS/BITS",
        ),
        (
            "no address to advertise",
            "none",
            |it| {
                edit(
                    it,
                    "/networking/apiServer",
                    json!({ "advertiseAddress": "here" }),
                )
            },
            "which is no IP address: write one",
        ),
        (
            "no SSH key",
            "none",
            |it| missing(it, "ssh"),
            "spec.sshKey names the Secret clusters/ssh",
        ),
        (
            "no routes",
            "aws",
            |it| it.management.routes = false,
            "by Route, and this management cluster has no routes",
        ),
        (
            "one host name for two",
            "aws",
            |it| {
                let same = json!("ignition.one.example.com");
                edit(
                    it,
                    "/services/0/servicePublishingStrategy/route/hostname",
                    same,
                );
            },
            "APIServer and Ignition the same host name",
        ),
        (
            "a node port out of range",
            "none",
            |it| {
                edit(
                    it,
                    "/services/0/servicePublishingStrategy/nodePort/port",
                    json!(80),
                )
            },
            "choose one from 30000 to 32767",
        ),
        (
            "overlapping networks",
            "none",
            |it| {
                edit(
                    it,
                    "/networking/serviceNetwork/0/cidr",
                    json!("10.133.0.0/16"),
                )
            },
            "overlap: choose ranges that are apart",
        ),
        (
            "two families",
            "none",
            |it| edit(it, "/networking/serviceNetwork/0/cidr", json!("fd00::/112")),
            "are not of the same IP families",
        ),
        (
            "an advertised address inside",
            "none",
            |it| {
                edit(
                    it,
                    "/networking/apiServer",
                    json!({ "advertiseAddress": "172.31.0.1" }),
                )
            },
            "choose one outside of all of the cluster's networks",
        ),
        (
            "a node's address among services",
            "none",
            |it| {
                let address = json!("172.31.4.4");
                edit(
                    it,
                    "/services/0/servicePublishingStrategy/nodePort/address",
                    address,
                );
            },
            "name a node's address",
        ),
        (
            "no UUID",
            "none",
            |it| edit(it, "/clusterID", json!("not-a-uuid")),
            "which is no UUID",
        ),
        (
            "a label that no pod can have",
            "none",
            |it| edit(it, "/labels", json!({ "team": "red and blue" })),
            "spec.labels has team=red and blue",
        ),
        (
            "a certificate for the control plane's own name",
            "none",
            |it| {
                let certificates = json!({
                    "apiServer": {
                        "audit": { "profile": "Default" },
                        "servingCerts": { "namedCertificates": [{ "names": ["*.default.svc"] }] },
                    },
                });
                edit(it, "/configuration", certificates);
            },
            "a name of the control plane's own",
        ),
        (
            "a node port on AWS",
            "aws",
            |it| {
                let way = json!({ "type": "NodePort", "nodePort": { "address": "192.0.2.10" } });
                edit(it, "/services/3/servicePublishingStrategy", way);
            },
            "on AWS Ignition is published by Route",
        ),
        (
            "a private API server on a node port",
            "aws",
            |it| {
                edit(it, "/platform/aws/endpointAccess", json!("Private"));
                let way = json!({ "type": "NodePort", "nodePort": { "address": "192.0.2.10" } });
                edit(it, "/services/0/servicePublishingStrategy", way);
            },
            "by Route or LoadBalancer",
        ),
        (
            "no namespace of agents",
            "agent",
            |it| it.agent_namespace = Some(AgentNamespace::Missing),
            "Namespace agents does not exist: create it",
        ),
        (
            "a namespace of agents that does not allow the cluster's (T11)",
            "agent",
            |it| it.agent_namespace = Some(AgentNamespace::Refused),
            "Namespace agents does not allow HostedClusters of namespace clusters to use its Agents: have its owner add \
             clusters to the Namespace's annotation hypershift.openshift.io/agent-consumer-namespaces",
        ),
        (
            "a Secret with the name of the sidecar's kubeconfig (T09)",
            "none",
            |it| refers(it, "/auditWebhook", "kube-apiserver-proxy", webhook()),
            "spec.auditWebhook names the Secret clusters/kube-apiserver-proxy, and Secret kube-apiserver-proxy of the \
             control plane's namespace clusters-one is not a copy of it but an object of the control plane: create the \
             Secret under another name",
        ),
        (
            "a Secret with the name of an object that is not a copy (T09)",
            "none",
            |it| {
                refers(it, "/auditWebhook", "webhook", webhook());
                it.occupied = it.referenced.iter().map(|(it, _)| it.clone()).collect();
                it.occupied.retain(|it| it.name == "webhook");
            },
            "spec.auditWebhook names the Secret clusters/webhook, and Secret webhook of the control plane's namespace",
        ),
        (
            "a label that policies select by (T10)",
            "none",
            |it| {
                let label = "hypershift.openshift.io/need-management-kas-access";
                edit(it, "/labels", json!({ label: "true" }));
            },
            "spec.labels has hypershift.openshift.io/need-management-kas-access, by which Services and NetworkPolicies",
        ),
        (
            "a platform without its section",
            "aws",
            |it| edit(it, "/platform/aws", Value::Null),
            "fill in spec.platform.aws",
        ),
    ];
    for (name, platform, change, expected) in table {
        let verdicts = validate(&facts(platform, change));
        assert!(!verdicts.allow_changes(), "{name}: what runs is left alone");
        let verdict = verdicts.configuration;
        let Verdict::Bad { reason, message } = verdict else {
            unreachable!("{name}: {verdict:?}");
        };
        assert_eq!(reason, "InvalidConfiguration", "{name}");
        assert!(message.contains(expected), "{name}: {message}");
    }
}

#[test]
fn a_release_that_cannot_be_had_gives_its_condition_and_nothing_is_made() {
    let unreadable: Change = |it| {
        let error = payload::Error::new(
            fixture::RELEASE,
            payload::Reason::NotFound,
            "there is no such image",
        );
        it.release = ReleaseIs::Unreadable(error);
    };
    let old: Change = |it| {
        let mut release = fixture::release();
        release.version = "4.11.0".parse().unwrap();
        it.release = ReleaseIs::Read(release.into());
    };
    let no_secret: Change = |it| it.release = ReleaseIs::NoPullSecret;
    for (name, change, reason, words) in [
        (
            "not there",
            unreadable,
            "InvalidImage",
            "there is no such image",
        ),
        ("too old", old, "InvalidImage", "oldest supported"),
        (
            "no pull secret",
            no_secret,
            "SecretNotFound",
            "clusters/pull",
        ),
    ] {
        let verdicts = validate(&facts("none", change));
        assert!(!verdicts.allow_changes(), "{name}");
        let Verdict::Bad {
            reason: found,
            message,
        } = verdicts.release
        else {
            unreachable!("{name}");
        };
        assert_eq!(found, reason, "{name}");
        assert!(message.contains(words), "{name}: {message}");
    }
}

#[test]
fn an_upgrade_waits_for_the_guest_unless_it_is_forced() {
    let upgrading = |change: fn(&mut HostedControlPlaneParts)| {
        let mut facts = facts("none", |_| {});
        let mut parts = HostedControlPlaneParts::default();
        change(&mut parts);
        if let Some((key, value)) = parts.annotation {
            facts.cluster.metadata.annotations = Some([(key.to_owned(), value.to_owned())].into());
        }
        let mut spec = crate::hosted_cluster::build::control_plane_spec(&facts);
        spec.release_image = parts.runs.to_owned();
        let mut control_plane = api::hypershift::v1beta1::HostedControlPlane::new("one", spec);
        control_plane.status = serde_json::from_value(json!({
            "ready": true,
            "initialized": true,
            "version": parts.version,
            "conditions": [{
                "type": "ClusterVersionUpgradeable",
                "status": parts.upgradeable,
                "reason": "AdminAckRequired",
                "message": "an API goes away",
                "lastTransitionTime": "2030-01-31T12:00:00Z",
            }],
        }))
        .unwrap();
        facts.control_plane = Some(control_plane);
        gate(&facts)
    };
    assert!(
        matches!(upgrading(|_| {}), Gate::Shut(message) if message.contains("an API goes away"))
    );
    assert_eq!(upgrading(|it| it.upgradeable = "True"), Gate::Open);
    assert_eq!(upgrading(|it| it.version = "4.20.0"), Gate::Open, "a patch");
    assert_eq!(
        upgrading(|it| it.runs = fixture::RELEASE),
        Gate::Open,
        "nothing changes"
    );
    let key = "hypershift.openshift.io/force-upgrade-to";
    assert_eq!(
        upgrading(|it| it.annotation =
            Some(("hypershift.openshift.io/force-upgrade-to", fixture::RELEASE))),
        Gate::Open,
        "{key}"
    );
    assert!(matches!(
        upgrading(
            |it| it.annotation = Some(("hypershift.openshift.io/force-upgrade-to", "another"))
        ),
        Gate::Shut(_)
    ));
}

/// What differs between the cases of an upgrade.
struct HostedControlPlaneParts {
    runs: &'static str,
    version: &'static str,
    upgradeable: &'static str,
    annotation: Option<(&'static str, &'static str)>,
}

impl Default for HostedControlPlaneParts {
    fn default() -> Self {
        Self {
            runs: "registry.example.com/releases/payload:4.19.7",
            version: "4.19.7",
            upgradeable: "False",
            annotation: None,
        }
    }
}
