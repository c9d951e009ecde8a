//! What tests of several platforms are about: the machine of a pool, and the objects of a cluster.

use std::collections::BTreeMap;

use api::group::CapiTypes;
use api::hypershift::v1beta1::node_pool::NodePool;
use api::hypershift::v1beta1::{HostedCluster, HostedControlPlane};
use payload::boot_images::Streams;
use payload::{Capabilities, Release};
use serde_json::{Value, json};

use super::machines::{Inputs, Machine, Refused, machine};
use crate::capi::Capi;
use crate::desired::Desired;
use crate::facts::{Facts, fixture};
use crate::hosted_cluster::build::{build, control_plane_spec};

/// A pool, its cluster and its release.
pub(super) struct Case {
    pub(super) pool: NodePool,
    pub(super) cluster: HostedCluster,
    pub(super) release: Release,
    pub(super) infra_id: &'static str,
    capabilities: Capabilities,
}

// === impl Case ===

impl Case {
    /// A pool with this platform.
    pub(super) fn new(cluster: HostedCluster, platform: &Value) -> Self {
        let pool = json!({
            "apiVersion": "hypershift.openshift.io/v1beta1",
            "kind": "NodePool",
            "metadata": { "namespace": "clusters", "name": "workers" },
            "spec": {
                "clusterName": "one",
                "release": { "image": fixture::RELEASE },
                "management": { "upgradeType": "Replace" },
                "platform": platform,
            },
        });
        Self {
            pool: serde_json::from_value(pool).unwrap(),
            cluster,
            release: fixture::release(),
            infra_id: "one-x7k2p",
            capabilities: Capabilities::default(),
        }
    }

    /// With these boot images in the release, by architecture.
    pub(super) fn with_boot_images(mut self, architectures: &Value) -> Self {
        let stream = json!({ "stream": "rhcos", "architectures": architectures });
        let map = json!({ "data": { "stream": stream.to_string() } });
        let streams = Streams::parse(&map.to_string()).unwrap();
        self.release = self.release.with_boot_images(streams);
        self
    }

    /// With another architecture of the pool.
    pub(super) fn with_arch(mut self, arch: &str) -> Self {
        self.pool.spec.arch = serde_json::from_value(json!(arch)).unwrap();
        self
    }

    pub(super) fn inputs(&self, types: CapiTypes) -> Inputs<'_> {
        Inputs {
            capi: Capi::new(types),
            pool: &self.pool,
            cluster: &self.cluster,
            release: &self.release,
            capabilities: &self.capabilities,
            infra_id: self.infra_id,
            namespace: "clusters-one",
        }
    }

    /// The machine of the pool's platform.
    pub(super) fn machine(&self) -> Result<Machine, Refused> {
        machine(&self.inputs(CapiTypes::Private)).map(Option::unwrap)
    }
}

/// All objects of a cluster of a kind, by name.
pub(super) fn built(facts: &Facts, kind: &str) -> BTreeMap<String, Desired> {
    let planned = build(facts).unwrap().into_iter();
    let objects = planned.flat_map(|it| it.objects);
    let objects = objects.filter(|it| it.resource.kind == kind);
    objects.map(|it| (it.name().to_owned(), it)).collect()
}

/// Has the control plane be ready at this endpoint.
pub(super) fn serve(facts: &mut Facts, endpoint: &Value) {
    let mut control_plane = HostedControlPlane::new("one", control_plane_spec(facts));
    let status = json!({ "ready": true, "initialized": true, "controlPlaneEndpoint": endpoint });
    control_plane.status = serde_json::from_value(status).unwrap();
    facts.control_plane = Some(control_plane);
}
