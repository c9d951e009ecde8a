//! Resources of Azure Resource Manager: their IDs, and the calls that all kinds of them have in common.
//!
//! Azure answers before it has done what it is asked for, so writes wait for a while. What takes longer is waited for by the
//! next pass of a controller, which begins with what it finds.

use std::time::Duration;

use serde_json::Value;

use crate::rest::{Calls, Error, Request};

/// The version of the API of networks, and that of private DNS zones.
const NETWORK: &str = "2024-05-01";
const PRIVATE_DNS: &str = "2020-06-01";
/// How often a resource is looked at that Azure is working on, and how many times.
const POLL_INTERVAL: Duration = Duration::from_secs(5);
const POLLS: usize = 24;
/// The longest list, in pages.
const PAGES: usize = 1000;

/// A resource group, and where Azure manages it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// The URL of Azure Resource Manager.
    pub endpoint: &'static str,
    /// The subscription.
    pub subscription: String,
    /// The name of the group.
    pub name: String,
}

/// The calls.
#[derive(Debug)]
pub struct Resources<'a, C> {
    calls: &'a C,
    endpoint: &'static str,
}

/// What has become of a write.
#[derive(Debug, Clone, PartialEq)]
pub enum Written {
    /// It is done, and the resource is this.
    Done(Value),
    /// Azure is still working on it.
    Busy,
}

/// The state of a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// It is as it was written.
    Ready,
    /// Azure is working on it.
    Busy,
    /// Azure has given up.
    Failed,
}

/// Whether a name may be a part of an ID: it cannot change the meaning of a URL.
pub fn is_name(text: &str) -> bool {
    let is_plain = |it: char| it.is_ascii_alphanumeric() || "-_.()".contains(it);
    let is_dots = text.chars().all(|it| it == '.');
    !text.is_empty() && !is_dots && text.chars().all(is_plain)
}

/// Whether a text is an ID whose parts are names.
pub fn is_id(text: &str) -> bool {
    let parts = text.strip_prefix('/').map(|it| it.split('/'));
    parts.is_some_and(|mut parts| parts.all(is_name))
}

/// Whether two IDs are of the same resource: their case does not matter.
pub fn is_same(one: &str, other: &str) -> bool {
    one.eq_ignore_ascii_case(other)
}

/// The last part of an ID.
pub fn name_of(id: &str) -> &str {
    id.rsplit('/').next().unwrap_or_default()
}

/// The ID of the resource of which this one is a part: of the network of a subnet.
pub fn parent(id: &str) -> Option<&str> {
    let (rest, _) = id.rsplit_once('/')?;
    rest.rsplit_once('/').map(|(parent, _)| parent)
}

/// The state of a resource.
pub fn state(resource: &Value) -> State {
    match resource["properties"]["provisioningState"].as_str() {
        None | Some("Succeeded") => State::Ready,
        Some("Failed" | "Canceled") => State::Failed,
        Some(_) => State::Busy,
    }
}

/// The value of a tag.
pub fn tag<'a>(resource: &'a Value, name: &str) -> Option<&'a str> {
    resource["tags"][name].as_str()
}

// === impl Group ===

impl Group {
    /// The ID of a resource, whose type is like `Microsoft.Network/loadBalancers`.
    pub fn id(&self, type_: &str, name: &str) -> String {
        format!("{}/{name}", self.ids(type_))
    }

    /// What the IDs of all resources of a type begin with.
    pub fn ids(&self, type_: &str) -> String {
        let Self {
            endpoint: _,
            subscription,
            name,
        } = self;
        format!("/subscriptions/{subscription}/resourceGroups/{name}/providers/{type_}")
    }
}

// === impl Resources ===

impl<'a, C: Calls> Resources<'a, C> {
    /// The calls of resources that are managed there.
    pub fn new(calls: &'a C, endpoint: &'static str) -> Self {
        Self { calls, endpoint }
    }

    /// The resource, if it exists.
    pub async fn find(&self, id: &str) -> Result<Option<Value>, Error> {
        let request = Request::get(self.url(id));
        match self.calls.call(&request).await {
            Ok(response) => Ok(Some(response.body)),
            Err(error) if error.is_absent() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The same; one that Azure is working on is waited for.
    pub async fn find_settled(&self, id: &str) -> Result<Option<Value>, Error> {
        let mut found = self.find(id).await?;
        for _ in 0..POLLS {
            if found.as_ref().is_none_or(|it| state(it) != State::Busy) {
                break;
            }
            self.calls.pause(POLL_INTERVAL).await;
            found = self.find(id).await?;
        }
        Ok(found)
    }

    /// All resources whose IDs begin like this.
    pub async fn list(&self, ids: &str) -> Result<Vec<Value>, Error> {
        let mut request = Request::get(self.url(ids));
        let mut all = Vec::new();
        for _ in 0..PAGES {
            let mut page = self.calls.call(&request).await?.body;
            if let Value::Array(items) = page["value"].take() {
                all.extend(items);
            }
            let Some(next) = page["nextLink"].as_str().filter(|it| !it.is_empty()) else {
                return Ok(all);
            };
            // The token goes nowhere else.
            let rest = next.strip_prefix(self.endpoint);
            if !rest.is_some_and(|rest| rest.starts_with([':', '/'])) {
                return Err(unexpected(&request, "its next page is on another host"));
            }
            request = Request::get(next);
        }
        Err(unexpected(&request, "the list does not end"))
    }

    /// Creates or replaces a resource, and waits until Azure has done so.
    pub async fn put(&self, id: &str, resource: Value) -> Result<Written, Error> {
        let request = Request::put(self.url(id), resource);
        let mut made = Some(self.calls.call(&request).await?.body);
        for _ in 0..POLLS {
            // The body of a response that something has begun may be empty.
            let known = made.take().filter(|it| !it.is_null());
            match known {
                Some(known) if state(&known) == State::Ready => return Ok(Written::Done(known)),
                Some(known) if state(&known) == State::Failed => {
                    let problem = "Azure has failed to do it: its activity log has the cause";
                    return Err(unexpected(&request, problem));
                }
                Some(_) | None => {}
            }
            self.calls.pause(POLL_INTERVAL).await;
            made = self.find(id).await?;
        }
        Ok(Written::Busy)
    }

    /// Deletes a resource, and waits until it is gone. Returns whether it is.
    pub async fn delete(&self, id: &str) -> Result<bool, Error> {
        let request = Request::delete(self.url(id));
        match self.calls.call(&request).await {
            // There is nothing to wait for.
            Ok(response) if response.status == 204 => return Ok(true),
            Err(error) if error.is_absent() => return Ok(true),
            deleted => deleted.map(drop)?,
        }
        for _ in 0..POLLS {
            if self.find(id).await?.is_none() {
                return Ok(true);
            }
            self.calls.pause(POLL_INTERVAL).await;
        }
        Ok(false)
    }

    fn url(&self, id: &str) -> String {
        let version = if id.contains("/privateDnsZones") {
            PRIVATE_DNS
        } else {
            NETWORK
        };
        format!("{}{id}?api-version={version}", self.endpoint)
    }
}

fn unexpected(request: &Request, problem: &str) -> Error {
    Error::Response {
        what: request.what(),
        problem: problem.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn ids_are_made_and_taken_apart() {
        let group = Group {
            endpoint: "https://management.azure.com",
            subscription: "s".to_owned(),
            name: "g".to_owned(),
        };
        let network = group.id("Microsoft.Network/virtualNetworks", "n");
        let expected =
            "/subscriptions/s/resourceGroups/g/providers/Microsoft.Network/virtualNetworks/n";
        assert_eq!(network, expected);
        let subnet = format!("{network}/subnets/a");
        assert_eq!(parent(&subnet), Some(network.as_str()));
        assert_eq!(name_of(&subnet), "a");
        assert!(is_same(&subnet, &subnet.to_uppercase()));
        assert_eq!(parent("x"), None);
    }

    #[test]
    fn names_cannot_change_a_url() {
        for (name, expected) in [
            ("one-x_2.(a)", true),
            ("", false),
            ("..", false),
            ("a/b", false),
            ("a?b", false),
            ("a#b", false),
            ("a%2fb", false),
            ("a b", false),
        ] {
            assert_eq!(is_name(name), expected, "{name}");
            assert_eq!(
                is_id(&format!("/a/{name}")),
                expected || name == "a/b",
                "{name}"
            );
        }
        assert!(!is_id("a/b") && !is_id("/a//b"));
    }

    #[test]
    fn states_are_understood() {
        for (found, expected) in [
            (json!({}), State::Ready),
            (
                json!({"properties": {"provisioningState": "Succeeded"}}),
                State::Ready,
            ),
            (
                json!({"properties": {"provisioningState": "Updating"}}),
                State::Busy,
            ),
            (
                json!({"properties": {"provisioningState": "Failed"}}),
                State::Failed,
            ),
            (
                json!({"properties": {"provisioningState": "Canceled"}}),
                State::Failed,
            ),
        ] {
            assert_eq!(state(&found), expected, "{found}");
        }
    }
}
