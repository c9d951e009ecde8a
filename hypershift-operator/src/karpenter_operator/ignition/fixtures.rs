//! What the configurations of all classes have in common, for tests.

use payload::{Capabilities, Options, PullSecret, Releases};

use super::shared::Shared;
use crate::control_plane_namespace::ControlPlaneNamespace;
use crate::karpenter_operator::control_plane::hosted_cluster;
use crate::karpenter_operator::{fixtures, version};

/// The namespace of the control plane.
pub(super) fn namespace() -> ControlPlaneNamespace {
    crate::control_plane_namespace::for_tests(fixtures::NAMESPACE)
}

/// The inputs of all classes: the control plane has rolled out 4.20.3.
pub(super) fn shared(region: &str) -> Shared {
    let hcp = fixtures::control_plane();
    let release = fixtures::release("4.20.3");
    let pull_secret = br#"{"auths":{"images.example.com":{"auth":"YTpi"}}}"#.to_vec();
    Shared {
        cluster: hosted_cluster(&hcp, "ignition.one.example.com").unwrap(),
        types: api::group::CapiTypes::Private,
        region: region.to_owned(),
        channel: None,
        update_service: None,
        namespace: namespace(),
        releases: Releases::new(Options::default()).unwrap(),
        versions: version::Cluster {
            release: release.version.clone(),
            completed: Some(release.version.clone()),
            network: hcp
                .spec
                .networking
                .map(|it| it.network_type)
                .unwrap_or_default(),
        },
        release,
        capabilities: Capabilities::unknown(),
        operator_image: "images.example.com/operator@sha256:c".to_owned(),
        pull_secret: PullSecret::parse(&pull_secret).unwrap(),
        pull_secret_bytes: pull_secret,
        trust_bundle: None,
        ssh_key: None,
        ignition_ca: Some(b"PEM".to_vec()),
        core: Vec::new(),
        secrets: Vec::new(),
        now: fixtures::now(),
    }
}
