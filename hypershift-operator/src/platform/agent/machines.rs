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

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use api::group::CapiTypes;
    use serde_json::Value;

    use super::*;
    use crate::facts::fixture;
    use crate::platform::tests::Case;

    /// The machine of a pool with this selector and architecture, and the name of its template.
    fn made(selector: &Value, arch: &str) -> (Value, String) {
        let platform = json!({ "type": "Agent", "agent": { "agentLabelSelector": selector } });
        let case = Case::new(fixture::hosted_cluster("agent"), &platform).with_arch(arch);
        let inputs = case.inputs(CapiTypes::Private);
        let machine = machine(&inputs);
        let name = machine.template(&inputs).name;
        (machine.spec, name)
    }

    #[test]
    fn pools_select_agents_by_labels_and_expressions() {
        let labels = json!({ "matchLabels": { "size": "large" } });
        let expressions = json!({ "matchExpressions": [
            { "key": "arch", "operator": "In", "values": ["amd64", "arm64"] },
            { "key": "reserved", "operator": "DoesNotExist" },
        ] });
        let mut both = labels.clone();
        both["matchExpressions"] = expressions["matchExpressions"].clone();
        let mut names = BTreeSet::new();
        for selector in [labels, expressions, both] {
            let (spec, name) = made(&selector, "amd64");
            assert_eq!(spec, json!({ "agentLabelSelector": selector }));
            assert!(names.insert(name), "{selector} is not in the name");
        }
        let (spec, _) = made(&Value::Null, "amd64");
        assert_eq!(spec, json!({}), "any Agent");
    }

    /// The architecture of an Agent is a label that its owner chooses, so the selector must have it.
    #[test]
    fn the_selector_alone_chooses_agents() {
        let selector = json!({ "matchLabels": { "arch": "arm64" } });
        let expected = made(&selector, "arm64");
        for arch in ["amd64", "ppc64le"] {
            assert_eq!(made(&selector, arch), expected, "{arch}");
        }
    }
}
