//! Agents: which one a machine takes, and what is written on it. Pure.

use serde_json::{Value, json};

use crate::bootstrap::Bootstrap;
use crate::selector::Selector;

/// Label by which an Agent names the `AgentMachine` that has taken it.
pub(crate) const TAKEN_BY: &str = "agentMachineRef";
/// Annotation with that one's namespace.
const TAKEN_IN: &str = "agentMachineRefNamespace";
/// States in which a host belongs to no cluster.
const UNBOUND: [&str; 5] = [
    "discovering-unbound",
    "known-unbound",
    "disconnected-unbound",
    "insufficient-unbound",
    "unbinding-pending-user-action",
];
/// What has to be true of an Agent for its machine to be ready.
const INSTALLED: [&str; 4] = ["SpecSynced", "Validated", "RequirementsMet", "Installed"];

/// Whether a machine with this selector may take it.
pub(crate) fn is_free(agent: &Value, selector: &Selector) -> bool {
    let is = |kind: &str, status: &str| {
        condition(agent, kind).is_none_or(|found| found["status"] == status)
    };
    agent["spec"]["approved"] == true
        && agent["metadata"]["labels"][TAKEN_BY].is_null()
        && is("Bound", "False")
        && is("Validated", "True")
        && selector.matches(&agent["metadata"]["labels"])
}

/// An Agent as it is once a machine has taken it.
pub(crate) fn taken(
    agent: &Value,
    machine: &Value,
    deployment: &Value,
    user_data: &UserData<'_>,
) -> Value {
    let mut agent = agent.clone();
    let metadata = &machine["metadata"];
    agent["metadata"]["labels"][TAKEN_BY] = metadata["uid"].clone();
    agent["metadata"]["annotations"][TAKEN_IN] = metadata["namespace"].clone();
    let spec = &mut agent["spec"];
    spec["clusterDeploymentName"] = deployment.clone();
    spec["machineConfigPool"] = json!(user_data.bootstrap.pool);
    spec["ignitionEndpointTokenReference"] =
        json!({ "namespace": metadata["namespace"], "name": user_data.secret });
    spec["ignitionEndpointHTTPHeaders"] = Value::Object(user_data.bootstrap.headers.clone());
    agent
}

/// What an Agent learns of its machine's user data.
pub(crate) struct UserData<'a> {
    pub(crate) bootstrap: &'a Bootstrap,
    /// The Secret that holds the token.
    pub(crate) secret: &'a str,
}

/// An Agent as it is once it is given back, if it is not yet.
pub(crate) fn given_back(agent: &Value) -> Option<Value> {
    let is_taken = !agent["metadata"]["labels"][TAKEN_BY].is_null();
    if !is_taken && agent["spec"]["clusterDeploymentName"].is_null() {
        return None;
    }
    let mut agent = agent.clone();
    let fields = [
        ("/metadata/labels", TAKEN_BY),
        ("/metadata/annotations", TAKEN_IN),
        ("/spec", "clusterDeploymentName"),
        ("/spec", "machineConfigPool"),
        ("/spec", "ignitionEndpointTokenReference"),
        ("/spec", "ignitionEndpointHTTPHeaders"),
    ];
    for (at, field) in fields {
        let within = agent.pointer_mut(at).and_then(Value::as_object_mut);
        within.and_then(|within| within.remove(field));
    }
    Some(agent)
}

/// Whether its host has been given back.
pub(crate) fn is_unbound(agent: &Value) -> bool {
    let state = agent["status"]["debugInfo"]["state"].as_str();
    state.is_some_and(|state| UNBOUND.contains(&state))
}

/// Whether its host is installed.
pub(crate) fn is_installed(agent: &Value) -> bool {
    let is_true = |kind: &&str| condition(agent, kind).is_some_and(|one| one["status"] == "True");
    INSTALLED.iter().all(is_true)
}

/// Addresses of its host, as a machine has them.
pub(crate) fn addresses(agent: &Value) -> Value {
    let inventory = &agent["status"]["inventory"];
    let interfaces = inventory["interfaces"].as_array().into_iter().flatten();
    let addresses =
        interfaces.flat_map(|one| one["ipV4Addresses"].as_array().into_iter().flatten());
    let addresses = addresses.filter_map(|address| address.as_str()?.split('/').next());
    let mut all: Vec<Value> = addresses
        .map(|address| json!({ "type": "ExternalIP", "address": address }))
        .collect();
    let hostname = match agent["spec"]["hostname"].as_str() {
        Some(requested) if !requested.is_empty() => json!(requested),
        _ => inventory["hostname"].clone(),
    };
    all.push(json!({ "type": "InternalDNS", "address": hostname }));
    Value::Array(all)
}

fn condition<'a>(agent: &'a Value, kind: &str) -> Option<&'a Value> {
    let all = agent["status"]["conditions"].as_array()?;
    all.iter().find(|one| one["type"] == kind)
}

#[cfg(test)]
mod tests {
    use serde_json::Map;

    use super::*;

    fn agent() -> Value {
        json!({
            "metadata": { "name": "a", "labels": { "size": "large" } },
            "spec": { "approved": true, "hostname": "" },
            "status": {
                "conditions": [{ "type": "Bound", "status": "False" }, { "type": "Validated", "status": "True" }],
                "inventory": { "hostname": "a.test", "interfaces": [{ "ipV4Addresses": ["192.0.2.7/24"] }] },
                "debugInfo": { "state": "known-unbound" },
            },
        })
    }

    #[test]
    fn only_free_matching_agents_are_bound() {
        let size =
            |size: &str| Selector::parse(&json!({ "matchLabels": { "size": size } })).unwrap();
        let large = size("large");
        assert!(is_free(&agent(), &large) && is_free(&agent(), &Selector::default()));
        assert!(!is_free(&agent(), &size("small")));
        for (at, value) in [
            ("/spec/approved", json!(false)),
            (
                "/metadata/labels",
                json!({ "size": "large", TAKEN_BY: "u" }),
            ),
            ("/status/conditions/0/status", json!("True")),
            ("/status/conditions/1/status", json!("False")),
        ] {
            let mut other = agent();
            *other.pointer_mut(at).unwrap() = value;
            assert!(!is_free(&other, &large), "{at}");
        }
    }

    #[test]
    fn released_agents_are_restored() {
        let bootstrap = Bootstrap {
            pool: "ignition".to_owned(),
            token: "t".to_owned(),
            headers: Map::new(),
        };
        let user_data = UserData {
            bootstrap: &bootstrap,
            secret: "agent-user-data",
        };
        let machine = json!({ "metadata": { "namespace": "ns", "uid": "u" } });
        let deployment = json!({ "namespace": "ns", "name": "c" });
        let taken = taken(&agent(), &machine, &deployment, &user_data);
        assert_eq!(taken["metadata"]["labels"][TAKEN_BY], "u");
        assert!(!is_free(&taken, &Selector::default()));
        assert_eq!(
            taken["spec"]["ignitionEndpointTokenReference"]["name"],
            "agent-user-data"
        );
        assert!(!taken.to_string().contains("\"t\""), "the token is in it");
        let mut back = given_back(&taken).unwrap();
        assert!(given_back(&back).is_none());
        let metadata = back["metadata"].as_object_mut().unwrap();
        assert_eq!(metadata.remove("annotations"), Some(json!({})));
        assert_eq!(back, agent());
    }

    #[test]
    fn the_status_has_the_addresses_and_the_state() {
        let expected = json!([
            { "type": "ExternalIP", "address": "192.0.2.7" },
            { "type": "InternalDNS", "address": "a.test" },
        ]);
        assert_eq!(addresses(&agent()), expected);
        assert!(is_unbound(&agent()) && !is_installed(&agent()));
        let mut installed = agent();
        installed["status"] = json!({
            "conditions": INSTALLED.map(|kind| json!({ "type": kind, "status": "True" })),
            "debugInfo": { "state": "added-to-existing-cluster" },
        });
        assert!(is_installed(&installed) && !is_unbound(&installed));
    }
}
