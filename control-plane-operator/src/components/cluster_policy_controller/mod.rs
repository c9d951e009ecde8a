//! cluster-policy-controller: UID ranges of namespaces, pod security labels and cluster resource quotas.

use control_plane_component::{Component, Context, Prober, Result, assets};
use k8s_openapi::api::core::v1::ConfigMap;

use super::openshift_controllers;

/// The component's name.
const NAME: &str = "cluster-policy-controller";

pub(super) fn component() -> Component {
    Component::new(NAME, assets!("config.yaml", "deployment.yaml"))
        .with_certificates(|context| openshift_controllers::certificate(context, NAME))
        .zone_spread()
        .depends_on(&["openshift-apiserver"])
        .prober(Prober::default())
        .manifest("config.yaml", config)
}

fn config(context: &Context<'_>, config_map: &mut ConfigMap) -> Result<()> {
    openshift_controllers::config(context, config_map, |config| {
        openshift_controllers::features(context, config)
    })
}
