//! What no migration may move: machines, the nodes that they became, and the generations of what makes machines.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Result, ensure};
use api::group::{GroupTable, Side};
use e2e::audit::{Event, Mark};
use e2e::client::{ApiClient, Resource};
use e2e::cluster::{CONTROL_PLANES, MACHINE_DEPLOYMENTS, MACHINES};
use e2e::life::Life;
use e2e::testbed::Testbed;
use e2e::wait;
use serde_json::{Value, json};

/// Those whose generation says whether somebody wants something else: a rollout begins with one.
const MAKERS: [Resource<'_>; 3] = [
    MACHINE_DEPLOYMENTS,
    CONTROL_PLANES,
    Resource::new("cluster.x-k8s.io/v1beta2", "machinesets"),
];

/// Clusters, as far as nobody may touch them.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Likeness {
    /// Provider's id, version and phase of each machine.
    machines: BTreeMap<String, Value>,
    /// UID of each node.
    nodes: BTreeMap<String, String>,
    /// Spec of whatever makes machines, under standard names.
    makers: BTreeMap<String, Value>,
}

impl Likeness {
    /// Takes it.
    pub(crate) async fn of(lives: &[Life], testbed: &mut Testbed, side: Side) -> Result<Self> {
        let view = testbed.view_of(side).await?;
        let machines = view
            .list(&MACHINES.within(crate::migration_managers::NAMESPACE))
            .await?;
        let machines = machines.iter().map(|machine| {
            let spec = &machine["spec"];
            let told = json!([
                spec["providerID"],
                spec["version"],
                machine["status"]["phase"]
            ]);
            (name(machine), told)
        });
        let makers = of_makers(&view, "/spec").await?;
        let mut nodes = BTreeMap::new();
        for life in lives {
            nodes.extend(life.nodes().await?);
        }
        Ok(Self {
            machines: machines.collect(),
            nodes,
            makers,
        })
    }

    /// It is so, and is so all the time; no generation changes, and nobody makes or deletes what becomes a machine.
    pub(crate) async fn stays(
        &self,
        lives: &[Life],
        testbed: &mut Testbed,
        side: Side,
        period: Duration,
    ) -> Result<()> {
        let step = testbed.progress.step("nobody notices");
        let mark = testbed.control_plane.audit.mark()?;
        let view = testbed.view_of(side).await?;
        let generations = of_makers(&view, "/metadata/generation").await?;
        wait::throughout("the clusters", period, async || {
            let now = Self::of(lives, testbed, side).await?;
            ensure!(now == *self, "was\n{self:#?}\nand is\n{now:#?}");
            Ok(())
        })
        .await?;
        let now = of_makers(&view, "/metadata/generation").await?;
        ensure!(now == generations, "m20b: {generations:?} became {now:?}");
        let made = made(testbed, mark)?;
        ensure!(made.is_empty(), "m20b: {made:?}");
        step.done_with(&format!(
            "{} machines and {} nodes for {} s",
            self.machines.len(),
            self.nodes.len(),
            period.as_secs()
        ));
        Ok(())
    }
}

/// A part of whatever makes machines.
async fn of_makers(view: &ApiClient, pointer: &str) -> Result<BTreeMap<String, Value>> {
    let mut all = BTreeMap::new();
    for resource in &MAKERS {
        for maker in view
            .list(&resource.within(crate::migration_managers::NAMESPACE))
            .await?
        {
            let part = maker.pointer(pointer).cloned().unwrap_or_default();
            all.insert(format!("{} {}", maker["kind"], name(&maker)), part);
        }
    }
    Ok(all)
}

/// Objects of either side that were made or deleted.
fn made(testbed: &Testbed, mark: Mark) -> Result<Vec<String>> {
    let table = GroupTable::default();
    let concerns = |event: &Event| {
        let object = &event.object_ref;
        object.namespace == crate::migration_managers::NAMESPACE
            && object.subresource.is_empty()
            && table.find(object.api_group.as_bytes()).is_some()
            && ["create", "delete", "deletecollection"].contains(&event.verb.as_str())
    };
    let events = testbed.control_plane.audit.since(mark)?;
    let made = events.iter().filter(|event| concerns(event));
    Ok(made.map(Event::summary).collect())
}

fn name(object: &Value) -> String {
    let name = object["metadata"]["name"].as_str();
    name.unwrap_or_default().to_owned()
}
