//! The AWS cloud controller manager, which is the released program here: it initializes nodes, deletes nodes whose instances
//! have ended, and makes load balancers for Services.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use api::group;
use serde_json::{Value, json};
use testbed::client::{Patch, Resource};
use testbed::cloud::{EC2, Instance, LoadBalancer};
use testbed::fixtures;
use testbed::hosted::{Cluster, Fixture, Guest};
use testbed::payload::REGION;

use crate::hosted_cluster::spot::instance;

const SERVICES: Resource<'_> = Resource::new("v1", "services");
/// Where events of nodes are.
const EVENTS: &str = "/api/v1/namespaces/default/events";
/// The taint of a node that is not initialized.
const UNINITIALIZED: &str = "node.cloudprovider.kubernetes.io/uninitialized";
/// Its controllers of nodes, and the reasons of their events: of a node whose taint was removed, and of one that was deleted.
const INITIALIZED: (&str, &str) = ("cloud-node-controller", "Synced");
const DELETED: (&str, &str) = ("cloud-node-lifecycle-controller", "DeletingNode");
/// The Services, by the kinds of their load balancers.
const CLASSIC: &str = "classic";
const NETWORK: &str = "network";

/// Waits until it has initialized all nodes, with what the cloud says about their instances.
pub(crate) async fn initializes_nodes(fixture: &Fixture, guest: &Guest) -> Result<()> {
    let what = "all nodes are initialized by the cloud controller manager";
    fixture
        .stage(what, async || {
            let nodes = guest.nodes().await?;
            ensure!(!nodes.is_empty(), "there is no node");
            let instances = fixture.cloud.client.instances().await?;
            for node in &nodes {
                is_as_its_instance(node, &instances)
                    .with_context(|| node["metadata"]["name"].to_string())?;
                was_reported(guest, INITIALIZED, &node["metadata"]["uid"]).await?;
            }
            Ok(())
        })
        .await
}

/// A node has no taint of one that is not initialized, and the labels and addresses of its instance.
fn is_as_its_instance(node: &Value, instances: &[Instance]) -> Result<()> {
    let id = node["spec"]["providerID"].as_str().unwrap_or_default();
    let own = |it: &&Instance| id == format!("aws:///{}/{}", it.zone, it.id);
    let instance = instances.iter().find(own);
    let instance = instance.with_context(|| format!("{id:?} is not the ID of an instance"))?;
    let taints = node["spec"]["taints"].as_array().into_iter().flatten();
    let mut left = taints.filter(|taint| taint["key"] == UNINITIALIZED);
    ensure!(left.next().is_none(), "it has the taint {UNINITIALIZED}");
    let labels = &node["metadata"]["labels"];
    for (label, expected) in [
        ("topology.kubernetes.io/zone", instance.zone.as_str()),
        ("topology.kubernetes.io/region", REGION),
        (
            "node.kubernetes.io/instance-type",
            instance.instance_type.as_str(),
        ),
    ] {
        ensure!(labels[label] == expected, "its labels are {labels}");
    }
    let found = &node["status"]["addresses"];
    for (kind, expected) in [
        ("InternalIP", &instance.address),
        ("InternalDNS", &instance.name),
        ("Hostname", &instance.name),
    ] {
        let address = json!({ "type": kind, "address": expected });
        let mut addresses = found.as_array().into_iter().flatten();
        ensure!(
            addresses.any(|it| *it == address),
            "its addresses are {found}, without {address}"
        );
    }
    Ok(())
}

/// An instance of the pool, which has `count`, ends without its machine. While machines are not repaired, nothing but the
/// cloud controller manager deletes its node; then another machine replaces it.
pub(crate) async fn deletes_the_node_of_an_ended_instance(
    fixture: &Fixture,
    cluster: &Cluster<'_>,
    guest: &Guest,
    count: usize,
) -> Result<()> {
    let repair = Repair { fixture, cluster };
    repair.ends().await?;
    let machines = cluster.machines().await?;
    let machine = machines.first().context("there is no machine")?;
    let node = machine["status"]["nodeRef"]["name"].as_str();
    let node = format!("/api/v1/nodes/{}", node.context("it has no node")?);
    let uid = guest.client.get(&node).await?["metadata"]["uid"].clone();
    let ended = instance(machine);
    fixture.testbed.progress.note(&format!("ending {ended}"));
    fixture.cloud.client.terminate(&ended).await?;
    fixture
        .stage("the node of an ended instance is deleted", async || {
            let found = guest.client.find(&node).await?;
            ensure!(found.is_none(), "{node} is there");
            was_reported(guest, DELETED, &uid).await
        })
        .await?;
    let uid = &machine["metadata"]["uid"];
    let machines = cluster.machines().await?;
    let machine = machines.iter().find(|it| it["metadata"]["uid"] == *uid);
    let machine = machine.context("its machine is gone: it could have deleted the node")?;
    let deleted = &machine["metadata"]["deletionTimestamp"];
    ensure!(deleted.is_null(), "its machine is being deleted, too");
    repair.begins().await?;
    fixture
        .stage("its machine is replaced", async || {
            let machines = cluster.machines().await?;
            let mut left = machines.iter().filter(|it| it["metadata"]["uid"] == *uid);
            ensure!(left.next().is_none(), "it is there");
            Ok(())
        })
        .await?;
    cluster.has_workers(guest, count).await
}

/// The repair of the pool's machines.
struct Repair<'a> {
    fixture: &'a Fixture,
    cluster: &'a Cluster<'a>,
}

// === impl Repair ===

impl Repair<'_> {
    async fn begins(&self) -> Result<()> {
        let desired = json!({ "spec": { "management": { "autoRepair": true } } });
        let (admin, path) = (&self.fixture.testbed.admin, self.cluster.pool_path());
        admin.patch(&path, Patch::Merge, &desired).await.map(drop)
    }

    /// Ends it, and waits until no controller does it.
    async fn ends(&self) -> Result<()> {
        let desired = json!({ "spec": { "management": { "autoRepair": false } } });
        let (admin, path) = (&self.fixture.testbed.admin, self.cluster.pool_path());
        admin.patch(&path, Patch::Merge, &desired).await?;
        let version = format!("{}/v1beta2", group::core(self.cluster.capi_types()));
        let checks = Resource::new(&version, "machinehealthchecks");
        let path = checks.within(&self.cluster.namespace());
        self.fixture
            .stage("machines are not repaired", async || {
                let left = admin.list(&path).await?;
                let names = left.iter().map(|it| it["metadata"]["name"].to_string());
                let names: Vec<_> = names.collect();
                ensure!(names.is_empty(), "there are {names:?}");
                Ok(())
            })
            .await
    }
}

/// That a controller has reported something about a node.
async fn was_reported(
    guest: &Guest,
    (controller, reason): (&str, &str),
    uid: &Value,
) -> Result<()> {
    let events = guest.client.list(EVENTS).await?;
    let found = events.iter().any(|event| {
        event["reason"] == reason
            && event["source"]["component"] == controller
            && event["involvedObject"]["uid"] == *uid
    });
    ensure!(found, "{controller} has not reported {reason}");
    Ok(())
}

/// Services get load balancers of the cluster, and one that is deleted takes its own along. The other one is left for the
/// deletion of the cluster.
pub(crate) async fn makes_load_balancers(
    fixture: &Fixture,
    cluster: &Cluster<'_>,
    guest: &Guest,
) -> Result<()> {
    let names = [("CLASSIC", CLASSIC), ("NETWORK", NETWORK)];
    let services = fixtures::render("hosted_cluster/load-balancers", &names)?;
    guest.client.apply(&services).await?;
    let classic = has_load_balancer(fixture, cluster, guest, CLASSIC).await?;
    let network = has_load_balancer(fixture, cluster, guest, NETWORK).await?;
    let cloud = &fixture.cloud.client;
    let instances = cluster.instances().await?.into_iter();
    let mut ids: Vec<_> = instances.map(|it| it.id).collect();
    let mut behind = classic.instances.clone();
    ids.sort();
    behind.sort();
    ensure!(behind == ids, "{behind:?} are behind it, of {ids:?}");
    let own = format!("k8s-elb-{}", classic.id);
    let other = format!("k8s-default-{NETWORK}-");
    let groups = cloud.ask(EC2, "DescribeSecurityGroups", &[]).await?;
    for name in [&own, &other] {
        ensure!(groups.contains(name), "{name} is not among {groups}");
    }
    let path = SERVICES.named("default", CLASSIC);
    guest.client.delete(&path).await?;
    fixture
        .stage("the load balancer of a Service goes with it", async || {
            let left = guest.client.find(&path).await?;
            ensure!(left.is_none(), "{path} is there");
            let left = cloud.load_balancers().await?;
            ensure!(left == [network.clone()], "there are {left:?}");
            let groups = cloud.ask(EC2, "DescribeSecurityGroups", &[]).await?;
            ensure!(!groups.contains(&own), "{own} is among {groups}");
            Ok(())
        })
        .await
}

/// Waits until a Service has a load balancer with the tags of the cluster; gives it.
async fn has_load_balancer(
    fixture: &Fixture,
    cluster: &Cluster<'_>,
    guest: &Guest,
    name: &str,
) -> Result<LoadBalancer> {
    let path = SERVICES.named("default", name);
    let expected = [
        (
            format!("kubernetes.io/cluster/{}", cluster.infra()),
            "owned".to_owned(),
        ),
        (
            "kubernetes.io/service-name".to_owned(),
            format!("default/{name}"),
        ),
    ];
    let expected = BTreeMap::from(expected);
    fixture
        .stage(&format!("Service {name} has a load balancer"), async || {
            let service = guest.client.get(&path).await?;
            let status = &service["status"]["loadBalancer"];
            let host = status["ingress"][0]["hostname"].as_str();
            let host = host.with_context(|| status.to_string())?;
            let all = fixture.cloud.client.load_balancers().await?;
            let found = all.into_iter().find(|it| it.host == host);
            let found = found.with_context(|| format!("{host} is not in the cloud"))?;
            ensure!(found.tags == expected, "its tags are {:?}", found.tags);
            Ok(found)
        })
        .await
}
