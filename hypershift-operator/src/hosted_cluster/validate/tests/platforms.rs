//! Platforms: what each requires of the cluster, the operator and the infrastructure cluster.

use api::group::CapiTypes;
use api::hypershift::v1beta1::HostedControlPlane;
use serde_json::json;

use super::{Change, edit, facts};
use crate::facts::{Virtualization, fixture};
use crate::hosted_cluster::validate::{Finding, validate};

#[test]
fn kubevirt_must_be_installed_and_recent_enough() {
    let found = |kubernetes: &str, kubevirt: &str| Virtualization::Found {
        kubernetes: kubernetes.to_owned(),
        kubevirt: kubevirt.to_owned(),
    };
    let external = json!({
        "infraKubeConfigSecret": { "name": "infra", "key": "kubeconfig" },
        "infraNamespace": "machines",
    });
    let table = [
        (
            false,
            Virtualization::Absent,
            "the management cluster, which runs the virtual machines (spec.platform.kubevirt), has no KubeVirt: install \
             KubeVirt 1.0.0 or newer there",
        ),
        (
            true,
            Virtualization::Absent,
            "the infrastructure cluster of Secret clusters/infra, key kubeconfig,",
        ),
        (
            false,
            found("v1.27.0", "v0.59.2"),
            "has KubeVirt v0.59.2: update it to 1.0.0 or newer",
        ),
        (
            false,
            found("v1.26.15", "v1.0.0"),
            "has Kubernetes v1.26.15: update it to 1.27.0 or newer",
        ),
        (
            false,
            found("v1.33.0", "devel"),
            "reports version \"devel\" of KubeVirt, which is not a valid version",
        ),
        (
            true,
            Virtualization::Unreachable("connection refused".to_owned()),
            "connection refused: check that its API server is reachable",
        ),
        (
            true,
            Virtualization::Unusable("is not a valid kubeconfig".to_owned()),
            "infraKubeConfigSecret: the kubeconfig of Secret clusters/infra, key kubeconfig, is not a valid kubeconfig",
        ),
    ];
    for (is_external, virtualization, expected) in table {
        let mut facts = facts("kubevirt", |_| {});
        if is_external {
            edit(
                &mut facts,
                "/platform/kubevirt/credentials",
                external.clone(),
            );
        }
        facts.virtualization = Some(virtualization.clone());
        let findings = validate(&facts);
        assert!(!findings.allow_changes(), "{virtualization:?}");
        let Finding::Bad { message, .. } = findings.configuration else {
            unreachable!("{virtualization:?}");
        };
        assert!(message.contains(expected), "{virtualization:?}: {message}");
    }
    for (kubernetes, kubevirt) in [
        ("v1.27.0", "v1.0.0"),
        ("v1.27.0-rc.0", "v1.0.0-alpha.0"),
        ("v2.0.0", "v1.6.1"),
    ] {
        let mut facts = facts("kubevirt", |_| {});
        facts.virtualization = Some(found(kubernetes, kubevirt));
        let finding = validate(&facts).configuration;
        assert!(finding.is_good(), "{kubernetes} {kubevirt}: {finding:?}");
    }
}

#[test]
fn an_annotation_skips_the_check_of_kubevirt_versions() {
    let old = Virtualization::Found {
        kubernetes: "v1.26.15".to_owned(),
        kubevirt: "v0.59.2".to_owned(),
    };
    let unreachable = Virtualization::Unreachable("connection refused".to_owned());
    for (value, virtualization, expected) in [
        ("true", old.clone(), true),
        ("true", Virtualization::Absent, true),
        ("true", unreachable, false),
        ("false", old.clone(), false),
        ("", old, false),
    ] {
        let mut facts = facts("kubevirt", |_| {});
        let key = "hypershift.openshift.io/allow-unsupported-kubevirt-rhcos-variants";
        let annotations = facts.cluster.metadata.annotations.get_or_insert_default();
        annotations.insert(key.to_owned(), value.to_owned());
        facts.virtualization = Some(virtualization.clone());
        let finding = validate(&facts).configuration;
        assert_eq!(finding.is_good(), expected, "{value:?} {virtualization:?}");
    }
}

#[test]
fn node_ports_are_not_validated_on_ibm_cloud() {
    for (platform, port, expected) in [
        ("None", 30_000, true),
        ("None", 0, true),
        ("None", 20_010, false),
        ("IBMCloud", 20_010, true),
        ("IBMCloud", 0, true),
        ("IBMCloud", 70_000, false),
    ] {
        let mut facts = facts("none", |_| {});
        edit(&mut facts, "/platform/type", json!(platform));
        let field = "/services/0/servicePublishingStrategy/nodePort/port";
        edit(&mut facts, field, json!(port));
        let finding = validate(&facts).configuration;
        assert_eq!(
            finding.is_good(),
            expected,
            "{platform} {port}: {finding:?}"
        );
    }
}

/// Check F05: nodes of a new private cluster need a VPC endpoint service; an existing private cluster is still reconciled.
#[test]
fn private_clusters_on_aws_need_endpoint_services_in_their_region() {
    let none = "and this operator manages no VPC endpoint services";
    let elsewhere = "this operator manages VPC endpoint services in eu-west-1 only";
    for (region, access, before, expected) in [
        (None, "Public", None, None),
        (None, "Private", None, Some(none)),
        (None, "PublicAndPrivate", None, Some(none)),
        (None, "PublicAndPrivate", Some("Public"), Some(none)),
        (None, "Private", Some("PublicAndPrivate"), None),
        (Some("us-east-1"), "Private", None, None),
        (Some("us-east-1"), "PublicAndPrivate", Some("Public"), None),
        (Some("eu-west-1"), "Public", None, None),
        (Some("eu-west-1"), "Private", None, Some(elsewhere)),
        (Some("eu-west-1"), "Private", Some("Private"), None),
    ] {
        let mut facts = facts("aws", |_| {});
        facts.cloud.aws_region = region.map(str::to_owned);
        if let Some(before) = before {
            edit(&mut facts, "/platform/aws/endpointAccess", json!(before));
            let spec = crate::hosted_cluster::build::control_plane_spec(&facts);
            facts.control_plane = Some(HostedControlPlane::new("one", spec));
        }
        edit(&mut facts, "/platform/aws/endpointAccess", json!(access));
        match validate(&facts).supported {
            Finding::Good => assert_eq!(expected, None, "{access} {before:?}"),
            Finding::Bad { reason, message } => {
                assert_eq!(reason, "UnsupportedHostedCluster");
                let access = format!("endpointAccess is {access}, and ");
                assert!(message.contains(&access), "{message}");
                let problem = expected.unwrap_or("nothing");
                assert!(message.contains(problem), "{region:?}: {message}");
            }
        }
    }
}

#[test]
fn unsupported_platforms_are_reported() {
    let table: [(&str, &str, Change, &str); 3] = [
        (
            "no proxy",
            "none",
            |it| it.images.capi_proxy = None,
            "--capi-proxy-image",
        ),
        (
            "no provider for Agent",
            "agent",
            |it| it.images.agent_provider = None,
            "--agent-capi-provider-image",
        ),
        (
            "no provider for KubeVirt",
            "kubevirt",
            |it| it.images.kubevirt_provider = None,
            "--kubevirt-capi-provider-image",
        ),
    ];
    for (name, platform, change, expected) in table {
        let finding = validate(&facts(platform, change)).supported;
        let Finding::Bad { message, .. } = finding else {
            unreachable!("{name}: {finding:?}");
        };
        assert!(message.contains(expected), "{name}: {message}");
    }
}

#[test]
fn missing_crds_are_named_with_their_installation() {
    for (types, expected) in [
        (
            CapiTypes::Private,
            "run `hypershift install` with --private-capi-types",
        ),
        (
            CapiTypes::Standard,
            "install them with the Cluster API of the management cluster",
        ),
    ] {
        let mut facts = fixture::facts(fixture::hosted_cluster("aws"), types);
        assert!(validate(&facts).allow_changes(), "{types:?}");
        facts.missing_crds = vec!["one.example.com".to_owned(), "two.example.com".to_owned()];
        let findings = validate(&facts);
        assert!(!findings.allow_changes(), "{types:?}");
        let Finding::Bad { message, .. } = findings.supported else {
            unreachable!("{types:?}");
        };
        assert!(
            message.contains("one.example.com, two.example.com: "),
            "{message}"
        );
        assert!(message.contains(expected), "{message}");
    }
}
