//! Resources of Google Cloud: of Compute Engine in one region of one project, and zones and records of Cloud DNS.
//!
//! Compute Engine answers with an operation, which is waited for, for a while. What takes longer is waited for by the next
//! pass of a controller, which begins with what it finds.

use std::time::Duration;

use form_urlencoded::byte_serialize;
use http::StatusCode;
use serde_json::{Value, json};

use crate::rest::{Calls, Error, Request, refused};

const COMPUTE: &str = "https://compute.googleapis.com/compute/v1/";
const DNS: &str = "https://dns.googleapis.com/dns/v1/";
/// How often an operation is looked at, and how many times.
const POLL_INTERVAL: Duration = Duration::from_secs(2);
const POLLS: usize = 60;
/// The longest list, in pages.
const PAGES: usize = 1000;

/// One region of one project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Region {
    /// The ID of the project.
    pub project: String,
    /// The name of the region.
    pub name: String,
}

/// Calls of Compute Engine.
#[derive(Debug)]
pub struct Compute<'a, C> {
    calls: &'a C,
    region: &'a Region,
}

/// Calls of Cloud DNS.
#[derive(Debug)]
pub struct Dns<'a, C> {
    calls: &'a C,
    project: &'a str,
}

/// Whether a name may be a part of a URL.
pub fn is_name(text: &str) -> bool {
    let is_plain = |it: char| it.is_ascii_lowercase() || it.is_ascii_digit() || it == '-';
    !text.is_empty() && text.chars().all(is_plain)
}

/// The full name in a URL of a resource: what begins with `projects/`. Hosts and versions differ.
pub fn full_name(url: &str) -> &str {
    url.find("projects/").map_or(url, |at| &url[at..])
}

/// Whether two URLs are of the same resource.
pub fn is_same(one: &str, other: &str) -> bool {
    full_name(one) == full_name(other)
}

/// The last part of a URL.
pub fn name_of(url: &str) -> &str {
    url.rsplit('/').next().unwrap_or_default()
}

// === impl Region ===

impl Region {
    /// The full name of a resource, whose kind is like `forwardingRules`.
    pub fn full_name(&self, kind: &str, name: &str) -> String {
        format!("{}/{name}", self.kind(kind))
    }

    fn kind(&self, kind: &str) -> String {
        let Self { project, name } = self;
        format!("projects/{project}/regions/{name}/{kind}")
    }
}

// === impl Compute ===

impl<'a, C: Calls> Compute<'a, C> {
    /// The calls of a region.
    pub fn new(calls: &'a C, region: &'a Region) -> Self {
        Self { calls, region }
    }

    /// The resource of this name, if it exists.
    pub async fn find(&self, kind: &str, name: &str) -> Result<Option<Value>, Error> {
        find(self.calls, &self.url(kind, name)).await
    }

    /// All resources of a kind that match a filter, if there is one. There may be others among them.
    pub async fn list(&self, kind: &str, filter: Option<&str>) -> Result<Vec<Value>, Error> {
        let url = format!("{COMPUTE}{}", self.region.kind(kind));
        let query = filter.map(|it| format!("filter={}", encoded(it)));
        list(self.calls, &url, query.as_deref(), "items").await
    }

    /// Creates a resource. Returns whether that is done.
    pub async fn insert(&self, kind: &str, resource: Value) -> Result<bool, Error> {
        let url = format!("{COMPUTE}{}", self.region.kind(kind));
        self.finish(&Request::post(url, resource)).await
    }

    /// Changes a resource. Returns whether that is done.
    pub async fn patch(&self, kind: &str, name: &str, change: Value) -> Result<bool, Error> {
        let request = Request::patch(self.url(kind, name), change);
        self.finish(&request).await
    }

    /// Deletes a resource. Returns whether it is gone.
    pub async fn delete(&self, kind: &str, name: &str) -> Result<bool, Error> {
        let request = Request::delete(self.url(kind, name));
        match self.finish(&request).await {
            Err(error) if error.is_absent() => Ok(true),
            deleted => deleted,
        }
    }

    fn url(&self, kind: &str, name: &str) -> String {
        format!("{COMPUTE}{}", self.region.full_name(kind, name))
    }

    /// Sends a write, and waits for its operation.
    async fn finish(&self, request: &Request) -> Result<bool, Error> {
        let mut operation = self.calls.call(request).await?.body;
        let name = operation["name"].as_str().unwrap_or_default().to_owned();
        for _ in 0..POLLS {
            if let Some(error) = operation_error(request, &operation) {
                return Err(error);
            }
            if operation["status"] == "DONE" {
                return Ok(true);
            }
            if !is_name(&name) {
                return Err(Error::Response {
                    what: request.what(),
                    problem: "it has no name of an operation".to_owned(),
                });
            }
            self.calls.pause(POLL_INTERVAL).await;
            let url = self.url("operations", &name);
            operation = self.calls.call(&Request::get(url)).await?.body;
        }
        Ok(false)
    }
}

/// Why an operation has failed: as if the call had been refused.
fn operation_error(request: &Request, operation: &Value) -> Option<Error> {
    let first = operation.pointer("/error/errors/0")?;
    let status = operation["httpErrorStatusCode"].as_u64();
    let status = status.and_then(|it| u16::try_from(it).ok());
    let status = status.and_then(|it| StatusCode::from_u16(it).ok());
    let status = status.unwrap_or(StatusCode::BAD_REQUEST);
    let error = json!({ "status": first["code"], "message": first["message"] });
    Some(refused(request, status, &json!({ "error": error })))
}

// === impl Dns ===

impl<'a, C: Calls> Dns<'a, C> {
    /// The calls of a project.
    pub fn new(calls: &'a C, project: &'a str) -> Self {
        Self { calls, project }
    }

    /// The zone of this name, if it exists.
    pub async fn zone(&self, name: &str) -> Result<Option<Value>, Error> {
        find(self.calls, &self.url(name)).await
    }

    /// Creates a zone.
    pub async fn create_zone(&self, zone: Value) -> Result<Value, Error> {
        let url = format!("{DNS}projects/{}/managedZones", self.project);
        let request = Request::post(url, zone);
        Ok(self.calls.call(&request).await?.body)
    }

    /// Deletes a zone, which has no records but its own.
    pub async fn delete_zone(&self, name: &str) -> Result<(), Error> {
        let request = Request::delete(self.url(name));
        match self.calls.call(&request).await {
            Err(error) if !error.is_absent() => Err(error),
            Ok(_) | Err(_) => Ok(()),
        }
    }

    /// All sets of records of a zone.
    pub async fn records(&self, zone: &str) -> Result<Vec<Value>, Error> {
        let url = format!("{}/rrsets", self.url(zone));
        list(self.calls, &url, None, "rrsets").await
    }

    /// Adds sets of records to a zone and removes others, at once.
    pub async fn change(
        &self,
        zone: &str,
        additions: &[Value],
        deletions: &[Value],
    ) -> Result<(), Error> {
        let url = format!("{}/changes", self.url(zone));
        let change = json!({ "additions": additions, "deletions": deletions });
        let request = Request::post(url, change);
        self.calls.call(&request).await.map(drop)
    }

    fn url(&self, zone: &str) -> String {
        format!("{DNS}projects/{}/managedZones/{zone}", self.project)
    }
}

async fn find(calls: &impl Calls, url: &str) -> Result<Option<Value>, Error> {
    match calls.call(&Request::get(url)).await {
        Ok(response) => Ok(Some(response.body)),
        Err(error) if error.is_absent() => Ok(None),
        Err(error) => Err(error),
    }
}

async fn list(
    calls: &impl Calls,
    url: &str,
    query: Option<&str>,
    items: &str,
) -> Result<Vec<Value>, Error> {
    let mut all = Vec::new();
    let mut token: Option<String> = None;
    for _ in 0..PAGES {
        let page = token.map(|it| format!("pageToken={}", encoded(&it)));
        let parts: Vec<_> = query.into_iter().chain(page.as_deref()).collect();
        let query = match parts.as_slice() {
            [] => String::new(),
            parts => format!("?{}", parts.join("&")),
        };
        let request = Request::get(format!("{url}{query}"));
        let mut page = calls.call(&request).await?.body;
        if let Value::Array(found) = page[items].take() {
            all.extend(found);
        }
        let next = page["nextPageToken"].as_str();
        let Some(next) = next.filter(|it| !it.is_empty()) else {
            return Ok(all);
        };
        token = Some(next.to_owned());
    }
    Err(Error::Response {
        what: format!("GET {url}"),
        problem: "the list does not end".to_owned(),
    })
}

fn encoded(text: &str) -> String {
    byte_serialize(text.as_bytes()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_of_one_resource_are_the_same() {
        let region = Region {
            project: "mine".to_owned(),
            name: "us-central1".to_owned(),
        };
        let name = region.full_name("forwardingRules", "a");
        assert_eq!(name, "projects/mine/regions/us-central1/forwardingRules/a");
        assert!(is_same(&name, &format!("{COMPUTE}{name}")));
        let other = format!("https://www.googleapis.com/compute/v1/{name}");
        assert!(is_same(&name, &other));
        assert!(!is_same(&name, &region.full_name("forwardingRules", "b")));
        assert_eq!(name_of(&other), "a");
    }

    #[test]
    fn names_cannot_change_a_url() {
        for (name, expected) in [("a-1", true), ("", false), ("a/b", false), ("a?b", false)] {
            assert_eq!(is_name(name), expected, "{name}");
        }
    }

    #[test]
    fn failed_operations_are_refusals() {
        let request = Request::post("https://compute.googleapis.com/a", json!({}));
        let operation = json!({
            "status": "DONE", "httpErrorStatusCode": 409,
            "error": { "errors": [{ "code": "RESOURCE_IN_USE", "message": "no" }] },
        });
        let error = operation_error(&request, &operation).unwrap();
        assert!(error.is_conflict());
        assert_eq!(error.code(), "RESOURCE_IN_USE");
        assert!(operation_error(&request, &json!({ "status": "DONE" })).is_none());
    }
}
