//! Whether the certificate is to be renewed, and what has to trust it. Pure.

use std::collections::BTreeMap;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use conversion_certificates::{FIELD_MANAGER, Serving, WEBHOOK};
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use rustls::pki_types::UnixTime;
use serde_json::{Value, json};

/// Between two looks at the Secret: one that another program writes is not watched.
pub(super) const LONGEST: Duration = Duration::from_mins(10);
/// So that a certificate that cannot be renewed does not keep the API server busy.
pub(super) const SOONEST: Duration = Duration::from_secs(1);
/// For API servers to trust a new authority, however long certificates are valid.
const OVERLAP: Duration = Duration::from_secs(30);
/// What an overlap may take of a short certificate's time.
const OVERLAP_SHARE: u32 = 20;
/// The label that `hypershift install` puts on all of its objects, and its value.
const MANAGED_BY: (&str, &str) = ("app.kubernetes.io/managed-by", "hypershift-install");

/// What to do.
#[derive(Debug)]
pub(super) enum Plan {
    Wait(Duration),
    Renew(Current),
}

/// The certificate that is shown now.
#[derive(Debug)]
pub(super) struct Current {
    pub(super) serving: Serving,
    pub(super) resource_version: String,
}

/// What is due, by the Secret. One that `hypershift install` has not written, or that OpenShift's service CA fills, is
/// left alone.
pub(super) fn plan(secret: Option<&Secret>, server: &str, now: UnixTime) -> Plan {
    let Some(current) = secret.filter(|secret| is_installed(secret)).and_then(read) else {
        return Plan::Wait(LONGEST);
    };
    if !current.serving.is_good(server, now) {
        return Plan::Renew(current);
    }
    let left = current.serving.until_renewal(now).unwrap_or(LONGEST);
    Plan::Wait(left.clamp(SOONEST, LONGEST))
}

fn is_installed(secret: &Secret) -> bool {
    let (key, value) = MANAGED_BY;
    let labels = secret.metadata.labels.as_ref();
    let managers = secret.metadata.managed_fields.iter().flatten();
    labels
        .and_then(|labels| labels.get(key))
        .map(String::as_str)
        == Some(value)
        && managers
            .filter_map(|entry| entry.manager.as_deref())
            .any(|manager| manager == FIELD_MANAGER)
}

fn read(secret: &Secret) -> Option<Current> {
    let data: BTreeMap<&str, String> = secret
        .data
        .iter()
        .flatten()
        .map(|(key, bytes)| (key.as_str(), STANDARD.encode(&bytes.0)))
        .collect();
    Some(Current {
        serving: Serving::of(&json!({ "data": data }))?,
        resource_version: secret.metadata.resource_version.clone()?,
    })
}

/// How long both authorities are trusted before the new certificate is shown.
pub(super) fn overlap(next: &Serving) -> Duration {
    let lifetime = next.lifetime().unwrap_or_default();
    OVERLAP.min(lifetime / OVERLAP_SHARE)
}

/// The names of the CRDs whose objects the webhook in `namespace` converts.
pub(super) fn converted<'c>(crds: &'c [CustomResourceDefinition], namespace: &str) -> Vec<&'c str> {
    let ours = |crd: &&CustomResourceDefinition| {
        let webhook = crd.spec.conversion.as_ref()?.webhook.as_ref()?;
        let service = webhook.client_config.as_ref()?.service.as_ref()?;
        Some(service.name == WEBHOOK && service.namespace == namespace)
    };
    crds.iter()
        .filter(|crd| ours(crd) == Some(true))
        .filter_map(|crd| crd.metadata.name.as_deref())
        .collect()
}

/// Has a CRD trust the authorities of a certificate.
pub(super) fn trust(next: &Serving) -> Value {
    let bundle = STANDARD.encode(next.authorities());
    json!({ "spec": { "conversion": { "webhook": { "clientConfig": { "caBundle": bundle } } } } })
}
