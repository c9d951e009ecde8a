//! CA certificates of users, as files beside the system's bundle: Go programs read both.

use k8s_openapi::api::core::v1::{
    ConfigMapProjection, KeyToPath, ProjectedVolumeSource, Volume, VolumeMount, VolumeProjection,
};

/// Directory of CA certificates.
const DIRECTORY: &str = "/etc/pki/tls/certs";
/// Mode of the files.
const MODE: i32 = 0o644;

/// Files with CA certificates in one volume.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrustVolume {
    name: &'static str,
    files: Vec<File>,
}

/// A file, and the ConfigMap that holds it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct File {
    config_map: String,
    key: String,
    name: String,
}

// === impl TrustVolume ===

impl TrustVolume {
    /// Key of the CA certificates in most ConfigMaps of users.
    pub const KEY: &'static str = "ca-bundle.crt";

    /// A volume without files.
    pub fn new(name: &'static str) -> Self {
        Self {
            name,
            files: Vec::new(),
        }
    }

    /// Adds a key of a ConfigMap as a file.
    pub fn add(
        &mut self,
        config_map: impl Into<String>,
        key: impl Into<String>,
        file: impl Into<String>,
    ) {
        self.files.push(File {
            config_map: config_map.into(),
            key: key.into(),
            name: file.into(),
        });
    }

    /// The volume, unless it has no files.
    pub fn volume(&self) -> Option<Volume> {
        if self.files.is_empty() {
            return None;
        }
        Some(Volume {
            name: self.name.to_owned(),
            projected: Some(ProjectedVolumeSource {
                default_mode: Some(MODE),
                sources: Some(self.sources()),
            }),
            ..Volume::default()
        })
    }

    /// One mount for each file, so that the other files of the directory remain.
    pub fn mounts(&self) -> impl Iterator<Item = VolumeMount> + '_ {
        self.files.iter().map(|file| VolumeMount {
            name: self.name.to_owned(),
            mount_path: format!("{DIRECTORY}/{}", file.name),
            sub_path: Some(file.name.clone()),
            ..VolumeMount::default()
        })
    }

    /// One source for each ConfigMap.
    fn sources(&self) -> Vec<VolumeProjection> {
        let groups = self
            .files
            .chunk_by(|one, next| one.config_map == next.config_map);
        let sources = groups.filter_map(|files| {
            let config_map = &files.first()?.config_map;
            Some(VolumeProjection {
                config_map: Some(ConfigMapProjection {
                    name: config_map.clone(),
                    items: Some(files.iter().map(File::item).collect()),
                    optional: None,
                }),
                ..VolumeProjection::default()
            })
        });
        sources.collect()
    }
}

impl File {
    fn item(&self) -> KeyToPath {
        KeyToPath {
            key: self.key.clone(),
            path: self.name.clone(),
            mode: None,
        }
    }
}
