//! What the controller managers of OpenShift share: certificates and configuration.

use control_plane_component::certificate::server;
use control_plane_component::names::service;
use control_plane_component::{Context, Leaf, Result};
use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::{Value, json};

use super::edit;
use super::feature_gate::Features;

/// Key of the configuration.
pub(super) const KEY: &str = "config.yaml";
/// The name of all their certificates.
const NAME: &str = "openshift-controller-manager";

/// The serving certificate of a controller manager. Monitors expect the same name for all of them.
pub(super) fn certificate(context: &Context<'_>, component: &str) -> Vec<Leaf> {
    let leaf = server(&format!("{component}-cert"), NAME);
    vec![leaf.names(service(context, NAME))]
}

/// Edits the configuration of a controller manager.
pub(super) fn config(
    context: &Context<'_>,
    config_map: &mut ConfigMap,
    change: impl FnOnce(&mut Value) -> Result<()>,
) -> Result<()> {
    edit::config(config_map, KEY, |config| {
        edit::serving_tls(context, &mut config["servingInfo"]);
        change(config)
    })
}

/// Sets the feature gates, if the release has some.
pub(super) fn features(context: &Context<'_>, config: &mut Value) -> Result<()> {
    let flags = Features::of(context)?.flags();
    if !flags.is_empty() {
        config["featureGates"] = json!(flags);
    }
    Ok(())
}

/// Sets the range of addresses that Services of type `LoadBalancer` get without a cloud.
pub(super) fn ingress_network(context: &Context<'_>, config: &mut Value) {
    let configuration = context.spec().configuration.as_ref();
    let ranges = configuration
        .and_then(|configuration| configuration.network.as_ref())
        .and_then(|network| network.external_ip.as_ref())
        .map(|external| &external.auto_assign_cidrs);
    if let Some(range) = ranges.and_then(|ranges| ranges.first()) {
        config["ingress"]["ingressIPNetworkCIDR"] = json!(range);
    }
}
