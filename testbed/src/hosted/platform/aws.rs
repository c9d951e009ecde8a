//! Clusters on the fake cloud.

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::Cluster;
use crate::client::Patch;
use crate::cloud::{Instance, ZONE};
use crate::hosted::DEPLOYMENTS;

/// The account that roles belong to.
const ROLES: &str = "arn:aws:iam::123456789012:role";
/// The domain below which clusters have names.
const BASE_DOMAIN: &str = "testbed";

/// The name of the pool of workers of a cluster: it has one in each zone.
pub(super) fn pool(cluster: &str) -> String {
    format!("{cluster}-{ZONE}")
}

/// Its flags; writes the files that they name.
pub(super) fn flags(cluster: &Cluster<'_>) -> Result<Vec<String>> {
    let (network, identity) = (cluster.network(), cluster.identity());
    Ok(vec![
        format!("--infra-json={}", cluster.file("infra", &network)?),
        format!("--iam-json={}", cluster.file("iam", &identity)?),
        "--auto-repair".to_owned(),
    ])
}

/// The flags of one whose network and roles are created with it.
pub(super) fn flags_from_nothing(cluster: &Cluster<'_>) -> Vec<String> {
    vec![
        format!("--infra-id={}", cluster.infra()),
        format!("--base-domain={BASE_DOMAIN}"),
        format!("--zones={ZONE}"),
        "--auto-repair".to_owned(),
    ]
}

/// The same of one for which Karpenter makes machines.
pub(super) fn flags_with_auto_node(cluster: &Cluster<'_>) -> Vec<String> {
    let mut flags = flags_from_nothing(cluster);
    flags.push("--auto-node".to_owned());
    flags
}

/// Its instances that run.
pub(super) async fn running(cluster: &Cluster<'_>) -> Result<Vec<String>> {
    let instances = cluster.instances().await?;
    Ok(instances.into_iter().map(|instance| instance.id).collect())
}

// === impl Cluster ===

impl Cluster<'_> {
    /// Makes in the cloud what must be there before the command.
    pub async fn has_profile(&self) -> Result<()> {
        let cloud = &self.fixture.cloud.client;
        cloud.create_instance_profile(&self.profile()).await
    }

    /// Its instances that run, of those that Cluster API's provider has made.
    pub async fn instances(&self) -> Result<Vec<Instance>> {
        let infra = self.infra();
        let mut instances = self.fixture.cloud.client.instances_of(&infra).await?;
        instances.retain(Instance::runs);
        Ok(instances)
    }

    /// Its instances that run, of those that Karpenter has made.
    pub async fn instances_of_karpenter(&self) -> Result<Vec<Instance>> {
        let cloud = &self.fixture.cloud.client;
        let mut instances = cloud.instances_of_karpenter(&self.infra()).await?;
        instances.retain(Instance::runs);
        Ok(instances)
    }

    /// Deployments call AWS unless variables configure their SDK otherwise: one for all services, and one for the
    /// service of credentials, which is called before the first is read.
    pub async fn can_ask_the_cloud(&self, callers: &[&str]) -> Result<()> {
        for caller in callers {
            let what = format!("{caller} has the endpoints of the cloud");
            self.stage(&what, async || self.set_cloud_endpoints_of(caller).await)
                .await?;
        }
        Ok(())
    }

    /// The same for those that make machines, at once.
    pub async fn set_cloud_endpoints(&self) -> Result<()> {
        self.set_cloud_endpoints_of("control-plane-operator")
            .await?;
        self.set_cloud_endpoints_of("capi-provider").await
    }

    async fn set_cloud_endpoints_of(&self, caller: &str) -> Result<()> {
        let admin = &self.fixture.testbed.admin;
        let url = self.fixture.cloud.url_for_pods();
        let path = DEPLOYMENTS.named(&self.namespace(), caller);
        let found = admin.get(&path).await?;
        let containers = found["spec"]["template"]["spec"]["containers"].as_array();
        let manager = containers
            .and_then(|containers| containers.first())
            .context("there is no container")?;
        let desired = json!({
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": { "namespace": self.namespace(), "name": caller },
            "spec": { "template": { "spec": { "containers": [{
                "name": manager["name"],
                "env": [
                    { "name": "AWS_ENDPOINT_URL", "value": url },
                    { "name": "AWS_ENDPOINT_URL_STS", "value": url },
                ],
            }] } } },
        });
        admin.patch(&path, Patch::Apply, &desired).await.map(drop)
    }

    fn network(&self) -> Value {
        let network = &self.fixture.cloud.network;
        json!({
            "region": "us-east-1",
            "infraID": self.infra(),
            "vpcID": network.vpc,
            "zones": [{ "name": ZONE, "subnetID": network.subnet }],
            "securityGroupID": network.security_group,
            "machineCIDR": self.fixture.testbed.namespaces().subnets().machines(),
            "baseDomain": BASE_DOMAIN,
        })
    }

    fn identity(&self) -> Value {
        let role = |name: &str| format!("{ROLES}/{}-{name}", self.infra());
        json!({
            "profileName": self.profile(),
            "roles": {
                "ingressARN": role("ingress"),
                "imageRegistryARN": role("image-registry"),
                "storageARN": role("storage"),
                "networkARN": role("network"),
                "kubeCloudControllerARN": role("cloud-controller"),
                "nodePoolManagementARN": role("node-pool"),
                "controlPlaneOperatorARN": role("control-plane-operator"),
            },
        })
    }

    /// What its instances may do.
    fn profile(&self) -> String {
        format!("{}-worker-profile", self.infra())
    }
}
