//! The images of the payload: which there are, and what is in them.

use anyhow::{Context, Result};

use super::{base, stand_ins, templates};
use crate::binaries::{Binaries, Binary};
use crate::guest::Initialization;
use crate::images::{Archive, Contents, File, Image, StaticProgram, build_static};
use crate::openshift::Definitions;
use crate::progress::Progress;

/// The released programs in them.
pub(super) const NEEDED: [Binary; 18] = [
    Binary::Etcd,
    Binary::Etcdctl,
    Binary::KubeApiserver,
    Binary::KubeControllerManager,
    Binary::KubeScheduler,
    Binary::Kubectl,
    Binary::CapiCore,
    Binary::AwsProvider,
    Binary::Olm,
    Binary::OlmCatalog,
    Binary::OlmPackageServer,
    Binary::OlmCopyContent,
    Binary::OlmCopyBundle,
    Binary::Opm,
    Binary::GrpcHealthProbe,
    Binary::KonnectivityServer,
    Binary::KonnectivityAgent,
    Binary::Render,
];
/// The tags of images with real programs, and with stand-ins that do more than to serve probes.
pub(super) const TAGS: [&str; 16] = [
    "hypershift",
    "etcd",
    "hyperkube",
    "cli",
    "cluster-autoscaler",
    "cluster-etcd-operator",
    "cluster-capi-controllers",
    "aws-cluster-api-controllers",
    "haproxy-router",
    "machine-config-operator",
    "openshift-apiserver",
    "oauth-apiserver",
    "operator-lifecycle-manager",
    "operator-registry",
    "apiserver-network-proxy",
    "cluster-config-api",
];
/// The stand-in for the daemon that upgrades a node in place.
const DAEMON: &str = include_str!("machine-config-daemon.sh");
/// Where programs lie.
const PROGRAMS: &str = "/usr/bin";
/// Where the templates of nodes' configuration lie.
const TEMPLATES: &str = "/etc/mcc/templates";
/// The names of the stand-in for the programs that make the configuration of nodes. Each is a file of its own, as in the
/// real image, because control planes take single files out of it.
const MACHINE_CONFIG: [&str; 3] = [
    "machine-config-controller",
    "machine-config-operator",
    "machine-config-server",
];

const CLOUD_CONTROLLER: Optional = Optional {
    binary: Binary::AwsCloudController,
    tag: "aws-cloud-controller-manager",
    at: "/bin/aws-cloud-controller-manager",
};
const KARPENTER: Optional = Optional {
    binary: Binary::Karpenter,
    tag: "aws-karpenter-provider-aws",
    at: "/usr/bin/karpenter",
};

/// Programs that only some payloads have: each of these has those of the one before.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum OptionalPrograms {
    /// None of them: image `machine-config-operator` has the daemon only, and `aws-cloud-controller-manager` a stand-in.
    #[default]
    None,
    /// The AWS cloud controller manager, for clusters whose kubelets leave the initialization of nodes to it
    /// ([`crate::guest::Initialization`]).
    CloudController,
    /// In image `machine-config-operator` those that make the configuration of nodes, and their templates: the ignition
    /// server runs them.
    MachineConfig,
    /// Karpenter: its nodes join with a taint, which is a part of that configuration.
    Karpenter,
}

// === impl OptionalPrograms ===

impl OptionalPrograms {
    /// The released programs among them.
    pub(crate) fn binaries(self) -> impl Iterator<Item = Binary> {
        self.images().iter().map(|image| image.binary)
    }

    fn images(self) -> &'static [Optional] {
        match self {
            Self::None => &[],
            Self::CloudController | Self::MachineConfig => &[CLOUD_CONTROLLER],
            Self::Karpenter => &[CLOUD_CONTROLLER, KARPENTER],
        }
    }

    /// What initializes nodes of clusters on AWS.
    pub(crate) fn initialization(self) -> Initialization {
        match self {
            Self::None => Initialization::Kubelet,
            Self::CloudController | Self::MachineConfig | Self::Karpenter => {
                Initialization::CloudController
            }
        }
    }

    fn makes_configuration(self) -> bool {
        match self {
            Self::None | Self::CloudController => false,
            Self::MachineConfig | Self::Karpenter => true,
        }
    }
}

/// An image of one released program, which only some payloads have.
#[derive(Debug, Clone, Copy)]
struct Optional {
    binary: Binary,
    /// The tag under which a release names it.
    tag: &'static str,
    /// Where the program is in it.
    at: &'static str,
}

/// An image of real programs.
#[derive(Debug)]
pub(super) struct Made {
    /// The tag under which a release names it.
    pub(super) tag: &'static str,
    pub(super) archive: Archive,
}

/// Builds the stand-in for all other programs.
pub(super) async fn stand_in(progress: &Progress) -> Result<Archive> {
    let definitions = Definitions::read().await?;
    stand_ins::image(&tool("stand-in", progress).await?, &definitions)
}

/// The images of the programs that only this payload has.
pub(super) fn optional(binaries: &Binaries, programs: OptionalPrograms) -> Result<Vec<Made>> {
    let images = programs.images().iter();
    let made = images.map(|&Optional { binary, tag, at }| {
        let program = File::program(at, binaries.path(binary)?);
        real(tag, vec![program])
    });
    made.collect()
}

/// Builds all images of real programs.
pub(super) async fn build(
    binaries: &Binaries,
    programs: OptionalPrograms,
    progress: &Progress,
) -> Result<Vec<Made>> {
    let hyperkube = tool("hyperkube", progress).await?;
    let readyz = tool("etcd-readyz", progress).await?;
    let ours = Image::ControlPlaneOperator.build(progress).await?;
    let definitions = Definitions::read().await?;
    let path = |binary: Binary| binaries.path(binary);
    let program = |binary: Binary, name: &str| {
        anyhow::Ok(File::program(format!("{PROGRAMS}/{name}"), path(binary)?))
    };
    Ok(vec![
        Made {
            tag: "hypershift",
            archive: ours,
        },
        etcd(
            program(Binary::Etcd, "etcd-server")?,
            program(Binary::Etcdctl, "etcdctl")?,
            tool("stand-in", progress).await?,
        )?,
        real(
            "hyperkube",
            vec![
                hyperkube,
                program(Binary::KubeApiserver, "kube-apiserver")?,
                program(Binary::KubeControllerManager, "kube-controller-manager")?,
                program(Binary::KubeScheduler, "kube-scheduler")?,
            ],
        )?,
        real(
            "cli",
            vec![
                program(Binary::Kubectl, "kubectl")?,
                File::link(format!("{PROGRAMS}/oc"), "kubectl"),
                tool("curl", progress).await?,
            ],
        )?,
        real(
            "cluster-etcd-operator",
            vec![
                readyz,
                File::link(format!("{PROGRAMS}/cluster-etcd-operator"), "etcd-readyz"),
            ],
        )?,
        manager(
            "cluster-capi-controllers",
            File::program(
                "/bin/cluster-api-controller-manager",
                path(Binary::CapiCore)?,
            ),
        )?,
        manager(
            "aws-cluster-api-controllers",
            File::program(
                "/bin/cluster-api-provider-aws-controller-manager",
                path(Binary::AwsProvider)?,
            ),
        )?,
        renamed("cluster-autoscaler", "autoscaler", progress).await?,
        haproxy()?,
        machine_config(
            vec![
                File::script(format!("{PROGRAMS}/machine-config-daemon"), DAEMON),
                program(Binary::Kubectl, "kubectl")?,
                tool("ignite", progress).await?,
            ],
            programs,
            progress,
        )
        .await?,
        renamed("openshift-apiserver", "api-stand-in", progress).await?,
        renamed("oauth-apiserver", "api-stand-in", progress).await?,
        lifecycle_manager(binaries, tool("stand-in", progress).await?)?,
        Made {
            tag: "operator-registry",
            archive: registry(binaries, Vec::new())?,
        },
        konnectivity(
            program(Binary::KonnectivityServer, "konnectivity-server")?,
            program(Binary::KonnectivityAgent, "proxy-agent")?,
        )?,
        config_api(program(Binary::Render, "render")?, &definitions)?,
    ])
}

/// An image of real programs; the first one is what it runs.
fn real(tag: &'static str, programs: Vec<File>) -> Result<Made> {
    let first = programs.first().context("invariant: there is a program")?;
    let entrypoint = first.at.clone();
    let mut files = base::files()?;
    files.extend(programs);
    Ok(Made {
        tag,
        archive: Archive::of(&Contents {
            entrypoint,
            command: &[],
            files,
        })?,
    })
}

/// etcd, and a stand-in for its proxy of metrics: upstream's rejects the certificate that OpenShift's accepts.
fn etcd(server: File, ctl: File, stand_in: File) -> Result<Made> {
    let choice = "#!/bin/sh\n\
                  if [ \"$1\" = grpc-proxy ]; then exec etcd-grpc-proxy \"$@\"; fi\n\
                  exec etcd-server \"$@\"\n";
    let programs = vec![
        File::script(format!("{PROGRAMS}/etcd"), choice),
        server,
        ctl,
        stand_in,
        File::link(format!("{PROGRAMS}/etcd-grpc-proxy"), "stand-in"),
    ];
    real("etcd", programs)
}

/// The daemon of nodes, with the programs that make their configuration.
async fn machine_config(
    mut files: Vec<File>,
    programs: OptionalPrograms,
    progress: &Progress,
) -> Result<Made> {
    if programs.makes_configuration() {
        let built = tool("machine-config", progress).await?;
        files.extend(MACHINE_CONFIG.map(|name| {
            let mut program = built.clone();
            program.at = format!("{PROGRAMS}/{name}");
            program
        }));
        files.extend(
            templates::ALL.map(|(name, text)| File::text(format!("{TEMPLATES}/{name}"), text)),
        );
    }
    real("machine-config-operator", files)
}

/// A stand-in that replaces one program: an aggregated API server, which it serves from memory, or the autoscaler.
async fn renamed(tag: &'static str, stand_in: &'static str, progress: &Progress) -> Result<Made> {
    let mut program = tool(stand_in, progress).await?;
    program.at = format!("{PROGRAMS}/{tag}");
    real(tag, vec![program])
}

/// The Operator Lifecycle Manager; only OpenShift's build has a collector of profiles.
fn lifecycle_manager(binaries: &Binaries, stand_in: File) -> Result<Made> {
    let program = |binary: Binary, name: &str| {
        anyhow::Ok(File::program(
            format!("/bin/{name}"),
            binaries.path(binary)?,
        ))
    };
    real(
        "operator-lifecycle-manager",
        vec![
            program(Binary::Olm, "olm")?,
            program(Binary::OlmCatalog, "catalog")?,
            program(Binary::OlmPackageServer, "package-server")?,
            program(Binary::OlmCopyContent, "copy-content")?,
            program(Binary::OlmCopyBundle, "cpb")?,
            stand_in,
            File::link("/bin/collect-profiles", format!("{PROGRAMS}/stand-in")),
        ],
    )
}

/// What serves catalogs and unpacks bundles, with further files.
pub(super) fn registry(binaries: &Binaries, further: Vec<File>) -> Result<Archive> {
    let opm = "/bin/opm";
    let mut files = base::files()?;
    files.push(File::program(opm, binaries.path(Binary::Opm)?));
    let probe = binaries.path(Binary::GrpcHealthProbe)?;
    files.push(File::program("/bin/grpc_health_probe", probe));
    files.extend(further);
    Archive::of(&Contents {
        entrypoint: opm.to_owned(),
        // What a catalog's image does in a pod that OLM makes.
        command: &["serve", "/configs", "--cache-dir=/tmp/cache"],
        files,
    })
}

/// The konnectivity server and agent. OpenShift's build of the server has a flag that upstream's does not have.
fn konnectivity(server: File, agent: File) -> Result<Made> {
    let without_flag = "#!/bin/sh\n\
                        for flag; do\n\
                        shift\n\
                        case $flag in --tls-min-version=*) ;; *) set -- \"$@\" \"$flag\" ;; esac\n\
                        done\n\
                        exec konnectivity-server \"$@\"\n";
    let programs = vec![
        File::script(format!("{PROGRAMS}/proxy-server"), without_flag),
        server,
        agent,
    ];
    real("apiserver-network-proxy", programs)
}

/// The real program, and the files that it reads: as in the Dockerfile of its module.
fn config_api(render: File, definitions: &Definitions) -> Result<Made> {
    let mut files = vec![render];
    files.extend(definitions.of_config_api()?);
    real("cluster-config-api", files)
}

/// A manager of Cluster API, also under the name that most call it by.
fn manager(tag: &'static str, program: File) -> Result<Made> {
    let link = File::link("/manager", program.at.clone());
    real(tag, vec![program, link])
}

/// Debian's haproxy, which is linked to libraries.
fn haproxy() -> Result<Made> {
    let at = "/usr/sbin/haproxy";
    let mut programs = base::with_libraries(at, at)?;
    programs.push(File::text("/usr/local/etc/haproxy/.keep", ""));
    real("haproxy-router", programs)
}

async fn tool(name: &'static str, progress: &Progress) -> Result<File> {
    let package = "pod-tools";
    let built = build_static(&StaticProgram { package, name }, progress).await?;
    Ok(File::program(format!("{PROGRAMS}/{name}"), built))
}
