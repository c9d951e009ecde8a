//! What a platform adds to a cluster. Each one is a file: its flags, and the parts that it makes of them.

pub(super) mod agent;
pub(super) mod aws;
pub(super) mod kubevirt;
pub(super) mod none;

use serde_json::Value;

use super::args::{CommonArgs, UpgradeType};
use super::services::Services;

/// The flags of a platform.
pub(super) trait Platform {
    /// Checks the flags, reads the files that they name, and gives the platform's parts of the objects.
    fn parts(&self, common: &CommonArgs) -> anyhow::Result<Parts>;
}

/// A platform's parts of the objects.
#[derive(Debug, Clone)]
pub(super) struct Parts {
    /// `spec.platform` of the HostedCluster.
    pub(super) platform: Value,
    /// How services are published.
    pub(super) services: Services,
    /// How a new release reaches nodes, unless the user says otherwise.
    pub(super) upgrade: UpgradeType,
    /// A pool of nodes each.
    pub(super) pools: Vec<Pool>,
    /// Fields of `spec` beside those above, by name.
    pub(super) spec: Vec<(&'static str, Value)>,
    /// `spec.dns`, if the platform knows more of it than the base domain.
    pub(super) zones: Vec<(&'static str, String)>,
    /// Name of the infrastructure, if it exists already.
    pub(super) infra_id: Option<String>,
    /// Base domain, if the infrastructure names it.
    pub(super) base_domain: Option<String>,
    /// Address ranges of machines, if the infrastructure names them.
    pub(super) machine_cidrs: Vec<String>,
    /// Objects beside the usual ones.
    pub(super) objects: Vec<Value>,
}

/// A pool of nodes.
#[derive(Debug, Clone)]
pub(super) struct Pool {
    /// What follows the cluster's name in the pool's.
    pub(super) suffix: Option<String>,
    /// `spec.platform` of the NodePool.
    pub(super) platform: Value,
}

// === impl Parts ===

impl Parts {
    /// Parts with nothing but what every platform has.
    pub(super) fn new(platform: Value, services: Services, pools: Vec<Pool>) -> Self {
        Self {
            platform,
            services,
            upgrade: UpgradeType::Replace,
            pools,
            spec: Vec::new(),
            zones: Vec::new(),
            infra_id: None,
            base_domain: None,
            machine_cidrs: Vec::new(),
            objects: Vec::new(),
        }
    }
}

// === impl Pool ===

impl Pool {
    /// The only pool of a cluster.
    pub(super) fn only(platform: Value) -> Vec<Self> {
        vec![Self {
            suffix: None,
            platform,
        }]
    }
}
