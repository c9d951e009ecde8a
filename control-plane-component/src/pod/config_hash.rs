//! A hash of mounted configuration, so that changed content rolls out new pods.

use k8s_openapi::api::core::v1::{PodSpec, Volume};

use crate::objects::Objects;

pub(super) const KEY: &str = "component.hypershift.openshift.io/config-hash";
/// Excluded: it grows while the cluster runs, and components reload it.
const WITHOUT: &str = "client-ca";

/// Returns the hash of every value of every Secret and `ConfigMap` that a pod mounts.
pub(super) fn of(pod: &PodSpec, mounted: &Objects) -> String {
    let volumes = pod.volumes.iter().flatten();
    let sources = volumes.flat_map(sources);
    let mut hashes: Vec<String> = sources
        .filter(|(kind, name)| (*kind, name.as_str()) != ("ConfigMap", WITHOUT))
        .flat_map(|(kind, name)| values(mounted, kind, &name))
        .map(|value| format!("{:08x}", fnv1a(&value)))
        .collect();
    hashes.sort_unstable();
    hashes.concat()
}

/// Returns the source objects of a volume.
fn sources(volume: &Volume) -> Vec<(&'static str, String)> {
    let mut all = Vec::new();
    if let Some(name) = volume
        .secret
        .as_ref()
        .and_then(|source| source.secret_name.clone())
    {
        all.push(("Secret", name));
    }
    if let Some(source) = &volume.config_map {
        all.push(("ConfigMap", source.name.clone()));
    }
    let projected = volume
        .projected
        .iter()
        .flat_map(|projected| projected.sources.iter().flatten());
    for source in projected {
        all.extend(
            source
                .secret
                .iter()
                .map(|source| ("Secret", source.name.clone())),
        );
        all.extend(
            source
                .config_map
                .iter()
                .map(|source| ("ConfigMap", source.name.clone())),
        );
    }
    all
}

fn values(mounted: &Objects, kind: &str, name: &str) -> Vec<Vec<u8>> {
    if kind == "Secret" {
        let secret = mounted.secret(name);
        let data = secret.and_then(|secret| secret.data).unwrap_or_default();
        return data.into_values().map(|value| value.0).collect();
    }
    let config_map = mounted.config_map(name).unwrap_or_default();
    let text = config_map
        .data
        .unwrap_or_default()
        .into_values()
        .map(String::into_bytes);
    let bytes = config_map
        .binary_data
        .unwrap_or_default()
        .into_values()
        .map(|value| value.0);
    text.chain(bytes).collect()
}

/// The 32-bit FNV-1a hash.
fn fnv1a(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0x811c_9dc5, |hash: u32, byte| {
        (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hash_matches_fnv1a_vectors() {
        // Values of the algorithm's own test suite.
        for (text, hash) in [
            ("", 0x811c_9dc5),
            ("a", 0xe40c_292c),
            ("foobar", 0xbf9c_f968),
        ] {
            assert_eq!(fnv1a(text.as_bytes()), hash, "{text}");
        }
    }
}
