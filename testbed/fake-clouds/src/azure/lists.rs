//! Lists, in pages of two.

use serde_json::{Value, json};
use support::rest::Request;

use super::path::{AUTHORIZATION, Path};
use super::{Azure, GRAPH};
use crate::Answer;

const PAGE: usize = 2;

impl Azure {
    pub(super) fn list(&self, path: &Path, request: &Request) -> Answer {
        if path
            .group
            .as_ref()
            .is_some_and(|it| !self.resources.contains_key(it))
        {
            return self.absent(path);
        }
        let filter = request.parameter("$filter").unwrap_or_default();
        let last = path.key.rsplit('/').next().unwrap_or_default();
        let items: Vec<Value> = match last {
            "resourcegroups" => self.groups(&filter),
            "resources" => self.resources_of(&path.key),
            "roledefinitions" => self.definitions(&filter),
            "roleassignments" => self.assignments(&filter),
            _ => self.of_kind(path),
        };
        page(request, &items)
    }

    fn groups(&self, filter: &str) -> Vec<Value> {
        let quoted: Vec<&str> = filter.split('\'').collect();
        let is_group = |(key, _): &(&String, &Value)| key.split('/').count() == 5;
        let groups = self.resources.iter().filter(is_group);
        let tagged = groups.filter(|(_, body)| match quoted.as_slice() {
            [_, name, _, value, _] => body["tags"][*name] == *value,
            _ => true,
        });
        tagged.map(|(_, body)| body.clone()).collect()
    }

    /// Resources of a group that have tags, as Azure lists them.
    fn resources_of(&self, key: &str) -> Vec<Value> {
        let group = key.trim_end_matches("/resources");
        let tracked = self.within(group).filter(|(key, _)| {
            let kind = Path::new(key).kind;
            !kind.starts_with(AUTHORIZATION) && !kind.ends_with("federatedidentitycredentials")
        });
        let item = |body: &Value| json!({ "id": body["id"], "name": body["name"], "type": body["type"], "tags": body["tags"] });
        tracked.map(|(_, body)| item(body)).collect()
    }

    /// Those of a type in a subscription, a group, or another resource.
    fn of_kind(&self, path: &Path) -> Vec<Value> {
        let above = path.key.split("/providers/").next().unwrap_or_default();
        let above = path.parent.as_deref().unwrap_or(above);
        let found = self.within(above);
        let found = found.filter(|(key, _)| Path::new(key).kind == path.kind);
        found.map(|(_, body)| body.clone()).collect()
    }

    pub(super) fn graph(&self, request: &Request) -> Answer {
        if request.path() != "/v1.0/servicePrincipals" {
            return Answer::refused(404, "Request_ResourceNotFound", GRAPH);
        }
        let filter = request.parameter("$filter").unwrap_or_default();
        let client = filter.split('\'').nth(1).unwrap_or_default();
        let found = self.principals.get(client).filter(|it| it.age > 0);
        let found = found.map(|it| json!({ "id": it.object, "appId": client }));
        let found: Vec<Value> = found.into_iter().collect();
        Answer::ok(json!({ "value": found }))
    }
}

fn page(request: &Request, items: &[Value]) -> Answer {
    let skip = request.parameter("$skiptoken");
    let from = skip.and_then(|it| it.parse().ok()).unwrap_or(0);
    let rest = items.get(from..).unwrap_or_default();
    let mut body = json!({ "value": rest.iter().take(PAGE).collect::<Vec<_>>() });
    if rest.len() > PAGE {
        let url = request.url.split("&$skiptoken").next().unwrap_or_default();
        body["nextLink"] = json!(format!("{url}&$skiptoken={}", from + PAGE));
    }
    Answer::ok(body)
}
