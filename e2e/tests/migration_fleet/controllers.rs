//! The controllers of one control plane, as processes: they run when their Deployments say so, and while one runs there
//! is a pod to show for it.

use anyhow::{Context, Result};
use api::group::CapiTypes;
use serde_json::{Value, json};
use testbed::client::{ApiClient, Resource};
use testbed::cluster_api::Plan;
use testbed::control_plane::Endpoint;
use testbed::managers::Manager;
use testbed::operator::{Server, Times};
use testbed::simulation::{ControlPlaneOperator, Launched};
use testbed::testbed::Testbed;

use crate::migration_fleet::fixture::Fixture;
use crate::migration_fleet::member::{Member, has_proxy};

const DEPLOYMENTS: Resource<'_> = Resource::new("apps/v1", "deployments");
const PODS: Resource<'_> = Resource::new("v1", "pods");
const OWN: &str = "control-plane-operator";
const CORE: &str = "cluster-api";
/// The managers that a control plane on AWS does not have.
const OTHERS: [Manager; 3] = [
    Manager::KubeadmBootstrap,
    Manager::KubeadmControlPlane,
    Manager::DevProvider,
];

/// Those of one control plane.
pub(crate) struct Controllers {
    namespace: String,
    own: ControlPlaneOperator,
    running: Option<Launched>,
    /// The side that the stock core manager works on, while it runs.
    core: Option<CapiTypes>,
    started: usize,
}

// === impl Controllers ===

impl Controllers {
    pub(crate) fn new(fixture: &Fixture, member: &Member) -> Self {
        Self {
            namespace: member.namespace(),
            own: ControlPlaneOperator {
                namespace: member.namespace(),
                program: fixture.control_plane_operator.clone(),
            },
            running: None,
            core: None,
            started: 0,
        }
    }

    /// The names of those that run.
    pub(crate) fn running(&self) -> (bool, Option<CapiTypes>) {
        (self.running.is_some(), self.core)
    }

    /// Starts and ends what Deployments request.
    pub(crate) async fn follow(&mut self, testbed: &mut Testbed) -> Result<()> {
        self.follow_own(testbed).await?;
        self.follow_core(testbed).await
    }

    async fn follow_own(&mut self, testbed: &Testbed) -> Result<()> {
        let admin = &testbed.admin;
        let expected = self.own.expected_env(admin).await?;
        if expected.as_ref() == self.running.as_ref().map(|it| &it.environment) {
            return Ok(());
        }
        if let Some(mut ended) = self.running.take() {
            ended.service.stop().await?;
            self.buries(admin, OWN).await?;
        }
        let Some(environment) = expected else {
            return Ok(());
        };
        let Endpoint { server, authority } = testbed.control_plane.endpoint();
        let server = Server {
            url: &server,
            authority: Some(&authority),
        };
        self.shows(admin, OWN).await?;
        self.started += 1;
        let pod = format!("{OWN}-{}", self.started);
        let launched = self
            .own
            .start(testbed, &pod, environment, server, Times::PATIENT);
        self.running = Some(launched.await?);
        Ok(())
    }

    async fn follow_core(&mut self, testbed: &mut Testbed) -> Result<()> {
        let admin = testbed.admin.clone();
        let expected = self.core_side(&admin).await?;
        if expected == self.core {
            return Ok(());
        }
        if let Some(capi_types) = self.core.take() {
            testbed.end(capi_types);
            self.buries(&admin, CORE).await?;
        }
        let Some(capi_types) = expected else {
            return Ok(());
        };
        self.shows(&admin, CORE).await?;
        let plan = match capi_types {
            CapiTypes::Standard => Plan::legacy(&self.namespace, &[Manager::Core]),
            CapiTypes::Private => OTHERS
                .into_iter()
                .fold(Plan::hosted(&self.namespace), Plan::without),
        };
        admin.apply(&[self.rights(plan.namespace())]).await?;
        testbed.add(&plan).await?;
        self.core = Some(capi_types);
        Ok(())
    }

    async fn core_side(&self, admin: &ApiClient) -> Result<Option<CapiTypes>> {
        let path = DEPLOYMENTS.named(&self.namespace, CORE);
        let found = admin.find(&path).await?;
        let runs = found.filter(|it| it["spec"]["replicas"] != 0);
        let capi_types = |it| {
            if has_proxy(&it) {
                CapiTypes::Private
            } else {
                CapiTypes::Standard
            }
        };
        Ok(runs.map(capi_types))
    }

    /// The manager has what the product grants beside what upstream does.
    fn rights(&self, account: &str) -> Value {
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "RoleBinding",
            "metadata": { "namespace": self.namespace, "name": format!("core-of-{account}") },
            "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": CORE },
            "subjects": [{
                "kind": "ServiceAccount",
                "namespace": account,
                "name": Manager::Core.name(),
            }],
        })
    }

    /// A pod that the Deployment's selector finds.
    async fn shows(&self, admin: &ApiClient, name: &str) -> Result<()> {
        let path = DEPLOYMENTS.named(&self.namespace, name);
        let deployment = admin.get(&path).await?;
        let labels = &deployment["spec"]["selector"]["matchLabels"];
        labels.as_object().context("it selects nothing")?;
        let pod = json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": { "namespace": self.namespace, "name": format!("{name}-0"), "labels": labels },
            "spec": {
                "automountServiceAccountToken": false,
                // The namespace enforces the pod security standard `restricted`.
                "securityContext": {
                    "runAsNonRoot": true,
                    "seccompProfile": { "type": "RuntimeDefault" },
                },
                "containers": [{
                    "name": "manager",
                    "image": "images.example.com/manager",
                    "securityContext": {
                        "allowPrivilegeEscalation": false,
                        "capabilities": { "drop": ["ALL"] },
                    },
                }],
            },
        });
        admin.apply(&[pod]).await
    }

    async fn buries(&self, admin: &ApiClient, name: &str) -> Result<()> {
        let path = PODS.named(&self.namespace, &format!("{name}-0"));
        admin.delete(&path).await
    }
}
