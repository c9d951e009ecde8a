//! The facts of a HostedCluster: everything that was read, and the only input of the pure parts of a reconcile.

pub(crate) mod auto_node;
pub(crate) mod aws_roles;
#[cfg(test)]
pub(crate) mod fixture;
mod infra_time;
pub(crate) mod references;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use api::hypershift::v1beta1::{HostedCluster, HostedControlPlane};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use payload::Release;
pub(crate) use payload::operator_image::Labels;
use payload::operator_image::operated_image;
use serde_json::{Value, json};

use crate::capi::Capi;
use crate::cluster_ref::Id;
use crate::config::{Cloud, Images};
use crate::names;
pub(crate) use infra_time::InfraTime;
use references::Reference;

/// What was read.
#[derive(Debug, Clone)]
pub(crate) struct Facts {
    pub(crate) id: Id,
    pub(crate) cluster: HostedCluster,
    /// The kinds of Cluster API that it is on.
    pub(crate) capi: Capi,
    /// Where its control plane is.
    pub(crate) namespace: String,
    pub(crate) control_plane: Option<HostedControlPlane>,
    /// Each referenced object, and the result of reading it.
    pub(crate) referenced: Vec<(Reference, Found)>,
    /// References whose copy would overwrite an object of the control plane's namespace that is not a copy.
    pub(crate) occupied: Vec<Reference>,
    /// The consent of the agent namespace. `None` on other platforms.
    pub(crate) agent_namespace: Option<AgentNamespace>,
    pub(crate) release: ReleaseIs,
    /// The release of the components that the management cluster sees, where it is another.
    pub(crate) control_plane_release: Option<ReleaseIs>,
    /// A registry did not return all of it: it is requested again.
    pub(crate) is_partial: bool,
    /// Labels of the control-plane-operator that the release has, where it depends on them whether it is run.
    pub(crate) released_operator: Labels,
    /// Labels of the control-plane-operator that is run, if they could be read.
    pub(crate) operator_labels: BTreeMap<String, String>,
    /// Deployments of the control plane's namespace that are looked at.
    pub(crate) deployments: BTreeMap<String, Deployment>,
    /// Secrets that the control plane published for the administrator, by name.
    pub(crate) handed_out: BTreeMap<String, Secret>,
    /// Where nodes get their configuration.
    pub(crate) ignition: Option<String>,
    /// Properties of the management cluster.
    pub(crate) management: Management,
    /// CRDs that do not exist, of kinds that the Cluster API controllers watch, until these are started.
    pub(crate) missing_crds: Vec<String>,
    /// KubeVirt of the infrastructure cluster, on platform KubeVirt.
    pub(crate) virtualization: Option<Virtualization>,
    /// What the user of the kubeconfig of another infrastructure cluster may not do there, as far as it is known.
    pub(crate) missing_rights: Vec<String>,
    /// The NetworkPolicy on another infrastructure cluster, once it was applied.
    pub(crate) infra_policy: Option<InfraPolicy>,
    /// The time that is left for requests to another infrastructure cluster.
    pub(crate) infra_time: InfraTime,
    /// Why the domain of the infrastructure cluster is not known, on platform KubeVirt if the cluster is to have it.
    pub(crate) no_base_domain: Option<String>,
    /// Why no key was created, on platform KubeVirt if the cluster is to have a generated one.
    pub(crate) no_encryption_key: Option<String>,
    /// The name of the infrastructure object that the live Cluster of Cluster API refers to. Read on platform KubeVirt only.
    pub(crate) infrastructure_name: Option<String>,
    /// NodePools that report whether their virtual machines can be migrated live, and whether they can. `None` while it is
    /// not known.
    pub(crate) live_migration: Option<BTreeMap<String, bool>>,
    /// Images that this operator chooses.
    pub(crate) images: Images,
    /// Cloud settings of this operator.
    pub(crate) cloud: Cloud,
    /// The documents by which AWS validates tokens, where they were to be stored.
    pub(crate) oidc_documents: Option<OidcDocuments>,
    /// The conditions of the private links of the cluster, for each one that it has.
    pub(crate) private_links: Vec<Vec<Condition>>,
    /// The subnets of NodePools on AWS whose machines get public addresses.
    pub(crate) public_subnets: BTreeSet<String>,
    /// What is known of Karpenter, if the cluster has it or had it.
    pub(crate) auto_node: Option<auto_node::AutoNode>,
    /// The serving certificate for managers, if it has to be created.
    pub(crate) webhook_tls: Option<Secret>,
}

/// An object that the cluster refers to.
#[derive(Debug, Clone)]
pub(crate) enum Found {
    Secret(Box<Secret>),
    ConfigMap(Box<ConfigMap>),
    Missing,
}

/// The consent of an agent namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AgentNamespace {
    /// It does not exist.
    Missing,
    /// The cluster may use its Agents.
    Allowed,
    /// The same, because the cluster did so before consent was required.
    Grandfathered,
    /// It does not allow the namespace of the HostedCluster.
    Refused,
}

/// A release, or why it is unknown.
#[derive(Debug, Clone)]
pub(crate) enum ReleaseIs {
    Read(Arc<Release>),
    Unreadable(payload::Error),
    /// No registry was contacted, because there is no pull secret.
    NoPullSecret,
}

/// KubeVirt on a cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Virtualization {
    /// It is installed. Versions are as reported by the servers.
    Found {
        kubernetes: String,
        kubevirt: String,
    },
    /// The cluster has none.
    Absent,
    /// The cluster is not reachable.
    Unreachable(String),
    /// There is no usable kubeconfig for it.
    Unusable(String),
}

/// The NetworkPolicy of virtual machines on another infrastructure cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum InfraPolicy {
    /// It excludes the networks of that cluster.
    Applied,
    /// It excludes none, because they cannot be read.
    WithoutNetworks(String),
    /// It was not written.
    Refused(String),
}

/// What became of the documents by which AWS validates tokens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum OidcDocuments {
    /// They are stored.
    Stored,
    /// They are not, for this reason.
    Failed(String),
    /// This operator has no bucket for them.
    Unconfigured,
}

/// Properties of the management cluster.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Management {
    /// Whether it serves OpenShift's routes.
    pub(crate) routes: bool,
    /// Whether it serves the monitors of the Prometheus operator.
    pub(crate) monitors: bool,
    /// Whether it chooses the users that pods run as, as OpenShift does.
    pub(crate) chooses_users: bool,
    /// Addresses of its API server.
    pub(crate) api_server: Vec<String>,
    /// Address ranges of its pods and Services, as far as they can be read.
    pub(crate) networks: Vec<String>,
}

// === impl InfraPolicy ===

impl InfraPolicy {
    /// Reason and message, if the policy is not as it should be.
    pub(crate) fn problem(&self) -> Option<(&'static str, String)> {
        match self {
            Self::Applied => None,
            Self::WithoutNetworks(problem) => Some((
                "InfraClusterNetworkReadFailed",
                format!(
                    "failed to get Network cluster (config.openshift.io) of the infrastructure cluster: {problem}"
                ),
            )),
            Self::Refused(problem) => Some((
                "InfraClusterNetworkPolicyCreateFailed",
                format!(
                    "failed to apply the NetworkPolicy of virtual machines on the infrastructure cluster: {problem}"
                ),
            )),
        }
    }
}

// === impl Management ===

/// The first user ID for pods, if the management cluster does not assign them.
const FIRST_USER: i64 = 1001;
/// The number of user IDs.
const USERS: i64 = 50_000;

impl Management {
    /// The user ID for pods of a namespace, unless the management cluster assigns one. Control planes have
    /// different ones with high probability, without a list.
    pub(crate) fn uid(&self, namespace: &str) -> Option<i64> {
        if self.chooses_users {
            return None;
        }
        let hash = namespace
            .bytes()
            .fold(0_i64, |hash, byte| (hash * 31 + i64::from(byte)) % USERS);
        Some(FIRST_USER + hash)
    }
}

// === impl Found ===

impl Found {
    /// Whether it has a key.
    pub(crate) fn has(&self, key: &str) -> bool {
        match self {
            Self::Secret(it) => it.data.as_ref().is_some_and(|data| data.contains_key(key)),
            Self::ConfigMap(it) => it.data.as_ref().is_some_and(|data| data.contains_key(key)),
            Self::Missing => false,
        }
    }
}

// === impl ReleaseIs ===

impl ReleaseIs {
    pub(crate) fn read(&self) -> Option<&Release> {
        match self {
            Self::Read(release) => Some(release),
            Self::Unreadable(_) | Self::NoPullSecret => None,
        }
    }
}

// === impl Facts ===

impl Facts {
    /// The image that is being read in the background, if any: nothing is decided before it is known.
    pub(crate) fn in_progress(&self) -> Option<&payload::Error> {
        let releases = [Some(&self.release), self.control_plane_release.as_ref()];
        releases.into_iter().flatten().find_map(|it| match it {
            ReleaseIs::Unreadable(error) => Some(error).filter(|it| it.is_in_progress()),
            ReleaseIs::Read(_) | ReleaseIs::NoPullSecret => None,
        })
    }

    /// The release of the components on the management cluster, which may differ from the one of nodes.
    pub(crate) fn operated(&self) -> &ReleaseIs {
        self.control_plane_release.as_ref().unwrap_or(&self.release)
    }

    /// The image of that release, as specified.
    pub(crate) fn operated_image(&self) -> &str {
        operated_image(&self.cluster)
    }

    /// The Secret that is named, if it was found.
    pub(crate) fn secret(&self, name: &str) -> Option<&Secret> {
        self.referenced
            .iter()
            .find_map(|(reference, found)| match found {
                Found::Secret(secret) if reference.name == name => Some(&**secret),
                Found::Secret(_) | Found::ConfigMap(_) | Found::Missing => None,
            })
    }

    /// The `ConfigMap` that is named, if it was found.
    pub(crate) fn config_map(&self, name: &str) -> Option<&ConfigMap> {
        self.referenced
            .iter()
            .find_map(|(reference, found)| match found {
                Found::ConfigMap(map) if reference.name == name => Some(&**map),
                Found::Secret(_) | Found::ConfigMap(_) | Found::Missing => None,
            })
    }

    /// The annotations of the cluster.
    pub(crate) fn annotations(&self) -> &BTreeMap<String, String> {
        static NONE: BTreeMap<String, String> = BTreeMap::new();
        self.cluster.metadata.annotations.as_ref().unwrap_or(&NONE)
    }

    /// The cluster's name on the infrastructure.
    pub(crate) fn infra_id(&self) -> &str {
        self.cluster.spec.infra_id.as_deref().unwrap_or_default()
    }

    /// Host and port of the control plane's API server, in the form that Cluster API has; nothing while they are unknown.
    pub(crate) fn control_plane_endpoint(&self) -> Option<Value> {
        let status = self.control_plane.as_ref()?.status.as_ref()?;
        let endpoint = status.control_plane_endpoint.as_ref()?;
        Some(json!({ "host": endpoint.host, "port": endpoint.port }))
    }

    /// Whether a Deployment exists and is available.
    pub(crate) fn is_available(&self, deployment: &str) -> bool {
        let status = self
            .deployments
            .get(deployment)
            .and_then(|it| it.status.as_ref());
        let mut conditions = status
            .and_then(|it| it.conditions.as_ref())
            .into_iter()
            .flatten();
        conditions.any(|it| it.type_ == "Available" && it.status == "True")
    }

    /// Whether the cluster's annotations ask for no Cluster API.
    pub(crate) fn has_machine_management(&self) -> bool {
        !api::annotations::cluster::DISABLE_MACHINE_MANAGEMENT.is_set(self.annotations())
    }

    /// A Secret that the control plane published, by name.
    pub(crate) fn handed_out(&self, name: &str) -> Option<&Secret> {
        self.handed_out.get(name)
    }

    /// The Secret with the administrator's kubeconfig.
    pub(crate) fn admin_kubeconfig(&self) -> Option<&Secret> {
        let status = self
            .control_plane
            .as_ref()
            .and_then(|it| it.status.as_ref());
        let reference = status.and_then(|it| it.kube_config.as_ref());
        let name = reference.map_or(names::ADMIN_KUBECONFIG, |it| &it.name);
        self.handed_out(name)
    }
}
