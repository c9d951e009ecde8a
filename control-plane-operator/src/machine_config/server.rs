//! The ConfigMap with the configuration of the hosted cluster for the programs of the machine config operator, which
//! the ignition server runs: each key is a file.

use control_plane_component::facts::Endpoint;
use control_plane_component::node_config::configuration_hash;
use control_plane_component::{Context, Error, Result};
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::components::kubeconfig::yaml;
use crate::hosted_cluster_config::resources::desired::{Guest, Input, Settings, documents};

/// Name of the ConfigMap.
pub(crate) const NAME: &str = "machine-config-server";
/// Key of ConfigMaps with authorities.
const CA: &str = "ca.crt";
/// Key of ConfigMaps with authorities of users.
const USER_CA: &str = "ca-bundle.crt";
/// ConfigMap with the authorities of users.
const USER_CAS: &str = "trusted-ca-bundle-managed";
/// Label of pools that exist without a user.
const BUILT_IN: &str = "machineconfiguration.openshift.io/mco-built-in";
/// Label: the pool that a MachineConfig is for.
const ROLE: &str = "machineconfiguration.openshift.io/role";

/// The ConfigMap.
pub(super) fn object(context: &Context<'_>) -> Result<Value> {
    let hash = configuration_hash(context.spec().configuration.as_ref());
    let mut files = vec![
        ("root-ca.crt", authority(context, "root-ca")?),
        ("signer-ca.crt", authority(context, "kubelet-client-ca")?),
        ("master.machineconfigpool.yaml", pool("master")),
        ("worker.machineconfigpool.yaml", pool("worker")),
        ("configuration-hash", hash),
    ];
    files.extend(user_authorities(context).map(|it| ("user-ca-bundle-config.yaml", it)));
    files.extend(configuration(context)?);
    let files = files.into_iter();
    let data: Map<_, _> = files
        .map(|(name, text)| (name.to_owned(), json!(text)))
        .collect();
    let metadata = json!({ "name": NAME });
    Ok(super::config_map(context, &metadata, &Value::Object(data)))
}

/// The objects of the global configuration, as they will be in the hosted cluster.
fn configuration(context: &Context<'_>) -> Result<[(&'static str, String); 7]> {
    let mut hcp = json!(context.hcp);
    let Endpoint { host, port } = &context.infra.api;
    // The status has the address only after the first reconcile.
    hcp["status"]["controlPlaneEndpoint"] = json!({ "host": host, "port": port });
    let (guest, settings) = (Guest::default(), Settings::default());
    let input = Input {
        hcp: &hcp,
        release: context.user_release,
        sources: context.objects,
        guest: &guest,
        settings: &settings,
        random: &[0; 96],
        now: Timestamp::UNIX_EPOCH,
    };
    documents(&input).map_err(|error| Error::Invalid {
        field: "spec.networking".to_owned(),
        value: context.cluster_cidrs().join(","),
        hint: error.to_string(),
    })
}

fn authority(context: &Context<'_>, name: &str) -> Result<String> {
    let found = context.objects.config_value(name, CA);
    found.ok_or_else(|| Error::missing(format!("ConfigMap {name}"), format!("key {CA}")))
}

/// The ConfigMap that the hosted cluster has with the same authorities.
fn user_authorities(context: &Context<'_>) -> Option<String> {
    let found = context.objects.config_value(USER_CAS, USER_CA);
    let bundle = found.filter(|bundle| !bundle.trim().is_empty())?;
    Some(yaml(&json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": { "name": "user-ca-bundle", "namespace": "openshift-config" },
        "data": { USER_CA: bundle },
    })))
}

/// A pool of machines. Before there is a cluster, the machine config server serves the pool `master` only. Therefore
/// that one is for workers, too. The program does not start without the other one.
fn pool(name: &str) -> String {
    yaml(&json!({
        "apiVersion": "machineconfiguration.openshift.io/v1",
        "kind": "MachineConfigPool",
        "metadata": { "name": name, "labels": { BUILT_IN: "" } },
        "spec": {
            "machineConfigSelector": { "matchLabels": { ROLE: "worker" } },
            "nodeSelector": { "matchLabels": { "node-role.kubernetes.io/worker": "" } },
        },
    }))
}
