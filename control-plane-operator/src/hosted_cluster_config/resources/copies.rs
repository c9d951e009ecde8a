//! What the hosted cluster has copies of.

use std::collections::BTreeMap;

use api::annotations::cluster::ENSURE_EXISTS_PULL_SECRET;
use api::hypershift::v1beta1::HostedControlPlane;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Api;
use support::apply::Applier;

use super::super::error::Error;

/// The user's authorities, on both sides.
pub(super) const USER_CA: &str = "user-ca-bundle";
/// Where the pull secret is looked for.
const PULL_SECRETS: [&str; 2] = ["openshift", "openshift-config"];
const BUNDLE: &str = "ca-bundle.crt";

/// Credentials of registries.
pub(super) fn pull_secrets(source: &Secret) -> impl Iterator<Item = Secret> {
    PULL_SECRETS.into_iter().map(|namespace| Secret {
        metadata: metadata(namespace, "pull-secret"),
        data: source.data.clone(),
        type_: source.type_.clone(),
        ..Secret::default()
    })
}

/// Writes one. Users may keep their own version of it, when the cluster says so.
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
            .map_err(Error::client("read the pull secret's copy"))?
            .is_some()
        {
            return Ok(());
        }
    }
    applier.apply(&copy).await?;
    Ok(())
}

/// Authorities that the user trusts.
pub(super) fn user_ca(source: &ConfigMap) -> ConfigMap {
    ConfigMap {
        metadata: metadata("openshift-config", USER_CA),
        data: source.data.clone(),
        ..ConfigMap::default()
    }
}

/// By what kubelets' serving certificates are checked.
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
