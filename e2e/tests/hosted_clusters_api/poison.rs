//! Check T04 where machines are Agents or virtual machines: objects of one tenant that cannot be read. Other tenants'
//! pools are scaled meanwhile, and so are the tenant's own unless the operator needs the object itself.
//!
//! The objects are nested more deeply than parsers go, and are written straight into etcd: the client of this test could not
//! read a response with one, either.

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use testbed::client::{ApiClient, Patch, Resource};
use testbed::conditions::{find, untrue};
use testbed::operator::SOON;
use testbed::testbed::Testbed;
use testbed::{crds, wait};

use crate::hosted_clusters_api::agents_shared::Tenant;
use crate::hosted_clusters_api::other_platforms::AGENT_TEMPLATES;

const AGENT_PROVIDER: &str = "capi-provider.agent-install.openshift.io";
const INFRASTRUCTURE: &str = "infrastructure.cluster.hypershift.openshift.io";
const CONFIG_MAPS: Resource<'_> = Resource::new("v1", "configmaps");
/// The pools that are looked at.
const ARCH: &str = "amd64";
/// The name of each object.
const NAME: &str = "poison";
/// More levels than parsers read.
const LEVELS: usize = 300;

/// A kind of the objects: its group, version, name and plural.
type Kind = (&'static str, &'static str, &'static str, &'static str);

/// Kinds that the operator does not read on platform Agent.
const UNREAD: [Kind; 2] = [
    (AGENT_PROVIDER, "v1beta1", "AgentMachine", "agentmachines"),
    (
        INFRASTRUCTURE,
        "v1alpha1",
        "KubevirtMachine",
        "kubevirtmachines",
    ),
];
/// The kind that it reads.
const READ: Kind = (
    AGENT_PROVIDER,
    "v1beta1",
    "AgentMachineTemplate",
    "agentmachinetemplates",
);

/// The objects come and go in the control plane of `one`, and a ConfigMap beside it. `other` is another tenant's cluster.
pub(crate) async fn stops_no_other(testbed: &Testbed, one: Tenant, other: Tenant) -> Result<()> {
    let admin = &testbed.admin;
    // The kind that the testbed lacks.
    let (group, version, kind, plural) = UNREAD[1];
    let virtual_machines = [crds::of_any_object(
        group,
        version,
        kind,
        plural,
        "Namespaced",
    )];
    crds::install(admin, &virtual_machines).await?;
    configuration(admin, one, other)
        .await
        .context("a ConfigMap")?;
    for (number, kind) in (1..).zip(UNREAD) {
        store(testbed, kind, number, &one.namespace()).await?;
    }
    for tenant in [one, other] {
        is_scaled(admin, tenant, 3).await.context(tenant.home)?;
    }
    store(testbed, READ, 0, &one.namespace()).await?;
    is_scaled(admin, other, 1).await.context(other.home)?;
    // With the object the failure of its own pools goes, too.
    admin
        .delete(&AGENT_TEMPLATES.named(&one.namespace(), NAME))
        .await?;
    is_scaled(admin, one, 1).await.context(one.home)?;
    for (group, version, _, plural) in UNREAD {
        let version = format!("{group}/{version}");
        let resource = Resource::new(&version, plural);
        admin
            .delete(&resource.named(&one.namespace(), NAME))
            .await?;
    }
    crds::remove(admin, &virtual_machines).await
}

/// A configuration that is no manifest is reported for its pool. Other pools of the cluster, and others' clusters, go on.
async fn configuration(admin: &ApiClient, one: Tenant, other: Tenant) -> Result<()> {
    let map = json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": { "namespace": one.home, "name": NAME },
        "data": { "config": "{" },
    });
    admin.apply(&[map]).await?;
    let pool = one.pool("arm64");
    let configured = |config: Value| json!({ "spec": { "config": config } });
    let poisoned = configured(json!([{ "name": NAME }]));
    admin.patch(&pool, Patch::Merge, &poisoned).await?;
    wait::until("the ConfigMap to be reported", SOON, async || {
        let pool = admin.get(&pool).await?;
        let condition = find(&pool, "ValidMachineConfig").context("no condition yet")?;
        let message = condition["message"].as_str().unwrap_or_default();
        ensure!(
            condition["status"] == "False" && message.contains(NAME),
            "{condition}; others: {}",
            untrue(&pool)
        );
        Ok(())
    })
    .await?;
    for tenant in [one, other] {
        is_scaled(admin, tenant, 2).await.context(tenant.home)?;
    }
    admin
        .patch(&pool, Patch::Merge, &configured(json!([])))
        .await?;
    admin.delete(&CONFIG_MAPS.named(one.home, NAME)).await
}

/// Stores an object that is too deep.
async fn store(testbed: &Testbed, kind: Kind, number: u32, namespace: &str) -> Result<()> {
    let (group, version, kind, plural) = kind;
    let deep = (0..LEVELS).fold(json!("end"), |inner, _| json!({ "a": inner }));
    let object = json!({
        "apiVersion": format!("{group}/{version}"),
        "kind": kind,
        "metadata": {
            "namespace": namespace,
            "name": NAME,
            "uid": format!("00000000-0000-4000-9000-{number:012}"),
            "generation": 1,
            "creationTimestamp": "2026-01-01T00:00:00Z",
        },
        "spec": deep,
    });
    let key = format!("/registry/{group}/{plural}/{namespace}/{NAME}");
    let etcd = &testbed.control_plane.etcd;
    etcd.put(&key, object.to_string().as_bytes()).await
}

/// Scales a pool, and waits for its `MachineSet`.
async fn is_scaled(admin: &ApiClient, tenant: Tenant, replicas: u32) -> Result<()> {
    let change = json!({ "spec": { "replicas": replicas } });
    admin
        .patch(&tenant.pool(ARCH), Patch::Merge, &change)
        .await?;
    let path = tenant.machine_set(ARCH);
    wait::until("the MachineSet to follow", SOON, async || {
        let found = &admin.get(&path).await?["spec"]["replicas"];
        ensure!(*found == replicas, "it has {found}");
        Ok(())
    })
    .await
}
