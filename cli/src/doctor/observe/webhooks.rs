//! The webhooks that requests for our objects go through, and what is behind them.

use api::group::{CapiTypes, GroupTable};
use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, RuleWithOperations, ServiceReference,
    ValidatingWebhookConfiguration, WebhookClientConfig,
};
use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::api::ListParams;
use kube::{Api, Client, ResourceExt};
use serde_json::Value;

use super::is_ours;
use crate::doctor::observation::{WebhookFacts, WebhookUser};

/// A webhook as it is configured.
struct Configured {
    user: WebhookUser,
    namespace: String,
    name: String,
    has_authority: bool,
}

pub(super) async fn observe(
    client: &Client,
    crds: &[Value],
    table: &GroupTable,
) -> kube::Result<Vec<WebhookFacts>> {
    let ours = |group: &str| {
        is_ours(group)
            || table
                .find(group.as_bytes())
                .is_some_and(|(_, types)| types == CapiTypes::Private)
    };
    let mut configured: Vec<Configured> = crds
        .iter()
        .filter(|crd| ours(crd["spec"]["group"].as_str().unwrap_or_default()))
        .filter_map(conversion)
        .collect();
    configured.extend(admission(client, &ours).await?);
    configured.sort_by(|a, b| a.user.cmp(&b.user));
    configured
        .dedup_by(|a, b| (&a.user, &a.namespace, &a.name) == (&b.user, &b.namespace, &b.name));
    let mut facts = Vec::new();
    for webhook in configured {
        facts.push(WebhookFacts {
            service: format!("{}/{}", webhook.namespace, webhook.name),
            ready: ready(client, &webhook.namespace, &webhook.name).await?,
            has_authority: webhook.has_authority,
            user: webhook.user,
        });
    }
    Ok(facts)
}

fn conversion(crd: &Value) -> Option<Configured> {
    let client_config = &crd["spec"]["conversion"]["webhook"]["clientConfig"];
    let service = &client_config["service"];
    Some(Configured {
        user: WebhookUser::Conversion(crd["metadata"]["name"].as_str()?.to_owned()),
        namespace: service["namespace"].as_str()?.to_owned(),
        name: service["name"].as_str()?.to_owned(),
        has_authority: client_config["caBundle"]
            .as_str()
            .is_some_and(|bundle| !bundle.is_empty()),
    })
}

/// Those with a rule for one of our groups.
async fn admission(client: &Client, ours: &impl Fn(&str) -> bool) -> kube::Result<Vec<Configured>> {
    let all = ListParams::default();
    let mut found = Vec::new();
    let validating: Api<ValidatingWebhookConfiguration> = Api::all(client.clone());
    for configuration in validating.list(&all).await? {
        let name = configuration.name_any();
        for webhook in configuration.webhooks.unwrap_or_default() {
            found.extend(guard(
                &name,
                webhook.rules.as_deref(),
                webhook.client_config,
                ours,
            ));
        }
    }
    let mutating: Api<MutatingWebhookConfiguration> = Api::all(client.clone());
    for configuration in mutating.list(&all).await? {
        let name = configuration.name_any();
        for webhook in configuration.webhooks.unwrap_or_default() {
            found.extend(guard(
                &name,
                webhook.rules.as_deref(),
                webhook.client_config,
                ours,
            ));
        }
    }
    Ok(found)
}

fn guard(
    configuration: &str,
    rules: Option<&[RuleWithOperations]>,
    client_config: WebhookClientConfig,
    ours: &impl Fn(&str) -> bool,
) -> Option<Configured> {
    let groups = rules
        .into_iter()
        .flatten()
        .flat_map(|rule| rule.api_groups.iter().flatten());
    if !groups.into_iter().any(|group| ours(group)) {
        return None;
    }
    let ServiceReference {
        namespace, name, ..
    } = client_config.service?;
    Some(Configured {
        user: WebhookUser::Admission(configuration.to_owned()),
        namespace,
        name,
        has_authority: client_config
            .ca_bundle
            .is_some_and(|bundle| !bundle.0.is_empty()),
    })
}

/// Ready addresses behind a Service; none if there is no such Service.
async fn ready(client: &Client, namespace: &str, name: &str) -> kube::Result<Option<usize>> {
    let services: Api<Service> = Api::namespaced(client.clone(), namespace);
    if services.get_opt(name).await?.is_none() {
        return Ok(None);
    }
    let slices: Api<EndpointSlice> = Api::namespaced(client.clone(), namespace);
    let of_service = ListParams::default().labels(&format!("kubernetes.io/service-name={name}"));
    let slices = slices.list(&of_service).await?;
    let endpoints = slices.items.into_iter().flat_map(|slice| slice.endpoints);
    let is_ready = |ready: Option<bool>| ready != Some(false);
    Ok(Some(
        endpoints
            .filter(|endpoint| is_ready(endpoint.conditions.as_ref().and_then(|c| c.ready)))
            .map(|endpoint| endpoint.addresses.len())
            .sum(),
    ))
}
