//! Platforms: what each wants of a cluster, of the operator, and of the clusters that machines are made on.

use api::hypershift::v1beta1::HostedControlPlane;
use serde_json::json;

use super::{Change, edit, facts};
use crate::hosted_cluster::facts::Virtualization;
use crate::hosted_cluster::validate::{Verdict, validate};

#[test]
fn kubevirt_has_to_be_there_and_new_enough() {
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
            "this management cluster, where the machines are made (spec.platform.kubevirt), has no KubeVirt: install \
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
            "says that its version of KubeVirt is \"devel\", which is no version",
        ),
        (
            true,
            Virtualization::Unreachable("connection refused".to_owned()),
            "does not tell its versions: connection refused: see that its API server answers",
        ),
        (
            true,
            Virtualization::Unusable("is no kubeconfig".to_owned()),
            "infraKubeConfigSecret: the kubeconfig of Secret clusters/infra, key kubeconfig, is no kubeconfig",
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
        let verdicts = validate(&facts);
        assert!(!verdicts.allow_changes(), "{virtualization:?}");
        let Verdict::Bad { message, .. } = verdicts.configuration else {
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
        let verdict = validate(&facts).configuration;
        assert!(verdict.is_good(), "{kubernetes} {kubevirt}: {verdict:?}");
    }
}

#[test]
fn ports_of_nodes_are_ibm_clouds_own_affair_on_ibm_cloud() {
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
        let verdict = validate(&facts).configuration;
        assert_eq!(
            verdict.is_good(),
            expected,
            "{platform} {port}: {verdict:?}"
        );
    }
}

/// Check F05: nothing would connect the nodes of a new private cluster; one that is private already goes on.
#[test]
fn a_new_private_cluster_on_aws_is_refused() {
    for (access, before, expected) in [
        ("Public", None, true),
        ("Private", None, false),
        ("PublicAndPrivate", None, false),
        ("PublicAndPrivate", Some("Public"), false),
        ("Private", Some("PublicAndPrivate"), true),
    ] {
        let mut facts = facts("aws", |_| {});
        if let Some(before) = before {
            edit(&mut facts, "/platform/aws/endpointAccess", json!(before));
            let spec = crate::hosted_cluster::build::control_plane_spec(&facts);
            facts.control_plane = Some(HostedControlPlane::new("one", spec));
        }
        edit(&mut facts, "/platform/aws/endpointAccess", json!(access));
        match validate(&facts).supported {
            Verdict::Good => assert!(expected, "{access} {before:?}"),
            Verdict::Bad { reason, message } => {
                assert!(!expected, "{access} {before:?}: {message}");
                assert_eq!(reason, "UnsupportedHostedCluster");
                let way_out = format!(
                    "endpointAccess is {access}, and this version does not create AWSEndpointServices"
                );
                assert!(message.contains(&way_out), "{message}");
            }
        }
    }
}

#[test]
fn what_this_operator_cannot_run_is_not_supported() {
    let table: [(&str, &str, Change, &str); 4] = [
        (
            "a platform that there is no code for",
            "none",
            |it| edit(it, "/platform/type", json!("PowerVS")),
            "AWS, Agent, KubeVirt or None",
        ),
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
        let verdict = validate(&facts(platform, change)).supported;
        let Verdict::Bad { message, .. } = verdict else {
            unreachable!("{name}: {verdict:?}");
        };
        assert!(message.contains(expected), "{name}: {message}");
    }
}
