//! What no migration may move: machines, the nodes that they became, and the generations of what makes machines.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Result, ensure};
use api::group::{CapiTypes, GroupTable};
use serde_json::{Value, json};
use testbed::audit::{Event, Mark};
use testbed::client::{ApiClient, Resource};
use testbed::cluster::{CONTROL_PLANES, MACHINE_DEPLOYMENTS, MACHINES};
use testbed::life::Life;
use testbed::testbed::Testbed;
use testbed::wait;

/// Objects with a generation that shows whether the desired state has changed: a rollout begins with one.
const MAKERS: [Resource<'_>; 3] = [
    MACHINE_DEPLOYMENTS,
    CONTROL_PLANES,
    Resource::new("cluster.x-k8s.io/v1beta2", "machinesets"),
];

/// Clusters, as far as they must not change.
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
    pub(crate) async fn of(
        lives: &[Life],
        testbed: &mut Testbed,
        capi_types: CapiTypes,
    ) -> Result<Self> {
        let view = testbed.view_of(capi_types).await?;
        let machines = view
            .list(&MACHINES.within(crate::migration_managers::NAMESPACE))
            .await?;
        let machines = machines.iter().map(|machine| {
            let spec = &machine["spec"];
            let state = json!([
                spec["providerID"],
                spec["version"],
                machine["status"]["phase"]
            ]);
            (name(machine), state)
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

    /// It is so, and is so all the time; no generation changes, and nothing that becomes a machine is created or deleted.
    pub(crate) async fn stays(
        &self,
        lives: &[Life],
        testbed: &mut Testbed,
        capi_types: CapiTypes,
        period: Duration,
    ) -> Result<()> {
        let step = testbed.progress.step("nothing changes");
        let mark = testbed.control_plane.audit.mark()?;
        let view = testbed.view_of(capi_types).await?;
        let generations = of_makers(&view, "/metadata/generation").await?;
        wait::throughout("the clusters", period, async || {
            let now = Self::of(lives, testbed, capi_types).await?;
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
