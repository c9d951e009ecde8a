//! What holds a Machine until its host has come to its end. Pure.

use serde_json::{Value, json};

/// Annotation that has Cluster API wait before it takes a Machine's infrastructure away.
const HOOK: &str = "pre-terminate.delete.hook.machine.cluster.x-k8s.io/agentmachine";
/// The condition by which older versions of the kind report that a hook is waited for.
const HOOK_SUCCEEDED: &str = "PreTerminateDeleteHookSucceeded";
/// The condition, and its reason, by which newer ones do.
const DELETING: (&str, &str) = ("Deleting", "WaitingForPreTerminateHook");

/// Whether a Machine has it.
pub(crate) fn is_set(machine: &Value) -> bool {
    machine["metadata"]["annotations"].get(HOOK).is_some()
}

/// The change that sets it.
pub(crate) fn set() -> Value {
    json!({ "metadata": { "annotations": { HOOK: "" } } })
}

/// The change that takes it away.
pub(crate) fn unset() -> Value {
    json!({ "metadata": { "annotations": { HOOK: null } } })
}

/// Whether the Machine waits for it.
pub(crate) fn is_waited_for(machine: &Value) -> bool {
    let status = &machine["status"];
    let lists = [
        &status["conditions"],
        &status["deprecated"]["v1beta1"]["conditions"],
    ];
    let mut all = lists.into_iter().filter_map(Value::as_array).flatten();
    is_set(machine)
        && all.any(|one| {
            let older = one["type"] == HOOK_SUCCEEDED && one["status"] == "False";
            older || (one["type"] == DELETING.0 && one["reason"] == DELETING.1)
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hook_is_awaited_only_where_it_is_set() {
        let newer = json!({ "conditions": [{ "type": "Deleting", "reason": "WaitingForPreTerminateHook" }] });
        let older = json!({ "deprecated": { "v1beta1": { "conditions": [
            { "type": "PreTerminateDeleteHookSucceeded", "status": "False" },
        ] } } });
        let draining = json!({ "conditions": [{ "type": "Deleting", "reason": "DrainingNode" }] });
        for (status, expected) in [(newer, true), (older, true), (draining, false)] {
            let mut machine = set();
            machine["status"] = status.clone();
            assert_eq!(is_waited_for(&machine), expected, "{status}");
            let without = json!({ "status": status });
            assert!(!is_waited_for(&without));
        }
    }
}
