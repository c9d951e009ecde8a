//! Copies authorities of the hosted cluster to the control plane, whose components call servers in it.
//!
//! | ConfigMap of `openshift-config-managed` | ConfigMap of the control plane | used by |
//! |---|---|---|
//! | `service-ca` | `service-serving-ca` | kube-controller-manager, and with it every service account |
//! | `default-ingress-cert` | `observed-default-ingress-cert` | components that call routes |
//!
//! Administrators of the hosted cluster choose the content, and each change restarts pods of the control plane. So a copy
//! has certificates only, has a limited size, and changes at most every [`INTERVAL`].

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{ApiResource, DynamicObject};
use kube::{Resource as _, ResourceExt as _};
use serde_json::{Value, json};
use support::apply::Applier;

use super::context::Context;
use super::control_plane;
use super::error::Error;
use crate::pki_operator::x509::{bundle_text, parse_bundle};

/// Namespace of the sources.
pub(super) const NAMESPACE: &str = "openshift-config-managed";
/// Names of the sources.
pub(super) const SOURCES: [&str; 2] = ["service-ca", "default-ingress-cert"];
/// Their key.
const KEY: &str = "ca-bundle.crt";
const MANAGER: &str = "hosted-cluster-config-operator";
const INGRESS: &str = "Ingress";
/// The largest bundle, in bytes.
const LIMIT: usize = 256 * 1024;
/// The shortest time between the creation of a copy and its change, and between changes.
const INTERVAL: Duration = Duration::from_mins(5);
/// Annotation of a copy: when it was written. It has to outlive this process.
const COPIED_AT: &str = "hypershift.openshift.io/copied-at";

/// A copy: source, target with its key, and the capability that it belongs to.
struct Copy {
    source: &'static str,
    target: (&'static str, &'static str),
    capability: Option<&'static str>,
}

/// What becomes of a copy.
#[derive(Debug, PartialEq)]
enum Change {
    None,
    /// The copy was written a short time ago.
    Defer,
    Apply(Value),
    Delete,
}

const COPIES: [Copy; 2] = [
    Copy {
        source: SOURCES[0],
        target: ("service-serving-ca", "service-ca.crt"),
        capability: None,
    },
    Copy {
        source: SOURCES[1],
        target: ("observed-default-ingress-cert", "ca.crt"),
        capability: Some(INGRESS),
    },
];

/// Applies or deletes the copies that differ.
pub(super) async fn pass(ctx: &Context) -> Result<(), Error> {
    let Some(hcp) = ctx.control_plane().await? else {
        return Ok(());
    };
    if hcp.metadata.deletion_timestamp.is_some() {
        return Ok(());
    }
    let sources = ctx.authorities().await?;
    let mut errors = Vec::new();
    for copy in COPIES.iter().filter(|copy| copy.is_needed(&hcp)) {
        let source = sources.iter().find(|it| it.name_any() == copy.source);
        let live = ctx.resources.sources.config_map(copy.target.0).await?;
        let change = copy.change(
            source.map(|it| &**it),
            live.as_deref(),
            &hcp,
            Timestamp::now(),
        );
        let done = match change {
            Ok(change) => write(ctx, copy, change).await,
            Err(error) => Err(error),
        };
        errors.extend(done.err());
    }
    match errors.len() {
        0 => Ok(()),
        1 => Err(errors.remove(0)),
        _ => Err(Error::Several(errors)),
    }
}

async fn write(ctx: &Context, copy: &Copy, change: Change) -> Result<(), Error> {
    let name = copy.target.0;
    let applier = Applier::new(ctx.management.clone(), MANAGER);
    let resource = ApiResource::erase::<ConfigMap>(&());
    match change {
        Change::None => {}
        Change::Defer => tracing::debug!(name, "Skipping a change, the last one is too recent"),
        Change::Apply(value) => drop(applier.apply_value(&resource, value).await?),
        Change::Delete => {
            let namespace = Some(ctx.namespace.as_str());
            drop(applier.delete(&resource, namespace, name).await?);
        }
    }
    Ok(())
}

// === impl Copy ===

impl Copy {
    fn is_needed(&self, hcp: &DynamicObject) -> bool {
        let disabled = hcp.data["spec"]["capabilities"]["disabled"].as_array();
        let mut disabled = disabled.into_iter().flatten();
        !disabled.any(|it| it.as_str() == self.capability)
    }

    /// Decides what becomes of the copy. Without the source or its key, it is deleted.
    fn change(
        &self,
        source: Option<&ConfigMap>,
        live: Option<&DynamicObject>,
        hcp: &DynamicObject,
        now: Timestamp,
    ) -> Result<Change, Error> {
        let data = source.and_then(|source| source.data.as_ref());
        let bundle = data.and_then(|data| data.get(KEY));
        let bundle = bundle.map(|bundle| self.certificates(bundle)).transpose()?;
        let (name, key) = self.target;
        let data = bundle.map(|bundle| json!({ key: bundle }));
        let change = match (data, live) {
            (None, None) => Change::None,
            (Some(data), Some(live)) if live.data["data"] == data => Change::None,
            (_, Some(live)) if is_recent(live, now) => Change::Defer,
            (None, Some(_)) => Change::Delete,
            (Some(data), _) => Change::Apply(json!({
                "metadata": {
                    "name": name,
                    "namespace": hcp.namespace(),
                    "annotations": { COPIED_AT: now.to_string() },
                    "ownerReferences": hcp.owner_ref(&control_plane::resource()).as_slice(),
                },
                "data": data,
            })),
        };
        Ok(change)
    }

    /// The certificates of a bundle, without other text: components do not start with a bundle that they cannot parse.
    fn certificates(&self, bundle: &str) -> Result<String, Error> {
        let invalid = |problem: String| Error::Form {
            object: format!(
                "ConfigMap {NAMESPACE}/{} of the hosted cluster",
                self.source
            ),
            problem,
        };
        if bundle.len() > LIMIT {
            return Err(invalid(format!("{KEY} has more than {LIMIT} bytes")));
        }
        let certificates = parse_bundle(bundle);
        if certificates.is_empty() {
            return Err(invalid(format!(
                "{KEY} has no certificate that can be parsed"
            )));
        }
        Ok(bundle_text(&certificates))
    }
}

/// Whether a copy was written less than the interval ago. A time in the future is not believed: it would last.
fn is_recent(live: &DynamicObject, now: Timestamp) -> bool {
    let written = live.annotations().get(COPIED_AT);
    let written = written.and_then(|it| it.parse::<Timestamp>().ok());
    written.is_some_and(|at| at <= now && now < at + INTERVAL)
}

#[cfg(test)]
mod tests;
