//! The Route through which the guest reaches the metrics proxy.

use api::hypershift::v1beta1::services::ServiceType;
use control_plane_component::{Context, Result};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::NAME;
use crate::infra::routes::{self, Reach, by_route};

/// The longest label of a DNS name.
const LONGEST_LABEL: usize = 63;
/// Length of the hash that keeps shortened names distinct.
const HASH_LENGTH: usize = 8;

#[expect(clippy::unnecessary_wraps, reason = "the form of adapt functions")]
pub(super) fn route(context: &Context<'_>, route: &mut Value) -> Result<()> {
    let wildcards = route["spec"]["wildcardPolicy"].clone();
    let (host, reach) = if context.access().is_private() {
        let host = format!("{NAME}.apps.{}.hypershift.local", context.name());
        (Some(host), Reach::Internal)
    } else {
        (external_host(context), Reach::External)
    };
    *route = routes::route(context, (NAME, NAME), host, reach);
    route["spec"]["wildcardPolicy"] = wildcards;
    Ok(())
}

/// A host beside that of ignition, if it has one. Otherwise the router of the management cluster chooses it, unless it
/// would choose one that is too long.
fn external_host(context: &Context<'_>) -> Option<String> {
    let ignition = by_route(context, ServiceType::Ignition).flatten();
    if let Some((_, domain)) = ignition.and_then(|host| host.split_once('.')) {
        return Some(format!("{NAME}-{}.{domain}", context.name()));
    }
    let domain = &context.settings.default_ingress_domain;
    let label = format!("{NAME}-{}", context.namespace());
    if domain.is_empty() || label.len() < LONGEST_LABEL {
        return None;
    }
    Some(format!("{}.{domain}", shortened(&label)))
}

/// The beginning of a label, and its hash.
fn shortened(label: &str) -> String {
    let hash = format!("{:x}", Sha256::digest(label));
    let beginning: String = label
        .chars()
        .take(LONGEST_LABEL - HASH_LENGTH - 1)
        .collect();
    format!("{beginning}-{}", &hash[..HASH_LENGTH])
}

/// The host under which the proxy is published, once it is known.
pub(super) fn published_host(context: &Context<'_>) -> Option<String> {
    let route = context.objects.get("route.openshift.io", "Route", NAME)?;
    let admitted = route["status"]["ingress"][0]["host"].as_str();
    let host = admitted.or_else(|| route["spec"]["host"].as_str());
    host.filter(|host| !host.is_empty()).map(str::to_owned)
}
