//! The configuration, as far as it depends on the hosted control plane.

use api::hypershift::v1beta1::configuration::image::{ImageConfiguration, RegistryLocation};
use control_plane_component::{Context, Result};
use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::{Value, json};

use super::{audit, edit, etcd_client, observed};
use crate::components::feature_gate::Features;

const KEY: &str = "config.yaml";
/// The `ConfigMap` with the guest's Project configuration.
const OBSERVED_PROJECT: &str = "observed-config-project";
/// Namespace of templates for new projects.
const TEMPLATES: &str = "openshift-config";
/// A feature that this server does not support yet, whatever the release enables.
const WATCH_LIST: &str = "WatchList";

pub(super) fn adapt(context: &Context<'_>, config_map: &mut ConfigMap) -> Result<()> {
    edit::config(config_map, KEY, |config| {
        edit::serving_tls(context, &mut config["servingInfo"]);
        arguments(context, &mut config["apiServerArguments"])?;
        images(context, &mut config["imagePolicyConfig"]);
        projects(context, &mut config["projectConfig"])?;
        config["routingConfig"]["subdomain"] = json!(routes_domain(context));
        config["storageConfig"]["urls"] = json!([etcd_client::url(context)]);
        Ok(())
    })
}

/// Arguments; each has a list of values.
fn arguments(context: &Context<'_>, arguments: &mut Value) -> Result<()> {
    for (option, value) in audit::webhook_options(context) {
        arguments[option] = json!([value]);
    }
    let mut features = Features::of(context)?;
    features.0.retain(|(name, _)| name != WATCH_LIST);
    features.0.push((WATCH_LIST.to_owned(), false));
    arguments["feature-gates"] = json!(features.flags());
    Ok(())
}

/// Names of the image registry, and registries from which users may import.
fn images(context: &Context<'_>, policy: &mut Value) {
    policy["internalRegistryHostname"] = json!(edit::registry_host(context));
    let Some(image) = image(context) else {
        return;
    };
    if !image.external_registry_hostnames.is_empty() {
        policy["externalRegistryHostnames"] = json!(image.external_registry_hostnames);
    }
    if !image.allowed_registries_for_import.is_empty() {
        let allowed = image.allowed_registries_for_import.iter().map(registry);
        policy["allowedRegistriesForImport"] = allowed.collect();
    }
}

/// The image configuration of the guest.
pub(super) fn image<'a>(context: &Context<'a>) -> Option<&'a ImageConfiguration> {
    context.hcp.spec.configuration.as_ref()?.image.as_ref()
}

fn registry(location: &RegistryLocation) -> Value {
    json!({
        "domainName": location.domain_name.as_deref().unwrap_or_default(),
        "insecure": location.insecure.unwrap_or_default(),
    })
}

/// How users request projects, as the guest configures it.
fn projects(context: &Context<'_>, config: &mut Value) -> Result<()> {
    let observed = observed::object(context, OBSERVED_PROJECT)?;
    let spec = &observed["spec"];
    if let Some(message) = spec["projectRequestMessage"].as_str() {
        config["projectRequestMessage"] = json!(message);
    }
    let template = spec["projectRequestTemplate"]["name"].as_str();
    if let Some(template) = template.filter(|template| !template.is_empty()) {
        config["projectRequestTemplate"] = json!(format!("{TEMPLATES}/{template}"));
    }
    Ok(())
}

/// Domain of Routes that do not name a host.
fn routes_domain(context: &Context<'_>) -> String {
    let configuration = context.spec().configuration.as_ref();
    let ingress = configuration.and_then(|configuration| configuration.ingress.as_ref());
    let configured = ingress.map(|ingress| [&ingress.apps_domain, &ingress.domain]);
    let configured = configured.into_iter().flatten().flatten();
    let mut configured = configured.filter(|domain| !domain.is_empty());
    configured
        .next()
        .cloned()
        .unwrap_or_else(|| context.apps_domain())
}
