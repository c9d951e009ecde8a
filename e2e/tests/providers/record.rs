//! The requests of a provider by method, kind and subresource, with groups under their standard names: what must be the
//! same whether it is behind the proxy or not.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use anyhow::{Result, ensure};
use api::group::{CapiTypes, GroupTable};
use testbed::audit::Event;

/// Kinds of which each object is created once and ends once, however long that takes. All other requests are repeated as
/// time passes, or as they happen to meet.
const COUNTED: [&str; 3] = ["openstackservers", "services", "virtualmachines"];

/// What a request is about.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Request(String);

/// The requests of one user.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Record {
    requests: BTreeSet<Request>,
    /// How often each counted request succeeded, for different objects if it is a deletion.
    succeeded: BTreeMap<Request, usize>,
}

// === impl Request ===

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Request {
    /// `VERB GROUP/VERSION RESOURCE[/SUBRESOURCE]`. Nothing for what is about no kind, such as discovery.
    fn of(table: &GroupTable, event: &Event) -> Option<(Self, Option<CapiTypes>)> {
        let reference = &event.object_ref;
        if reference.resource.is_empty() {
            return None;
        }
        let found = table.find(reference.api_group.as_bytes());
        let group = found.map_or(reference.api_group.as_str(), |(pair, _)| {
            pair.name(CapiTypes::Standard)
        });
        let version = version(&event.uri);
        // An Event that is repeated soon is counted in the one that is there.
        let verb = match (event.verb.as_str(), reference.resource.as_str()) {
            ("patch", "events") => "create",
            (verb, _) => verb,
        };
        let mut text = match group {
            "" => format!("{verb} {version} {}", reference.resource),
            group => format!("{verb} {group}/{version} {}", reference.resource),
        };
        if !reference.subresource.is_empty() {
            text = format!("{text}/{}", reference.subresource);
        }
        Some((Self(text), found.map(|(_, capi_types)| capi_types)))
    }
}

/// The version in a path: `/api/VERSION/...` or `/apis/GROUP/VERSION/...`.
fn version(uri: &str) -> &str {
    let path = uri.split('?').next().unwrap_or_default();
    let mut parts = path.split('/').skip(1);
    let has_group = parts.next() != Some("api");
    parts.nth(usize::from(has_group)).unwrap_or_default()
}

// === impl Record ===

impl Record {
    /// The requests of a user, who uses one set of types and may not ask for the other.
    pub(crate) fn of(events: &[Event], user: &str, capi_types: CapiTypes) -> Result<Self> {
        let table = GroupTable::default();
        let mut record = Self::default();
        let mut deleted = BTreeSet::new();
        for event in events.iter().filter(|event| event.user.username == user) {
            let Some((request, types)) = Request::of(&table, event) else {
                continue;
            };
            ensure!(
                types.is_none_or(|types| types == capi_types),
                "{user} uses {capi_types} types, and made the request {}",
                event.summary()
            );
            let reference = &event.object_ref;
            let is_counted = COUNTED.contains(&reference.resource.as_str());
            if is_counted && (200..300).contains(&event.response_status.code) {
                let is_new = match event.verb.as_str() {
                    "create" => true,
                    // A provider may delete an object again while it ends.
                    "delete" => deleted.insert((request.clone(), &reference.name)),
                    _ => false,
                };
                if is_new {
                    *record.succeeded.entry(request.clone()).or_default() += 1;
                }
            }
            record.requests.insert(request);
        }
        Ok(record)
    }

    /// The number of different requests.
    pub(crate) fn count(&self) -> usize {
        self.requests.len()
    }

    /// Fails if one of these requests was not made.
    pub(crate) fn has(&self, expected: &[&str]) -> Result<()> {
        let missing: Vec<_> = expected
            .iter()
            .filter(|text| !self.requests.contains(&Request((**text).to_owned())))
            .collect();
        ensure!(
            missing.is_empty(),
            "the provider did not request {missing:?}; it requested:\n{}",
            lines(self.requests.iter())
        );
        Ok(())
    }

    /// How often a counted request succeeded.
    pub(crate) fn succeeded(&self, request: &str) -> usize {
        let request = Request(request.to_owned());
        self.succeeded.get(&request).copied().unwrap_or_default()
    }

    /// Fails with what differs.
    pub(crate) fn equals(&self, other: &Self) -> Result<()> {
        ensure!(
            self.requests == other.requests,
            "requests differ; only the first provider made:\n{}\nonly the second:\n{}",
            lines(self.requests.difference(&other.requests)),
            lines(other.requests.difference(&self.requests))
        );
        ensure!(
            self.succeeded == other.succeeded,
            "requests were made {:?} and {:?} times",
            self.succeeded,
            other.succeeded
        );
        Ok(())
    }
}

fn lines<'a>(requests: impl Iterator<Item = &'a Request>) -> String {
    let lines: Vec<_> = requests.map(|request| format!("  {request}")).collect();
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const STANDARD: &str = "infrastructure.cluster.x-k8s.io";
    const PRIVATE: &str = "infrastructure.cluster.hypershift.openshift.io";

    fn event(verb: &str, uri: &str, reference: &Value, code: u16) -> Event {
        let event = json!({
            "verb": verb,
            "requestURI": uri,
            "user": { "username": "provider" },
            "objectRef": reference,
            "responseStatus": { "code": code },
        });
        serde_json::from_value(event).unwrap()
    }

    fn of_group(group: &str) -> Event {
        let uri = format!("/apis/{group}/v1alpha1/namespaces/a/kubevirtmachines/b/status?x=/y");
        let reference = json!({
            "apiGroup": group, "resource": "kubevirtmachines", "subresource": "status",
        });
        event("patch", &uri, &reference, 200)
    }

    fn machine(verb: &str, code: u16) -> Event {
        let reference = json!({ "apiGroup": "kubevirt.io", "resource": "virtualmachines" });
        let uri = "/apis/kubevirt.io/v1/namespaces/a/virtualmachines";
        event(verb, uri, &reference, code)
    }

    fn record(events: &[Event], capi_types: CapiTypes) -> Record {
        Record::of(events, "provider", capi_types).unwrap()
    }

    #[test]
    fn requests_are_named_by_verb_kind_and_subresource() {
        let secrets = json!({ "resource": "secrets" });
        for (event, expected) in [
            (
                of_group(STANDARD),
                "patch infrastructure.cluster.x-k8s.io/v1alpha1 kubevirtmachines/status",
            ),
            (
                event(
                    "list",
                    "/api/v1/namespaces/a/secrets?limit=5",
                    &secrets,
                    200,
                ),
                "list v1 secrets",
            ),
            (
                machine("create", 201),
                "create kubevirt.io/v1 virtualmachines",
            ),
            (
                event(
                    "patch",
                    "/api/v1/namespaces/a/events/b",
                    &json!({ "resource": "events" }),
                    200,
                ),
                "create v1 events",
            ),
        ] {
            let record = record(&[event], CapiTypes::Standard);
            record.has(&[expected]).unwrap();
            assert_eq!(record.count(), 1, "{expected}");
        }
        let discovery = event("get", "/apis", &json!({}), 200);
        assert_eq!(record(&[discovery], CapiTypes::Standard).count(), 0);
    }

    #[test]
    fn both_sets_of_types_give_the_same_record() {
        let direct = record(&[of_group(STANDARD)], CapiTypes::Standard);
        let proxied = record(&[of_group(PRIVATE)], CapiTypes::Private);
        direct.equals(&proxied).unwrap();
        assert!(Record::of(&[of_group(STANDARD)], "provider", CapiTypes::Private).is_err());
        assert!(Record::of(&[of_group(PRIVATE)], "provider", CapiTypes::Standard).is_err());
        let others = Record::of(&[of_group(PRIVATE)], "user", CapiTypes::Standard);
        assert_eq!(others.unwrap(), Record::default());
    }

    #[test]
    fn an_object_that_is_deleted_again_counts_once() {
        let delete = |name: &str| {
            let uri = format!("/apis/kubevirt.io/v1/namespaces/a/virtualmachines/{name}");
            let reference = json!({
                "apiGroup": "kubevirt.io", "resource": "virtualmachines", "name": name,
            });
            event("delete", &uri, &reference, 200)
        };
        let events = [delete("a"), delete("a"), delete("b")];
        let record = record(&events, CapiTypes::Standard);
        assert_eq!(record.succeeded("delete kubevirt.io/v1 virtualmachines"), 2);
    }

    #[test]
    fn records_differ_by_requests_and_by_counted_successes() {
        let of = |events: &[Event]| record(events, CapiTypes::Standard);
        let once = of(&[machine("create", 201)]);
        assert_eq!(once.succeeded("create kubevirt.io/v1 virtualmachines"), 1);
        for (other, is_equal) in [
            (of(&[machine("create", 201), machine("create", 409)]), true),
            (of(&[machine("create", 201), machine("create", 201)]), false),
            (of(&[machine("create", 201), machine("get", 200)]), false),
            (of(&[]), false),
        ] {
            assert_eq!(once.equals(&other).is_ok(), is_equal, "{other:?}");
        }
        let text = once.has(&["delete v1 services"]).unwrap_err().to_string();
        assert!(text.contains("delete v1 services"), "{text}");
    }
}
