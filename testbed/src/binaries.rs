//! The released programs that the testbed runs: found in the cache, or built from the pinned Go modules.
//!
//! A program lies under `<cache>/hypershift-testbed/<module>-<hash>/bin`, where the hash covers `go.mod`, `go.sum` and
//! the build flags. It is built under another name and renamed, so that a killed build leaves nothing half-made.

mod recipe;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context, Result, bail};
use futures::stream::{self, StreamExt, TryStreamExt};

use crate::lock::Lock;
use crate::modules::{GO_MISSING, Module};
use crate::progress::Progress;

/// Environment variable that says where built programs are kept.
pub const CACHE_VARIABLE: &str = "HYPERSHIFT_TESTBED_CACHE";
/// Environment variable of the envtest convention: a directory that holds etcd and kube-apiserver.
const ASSETS_VARIABLE: &str = "KUBEBUILDER_ASSETS";

/// No debugging information: it is stripped from the programs anyway, and costs a tenth of the time to compile.
const COMPILER_FLAGS: &str = "-gcflags=all=-dwarf=false";
/// How many modules are built at once: linking a program and compiling a large package use one processor.
const BUILDS: usize = 2;

/// A program that the testbed can run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Binary {
    /// The store.
    Etcd,
    /// The API server.
    KubeApiserver,
    /// Garbage collection and the other built-in controllers.
    KubeControllerManager,
    /// The command line.
    Kubectl,
    /// Cluster API's core manager.
    CapiCore,
    /// Cluster API's kubeadm bootstrap manager.
    KubeadmBootstrap,
    /// Cluster API's kubeadm control-plane manager.
    KubeadmControlPlane,
    /// Cluster API's development provider, with its in-memory backend.
    DevProvider,
    /// The core manager of a platform's own Cluster API, of another version.
    PlatformCore,
    /// Cluster API's command line.
    Clusterctl,
    /// Decides which node a pod runs on.
    KubeScheduler,
    /// Runs the pods of a node.
    Kubelet,
    /// Makes Services reachable on a node.
    KubeProxy,
    /// The container runtime of a node.
    Containerd,
    /// What containerd starts beside each pod.
    ContainerdShim,
    /// The OCI registry.
    Registry,
    /// The cluster's name service.
    CoreDns,
    /// Cluster API's AWS provider.
    AwsProvider,
    /// Cluster API's KubeVirt provider.
    KubevirtProvider,
    /// Cluster API's GCP provider.
    GcpProvider,
    /// Cluster API's Azure provider.
    AzureProvider,
    /// Cluster API's OpenStack provider.
    OpenstackProvider,
    /// Cluster API's provider for IBM Cloud and `PowerVS`.
    IbmcloudProvider,
    /// Gives pods volumes on their node.
    LocalPath,
    /// etcd's command line.
    Etcdctl,
    /// etcd's tool for data directories.
    Etcdutl,
    /// Installs operators.
    Olm,
    /// Resolves what operators need from catalogs.
    OlmCatalog,
    /// Serves the packages of catalogs as an API.
    OlmPackageServer,
    /// Copies the content of a catalog's image.
    OlmCopyContent,
    /// Copies the content of a bundle's image.
    OlmCopyBundle,
    /// Serves catalogs, and unpacks bundles.
    Opm,
    /// Probes gRPC servers.
    GrpcHealthProbe,
    /// The end of the tunnel at a hosted API server.
    KonnectivityServer,
    /// The end of the tunnel at a node, or in the control plane.
    KonnectivityAgent,
    /// Renders the feature gates and the first CRDs of an OpenShift release.
    Render,
    /// An `OpenID` Connect provider.
    Dex,
    /// Makes nodes on AWS as pods need them.
    Karpenter,
    /// Initializes nodes on AWS, and makes load balancers there.
    AwsCloudController,
}

/// Programs that are there to be run.
#[derive(Debug, Clone)]
pub struct Binaries {
    paths: HashMap<Binary, PathBuf>,
}

// === impl Binary ===

impl Binary {
    /// All that `cargo xtask test` needs: all but [`Self::SOAKS`].
    pub const ALL: [Self; 31] = [
        Self::Etcd,
        Self::KubeApiserver,
        Self::KubeControllerManager,
        Self::Kubectl,
        Self::CapiCore,
        Self::KubeadmBootstrap,
        Self::KubeadmControlPlane,
        Self::DevProvider,
        Self::PlatformCore,
        Self::Clusterctl,
        Self::KubeScheduler,
        Self::Kubelet,
        Self::KubeProxy,
        Self::Containerd,
        Self::ContainerdShim,
        Self::Registry,
        Self::CoreDns,
        Self::AwsProvider,
        Self::LocalPath,
        Self::Etcdctl,
        Self::Etcdutl,
        Self::Olm,
        Self::OlmCatalog,
        Self::OlmPackageServer,
        Self::OlmCopyContent,
        Self::OlmCopyBundle,
        Self::Opm,
        Self::GrpcHealthProbe,
        Self::KonnectivityServer,
        Self::KonnectivityAgent,
        Self::Render,
    ];
    /// Those that only soaks run, and build: each takes minutes to compile.
    pub const SOAKS: [Self; 8] = [
        Self::KubevirtProvider,
        Self::Dex,
        Self::GcpProvider,
        Self::AzureProvider,
        Self::OpenstackProvider,
        Self::IbmcloudProvider,
        Self::Karpenter,
        Self::AwsCloudController,
    ];
    /// The parts of a testbed of level control-plane, with command lines to use it.
    pub const LEVEL_CONTROL_PLANE: [Self; 9] = [
        Self::Etcd,
        Self::KubeApiserver,
        Self::KubeControllerManager,
        Self::Kubectl,
        Self::CapiCore,
        Self::KubeadmBootstrap,
        Self::KubeadmControlPlane,
        Self::DevProvider,
        Self::Clusterctl,
    ];
    /// The parts of a testbed of level node, with the command line to use it.
    pub const LEVEL_NODE: [Self; 11] = [
        Self::Etcd,
        Self::KubeApiserver,
        Self::KubeControllerManager,
        Self::Kubectl,
        Self::KubeScheduler,
        Self::Kubelet,
        Self::KubeProxy,
        Self::Containerd,
        Self::ContainerdShim,
        Self::Registry,
        Self::CoreDns,
    ];
    /// The control plane alone.
    pub const CONTROL_PLANE: [Self; 3] =
        [Self::Etcd, Self::KubeApiserver, Self::KubeControllerManager];

    /// The program's file name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Etcd => "etcd",
            Self::KubeApiserver => "kube-apiserver",
            Self::KubeControllerManager => "kube-controller-manager",
            Self::Kubectl => "kubectl",
            Self::CapiCore => "cluster-api-manager",
            Self::KubeadmBootstrap => "kubeadm-bootstrap-manager",
            Self::KubeadmControlPlane => "kubeadm-control-plane-manager",
            Self::DevProvider => "dev-provider-manager",
            // It lies in a directory of its own.
            Self::PlatformCore => "cluster-api-manager",
            Self::Clusterctl => "clusterctl",
            Self::KubeScheduler => "kube-scheduler",
            Self::Kubelet => "kubelet",
            Self::KubeProxy => "kube-proxy",
            Self::Containerd => "containerd",
            // containerd looks for it under this name.
            Self::ContainerdShim => "containerd-shim-runc-v2",
            Self::Registry => "registry",
            Self::CoreDns => "coredns",
            Self::AwsProvider => "cluster-api-provider-aws-controller",
            Self::KubevirtProvider => "cluster-api-provider-kubevirt-manager",
            Self::GcpProvider => "cluster-api-provider-gcp-manager",
            Self::AzureProvider => "cluster-api-provider-azure-manager",
            Self::OpenstackProvider => "cluster-api-provider-openstack-manager",
            Self::IbmcloudProvider => "cluster-api-provider-ibmcloud-manager",
            Self::LocalPath => "local-path-provisioner",
            Self::Etcdctl => "etcdctl",
            Self::Etcdutl => "etcdutl",
            Self::Olm => "olm",
            Self::OlmCatalog => "catalog",
            Self::OlmPackageServer => "package-server",
            Self::OlmCopyContent => "copy-content",
            Self::OlmCopyBundle => "cpb",
            Self::Opm => "opm",
            Self::GrpcHealthProbe => "grpc-health-probe",
            Self::KonnectivityServer => "konnectivity-server",
            Self::KonnectivityAgent => "konnectivity-agent",
            Self::Render => "render",
            Self::Dex => "dex",
            Self::Karpenter => "karpenter",
            Self::AwsCloudController => "aws-cloud-controller-manager",
        }
    }

    /// The version that the version table gives it.
    pub fn version(self) -> Result<String> {
        let recipe = self.recipe();
        recipe.module.version_of(recipe.versioned_by)
    }

    /// The program in the envtest directory, if there is one.
    fn asset(self) -> Option<PathBuf> {
        if !matches!(self, Self::Etcd | Self::KubeApiserver) {
            return None;
        }
        let directory = std::env::var_os(ASSETS_VARIABLE)?;
        Some(PathBuf::from(directory).join(self.name())).filter(|path| path.is_file())
    }
}

// === impl Binaries ===

impl Binaries {
    /// Finds the requested programs, and builds those that are missing.
    pub async fn ensure(desired: &[Binary], progress: &Progress) -> Result<Self> {
        let mut found = Self {
            paths: HashMap::new(),
        };
        let mut missing = Vec::new();
        for &binary in desired {
            match binary.asset() {
                Some(path) => drop(found.paths.insert(binary, path)),
                None => missing.push((binary, cached(binary)?)),
            }
        }
        if missing.iter().any(|(_, path)| !path.is_file()) {
            build_all(&missing, progress).await?;
        }
        found.paths.extend(missing);
        Ok(found)
    }

    /// Where a program is.
    pub fn path(&self, binary: Binary) -> Result<&Path> {
        let path = self.paths.get(&binary).map(PathBuf::as_path);
        path.with_context(|| {
            format!(
                "the testbed was started without {}: add it in the builder",
                binary.name()
            )
        })
    }
}

/// Where built programs are kept.
pub fn cache() -> Result<PathBuf> {
    if let Some(directory) = std::env::var_os(CACHE_VARIABLE) {
        return Ok(PathBuf::from(directory).join("hypershift-testbed"));
    }
    let base = match std::env::var_os("XDG_CACHE_HOME") {
        Some(directory) => PathBuf::from(directory),
        None => std::env::home_dir()
            .with_context(|| format!("no home directory: set {CACHE_VARIABLE}"))?
            .join(".cache"),
    };
    Ok(base.join("hypershift-testbed"))
}

fn cached(binary: Binary) -> Result<PathBuf> {
    let recipe = binary.recipe();
    let flags = recipe.linker_flags(&binary.version()?) + COMPILER_FLAGS + recipe.module.tags();
    let place = format!(
        "{}-{}",
        recipe.module.name(),
        recipe.module.fingerprint(&flags)?
    );
    Ok(cache()?.join(place).join("bin").join(binary.name()))
}

async fn build_all(desired: &[(Binary, PathBuf)], progress: &Progress) -> Result<()> {
    let _lock = lock(progress).await?;
    let mut building = Vec::new();
    for programs in by_module(desired) {
        building.push(build_in_order(programs, progress.clone()));
    }
    stream::iter(building)
        .buffer_unordered(BUILDS)
        .try_collect()
        .await
}

async fn build_in_order(programs: Vec<(Binary, PathBuf)>, progress: Progress) -> Result<()> {
    for (binary, path) in programs {
        // Another run may have built it while this one waited.
        if !path.is_file() {
            build(binary, &path, &progress).await?;
        }
    }
    Ok(())
}

/// Programs of one module share most packages, so they are built one after the other; modules share none.
fn by_module(desired: &[(Binary, PathBuf)]) -> Vec<Vec<(Binary, PathBuf)>> {
    let mut groups: Vec<(Module, Vec<_>)> = Vec::new();
    for (binary, path) in desired {
        let module = binary.recipe().module;
        let program = (*binary, path.clone());
        match groups.iter_mut().find(|(of, _)| *of == module) {
            Some((_, programs)) => programs.push(program),
            None => groups.push((module, vec![program])),
        }
    }
    groups.into_iter().map(|(_, programs)| programs).collect()
}

/// Two runs that build at once would only take each other's processors.
async fn lock(progress: &Progress) -> Result<Lock> {
    let directory = cache()?;
    std::fs::create_dir_all(&directory)
        .with_context(|| format!("cannot create {}", directory.display()))?;
    let path = directory.join("lock");
    if let Some(lock) = Lock::try_take(&path)? {
        return Ok(lock);
    }
    let waiting = progress.step("waiting for another build of the testbed's programs");
    let lock = Lock::take(&path).await?;
    waiting.done();
    Ok(lock)
}

async fn build(binary: Binary, path: &Path, progress: &Progress) -> Result<()> {
    let recipe = binary.recipe();
    let version = binary.version()?;
    let step = progress.step(format!("building {} {version}", binary.name()));
    let directory = path
        .parent()
        .expect("invariant: programs lie in a bin directory");
    std::fs::create_dir_all(directory)
        .with_context(|| format!("cannot create {}", directory.display()))?;
    let unfinished = directory.join(format!(".{}.{}", binary.name(), std::process::id()));
    let output = tokio::process::Command::new("go")
        .args(["build", "-trimpath", COMPILER_FLAGS])
        .args(["-tags", recipe.module.tags(), "-ldflags"])
        .arg(recipe.linker_flags(&version))
        .arg("-o")
        .arg(&unfinished)
        .arg(recipe.package)
        .env("CGO_ENABLED", "0")
        .current_dir(recipe.module.directory())
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output()
        .await
        .context(GO_MISSING)?;
    if !output.status.success() {
        drop(std::fs::remove_file(&unfinished));
        bail!(
            "go cannot build {} {version} ({}):\n{}",
            recipe.package,
            output.status,
            String::from_utf8_lossy(&output.stderr)
        );
    }
    std::fs::rename(&unfinished, path)
        .with_context(|| format!("cannot put {} in place", path.display()))?;
    step.done();
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_report_the_version_of_the_table() {
        let flags = Binary::KubeApiserver.recipe().linker_flags("v1.35.4");
        for part in ["gitVersion=v1.35.4", "gitMajor=1", "gitMinor=35"] {
            assert!(flags.contains(part), "{flags}");
        }
        assert_eq!(Binary::Etcd.recipe().linker_flags("v3.6.5"), "-s -w");
    }

    #[test]
    fn programs_of_a_module_are_built_in_order() {
        let desired = [
            Binary::Kubelet,
            Binary::Etcd,
            Binary::Kubectl,
            Binary::Registry,
        ];
        let desired = desired.map(|binary| (binary, PathBuf::from(binary.name())));
        let names: Vec<Vec<_>> = by_module(&desired)
            .into_iter()
            .map(|group| group.into_iter().map(|(binary, _)| binary.name()).collect())
            .collect();
        assert_eq!(
            names,
            [vec!["kubelet", "kubectl"], vec!["etcd"], vec!["registry"]]
        );
    }

    #[test]
    fn each_program_has_its_own_path() {
        let all = || Binary::ALL.iter().chain(&Binary::SOAKS);
        let places: std::collections::HashSet<_> =
            all().map(|&binary| cached(binary).unwrap()).collect();
        assert_eq!(places.len(), all().count());
    }
}
