//! The stock managers of Cluster API: which programs they are, what they may do, and how they are run outside a cluster.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use api::group::CapiTypes;
use serde_json::Value;

use crate::binaries::{Binaries, Binary};
use crate::fixtures;
use crate::modules::Module;
use crate::process::Launch;
use crate::service_account::Reach;

/// One of the managers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Manager {
    /// Cluster, Machine, `MachineSet`, `MachineDeployment`, topology, health checks.
    Core,
    /// `KubeadmConfig`: bootstrap data.
    KubeadmBootstrap,
    /// `KubeadmControlPlane`.
    KubeadmControlPlane,
    /// `DevCluster` and `DevMachine`, whose in-memory backend pretends to be a cloud with clusters in it.
    DevProvider,
    /// The core manager of a platform that has another version of Cluster API. It works on standard types only.
    PlatformCore,
}

/// What a manager has to know about where it runs.
#[derive(Debug)]
pub(crate) struct Settings<'a> {
    /// How it reaches its API server.
    pub kubeconfig: &'a Path,
    /// What it looks after.
    pub reach: &'a Reach,
    /// The types that it uses.
    pub capi_types: CapiTypes,
    /// The directory of its webhook server's certificate.
    pub certificates: &'a Path,
    /// The ports that it listens on.
    pub ports: &'a ManagerPorts,
    /// The namespace of its service account.
    pub namespace: &'a str,
}

/// The ports of one manager.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ManagerPorts {
    pub health: u16,
    pub diagnostics: u16,
    pub webhook: u16,
}

// === impl Manager ===

impl Manager {
    /// The four of one version, which make a whole Cluster API.
    pub const ALL: [Self; 4] = [
        Self::Core,
        Self::KubeadmBootstrap,
        Self::KubeadmControlPlane,
        Self::DevProvider,
    ];

    /// Its name: of its service account, its log and its proxy's log.
    pub fn name(self) -> &'static str {
        match self {
            Self::Core => "capi-core",
            Self::KubeadmBootstrap => "capi-kubeadm-bootstrap",
            Self::KubeadmControlPlane => "capi-kubeadm-control-plane",
            Self::DevProvider => "capi-dev-provider",
            Self::PlatformCore => "capi-platform-core",
        }
    }

    /// Its program.
    pub fn binary(self) -> Binary {
        match self {
            Self::Core => Binary::CapiCore,
            Self::KubeadmBootstrap => Binary::KubeadmBootstrap,
            Self::KubeadmControlPlane => Binary::KubeadmControlPlane,
            Self::DevProvider => Binary::DevProvider,
            Self::PlatformCore => Binary::PlatformCore,
        }
    }

    /// The roles that it has for given types: ours on private groups, upstream's own on standard ones.
    pub(crate) async fn roles(self, capi_types: CapiTypes) -> Result<Vec<Value>> {
        match capi_types {
            CapiTypes::Private => fixtures::load(&self.private_roles()?),
            CapiTypes::Standard => {
                let sources = self.module().sources_of(self.go_module()).await?;
                let mut roles = fixtures::load(&sources.join(self.upstream_role()))?;
                for role in &mut roles {
                    // Upstream's are all called manager-role until kustomize prefixes them.
                    role["metadata"]["name"] = Value::from(format!("platform-{}", self.name()));
                }
                Ok(roles)
            }
        }
    }

    fn private_roles(self) -> Result<PathBuf> {
        let installed = fixtures::install_manifests().join("cluster-api");
        Ok(match self {
            Self::Core => installed.join("core.yaml"),
            Self::KubeadmBootstrap => installed.join("kubeadm-bootstrap.yaml"),
            Self::KubeadmControlPlane => installed.join("kubeadm-control-plane.yaml"),
            Self::DevProvider => fixtures::directory().join("rbac/dev-provider.yaml"),
            Self::PlatformCore => {
                bail!("a platform's own manager has no business with private types")
            }
        })
    }

    /// The version table that it is in.
    fn module(self) -> Module {
        match self {
            Self::PlatformCore => Module::Platform,
            _ => Module::ClusterApi,
        }
    }

    fn go_module(self) -> &'static str {
        match self {
            Self::Core
            | Self::KubeadmBootstrap
            | Self::KubeadmControlPlane
            | Self::PlatformCore => "sigs.k8s.io/cluster-api",
            Self::DevProvider => "sigs.k8s.io/cluster-api/test",
        }
    }

    fn upstream_role(self) -> &'static str {
        match self {
            Self::Core | Self::PlatformCore => "config/rbac/role.yaml",
            Self::KubeadmBootstrap => "bootstrap/kubeadm/config/rbac/role.yaml",
            Self::KubeadmControlPlane => "controlplane/kubeadm/config/rbac/role.yaml",
            Self::DevProvider => "infrastructure/docker/config/rbac/role.yaml",
        }
    }

    /// Its flags, wherever it runs.
    pub(crate) fn flags(capi_types: CapiTypes, reach: &Reach) -> Vec<String> {
        let mut flags = vec![
            "--insecure-diagnostics".to_owned(),
            "--feature-gates=ClusterTopology=true".to_owned(),
        ];
        let one_namespace = matches!(reach, Reach::Namespace(_));
        if let Reach::Namespace(namespace) = reach {
            flags.push(format!("--namespace={namespace}"));
        }
        if capi_types == CapiTypes::Private || one_namespace {
            // Private CRDs belong to the product's installer: their managers have no right to write them. And a manager that
            // sees one namespace cannot say which versions are stored in all.
            let phases = "StorageVersionMigration,CleanupManagedFields";
            flags.push(format!("--skip-crd-migration-phases={phases}"));
        }
        flags
    }

    /// How it is started.
    pub(crate) fn launch(
        self,
        name: &str,
        binaries: &Binaries,
        settings: &Settings<'_>,
    ) -> Result<Launch> {
        let ports = settings.ports;
        let launch = Launch::new(name, binaries.path(self.binary())?)
            .path_flag("kubeconfig", settings.kubeconfig)
            .flag("health-addr", format!("127.0.0.1:{}", ports.health))
            .flag(
                "diagnostics-address",
                format!("127.0.0.1:{}", ports.diagnostics),
            )
            // The webhook server cannot be turned off; nothing calls it.
            .flag("webhook-port", ports.webhook)
            .path_flag("webhook-cert-dir", settings.certificates)
            .environment("POD_NAMESPACE", settings.namespace)
            .environment("POD_NAME", self.name())
            .environment("POD_UID", "00000000-0000-0000-0000-000000000000")
            // The in-memory provider puts it into control plane endpoints.
            .environment("POD_IP", "127.0.0.1");
        let flags = Self::flags(settings.capi_types, settings.reach);
        Ok(flags.into_iter().fold(launch, Launch::arg))
    }
}
