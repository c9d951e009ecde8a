//! Renews the self-managed certificate of the conversion webhook, which `hypershift install` issues and only the leader
//! keeps valid.
//!
//! API servers trust the caBundle of the CRDs, and see its changes with a delay. So the CA of the new certificate is
//! published beside the one of the old certificate, and the new certificate is served only after an overlap. A renewal
//! that was interrupted starts again: the served certificate is trusted at each step.

mod plan;

use std::time::Duration;

use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Api;
use kube::api::{ListParams, Patch, PatchParams};
use rustls::pki_types::UnixTime;
use serde_json::{Value, json};
use support::controller::{DEADLINE, Manager};
use support::error::chain;
use support::reconcile::{Report, Retry, client_reason};
use support::shutdown::Drain;

use conversion_certificates::{FIELD_MANAGER, Serving, secret_name, server_name};
use plan::Plan;

/// After a failure.
const RETRY: Duration = Duration::from_secs(30);
/// The label of CRDs that `hypershift install` installs.
const INSTALLED: &str = "app.kubernetes.io/part-of=hypershift";

/// A failed renewal, which is retried.
#[derive(Debug, thiserror::Error)]
enum Error {
    #[error("failed to get Secret {object}")]
    Get { object: String, source: kube::Error },
    #[error("failed to list CustomResourceDefinitions")]
    List(#[source] kube::Error),
    #[error(transparent)]
    Issue(#[from] conversion_certificates::Error),
    #[error(
        "failed to patch the caBundle of CustomResourceDefinition {name}: run `hypershift install` again to update RBAC"
    )]
    Trust { name: String, source: kube::Error },
    #[error("failed to patch Secret {object}")]
    Write { object: String, source: kube::Error },
}

/// Renews the certificate of the webhook in `namespace`, until the shutdown begins.
pub(crate) async fn run(
    client: &kube::Client,
    namespace: &str,
    manager: &Manager,
    mut drain: Drain,
) {
    loop {
        let renewal = async {
            let renewed = reconcile(client, namespace, UnixTime::now()).await;
            renewed.inspect_err(|error| log(namespace, error))
        };
        let pause = manager.pass("conversion", DEADLINE, renewal).await;
        let pause = pause.unwrap_or(RETRY);
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = drain.begun() => return,
        }
    }
}

fn log(namespace: &str, error: &Error) {
    tracing::warn!(
        namespace,
        error = chain(error),
        "Failed to renew the conversion webhook's certificate"
    );
}

/// Renews the certificate if it is due; returns when to check again.
async fn reconcile(
    client: &kube::Client,
    namespace: &str,
    now: UnixTime,
) -> Result<Duration, Error> {
    let name = secret_name();
    let secrets: Api<Secret> = Api::namespaced(client.clone(), namespace);
    let found = secrets.get_opt(&name).await;
    let found = found.map_err(|source| Error::Get {
        object: format!("{namespace}/{name}"),
        source,
    })?;
    match plan::plan(found.as_ref(), &server_name(namespace), now) {
        Plan::Wait(pause) => Ok(pause),
        Plan::Renew(current) => {
            renew(client, &secrets, &current, namespace, now).await?;
            Ok(plan::SOONEST)
        }
    }
}

/// Publishes the new CA, waits until API servers have seen it, and serves the new certificate.
async fn renew(
    client: &kube::Client,
    secrets: &Api<Secret>,
    current: &plan::Current,
    namespace: &str,
    now: UnixTime,
) -> Result<(), Error> {
    let server = server_name(namespace);
    let next = current.serving.successor(&server, now)?;
    let crds = publish(client, &next, namespace).await?;
    // The webhook itself trusts this CA, for its managers serve the same certificate.
    let data = next.data();
    let trusted = json!({ "ca.crt": data["ca.crt"] });
    let version = write(secrets, trusted, &current.resource_version, namespace).await?;
    tokio::time::sleep(plan::overlap(&next)).await;
    let shown = json!({ "tls.crt": data["tls.crt"], "tls.key": data["tls.key"] });
    write(secrets, shown, &version, namespace).await?;
    tracing::info!(
        namespace,
        crds,
        "Renewed the conversion webhook's certificate"
    );
    Ok(())
}

/// Adds the new CA to all CRDs with the webhook; returns their number.
async fn publish(client: &kube::Client, next: &Serving, namespace: &str) -> Result<usize, Error> {
    let api: Api<CustomResourceDefinition> = Api::all(client.clone());
    let list = api.list(&ListParams::default().labels(INSTALLED)).await;
    let list = list.map_err(Error::List)?;
    let names = plan::converted(&list.items, namespace);
    let patch = plan::trust(next);
    for name in &names {
        let patched = api.patch(name, &params(), &Patch::Merge(&patch)).await;
        patched.map_err(|source| Error::Trust {
            name: (*name).to_owned(),
            source,
        })?;
    }
    Ok(names.len())
}

/// Changes data of the Secret, unless it was changed since; its new version.
async fn write(
    secrets: &Api<Secret>,
    data: Value,
    version: &str,
    namespace: &str,
) -> Result<String, Error> {
    let name = secret_name();
    let patch = json!({ "metadata": { "resourceVersion": version }, "data": data });
    let written = secrets.patch(&name, &params(), &Patch::Merge(&patch)).await;
    let written = written.map_err(|source| Error::Write {
        object: format!("{namespace}/{name}"),
        source,
    })?;
    Ok(written.metadata.resource_version.unwrap_or_default())
}

// === impl Error ===

impl Report for Error {
    fn reason(&self) -> &'static str {
        match self {
            Self::Get { source, .. }
            | Self::List(source)
            | Self::Trust { source, .. }
            | Self::Write { source, .. } => client_reason(source),
            Self::Issue(_) => "Internal",
        }
    }

    fn retry(&self) -> Retry {
        Retry::Backoff
    }
}

fn params() -> PatchParams {
    PatchParams {
        field_manager: Some(FIELD_MANAGER.to_owned()),
        ..PatchParams::default()
    }
}

#[cfg(test)]
mod tests;
