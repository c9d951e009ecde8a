//! The images of the payload: which there are, and what is in them.

use anyhow::{Context, Result};

use super::{base, stand_ins};
use crate::binaries::{Binaries, Binary};
use crate::images::{Archive, Contents, File, Image, StaticProgram, build_static};
use crate::progress::Progress;

/// The released programs in them.
pub(super) const NEEDED: [Binary; 8] = [
    Binary::Etcd,
    Binary::Etcdctl,
    Binary::KubeApiserver,
    Binary::KubeControllerManager,
    Binary::KubeScheduler,
    Binary::Kubectl,
    Binary::CapiCore,
    Binary::AwsProvider,
];
/// The tags of images with real programs.
pub(super) const TAGS: [&str; 9] = [
    "hypershift",
    "etcd",
    "hyperkube",
    "cli",
    "cluster-etcd-operator",
    "cluster-capi-controllers",
    "aws-cluster-api-controllers",
    "haproxy-router",
    "machine-config-operator",
];
/// The stand-in for the daemon that upgrades a node in place.
const DAEMON: &str = include_str!("machine-config-daemon.sh");
/// Where programs lie.
const PROGRAMS: &str = "/usr/bin";

/// An image of real programs.
#[derive(Debug)]
pub(super) struct Made {
    /// The tag under which a release names it.
    pub(super) tag: &'static str,
    pub(super) archive: Archive,
}

/// Builds the stand-in for all other programs.
pub(super) async fn stand_in(progress: &Progress) -> Result<Archive> {
    stand_ins::image(&tool("stand-in", progress).await?)
}

/// Builds all images of real programs.
pub(super) async fn build(binaries: &Binaries, progress: &Progress) -> Result<Vec<Made>> {
    let hyperkube = tool("hyperkube", progress).await?;
    let readyz = tool("etcd-readyz", progress).await?;
    let ours = Image::ControlPlaneOperator.build(progress).await?;
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
        haproxy()?,
        real(
            "machine-config-operator",
            vec![
                File::script(format!("{PROGRAMS}/machine-config-daemon"), DAEMON),
                program(Binary::Kubectl, "kubectl")?,
                tool("ignite", progress).await?,
            ],
        )?,
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
