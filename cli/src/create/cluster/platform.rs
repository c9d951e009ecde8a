//! What a platform adds to a cluster. Each one is a file: its flags, and the parts that it makes of them.

pub(super) mod agent;
pub(super) mod aws;
pub(super) mod azure;
pub(super) mod gcp;
pub(super) mod kubevirt;
pub(super) mod none;
pub(super) mod openstack;
pub(super) mod power_vs;

use std::future::ready;
use std::path::Path;

use serde_json::{Value, json};

use super::args::{Arch, CommonArgs, RunArgs, UpgradeType};
use super::given::Given;
use super::options::Options;
use super::services::Services;
use crate::create::text;

/// The flags of a platform.
pub(super) trait Platform {
    /// The flag with the address of node ports, for messages.
    const ADDRESS_FLAG: &'static str = "--api-server-address";

    /// Checks the flags, reads the files that they name, and gives the platform's parts of the objects.
    fn parts(&self, common: &CommonArgs) -> anyhow::Result<Parts>;

    /// What flags leave to a Secret of the management cluster.
    fn given(
        &self,
        _common: &CommonArgs,
        _run: &RunArgs,
    ) -> impl Future<Output = anyhow::Result<Given>> {
        ready(Ok(Given::default()))
    }

    /// Creates in the cloud what the flags do not name, and gives the parts with it. `None` if nothing is missing. The
    /// options stay those of the first parts.
    fn provide(
        &self,
        _common: &CommonArgs,
        _options: &Options,
        _run: &RunArgs,
    ) -> impl Future<Output = anyhow::Result<Option<Parts>>> {
        ready(Ok(None))
    }
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
    /// Annotations of the HostedCluster.
    pub(super) annotations: Vec<(&'static str, String)>,
    /// Architecture of the nodes, if there is no other one.
    pub(super) arch: Option<Arch>,
    /// `spec.configuration.proxy`, if the infrastructure has a proxy.
    pub(super) proxy: Option<Value>,
}

/// A pool of nodes.
#[derive(Debug, Clone)]
pub(super) struct Pool {
    /// What follows the cluster's name in the pool's.
    pub(super) suffix: Option<String>,
    /// `spec.platform` of the NodePool.
    pub(super) platform: Value,
}

/// The base domain where the user gives none, on platforms without DNS.
const EXAMPLE_DOMAIN: &str = "example.com";

/// The key that signs service account tokens: the reference to it, and its Secret.
fn signing_key(common: &CommonArgs, path: &Path) -> anyhow::Result<(Value, Value)> {
    let key = text::file("--sa-token-issuer-private-key-path", path)?;
    Ok(signing_secret(common, &key))
}

/// The same of a key that was read or made.
fn signing_secret(common: &CommonArgs, key: &str) -> (Value, Value) {
    let name = format!("{}-sa-signing-key", common.name);
    let secret = json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": { "namespace": common.namespace, "name": name },
        "type": "Opaque",
        "stringData": { "key": key },
    });
    (json!({ "name": name }), secret)
}

/// The fields of the issuer of service account tokens, as far as they are known, and the Secret of its key.
fn issuer_parts(
    common: &CommonArgs,
    url: Option<&String>,
    key: Option<&str>,
) -> (Vec<(&'static str, Value)>, Vec<Value>) {
    let url = url.map(|url| ("issuerURL", json!(url)));
    let signing = key.map(|key| signing_secret(common, key));
    let (reference, secret) = signing.unzip();
    let reference = reference.map(|it| ("serviceAccountSigningKey", it));
    (
        url.into_iter().chain(reference).collect(),
        secret.into_iter().collect(),
    )
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
            annotations: Vec::new(),
            arch: None,
            proxy: None,
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
