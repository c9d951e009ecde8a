//! What is done to make a payload: directories, files, programs with their command lines, in order. Pure.
//!
//! ```text
//! config/  configuration of the cluster     ─┐
//! bin/     programs of the release           │
//! mco/     what machine-config-operator makes├─> mcc/ ──> machine-config-controller ──> mcs/ ──> machine-config-server
//! mcc/etc/mcc/templates/  of its image       │
//! mcc/custom.yaml  configuration of the pool ─┘
//! ```
//!
//! Paths of steps are relative to the directory of the run; those on command lines are absolute.

use std::collections::BTreeMap;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use payload::pull_secret::KEY;
use payload::{Minor, Version};
use serde_json::json;

use crate::components::kubeconfig::yaml;

/// Releases from here on take the image references of the release in place of a flag for each image.
const WITH_REFERENCES: Minor = Minor::of_4(13);
/// Releases from here on need the version of the release.
const WITH_VERSION: Minor = Minor::of_4(14);
/// Releases from here on render feature gates with the program of cluster-config-api.
const WITH_CONFIG_API: Minor = Minor::of_4(15);
/// Images with a flag of their own, and their tags.
const IMAGE_FLAGS: [(&str, &str); 7] = [
    ("machine-config-operator-image", OPERATOR),
    ("machine-config-oscontent-image", "machine-os-content"),
    ("infra-image", "pod"),
    ("keepalived-image", "keepalived-ipfailover"),
    ("coredns-image", "coredns"),
    ("haproxy-image", "haproxy-router"),
    ("baremetal-runtimecfg-image", "baremetal-runtimecfg"),
];
/// The tag of the image with the programs.
pub(super) const OPERATOR: &str = "machine-config-operator";
/// The tag of an image that older releases have.
const PUBLISHER: &str = "mdns-publisher";
/// The programs of the image, in the order in which they run.
pub(super) const PROGRAMS: [&str; 3] = [
    OPERATOR,
    "machine-config-controller",
    "machine-config-server",
];
/// Where images have programs.
pub(super) const BIN: &str = "usr/bin";
/// Where the image has templates.
pub(super) const TEMPLATES: &str = "etc/mcc/templates";
/// The suffix of programs for a newer operating system than that of their image.
pub(super) const NEWER: &str = ".rhel9";
/// Where the release has the references of its images.
pub(super) const REFERENCES: &str = payload::image_references::PATH;
/// How long a program may run. It reads files, and writes files.
const LIMIT: Duration = Duration::from_mins(2);
/// Where the server serves the payload. Before there is a cluster it serves the pool `master` only, which therefore
/// selects the configuration of workers.
pub(super) const URL: &str = "http://localhost:22626/config/master";

/// All that a payload depends on.
#[derive(Debug, Clone)]
pub(super) struct Inputs {
    /// The release image: its mirror if it was read from one.
    pub(super) release_image: String,
    pub(super) version: Version,
    /// The images of the release by tag, as nodes pull them.
    pub(super) images: BTreeMap<String, String>,
    /// The configuration of the pool, as YAML documents.
    pub(super) config: String,
    pub(super) bootstrap_kubeconfig: Vec<u8>,
    /// The files of ConfigMap machine-config-server.
    pub(super) files: BTreeMap<String, String>,
    pub(super) pull_secret: Vec<u8>,
    /// The FeatureGate, not rendered.
    pub(super) feature_gate: String,
    /// The ConfigMap of the cloud provider, where nodes need it.
    pub(super) cloud_config: Option<String>,
    /// The operating system stream, if it was chosen.
    pub(super) os_stream: String,
    /// Certificate and key of the server, PEM.
    pub(super) certificate: (String, String),
    /// Whether programs for a newer operating system than that of their image are tried first.
    pub(super) is_newer: bool,
}

/// An image with files that are needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Image {
    /// The release itself.
    Release,
    /// The image with the programs.
    Operator,
    /// The image with the program that renders feature gates.
    FeatureGates,
}

/// A step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Step {
    /// Makes a directory with all above it.
    Directory(String),
    /// Writes a file.
    Write { to: String, content: Vec<u8> },
    /// Takes a file from an image: the first of these that it has.
    Take {
        image: Image,
        paths: Vec<String>,
        to: String,
    },
    /// Takes all files below a directory of an image, with their paths.
    TakeBelow {
        image: Image,
        directory: &'static str,
        to: String,
    },
    /// Runs a program to its end.
    Run(Command),
    /// Reports which images the release does not have.
    Report,
    /// Copies a file.
    Copy { from: String, to: String },
    /// Copies the files of a directory whose names have this suffix.
    CopyAll {
        from: String,
        suffix: &'static str,
        to: String,
    },
    /// Runs a server until it has served the payload.
    Serve { command: Command, url: String },
}

/// The start of a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Command {
    /// Its file.
    pub(super) program: String,
    pub(super) args: Vec<String>,
    /// The directory that it runs in.
    pub(super) directory: String,
    /// How long it may run; a server, how long it may take to serve.
    pub(super) limit: Duration,
}

/// The steps of a run in this directory.
pub(super) fn steps(inputs: &Inputs, run: &str) -> Vec<Step> {
    let mut steps: Vec<_> = ["bin", "mco", "mcc", "mcs", "config"]
        .map(|name| Step::Directory(name.to_owned()))
        .into();
    steps.extend(inputs.configuration());
    steps.extend(inputs.images());
    steps.extend(inputs.feature_gates(run));
    steps.push(write(
        "config/pull-secret.yaml",
        pull_secret(&inputs.pull_secret),
    ));
    steps.push(Step::Run(inputs.operator(run)));
    steps.push(Step::Report);
    steps.extend(inputs.manifests());
    steps.push(Step::Run(inputs.controller(run)));
    steps.extend(inputs.server(run));
    steps
}

/// The tags of the images that a release has to have.
pub(super) fn required(version: &Version) -> Vec<&'static str> {
    let mut tags = vec![OPERATOR, gates(version).0];
    if version.minor() < WITH_REFERENCES {
        tags.extend(IMAGE_FLAGS.map(|(_, tag)| tag));
    }
    tags.sort_unstable();
    tags.dedup();
    tags
}

/// The image, the program in it, and the working directory of the program that renders feature gates.
pub(super) fn gates(version: &Version) -> (&'static str, &'static str, &'static str) {
    if version.minor() < WITH_CONFIG_API {
        let name = "cluster-config-operator";
        return (name, name, "cco");
    }
    ("cluster-config-api", "render", "cca")
}

// === impl Inputs ===

impl Inputs {
    fn configuration(&self) -> Vec<Step> {
        let mut steps = vec![
            write("mcc/custom.yaml", self.config.as_str()),
            write("mcs/kubeconfig", self.bootstrap_kubeconfig.clone()),
        ];
        let files = self.files.iter();
        steps.extend(files.map(|(name, text)| write(&format!("config/{name}"), text.as_str())));
        steps
    }

    fn images(&self) -> Vec<Step> {
        let (directory, _) = REFERENCES.rsplit_once('/').unwrap_or_default();
        let mut steps = vec![
            Step::Directory(format!("config/{directory}")),
            Step::Take {
                image: Image::Release,
                paths: vec![REFERENCES.to_owned()],
                to: format!("config/{REFERENCES}"),
            },
        ];
        if let Some(config) = &self.cloud_config {
            steps.push(write("mco/cloud.conf.configmap.yaml", config.as_str()));
        }
        steps.push(Step::TakeBelow {
            image: Image::Operator,
            directory: TEMPLATES,
            to: "mcc".to_owned(),
        });
        steps.extend(PROGRAMS.map(|name| {
            let plain = format!("{BIN}/{name}");
            let newer = self.is_newer.then(|| format!("{plain}{NEWER}"));
            Step::Take {
                image: Image::Operator,
                paths: newer.into_iter().chain([plain]).collect(),
                to: format!("bin/{name}"),
            }
        }));
        let (image, program, _) = gates(&self.version);
        steps.push(Step::Take {
            image: Image::FeatureGates,
            paths: vec![format!("{BIN}/{program}")],
            to: format!("bin/{image}"),
        });
        steps
    }

    fn feature_gates(&self, run: &str) -> Vec<Step> {
        let (image, _, work) = gates(&self.version);
        let at = |name: &str| format!("{run}/{work}/{name}");
        let version = format!("--payload-version={}", self.version);
        let minor = self.version.minor();
        let args = if minor >= WITH_CONFIG_API {
            vec![
                format!("--asset-output-dir={}", at("output")),
                format!("--image-manifests={}", at("input")),
                format!("--rendered-manifest-dir={}", at("manifests")),
                "--cluster-profile=ibm-cloud-managed".to_owned(),
                version,
            ]
        } else {
            let mut args = vec![
                "render".to_owned(),
                // A file in the working directory.
                "--config-output-file=config".to_owned(),
                format!("--asset-input-dir={}", at("input")),
                format!("--asset-output-dir={}", at("output")),
            ];
            if minor >= WITH_VERSION {
                args.push(format!("--rendered-manifest-files={}", at("manifests")));
                args.push(version);
            }
            args
        };
        let rendered = format!("{work}/manifests/99_feature-gate.yaml");
        let mut steps: Vec<_> = ["input", "output", "manifests"]
            .map(|name| Step::Directory(format!("{work}/{name}")))
            .into();
        steps.extend([
            write(&rendered, self.feature_gate.as_str()),
            Step::Run(Command {
                directory: work.to_owned(),
                ..command(image, args)
            }),
            copy(&rendered, "mcc/99_feature-gate.yaml"),
        ]);
        steps
    }

    fn operator(&self, run: &str) -> Command {
        let config = |flag: &str, name: &str| format!("--{flag}={run}/config/{name}");
        let minor = self.version.minor();
        let has_references = minor >= WITH_REFERENCES;
        let authority = if has_references {
            "signer-ca.crt"
        } else {
            "root-ca.crt"
        };
        let mut args = vec![
            "bootstrap".to_owned(),
            config("root-ca", "root-ca.crt"),
            config("kube-ca", authority),
            config("infra-config-file", "cluster-infrastructure-02-config.yaml"),
            config("network-config-file", "cluster-network-02-config.yaml"),
            config("proxy-config-file", "cluster-proxy-01-config.yaml"),
            config("config-file", "install-config.yaml"),
            config("dns-config-file", "cluster-dns-02-config.yaml"),
            config("pull-secret", "pull-secret.yaml"),
            format!("--dest-dir={run}/mco"),
            config(
                "additional-trust-bundle-config-file",
                "user-ca-bundle-config.yaml",
            ),
            format!("--release-image={}", self.release_image),
        ];
        if has_references {
            args.push(config("image-references", REFERENCES));
        } else {
            let image = |tag: &str| self.images.get(tag).map_or("", String::as_str);
            args.extend(IMAGE_FLAGS.map(|(flag, tag)| format!("--{flag}={}", image(tag))));
        }
        args.extend(self.payload_version());
        let publisher = self.images.get(PUBLISHER);
        args.extend(publisher.map(|image| format!("--mdns-publisher-image={image}")));
        if self.cloud_config.is_some() {
            args.push(format!(
                "--cloud-config-file={run}/mco/cloud.conf.configmap.yaml"
            ));
        }
        command(PROGRAMS[0], args)
    }

    fn manifests(&self) -> Vec<Step> {
        let all = |from: &str, suffix: &'static str| Step::CopyAll {
            from: from.to_owned(),
            suffix,
            to: "mcc".to_owned(),
        };
        let mut steps = vec![
            all("mco/bootstrap/manifests", ""),
            // The pools of the control plane replace those of the operator.
            all("config", ".machineconfigpool.yaml"),
        ];
        if !self.os_stream.is_empty() {
            let stream = json!({
                "apiVersion": "machineconfiguration.openshift.io/v1",
                "kind": "OSImageStream",
                "metadata": { "name": "cluster" },
                "spec": { "defaultStream": self.os_stream },
            });
            steps.push(write("mcc/99_osimagestream.yaml", yaml(&stream)));
        }
        for name in ["cluster-apiserver-config.yaml", "image-config.yaml"] {
            steps.push(copy(&format!("config/{name}"), &format!("mcc/{name}")));
        }
        steps
    }

    fn controller(&self, run: &str) -> Command {
        let mut args = vec![
            "bootstrap".to_owned(),
            format!("--manifest-dir={run}/mcc"),
            format!("--templates={run}/mcc/{TEMPLATES}"),
            format!("--pull-secret={run}/mcc/machineconfigcontroller-pull-secret"),
            format!("--dest-dir={run}/mcs"),
        ];
        args.extend(self.payload_version());
        command(PROGRAMS[1], args)
    }

    fn server(&self, run: &str) -> [Step; 3] {
        let (certificate, key) = &self.certificate;
        let mut args = vec![
            "bootstrap".to_owned(),
            format!("--server-basedir={run}/mcs"),
            format!("--bootstrap-kubeconfig={run}/mcs/kubeconfig"),
            format!("--cert={run}/mcs/tls.crt"),
            format!("--key={run}/mcs/tls.key"),
            "--secure-port=22625".to_owned(),
            "--insecure-port=22626".to_owned(),
        ];
        args.extend(self.payload_version());
        [
            write("mcs/tls.crt", certificate.as_str()),
            write("mcs/tls.key", key.as_str()),
            Step::Serve {
                command: command(PROGRAMS[2], args),
                url: URL.to_owned(),
            },
        ]
    }

    fn payload_version(&self) -> Option<String> {
        let has_version = self.version.minor() >= WITH_VERSION;
        has_version.then(|| format!("--payload-version={}", self.version))
    }
}

fn write(to: &str, content: impl Into<Vec<u8>>) -> Step {
    Step::Write {
        to: to.to_owned(),
        content: content.into(),
    }
}

fn copy(from: &str, to: &str) -> Step {
    Step::Copy {
        from: from.to_owned(),
        to: to.to_owned(),
    }
}

fn command(program: &str, args: Vec<String>) -> Command {
    Command {
        program: format!("bin/{program}"),
        args,
        directory: String::new(),
        limit: LIMIT,
    }
}

/// The Secret with the credentials of registries.
fn pull_secret(json: &[u8]) -> String {
    yaml(&json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": { "name": "pull-secret", "namespace": "default" },
        "type": "kubernetes.io/dockerconfigjson",
        "data": { KEY: STANDARD.encode(json) },
    }))
}
