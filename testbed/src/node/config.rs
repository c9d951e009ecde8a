//! The configuration files of a node's programs.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::json;

use super::machine::Fixture;
use super::patience::Patience;
use crate::certs::{Certificate, write};
use crate::namespaces::Subnets;
use crate::registry;

/// Port of containerd's metrics, which also say that it is up.
pub(super) const RUNTIME_PORT: u16 = 1338;
/// Port of the kubelet's health.
pub(super) const KUBELET_PORT: u16 = 10248;
/// Port of kube-proxy's health.
pub(super) const PROXY_PORT: u16 = 10256;

const CONTAINERD: &str = include_str!("containerd.toml");
/// The domain of the cluster's names.
const DOMAIN: &str = "cluster.local";

/// Where a node's files are.
#[derive(Debug, Clone)]
pub(super) struct Files {
    /// What the node keeps.
    directory: PathBuf,
    /// Sockets and the state of what runs: short paths, in memory, gone with the namespaces.
    state: PathBuf,
}

/// What is a kubelet's own of its configuration.
#[derive(Debug)]
pub(super) struct KubeletSettings<'a> {
    pub(super) number: u8,
    pub(super) serving: &'a Certificate,
    /// The authority of its clients.
    pub(super) authority: &'a Path,
    pub(super) cgroup: &'a str,
    pub(super) patience: Option<Patience>,
}

// === impl Files ===

impl Files {
    /// Creates the node's directory.
    pub(super) fn create(base: &Path, node: &str) -> Result<Self> {
        let files = Self {
            directory: base.join(node),
            state: Path::new("/run").join(node),
        };
        for part in ["cni", "registries", "kubelet", "plugins", "pod-logs"] {
            let path = files.path(part);
            std::fs::create_dir_all(&path)
                .with_context(|| format!("cannot create {}", path.display()))?;
        }
        Ok(files)
    }

    /// A file or directory of the node.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    /// Writes containerd's configuration; gives where it is.
    pub(super) fn containerd(&self, number: u8, fixture: &Fixture<'_>) -> Result<PathBuf> {
        let subnets = fixture.namespaces.subnets();
        let metrics = format!("{}:{RUNTIME_PORT}", subnets.node(number));
        let mut text = CONTAINERD.to_owned();
        for (name, value) in [
            ("ROOT", text_of(&self.path("containerd"))),
            ("STATE", text_of(&self.state)),
            ("METRICS", &metrics),
            ("PAUSE", fixture.pause),
            ("REGISTRIES", text_of(&self.path("registries"))),
            ("CNI_PROGRAMS", text_of(&fixture.tools.cni)),
            ("CNI_CONFIG", text_of(&self.path("cni"))),
            ("RUNC", text_of(&fixture.tools.runc)),
        ] {
            text = text.replace(&format!("${{{name}}}"), value);
        }
        self.pod_network(&subnets.pods_of(number))?;
        self.registry(fixture)?;
        let path = self.path("containerd.toml");
        write(&path, &text)?;
        Ok(path)
    }

    /// The pods of the node hang on one bridge, whose network no other node has.
    fn pod_network(&self, pods: &str) -> Result<()> {
        let network = json!({
            "cniVersion": "1.0.0",
            "name": "testbed",
            "plugins": [{
                "type": "bridge",
                "bridge": "cni0",
                "isGateway": true,
                "hairpinMode": true,
                // Addresses are the same everywhere in the testbed.
                "ipMasq": false,
                "ipam": {
                    "type": "host-local",
                    "ranges": [[{ "subnet": pods }]],
                    "routes": [{ "dst": "0.0.0.0/0" }],
                    "dataDir": self.state.join("addresses"),
                },
            }],
        });
        write(&self.path("cni/10-testbed.conflist"), &network.to_string())
    }

    /// Where the registry's name leads.
    fn registry(&self, fixture: &Fixture<'_>) -> Result<()> {
        let directory = self.path("registries").join(registry::NAME);
        std::fs::create_dir_all(&directory)
            .with_context(|| format!("cannot create {}", directory.display()))?;
        let url = format!("http://{}", fixture.registry);
        let hosts = format!(
            "server = \"{url}\"\n\n[host.\"{url}\"]\ncapabilities = [\"pull\", \"resolve\"]\n"
        );
        write(&directory.join("hosts.toml"), &hosts)
    }

    /// Writes the kubelet's configuration; gives where it is.
    pub(super) fn kubelet(
        &self,
        subnets: Subnets,
        settings: &KubeletSettings<'_>,
    ) -> Result<PathBuf> {
        let address = subnets.node(settings.number);
        let resolver = self.path("resolv.conf");
        // For pods that take their names from the node: there are none.
        write(&resolver, "options attempts:1 timeout:1\n")?;
        let mut config = json!({
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            "address": address,
            "healthzBindAddress": address,
            "healthzPort": KUBELET_PORT,
            "tlsCertFile": settings.serving.certificate,
            "tlsPrivateKeyFile": settings.serving.key,
            "authentication": {
                "anonymous": { "enabled": false },
                "webhook": { "enabled": true },
                "x509": { "clientCAFile": settings.authority },
            },
            "authorization": { "mode": "Webhook" },
            "containerRuntimeEndpoint": format!("unix://{}/containerd.sock", self.state.display()),
            "clusterDomain": DOMAIN,
            "clusterDNS": [subnets.name_service()],
            "resolvConf": resolver,
            "podLogsDir": self.path("pod-logs"),
            "volumePluginDir": self.path("plugins"),
            "cgroupDriver": "cgroupfs",
            "cgroupRoot": settings.cgroup,
            "enforceNodeAllocatable": [],
            "failCgroupV1": false,
            "failSwapOn": false,
            // The testbed does not check the machine's disk.
            "imageGCHighThresholdPercent": 100,
            "evictionHard": { "memory.available": "50Mi", "nodefs.available": "1%", "imagefs.available": "1%" },
            "serializeImagePulls": false,
        });
        if let Some(patience) = settings.patience {
            patience.configure_kubelet(&mut config);
        }
        let path = self.path("kubelet.json");
        write(&path, &config.to_string())?;
        Ok(path)
    }
}

/// Paths of the testbed are made of its own names, below a directory that Rust could read as text.
fn text_of(path: &Path) -> &str {
    path.to_str().unwrap_or_default()
}
