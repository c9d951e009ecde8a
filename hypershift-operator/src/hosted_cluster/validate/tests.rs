//! Invalid input, row by row: the condition, and the part of its message that says what to change.

mod authentication;
mod azure;
mod ibm;
mod platforms;
mod preview;

use api::annotations::cluster::SKIP_KAS_CONFLICT_SAN_VALIDATION;
use api::group::CapiTypes;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use serde_json::{Value, json};

use super::*;
use crate::facts::fixture;
use crate::facts::references::references;
use crate::facts::{AgentNamespace, Found, ReleaseIs};

/// Changes a valid cluster.
type Change = fn(&mut Facts);

fn facts(platform: &str, change: Change) -> Facts {
    let mut facts = fixture::facts(fixture::hosted_cluster(platform), CapiTypes::Private);
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

/// Adds a reference to an object to the specification.
fn refers(facts: &mut Facts, field: &str, name: &str, found: Found) {
    edit(facts, field, json!({ "name": name }));
    let mut all = references(&facts.cluster).into_iter();
    let reference = all.find(|it| it.name == name).unwrap();
    facts.referenced.push((reference, found));
}

/// A Secret for an audit webhook.
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
fn an_annotation_allows_conflicting_certificate_names() {
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
fn a_complete_cluster_is_valid() {
    for platform in [
        "aws", "azure", "agent", "ibmcloud", "kubevirt", "none", "powervs",
    ] {
        for types in [CapiTypes::Private, CapiTypes::Standard] {
            let facts = fixture::facts(fixture::hosted_cluster(platform), types);
            let findings = validate(&facts);
            assert!(findings.allow_changes(), "{platform}: {findings:?}");
            // Also on platforms that need none.
            assert_eq!(findings.credentials, Finding::Good, "{platform}");
        }
    }
}

#[test]
fn every_invalid_field_is_reported_with_a_fix() {
    let table: [(&str, &str, Change, &str); 26] = [
        (
            "no signing key",
            "none",
            |it| refers(it, "/serviceAccountSigningKey", "signer", Found::Missing),
            "spec.serviceAccountSigningKey names Secret clusters/signer, which does not exist: create it",
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
            "which is not a valid CIDR (for example 10.0.0.0/16)",
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
            "which is not a valid IP address",
        ),
        (
            "no SSH key",
            "none",
            |it| missing(it, "ssh"),
            "spec.sshKey names Secret clusters/ssh",
        ),
        (
            "a Route without a router",
            "aws",
            |it| it.management.routes = false,
            "by Route, and the management cluster does not serve Routes",
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
            "has the same hostname ignition.one.example.com for APIServer and Ignition",
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
            "use a port from 30000 to 32767",
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
            "overlap: use disjoint ranges",
        ),
        (
            "two families",
            "none",
            |it| edit(it, "/networking/serviceNetwork/0/cidr", json!("fd00::/112")),
            "have different IP families",
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
            "use an address outside the cluster's networks",
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
            "use the address of a node",
        ),
        (
            "no UUID",
            "none",
            |it| edit(it, "/clusterID", json!("not-a-uuid")),
            "which is not a valid UUID",
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
            "which is a name of the control plane",
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
            "spec.auditWebhook names Secret clusters/kube-apiserver-proxy, and the name is used by another Secret of \
             control plane namespace clusters-one: create the Secret with another name",
        ),
        (
            "a Secret with the name of an object that is not a copy (T09)",
            "none",
            |it| {
                refers(it, "/auditWebhook", "webhook", webhook());
                it.occupied = it.referenced.iter().map(|(it, _)| it.clone()).collect();
                it.occupied.retain(|it| it.name == "webhook");
            },
            "spec.auditWebhook names Secret clusters/webhook, and the name is used by another Secret of control plane namespace",
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
            "spec.platform.aws is required: set it",
        ),
    ];
    for (name, platform, change, expected) in table {
        let findings = validate(&facts(platform, change));
        assert!(!findings.allow_changes(), "{name}: what runs is left alone");
        let finding = findings.configuration;
        let Finding::Bad { reason, message } = finding else {
            unreachable!("{name}: {finding:?}");
        };
        assert_eq!(reason, "InvalidConfiguration", "{name}");
        assert!(message.contains(expected), "{name}: {message}");
    }
}

#[test]
fn an_unavailable_release_sets_its_condition() {
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
        let findings = validate(&facts("none", change));
        assert!(!findings.allow_changes(), "{name}");
        let Finding::Bad {
            reason: found,
            message,
        } = findings.release
        else {
            unreachable!("{name}");
        };
        assert_eq!(found, reason, "{name}");
        assert!(message.contains(words), "{name}: {message}");
    }
}

#[test]
fn upgrades_wait_for_the_guest_unless_forced() {
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

/// The variables of an upgrade.
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
