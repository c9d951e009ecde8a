//! Renders the Ignition config of a worker. Pure.
//!
//! ```text
//! facts of the control plane ──> default files and units ─┐
//! MachineConfigs of the pool ── by name, later wins ──────┴─ merge ──> Ignition 3.2
//! KubeletConfig, ContainerRuntimeConfig, mirrors, ClusterImagePolicy ──> the files that they are about
//! ```

mod facts;
mod file;
mod kubelet;
mod machine_config;
mod manifests;
mod merge;
mod runtime;
mod signatures;
#[cfg(test)]
mod tests;

pub(super) use facts::{Facts, Proxy, cluster_dns};
pub(super) use manifests::InvalidConfig;

use serde_json::{Value, json};

use file::{PRIVATE, PUBLIC, Unit, file};
use manifests::Manifests;

/// Ignition version of payloads; all supported operating system releases accept it.
const IGNITION: &str = "3.2.0";
/// Path of additional trusted CAs in the operating system.
const TRUST_BUNDLE: &str = "/etc/pki/ca-trust/source/anchors/openshift-config-user-ca-bundle.crt";

/// Renders the Ignition config of a pool.
pub(super) fn render(facts: &Facts, config: &str) -> Result<Value, InvalidConfig> {
    let manifests = Manifests::read(config)?;
    let mut ignition = base(facts, &manifests)?;
    for user in &manifests.machine_configs {
        merge::merge(&mut ignition, user.ignition()?);
    }
    Ok(ignition)
}

/// The base config, without the pool's MachineConfigs.
fn base(facts: &Facts, manifests: &Manifests) -> Result<Value, InvalidConfig> {
    let mut files = vec![
        file(
            "/etc/kubernetes/kubeconfig",
            PRIVATE,
            &facts.bootstrap_kubeconfig,
        ),
        file(kubelet::CA, PUBLIC, facts.kubelet_ca.as_bytes()),
        file("/var/lib/kubelet/config.json", PRIVATE, &facts.pull_secret),
        kubelet::config(facts, &manifests.kubelet_configs)?,
    ];
    files.extend(kubelet::environment(&manifests.kubelet_configs)?);
    files.extend(runtime::config(&manifests.runtime_configs)?);
    files.extend(runtime::mirrors(&facts.mirrors, &manifests.mirrors));
    files.extend(signatures::config(
        &manifests.image_policies,
        &facts.mirrors,
        &manifests.mirrors,
    )?);
    let bundle = facts.trust_bundle.as_ref();
    files.extend(bundle.map(|text| file(TRUST_BUNDLE, PUBLIC, text.as_bytes())));
    let mut units = kubelet::units(facts);
    if let Some(proxy) = &facts.proxy {
        files.push(file(Proxy::FILE, PUBLIC, proxy.environment().as_bytes()));
        units.extend(proxied());
    }
    Ok(json!({
        "ignition": { "version": IGNITION },
        "passwd": { "users": users(facts) },
        "storage": { "files": files },
        "systemd": { "units": merge_units(units) },
    }))
}

fn users(facts: &Facts) -> Vec<Value> {
    let keys: Vec<_> = facts.ssh_keys.iter().map(|key| json!(key)).collect();
    if keys.is_empty() {
        return Vec::new();
    }
    vec![json!({ "name": "core", "sshAuthorizedKeys": keys })]
}

/// Drop-ins for services that pull images or call cloud APIs.
fn proxied() -> [Unit; 2] {
    ["crio.service", "kubelet.service"].map(|name| {
        Unit::new(name).with_drop_in(
            "10-proxy.conf",
            &format!("[Service]\nEnvironmentFile={}\n", Proxy::FILE),
        )
    })
}

/// Merges units by name.
fn merge_units(units: Vec<Unit>) -> Value {
    let mut merged = json!({ "systemd": { "units": [] } });
    for unit in units {
        merge::merge(
            &mut merged,
            json!({ "systemd": { "units": [Value::from(unit)] } }),
        );
    }
    merged["systemd"]["units"].take()
}
