//! The facts of a pool: everything that was read, and the only input of decisions.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use api::features::FeatureSet;
use api::group::CapiTypes;
use api::hypershift::v1beta1::hosted_cluster::HostedCluster;
use api::hypershift::v1beta1::node_pool::{NodePool, UpgradeType};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use payload::{Capabilities, Release, Version};

use super::config::Source;
use super::observed::{Machine, ObservedCondition, PlatformMachine, Template, Workload};
use super::{mirrored, tuning};
use crate::capi::Capi;
use crate::control_plane_namespace::ControlPlaneNamespace;
use crate::names::node_pool as names;
use crate::platform::capacity::Known;
use crate::platform::machines;

/// What was read.
#[derive(Debug, Clone)]
pub(crate) struct Facts {
    pub(crate) pool: NodePool,
    pub(crate) cluster: HostedCluster,
    pub(crate) types: CapiTypes,
    /// The feature set of the API.
    pub(crate) features: FeatureSet,
    /// The control plane's namespace.
    pub(crate) namespace: String,
    /// The proof that it is the cluster's: without it nothing is written there.
    pub(crate) owned: Option<ControlPlaneNamespace>,
    pub(crate) now: Timestamp,
    pub(crate) release: Result<Arc<Release>, Unread>,
    /// The release of the cluster, or its initial one.
    pub(crate) cluster_version: Option<Version>,
    pub(crate) capabilities: Capabilities,
    /// The image of the cluster's control-plane-operator as nodes pull it, if they may run it and it is known.
    pub(crate) operator_image: Option<String>,
    /// The contents of referenced objects: the ignition server compares them; changes replace no node.
    pub(crate) pull_secret: Vec<u8>,
    pub(crate) trust_bundle: Option<String>,
    /// The configuration of the cloud provider, where nodes have it.
    pub(crate) cloud_config: BTreeMap<String, String>,
    /// Who may log in to nodes.
    pub(crate) ssh_key: Option<String>,
    pub(crate) own: Vec<Source>,
    pub(crate) core: Vec<Source>,
    /// Manifests from the tuning operator.
    pub(crate) tuning: Vec<Source>,
    /// What the tuning operator gets, and reports.
    pub(crate) tuning_inputs: tuning::Observed,
    /// The copies of its configuration, for the hosted cluster.
    pub(crate) mirrored: mirrored::Observed,
    /// The certificate authority of the ignition server, PEM.
    pub(crate) ignition_ca: Option<Vec<u8>>,
    /// The tokens' Secrets of this pool.
    pub(crate) tokens: Vec<Secret>,
    /// The names of its user data.
    pub(crate) user_data: Vec<String>,
    pub(crate) machines: Vec<Machine>,
    /// The platform's objects of those machines.
    pub(crate) platform_machines: Vec<PlatformMachine>,
    /// All in the namespace: objects that they refer to are in use.
    pub(crate) machine_sets: Vec<Workload>,
    /// The MachineDeployment or MachineSet of the pool.
    pub(crate) workload: Option<Workload>,
    pub(crate) templates: Vec<Template>,
    /// What the cloud says a machine has, if the autoscaler needs it and this operator may ask.
    pub(crate) capacity: Option<Known>,
    /// Whether its MachineHealthCheck allows remediation, if there is one and repair is enabled.
    pub(crate) remediation: Option<ObservedCondition>,
}

/// Why the release is unknown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Unread {
    pub(crate) reason: String,
    pub(crate) message: String,
    /// When to read again what is being read in the background.
    pub(crate) retry_after: Option<Duration>,
}

// === impl Facts ===

impl Facts {
    pub(crate) fn capi(&self) -> Capi {
        Capi::new(self.types)
    }

    pub(crate) fn name(&self) -> &str {
        names::of(&self.pool)
    }

    pub(crate) fn upgrade_type(&self) -> UpgradeType {
        self.pool.spec.management.upgrade_type
    }

    /// The id of the cluster's infrastructure: machines belong to the Cluster of this name.
    pub(crate) fn infra_id(&self) -> &str {
        self.cluster.spec.infra_id.as_deref().unwrap_or_default()
    }

    /// The inputs of a machine template of a release.
    pub(crate) fn machine_inputs<'a>(&'a self, release: &'a Release) -> machines::Inputs<'a> {
        machines::Inputs {
            capi: self.capi(),
            pool: &self.pool,
            cluster: &self.cluster,
            release,
            capabilities: &self.capabilities,
            infra_id: self.infra_id(),
            namespace: &self.namespace,
        }
    }

    /// Where machines find their configuration.
    pub(crate) fn ignition_endpoint(&self) -> Option<&str> {
        let status = self.cluster.status.as_ref()?;
        status
            .ignition_endpoint
            .as_deref()
            .filter(|it| !it.is_empty())
    }

    /// Whether there is a kubeconfig: nodes cannot join without an API server.
    pub(crate) fn has_kubeconfig(&self) -> bool {
        let status = self.cluster.status.as_ref();
        status.is_some_and(|it| it.kubeconfig.is_some())
    }

    /// The Secret with the token of this configuration.
    pub(crate) fn token(&self, hash: &str) -> Option<&Secret> {
        let name = names::token(self.name(), hash);
        self.tokens
            .iter()
            .find(|it| it.metadata.name.as_ref() == Some(&name))
    }

    /// Annotation of the pool.
    pub(crate) fn annotation(&self, key: &str) -> Option<&str> {
        let annotations = self.pool.metadata.annotations.as_ref()?;
        annotations
            .get(key)
            .map(String::as_str)
            .filter(|it| !it.is_empty())
    }
}
