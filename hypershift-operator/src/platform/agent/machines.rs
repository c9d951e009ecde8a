//! Machines that the assisted installer's agents have found.

use serde_json::json;

use crate::platform::machines::{Inputs, Machine};

/// The machine of a pool: any agent that matches its labels.
pub(crate) fn machine(inputs: &Inputs<'_>) -> Machine {
    let agent = inputs.pool.spec.platform.agent.clone().unwrap_or_default();
    let selector = agent.agent_label_selector;
    Machine {
        template: inputs.capi.agent_machine_template(),
        made: inputs.capi.agent_machine(),
        spec: selector.map_or(json!({}), |it| json!({ "agentLabelSelector": it })),
        live: &[],
        notes: Vec::new(),
    }
}
