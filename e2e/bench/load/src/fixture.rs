//! What is stored, sent and expected: Machines as the API server stores them, under private names.
//!
//! Every place that holds a group is one that a rewriting proxy must change, and no other text contains a private
//! name. That is why the standard spelling can be had by plain replacement, and why this knows the right response
//! without calling the translator.

use api::group::{CapiTypes, GroupTable};
use bytes::Bytes;

use crate::body::Pattern;
use crate::wire::{Call, Spelling};

/// One Machine of a worker node, as stored: status, managed fields and references included.
const MACHINE: &str = include_str!("../../../../capi-proxy/translate/benches/machine.json");
/// The value of the Machine's `resourceVersion`, as long as a stamp.
const STAMP: &str = "00000000000000000000";
/// The namespace of the Machine.
pub const NAMESPACE: &str = "clusters-workload-a";
/// Its name.
pub const NAME: &str = "workload-a-md-0-5c9f7-x4k2p";

/// All bodies in one spelling.
#[derive(Debug, Clone)]
pub struct Fixture {
    group: String,
    machine: String,
    patch: String,
    bookmark: String,
}

/// A watch event with a stamp that is filled in as it is sent.
#[derive(Debug, Clone)]
pub struct Event {
    before: String,
    after: String,
}

// === impl Fixture ===

impl Fixture {
    /// The bodies in `spelling`.
    pub fn new(spelling: Spelling) -> Self {
        let table = GroupTable::default();
        let core = table
            .pairs()
            .first()
            .expect("invariant: the default table is not empty");
        let private = core.name(CapiTypes::Private);
        let group = match spelling {
            Spelling::Private => private,
            Spelling::Standard => core.name(CapiTypes::Standard),
        };
        Self {
            group: group.to_owned(),
            machine: MACHINE.trim_end().replace(private, group),
            patch: patch(group),
            bookmark: bookmark(group),
        }
    }

    /// The collection's path.
    pub fn machines(&self) -> String {
        format!(
            "/apis/{}/v1beta2/namespaces/{NAMESPACE}/machines",
            self.group
        )
    }

    /// The Machine's path.
    pub fn machine_path(&self) -> String {
        format!("{}/{NAME}", self.machines())
    }

    /// The response to a GET or a PATCH of the Machine.
    pub fn machine(&self) -> Pattern {
        Pattern::plain(format!("{}\n", self.machine))
    }

    /// The body of a PATCH.
    pub fn patch(&self) -> Bytes {
        self.patch.clone().into()
    }

    /// A list of so many Machines. Lists of custom resources give their kind after their items.
    pub fn list(&self, items: u64) -> Pattern {
        let open = format!("{{\"apiVersion\":\"{}/v1beta2\",\"items\":[", self.group);
        let close = "],\"kind\":\"MachineList\",\"metadata\":{\"continue\":\"\",\"resourceVersion\":\"417390\"}}\n";
        if items == 0 {
            return Pattern::plain(format!("{open}{close}"));
        }
        Pattern::new(
            format!("{open}{}", self.machine),
            format!(",{}", self.machine),
            items - 1,
            close,
        )
    }

    /// How many Machines a list of at least `bytes` bytes holds, as it is stored.
    pub fn items_of(bytes: u64) -> u64 {
        bytes.div_ceil(MACHINE.trim_end().len() as u64 + 1)
    }

    /// The response to a call.
    pub fn response(&self, call: Call) -> Pattern {
        match call {
            Call::Get | Call::Patch => self.machine(),
            Call::List { bytes } => self.list(Self::items_of(bytes)),
        }
    }

    /// The first event of every watch.
    pub fn bookmark(&self) -> Bytes {
        self.bookmark.clone().into()
    }

    /// The other events of a watch.
    pub fn event(&self) -> Event {
        let (before, after) = self
            .machine
            .split_once(STAMP)
            .expect("invariant: the Machine holds a stamp");
        Event {
            before: format!("{{\"type\":\"MODIFIED\",\"object\":{before}"),
            after: format!("{after}}}\n"),
        }
    }
}

/// A merge patch as the Machine controller sends: one reference that names a group, and conditions that do not.
fn patch(group: &str) -> String {
    let condition = |kind: &str, message: &str| {
        format!(
            "{{\"lastTransitionTime\":\"2026-03-04T09:12:31Z\",\"message\":\"{message}\",\"observedGeneration\":2,\
             \"reason\":\"{kind}\",\"status\":\"True\",\"type\":\"{kind}\"}}"
        )
    };
    let conditions = [
        condition("Available", ""),
        condition("Ready", "Node workload-a-md-0 has been ready for 31s"),
        condition("BootstrapConfigReady", ""),
        condition("InfrastructureReady", "instance is running"),
        condition("NodeHealthy", ""),
    ]
    .join(",");
    format!(
        "{{\"metadata\":{{\"ownerReferences\":[{{\"apiVersion\":\"{group}/v1beta2\",\"blockOwnerDeletion\":true,\
         \"controller\":true,\"kind\":\"MachineSet\",\"name\":\"workload-a-md-0-5c9f7\",\
         \"uid\":\"0b6f4c1e-7a3d-4d59-9a53-6c1f0e8e4f21\"}}],\"resourceVersion\":\"417390\"}},\
         \"status\":{{\"conditions\":[{conditions}]}}}}"
    )
}

/// The bookmark that ends the initial events of a watch.
fn bookmark(group: &str) -> String {
    format!(
        "{{\"type\":\"BOOKMARK\",\"object\":{{\"apiVersion\":\"{group}/v1beta2\",\"kind\":\"Machine\",\"metadata\":\
         {{\"annotations\":{{\"k8s.io/initial-events-end\":\"true\"}},\"resourceVersion\":\"417390\"}}}}}}\n"
    )
}

// === impl Event ===

impl Event {
    /// The event's line, stamped with a point in time.
    pub fn stamped(&self, nanos: u64) -> Bytes {
        format!(
            "{}{nanos:0width$}{}",
            self.before,
            self.after,
            width = STAMP.len()
        )
        .into()
    }

    /// The stamp in an event's line, if everything else in it is right.
    pub fn stamp_of(&self, line: &[u8]) -> Option<u64> {
        let stamp = line
            .strip_prefix(self.before.as_bytes())?
            .strip_suffix(self.after.as_bytes())?;
        std::str::from_utf8(stamp).ok()?.parse().ok()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn the_stored_machine_is_the_size_that_was_measured() {
        let length = Fixture::new(Spelling::Private).machine().len();
        assert!((3_700..4_000).contains(&length), "{length} bytes");
    }

    #[test]
    fn the_two_spellings_differ_in_names_only() {
        let (private, standard) = (
            Fixture::new(Spelling::Private),
            Fixture::new(Spelling::Standard),
        );
        for call in [Call::Get, Call::List { bytes: 20_000 }] {
            let [stored, seen] = [&private, &standard].map(|fixture| {
                serde_json::from_slice::<Value>(&fixture.response(call).to_bytes()).unwrap()
            });
            let mut changed = Vec::new();
            differences("", &stored, &seen, &mut changed);
            assert!(!changed.is_empty());
            for place in &changed {
                assert!(
                    place.ends_with("/apiVersion") || place.ends_with("/apiGroup"),
                    "{place}"
                );
            }
        }
        assert!(!standard.patch.contains(&private.group) && private.patch.contains(&private.group));
        assert!(
            !standard.bookmark.contains(&private.group)
                && private.bookmark.contains(&private.group)
        );
    }

    fn differences(at: &str, left: &Value, right: &Value, found: &mut Vec<String>) {
        match (left, right) {
            (Value::Object(left), Value::Object(right)) => {
                assert!(left.keys().eq(right.keys()), "{at}");
                for (key, value) in left {
                    differences(&format!("{at}/{key}"), value, &right[key], found);
                }
            }
            (Value::Array(left), Value::Array(right)) => {
                assert_eq!(left.len(), right.len(), "{at}");
                for (left, right) in left.iter().zip(right) {
                    differences(at, left, right, found);
                }
            }
            (left, right) if left == right => {}
            _ => found.push(at.to_owned()),
        }
    }

    #[test]
    fn a_stamp_is_kept_and_a_changed_event_is_detected() {
        let event = Fixture::new(Spelling::Standard).event();
        let line = event.stamped(1_234_567);
        assert_eq!(event.stamp_of(&line), Some(1_234_567));
        let other = Fixture::new(Spelling::Private).event();
        assert_eq!(event.stamp_of(&other.stamped(1)), None);
    }

    #[test]
    fn a_list_has_the_requested_length() {
        let fixture = Fixture::new(Spelling::Private);
        let length = fixture.response(Call::List { bytes: 1_000_000 }).len();
        assert!((1_000_000..1_005_000).contains(&length), "{length} bytes");
    }
}
