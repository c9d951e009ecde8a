//! What a request is about: its path and its query.

use std::collections::BTreeMap;

use http::{HeaderMap, header::ACCEPT};

use crate::failure::Failure;
use crate::groups::{Group, Kind, OAUTH, Program, Scope, VERSION};
use crate::selector::Selector;

/// What a path leads to.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Target {
    Health,
    Version,
    Groups,
    Group(&'static Group),
    Resources(&'static Group),
    TokenReviews,
    /// All objects of a kind, of one namespace unless it is empty.
    Collection {
        kind: &'static Kind,
        namespace: String,
    },
    Object {
        kind: &'static Kind,
        namespace: String,
        name: String,
        is_status: bool,
    },
}

impl PartialEq for Group {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Group {}

/// The query parameters of a list or a watch.
#[derive(Debug, Default)]
pub(crate) struct Query {
    pub(crate) selector: Selector,
    pub(crate) is_watch: bool,
    /// Where a watch begins; none for the current state.
    pub(crate) version: Option<u64>,
    pub(crate) timeout_seconds: Option<u64>,
    /// Whether objects are sent before changes.
    pub(crate) sends_initial_events: bool,
}

// === impl Target ===

impl Target {
    pub(crate) fn parse(program: Program, path: &str) -> Result<Self, Failure> {
        let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
        let group = |name: &str| program.group(name).ok_or_else(Failure::no_resource);
        match parts.as_slice() {
            ["healthz" | "livez" | "readyz", ..] => Ok(Self::Health),
            ["version"] => Ok(Self::Version),
            ["apis"] => Ok(Self::Groups),
            ["apis", name] => Ok(Self::Group(group(name)?)),
            ["apis", name, VERSION] => Ok(Self::Resources(group(name)?)),
            ["apis", OAUTH, VERSION, "tokenreviews"] if program == Program::OAuth => {
                Ok(Self::TokenReviews)
            }
            ["apis", name, VERSION, rest @ ..] => object(group(name)?, rest),
            _ => Err(Failure::no_resource()),
        }
    }
}

fn object(group: &'static Group, rest: &[&str]) -> Result<Target, Failure> {
    let (namespace, rest) = match rest {
        ["namespaces", namespace, rest @ ..] => (decoded(namespace), rest),
        rest => (String::new(), rest),
    };
    let (plural, rest) = rest.split_first().ok_or_else(Failure::no_resource)?;
    let kind = group.kinds.iter().find(|kind| kind.plural == *plural);
    let kind = kind.ok_or_else(Failure::no_resource)?;
    // A namespaced object is in a namespace; a list may be of all.
    let is_misplaced = match kind.scope {
        Scope::Cluster => !namespace.is_empty(),
        Scope::Namespaced => namespace.is_empty() && !rest.is_empty(),
    };
    match rest {
        _ if is_misplaced => Err(Failure::no_resource()),
        [] => Ok(Target::Collection { kind, namespace }),
        [name] | [name, "status"] => Ok(Target::Object {
            kind,
            namespace,
            name: decoded(name),
            is_status: rest.len() == 2,
        }),
        _ => Err(Failure::no_resource()),
    }
}

/// Undoes percent-encoding: names of users contain colons and at signs.
fn decoded(part: &str) -> String {
    // In a form, a plus sign is a space; in a path it is not.
    let part = format!("v={}", part.replace('+', "%2B").replace('&', "%26"));
    let mut pairs = form_urlencoded::parse(part.as_bytes());
    pairs
        .next()
        .map(|(_, value)| value.into_owned())
        .unwrap_or_default()
}

// === impl Query ===

impl Query {
    pub(crate) fn parse(query: &str) -> Result<Self, Failure> {
        let pairs: BTreeMap<_, _> = form_urlencoded::parse(query.as_bytes())
            .into_owned()
            .collect();
        let text = |name: &str| pairs.get(name).map(String::as_str).unwrap_or_default();
        let number = |name: &str| match text(name) {
            "" => Ok(None),
            text => text
                .parse()
                .map(Some)
                .map_err(|_| Failure::bad_request(format!("{name}: {text} is not a number"))),
        };
        let is_set = |name: &str| ["true", "1"].contains(&text(name));
        Ok(Self {
            selector: Selector::parse(text("labelSelector"), text("fieldSelector"))?,
            is_watch: is_set("watch"),
            version: number("resourceVersion")?.filter(|version| *version > 0),
            timeout_seconds: number("timeoutSeconds")?,
            sends_initial_events: is_set("sendInitialEvents"),
        })
    }
}

/// Whether the client wants only the metadata of objects.
pub(crate) fn wants_metadata(headers: &HeaderMap) -> bool {
    let accepted = headers.get(ACCEPT).and_then(|value| value.to_str().ok());
    accepted.is_some_and(|accepted| accepted.contains("as=PartialObjectMetadata"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_lead_to_discovery_collections_and_objects() {
        fn parse(program: Program, path: &str) -> Result<Target, Failure> {
            Target::parse(program, path)
        }
        let routes = &Program::OpenShift
            .group("route.openshift.io")
            .unwrap()
            .kinds[0];
        let namespace = "n".to_owned();
        let api = "/apis/route.openshift.io/v1";
        assert_eq!(
            parse(Program::OpenShift, "/readyz/etcd"),
            Ok(Target::Health)
        );
        assert_eq!(
            parse(Program::OpenShift, &format!("{api}/namespaces/n/routes")),
            Ok(Target::Collection {
                kind: routes,
                namespace: namespace.clone()
            })
        );
        assert_eq!(
            parse(Program::OpenShift, &format!("{api}/routes")),
            Ok(Target::Collection {
                kind: routes,
                namespace: String::new()
            })
        );
        assert_eq!(
            parse(
                Program::OpenShift,
                &format!("{api}/namespaces/n/routes/a%3Ab+c/status")
            ),
            Ok(Target::Object {
                kind: routes,
                namespace,
                name: "a:b+c".to_owned(),
                is_status: true,
            })
        );
        let reviews = "/apis/oauth.openshift.io/v1/tokenreviews";
        assert_eq!(parse(Program::OAuth, reviews), Ok(Target::TokenReviews));
        for path in [
            "/api/v1/pods",
            "/apis/route.openshift.io/v2",
            "/apis/route.openshift.io/v1/pods",
            "/apis/route.openshift.io/v1/routes/a",
            "/apis/image.openshift.io/v1/namespaces/n/images",
            "/apis/route.openshift.io/v1/namespaces/n/routes/a/scale",
            "/apis/route.openshift.io/v1/namespaces/n",
            reviews,
        ] {
            let failure = parse(Program::OpenShift, path).unwrap_err();
            assert_eq!(failure.code, 404, "{path}");
        }
    }

    #[test]
    fn queries_are_read() {
        let query =
            Query::parse("watch=1&resourceVersion=7&timeoutSeconds=3&labelSelector=a%3Db").unwrap();
        assert!(query.is_watch && !query.sends_initial_events);
        assert_eq!((query.version, query.timeout_seconds), (Some(7), Some(3)));
        assert_eq!(query.selector, Selector::parse("a=b", "").unwrap());
        assert_eq!(Query::parse("resourceVersion=0").unwrap().version, None);
        assert_eq!(Query::parse("resourceVersion=x").unwrap_err().code, 400);
    }
}
