//! Watches: the changes of the objects that a client has selected, as a stream of lines.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::Stream;
use hyper::body::Frame;
use serde_json::{Value, json};
use tokio::sync::watch::Receiver;
use tokio::time::Instant;

use crate::failure::Failure;
use crate::groups::Kind;
use crate::request::Query;
use crate::selector::Selector;
use crate::server::Shared;
use crate::store::Change;
use crate::view::View;

/// As long as the real servers let a watch live at least, unless the client wants it shorter.
const LONGEST: Duration = Duration::from_mins(30);

/// A watch.
pub(crate) struct Watch {
    shared: Arc<Shared>,
    filter: Filter,
    /// The version of the last change that was sent.
    position: u64,
    changed: Receiver<u64>,
    ends_at: Instant,
    pending: VecDeque<Value>,
    is_ended: bool,
}

/// Which changes are sent, and how.
#[derive(Debug, Clone)]
struct Filter {
    kind: &'static Kind,
    namespace: String,
    selector: Selector,
    view: View,
}

// === impl Watch ===

impl Watch {
    /// Starts a watch; without a version, all objects are sent first.
    pub(crate) fn new(
        shared: &Arc<Shared>,
        kind: &'static Kind,
        namespace: &str,
        query: Query,
        view: View,
    ) -> Result<Self, Failure> {
        if query.sends_initial_events {
            // Clients list then.
            return Err(Failure::invalid(
                "sendInitialEvents: Forbidden: sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled",
            ));
        }
        let changed = shared.changes();
        let filter = Filter {
            kind,
            namespace: namespace.to_owned(),
            selector: query.selector,
            view,
        };
        let store = shared.store();
        let (position, pending) = if let Some(version) = query.version {
            (version, VecDeque::new())
        } else {
            let objects = store.list(kind, namespace, &filter.selector);
            let added = objects.iter().map(|it| filter.event("ADDED", it));
            (store.version(), added.collect())
        };
        drop(store);
        let requested = query.timeout_seconds.map(Duration::from_secs);
        Ok(Self {
            shared: Arc::clone(shared),
            filter,
            position,
            changed,
            ends_at: Instant::now() + requested.unwrap_or(LONGEST).min(LONGEST),
            pending,
            is_ended: false,
        })
    }

    /// One line for each event.
    pub(crate) fn lines(self) -> impl Stream<Item = Result<Frame<Bytes>, Infallible>> {
        futures::stream::unfold(self, |mut watch| async move {
            let event = watch.next().await?;
            let line = Bytes::from(format!("{event}\n"));
            Some((Ok(Frame::data(line)), watch))
        })
    }

    /// The next event, until the time is over or changes are lost.
    pub(crate) async fn next(&mut self) -> Option<Value> {
        loop {
            if let Some(event) = self.pending.pop_front() {
                return Some(event);
            }
            if self.is_ended {
                return None;
            }
            self.changed.borrow_and_update();
            self.read();
            if !self.pending.is_empty() {
                continue;
            }
            let changed = tokio::time::timeout_at(self.ends_at, self.changed.changed()).await;
            if !matches!(changed, Ok(Ok(()))) {
                return None;
            }
        }
    }

    fn read(&mut self) {
        let store = self.shared.store();
        match store.changes_after(self.position) {
            Ok(changes) => {
                self.position = store.version().max(self.position);
                let events = changes.iter().filter_map(|it| self.filter.change(it));
                self.pending.extend(events);
            }
            Err(failure) => {
                self.is_ended = true;
                self.pending
                    .push_back(json!({ "type": "ERROR", "object": failure.status() }));
            }
        }
    }
}

// === impl Filter ===

impl Filter {
    /// The event for the client: an object that is no longer selected is deleted for it.
    fn change(&self, change: &Change) -> Option<Value> {
        let Change {
            kind,
            before,
            after,
            version,
        } = change;
        if *kind != self.kind {
            return None;
        }
        let selected = |object: &Option<Arc<Value>>| {
            let found = object.as_ref().filter(|it| self.selects(it));
            found.map(Arc::clone)
        };
        match (selected(before), selected(after)) {
            (None, None) => None,
            (None, Some(object)) => Some(self.event("ADDED", &object)),
            (Some(_), Some(object)) => Some(self.event("MODIFIED", &object)),
            (Some(object), None) => {
                let mut object = (*object).clone();
                object["metadata"]["resourceVersion"] = json!(version.to_string());
                Some(self.event("DELETED", &object))
            }
        }
    }

    fn selects(&self, object: &Value) -> bool {
        let is_here =
            self.namespace.is_empty() || object["metadata"]["namespace"] == self.namespace.as_str();
        is_here && self.selector.matches(object)
    }

    fn event(&self, type_: &str, object: &Value) -> Value {
        json!({ "type": type_, "object": self.view.object(object) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::groups::Program;
    use crate::store::{Place, Preconditions, Stamp};

    fn routes() -> &'static Kind {
        &Program::OpenShift
            .group("route.openshift.io")
            .unwrap()
            .kinds[0]
    }

    fn create(shared: &Shared, name: &str, namespace: &str, app: &str) {
        let object = json!({
            "apiVersion": "route.openshift.io/v1", "kind": "Route",
            "metadata": { "name": name, "labels": { "app": app } },
        });
        let stamp = Stamp {
            time: String::new(),
            uid: name.to_owned(),
        };
        shared
            .write(|store| store.create(routes(), namespace, object, &stamp))
            .unwrap();
    }

    fn label(shared: &Shared, name: &str, app: &str) {
        let place = Place::new(routes(), "ns", name);
        let patch = json!({ "metadata": { "labels": { "app": app } } });
        shared.write(|store| store.patch(&place, &patch)).unwrap();
    }

    fn delete(shared: &Shared, name: &str) {
        let place = Place::new(routes(), "ns", name);
        let stamp = Stamp {
            time: String::new(),
            uid: String::new(),
        };
        shared
            .write(|store| store.delete(&place, &Preconditions::default(), &stamp))
            .unwrap();
    }

    fn start(shared: &Arc<Shared>, query: &str) -> Watch {
        let query = Query::parse(query).unwrap();
        Watch::new(shared, routes(), "ns", query, View::Whole).unwrap()
    }

    async fn seen(watch: &mut Watch) -> Vec<String> {
        let mut seen = Vec::new();
        while let Some(event) = watch.next().await {
            let name = event["object"]["metadata"]["name"].as_str().unwrap_or("-");
            seen.push(format!("{} {name}", event["type"].as_str().unwrap()));
        }
        seen
    }

    #[tokio::test(start_paused = true)]
    async fn events_are_those_of_selected_objects() {
        let shared = Arc::new(Shared::new(10));
        create(&shared, "a", "ns", "x");
        create(&shared, "elsewhere", "other", "x");
        let mut all = start(&shared, "watch=1&timeoutSeconds=5");
        let mut some = start(
            &shared,
            "watch=1&timeoutSeconds=5&resourceVersion=10&labelSelector=app%3Dx",
        );
        let changes = async {
            create(&shared, "b", "ns", "y");
            label(&shared, "b", "x");
            label(&shared, "a", "y");
            delete(&shared, "b");
        };
        let ((), all, some) = tokio::join!(changes, seen(&mut all), seen(&mut some));
        assert_eq!(
            all,
            [
                "ADDED a",
                "ADDED b",
                "MODIFIED b",
                "MODIFIED a",
                "DELETED b"
            ]
        );
        assert_eq!(some, ["ADDED a", "ADDED b", "DELETED a", "DELETED b"]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_watch_from_a_lost_version_ends_with_an_error() {
        let shared = Arc::new(Shared::new(10));
        let mut watch = start(&shared, "watch=1&resourceVersion=3");
        let event = watch.next().await.unwrap();
        assert_eq!(
            (&event["type"], &event["object"]["code"]),
            (&json!("ERROR"), &json!(410))
        );
        assert_eq!(watch.next().await, None);
    }

    #[test]
    fn streaming_lists_are_refused_as_by_the_real_servers() {
        let shared = Arc::new(Shared::new(10));
        let query = Query::parse("watch=1&sendInitialEvents=true").unwrap();
        let refused = Watch::new(&shared, routes(), "", query, View::Whole)
            .err()
            .unwrap();
        assert_eq!(refused.code, 422);
    }
}
