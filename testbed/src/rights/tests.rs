//! Tests of the proof of permissions.

use super::*;

fn role() -> Value {
    json!({ "kind": "Role", "metadata": { "namespace": "own" }, "rules": [
        { "apiGroups": ["a.example.com"], "resources": ["*"], "verbs": ["list"] },
        { "apiGroups": [""], "resources": ["things/status"], "verbs": ["get", "patch"],
          "resourceNames": ["one"] },
    ]})
}

fn request(verb: &str, resource: &str, subresource: &str, namespace: &str, name: &str) -> Request {
    Request {
        verb: verb.to_owned(),
        group: if resource == "any" {
            "a.example.com"
        } else {
            ""
        }
        .to_owned(),
        resource: resource.to_owned(),
        subresource: subresource.to_owned(),
        namespace: namespace.to_owned(),
        name: name.to_owned(),
    }
}

#[test]
fn a_right_allows_what_its_rule_says_and_no_more() {
    let rights = rights(&[role()]).unwrap();
    assert_eq!(rights.len(), 3);
    for (asked, allowed) in [
        (request("list", "any", "", "own", ""), true),
        (request("list", "any", "", "other", ""), false),
        (request("get", "things", "status", "own", "one"), true),
        (request("get", "things", "", "own", "one"), false),
        (request("get", "things", "status", "own", "two"), false),
        (request("delete", "things", "status", "own", "one"), false),
    ] {
        let found = rights.iter().any(|right| right.allows(&asked));
        assert_eq!(found, allowed, "{asked:?}");
    }
}

#[test]
fn the_example_of_a_right_is_allowed_by_it_alone() {
    let rights = rights(&[role()]).unwrap();
    for right in &rights {
        let allowing: Vec<_> = rights
            .iter()
            .filter(|one| one.allows(&right.example()))
            .collect();
        assert_eq!(allowing, [right]);
    }
}

/// To write a role takes what it grants, unless its author may escalate it.
#[test]
fn requests_for_roles_take_further_rights() {
    for (name, verbs, resource) in [
        ("capi-provider", vec!["escalate"], "roles"),
        (
            "capi-provider-role-clusters-one",
            vec!["get", "list", "watch", "update", "patch"],
            "agents",
        ),
    ] {
        let event = json!({
            "verb": "patch",
            "requestURI": "/",
            "user": {},
            "objectRef": { "apiGroup": RBAC, "resource": "roles", "namespace": "own", "name": name },
            "responseStatus": { "code": 200 },
        });
        let event: Event = serde_json::from_value(event).unwrap();
        let mut requests = Request::all_of(&event);
        let own = requests.pop().unwrap();
        assert_eq!((own.verb.as_str(), own.name.as_str()), ("patch", name));
        let further: Vec<_> = requests.iter().map(|it| it.verb.as_str()).collect();
        assert_eq!(further, verbs, "{name}");
        let is_about_it = requests.iter().all(|it| it.resource == resource);
        assert!(is_about_it, "{name}: {requests:?}");
    }
}

#[test]
fn tests_that_rights_name_exist() {
    let mut sources = Vec::new();
    collect(
        &std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../e2e/tests"),
        &mut sources,
    );
    let named = ELSEWHERE.iter().map(|row| row.test).chain([USUAL]);
    for test in named {
        let function = format!("async fn {test}()");
        assert!(
            sources.iter().any(|text| text.contains(&function)),
            "{test}"
        );
    }
}

fn collect(directory: &std::path::Path, into: &mut Vec<String>) {
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, into);
        } else {
            into.push(std::fs::read_to_string(&path).unwrap());
        }
    }
}
