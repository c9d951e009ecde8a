//! The HostedControlPlane: derived from the HostedCluster.

use std::collections::BTreeMap;

use api::annotations::cluster::is_mirrored;
use api::group::CLUSTER_NAME;
use api::hypershift::v1beta1::platform::aws::HostedClusterAwsResourceTag;
use api::hypershift::v1beta1::platform::{PlatformSpec, PlatformType};
use api::hypershift::v1beta1::references::KubeconfigSecretReference;
use api::hypershift::v1beta1::{HostedClusterSpec, HostedControlPlane, HostedControlPlaneSpec};
use k8s_openapi::api::core::v1::LocalObjectReference;

use super::Desired;
use crate::facts::Facts;
use crate::names;
use crate::platform::aws::infrastructure::owned_tag;

/// Prefix of labels that the HostedControlPlane has because its HostedCluster has them.
const MIRRORED_LABELS: &str = "api.openshift.com/";

/// The HostedControlPlane.
pub(super) fn control_plane(facts: &Facts) -> Desired {
    let mut control_plane = HostedControlPlane::new(&facts.id.name, spec(facts));
    let metadata = &mut control_plane.metadata;
    metadata.namespace = Some(facts.namespace.clone());
    metadata.labels = Some(labels(facts));
    metadata.annotations = Some(annotations(facts));
    Desired::typed(&control_plane)
}

/// The existing HostedControlPlane, with only the pause changed.
pub(crate) fn paused_control_plane(facts: &Facts) -> Option<Desired> {
    let live = facts.control_plane.as_ref()?;
    let mut paused = HostedControlPlane::new(&facts.id.name, live.spec.clone());
    paused
        .spec
        .paused_until
        .clone_from(&facts.cluster.spec.paused_until);
    let metadata = &mut paused.metadata;
    metadata.namespace = Some(facts.namespace.clone());
    metadata.labels.clone_from(&live.metadata.labels);
    metadata.annotations.clone_from(&live.metadata.annotations);
    Some(Desired::typed(&paused))
}

/// The expected value.
pub(crate) fn spec(facts: &Facts) -> HostedControlPlaneSpec {
    // Without `..`, so that new fields are not forgotten.
    let HostedClusterSpec {
        release,
        control_plane_release,
        cluster_id,
        infra_id,
        channel,
        update_service,
        platform,
        dns,
        networking,
        services,
        etcd,
        controller_availability_policy,
        infrastructure_availability_policy,
        configuration,
        operator_configuration,
        secret_encryption,
        pull_secret: _,
        ssh_key,
        audit_webhook,
        additional_trust_bundle,
        image_content_sources,
        issuer_url,
        service_account_signing_key,
        kube_api_server_dns_name,
        fips,
        olm_catalog_placement,
        capabilities,
        autoscaling,
        auto_node,
        monitoring,
        node_selector,
        tolerations,
        labels,
        paused_until: _,
    } = facts.cluster.spec.clone();
    let infra_id = infra_id.unwrap_or_default();
    HostedControlPlaneSpec {
        release_image: release.image,
        control_plane_release_image: control_plane_release.map(|it| it.image),
        cluster_id,
        platform: self::platform(platform, &infra_id),
        infra_id,
        channel,
        update_service,
        dns: dns.unwrap_or_default(),
        networking: Some(networking),
        services,
        etcd,
        kubeconfig: Some(KubeconfigSecretReference {
            name: names::ADMIN_KUBECONFIG.to_owned(),
            key: names::KUBECONFIG_KEY.to_owned(),
        }),
        controller_availability_policy,
        infrastructure_availability_policy,
        configuration,
        operator_configuration,
        secret_encryption,
        pull_secret: named(names::PULL_SECRET),
        ssh_key: named(ssh_key.map_or("", |_| names::SSH_KEY)),
        audit_webhook,
        additional_trust_bundle: additional_trust_bundle.map(|_| named(names::TRUST_BUNDLE)),
        image_content_sources,
        issuer_url,
        service_account_signing_key: service_account_signing_key.map(|_| named(names::SIGNING_KEY)),
        kube_api_server_dns_name,
        fips,
        olm_catalog_placement,
        capabilities,
        autoscaling,
        auto_node,
        monitoring,
        node_selector,
        tolerations,
        labels,
        paused_until: None,
    }
}

fn named(name: &str) -> LocalObjectReference {
    LocalObjectReference {
        name: name.to_owned(),
    }
}

/// The platform as the control plane sees it: agents are none of its business, and on AWS everything is tagged.
fn platform(mut platform: PlatformSpec, infra_id: &str) -> PlatformSpec {
    match platform.type_ {
        PlatformType::Agent => {
            platform.type_ = PlatformType::None;
            platform.agent = None;
        }
        PlatformType::Aws => {
            if let Some(aws) = &mut platform.aws {
                tag(&mut aws.resource_tags, infra_id);
            }
        }
        PlatformType::Azure
        | PlatformType::Gcp
        | PlatformType::IbmCloud
        | PlatformType::KubeVirt
        | PlatformType::OpenStack
        | PlatformType::PowerVs
        | PlatformType::None => {}
    }
    platform
}

fn tag(tags: &mut Vec<HostedClusterAwsResourceTag>, infra_id: &str) {
    let key = owned_tag(infra_id);
    if tags.iter().all(|tag| tag.key != key) {
        tags.push(HostedClusterAwsResourceTag {
            key,
            value: "owned".to_owned(),
            override_policy: None,
        });
    }
}

fn labels(facts: &Facts) -> BTreeMap<String, String> {
    let labels = facts.cluster.metadata.labels.iter().flatten();
    let mirrored = labels.filter(|(key, _)| key.starts_with(MIRRORED_LABELS));
    let mut labels: BTreeMap<_, _> = mirrored
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    labels.insert(CLUSTER_NAME.to_owned(), facts.infra_id().to_owned());
    labels
}

fn annotations(facts: &Facts) -> BTreeMap<String, String> {
    let mirrored = facts
        .annotations()
        .iter()
        .filter(|(key, _)| is_mirrored(key));
    mirrored
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect()
}
