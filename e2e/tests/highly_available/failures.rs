//! The failures, each with how it begins and how it is repaired.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use api::group::Side;
use serde_json::{Value, json};
use testbed::client::{Patch, Resource};
use testbed::conditions;
use testbed::failures::Failure;
use testbed::hosted::{Cluster, Fixture};
use testbed::node::condition;
use testbed::wait;

use crate::highly_available::choice::Choice;
use crate::highly_available::control_plane;
use crate::highly_available::pods::{self, Pod};
use crate::highly_available::report::Report;
use crate::highly_available::world::World;

const NODES: Resource<'_> = Resource::new("v1", "nodes");
/// Generous: a busy machine is no failure.
const WITHIN: Duration = Duration::from_mins(2);
/// A cluster of several replicas, and one of a single replica.
const SEVERAL: &str = "several";
const ONE: &str = "one";
/// Members of etcd, and servers of the API.
const MEMBERS: &str = "etcd";
const SERVERS: &str = "kube-apiserver";

/// Replays those that are chosen.
pub(crate) async fn replay(fixture: &mut Fixture, choice: &Choice) -> Result<()> {
    let parts = choice.of_several();
    fixture.install(Side::Private, &[]).await?;
    let mut report = Report::default();
    if !parts.is_empty() {
        create(fixture, SEVERAL, "HighlyAvailable").await?;
        several(fixture, &mut report, &parts).await?;
    }
    // Not before: when a node is lost, the others need the room.
    if choice.has_single() {
        create(fixture, ONE, "SingleReplica").await?;
        one(fixture, &mut report).await?;
    }
    fixture.testbed.progress.note(&report.table());
    report.check(choice.is_all())
}

async fn create(fixture: &Fixture, name: &str, policy: &str) -> Result<()> {
    let policy = format!("--control-plane-availability-policy={policy}");
    let cluster = Cluster::new(fixture, name, Side::Private);
    cluster.create(&[&policy]).await.map(drop)
}

/// What a control plane of several replicas bears.
async fn several(fixture: &mut Fixture, report: &mut Report, parts: &[Failure]) -> Result<()> {
    let mut world = World::of(fixture, report, SEVERAL).await?;
    world.is_spread().await?;
    for part in parts {
        befall(&mut world, *part).await?;
    }
    world.is_spread().await
}

async fn befall(world: &mut World<'_>, part: Failure) -> Result<()> {
    match part {
        Failure::Members => each_pod_crashes(world, MEMBERS, "a member of etcd crashes").await,
        Failure::Servers => each_pod_crashes(world, SERVERS, "a kube-apiserver crashes").await,
        Failure::Others => others_are_deleted(world).await,
        Failure::Data => a_member_loses_its_data(world).await,
        Failure::Quorum => two_members_are_lost(world).await,
        Failure::Management => the_management_clusters_control_plane_stops(world).await,
        Failure::Nodes => each_node_is_lost(world).await,
        // It has a control plane of its own.
        Failure::Single => Ok(()),
    }
}

/// What one of a single replica bears.
async fn one(fixture: &mut Fixture, report: &mut Report) -> Result<()> {
    let mut world = World::of(fixture, report, ONE).await?;
    for (component, failure) in [
        (MEMBERS, "SingleReplica: etcd crashes"),
        (SERVERS, "SingleReplica: kube-apiserver crashes"),
    ] {
        let pod = only(&world, component).await?;
        let begun = world.begin(failure);
        pods::crash(world.testbed(), &world.namespace, &pod).await?;
        world.client.cannot_write().await?;
        world.end(begun, false).await?;
    }
    Ok(())
}

async fn only(world: &World<'_>, component: &str) -> Result<Pod> {
    let mut found = world.pods_of(component).await?;
    ensure!(found.len() == 1, "{found:?}");
    found.pop().context("invariant: there is one")
}

async fn each_pod_crashes(
    world: &mut World<'_>,
    component: &str,
    failure: &'static str,
) -> Result<()> {
    for pod in world.pods_of(component).await? {
        let begun = world.begin(failure);
        pods::crash(world.testbed(), &world.namespace, &pod).await?;
        world.client.is_answered().await?;
        world.end(begun, true).await?;
    }
    Ok(())
}

/// All other pods, in two waves, so that each component keeps what it has replicas for.
async fn others_are_deleted(world: &mut World<'_>) -> Result<()> {
    for wave in 0..2 {
        let all = pods::all(world.admin(), &world.namespace).await?;
        let mut chosen: Vec<Pod> = Vec::new();
        for workload in control_plane::workloads(world.admin(), &world.namespace).await? {
            if [MEMBERS, SERVERS].contains(&workload.name.as_str()) {
                continue;
            }
            let serving = workload.serving(&all);
            // An only one was in the first wave.
            chosen.extend(serving.get(wave).map(|pod| Pod::clone(pod)));
        }
        let begun = world.begin("a pod of every other component is deleted");
        pods::delete(world.testbed(), &world.namespace, &chosen).await?;
        world.client.is_answered().await?;
        world.end(begun, true).await?;
    }
    Ok(())
}

async fn a_member_loses_its_data(world: &mut World<'_>) -> Result<()> {
    let members = world.pods_of(MEMBERS).await?;
    let member = members.first().context("there is no member")?;
    let begun = world.begin("a member of etcd loses its data");
    pods::empty(world.testbed(), &world.namespace, member).await?;
    world.client.is_answered().await?;
    world.end(begun, true).await
}

/// Two of three members have no node to run on. The hosted cluster says so, and what is the way out.
async fn two_members_are_lost(world: &mut World<'_>) -> Result<()> {
    let mut members = world.pods_of(MEMBERS).await?;
    ensure!(members.len() == 3, "{members:?}");
    let written = world.stored().await?;
    members.pop();
    let begun = world.begin("two of three members of etcd are lost");
    for member in &members {
        may_be_used(world, &member.node, false).await?;
    }
    pods::delete(world.testbed(), &world.namespace, &members).await?;
    world.client.cannot_write().await?;
    wait::until("the condition that says so", WITHIN, async || {
        let cluster = world.cluster().seen().await?;
        let message = lacks(&cluster, "EtcdAvailable", "EtcdWaitingForQuorum")?;
        let says = message.contains("1 of 3 members are ready, and 2 are needed");
        ensure!(says, "it says {message:?}");
        lacks(&cluster, "Available", "EtcdWaitingForQuorum").map(drop)
    })
    .await?;
    for member in &members {
        may_be_used(world, &member.node, true).await?;
    }
    world.end(begun, false).await?;
    wait::until("the cluster to be available", WITHIN, async || {
        let cluster = world.cluster().seen().await?;
        condition(&cluster, "EtcdAvailable")?;
        condition(&cluster, "Available")
    })
    .await?;
    let now = world.stored().await?;
    ensure!(now > written, "{now} is not more than {written}");
    Ok(())
}

/// The message of a condition that is false for a reason.
fn lacks<'a>(object: &'a Value, kind: &str, reason: &str) -> Result<&'a str> {
    let found = conditions::find(object, kind).with_context(|| format!("there is no {kind}"))?;
    ensure!(
        found["status"] == "False" && found["reason"] == reason,
        "{found}"
    );
    Ok(found["message"].as_str().unwrap_or_default())
}

/// Whether new pods may come to a node.
async fn may_be_used(world: &World<'_>, node: &str, may: bool) -> Result<()> {
    let path = format!("{}/{node}", NODES.all());
    let wanted = json!({ "spec": { "unschedulable": !may } });
    world.admin().patch(&path, Patch::Merge, &wanted).await?;
    Ok(())
}

async fn the_management_clusters_control_plane_stops(world: &mut World<'_>) -> Result<()> {
    let begun = world.begin("the management cluster's control plane stops");
    let testbed = world.testbed_mut();
    testbed.scheduler.kill();
    testbed.control_plane.controller_manager.kill();
    testbed.control_plane.api_server.kill();
    testbed.control_plane.etcd.service.kill();
    world.client.is_answered().await?;
    let testbed = world.testbed_mut();
    testbed.control_plane.start().await?;
    testbed.control_plane.controller_manager.start().await?;
    testbed.scheduler.start().await?;
    world.end(begun, true).await
}

/// Each node is a zone of its own.
async fn each_node_is_lost(world: &mut World<'_>) -> Result<()> {
    let nodes = world.testbed().nodes.len();
    for index in 0..nodes {
        let begun = world.begin("a node, which is a zone, is lost");
        world.testbed_mut().nodes[index].lose().await?;
        wait::until("the node to be missed", WITHIN, async || {
            let seen = node(world, index).await?;
            ensure!(condition(&seen, "Ready").is_err(), "it is ready");
            Ok(())
        })
        .await?;
        world.client.is_answered().await?;
        // What was on it runs elsewhere, as far as there is room.
        world.is_whole_on(nodes - 1).await?;
        world.client.is_answered().await?;
        world.testbed_mut().nodes[index].give_back().await?;
        wait::until("the node to be back", WITHIN, async || {
            condition(&node(world, index).await?, "Ready")
        })
        .await?;
        world.end(begun, true).await?;
    }
    Ok(())
}

async fn node(world: &World<'_>, index: usize) -> Result<Value> {
    let name = &world.testbed().nodes[index].name;
    let path = format!("{}/{name}", NODES.all());
    world.admin().get(&path).await
}
