//! Deployments that change all the time, and nodes that pools request.

use std::collections::BTreeSet;

use crate::{Finding, Invariant, Observed, items, text};

/// How often a Deployment may change in the life of a test's cluster.
const MOST_GENERATIONS: u64 = 10;

pub(crate) fn generations(observed: &Observed) -> Vec<Finding> {
    let found = observed.of_kind("Deployment").filter_map(|deployment| {
        let generation = deployment["metadata"]["generation"].as_u64()?;
        (generation > MOST_GENERATIONS).then(|| {
            let name = text(&deployment["metadata"]["name"]);
            let problem = format!("its generation is {generation}, above {MOST_GENERATIONS}");
            Finding::new(
                Invariant::Generations,
                format!("Deployment {name}"),
                problem,
            )
        })
    });
    found.collect()
}

/// Pools without autoscaling have as many nodes as they request.
pub(crate) fn nodes(observed: &Observed) -> Vec<Finding> {
    let Some(guest) = observed.guest.as_ref().filter(|_| observed.has_settled) else {
        return Vec::new();
    };
    let scales = |pool: &&serde_json::Value| !pool["spec"]["autoScaling"].is_null();
    if observed.node_pools.iter().any(|pool| scales(&pool)) {
        return Vec::new();
    }
    let requested = observed.node_pools.iter();
    let requested: u64 = requested
        .filter_map(|pool| pool["spec"]["replicas"].as_u64())
        .sum();
    let ready = guest.nodes.iter().filter(|node| {
        let conditions = items(&node["status"]["conditions"]);
        conditions
            .iter()
            .any(|it| it["type"] == "Ready" && it["status"] == "True")
    });
    let ready = ready.count();
    let names = guest
        .nodes
        .iter()
        .map(|node| text(&node["metadata"]["name"]));
    let names: BTreeSet<_> = names.collect();
    if u64::try_from(ready).is_ok_and(|ready| ready == requested) && names.len() == ready {
        return Vec::new();
    }
    let problem = format!(
        "{ready} of {} nodes are ready, and {requested} are requested",
        names.len()
    );
    vec![Finding::new(Invariant::Nodes, "hosted cluster", problem)]
}
