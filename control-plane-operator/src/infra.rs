//! Services and Routes that publish a control plane, and their addresses.
//!
//! [`desired`] and [`facts`] are pure: they read only a [`Context`].

pub(crate) mod address;
pub(crate) mod routes;
pub(crate) mod services;

use api::hypershift::v1beta1::platform::PlatformType;
use api::hypershift::v1beta1::services::PublishingStrategyType::Route as ByRoute;
use api::hypershift::v1beta1::services::ServiceType;
use control_plane_component::facts::Infra;
use control_plane_component::render::{Identity, adopt, hashed, identity};
use control_plane_component::settings::ARO;
use control_plane_component::{Component, Context, Publication};
use serde_json::Value;

/// Desired objects, and objects to delete.
#[derive(Debug, Clone, Default)]
pub struct Desired {
    /// Services and Routes.
    pub objects: Vec<Value>,
    /// Services and Routes to delete.
    pub deletions: Vec<Identity>,
}

/// Returns the Services and Routes of a hosted control plane with these components.
pub fn desired(components: &[Component], context: &Context<'_>) -> Desired {
    let publications: Vec<_> = publications(components).collect();
    let mut objects: Vec<_> = publications
        .iter()
        .flat_map(|publication| (publication.objects)(context))
        .collect();
    let has_routes = serves_routes(context);
    objects.retain(|object| has_routes || object["kind"] != "Route");
    let existing: Vec<_> = objects.iter().map(identity).collect();
    let services = publications.iter().flat_map(|it| it.services);
    let service = |name: &&str| Identity::new("v1", "Service", name);
    let route = |name: &&str| Identity::new("route.openshift.io/v1", "Route", name);
    let mut known: Vec<_> = services.map(service).collect();
    if has_routes {
        let routes = publications.iter().flat_map(|it| it.routes);
        known.extend(routes.map(route));
    }
    known.retain(|identity| !existing.contains(identity));
    // Only existing objects are deleted.
    known.retain(|identity| context.objects.find(identity).is_some());
    Desired {
        objects: objects
            .into_iter()
            .map(|object| finish(object, context))
            .collect(),
        deletions: known,
    }
}

/// Returns the addresses of these components, from the statuses of Services and Routes.
pub fn facts(components: &[Component], context: &Context<'_>) -> Infra {
    let mut infra = Infra::default();
    for publication in publications(components) {
        (publication.addresses)(context, &mut infra);
    }
    infra
}

/// Returns the required addresses that are not known yet.
pub fn missing(
    components: &[Component],
    context: &Context<'_>,
    infra: &Infra,
) -> Vec<&'static str> {
    publications(components)
        .flat_map(|publication| (publication.missing)(context, infra))
        .collect()
}

fn publications(components: &[Component]) -> impl Iterator<Item = &Publication> {
    components.iter().filter_map(Component::publication)
}

fn finish(mut object: Value, context: &Context<'_>) -> Value {
    adopt(&mut object, context);
    hashed(object)
}

/// Whether the management cluster serves Routes.
fn serves_routes(context: &Context<'_>) -> bool {
    context
        .settings
        .served_groups
        .iter()
        .any(|group| group == "route.openshift.io")
}

/// Whether the control plane uses the shared ingress, like those of ARO.
pub(crate) fn shares_ingress(context: &Context<'_>) -> bool {
    context.settings.managed_service.as_deref() == Some(ARO)
}

/// Whether the API server is published by a Route with a custom host name.
fn api_has_own_host(context: &Context<'_>) -> bool {
    context
        .strategy(ServiceType::ApiServer)
        .is_some_and(|strategy| {
            let host = strategy
                .route
                .as_ref()
                .and_then(|route| route.hostname.as_deref());
            strategy.type_ == ByRoute && host.is_some_and(|host| !host.is_empty())
        })
}

/// Whether Routes are served by the control plane's router instead of the management cluster's.
pub(crate) fn labels_routes(context: &Context<'_>) -> bool {
    if shares_ingress(context) || context.is_swift() {
        return true;
    }
    match context.platform() {
        PlatformType::IbmCloud => false,
        PlatformType::Aws | PlatformType::Azure | PlatformType::Gcp => {
            !context.access().is_public() || api_has_own_host(context)
        }
        PlatformType::KubeVirt
        | PlatformType::Agent
        | PlatformType::OpenStack
        | PlatformType::PowerVs
        | PlatformType::None => api_has_own_host(context),
    }
}

/// Whether the control plane needs its own router.
pub(crate) fn uses_router(context: &Context<'_>) -> bool {
    let private = context.access().is_private();
    if context.is_on(PlatformType::IbmCloud) || shares_ingress(context) && !private {
        return false;
    }
    private || labels_routes(context)
}

#[cfg(test)]
mod tests;
