//! The Go modules of the version table (`testbed/binaries/*/go.mod`): their versions and where their sources lie.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context, Result, bail};
use serde::Deserialize;
use sha2::{Digest, Sha256};

/// A wrapper module: one directory with its own `go.mod`, because the dependency graphs do not fit together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Module {
    /// The Kubernetes programs: of the control plane, of a node, and kubectl.
    Kubernetes,
    /// etcd.
    Etcd,
    /// The Cluster API managers and clusterctl.
    ClusterApi,
    /// A platform's own Cluster API, of another version.
    Platform,
    /// Providers of which only the CRDs are used.
    Providers,
    /// What nodes need beside Kubernetes: container runtime, registry, name service.
    Node,
    /// The AWS provider.
    Aws,
    /// The KubeVirt provider.
    Kubevirt,
    /// The GCP provider.
    Gcp,
    /// The Azure provider.
    Azure,
    /// The OpenStack provider.
    Openstack,
    /// The provider for IBM Cloud and `PowerVS`.
    Ibmcloud,
    /// What gives pods their volumes.
    Storage,
    /// etcd's command line.
    Etcdctl,
    /// etcd's tool for data directories.
    Etcdutl,
    /// The Operator Lifecycle Manager, and what serves its catalogs.
    Olm,
    /// The tunnel from a hosted API server to its nodes.
    Konnectivity,
    /// OpenShift's kinds, and the program that renders them.
    OpenshiftApi,
    /// Other kinds of a hosted cluster, of which only the CRDs are used.
    GuestCrds,
    /// The `OpenID` Connect provider.
    Dex,
    /// Karpenter.
    Karpenter,
    /// The AWS cloud controller manager.
    AwsCloudController,
}

/// What `go mod download -json` says of a module.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Download {
    #[serde(default)]
    dir: Option<PathBuf>,
    #[serde(default)]
    error: Option<String>,
}

// === impl Module ===

impl Module {
    /// The name of its directory.
    pub fn name(self) -> &'static str {
        match self {
            Self::Kubernetes => "kubernetes",
            Self::Etcd => "etcd",
            Self::ClusterApi => "cluster-api",
            Self::Platform => "platform",
            Self::Providers => "providers",
            Self::Node => "node",
            Self::Aws => "aws",
            Self::Kubevirt => "kubevirt",
            Self::Gcp => "gcp",
            Self::Azure => "azure",
            Self::Openstack => "openstack",
            Self::Ibmcloud => "ibmcloud",
            Self::Storage => "storage",
            Self::Etcdctl => "etcdctl",
            Self::Etcdutl => "etcdutl",
            Self::Konnectivity => "konnectivity",
            Self::Olm => "olm",
            Self::OpenshiftApi => "openshift-api",
            Self::GuestCrds => "guest-crds",
            Self::Dex => "dex",
            Self::Karpenter => "karpenter",
            Self::AwsCloudController => "aws-cloud-controller-manager",
        }
    }

    /// Build tags of its programs, separated by commas.
    pub(crate) fn tags(self) -> &'static str {
        match self {
            // Without it, opm verifies signatures with a C library.
            Self::Olm => "containers_image_openpgp",
            _ => "",
        }
    }

    /// Its directory.
    pub fn directory(self) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("binaries")
            .join(self.name())
    }

    /// Its own programs: those that are composed of a module's packages here.
    fn programs(self) -> &'static [&'static str] {
        match self {
            Self::Node => &["coredns/main.go", "registry/main.go"],
            Self::Dex => &["dex/main.go"],
            _ => &[],
        }
    }

    /// The version at which it requires the Go module `path`.
    pub fn version_of(self, path: &str) -> Result<String> {
        let file = self.directory().join("go.mod");
        let text = std::fs::read_to_string(&file)
            .with_context(|| format!("cannot read {}", file.display()))?;
        required_version(&text, path)
            .with_context(|| format!("{} does not require {path}", file.display()))
    }

    /// A hash of the module's `go.mod`, `go.sum`, programs and of `flags`: build results have this name.
    pub fn fingerprint(self, flags: &str) -> Result<String> {
        let mut hash = Sha256::new();
        let sources = ["go.mod", "go.sum"].iter().chain(self.programs());
        for name in sources {
            let file = self.directory().join(name);
            let bytes =
                std::fs::read(&file).with_context(|| format!("cannot read {}", file.display()))?;
            hash.update(&bytes);
        }
        hash.update(flags);
        hash.update(std::env::consts::ARCH);
        let text = format!("{:x}", hash.finalize());
        Ok(text[..12].to_owned())
    }

    /// The directory of the sources of the Go module `path`, downloaded when they are not there yet.
    pub async fn sources_of(self, path: &str) -> Result<PathBuf> {
        let output = tokio::process::Command::new("go")
            .args(["mod", "download", "-json", path])
            .current_dir(self.directory())
            .stdin(Stdio::null())
            .output()
            .await
            .context(GO_MISSING)?;
        let response: Download = serde_json::from_slice(&output.stdout).with_context(|| {
            format!(
                "go mod download {path} printed no result: {}",
                String::from_utf8_lossy(&output.stderr)
            )
        })?;
        match response {
            Download {
                dir: Some(directory),
                ..
            } => Ok(directory),
            Download { error, .. } => bail!(
                "cannot download {path}: {} (is the Go module proxy reachable?)",
                error.unwrap_or_default()
            ),
        }
    }
}

/// Said when the `go` command cannot be run.
pub(crate) const GO_MISSING: &str =
    "cannot run go: install Go 1.25 or newer (https://go.dev/dl) and put it in PATH";

fn required_version(go_mod: &str, path: &str) -> Option<String> {
    go_mod.lines().find_map(|line| {
        let line = line.trim();
        let line = line.strip_prefix("require ").unwrap_or(line);
        let mut words = line.split_whitespace();
        (words.next()? == path)
            .then(|| words.next())
            .flatten()
            .filter(|version| version.starts_with('v'))
            .map(str::to_owned)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::providers::Provider;

    #[test]
    fn versions_are_read_from_both_forms_of_require() {
        let text = "module x\nrequire a.example/b v1.2.3\nrequire (\n\tc.example/d/v2 v2.0.0 // indirect\n)\n\
                    replace (\n\te.example/f => e.example/f v0.1.0\n)\n";
        for (path, version) in [
            ("a.example/b", Some("v1.2.3")),
            ("c.example/d/v2", Some("v2.0.0")),
            ("e.example/f", None),
            ("c.example/d", None),
        ] {
            assert_eq!(required_version(text, path).as_deref(), version, "{path}");
        }
    }

    #[test]
    fn the_aws_provider_and_its_crds_have_the_same_version() {
        let path = "sigs.k8s.io/cluster-api-provider-aws/v2";
        let of = |module: Module| module.version_of(path).unwrap();
        assert_eq!(of(Module::Aws), of(Module::Providers));
    }

    #[test]
    fn karpenter_and_the_crds_that_hosted_clusters_get_have_the_same_version() {
        let (path, version) = api::karpenter::definitions::MODULE;
        assert_eq!(Module::Karpenter.version_of(path).unwrap(), version);
    }

    #[test]
    fn providers_and_their_installed_crds_have_the_same_versions() {
        let pinned = cli::crds::source::module::PINNED;
        for provider in Provider::ALL {
            let path = provider.go_module();
            let (_, version) = pinned.into_iter().find(|(one, _)| *one == path).unwrap();
            let own = provider.module().version_of(path).unwrap();
            assert_eq!(own, version, "{path}");
        }
        for (path, version) in cli::crds::source::module::SHARED {
            assert_eq!(Module::Openstack.version_of(path).unwrap(), version);
        }
    }

    /// Packages are compiled once for two modules only if all that they import has the same version in both.
    #[test]
    fn modules_share_versions_of_kubernetes_libraries() {
        for (module, other) in [
            (Module::Storage, Module::Kubernetes),
            (Module::ClusterApi, Module::Aws),
            (Module::Konnectivity, Module::Kubernetes),
            (Module::AwsCloudController, Module::Kubernetes),
        ] {
            for path in [
                "golang.org/x/net",
                "golang.org/x/sys",
                "golang.org/x/text",
                "google.golang.org/protobuf",
                "k8s.io/apimachinery",
                "k8s.io/client-go",
                "sigs.k8s.io/structured-merge-diff/v6",
            ] {
                let (version, expected) = (module.version_of(path), other.version_of(path));
                assert_eq!(version.unwrap(), expected.unwrap(), "{module:?}: {path}");
            }
        }
    }

    #[test]
    fn the_version_table_names_every_module() {
        for (module, path) in [
            (Module::Kubernetes, "k8s.io/kubernetes"),
            (Module::Etcd, "go.etcd.io/etcd/server/v3"),
            (Module::ClusterApi, "sigs.k8s.io/cluster-api"),
            (Module::Platform, "sigs.k8s.io/cluster-api"),
            (Module::Providers, "sigs.k8s.io/cluster-api-provider-gcp"),
            (Module::Node, "github.com/containerd/containerd/v2"),
            (Module::Aws, "sigs.k8s.io/cluster-api-provider-aws/v2"),
            (
                Module::Kubevirt,
                "sigs.k8s.io/cluster-api-provider-kubevirt",
            ),
            (Module::Gcp, "sigs.k8s.io/cluster-api-provider-gcp"),
            (Module::Azure, "sigs.k8s.io/cluster-api-provider-azure"),
            (
                Module::Openstack,
                "sigs.k8s.io/cluster-api-provider-openstack",
            ),
            (
                Module::Ibmcloud,
                "sigs.k8s.io/cluster-api-provider-ibmcloud",
            ),
            (Module::Storage, "github.com/rancher/local-path-provisioner"),
            (Module::Etcdctl, "go.etcd.io/etcd/etcdctl/v3"),
            (Module::Etcdutl, "go.etcd.io/etcd/etcdutl/v3"),
            (Module::Konnectivity, "sigs.k8s.io/apiserver-network-proxy"),
            (Module::OpenshiftApi, "github.com/openshift/api"),
            (Module::GuestCrds, "github.com/operator-framework/api"),
            (Module::Karpenter, "github.com/aws/karpenter-provider-aws"),
            (Module::AwsCloudController, "k8s.io/cloud-provider-aws"),
        ] {
            assert!(module.version_of(path).unwrap().starts_with('v'));
            assert_ne!(
                module.fingerprint("a").unwrap(),
                module.fingerprint("b").unwrap()
            );
        }
    }
}
