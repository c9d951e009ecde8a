//! The configuration, as far as it depends on the hosted control plane.

use api::hypershift::v1beta1::capabilities::OptionalCapability::ImageRegistry;
use control_plane_component::{Context, Result};
use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::{Value, json};

use super::openshift_controllers::{self, KEY};
use super::{builds, edit};

/// Name of the `ConfigMap`.
const CONFIG_MAP: &str = "openshift-controller-manager-config";
/// All controllers but the one that creates pull secrets for the image registry.
const WITHOUT_REGISTRY: [&str; 2] = ["*", "-openshift.io/serviceaccount-pull-secrets"];

pub(super) fn adapt(context: &Context<'_>, config_map: &mut ConfigMap) -> Result<()> {
    openshift_controllers::config(context, config_map, |config| {
        images(context, config)?;
        registry(context, config);
        builds::set(context, &mut config["build"])?;
        openshift_controllers::ingress_network(context, config);
        openshift_controllers::features(context, config)
    })
}

/// Images of the pods that build and deploy.
fn images(context: &Context<'_>, config: &mut Value) -> Result<()> {
    for (field, image) in [("build", "docker-builder"), ("deployer", "deployer")] {
        config[field]["imageTemplateFormat"]["format"] = json!(context.release.image(image)?);
    }
    Ok(())
}

/// Names of the image registry, and the controllers that need it.
fn registry(context: &Context<'_>, config: &mut Value) {
    let secrets = &mut config["dockerPullSecret"];
    secrets["internalRegistryHostname"] = json!(edit::registry_host(context));
    let configuration = context.spec().configuration.as_ref();
    let image = configuration.and_then(|configuration| configuration.image.as_ref());
    let names = image.map(|image| &image.external_registry_hostnames);
    if let Some(names) = names.filter(|names| !names.is_empty()) {
        secrets["registryURLs"] = json!(names);
    }
    if !context.has_capability(ImageRegistry) {
        config["controllers"] = json!(WITHOUT_REGISTRY);
    } else if let Some(controllers) = live_controllers(context) {
        config["controllers"] = controllers;
    }
}

/// The controllers that hosted-cluster-config-operator selected, which observes whether the registry is removed.
fn live_controllers(context: &Context<'_>) -> Option<Value> {
    let text = context.objects.config_value(CONFIG_MAP, KEY)?;
    let mut live: Value = serde_saphyr::from_str(&text).ok()?;
    let controllers = live["controllers"].take();
    let is_set = controllers
        .as_array()
        .is_some_and(|controllers| !controllers.is_empty());
    is_set.then_some(controllers)
}
