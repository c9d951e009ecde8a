//! Settings of the cluster for every node. The configuration of each pool begins with these manifests.

use control_plane_component::{Context, Error, Result, node_config};
use serde_json::{Value, json};

use crate::components::kubeconfig::yaml;

/// Label of the ConfigMaps.
const LABEL: &str = "hypershift.openshift.io/core-ignition-config";
/// Their key.
const KEY: &str = "config";
/// Key of the Secret with the SSH key.
const PUBLIC_KEY: &str = "id_rsa.pub";
/// Label: the pool of machines that a MachineConfig is for.
const ROLE: &str = "machineconfiguration.openshift.io/role";

/// The names of all ConfigMaps and their manifests, as far as the cluster has them.
pub(super) fn all(context: &Context<'_>) -> [(&'static str, Result<Option<Value>>); 3] {
    let spec = context.spec();
    let fips = node_config::fips(spec.fips.unwrap_or_default());
    let ssh = ssh_key(context).map(|key| node_config::ssh(key.as_deref()));
    let mirrors = node_config::mirrors(&spec.image_content_sources);
    [
        (
            "ignition-config-fips",
            Ok(Some(machine_config(node_config::FIPS, &fips))),
        ),
        (
            "ignition-config-worker-ssh",
            ssh.map(|ssh| Some(machine_config(node_config::SSH, &ssh))),
        ),
        (
            "ignition-config-40-image-content-source",
            Ok(mirrors.map(|spec| mirror_set(&spec))),
        ),
    ]
}

/// The SSH key of the cluster, if it has one.
fn ssh_key(context: &Context<'_>) -> Result<Option<String>> {
    let name = &context.spec().ssh_key.name;
    if name.is_empty() {
        return Ok(None);
    }
    if context.objects.secret(name).is_none() {
        // Without its key there would be another configuration, which replaces all nodes.
        return Err(Error::missing(
            format!("Secret {name}"),
            format!("key {PUBLIC_KEY}"),
        ));
    }
    let key = context.objects.secret_value(name, PUBLIC_KEY);
    Ok(key.and_then(|key| String::from_utf8(key).ok()))
}

/// A ConfigMap with a manifest.
pub(super) fn object(context: &Context<'_>, name: &str, manifest: &Value) -> Value {
    let metadata = json!({ "name": name, "labels": { LABEL: "true" } });
    super::config_map(context, &metadata, &json!({ KEY: yaml(manifest) }))
}

fn machine_config(name: &str, spec: &Value) -> Value {
    json!({
        "apiVersion": "machineconfiguration.openshift.io/v1",
        "kind": "MachineConfig",
        "metadata": { "name": name, "labels": { ROLE: "worker" } },
        "spec": spec,
    })
}

fn mirror_set(spec: &Value) -> Value {
    json!({
        "apiVersion": "config.openshift.io/v1",
        "kind": "ImageDigestMirrorSet",
        "metadata": { "name": node_config::MIRRORS },
        "spec": spec,
    })
}
