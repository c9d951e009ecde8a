//! Objects that are copied to the hosted cluster.

use std::collections::BTreeMap;

use api::annotations::cluster::ENSURE_EXISTS_PULL_SECRET;
use api::hypershift::v1beta1::HostedControlPlane;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Api;
use support::apply::Applier;

use super::super::error::Error;

/// ConfigMap with the user's CA bundle, in both clusters.
pub(super) const USER_CA: &str = "user-ca-bundle";
/// Namespaces of the pull secret.
const PULL_SECRETS: [&str; 2] = ["openshift", "openshift-config"];
const BUNDLE: &str = "ca-bundle.crt";

/// Copies of the pull secret.
pub(super) fn pull_secrets(source: &Secret) -> impl Iterator<Item = Secret> {
    PULL_SECRETS.into_iter().map(|namespace| Secret {
        metadata: metadata(namespace, "pull-secret"),
        data: source.data.clone(),
        type_: source.type_.clone(),
        ..Secret::default()
    })
}

/// Applies a copy. An annotation of the cluster lets users keep a modified copy.
pub(super) async fn apply_pull_secret(
    applier: &Applier,
    hcp: &HostedControlPlane,
    copy: Secret,
) -> Result<(), Error> {
    let annotations = hcp.metadata.annotations.clone().unwrap_or_default();
    if annotations.contains_key(ENSURE_EXISTS_PULL_SECRET.key()) {
        let namespace = copy.metadata.namespace.clone().unwrap_or_default();
        let api: Api<Secret> = Api::namespaced(applier.client().clone(), &namespace);
        let found = api.get_metadata_opt("pull-secret").await;
        if found
            .map_err(Error::client(
                "get Secret pull-secret of the hosted cluster",
            ))?
            .is_some()
        {
            return Ok(());
        }
    }
    applier.apply(&copy).await?;
    Ok(())
}

/// A copy of the user's CA bundle.
pub(super) fn user_ca(source: &ConfigMap) -> ConfigMap {
    ConfigMap {
        metadata: metadata("openshift-config", USER_CA),
        data: source.data.clone(),
        ..ConfigMap::default()
    }
}

/// The CA bundle of kubelet serving certificates.
pub(super) fn kubelet_serving_ca(ca: String) -> ConfigMap {
    ConfigMap {
        metadata: metadata("openshift-config-managed", "kubelet-serving-ca"),
        data: Some(BTreeMap::from([(BUNDLE.to_owned(), ca)])),
        ..ConfigMap::default()
    }
}

fn metadata(namespace: &str, name: &str) -> ObjectMeta {
    ObjectMeta {
        namespace: Some(namespace.to_owned()),
        name: Some(name.to_owned()),
        ..ObjectMeta::default()
    }
}
