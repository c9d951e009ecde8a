//! What this program takes from the HostedControlPlane: pure.

use api::annotations::cluster::AWS_KARPENTER_DEFAULT_INSTANCE_PROFILE;
use api::hypershift::v1beta1::platform::aws::{AwsPlatformSpec, HostedClusterAwsResourceTag};
use api::hypershift::v1beta1::services::{PublishingStrategyType, ServiceType};
use api::hypershift::v1beta1::versions::UpdateHistory;
use api::hypershift::v1beta1::{HostedCluster, HostedControlPlane, HostedControlPlaneStatus};
use jiff::Timestamp;
use kube::ResourceExt as _;
use payload::Version;
use serde_json::{Value, json};

use super::error::Error;
use crate::cluster_ref::Id;
use crate::facts::auto_node;
use crate::names;
use crate::pause::pause;

/// Port of a Route.
const HTTPS: i32 = 443;

/// Whether Karpenter is on, and may be changed.
pub(super) fn is_active(hcp: &HostedControlPlane, now: Timestamp) -> bool {
    is_enabled(hcp)
        && hcp.metadata.deletion_timestamp.is_none()
        && !pause(hcp.spec.paused_until.as_deref(), now).is_paused()
}

/// Whether Karpenter is on.
pub(super) fn is_enabled(hcp: &HostedControlPlane) -> bool {
    let spec = &hcp.spec;
    auto_node::of_spec(spec.auto_node.as_ref(), spec.platform.type_).is_some()
}

/// The HostedCluster that it is of.
pub(super) fn cluster_id(hcp: &HostedControlPlane) -> Result<Id, Error> {
    let owner = hcp.annotations().get(names::CLUSTER);
    let parts = owner.and_then(|it| it.split_once('/'));
    let (namespace, name) = parts.ok_or_else(|| Error::Unreadable {
        object: format!("HostedControlPlane {}", hcp.name_any()),
        problem: format!(
            "it has no annotation {} with its HostedCluster",
            names::CLUSTER
        ),
    })?;
    Ok(Id {
        namespace: namespace.to_owned(),
        name: name.to_owned(),
    })
}

/// The settings of AWS.
pub(super) fn aws(hcp: &HostedControlPlane) -> Option<&AwsPlatformSpec> {
    hcp.spec.platform.aws.as_ref()
}

/// The region, or nothing where it is unknown.
pub(super) fn region(hcp: &HostedControlPlane) -> &str {
    aws(hcp).map_or("", |it| it.region.as_str())
}

/// The tags of the cluster's resources.
pub(super) fn tags(hcp: &HostedControlPlane) -> &[HostedClusterAwsResourceTag] {
    aws(hcp).map_or(&[], |it| it.resource_tags.as_slice())
}

/// The instance profile of machines: that of NodePools, unless an annotation has another one.
pub(super) fn instance_profile(hcp: &HostedControlPlane) -> String {
    let given = AWS_KARPENTER_DEFAULT_INSTANCE_PROFILE.get(hcp.annotations());
    let given = given.ok().flatten();
    given.unwrap_or_else(|| format!("{}-worker-profile", hcp.spec.infra_id))
}

/// The version that the control plane has rolled out.
pub(super) fn completed(hcp: &HostedControlPlane) -> Option<Version> {
    rolled_out(hcp)?.version.as_ref()?.parse().ok()
}

/// The release of nodes that have none of their own: the one that the control plane has rolled out. Nodes are never newer
/// than their control plane.
pub(super) fn node_release(hcp: &HostedControlPlane) -> &str {
    rolled_out(hcp).map_or(&hcp.spec.release_image, |it| &it.image)
}

fn rolled_out(hcp: &HostedControlPlane) -> Option<&UpdateHistory> {
    let status = hcp.status.as_ref()?;
    let mut history = status.version_status.as_ref()?.history.iter();
    history.find(|it| it.state == "Completed")
}

/// The HostedCluster as far as the control plane knows it: its copies of Secrets and ConfigMaps have other names.
pub(super) fn hosted_cluster(
    hcp: &HostedControlPlane,
    ignition_endpoint: &str,
) -> Result<HostedCluster, Error> {
    let unreadable = |problem: String| Error::Unreadable {
        object: format!("HostedControlPlane {}", hcp.name_any()),
        problem,
    };
    let Id { namespace, name } = cluster_id(hcp)?;
    let mut spec = json!(hcp.spec);
    let Some(fields) = spec.as_object_mut() else {
        return Err(unreadable("its specification is no object".to_owned()));
    };
    // They are called otherwise there.
    let image = fields.remove("releaseImage").unwrap_or_default();
    fields.insert("release".to_owned(), json!({ "image": image }));
    if let Some(image) = fields.remove("controlPlaneReleaseImage") {
        fields.insert("controlPlaneRelease".to_owned(), json!({ "image": image }));
    }
    fields.remove("kubeconfig");
    if hcp.spec.ssh_key.name.is_empty() {
        fields.remove("sshKey");
    }
    let cluster = json!({
        "apiVersion": "hypershift.openshift.io/v1beta1",
        "kind": "HostedCluster",
        "metadata": {
            "namespace": namespace,
            "name": name,
            "annotations": hcp.annotations(),
        },
        "spec": spec,
        "status": hcp.status.as_ref().map(|it| status(hcp, it, ignition_endpoint)),
    });
    serde_json::from_value(cluster).map_err(|error| unreadable(error.to_string()))
}

/// What machines need of the status.
fn status(hcp: &HostedControlPlane, status: &HostedControlPlaneStatus, ignition: &str) -> Value {
    let mut fields = json!({
        "ignitionEndpoint": ignition,
        "version": status.version_status,
    });
    if let Some(kubeconfig) = &status.kube_config {
        fields["kubeconfig"] = json!({ "name": kubeconfig.name });
    }
    if let Some(endpoint) = &status.control_plane_endpoint {
        // Behind a Route it is the router that is reached, on its port.
        let mut services = hcp.spec.services.iter();
        let server = services.find(|it| it.service == ServiceType::ApiServer);
        let way = server.map(|it| it.service_publishing_strategy.type_);
        let is_route = way == Some(PublishingStrategyType::Route);
        let port = if is_route { HTTPS } else { endpoint.port };
        fields["controlPlaneEndpoint"] = json!({ "host": endpoint.host, "port": port });
    }
    fields
}

#[cfg(test)]
mod tests {
    use control_plane_component::node_config::configuration_hash;

    use super::*;
    use crate::karpenter_operator::fixtures;

    #[test]
    fn karpenter_is_changed_while_it_is_on_and_nothing_else_happens() {
        type Change = fn(&mut HostedControlPlane);
        let changes: [(&str, bool, Change); 5] = [
            ("on", true, |_| {}),
            ("off", false, |it| it.spec.auto_node = None),
            ("paused", false, |it| {
                it.spec.paused_until = Some("true".to_owned());
            }),
            ("paused before", true, |it| {
                it.spec.paused_until = Some("2020-01-01T00:00:00Z".to_owned());
            }),
            ("deleted", false, |it| fixtures::delete(&mut it.metadata)),
        ];
        for (name, expected, change) in changes {
            let mut hcp = fixtures::control_plane();
            change(&mut hcp);
            assert_eq!(is_active(&hcp, fixtures::now()), expected, "{name}");
        }
    }

    #[test]
    fn the_hosted_cluster_is_read_from_its_control_plane() {
        let hcp = fixtures::control_plane();
        let cluster = hosted_cluster(&hcp, "ignition.one.example.com").unwrap();
        assert_eq!(cluster.metadata.namespace.as_deref(), Some("clusters"));
        assert_eq!(cluster.spec.infra_id.as_deref(), Some("one-x7k2p"));
        assert_eq!(cluster.spec.release.image, hcp.spec.release_image);
        assert_eq!(cluster.spec.pull_secret.name, "pull-secret");
        let key = cluster.spec.ssh_key.map(|it| it.name);
        assert_eq!(key.as_deref(), Some("ssh-key"));
        // Ignition servers compare it.
        assert_eq!(
            configuration_hash(cluster.spec.configuration.as_ref()),
            configuration_hash(hcp.spec.configuration.as_ref())
        );
        let status = cluster.status.unwrap();
        assert!(status.kubeconfig.is_some());
        let endpoint = status.control_plane_endpoint.unwrap();
        assert_eq!(
            (endpoint.host.as_str(), endpoint.port),
            ("api.one.example.com", 443)
        );
        assert_eq!(
            status.ignition_endpoint.as_deref(),
            Some("ignition.one.example.com")
        );
    }

    #[test]
    fn nodes_get_a_release_after_the_control_plane() {
        let mut hcp = fixtures::control_plane();
        assert_eq!(node_release(&hcp), hcp.spec.release_image);
        assert_eq!(completed(&hcp), None);
        let entry = |state: &str, version: &str| {
            json!({
                "state": state, "version": version, "image": format!("images.example.com/release:{version}"),
                "startedTime": "2030-01-31T12:00:00Z", "completionTime": null, "verified": false,
            })
        };
        let history = [
            entry("Partial", "4.20.4"),
            entry("Completed", "4.20.3"),
            entry("Completed", "4.20.2"),
        ];
        let versions = json!({
            "desired": { "version": "4.20.4", "image": "images.example.com/release:4.20.4" },
            "history": history, "observedGeneration": 1, "availableUpdates": null,
        });
        let status = hcp.status.as_mut().unwrap();
        status.version_status = serde_json::from_value(versions).unwrap();
        assert_eq!(node_release(&hcp), "images.example.com/release:4.20.3");
        assert_eq!(completed(&hcp), Some("4.20.3".parse().unwrap()));
    }

    #[test]
    fn a_control_plane_without_its_cluster_is_reported() {
        let mut hcp = fixtures::control_plane();
        hcp.metadata.annotations = None;
        let error = hosted_cluster(&hcp, "").unwrap_err();
        assert!(error.to_string().contains(names::CLUSTER), "{error}");
    }

    #[test]
    fn the_instance_profile_is_that_of_node_pools_by_default() {
        let mut hcp = fixtures::control_plane();
        assert_eq!(instance_profile(&hcp), "one-x7k2p-worker-profile");
        let key = AWS_KARPENTER_DEFAULT_INSTANCE_PROFILE.key().to_owned();
        hcp.annotations_mut().insert(key, "mine".to_owned());
        assert_eq!(instance_profile(&hcp), "mine");
    }
}
