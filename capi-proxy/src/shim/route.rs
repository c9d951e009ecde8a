//! Routes from kinds to backends. Pure.

use std::str::FromStr;

use http::Uri;
use http::uri::{Authority, Scheme};

/// The kinds that a backend converts, as on the command line: `GROUP[/KIND[*]]=https://HOST:PORT`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Route {
    group: String,
    kinds: Kinds,
    backend: Authority,
}

/// Kinds of a group.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Kinds {
    All,
    Prefix(String),
    Exact(String),
}

/// The routes and their backends.
#[derive(Debug, Clone, Default)]
pub(crate) struct Routes {
    routes: Vec<(Route, BackendId)>,
    backends: Vec<Authority>,
}

/// A backend, by its index in [`Routes::backends`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct BackendId(pub(crate) usize);

const FORM: &str = "expected GROUP=https://HOST:PORT, GROUP/KIND=https://HOST:PORT or GROUP/PREFIX*=https://HOST:PORT";

// === impl Route ===

impl FromStr for Route {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (what, url) = text.split_once('=').ok_or(FORM)?;
        let (group, kinds) = match what.split_once('/') {
            None => (what, Kinds::All),
            Some((group, kind)) => (group, Kinds::parse(kind).ok_or(FORM)?),
        };
        if group.is_empty() {
            return Err(FORM);
        }
        Ok(Self {
            group: group.to_owned(),
            kinds,
            backend: authority(url)?,
        })
    }
}

fn authority(url: &str) -> Result<Authority, &'static str> {
    let parts = url.parse::<Uri>().map_err(|_| FORM)?.into_parts();
    let is_bare = parts.path_and_query.is_none_or(|path| path == "/");
    if parts.scheme != Some(Scheme::HTTPS) || !is_bare {
        return Err(FORM);
    }
    parts
        .authority
        .filter(|authority| !authority.as_str().contains('@'))
        .ok_or(FORM)
}

impl Route {
    /// The private group.
    pub(crate) fn group(&self) -> &str {
        &self.group
    }
}

// === impl Kinds ===

impl Kinds {
    fn parse(text: &str) -> Option<Self> {
        let (name, kinds): (_, fn(String) -> Self) = match text.strip_suffix('*') {
            Some(prefix) => (prefix, Self::Prefix),
            None => (text, Self::Exact),
        };
        let is_name = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric());
        is_name.then(|| kinds(name.to_owned()))
    }

    /// How specific the match of `kind` is; none if it does not match.
    fn specificity(&self, kind: &str) -> Option<usize> {
        match self {
            Self::All => Some(0),
            Self::Prefix(prefix) => kind.starts_with(prefix).then_some(prefix.len()),
            Self::Exact(name) => (name == kind).then_some(usize::MAX),
        }
    }
}

// === impl Routes ===

impl Routes {
    pub(crate) fn new(routes: impl IntoIterator<Item = Route>) -> Self {
        let mut all = Self::default();
        for route in routes {
            let known = all.backends.iter().position(|one| *one == route.backend);
            let id = known.unwrap_or_else(|| {
                all.backends.push(route.backend.clone());
                all.backends.len() - 1
            });
            all.routes.push((route, BackendId(id)));
        }
        all
    }

    /// Where the backends are.
    pub(crate) fn backends(&self) -> &[Authority] {
        &self.backends
    }

    /// The backend for a kind of a private group.
    pub(crate) fn find(&self, group: &str, kind: &str) -> Option<BackendId> {
        self.routes
            .iter()
            .filter(|(route, _)| route.group == group)
            .filter_map(|(route, id)| Some((route.kinds.specificity(kind)?, *id)))
            .max_by_key(|(specificity, _)| *specificity)
            .map(|(_, id)| id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_specific_route_wins() {
        let routes = [
            "a.example.com=https://localhost:1",
            "b.example.com/AWS*=https://localhost:2",
            "b.example.com/AWSManaged*=https://localhost:3/",
            "b.example.com/AWSManagedCluster=https://localhost:1",
            "b.example.com=https://localhost:4",
        ];
        let routes = Routes::new(routes.map(|text| text.parse().unwrap()));
        assert_eq!(routes.backends().len(), 4);
        for (group, kind, expected) in [
            ("a.example.com", "Cluster", Some(0)),
            ("b.example.com", "AWSMachine", Some(1)),
            ("b.example.com", "AWSManagedMachinePool", Some(2)),
            ("b.example.com", "AWSManagedCluster", Some(0)),
            ("b.example.com", "GCPMachine", Some(3)),
            ("c.example.com", "Cluster", None),
        ] {
            let found = routes.find(group, kind);
            assert_eq!(found, expected.map(BackendId), "{group} {kind}");
        }
    }

    #[test]
    fn incomplete_routes_are_rejected() {
        for text in [
            "",
            "a.example.com",
            "=https://localhost:1",
            "a.example.com=",
            "a.example.com=localhost:1",
            "a.example.com=http://localhost:1",
            "a.example.com=https://u:p@localhost:1",
            "a.example.com=https://localhost:1/convert",
            "a.example.com/=https://localhost:1",
            "a.example.com/*=https://localhost:1",
            "a.example.com/A*B=https://localhost:1",
        ] {
            assert!(text.parse::<Route>().is_err(), "{text}");
        }
    }
}
