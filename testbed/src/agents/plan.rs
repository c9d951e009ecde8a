//! What the Agent service does for an Agent, and the status that it writes. Pure.

use anyhow::{Result, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

/// The state of a host that is free.
const FREE: &str = "known-unbound";
/// The state of one that is in use.
const IN_USE: &str = "added-to-existing-cluster";

/// What is to be done for an Agent.
#[derive(Debug, PartialEq)]
pub(super) enum Step<'a> {
    /// Its host is as it should be, and so is its status.
    Rest,
    /// Its host is to boot for a cluster, which has this namespace.
    Boot {
        /// The namespace.
        cluster: &'a str,
    },
    /// Its host is to end.
    End,
    /// This status is to be written.
    WriteStatus(Value),
}

/// The next step for an Agent, whose host runs or does not.
pub(super) fn step(agent: &Value, runs: bool) -> Step<'_> {
    let cluster = agent["spec"]["clusterDeploymentName"]["namespace"].as_str();
    let state = &agent["status"]["debugInfo"]["state"];
    match (cluster, runs) {
        (Some(cluster), false) => Step::Boot { cluster },
        (None, true) => Step::End,
        (Some(_), true) if state != IN_USE => Step::WriteStatus(in_use()),
        (None, false) if state != FREE => Step::WriteStatus(free()),
        _ => Step::Rest,
    }
}

/// The status of an Agent that is free.
pub(super) fn free() -> Value {
    status(FREE, "False")
}

/// The status of one whose host is in use.
fn in_use() -> Value {
    status(IN_USE, "True")
}

fn status(state: &str, is_used: &str) -> Value {
    let condition = |kind: &str, status: &str| json!({ "type": kind, "status": status });
    json!({ "status": {
        "debugInfo": { "state": state },
        "conditions": [
            condition("SpecSynced", "True"),
            condition("Validated", "True"),
            condition("RequirementsMet", "True"),
            condition("Bound", is_used),
            condition("Installed", is_used),
        ],
    } })
}

/// Fails with what is not as it is with an Agent that is free.
pub(super) fn is_free(agent: &Value) -> Result<()> {
    let (metadata, spec) = (&agent["metadata"], &agent["spec"]);
    let name = &metadata["name"];
    ensure!(
        spec["clusterDeploymentName"].is_null(),
        "{name} is bound: {spec}"
    );
    ensure!(
        metadata["labels"]["agentMachineRef"].is_null(),
        "{name} is taken: {}",
        metadata["labels"]
    );
    let state = &agent["status"]["debugInfo"]["state"];
    ensure!(state == FREE, "{name} is {state}");
    Ok(())
}

/// Where a host finds its configuration, and what it shows there.
#[derive(Clone, Copy)]
pub(super) struct Endpoint<'a> {
    pub(super) url: &'a str,
    /// What follows the address.
    pub(super) pool: &'a str,
    pub(super) headers: &'a Value,
    pub(super) token: &'a str,
    /// Who vouches for it, PEM.
    pub(super) authority: &'a [u8],
}

// === impl Endpoint ===

impl Endpoint<'_> {
    /// What a host learns of it.
    pub(super) fn user_data(&self) -> Value {
        let header = |name: &str, value: &Value| json!({ "name": name, "value": value });
        let bearer = json!(format!("Bearer {}", self.token));
        let mut headers = vec![header("Authorization", &bearer)];
        let others = self.headers.as_object().into_iter().flatten();
        headers.extend(others.map(|(name, value)| header(name, value)));
        let authority = STANDARD.encode(self.authority);
        json!({ "ignition": {
            "version": "3.2.0",
            "config": { "merge": [{
                "source": format!("{}/{}", self.url, self.pool),
                "httpHeaders": headers,
            }] },
            "security": { "tls": { "certificateAuthorities": [{
                "source": format!("data:text/plain;base64,{authority}"),
            }] } },
        } })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn agent(bound: bool, mut status: Value) -> Value {
        let cluster = if bound {
            json!({ "namespace": "ns", "name": "a" })
        } else {
            Value::Null
        };
        status["spec"] = json!({ "clusterDeploymentName": cluster });
        status
    }

    #[test]
    fn hosts_follow_their_agents() {
        for (what, agent, runs, expected) in [
            ("free", agent(false, free()), false, Step::Rest),
            (
                "bound",
                agent(true, free()),
                false,
                Step::Boot { cluster: "ns" },
            ),
            (
                "booted",
                agent(true, free()),
                true,
                Step::WriteStatus(in_use()),
            ),
            ("in use", agent(true, in_use()), true, Step::Rest),
            ("given back", agent(false, in_use()), true, Step::End),
            (
                "ended",
                agent(false, in_use()),
                false,
                Step::WriteStatus(free()),
            ),
        ] {
            assert_eq!(step(&agent, runs), expected, "{what}");
        }
    }

    #[test]
    fn bound_and_used_agents_are_not_free() {
        is_free(&agent(false, free())).unwrap();
        let mut taken = agent(false, free());
        taken["metadata"] = json!({ "labels": { "agentMachineRef": "u" } });
        for other in [agent(true, free()), agent(false, in_use()), taken] {
            assert!(is_free(&other).is_err(), "{other}");
        }
    }

    #[test]
    fn user_data_name_the_configuration_and_the_token() {
        let endpoint = Endpoint {
            url: "https://192.0.2.1:30443",
            pool: "ignition",
            headers: &json!({ "NodePool": "clusters/a" }),
            token: "dG9rZW4=",
            authority: b"ca",
        };
        let document = endpoint.user_data();
        let source = &document["ignition"]["config"]["merge"][0];
        assert_eq!(source["source"], "https://192.0.2.1:30443/ignition");
        let headers = json!([
            { "name": "Authorization", "value": "Bearer dG9rZW4=" },
            { "name": "NodePool", "value": "clusters/a" },
        ]);
        assert_eq!(source["httpHeaders"], headers);
    }
}
