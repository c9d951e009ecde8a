//! The templates from which `machine-config-controller` makes the configuration of nodes.
//!
//! They are of its stand-in's own language: `testbed/pod-tools/src/bin/machine-config/templates.rs` describes it.

/// All of them, by their paths.
pub(super) const ALL: [(&str, &str); 11] = [
    (
        "common/_base/files/cloud-config.yaml",
        include_str!("templates/common/_base/files/cloud-config.yaml"),
    ),
    (
        "common/_base/files/kubelet-ca.yaml",
        include_str!("templates/common/_base/files/kubelet-ca.yaml"),
    ),
    (
        "common/_base/files/proxy-environment.yaml",
        include_str!("templates/common/_base/files/proxy-environment.yaml"),
    ),
    (
        "common/_base/files/pull-secret.yaml",
        include_str!("templates/common/_base/files/pull-secret.yaml"),
    ),
    (
        "common/_base/files/trust-bundle.yaml",
        include_str!("templates/common/_base/files/trust-bundle.yaml"),
    ),
    (
        "common/_base/units/crio-proxy.yaml",
        include_str!("templates/common/_base/units/crio-proxy.yaml"),
    ),
    (
        "common/_base/units/kubelet-proxy.yaml",
        include_str!("templates/common/_base/units/kubelet-proxy.yaml"),
    ),
    (
        "common/aws/units/kubelet-provider-id.yaml",
        include_str!("templates/common/aws/units/kubelet-provider-id.yaml"),
    ),
    (
        "master/01-master-kubelet/_base/files/role.yaml",
        include_str!("templates/master/01-master-kubelet/_base/files/role.yaml"),
    ),
    (
        "worker/01-worker-kubelet/_base/files/kubelet.conf.yaml",
        include_str!("templates/worker/01-worker-kubelet/_base/files/kubelet.conf.yaml"),
    ),
    (
        "worker/01-worker-kubelet/_base/units/kubelet.yaml",
        include_str!("templates/worker/01-worker-kubelet/_base/units/kubelet.yaml"),
    ),
];

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use super::*;

    fn files(directory: &Path) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(directory).unwrap();
        let paths = entries.map(|entry| entry.unwrap().path());
        let files = paths.flat_map(|path| {
            if path.is_dir() {
                files(&path)
            } else {
                vec![path]
            }
        });
        files.collect()
    }

    #[test]
    fn all_templates_of_the_directory_are_in_the_image() {
        let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/payload/templates");
        let mut found = files(&directory);
        found.sort();
        let listed: Vec<_> = ALL.iter().map(|(name, _)| directory.join(name)).collect();
        assert_eq!(found, listed);
    }
}
