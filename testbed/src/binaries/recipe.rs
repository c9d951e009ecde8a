//! How each program is built: its Go module and package.

use super::Binary;
use crate::modules::Module;
use crate::providers::Provider;

/// How one program is built.
#[derive(Debug)]
pub(super) struct Recipe {
    pub(super) module: Module,
    /// The Go module whose version the program reports.
    pub(super) versioned_by: &'static str,
    pub(super) package: &'static str,
    /// The Go package whose variables hold the version, where there is one.
    version_package: Option<&'static str>,
}

// === impl Binary ===

impl Binary {
    /// How it is built.
    pub(super) fn recipe(self) -> Recipe {
        let kubernetes = |package| Recipe {
            module: Module::Kubernetes,
            versioned_by: "k8s.io/kubernetes",
            package,
            version_package: Some("k8s.io/component-base/version"),
        };
        let cluster_api = |package| Recipe {
            module: Module::ClusterApi,
            versioned_by: "sigs.k8s.io/cluster-api",
            package,
            version_package: Some("sigs.k8s.io/cluster-api/version"),
        };
        let containerd = |package| Recipe {
            module: Module::Node,
            versioned_by: "github.com/containerd/containerd/v2",
            package,
            version_package: None,
        };
        let olm = |package| Recipe {
            module: Module::Olm,
            versioned_by: "github.com/operator-framework/operator-lifecycle-manager",
            package,
            version_package: None,
        };
        let konnectivity = |package| Recipe {
            module: Module::Konnectivity,
            versioned_by: "sigs.k8s.io/apiserver-network-proxy",
            package,
            version_package: None,
        };
        match self {
            Self::Etcd => Recipe {
                module: Module::Etcd,
                versioned_by: "go.etcd.io/etcd/server/v3",
                package: "go.etcd.io/etcd/server/v3",
                version_package: None,
            },
            Self::KubeApiserver => kubernetes("k8s.io/kubernetes/cmd/kube-apiserver"),
            Self::KubeControllerManager => {
                kubernetes("k8s.io/kubernetes/cmd/kube-controller-manager")
            }
            Self::Kubectl => kubernetes("k8s.io/kubernetes/cmd/kubectl"),
            Self::CapiCore => cluster_api("sigs.k8s.io/cluster-api"),
            Self::KubeadmBootstrap => cluster_api("sigs.k8s.io/cluster-api/bootstrap/kubeadm"),
            Self::KubeadmControlPlane => {
                cluster_api("sigs.k8s.io/cluster-api/controlplane/kubeadm")
            }
            Self::DevProvider => cluster_api("sigs.k8s.io/cluster-api/test/infrastructure/docker"),
            Self::PlatformCore => Recipe {
                module: Module::Platform,
                ..cluster_api("sigs.k8s.io/cluster-api")
            },
            Self::Clusterctl => cluster_api("sigs.k8s.io/cluster-api/cmd/clusterctl"),
            Self::KubeScheduler => kubernetes("k8s.io/kubernetes/cmd/kube-scheduler"),
            Self::Kubelet => kubernetes("k8s.io/kubernetes/cmd/kubelet"),
            Self::KubeProxy => kubernetes("k8s.io/kubernetes/cmd/kube-proxy"),
            Self::Containerd => containerd("github.com/containerd/containerd/v2/cmd/containerd"),
            Self::ContainerdShim => {
                containerd("github.com/containerd/containerd/v2/cmd/containerd-shim-runc-v2")
            }
            Self::Registry => Recipe {
                module: Module::Node,
                versioned_by: "github.com/distribution/distribution/v3",
                package: "./registry",
                version_package: None,
            },
            Self::CoreDns => Recipe {
                module: Module::Node,
                versioned_by: "github.com/coredns/coredns",
                package: "./coredns",
                version_package: None,
            },
            Self::AwsProvider => of_provider(Provider::Aws),
            Self::KubevirtProvider => of_provider(Provider::Kubevirt),
            Self::GcpProvider => of_provider(Provider::Gcp),
            Self::AzureProvider => of_provider(Provider::Azure),
            Self::OpenstackProvider => of_provider(Provider::Openstack),
            Self::IbmcloudProvider => of_provider(Provider::Ibmcloud),
            Self::LocalPath => Recipe {
                module: Module::Storage,
                versioned_by: "github.com/rancher/local-path-provisioner",
                package: "github.com/rancher/local-path-provisioner",
                version_package: None,
            },
            Self::Etcdctl => Recipe {
                module: Module::Etcdctl,
                versioned_by: "go.etcd.io/etcd/etcdctl/v3",
                package: "go.etcd.io/etcd/etcdctl/v3",
                version_package: None,
            },
            Self::Etcdutl => Recipe {
                module: Module::Etcdutl,
                versioned_by: "go.etcd.io/etcd/etcdutl/v3",
                package: "go.etcd.io/etcd/etcdutl/v3",
                version_package: None,
            },
            Self::Olm => olm("github.com/operator-framework/operator-lifecycle-manager/cmd/olm"),
            Self::OlmCatalog => {
                olm("github.com/operator-framework/operator-lifecycle-manager/cmd/catalog")
            }
            Self::OlmPackageServer => {
                olm("github.com/operator-framework/operator-lifecycle-manager/cmd/package-server")
            }
            Self::OlmCopyContent => {
                olm("github.com/operator-framework/operator-lifecycle-manager/cmd/copy-content")
            }
            Self::OlmCopyBundle => {
                olm("github.com/operator-framework/operator-lifecycle-manager/util/cpb")
            }
            Self::Opm => Recipe {
                versioned_by: "github.com/operator-framework/operator-registry",
                ..olm("github.com/operator-framework/operator-registry/cmd/opm")
            },
            Self::GrpcHealthProbe => Recipe {
                versioned_by: "github.com/grpc-ecosystem/grpc-health-probe",
                ..olm("github.com/grpc-ecosystem/grpc-health-probe")
            },
            Self::KonnectivityServer => {
                konnectivity("sigs.k8s.io/apiserver-network-proxy/cmd/server")
            }
            Self::KonnectivityAgent => {
                konnectivity("sigs.k8s.io/apiserver-network-proxy/cmd/agent")
            }
            Self::Render => Recipe {
                module: Module::OpenshiftApi,
                versioned_by: "github.com/openshift/api",
                package: "github.com/openshift/api/payload-command/cmd/render",
                version_package: None,
            },
            Self::Dex => Recipe {
                module: Module::Dex,
                versioned_by: "github.com/dexidp/dex",
                package: "./dex",
                version_package: None,
            },
            Self::Karpenter => Recipe {
                module: Module::Karpenter,
                versioned_by: "github.com/aws/karpenter-provider-aws",
                package: "github.com/aws/karpenter-provider-aws/cmd/controller",
                version_package: None,
            },
            Self::AwsCloudController => Recipe {
                module: Module::AwsCloudController,
                versioned_by: "k8s.io/cloud-provider-aws",
                package: "k8s.io/cloud-provider-aws/cmd/aws-cloud-controller-manager",
                version_package: Some("k8s.io/component-base/version"),
            },
        }
    }
}

/// A provider is the main package of its module.
fn of_provider(provider: Provider) -> Recipe {
    Recipe {
        module: provider.module(),
        versioned_by: provider.go_module(),
        package: provider.go_module(),
        version_package: None,
    }
}

// === impl Recipe ===

impl Recipe {
    /// What the linker is given: the version, where the program has a place for it.
    pub(super) fn linker_flags(&self, version: &str) -> String {
        let mut flags = vec!["-s -w".to_owned()];
        if let Some(package) = self.version_package {
            let mut numbers = version.trim_start_matches('v').split('.');
            let (major, minor) = (numbers.next(), numbers.next());
            let values = [
                ("gitVersion", version),
                ("gitMajor", major.unwrap_or_default()),
                ("gitMinor", minor.unwrap_or_default()),
                ("gitTreeState", "clean"),
            ];
            flags.extend(values.map(|(name, value)| format!("-X {package}.{name}={value}")));
        }
        flags.join(" ")
    }
}
