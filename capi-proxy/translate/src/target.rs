//! A request's URL: its one canonical form, with the names swapped, and what the bodies under it hold.
//!
//! The form that decides is the form that is sent: a path that could be read in two ways is refused.

mod path;
mod query;
mod resource;

use http::Method;

use super::place::{Action, Node, Shape};
use super::{Refusal, Rules, name};
use path::Segments;
use resource::Resource;

/// Subresources with bytes of a workload, not of the API.
const STREAMS: [&str; 5] = ["attach", "exec", "log", "portforward", "proxy"];
/// Subresources that may switch protocols.
const UPGRADES: [&str; 4] = ["attach", "exec", "portforward", "proxy"];

/// What a URL requests, and the request to the API server for it.
#[derive(Debug, Clone)]
pub struct Target {
    upstream: String,
    endpoint: Endpoint,
    watch: bool,
    names_private: bool,
}

#[derive(Debug, Clone)]
enum Endpoint {
    /// `/api`, `/apis`, `/apis/<group>`, `/apis/<group>/<version>`.
    Discovery,
    /// `/openapi/v3`.
    OpenApiIndex,
    /// `/openapi/v2`.
    OpenApiV2,
    /// `/openapi/v3/...`.
    OpenApiV3,
    /// Anything below a group version.
    Resource(Resource),
    /// Everything else: health, version, metrics, logs.
    Other,
}

// === impl Target ===

impl Target {
    /// Reads the path and query of a request as a client sent them.
    ///
    /// Refuses a path without one canonical form: dot segments, empty segments, encoded slashes, NUL, `;`, `\`,
    /// doubly encoded characters.
    pub fn parse(rules: &Rules, path_and_query: &str) -> Result<Self, Refusal> {
        let (raw_path, raw_query) = match path_and_query.split_once('?') {
            Some((path, query)) => (path, Some(query)),
            None => (path_and_query, None),
        };
        let mut segments = Segments::parse(raw_path)?;
        let endpoint = Endpoint::of(&segments);
        let names_private = endpoint.swap_names(rules, &mut segments);
        let endpoint = endpoint.in_table(rules);
        let watch = endpoint.watches(raw_query);
        let upstream = match raw_query {
            None => segments.to_string(),
            Some(query) => format!("{segments}?{}", endpoint.swap_query(rules, query)),
        };
        Ok(Self {
            upstream,
            endpoint,
            watch,
            names_private,
        })
    }

    /// The path and query to send upstream.
    pub fn upstream(&self) -> &str {
        &self.upstream
    }

    /// The response is a stream of watch events.
    pub fn is_watch(&self) -> bool {
        self.watch
    }

    /// Bodies under this URL are the API's own and are translated; others pass as they are.
    pub fn is_translated(&self) -> bool {
        match &self.endpoint {
            Endpoint::Other => false,
            Endpoint::Resource(resource) => !resource.has_subresource(&STREAMS),
            Endpoint::Discovery
            | Endpoint::OpenApiIndex
            | Endpoint::OpenApiV2
            | Endpoint::OpenApiV3 => true,
        }
    }

    /// The connection may be switched to another protocol here, and nowhere else.
    pub fn is_upgrade(&self) -> bool {
        matches!(&self.endpoint, Endpoint::Resource(resource) if resource.has_subresource(&UPGRADES))
    }

    /// `/openapi/v2`, which some clients accept as protobuf only.
    pub fn is_openapi_v2(&self) -> bool {
        matches!(self.endpoint, Endpoint::OpenApiV2)
    }

    /// `/openapi/v3`, which is JSON served as `text/plain`.
    pub fn is_openapi_index(&self) -> bool {
        matches!(self.endpoint, Endpoint::OpenApiIndex)
    }

    /// The client named a group by its private name.
    pub fn names_private(&self) -> bool {
        self.names_private
    }

    /// Objects of a group of the table: custom resources, for which the API server reads no protobuf.
    pub fn is_custom(&self) -> bool {
        matches!(&self.endpoint, Endpoint::Resource(resource) if resource.in_table)
    }

    /// Validating- and MutatingWebhookConfigurations.
    pub fn is_webhook_configuration(&self) -> bool {
        matches!(&self.endpoint, Endpoint::Resource(resource) if resource.shape() == Shape::Webhooks)
    }

    /// Group and plural of the resource, with the group as the client named it.
    pub fn group_resource(&self) -> Option<(&str, &str)> {
        match &self.endpoint {
            Endpoint::Resource(resource) => Some((&resource.group, &resource.plural)),
            _ => None,
        }
    }

    /// Where a request body starts in the trie of places.
    pub fn request_root(&self) -> Node {
        match &self.endpoint {
            Endpoint::Resource(resource) => Node::Document(resource.shape()),
            _ => Node::Generic,
        }
    }

    /// Where a response's body starts in the trie of places.
    pub fn response_root(&self) -> Node {
        match &self.endpoint {
            Endpoint::Resource(resource) if self.watch => Node::WatchEvent(resource.shape()),
            Endpoint::Resource(resource) => Node::Document(resource.shape()),
            Endpoint::Discovery => Node::Discovery,
            Endpoint::OpenApiIndex => Node::OpenApiIndex,
            Endpoint::OpenApiV2 | Endpoint::OpenApiV3 => Node::OpenApi,
            Endpoint::Other => Node::Opaque,
        }
    }

    /// Where the body of a response with this status starts: an error is a document even where a watch was requested.
    pub(super) fn response_root_for(&self, status: http::StatusCode) -> Node {
        if status.is_success() {
            self.response_root()
        } else {
            Node::Document(self.shape())
        }
    }

    /// Whether `details.name` of an error is the name of a CRD or APIService; see [`Node::Status`].
    pub fn shape(&self) -> Shape {
        match &self.endpoint {
            Endpoint::Resource(resource) => resource.shape(),
            _ => Shape::Plain,
        }
    }

    /// A metric label from a bounded set: a known plural, `discovery`, `openapi`, `nonresource` or `other`.
    pub fn resource_label(&self) -> &'static str {
        match &self.endpoint {
            Endpoint::Discovery => "discovery",
            Endpoint::OpenApiIndex | Endpoint::OpenApiV2 | Endpoint::OpenApiV3 => "openapi",
            Endpoint::Other => "nonresource",
            Endpoint::Resource(resource) => resource.label(),
        }
    }

    /// The verb, as in the API server's own authorization.
    pub fn verb(&self, method: &Method) -> &'static str {
        let named = match &self.endpoint {
            Endpoint::Resource(resource) => resource.name.is_some(),
            _ => true,
        };
        match (method.as_str(), named) {
            ("GET" | "HEAD", _) if self.watch => "watch",
            ("GET" | "HEAD", true) => "get",
            ("GET" | "HEAD", false) => "list",
            ("POST", _) => "create",
            ("PUT", _) => "update",
            ("PATCH", _) => "patch",
            ("DELETE", true) => "delete",
            ("DELETE", false) => "deletecollection",
            _ => "other",
        }
    }
}

/// Swaps the names in the path of a `Location` header; a text that is no such path is given back as it is.
pub fn location(rules: &Rules, location: &str) -> String {
    let path_start = location.find("://").map_or(Some(0), |scheme| {
        location[scheme + 3..]
            .find('/')
            .map(|slash| scheme + 3 + slash)
    });
    let Some((origin, rest)) = path_start.map(|start| location.split_at(start)) else {
        return location.to_owned();
    };
    let (path, query) = rest
        .split_once('?')
        .map_or((rest, None), |(path, query)| (path, Some(query)));
    let Ok(mut segments) = Segments::parse(path) else {
        return location.to_owned();
    };
    let endpoint = Endpoint::of(&segments);
    endpoint.swap_names(rules, &mut segments);
    match (query, &endpoint) {
        (None, _) => format!("{origin}{segments}"),
        (Some(query), Endpoint::OpenApiV3) => {
            format!("{origin}{segments}?{}", query::salt_hash(rules, query))
        }
        (Some(query), _) => format!("{origin}{segments}?{query}"),
    }
}

// === impl Endpoint ===

impl Endpoint {
    fn of(segments: &Segments) -> Self {
        let parts: Vec<&str> = segments.iter().filter(|part| !part.is_empty()).collect();
        match parts.as_slice() {
            ["api" | "apis"] | ["api" | "apis", _] | ["apis", _, _] => Self::Discovery,
            ["api", _, rest @ ..] => Self::Resource(Resource::parse("", rest)),
            ["apis", group, _, rest @ ..] => Self::Resource(Resource::parse(group, rest)),
            ["openapi", "v2"] => Self::OpenApiV2,
            ["openapi", "v3"] => Self::OpenApiIndex,
            ["openapi", "v3", ..] => Self::OpenApiV3,
            _ => Self::Other,
        }
    }

    /// Swaps the group and, where it holds a group, the name; whether one of them was a private name.
    fn swap_names(&self, rules: &Rules, segments: &mut Segments) -> bool {
        let group_at = match (segments.get(0), segments.get(1), segments.get(2)) {
            (Some("apis"), Some(_), _) => Some(1),
            (Some("openapi"), Some("v3"), Some("apis")) => Some(3),
            _ => None,
        };
        let mut private = group_at.is_some_and(|at| segments.swap(rules, at, Action::Group));
        if let Self::Resource(resource) = self
            && let (Shape::Crd | Shape::ApiService, Some(name)) = (resource.shape(), &resource.name)
        {
            let at = segments.iter().rposition(|segment| segment == name);
            private |= at.is_some_and(|at| segments.swap(rules, at, Action::Qualified));
        }
        private
    }

    fn in_table(self, rules: &Rules) -> Self {
        match self {
            Self::Resource(mut resource) => {
                resource.in_table = rules.table().find(resource.group.as_bytes()).is_some();
                Self::Resource(resource)
            }
            other => other,
        }
    }

    fn watches(&self, query: Option<&str>) -> bool {
        let Self::Resource(resource) = self else {
            return false;
        };
        resource.watch_prefix || query.is_some_and(query::requests_watch)
    }

    fn swap_query(&self, rules: &Rules, query: &str) -> String {
        match self {
            Self::OpenApiV3 => query::strip_hash(rules, query),
            Self::Resource(resource) => match resource.selector_places() {
                [] => query.to_owned(),
                places => query::swap_field_selectors(query, |field, value| {
                    let action = places.iter().find(|(name, _)| *name == field)?.1;
                    name::swap(rules, action, value).map(|swapped| swapped.to_string())
                }),
            },
            _ => query.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests;
