//! HostedClusters of two tenants whose machines are Agents of one namespace, and which have the same name and infrastructure
//! ID: each has its own rights on the Agents and its own objects, and what is done with one changes nothing of the other
//! (checks T01 and T11).
//!
//! Each cluster has a pool for each architecture, which selects Agents by labels, by expressions, or by both.

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use testbed::agents::allow_consumer;
use testbed::client::{ApiClient, Patch, Resource};
use testbed::conditions::{is_true, untrue};
use testbed::operator::SOON;
use testbed::service_account::ensure_namespace;
use testbed::testbed::Testbed;
use testbed::{simulation, wait};

use crate::hosted_clusters_api::cluster::{HOSTED_CLUSTERS, NODE_POOLS, ROLES, gone};
use crate::hosted_clusters_api::fixture::{Fixture, NAMESPACE};
use crate::hosted_clusters_api::other_platforms::{
    AGENT_CLUSTERS, AGENT_TEMPLATES, MACHINE_SETS, ignition_is_published,
};
use crate::hosted_clusters_api::poison;

/// Where the Agents are.
const AGENTS: &str = "shared-agents";
/// Where the second tenant has its HostedClusters.
const TENANT: &str = "metal-tenant";
/// The name of both clusters.
const NAME: &str = "shared-metal";
const BINDINGS: Resource<'_> = Resource::new("rbac.authorization.k8s.io/v1", "rolebindings");

/// The cluster of a tenant.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tenant {
    /// Namespace of its HostedClusters.
    pub(crate) home: &'static str,
}

/// Both clusters, from their creation to their end.
pub(crate) async fn live(testbed: &Testbed, fixture: &Fixture) -> Result<()> {
    let admin = &testbed.admin;
    for namespace in [TENANT, AGENTS] {
        ensure_namespace(admin, namespace).await?;
    }
    allow_consumer(admin, AGENTS, &format!("{NAMESPACE},{TENANT}")).await?;
    for tenant in Tenant::ALL {
        tenant.create(admin, fixture).await.context(tenant.home)?;
    }
    for tenant in Tenant::ALL {
        let come_up = async {
            tenant.comes_up(admin).await?;
            tenant.has_pools(admin).await?;
            tenant.has_rights(admin).await
        };
        come_up.await.context(tenant.home)?;
    }
    let [one, other] = Tenant::ALL;
    poison::stops_no_other(testbed, other, one)
        .await
        .context("objects that cannot be read")?;
    let before = one.versions(admin).await?;
    loses_consent(admin, other).await?;
    ensure!(
        is_true(&admin.get(&one.path()).await?, "ValidConfiguration"),
        "the other tenant loses it, too"
    );
    other.ends(admin).await.context("the first to end")?;
    ensure!(
        one.versions(admin).await? == before,
        "objects of the cluster that stays were written"
    );
    one.ends(admin).await.context("the last to end")
}

/// The owner of the Agents takes its consent back: that is reported to one tenant.
async fn loses_consent(admin: &ApiClient, tenant: Tenant) -> Result<()> {
    allow_consumer(admin, AGENTS, NAMESPACE).await?;
    let looked = json!({ "metadata": { "annotations": { "example.com/looked": "at" } } });
    admin.patch(&tenant.path(), Patch::Merge, &looked).await?;
    let expected = format!("does not allow HostedClusters of namespace {}", tenant.home);
    wait::until("the loss to be reported", SOON, async || {
        let reported = untrue(&admin.get(&tenant.path()).await?);
        ensure!(reported.contains(&expected), "it says {reported}");
        Ok(())
    })
    .await
}

/// The architectures of pools, and the Agents that they select.
fn selectors() -> [(&'static str, Value); 3] {
    let not_reserved = json!({ "key": "reserved", "operator": "DoesNotExist" });
    let arm64 = json!({ "key": "arch", "operator": "In", "values": ["arm64"] });
    [
        (
            "amd64",
            json!({ "matchLabels": { "arch": "amd64", "size": "large" } }),
        ),
        (
            "arm64",
            json!({ "matchExpressions": [arm64, not_reserved.clone()] }),
        ),
        (
            "ppc64le",
            json!({ "matchLabels": { "arch": "ppc64le" }, "matchExpressions": [not_reserved] }),
        ),
    ]
}

// === impl Tenant ===

impl Tenant {
    const ALL: [Self; 2] = [Self { home: NAMESPACE }, Self { home: TENANT }];

    pub(crate) fn path(self) -> String {
        HOSTED_CLUSTERS.named(self.home, NAME)
    }

    /// The namespace of its control plane.
    pub(crate) fn namespace(self) -> String {
        format!("{}-{NAME}", self.home)
    }

    /// The path of one of its pools.
    pub(crate) fn pool(self, arch: &str) -> String {
        NODE_POOLS.named(self.home, &format!("{NAME}-{arch}"))
    }

    /// The path of the `MachineSet` of one of its pools.
    pub(crate) fn machine_set(self, arch: &str) -> String {
        MACHINE_SETS.named(&self.namespace(), &format!("{NAME}-{arch}"))
    }

    async fn create(self, admin: &ApiClient, fixture: &Fixture) -> Result<()> {
        let mut objects = simulation::desired(NAME, &fixture.release)?;
        let pool = objects.iter().position(|it| it["kind"] == "NodePool");
        let pool = objects.remove(pool.context("there is no NodePool")?);
        objects.retain(|it| it["kind"] != "Namespace");
        for object in &mut objects {
            if object["kind"] != "HostedCluster" {
                continue;
            }
            let agent = json!({ "agentNamespace": AGENTS });
            object["spec"]["platform"] = json!({ "type": "Agent", "agent": agent });
            let ports = json!({ "type": "NodePort", "nodePort": { "address": "192.0.2.10" } });
            let services = object["spec"]["services"].as_array_mut();
            for service in services.into_iter().flatten() {
                service["servicePublishingStrategy"] = ports.clone();
            }
        }
        objects.extend(selectors().map(|(arch, selector)| {
            let mut pool = pool.clone();
            pool["metadata"]["name"] = json!(format!("{NAME}-{arch}"));
            let agent = json!({ "agentLabelSelector": selector });
            pool["spec"]["platform"] = json!({ "type": "Agent", "agent": agent });
            pool["spec"]["management"] = json!({ "upgradeType": "InPlace" });
            pool
        }));
        for object in &mut objects {
            object["metadata"]["namespace"] = json!(self.home);
        }
        admin.apply(&objects).await
    }

    /// Its control plane does, and the `AgentCluster` names where the machines find their configuration: in its own namespace.
    async fn comes_up(self, admin: &ApiClient) -> Result<()> {
        simulation::control_plane_comes_up(admin, self.home, NAME).await?;
        let namespace = self.namespace();
        ignition_is_published(admin, &namespace).await?;
        let cluster = AGENT_CLUSTERS.named(&namespace, NAME);
        wait::until("the AgentCluster", SOON, async || {
            let spec = admin.get(&cluster).await?["spec"].clone();
            let authority = &spec["ignitionEndpoint"]["caCertificateReference"];
            ensure!(authority["namespace"] == namespace, "{spec}");
            Ok(())
        })
        .await
    }

    /// The machines of each pool take the Agents that the pool selects.
    async fn has_pools(self, admin: &ApiClient) -> Result<()> {
        for (arch, expected) in selectors() {
            let (pool, set) = (self.pool(arch), self.machine_set(arch));
            let template = wait::until(&format!("{set} to be made"), SOON, async || {
                let pool = admin.get(&pool).await?;
                let set = admin.find(&set).await?;
                let set = set.with_context(|| format!("the pool says {}", untrue(&pool)))?;
                let name = &set["spec"]["template"]["spec"]["infrastructureRef"]["name"];
                let name = name.as_str().context("it names no template")?;
                admin
                    .get(&AGENT_TEMPLATES.named(&self.namespace(), name))
                    .await
            })
            .await?;
            let found = &template["spec"]["template"]["spec"]["agentLabelSelector"];
            ensure!(*found == expected, "{pool}: {found}");
        }
        Ok(())
    }

    /// A role and a binding in the namespace of the Agents, which only its own provider has.
    fn rights(self) -> [String; 2] {
        let namespace = self.namespace();
        [
            ROLES.named(AGENTS, &format!("capi-provider-role-{namespace}")),
            BINDINGS.named(AGENTS, &format!("cluster-api-agent-{namespace}")),
        ]
    }

    async fn has_rights(self, admin: &ApiClient) -> Result<()> {
        let [role, binding] = self.rights();
        admin.get(&role).await?;
        let binding = admin.get(&binding).await?;
        let subjects = binding["subjects"].as_array().context("no subjects")?;
        let namespace = self.namespace();
        let is_own = |it: &Value| it["name"] == "capi-provider" && it["namespace"] == namespace;
        ensure!(subjects.iter().all(is_own), "{subjects:?}");
        Ok(())
    }

    /// The resource version of each of its objects that the other cluster has, too.
    async fn versions(self, admin: &ApiClient) -> Result<Vec<Value>> {
        let sets = selectors().map(|(arch, _)| self.machine_set(arch));
        let cluster = AGENT_CLUSTERS.named(&self.namespace(), NAME);
        let mut versions = Vec::new();
        for path in self.rights().into_iter().chain(sets).chain([cluster]) {
            let mut found = admin.get(&path).await?;
            versions.push(found["metadata"]["resourceVersion"].take());
        }
        Ok(versions)
    }

    /// Deletes it, and waits until nothing of it is left.
    async fn ends(self, admin: &ApiClient) -> Result<()> {
        admin.delete(&self.path()).await?;
        let namespace = format!("/api/v1/namespaces/{}", self.namespace());
        gone(admin, [self.path(), self.pool("amd64"), namespace]).await?;
        for path in self.rights() {
            ensure!(admin.find(&path).await?.is_none(), "{path} is left");
        }
        Ok(())
    }
}
