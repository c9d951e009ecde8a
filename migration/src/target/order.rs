//! The order in which targets are made, where an object's age decides something.
//!
//! A controller that scales down takes the oldest, or the newest; a MachineDeployment takes the oldest MachineSet that
//! fits for its new one. A server counts age in seconds, so targets of one such circle are made at least a second apart.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::groups::Groups;
use crate::inventory::{originals, target_key};
use crate::object::{Object, ObjectKey};
use crate::snapshot::Snapshot;

/// How long to wait between two of one circle.
pub const APART: Duration = Duration::from_millis(1050);
/// The most steps of age in one circle: of more, neighbours share one. Their order is then by name.
pub const MOST_STEPS: usize = 30;

/// For each object with a relevant age, the step in which its target is made.
#[derive(Debug, Clone, Default)]
pub struct Order(BTreeMap<ObjectKey, Place>);

#[derive(Debug, Clone)]
struct Place {
    circle: String,
    step: usize,
}

// === impl Order ===

impl Order {
    /// The order of everything that moves.
    pub fn of(groups: &Groups, snapshot: &Snapshot) -> Self {
        let mut circles: BTreeMap<String, Vec<&Object>> = BTreeMap::new();
        for object in originals(groups, snapshot) {
            if let Some(circle) = circle(snapshot, object) {
                circles.entry(circle).or_default().push(object);
            }
        }
        let places = circles.into_iter().flat_map(|(circle, members)| {
            let ages: BTreeSet<_> = members.iter().map(|object| object.created()).collect();
            let ages: Vec<_> = ages.into_iter().collect();
            let steps = ages.len().min(MOST_STEPS);
            let place = move |object: &Object| {
                let age = ages.partition_point(|age| *age < object.created());
                Place {
                    circle: circle.clone(),
                    step: age * steps / ages.len(),
                }
            };
            members
                .into_iter()
                .map(move |object| (object.key().clone(), place(object)))
                .collect::<Vec<_>>()
        });
        Self(places.collect())
    }

    /// How many times a migration waits because of age.
    pub fn waits(&self) -> usize {
        let last = self.0.values().map(|place| place.step).max();
        last.unwrap_or_default()
    }

    /// The step that each circle is at: the first in which a target lacks.
    pub fn front(&self, groups: &Groups, snapshot: &Snapshot) -> BTreeMap<&str, usize> {
        let mut front = BTreeMap::new();
        for (key, place) in &self.0 {
            let made =
                target_key(groups, key).is_some_and(|target| snapshot.get(&target).is_some());
            if !made {
                let step = front.entry(place.circle.as_str()).or_insert(place.step);
                *step = (*step).min(place.step);
            }
        }
        front
    }

    /// The step of an object's target in its circle; none when its age decides nothing.
    pub fn place(&self, key: &ObjectKey) -> Option<(&str, usize)> {
        let place = self.0.get(key)?;
        Some((&place.circle, place.step))
    }

    /// Pairs of originals with targets that are not in the same order.
    pub fn broken(&self, groups: &Groups, snapshot: &Snapshot) -> Vec<ObjectKey> {
        // Per circle and step, when the first and the last target was made.
        let mut made: BTreeMap<(&str, usize), (&str, &str)> = BTreeMap::new();
        for (key, place) in &self.0 {
            let target = target_key(groups, key).and_then(|target| snapshot.get(&target));
            if let Some(target) = target {
                let at = target.created();
                let span = made.entry((&place.circle, place.step)).or_insert((at, at));
                *span = (span.0.min(at), span.1.max(at));
            }
        }
        let late = made
            .iter()
            .zip(made.iter().skip(1))
            .filter(|(one, next)| one.0.0 == next.0.0 && one.1.1 >= next.1.0);
        let late: BTreeSet<_> = late.map(|(_, (place, _))| *place).collect();
        let broken = self.0.iter();
        broken
            .filter(|(_, place)| late.contains(&(place.circle.as_str(), place.step)))
            .map(|(key, _)| key.clone())
            .collect()
    }
}

/// Among which objects this one's age decides something: those of its controller, if that looks at age.
fn circle(snapshot: &Snapshot, object: &Object) -> Option<String> {
    let owners = object.owners();
    let controller = owners.iter().find(|owner| owner.controller)?;
    let looks_at_age = match object.key().kind.as_str() {
        "MachineSet" => controller.kind == "MachineDeployment",
        "Machine" => {
            controller.kind.ends_with("ControlPlane")
                || snapshot.by_uid(&controller.uid).is_some_and(deletes_by_age)
        }
        _ => false,
    };
    looks_at_age.then(|| format!("{} {}", object.key().kind, controller.uid))
}

/// Whether a MachineSet takes the oldest, or the newest, when it scales down.
fn deletes_by_age(set: &Object) -> bool {
    ["/spec/deletion/order", "/spec/deletePolicy"]
        .iter()
        .filter_map(|pointer| set.text(pointer))
        .any(|order| order == "Oldest" || order == "Newest")
}
