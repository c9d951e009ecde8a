//! Machines that the assisted installer's agents have found.

use serde_json::json;

use crate::node_pool::machines::{Ask, Machine};

/// The machine that a pool asks for: any agent that has its labels.
pub(crate) fn machine(ask: &Ask<'_>) -> Machine {
    let agent = ask.pool.spec.platform.agent.clone().unwrap_or_default();
    let selector = agent.agent_label_selector;
    Machine {
        template: ask.capi.agent_machine_template(),
        made: ask.capi.agent_machine(),
        spec: selector.map_or(json!({}), |it| json!({ "agentLabelSelector": it })),
        live: &[],
        notes: Vec::new(),
    }
}
