//! What each kind of configuration leaves on a node, file by file.

use anyhow::{Context, Result, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

/// Where images come from that a policy requires to be signed, as part of a JSON pointer.
const SIGNED: &str = "images.example.com~1signed";
/// A source of images that has mirrors of the cluster.
const SOURCE: &str = "registry.example.com/a";
/// A source of images that has mirrors of an `ImageContentSourcePolicy`.
const POOL_SOURCE: &str = "registry.example.com/b";

/// The content of each kind of configuration, by a number that begins with 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Levels {
    pub(crate) machine: usize,
    pub(crate) kubelet: usize,
    pub(crate) runtime: usize,
    pub(crate) policy: usize,
    pub(crate) mirrors: usize,
    pub(crate) sources: usize,
    pub(crate) authorities: usize,
    pub(crate) tuning: usize,
}

/// How a file has to be.
enum Expected {
    Absent,
    Text(String),
    /// It has this part.
    Part(String),
    /// It is JSON, and has this value here.
    Json(String, Value),
}

// === impl Levels ===

impl Levels {
    pub(crate) const FIRST: Self = Self {
        machine: 1,
        kubelet: 1,
        runtime: 1,
        policy: 1,
        mirrors: 1,
        sources: 1,
        authorities: 1,
        tuning: 1,
    };

    /// The values of the fixture with the ConfigMaps.
    pub(crate) fn values(&self) -> [(&'static str, String); 7] {
        [
            ("MACHINE", self.machine.to_string()),
            ("PODS", self.pods().to_string()),
            ("PROCESSES", self.processes().to_string()),
            ("KEY", self.key()),
            ("SOURCE", POOL_SOURCE.to_owned()),
            ("MIRROR", self.pool_mirror()),
            ("QUEUE", self.queue().to_string()),
        ]
    }

    /// The mirrors of the cluster, of which nodes get an `ImageDigestMirrorSet`.
    pub(crate) fn image_content_sources(&self) -> Value {
        json!([{ "source": SOURCE, "mirrors": [self.mirror()] }])
    }

    /// How many pods a node may have.
    pub(crate) fn pods(&self) -> usize {
        100 + self.kubelet
    }

    /// The length of a queue that nodes are tuned to.
    pub(crate) fn queue(&self) -> usize {
        4096 + self.tuning
    }

    fn processes(&self) -> usize {
        2048 + self.runtime
    }

    fn key(&self) -> String {
        STANDARD.encode(format!("key {}", self.policy))
    }

    fn mirror(&self) -> String {
        format!("mirror-{}.example.com/a", self.mirrors)
    }

    fn pool_mirror(&self) -> String {
        format!("mirror-{}.example.com/b", self.sources)
    }

    /// The file with the mirrors of both sources.
    fn registries(&self) -> String {
        let mirrors = [(SOURCE, self.mirror()), (POOL_SOURCE, self.pool_mirror())];
        let section = |(source, mirror): (&str, String)| {
            format!(
                "[[registry]]\nlocation = \"{source}\"\n[[registry.mirror]]\nlocation = \"{mirror}\"\n\
                 pull-from-mirror = \"digest-only\"\n"
            )
        };
        mirrors.map(section).concat()
    }

    /// Compares the files of a node with the table. `authorities` are the cluster's own.
    pub(crate) fn are_on(
        &self,
        authorities: &str,
        file: impl Fn(&str) -> Option<String>,
    ) -> Result<()> {
        for (path, expected) in self.table(authorities) {
            let found = file(path);
            expected
                .check(found.as_deref())
                .with_context(|| path.to_owned())?;
        }
        Ok(())
    }

    fn table(&self, authorities: &str) -> Vec<(&'static str, Expected)> {
        let Self { machine, .. } = self;
        vec![
            // MachineConfig: a file, a unit, and kernel arguments.
            (
                "/etc/settings.d/level",
                Expected::Text(format!("level {machine}\n")),
            ),
            (
                "/etc/systemd/system/settings.service",
                Expected::Part(format!("Description=Settings of level {machine}\n")),
            ),
            (
                "/etc/testbed/kernel-arguments",
                Expected::Text(format!("nosmt\nsettings={machine}\n")),
            ),
            (
                "/etc/kubernetes/kubelet.conf",
                Expected::Json("/maxPods".to_owned(), json!(self.pods())),
            ),
            (
                "/etc/crio/crio.conf.d/50-container-runtime-config.conf",
                Expected::Text(format!(
                    "[crio.runtime]\npids_limit = {}\n",
                    self.processes()
                )),
            ),
            // ClusterImagePolicy.
            (
                "/etc/containers/policy.json",
                Expected::Json(
                    format!("/transports/docker/{SIGNED}/0/keyData"),
                    json!(self.key()),
                ),
            ),
            (
                "/etc/containers/registries.d/sigstore-registries.yaml",
                Expected::Json(
                    format!("/docker/{SIGNED}/use-sigstore-attachments"),
                    json!(true),
                ),
            ),
            (
                "/etc/containers/registries.conf.d/50-mirrors.conf",
                Expected::Text(self.registries()),
            ),
            (
                "/etc/pki/ca-trust/source/anchors/openshift-config-user-ca-bundle.crt",
                Expected::Part(authorities.trim().to_owned()),
            ),
            (
                "/etc/system-fips",
                Expected::Text("# FIPS mode\n".to_owned()),
            ),
            // What all nodes have.
            (
                "/etc/kubernetes/apiserver-proxy-config/haproxy.cfg",
                Expected::Part("server controlplane ".to_owned()),
            ),
            (
                "/etc/testbed/os-image",
                Expected::Part("@sha256:".to_owned()),
            ),
            // What machines of other roles have, and what the first boot uses up.
            ("/etc/kubernetes/control-plane-machine", Expected::Absent),
            (
                "/etc/ignition-machine-config-encapsulated.json",
                Expected::Absent,
            ),
        ]
    }
}

// === impl Expected ===

impl Expected {
    fn check(&self, found: Option<&str>) -> Result<()> {
        if let Self::Absent = self {
            ensure!(found.is_none(), "it exists");
            return Ok(());
        }
        let found = found.context("it does not exist")?;
        let is_so = match self {
            Self::Absent => false,
            Self::Text(text) => found == text,
            Self::Part(part) => found.contains(part.as_str()),
            Self::Json(pointer, value) => {
                let found: Value = serde_json::from_str(found)?;
                found.pointer(pointer) == Some(value)
            }
        };
        ensure!(is_so, "{} is missing in {found}", self.wanted());
        Ok(())
    }

    fn wanted(&self) -> String {
        match self {
            Self::Absent => String::new(),
            Self::Text(text) | Self::Part(text) => text.clone(),
            Self::Json(pointer, value) => format!("{pointer} {value}"),
        }
    }
}
