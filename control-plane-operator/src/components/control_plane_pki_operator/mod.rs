//! control-plane-pki-operator: signs break-glass certificates of users and of the service's engineers, and revokes them.

use api::annotations::cluster::DISABLE_PKI_RECONCILIATION;
use control_plane_component::{Component, Context, Result, Workload, assets};
use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::Value;

use super::{edit, serving};

/// The component's name.
const NAME: &str = "control-plane-pki-operator";

pub(super) fn component() -> Component {
    Component::new(
        NAME,
        assets!(
            "config.yaml",
            "deployment.yaml",
            "role.yaml",
            "rolebinding.yaml",
            "serviceaccount.yaml",
        ),
    )
    .management_api()
    .enabled_if(is_enabled)
    .replaces(has_old_selector)
    .manifest("config.yaml", config)
    .adapt(adapt)
}

/// With the annotation, users provide all certificates; CPO reports on requests that are ignored for it.
fn is_enabled(context: &Context<'_>) -> bool {
    !DISABLE_PKI_RECONCILIATION.is_set(context.annotations())
}

/// The first releases selected its pods by another label.
fn has_old_selector(deployment: &Value) -> bool {
    deployment["spec"]["selector"]["matchLabels"]["name"] == NAME
}

/// What it serves metrics with.
fn config(context: &Context<'_>, config_map: &mut ConfigMap) -> Result<()> {
    edit::config(config_map, "config.yaml", |config| {
        serving::tls(context, &mut config["servingInfo"]);
        Ok(())
    })
}

fn adapt(context: &Context<'_>, workload: &mut Workload) -> Result<()> {
    let operator = edit::container(edit::pod(workload), NAME)?;
    edit::env(operator, "HOSTED_CONTROL_PLANE_NAME", context.name());
    if let Some(scale) = &context.settings.cert_rotation_scale {
        edit::env(operator, "CERT_ROTATION_SCALE", scale);
    }
    context.settings.proxy.set_env(operator, []);
    Ok(())
}
