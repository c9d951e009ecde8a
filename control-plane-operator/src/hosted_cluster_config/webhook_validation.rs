//! Deletes webhook configurations of the hosted cluster that lead into its control plane.
//!
//! The API server calls webhooks from the namespace of the control plane, where network policies let it reach what users
//! of the hosted cluster must not. A Service may allow it with a label.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;

use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhook, MutatingWebhookConfiguration, ValidatingWebhook,
    ValidatingWebhookConfiguration, WebhookClientConfig,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{DeleteParams, DynamicObject, Preconditions};
use kube::{Api, ResourceExt as _};
use serde_json::Value;
use support::reconcile::{is_conflict, is_missing};

use super::context::Context;
use super::error::Error;
use crate::konnectivity::target::Host;

/// Label of Services that webhooks may lead to.
const ALLOWED: &str = "hypershift.openshift.io/allow-guest-webhooks";

/// A configuration of webhooks.
pub(super) trait Configuration:
    kube::Resource<DynamicType = (), Scope = k8s_openapi::ClusterResourceScope>
    + Clone
    + std::fmt::Debug
    + serde::de::DeserializeOwned
{
    /// URLs of its webhooks. Those of Services in the hosted cluster have none.
    fn urls(&self) -> Vec<&str>;

    /// Removes all that is not needed to find and delete it: users of the hosted cluster decide how much that is.
    fn reduce(&mut self);
}

/// Where webhooks must not lead to.
#[derive(Debug)]
struct Forbidden {
    namespace: String,
    /// Names of Services.
    services: BTreeSet<String>,
    /// Their cluster IPs.
    addresses: BTreeSet<IpAddr>,
}

/// Deletes the configurations.
pub(super) async fn pass(ctx: &Context) -> Result<(), Error> {
    let services = ctx.resources.sources.services().await?;
    let forbidden = Forbidden::new(&services, &ctx.namespace);
    for found in ctx.validating_webhooks().await? {
        delete(ctx, &*found, &forbidden).await?;
    }
    for found in ctx.mutating_webhooks().await? {
        delete(ctx, &*found, &forbidden).await?;
    }
    Ok(())
}

// === impl Forbidden ===

impl Forbidden {
    fn new(services: &[Arc<DynamicObject>], namespace: &str) -> Self {
        let is_forbidden = |service: &&Arc<DynamicObject>| !service.labels().contains_key(ALLOWED);
        let services = services.iter().filter(is_forbidden);
        let addresses = services.clone().flat_map(|service| {
            let addresses = service.data["spec"]["clusterIPs"].as_array();
            let addresses = addresses.into_iter().flatten().filter_map(Value::as_str);
            // That of a headless Service is "None".
            addresses.filter_map(|it| Some(it.parse::<IpAddr>().ok()?.to_canonical()))
        });
        Self {
            namespace: namespace.to_owned(),
            addresses: addresses.collect(),
            services: services.map(|it| it.name_any()).collect(),
        }
    }

    /// Whether a URL leads to a Service, or to a pod by its name. One without a host that can be read counts, too: the API
    /// server may understand it.
    fn has(&self, url: &str) -> bool {
        match host(url) {
            None => true,
            Some(Host::Ip(address)) => self.addresses.contains(&address),
            Some(Host::Name(name)) => self.has_name(name.trim_end_matches('.')),
        }
    }

    /// Short names are completed by the search domains of the API server's pod. Pods of headless Services have names below
    /// that of the Service.
    fn has_name(&self, name: &str) -> bool {
        let labels: Vec<&str> = name.split('.').collect();
        let is_in_namespace =
            |at: usize, kind| labels.get(at..at + 2) == Some(&[self.namespace.as_str(), kind][..]);
        let is_end = |at: usize| {
            let rest = &labels[at..];
            rest.is_empty() || rest == [self.namespace.as_str()]
        };
        labels.iter().enumerate().any(|(at, label)| {
            let next = at + 1;
            is_in_namespace(next, "pod")
                || self.services.contains(*label) && (is_in_namespace(next, "svc") || is_end(next))
        })
    }
}

/// The host of a URL. It is cut out as text, because the API server accepts URLs that other parsers reject; those of
/// webhooks have no credentials.
fn host(url: &str) -> Option<Host> {
    let (_, rest) = url.split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next()?;
    let (_, authority) = authority.rsplit_once('@').unwrap_or(("", authority));
    let (host, port) = if let Some((host, port)) = authority.split_once(']') {
        (format!("{host}]"), port)
    } else {
        let end = authority.find(':').unwrap_or(authority.len());
        (authority[..end].to_owned(), &authority[end..])
    };
    let is_port = |port: &str| port.bytes().all(|byte| byte.is_ascii_digit());
    if !port.is_empty() && !port.strip_prefix(':').is_some_and(is_port) {
        return None;
    }
    let host: Host = host.parse().ok()?;
    host.name()
        .is_none_or(|name| !is_number(name))
        .then_some(host)
}

/// Whether resolvers may read a name as an IPv4 address, such as `0xa000001` and `10.1`.
fn is_number(name: &str) -> bool {
    let last = name.rsplit('.').next().unwrap_or(name);
    let hex = last.strip_prefix("0x").unwrap_or("x");
    last.bytes().all(|byte| byte.is_ascii_digit())
        || hex.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn leads_to<K: Configuration>(configuration: &K, forbidden: &Forbidden) -> bool {
    let mut urls = configuration.urls().into_iter();
    urls.any(|url| forbidden.has(url))
}

async fn delete<K: Configuration>(
    ctx: &Context,
    found: &K,
    forbidden: &Forbidden,
) -> Result<(), Error> {
    if found.meta().deletion_timestamp.is_some() || !leads_to(found, forbidden) {
        return Ok(());
    }
    let api: Api<K> = Api::all(ctx.guest.clone());
    let params = DeleteParams {
        preconditions: Some(Preconditions {
            uid: found.uid(),
            resource_version: found.resource_version(),
        }),
        ..DeleteParams::default()
    };
    let (kind, name) = (K::kind(&()), found.name_any());
    match api.delete(&name, &params).await {
        Ok(_) => {
            tracing::info!(%kind, name, "Deleted webhook configuration that leads into the control plane")
        }
        // A change of it is evaluated by the next reconcile.
        Err(error) if is_missing(&error) || is_conflict(&error) => {}
        Err(error) => return Err(Error::client(format!("delete {kind} {name}"))(error)),
    }
    Ok(())
}

impl Configuration for ValidatingWebhookConfiguration {
    fn urls(&self) -> Vec<&str> {
        let webhooks = self.webhooks.iter().flatten();
        webhooks
            .filter_map(|it| it.client_config.url.as_deref())
            .collect()
    }

    fn reduce(&mut self) {
        self.metadata = reduced(&self.metadata);
        let webhooks = self.webhooks.take().into_iter().flatten();
        let webhooks = webhooks.filter_map(|it| {
            Some(ValidatingWebhook {
                client_config: with_url(it.client_config.url?),
                ..ValidatingWebhook::default()
            })
        });
        self.webhooks = Some(webhooks.collect());
    }
}

impl Configuration for MutatingWebhookConfiguration {
    fn urls(&self) -> Vec<&str> {
        let webhooks = self.webhooks.iter().flatten();
        webhooks
            .filter_map(|it| it.client_config.url.as_deref())
            .collect()
    }

    fn reduce(&mut self) {
        self.metadata = reduced(&self.metadata);
        let webhooks = self.webhooks.take().into_iter().flatten();
        let webhooks = webhooks.filter_map(|it| {
            Some(MutatingWebhook {
                client_config: with_url(it.client_config.url?),
                ..MutatingWebhook::default()
            })
        });
        self.webhooks = Some(webhooks.collect());
    }
}

fn reduced(metadata: &ObjectMeta) -> ObjectMeta {
    ObjectMeta {
        name: metadata.name.clone(),
        uid: metadata.uid.clone(),
        resource_version: metadata.resource_version.clone(),
        deletion_timestamp: metadata.deletion_timestamp.clone(),
        ..ObjectMeta::default()
    }
}

fn with_url(url: String) -> WebhookClientConfig {
    WebhookClientConfig {
        url: Some(url),
        ..WebhookClientConfig::default()
    }
}

#[cfg(test)]
mod tests;
