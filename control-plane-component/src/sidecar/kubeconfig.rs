//! The kubeconfig for the proxy. It holds no credentials: the proxy adds the pod's.

use std::collections::BTreeMap;

use k8s_openapi::{api::core::v1::ConfigMap, apimachinery::pkg::apis::meta::v1::ObjectMeta};

use super::{LISTEN, NAME};

/// Key in the `ConfigMap`, and name of the file.
pub(super) const KEY: &str = "kubeconfig";

/// The `ConfigMap` that every Deployment with the sidecar mounts; one for each namespace.
pub fn config_map(namespace: &str) -> ConfigMap {
    ConfigMap {
        metadata: ObjectMeta {
            name: Some(NAME.to_owned()),
            namespace: Some(namespace.to_owned()),
            ..ObjectMeta::default()
        },
        data: Some(BTreeMap::from([(KEY.to_owned(), kubeconfig())])),
        ..ConfigMap::default()
    }
}

fn kubeconfig() -> String {
    format!(
        "apiVersion: v1
kind: Config
clusters:
- name: proxy
  cluster:
    server: http://{LISTEN}
contexts:
- name: proxy
  context:
    cluster: proxy
    user: none
users:
- name: none
  user: {{}}
current-context: proxy
"
    )
}
