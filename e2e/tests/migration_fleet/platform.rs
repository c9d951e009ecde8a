//! The platforms of a fleet: what a hosted cluster and its pool have of each, and the kinds of its provider.

use anyhow::{Context, Result};
use serde_json::Value;
use testbed::{fixtures, simulation};

use crate::migration_fleet::fixture::Fixture;

const V1ALPHA1: &str = "infrastructure.cluster.x-k8s.io/v1alpha1";
const V1BETA1: &str = "infrastructure.cluster.x-k8s.io/v1beta1";
const V1BETA2: &str = "infrastructure.cluster.x-k8s.io/v1beta2";
const AGENT: &str = "capi-provider.agent-install.openshift.io/v1beta1";

/// A platform that the operator makes clusters on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Platform {
    Aws,
    Azure,
    Kubevirt,
    Agent,
    GoogleCloud,
    Openstack,
    PowerVs,
    IbmCloud,
    /// Without Cluster API.
    None,
}

/// The kinds of a provider with standard types: those of its clusters, machines and templates begin alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Kinds {
    pub(crate) api_version: &'static str,
    pub(crate) prefix: &'static str,
}

// === impl Platform ===

impl Platform {
    pub(crate) const ALL: [Self; 9] = [
        Self::Aws,
        Self::Azure,
        Self::Kubevirt,
        Self::Agent,
        Self::GoogleCloud,
        Self::Openstack,
        Self::PowerVs,
        Self::IbmCloud,
        Self::None,
    ];

    /// Its name, as fixtures have it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Aws => "aws",
            Self::Azure => "azure",
            Self::Kubevirt => "kubevirt",
            Self::Agent => "agent",
            Self::GoogleCloud => "gcp",
            Self::Openstack => "openstack",
            Self::PowerVs => "powervs",
            Self::IbmCloud => "ibmcloud",
            Self::None => "none",
        }
    }

    /// The kinds of its provider, unless its clusters have no objects of Cluster API.
    pub(crate) fn kinds(self) -> Option<Kinds> {
        let (api_version, prefix) = match self {
            Self::Aws => (V1BETA2, "AWS"),
            Self::Azure => (V1BETA1, "Azure"),
            Self::Kubevirt => (V1ALPHA1, "Kubevirt"),
            Self::Agent => (AGENT, "Agent"),
            Self::GoogleCloud => (V1BETA1, "GCP"),
            Self::Openstack => (V1BETA1, "OpenStack"),
            Self::PowerVs => (V1BETA2, "IBMPowerVS"),
            Self::IbmCloud => (V1BETA2, "IBMVPC"),
            Self::None => return None,
        };
        Some(Kinds {
            api_version,
            prefix,
        })
    }

    /// Whether Cluster API makes the machines of its pools. Otherwise no controller of it runs.
    pub(crate) fn has_machines(self) -> bool {
        !matches!(self, Self::IbmCloud | Self::None)
    }

    /// A cluster with a pool of one node, after what they refer to.
    pub(crate) fn desired(self, name: &str, fixture: &Fixture) -> Result<Vec<Value>> {
        let release = match self {
            Self::PowerVs => &fixture.power,
            _ => &fixture.release,
        };
        let mut objects = simulation::desired(name, release)?;
        if self == Self::Aws {
            return Ok(objects);
        }
        let values = [
            ("NAME", name),
            ("KUBECONFIG", fixture.infra_cluster.kubeconfig()),
        ];
        for part in fixtures::render(&format!("fleet/{}", self.name()), &values)? {
            if part["metadata"].is_object() {
                // After the namespace.
                objects.insert(1, part);
                continue;
            }
            let object = objects.iter_mut().find(|it| it["kind"] == part["kind"]);
            let object = object.with_context(|| format!("there is no {}", part["kind"]))?;
            for (field, value) in part["spec"].as_object().into_iter().flatten() {
                object["spec"][field] = value.clone();
            }
        }
        Ok(objects)
    }
}
