//! What happens to the clusters of one provider. Its steps are the same on both sides, and all objects have their
//! standard names: only the client knows the difference.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use api::group::CapiTypes;
use serde_json::{Value, json};
use testbed::client::{ApiClient, Patch, Resource};
use testbed::cluster::{CLUSTERS, MACHINE_DEPLOYMENTS, MACHINES};
use testbed::testbed::Testbed;
use testbed::virtual_machines::{self, DATA_VOLUMES, INSTANCES};
use testbed::{conditions, fixtures, wait};

use crate::providers::comparison::Scenario;
use crate::providers::guest::{self, GUEST, Guest};
use crate::providers::kubevirt::nodes;

const KUBEVIRT: &str = "infrastructure.cluster.x-k8s.io/v1alpha1";
const KUBEVIRT_CLUSTERS: Resource<'_> = Resource::new(KUBEVIRT, "kubevirtclusters");
const KUBEVIRT_MACHINES: Resource<'_> = Resource::new(KUBEVIRT, "kubevirtmachines");
const SECRETS: Resource<'_> = Resource::new("v1", "secrets");
const SERVICES: Resource<'_> = Resource::new("v1", "services");
/// The cluster whose infrastructure the provider manages. The other one has the machines.
const OWN: &str = "own";
/// The image of the machines' disks.
pub(crate) const IMAGE: &str = "docker://images.testbed/rhcos";
/// The copy of the machines' user data that the provider makes for their virtual machines.
const USER_DATA_COPY: &str = "user-data-userdata";
/// What the provider annotates a machine with while it drains its node.
const GRACE_TIME: &str = "capk.cluster.x-k8s.io/vmi-deletion-grace-time";
/// How many virtual machines are created, and so deleted, in the whole scenario.
pub(crate) const CREATED: usize = 3;
/// The provider looks at its machines again after 10 to 60 seconds, depending on what it is waiting for.
const WITHIN: Duration = Duration::from_mins(4);

/// The clusters of one provider.
#[derive(Debug)]
pub(crate) struct Side {
    namespace: &'static str,
    /// Standard names: directly, or through a proxy.
    view: ApiClient,
    admin: ApiClient,
    guest: Guest,
}

// === impl Side ===

impl Side {
    /// One with these types, in a namespace that exists.
    pub(crate) async fn new(
        testbed: &mut Testbed,
        capi_types: CapiTypes,
        namespace: &'static str,
    ) -> Result<Self> {
        Ok(Self {
            namespace,
            view: testbed.view_of(capi_types).await?,
            admin: testbed.admin.clone(),
            guest: Guest::new(testbed)?,
        })
    }
}

impl Scenario for Side {
    /// Both clusters come up; the one gets two machines, one more, loses two, and one is evicted in between.
    async fn comes_up(&self) -> Result<()> {
        self.provisions_clusters().await?;
        let values = [("NAMESPACE", self.namespace), ("IMAGE", IMAGE)];
        let pool = fixtures::render("kubevirt/pool", &values)?;
        self.view.apply(&pool).await?;
        self.runs(2).await?;
        self.scales_to(CREATED).await?;
        self.drains_an_evicted_machine().await?;
        self.scales_to(1).await?;
        self.copies_user_data_again().await
    }

    /// Both clusters are deleted, with everything that the provider has created for them.
    async fn ends(&self) -> Result<()> {
        for cluster in [GUEST, OWN] {
            let path = CLUSTERS.named(self.namespace, cluster);
            self.view.delete(&path).await?;
        }
        self.until("all objects to be gone", async || {
            for (client, resource) in [
                (&self.view, CLUSTERS),
                (&self.view, MACHINES),
                (&self.view, KUBEVIRT_CLUSTERS),
                (&self.view, KUBEVIRT_MACHINES),
                (&self.admin, virtual_machines::MACHINES),
                (&self.admin, INSTANCES),
                (&self.admin, DATA_VOLUMES),
                (&self.admin, SERVICES),
            ] {
                let left = client.list(&resource.within(self.namespace)).await?;
                let left: Vec<_> = left.iter().map(name).collect();
                ensure!(left.is_empty(), "{} {left:?} are left", resource.plural);
            }
            for secret in [USER_DATA_COPY.to_owned(), format!("{OWN}-ssh-keys")] {
                let path = SECRETS.named(self.namespace, &secret);
                let left = self.admin.find(&path).await?;
                ensure!(left.is_none(), "Secret {secret} is left");
            }
            Ok(())
        })
        .await
    }
}

impl Side {
    async fn provisions_clusters(&self) -> Result<()> {
        self.view.apply(&self.guest.secrets(self.namespace)).await?;
        let values = [
            ("NAMESPACE", self.namespace),
            ("HOST", self.guest.host.as_str()),
            ("PORT", self.guest.port.as_str()),
        ];
        let clusters = fixtures::render("kubevirt/clusters", &values)?;
        self.view.apply(&clusters).await?;
        // What HyperShift's operator writes, because it manages this infrastructure.
        let ready = json!({ "status": { "ready": true } });
        let path = KUBEVIRT_CLUSTERS.named(self.namespace, GUEST) + "/status";
        self.view.patch(&path, Patch::Merge, &ready).await?;
        self.until("both clusters to be provisioned", async || {
            for cluster in [GUEST, OWN] {
                let path = CLUSTERS.named(self.namespace, cluster);
                let status = self.view.get(&path).await?["status"].take();
                let is_provisioned = &status["initialization"]["infrastructureProvisioned"];
                ensure!(is_provisioned == true, "{cluster}: {status}");
            }
            Ok(())
        })
        .await?;
        let path = CLUSTERS.named(self.namespace, GUEST) + "/status";
        self.view
            .patch(&path, Patch::Merge, &guest::initialized())
            .await?;
        Ok(())
    }

    async fn scales_to(&self, count: usize) -> Result<()> {
        let path = MACHINE_DEPLOYMENTS.named(self.namespace, GUEST);
        let replicas = json!({ "spec": { "replicas": count } });
        self.view.patch(&path, Patch::Merge, &replicas).await?;
        self.runs(count).await
    }

    /// So many machines run, each on a virtual machine of its name that is a node of its name.
    async fn runs(&self, count: usize) -> Result<()> {
        self.until(&format!("{count} running machines"), async || {
            let machines = self.view.list(&MACHINES.within(self.namespace)).await?;
            for machine in &machines {
                let phase = &machine["status"]["phase"];
                ensure!(phase == "Running", "{}", machine["status"]);
                self.is_reported(machine).await?;
            }
            ensure!(machines.len() == count, "there are {}", machines.len());
            let virtual_machines = virtual_machines::MACHINES.within(self.namespace);
            let virtual_machines = self.admin.list(&virtual_machines).await?;
            let names = |all: &[Value]| all.iter().map(name).collect::<BTreeSet<_>>();
            ensure!(
                names(&virtual_machines) == names(&machines),
                "machines and virtual machines have other names"
            );
            Ok(())
        })
        .await
    }

    /// What the provider reports of a virtual machine has reached its Machine.
    async fn is_reported(&self, machine: &Value) -> Result<()> {
        let name = name(machine);
        let id = format!("kubevirt://{name}");
        ensure!(
            machine["spec"]["providerID"] == id.as_str(),
            "{}",
            machine["spec"]
        );
        ensure!(machine["status"]["nodeRef"]["name"] == name.as_str());
        let instance = INSTANCES.named(self.namespace, &name);
        let instance = self.admin.get(&instance).await?;
        let address = &instance["status"]["interfaces"][0]["ipAddress"];
        let reported = machine["status"]["addresses"].as_array();
        let mut reported = reported.into_iter().flatten();
        ensure!(
            reported.any(|one| one["type"] == "InternalIP" && one["address"] == *address),
            "its address is {address}, and reported are {}",
            machine["status"]["addresses"]
        );
        let path = KUBEVIRT_MACHINES.named(self.namespace, &name);
        let machine = self.view.get(&path).await?;
        ensure!(
            conditions::is_true(&machine, "VMLiveMigratable"),
            "{}",
            machine["status"]
        );
        Ok(())
    }

    /// A virtual machine that KubeVirt is to evict: the provider drains its node, and then deletes the instance, of which
    /// KubeVirt makes another one.
    async fn drains_an_evicted_machine(&self) -> Result<()> {
        let machines = self.admin.list(&INSTANCES.within(self.namespace)).await?;
        let evicted = machines.first().context("there is no virtual machine")?;
        let name = name(evicted);
        virtual_machines::evict(&self.admin, self.namespace, &name).await?;
        // The provider does not watch virtual machines: it would find out within a minute.
        let path = KUBEVIRT_MACHINES.named(self.namespace, &name);
        let touched = json!({ "metadata": { "annotations": { "e2e/evicted": "" } } });
        self.view.patch(&path, Patch::Merge, &touched).await?;
        self.until("another instance", async || {
            let instance = INSTANCES.named(self.namespace, &name);
            let instance = self.admin.get(&instance).await?;
            ensure!(
                instance["metadata"]["uid"] != evicted["metadata"]["uid"],
                "it is the same: {}",
                instance["status"]
            );
            ensure!(conditions::is_true(&instance, "Ready"), "it is not ready");
            let node = nodes::find(&self.admin, &name).await?.context("no node")?;
            ensure!(node["spec"]["unschedulable"] == true, "it is not cordoned");
            let annotations = &self.view.get(&path).await?["metadata"]["annotations"];
            ensure!(annotations[GRACE_TIME].is_null(), "{annotations}");
            Ok(())
        })
        .await
    }

    /// The virtual machines of a pool share the copy of their user data, and the provider deletes it with each of them.
    /// It is there again as soon as the provider has looked at one that is left.
    async fn copies_user_data_again(&self) -> Result<()> {
        self.until("the copy of the user data", async || {
            let path = SECRETS.named(self.namespace, USER_DATA_COPY);
            self.admin.get(&path).await.map(drop)
        })
        .await
    }

    async fn until(&self, what: &str, probe: impl AsyncFnMut() -> Result<()>) -> Result<()> {
        let what = format!("{what} in {}", self.namespace);
        wait::until(&what, WITHIN, probe).await
    }
}

fn name(object: &Value) -> String {
    let name = object["metadata"]["name"].as_str();
    name.unwrap_or_default().to_owned()
}
