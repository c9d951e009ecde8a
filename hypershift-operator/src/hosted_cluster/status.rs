//! The status of a HostedCluster: pure. Times are inputs and change only with the field they belong to.

mod auto_node;
mod conditions;
mod gcp;
mod private_links;
mod progress;
mod proxy;
mod version;

use api::hypershift::v1beta1::hosted_cluster::status::HostedClusterStatus;
use api::hypershift::v1beta1::services::{PublishingStrategyType, ServiceType};
use api::hypershift::v1beta1::{HostedControlPlane, HostedControlPlaneStatus};
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::validate::Findings;
use crate::facts::Facts;
use crate::facts::auto_node::karpenter;
use crate::names;
use crate::pause::Pause;
pub(crate) use auto_node::is_in_progress as is_auto_node_in_progress;
pub(crate) use conditions::ConditionUpdate;

/// Port of a route.
const HTTPS: i32 = 443;

/// The result of a reconcile, as input of the status.
#[derive(Debug)]
pub(crate) struct Outcome<'a> {
    pub(crate) facts: &'a Facts,
    pub(crate) findings: &'a Findings,
    pub(crate) pause: &'a Pause,
    /// Messages of failed steps.
    pub(crate) failures: &'a [String],
    pub(crate) now: Timestamp,
}

/// The status to apply.
pub(crate) fn status(outcome: &Outcome<'_>) -> Value {
    let facts = outcome.facts;
    let control_plane = facts
        .control_plane
        .as_ref()
        .and_then(|it| it.status.as_ref());
    let old = facts.cluster.status.as_ref();
    let mut fields = Map::new();
    let mut put = |field: &str, value: Value| {
        if !value.is_null() {
            fields.insert(field.to_owned(), value);
        }
    };
    put("conditions", conditions::conditions(outcome, old));
    put(
        "version",
        json!(version::version(facts, control_plane, outcome.now)),
    );
    put("payloadArch", payload_arch(facts, old));
    put("ignitionEndpoint", json!(facts.ignition));
    if let Some(status) = control_plane {
        let HostedControlPlaneStatus {
            ready: _,
            initialized: _,
            external_managed_control_plane: _,
            control_plane_endpoint: _,
            oauth_callback_url_template,
            version_status: _,
            version: _,
            release_image: _,
            last_release_image_transition_time: _,
            control_plane_version,
            kube_config: _,
            custom_kubeconfig: _,
            kubeadmin_password: _,
            conditions: _,
            node_count: _,
            platform,
            auto_node,
            configuration,
            secret_encryption,
        } = status;
        put("controlPlaneEndpoint", endpoint(facts, status));
        put(
            "oauthCallbackURLTemplate",
            json!(oauth_callback_url_template),
        );
        put("controlPlaneVersion", json!(control_plane_version));
        put("platform", json!(platform));
        // The control plane may still have what it had before Karpenter was switched off.
        let is_on = karpenter(&facts.cluster).is_some();
        put("autoNode", json!(auto_node.as_ref().filter(|_| is_on)));
        put("configuration", json!(configuration));
        put("secretEncryption", json!(secret_encryption));
        put_handed_over(facts, status, &mut put);
    }
    Value::Object(fields)
}

/// The copies that the administrator finds beside the HostedCluster.
fn put_handed_over(
    facts: &Facts,
    status: &HostedControlPlaneStatus,
    put: &mut impl FnMut(&str, Value),
) {
    let cluster = &facts.id.name;
    let named = |name: String| json!({ "name": name });
    if facts.admin_kubeconfig().is_some() {
        put("kubeconfig", named(names::admin_kubeconfig_copy(cluster)));
    }
    let has = |name: &str| facts.handed_out(name).is_some();
    if status
        .custom_kubeconfig
        .as_ref()
        .is_some_and(|it| has(&it.name))
    {
        put(
            "customKubeconfig",
            named(names::custom_kubeconfig_copy(cluster)),
        );
    }
    if status
        .kubeadmin_password
        .as_ref()
        .is_some_and(|it| has(&it.name))
    {
        put("kubeadminPassword", named(names::password_copy(cluster)));
    }
}

/// Where the API server is reached. Behind a route it is the router that is reached, on its port.
fn endpoint(facts: &Facts, status: &HostedControlPlaneStatus) -> Value {
    let Some(endpoint) = &status.control_plane_endpoint else {
        return Value::Null;
    };
    let mut services = facts.cluster.spec.services.iter();
    let server = services.find(|it| it.service == ServiceType::ApiServer);
    let way = server.map(|it| it.service_publishing_strategy.type_);
    let port = match way {
        Some(PublishingStrategyType::Route) => HTTPS,
        Some(_) | None => endpoint.port,
    };
    json!({ "host": endpoint.host, "port": port })
}

/// Known values are kept while the release cannot be read.
fn payload_arch(facts: &Facts, old: Option<&HostedClusterStatus>) -> Value {
    match facts.release.read() {
        Some(release) => json!(release.architectures),
        None => json!(old.and_then(|it| it.payload_arch)),
    }
}

/// The conditions of a control plane, if it has any.
fn control_plane_conditions(
    control_plane: Option<&HostedControlPlane>,
) -> &[k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition] {
    let status = control_plane.and_then(|it| it.status.as_ref());
    status
        .map(|it| it.conditions.as_slice())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests;
