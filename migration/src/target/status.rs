//! The status of a target: its original's, with generations that make sense for the target.

use serde_json::Value;

use crate::groups::Groups;
use crate::object::Object;

/// The field by which a controller says up to which generation it has looked.
const OBSERVED: &str = "observedGeneration";

/// Which generations count as the original's current one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Current {
    /// Only the one that it has.
    Exact,
    /// The one before, too, for a Cluster: the pause made one of its own, and lifting it makes another.
    BeforePause,
}

/// The status that a target of this generation has to have; none when the original has none.
///
/// A generation that was up to date becomes the target's own; one that was behind is left out, so that no
/// client takes the target, whose generations start at 1, for observed.
pub fn status(
    groups: &Groups,
    original: &Object,
    generation: i64,
    current: Current,
) -> Option<Value> {
    let mut body = original.body().clone();
    body.as_object_mut()?.retain(|name, _| name == "status");
    groups.swap_object(&original.key().kind, &mut body);
    let mut status = body.get_mut("status")?.take();
    let behind = match current {
        Current::BeforePause if original.key().kind == "Cluster" => 1,
        Current::Exact | Current::BeforePause => 0,
    };
    let newest = original.generation();
    observe(&mut status, &|observed| {
        (newest - behind..=newest)
            .contains(&observed)
            .then_some(generation)
    });
    Some(status)
}

fn observe(value: &mut Value, renew: &dyn Fn(i64) -> Option<i64>) {
    match value {
        Value::Object(fields) => {
            if let Some(observed) = fields.get(OBSERVED).and_then(Value::as_i64) {
                match renew(observed) {
                    Some(generation) => {
                        fields.insert(OBSERVED.to_owned(), generation.into());
                    }
                    None => {
                        fields.remove(OBSERVED);
                    }
                }
            }
            fields.values_mut().for_each(|field| observe(field, renew));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| observe(item, renew)),
        _ => {}
    }
}
