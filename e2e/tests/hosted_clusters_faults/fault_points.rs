//! Decides at which write an operator is killed, and holds the write until it is.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use http::Method;
use http::request::Parts;
use testbed::relay::{Disposition, Moment};

use crate::hosted_clusters_faults::choice::Choice;

/// Which operator is killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Who {
    /// hypershift-operator.
    Hypershift,
    /// control-plane-operator.
    ControlPlane,
}

/// When.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Point {
    /// The API server has not seen the write.
    Before,
    /// The API server has done the write, and its writer does not know it.
    After,
}

/// A death.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Death {
    /// The stage of the cluster.
    pub(crate) stage: &'static str,
    pub(crate) who: Who,
    /// The write, by method and path.
    pub(crate) write: String,
    pub(crate) point: Point,
}

/// By what crashes are distinguished.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Grain {
    /// Each object is another one.
    Object,
    /// All objects of a kind are one.
    Kind,
}

/// What the relays and the test share.
#[derive(Debug)]
pub(crate) struct FaultPoints {
    choice: Choice,
    grain: Grain,
    stage: &'static str,
    died: BTreeSet<Death>,
    /// All that could have been died of.
    seen: BTreeSet<Death>,
    /// The operator to kill; none of its other writes are forwarded.
    doomed: Option<Who>,
    held: Option<Death>,
    last: Instant,
}

/// Fault points, shared by the relays and the test.
#[derive(Debug, Clone)]
pub(crate) struct Shared(Arc<Mutex<FaultPoints>>);

// === impl Shared ===

impl Shared {
    pub(crate) fn new() -> Self {
        Self(Arc::new(Mutex::new(FaultPoints {
            choice: Choice::NONE,
            grain: Grain::Object,
            stage: "",
            died: BTreeSet::new(),
            seen: BTreeSet::new(),
            doomed: None,
            held: None,
            last: Instant::now(),
        })))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, FaultPoints> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl FaultPoints ===

impl FaultPoints {
    /// From now on, these are died, less those that have been.
    pub(crate) fn set(&mut self, choice: Choice, grain: Grain, died: BTreeSet<Death>) {
        (self.choice, self.grain, self.died) = (choice, grain, died);
        self.seen.clear();
        (self.doomed, self.held) = (None, None);
    }

    /// No operator is killed any more, for now.
    pub(crate) fn rests(&mut self) {
        self.choice = Choice::NONE;
        (self.doomed, self.held) = (None, None);
    }

    /// Deaths of this stage are others than those of the last.
    pub(crate) fn enters(&mut self, stage: &'static str) {
        self.stage = stage;
    }

    /// The crash that an operator is held for.
    pub(crate) fn held(&self) -> Option<Death> {
        self.held.clone()
    }

    /// It has been killed.
    pub(crate) fn buries(&mut self, death: Death) {
        self.died.insert(death);
        (self.doomed, self.held) = (None, None);
        self.last = Instant::now();
    }

    pub(crate) fn died(&self) -> &BTreeSet<Death> {
        &self.died
    }

    /// The deaths that there are, died or not.
    pub(crate) fn possible(&self) -> &BTreeSet<Death> {
        &self.seen
    }

    /// When something was last written.
    pub(crate) fn last_write(&self) -> Instant {
        self.last
    }

    /// What becomes of a request.
    pub(crate) fn intercept(&mut self, who: Who, request: &Parts, moment: Moment) -> Disposition {
        let Some(write) = named(request, self.grain) else {
            return Disposition::Pass;
        };
        self.last = Instant::now();
        match (moment, self.doomed) {
            (Moment::Arrived, Some(doomed)) if doomed == who => Disposition::Hold,
            (Moment::Arrived, None) if self.is_due(who, &write, Point::Before) => {
                self.holds(who, write, Point::Before)
            }
            (Moment::Arrived, None) if self.is_due(who, &write, Point::After) => {
                self.doomed = Some(who);
                Disposition::Pass
            }
            (Moment::Responded(status), Some(doomed)) if doomed == who => {
                let due = self.is_due(who, &write, Point::After);
                if self.held.is_none() && due && status.is_success() {
                    return self.holds(who, write, Point::After);
                }
                // It was refused: another client had written.
                self.doomed = self.held.as_ref().map(|held| held.who);
                Disposition::Pass
            }
            _ => Disposition::Pass,
        }
    }

    fn is_due(&mut self, who: Who, write: &str, point: Point) -> bool {
        let stage = self.stage;
        let death = Death {
            stage,
            who,
            write: write.to_owned(),
            point,
        };
        let due = self.choice.takes(&death) && !self.died.contains(&death);
        self.seen.insert(death);
        due
    }

    fn holds(&mut self, who: Who, write: String, point: Point) -> Disposition {
        self.doomed = Some(who);
        let stage = self.stage;
        self.held = Some(Death {
            stage,
            who,
            write,
            point,
        });
        Disposition::Hold
    }
}

// === impl Death ===

impl Death {
    /// Whether it is at a write of a component's workload, by any operator.
    pub(crate) fn is_workload_of(&self, component: &str) -> bool {
        WORKLOADS.iter().any(|plural| {
            let end = format!("/{plural}/{component}");
            self.write.ends_with(&end)
        })
    }
}

impl fmt::Display for Death {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            stage,
            who,
            write,
            point,
        } = self;
        write!(f, "{who:?} {point:?} {write} ({stage})")
    }
}

/// The kinds of workloads.
const WORKLOADS: [&str; 4] = ["cronjobs", "deployments", "jobs", "statefulsets"];

/// A write that is work. Leases are renewed continuously, and Events are informational.
fn named(request: &Parts, grain: Grain) -> Option<String> {
    let path = request.uri.path();
    let reads = request.method == Method::GET;
    let idle = ["/leases", "/events", "authorization.k8s.io/v1/self"];
    if reads || idle.iter().any(|part| path.contains(part)) {
        return None;
    }
    let path = match grain {
        Grain::Object => path.to_owned(),
        Grain::Kind => kind_of(path).to_owned(),
    };
    Some(format!("{} {path}", request.method))
}

/// The plural in a path.
fn kind_of(path: &str) -> &str {
    let mut parts = path.split('/').skip(1).peekable();
    let group = if parts.next() == Some("api") { 1 } else { 2 };
    let rest: Vec<_> = parts.skip(group).collect();
    match rest.as_slice() {
        ["namespaces", _, plural, ..] | [plural, ..] => plural,
        [] => path,
    }
}

#[test]
fn kinds_are_found_in_paths() {
    for (path, kind) in [
        ("/api/v1/namespaces/a/secrets/b", "secrets"),
        ("/api/v1/namespaces/a", "namespaces"),
        (
            "/apis/apps/v1/namespaces/a/deployments/b/status",
            "deployments",
        ),
        (
            "/apis/rbac.authorization.k8s.io/v1/clusterroles/b",
            "clusterroles",
        ),
    ] {
        assert_eq!(kind_of(path), kind, "{path}");
    }
}

#[test]
fn workloads_are_found_by_component() {
    let death = |write: &str| Death {
        stage: "create",
        who: Who::ControlPlane,
        write: write.to_owned(),
        point: Point::Before,
    };
    let path = "/apis/apps/v1/namespaces/a/deployments/b";
    for (write, expected) in [
        (format!("PATCH {path}"), true),
        (format!("PATCH {path}/status"), false),
        ("PATCH /api/v1/namespaces/a/configmaps/b".to_owned(), false),
        (format!("PATCH {path}-c"), false),
    ] {
        assert_eq!(death(&write).is_workload_of("b"), expected, "{write}");
    }
}
