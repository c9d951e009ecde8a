//! The fixture: the objects that the operators observe, and the state of all participants.

use std::path::PathBuf;

use anyhow::Result;
use serde_json::{Value, json};
use testbed::cargo::Program;
use testbed::client::Resource;
use testbed::operator::{self, Identity, Operator};
use testbed::service_account::ensure_namespace;
use testbed::simulation::{self, ControlPlaneOperator, Releases, Simulation, install_kinds};
use testbed::testbed::Testbed;

use crate::hosted_clusters_faults::fault_points::Shared;

/// Namespace of the HostedCluster.
pub(crate) const NAMESPACE: &str = "clusters";
/// Its name.
pub(crate) const NAME: &str = "example";
/// The namespace of its control plane.
pub(crate) const CONTROL_PLANE: &str = "clusters-example";
/// Its pool.
pub(crate) const POOL: &str = "example-workers";
/// What its infrastructure is called.
pub(crate) const INFRA: &str = "example-x7k2p";

const HYPERSHIFT: &str = "hypershift.openshift.io/v1beta1";
pub(crate) const HOSTED_CLUSTERS: Resource<'_> = Resource::new(HYPERSHIFT, "hostedclusters");
pub(crate) const CONTROL_PLANES: Resource<'_> = Resource::new(HYPERSHIFT, "hostedcontrolplanes");
pub(crate) const COMPONENTS: Resource<'_> = Resource::new(HYPERSHIFT, "controlplanecomponents");
pub(crate) const NODE_POOLS: Resource<'_> = Resource::new(HYPERSHIFT, "nodepools");
pub(crate) const SECRETS: Resource<'_> = Resource::new("v1", "secrets");
pub(crate) const DEPLOYMENTS: Resource<'_> = Resource::new("apps/v1", "deployments");
pub(crate) const STATEFUL_SETS: Resource<'_> = Resource::new("apps/v1", "statefulsets");
pub(crate) const CLUSTERS: Resource<'_> =
    Resource::new("cluster.hypershift.openshift.io/v1beta2", "clusters");
pub(crate) const MACHINE_DEPLOYMENTS: Resource<'_> = Resource::new(
    "cluster.hypershift.openshift.io/v1beta2",
    "machinedeployments",
);

/// Environment variable that names a built control-plane-operator, so that none is built.
const BINARY_VARIABLE: &str = "HYPERSHIFT_CONTROL_PLANE_OPERATOR";
/// Controllers of kube-controller-manager that take part: who would make pods is left out, and [`Simulation`] is in their place.
const CONTROLLERS: &str = "garbage-collector-controller,namespace-controller,serviceaccount-controller,root-ca-certificate-publisher-controller";

/// The programs of one installation.
#[derive(Debug, Clone)]
pub(crate) struct Programs {
    pub(crate) hypershift: PathBuf,
    pub(crate) control_plane: PathBuf,
}

/// All of it.
pub(crate) struct Fixture<'a> {
    pub(crate) testbed: &'a Testbed,
    pub(crate) programs: Programs,
    pub(crate) fault_points: Shared,
    /// What the cluster begins with, and what it is upgraded to.
    pub(crate) releases: [String; 2],
    registry: Releases,
    _simulation: Simulation,
}

// === impl Programs ===

impl Programs {
    async fn find(testbed: &Testbed) -> Result<Self> {
        let control_plane = Program::dev("control-plane-operator", "control-plane-operator");
        Ok(Self {
            hypershift: operator::build(&testbed.progress).await?,
            control_plane: control_plane
                .find(BINARY_VARIABLE, &testbed.progress)
                .await?,
        })
    }
}

// === impl Fixture ===

impl<'a> Fixture<'a> {
    pub(crate) async fn prepare(testbed: &'a mut Testbed) -> Result<Self> {
        install_kinds(testbed).await?;
        let manager = &mut testbed.control_plane.controller_manager;
        manager.add_flag("controllers", CONTROLLERS);
        testbed.start_controller_manager().await?;
        ensure_namespace(&testbed.admin, NAMESPACE).await?;
        let programs = Programs::find(testbed).await?;
        let registry = Releases::start(testbed).await?;
        let releases = [
            registry.push("4.21.9").await?,
            registry.push("4.22.0").await?,
        ];
        Ok(Self {
            programs,
            fault_points: Shared::new(),
            releases,
            registry,
            _simulation: Simulation::start(&testbed.admin),
            testbed,
        })
    }

    /// hypershift-operator of an installation, with its rights.
    pub(crate) async fn identity(&self, programs: &Programs, proxy: &str) -> Result<Identity> {
        let identity = Identity::create(self.testbed, Operator::Private, &programs.hypershift);
        Ok(identity
            .await?
            .with_flag("insecure-registries", self.registry.address())
            .with_flag("capi-proxy-image", proxy))
    }

    /// The control-plane-operator of an installation.
    pub(crate) fn control_plane_operator(programs: &Programs) -> ControlPlaneOperator {
        ControlPlaneOperator {
            namespace: CONTROL_PLANE.to_owned(),
            program: programs.control_plane.clone(),
        }
    }

    /// A cluster with a pool, as its user requests them, with everything that has components of its own.
    pub(crate) fn desired(&self) -> Result<Vec<Value>> {
        let mut objects = simulation::desired_with_all(NAME, &self.releases[0])?;
        for object in &mut objects {
            if object["kind"] == "HostedCluster" {
                // The same in each life.
                object["spec"]["clusterID"] = json!("2f7a4c1e-0d3b-4a55-9c1d-6b8e5f0a7d21");
            }
        }
        Ok(objects)
    }
}
