//! The operators' roles are minimal: what is granted is used, and what is used is granted.
//!
//! A right that has been used is one that something needs: taking it away is a refusal in the audit log.

use std::collections::BTreeSet;

use anyhow::{Context, Result, ensure};
use e2e::audit::Event;
use e2e::operator::Identity;
use e2e::testbed::Testbed;
use serde_json::Value;

/// All resources of a group.
const ANY: &str = "*";
/// How the groups begin that have no namespaced kind today, and may get one any day.
const AHEAD: &str = "runtime.";

/// Counts an Event that is there already; what must be told twice is not in every run.
const REPEATED: (&str, &str) = ("patch", "events");

/// Verb, group, and resource with its subresource.
type Right = (String, String, String);

/// Judges what an operator has done since the API server's start.
pub(crate) fn judge(testbed: &Testbed, identity: &Identity) -> Result<()> {
    let name = identity.username();
    let events = testbed.control_plane.audit.all()?;
    let own: Vec<&Event> = events
        .iter()
        .filter(|event| event.user.username == name)
        .collect();
    let refused: Vec<String> = own
        .iter()
        .filter(|event| event.response_status.code == 403)
        .map(|event| event.summary())
        .collect();
    ensure!(refused.is_empty(), "{name} lacks rights: {refused:#?}");
    let granted = granted(&identity.operator.role_objects()?)?;
    let used: BTreeSet<Right> = own.iter().filter_map(|event| right(event)).collect();
    let idle: Vec<&Right> = granted
        .iter()
        .filter(|right| !is_used(right, &used))
        .collect();
    ensure!(
        idle.is_empty(),
        "{name} has rights that nothing uses: {idle:#?}"
    );
    Ok(())
}

fn granted(roles: &[Value]) -> Result<BTreeSet<Right>> {
    let mut rights = BTreeSet::new();
    for role in roles {
        let list = role["rules"].as_array();
        for rule in list.context("a role without rules")? {
            for group in texts(&rule["apiGroups"]) {
                for resource in texts(&rule["resources"]) {
                    let verbs = texts(&rule["verbs"]);
                    rights.extend(
                        verbs.map(|verb| (verb.to_owned(), group.to_owned(), resource.to_owned())),
                    );
                }
            }
        }
    }
    Ok(rights)
}

fn texts(list: &Value) -> impl Iterator<Item = &str> + Clone {
    list.as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
}

/// Nothing for what everybody may read, such as discovery.
fn right(event: &Event) -> Option<Right> {
    let object = &event.object_ref;
    if object.resource.is_empty() {
        return None;
    }
    let resource = match object.subresource.as_str() {
        "" => object.resource.clone(),
        subresource => format!("{}/{subresource}", object.resource),
    };
    Some((event.verb.clone(), object.api_group.clone(), resource))
}

fn is_used(granted: &Right, used: &BTreeSet<Right>) -> bool {
    let (verb, group, resource) = granted;
    if group.starts_with(AHEAD) || (verb.as_str(), resource.as_str()) == REPEATED {
        return true;
    }
    used.iter()
        .any(|(by, of, what)| by == verb && of == group && (resource == ANY || what == resource))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_right_that_nothing_uses_is_found() {
        let role = json!({"rules": [
            {"apiGroups": ["a.example.com"], "resources": ["*"], "verbs": ["list"]},
            {"apiGroups": [""], "resources": ["things/status"], "verbs": ["get", "patch"]},
        ]});
        let granted = granted(&[role]).unwrap();
        let right = |verb: &str, group: &str, resource: &str| {
            (verb.to_owned(), group.to_owned(), resource.to_owned())
        };
        let used = BTreeSet::from([
            right("list", "a.example.com", "any"),
            right("patch", "", "things/status"),
            right("get", "", "things"),
        ]);
        let idle: Vec<&Right> = granted
            .iter()
            .filter(|right| !is_used(right, &used))
            .collect();
        assert_eq!(idle, [&right("get", "", "things/status")]);
    }
}
