//! Kubeconfigs for users other than components: administrators, Cluster API, and joining nodes.

use control_plane_component::facts::url;
use control_plane_component::{Context, Result};
use k8s_openapi::api::core::v1::Secret;

use super::kubeconfig::{put, secret_value, text, with_authority};
use api::group::CLUSTER_NAME;
use api::hypershift::v1beta1::services::PublishingStrategyType::Route;
use api::hypershift::v1beta1::services::ServiceType;

const ADMIN: &str = "system-admin-client";
const NODES: &str = "kas-bootstrap-client";
const KEY: &str = "kubeconfig";

/// The administrator's kubeconfig, with the external address.
pub(super) fn admin(context: &Context<'_>, secret: &mut Secret) -> Result<()> {
    let requested = context.spec().kubeconfig.as_ref();
    if let Some(requested) = requested {
        secret.metadata.name = Some(requested.name.clone());
    }
    let key = requested.map_or(KEY, |requested| requested.key.as_str());
    let authority = authorities(context)?;
    let text = with_authority(context, ADMIN, external(context), &authority)?;
    put(secret, key, text);
    Ok(())
}

/// The administrator's kubeconfig, with the custom DNS name.
pub(super) fn custom_admin(context: &Context<'_>, secret: &mut Secret) -> Result<()> {
    let name = context
        .spec()
        .kube_api_server_dns_name
        .as_deref()
        .unwrap_or_default();
    let server = url(name, context.infra.api.port);
    let authority = authorities(context)?;
    put(
        secret,
        KEY,
        with_authority(context, ADMIN, server, &authority)?,
    );
    Ok(())
}

/// Whether a custom DNS name of the API server is configured.
pub(super) fn has_custom_dns_name(context: &Context<'_>) -> bool {
    let name = context.spec().kube_api_server_dns_name.as_deref();
    name.is_some_and(|name| !name.is_empty())
}

/// The kubeconfig of Cluster API, with the name and key that it expects.
pub(super) fn capi(context: &Context<'_>, secret: &mut Secret) -> Result<()> {
    let infra_id = &context.spec().infra_id;
    secret.metadata.name = Some(format!("{infra_id}-kubeconfig"));
    let labels = secret.metadata.labels.get_or_insert_default();
    labels.insert(CLUSTER_NAME.to_owned(), infra_id.clone());
    put(
        secret,
        "value",
        text(context, ADMIN, context.api_service_url())?,
    );
    Ok(())
}

/// The bootstrap kubeconfig of joining nodes.
pub(super) fn bootstrap(context: &Context<'_>, secret: &mut Secret) -> Result<()> {
    let port = context.infra.api.port;
    let server = if context.access().is_private() {
        url(&context.api_internal_host(), port)
    } else {
        context.infra.api.url()
    };
    let authority = authorities(context)?;
    put(
        secret,
        KEY,
        with_authority(context, NODES, server, &authority)?,
    );
    Ok(())
}

/// The external URL; for private clusters, the URL in the cluster's network.
fn external(context: &Context<'_>) -> String {
    let is_route = context
        .strategy(ServiceType::ApiServer)
        .is_some_and(|strategy| strategy.type_ == Route);
    let endpoint = &context.infra.api;
    if !context.access().is_public() && !is_route {
        return url(&context.api_internal_host(), endpoint.port);
    }
    endpoint.url()
}

/// The root CA, and the user's named serving certificates.
fn authorities(context: &Context<'_>) -> Result<Vec<u8>> {
    let mut all = secret_value(context, "root-ca", "ca.crt")?;
    for name in super::config::named_certificates(context) {
        let secret = name
            .serving_certificate
            .as_ref()
            .map(|secret| secret.name.as_str());
        if let Some(named) =
            secret.and_then(|secret| context.objects.secret_value(secret, "tls.crt"))
        {
            if !all.ends_with(b"\n") {
                all.push(b'\n');
            }
            all.extend(named);
        }
    }
    Ok(all)
}
