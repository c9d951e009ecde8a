//! The stock providers of Cluster API: which programs they are, what they may do, and how they are run outside a cluster.

use std::path::Path;

use anyhow::{Context, Result};
use api::group::{CapiTypes, GroupTable};
use serde_json::{Value, json};

use crate::binaries::{Binaries, Binary};
use crate::fixtures;
use crate::modules::Module;
use crate::process::Launch;

/// A platform of Cluster API with a provider of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Provider {
    /// Amazon Web Services.
    Aws,
    /// Google Cloud.
    Gcp,
    /// Microsoft Azure.
    Azure,
    /// KubeVirt.
    Kubevirt,
    /// OpenStack.
    Openstack,
    /// IBM Cloud, with virtual servers in a VPC.
    Ibmcloud,
    /// IBM Power Virtual Server: the same program as for IBM Cloud.
    PowerVs,
}

/// CRDs of another project that a provider uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shared {
    /// The project's Go module.
    pub path: &'static str,
    /// The names of the CRDs.
    pub crds: &'static [&'static str],
}

/// What a provider has to know about where it runs.
#[derive(Debug)]
pub struct Settings<'a> {
    /// How it reaches its API server.
    pub kubeconfig: &'a Path,
    /// The namespace that it looks after.
    pub namespace: &'a str,
    /// The directory of its webhook server's certificate.
    pub certificates: &'a Path,
    /// The port on loopback of `/readyz`.
    pub health: u16,
    /// The port on loopback of its metrics.
    pub diagnostics: u16,
    /// The port of its webhook server.
    pub webhook: u16,
}

// === impl Provider ===

impl Provider {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Aws,
        Self::Gcp,
        Self::Azure,
        Self::Kubevirt,
        Self::Openstack,
        Self::Ibmcloud,
        Self::PowerVs,
    ];

    /// Its name, in lower case.
    pub fn name(self) -> &'static str {
        match self {
            Self::Aws => "aws",
            Self::Gcp => "gcp",
            Self::Azure => "azure",
            Self::Kubevirt => "kubevirt",
            Self::Openstack => "openstack",
            Self::Ibmcloud => "ibmcloud",
            Self::PowerVs => "powervs",
        }
    }

    /// Its program.
    pub fn binary(self) -> Binary {
        match self {
            Self::Aws => Binary::AwsProvider,
            Self::Gcp => Binary::GcpProvider,
            Self::Azure => Binary::AzureProvider,
            Self::Kubevirt => Binary::KubevirtProvider,
            Self::Openstack => Binary::OpenstackProvider,
            Self::Ibmcloud | Self::PowerVs => Binary::IbmcloudProvider,
        }
    }

    /// The version table that it is in.
    pub fn module(self) -> Module {
        match self {
            Self::Aws => Module::Aws,
            Self::Gcp => Module::Gcp,
            Self::Azure => Module::Azure,
            Self::Kubevirt => Module::Kubevirt,
            Self::Openstack => Module::Openstack,
            Self::Ibmcloud | Self::PowerVs => Module::Ibmcloud,
        }
    }

    /// Its Go module, which is its main package.
    pub fn go_module(self) -> &'static str {
        match self {
            Self::Aws => "sigs.k8s.io/cluster-api-provider-aws/v2",
            Self::Gcp => "sigs.k8s.io/cluster-api-provider-gcp",
            Self::Azure => "sigs.k8s.io/cluster-api-provider-azure",
            Self::Kubevirt => "sigs.k8s.io/cluster-api-provider-kubevirt",
            Self::Openstack => "sigs.k8s.io/cluster-api-provider-openstack",
            Self::Ibmcloud | Self::PowerVs => "sigs.k8s.io/cluster-api-provider-ibmcloud",
        }
    }

    /// The CRDs of another project without which it does not start as HyperShift runs it. Azure's service operator is not
    /// among them: the gate `ASOAPI` is off, and the provider does not manage the network.
    pub fn shared(self) -> Option<Shared> {
        match self {
            Self::Openstack => Some(Shared {
                path: "github.com/k-orc/openstack-resource-controller/v2",
                crds: &["images.openstack.k-orc.cloud"],
            }),
            Self::Aws
            | Self::Gcp
            | Self::Azure
            | Self::Kubevirt
            | Self::Ibmcloud
            | Self::PowerVs => None,
        }
    }

    /// Its roles: upstream's on the groups of these types, and the reading of CRDs, which every provider may do in an
    /// installation.
    pub async fn roles(self, capi_types: CapiTypes) -> Result<Vec<Value>> {
        let sources = self.module().sources_of(self.go_module()).await?;
        let name = format!("capi-provider-{}-{capi_types}", self.name());
        let mut roles = fixtures::load(&sources.join("config/rbac/role.yaml"))?;
        for role in &mut roles {
            role["metadata"]["name"] = json!(name);
            if capi_types == CapiTypes::Private {
                let granted = role["rules"].as_array_mut();
                privatize(granted.context("the provider's role has no rules")?);
            }
        }
        roles.push(json!({
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRole",
            "metadata": { "name": format!("{name}-cluster") },
            "rules": [{
                "apiGroups": ["apiextensions.k8s.io"],
                "resources": ["customresourcedefinitions"],
                "verbs": ["get", "list", "watch"],
            }],
        }));
        Ok(roles)
    }

    /// The flags that HyperShift gives it.
    pub fn flags(self) -> &'static [&'static str] {
        match self {
            Self::Aws => &["--feature-gates=EKS=false,ROSA=false"],
            Self::Gcp => &["--feature-gates=MachinePool=false"],
            Self::Azure => &[
                "--feature-gates=MachinePool=false,ASOAPI=false",
                "--disable-controllers-or-webhooks=DisableASOSecretController",
            ],
            Self::Kubevirt => &[],
            // This flag is not divided at commas.
            Self::Openstack => &[
                "--skip-crd-migration-phases=StorageVersionMigration",
                "--skip-crd-migration-phases=CleanupManagedFields",
            ],
            Self::Ibmcloud | Self::PowerVs => &["--provider-id-fmt=v2"],
        }
    }

    /// How it is started.
    pub fn launch(
        self,
        name: &str,
        binaries: &Binaries,
        settings: &Settings<'_>,
    ) -> Result<Launch> {
        let launch = Launch::new(name, binaries.path(self.binary())?)
            .path_flag("kubeconfig", settings.kubeconfig)
            .flag("namespace", settings.namespace)
            .arg("--leader-elect=false")
            .flag("health-addr", format!("127.0.0.1:{}", settings.health))
            .flag(
                "diagnostics-address",
                format!("127.0.0.1:{}", settings.diagnostics),
            )
            .arg("--insecure-diagnostics")
            // Its webhook server cannot be turned off; nothing calls it.
            .flag("webhook-port", settings.webhook)
            .path_flag("webhook-cert-dir", settings.certificates);
        Ok(self.flags().iter().fold(launch, |it, flag| it.arg(*flag)))
    }
}

/// Puts the private group in the place of each standard one.
fn privatize(rules: &mut [Value]) {
    let table = GroupTable::default();
    for rule in rules {
        let groups = rule["apiGroups"].as_array_mut();
        for group in groups.into_iter().flatten() {
            let name = group.as_str().unwrap_or_default();
            if let Some(private) = table.swap(name.as_bytes()) {
                *group = json!(private);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_get_private_groups_and_keep_the_others() {
        let mut rules = [json!({
            "apiGroups": ["", "infrastructure.cluster.x-k8s.io", "openstack.k-orc.cloud"],
            "verbs": ["get"],
        })];
        privatize(&mut rules);
        let expected = [
            "",
            "infrastructure.cluster.hypershift.openshift.io",
            "openstack.k-orc.cloud",
        ];
        assert_eq!(rules[0]["apiGroups"], json!(expected));
        assert_eq!(rules[0]["verbs"], json!(["get"]));
    }

    #[test]
    fn only_powervs_shares_its_program() {
        let mut names: Vec<_> = Provider::ALL.iter().map(|it| it.binary().name()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), Provider::ALL.len() - 1);
    }
}
