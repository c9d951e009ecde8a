//! The failures, each with how it begins and how it is repaired.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use api::group::CapiTypes;
use serde_json::{Value, json};
use testbed::client::{Patch, Resource};
use testbed::conditions;
use testbed::failures::Failure;
use testbed::hosted::{Cluster, Fixture};
use testbed::node::condition;
use testbed::wait;

use crate::highly_available::choice::Choice;
use crate::highly_available::others;
use crate::highly_available::pods::{self, Pod};
use crate::highly_available::report::Report;
use crate::highly_available::scenario::Scenario;
use crate::rollout::{self, expected};

const NODES: Resource<'_> = Resource::new("v1", "nodes");
/// Generous: a busy machine is no failure.
const WITHIN: Duration = Duration::from_mins(5);
/// A cluster of several replicas, and one of a single replica.
const SEVERAL: &str = "several";
const ONE: &str = "one";
/// Members of etcd, and servers of the API.
pub(crate) const MEMBERS: &str = "etcd";
pub(crate) const SERVERS: &str = "kube-apiserver";

/// Replays those that are chosen.
pub(crate) async fn replay(fixture: &mut Fixture, choice: &Choice) -> Result<()> {
    let parts = choice.of_several();
    fixture.install(CapiTypes::Private, &[]).await?;
    let mut report = Report::default();
    if !parts.is_empty() {
        let cluster = Cluster::new(fixture, SEVERAL, CapiTypes::Private);
        let policy = "--control-plane-availability-policy=HighlyAvailable";
        rollout::create(&cluster, &[policy]).await?;
        several(fixture, &mut report, &parts).await?;
    }
    // Not before: when a node is lost, the others need the room.
    if choice.has_single() {
        let cluster = Cluster::new(fixture, ONE, CapiTypes::Private);
        cluster.create(&[]).await?;
        one(fixture, &mut report).await?;
    }
    fixture.testbed.progress.note(&report.table());
    report.check(choice.is_all())
}

/// What a control plane of several replicas bears, with all components that there are on AWS.
async fn several(fixture: &mut Fixture, report: &mut Report, parts: &[Failure]) -> Result<()> {
    let mut scenario = Scenario::of(fixture, report, SEVERAL).await?;
    has_all_components(&scenario).await?;
    scenario.is_spread().await?;
    for part in parts {
        replay_part(&mut scenario, *part).await?;
    }
    scenario.is_spread().await
}

async fn has_all_components(scenario: &Scenario<'_>) -> Result<()> {
    let cluster = scenario.cluster();
    rollout::with_optional_components(&cluster).await?;
    let all = expected::with_options();
    rollout::has_rolled_out(&cluster, &scenario.fixture.release, &all).await?;
    scenario.is_whole().await
}

async fn replay_part(scenario: &mut Scenario<'_>, part: Failure) -> Result<()> {
    match part {
        Failure::Members => each_pod_crashes(scenario, MEMBERS, "a member of etcd crashes").await,
        Failure::Servers => each_pod_crashes(scenario, SERVERS, "a kube-apiserver crashes").await,
        Failure::Others => others::are_deleted(scenario).await,
        Failure::Data => a_member_loses_its_data(scenario).await,
        Failure::Quorum => two_members_are_lost(scenario).await,
        Failure::Management => the_management_clusters_control_plane_stops(scenario).await,
        Failure::Nodes => each_node_is_lost(scenario).await,
        // It has a control plane of its own.
        Failure::Single => Ok(()),
    }
}

/// What one of a single replica bears.
async fn one(fixture: &mut Fixture, report: &mut Report) -> Result<()> {
    let mut scenario = Scenario::of(fixture, report, ONE).await?;
    for (component, failure) in [
        (MEMBERS, "SingleReplica: etcd crashes"),
        (SERVERS, "SingleReplica: kube-apiserver crashes"),
    ] {
        let pod = only(&scenario, component).await?;
        let begun = scenario.begin(failure);
        pods::crash(scenario.testbed(), &scenario.namespace, &pod).await?;
        scenario.client.cannot_write().await?;
        scenario.end(begun, false).await?;
    }
    Ok(())
}

async fn only(scenario: &Scenario<'_>, component: &str) -> Result<Pod> {
    let mut found = scenario.pods_of(component).await?;
    ensure!(found.len() == 1, "{found:?}");
    found.pop().context("invariant: there is one")
}

async fn each_pod_crashes(
    scenario: &mut Scenario<'_>,
    component: &str,
    failure: &'static str,
) -> Result<()> {
    for pod in scenario.pods_of(component).await? {
        let begun = scenario.begin(failure);
        pods::crash(scenario.testbed(), &scenario.namespace, &pod).await?;
        scenario.client.is_available().await?;
        scenario.end(begun, true).await?;
    }
    Ok(())
}

async fn a_member_loses_its_data(scenario: &mut Scenario<'_>) -> Result<()> {
    let members = scenario.pods_of(MEMBERS).await?;
    let member = members.first().context("there is no member")?;
    let begun = scenario.begin("a member of etcd loses its data");
    pods::empty(scenario.testbed(), &scenario.namespace, member).await?;
    scenario.client.is_available().await?;
    scenario.end(begun, true).await
}

/// Two of three members have no node to run on. The hosted cluster says so, and what is the way out.
async fn two_members_are_lost(scenario: &mut Scenario<'_>) -> Result<()> {
    let mut members = scenario.pods_of(MEMBERS).await?;
    ensure!(members.len() == 3, "{members:?}");
    let written = scenario.stored().await?;
    members.pop();
    let begun = scenario.begin("two of three members of etcd are lost");
    for member in &members {
        may_be_used(scenario, &member.node, false).await?;
    }
    pods::delete(scenario.testbed(), &scenario.namespace, &members).await?;
    scenario.client.cannot_write().await?;
    wait::until("the condition that says so", WITHIN, async || {
        let cluster = scenario.cluster().seen().await?;
        let message = lacks(&cluster, "EtcdAvailable", "EtcdWaitingForQuorum")?;
        let says = message.contains("1 of 3 members are ready; 2 are required for a quorum");
        ensure!(says, "it says {message:?}");
        lacks(&cluster, "Available", "EtcdWaitingForQuorum").map(drop)
    })
    .await?;
    for member in &members {
        may_be_used(scenario, &member.node, true).await?;
    }
    scenario.end(begun, false).await?;
    wait::until("the cluster to be available", WITHIN, async || {
        let cluster = scenario.cluster().seen().await?;
        condition(&cluster, "EtcdAvailable")?;
        condition(&cluster, "Available")
    })
    .await?;
    let now = scenario.stored().await?;
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
async fn may_be_used(scenario: &Scenario<'_>, node: &str, may: bool) -> Result<()> {
    let path = format!("{}/{node}", NODES.all());
    let desired = json!({ "spec": { "unschedulable": !may } });
    scenario
        .admin()
        .patch(&path, Patch::Merge, &desired)
        .await?;
    Ok(())
}

async fn the_management_clusters_control_plane_stops(scenario: &mut Scenario<'_>) -> Result<()> {
    let begun = scenario.begin("the management cluster's control plane stops");
    let testbed = scenario.testbed_mut();
    testbed.scheduler.kill();
    testbed.control_plane.controller_manager.kill();
    testbed.control_plane.api_server.kill();
    testbed.control_plane.etcd.service.kill();
    scenario.client.is_available().await?;
    let testbed = scenario.testbed_mut();
    testbed.control_plane.start().await?;
    testbed.control_plane.controller_manager.start().await?;
    testbed.scheduler.start().await?;
    scenario.end(begun, true).await
}

/// Each node is a zone of its own.
async fn each_node_is_lost(scenario: &mut Scenario<'_>) -> Result<()> {
    let nodes = scenario.testbed().nodes.len();
    for index in 0..nodes {
        let begun = scenario.begin("a node, which is a zone, is lost");
        scenario.testbed_mut().nodes[index].lose().await?;
        wait::until("the node to be missed", WITHIN, async || {
            let seen = node(scenario, index).await?;
            ensure!(condition(&seen, "Ready").is_err(), "it is ready");
            Ok(())
        })
        .await?;
        scenario.client.is_available().await?;
        // What was on it runs elsewhere, as far as there is room.
        scenario.is_whole_on(nodes - 1).await?;
        scenario.client.is_available().await?;
        scenario.testbed_mut().nodes[index].give_back().await?;
        wait::until("the node to be back", WITHIN, async || {
            condition(&node(scenario, index).await?, "Ready")
        })
        .await?;
        scenario.end(begun, true).await?;
    }
    Ok(())
}

async fn node(scenario: &Scenario<'_>, index: usize) -> Result<Value> {
    let name = &scenario.testbed().nodes[index].name;
    let path = format!("{}/{name}", NODES.all());
    scenario.admin().get(&path).await
}
