//! What each original was when it was copied, in twelve bytes: enough to detect that another client has changed it since.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::object::{Object, ObjectKey};
use crate::target::SERVERS_OWN;

/// A hash of one object's content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fingerprint(u32);

/// Fingerprints by object. Objects are kept as hashes, too: a journal has to fit into a ConfigMap.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Fingerprints(BTreeMap<u64, u32>);

/// A text that does not depend on the order of fields: items of lists and responses to writes come in different ones, and
/// whether it is kept depends on what else is built into the program.
struct Sorted<'v>(&'v Value);

// === impl Fingerprint ===

impl Fingerprint {
    /// Of what people and controllers put into an object: all of it, but for the pause, what the server counts, whose
    /// each field is, and what the migration itself takes off before it deletes (finalizers and owners).
    pub fn of(object: &Object) -> Self {
        let mut body = object.body().clone();
        if let Some(metadata) = body.get_mut("metadata").and_then(Value::as_object_mut) {
            for field in SERVERS_OWN.into_iter().filter(|field| *field != "uid") {
                metadata.remove(field);
            }
            metadata.remove("finalizers");
        }
        if object.key().kind == "Cluster"
            && let Some(spec) = body.get_mut("spec").and_then(Value::as_object_mut)
        {
            spec.remove("paused");
        }
        let [a, b, c, d, ..] = hash(&Sorted(&body).to_string());
        Self(u32::from_be_bytes([a, b, c, d]))
    }
}

// === impl Sorted ===

impl fmt::Display for Sorted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Value::Object(fields) => {
                let fields: BTreeMap<_, _> = fields.iter().collect();
                f.write_str("{")?;
                for (name, value) in fields {
                    write!(f, "{name:?}:{},", Sorted(value))?;
                }
                f.write_str("}")
            }
            Value::Array(items) => {
                f.write_str("[")?;
                for item in items {
                    write!(f, "{},", Sorted(item))?;
                }
                f.write_str("]")
            }
            plain => write!(f, "{plain}"),
        }
    }
}

// === impl Fingerprints ===

impl Fingerprints {
    /// Of each of these objects.
    pub fn of<'o>(objects: impl IntoIterator<Item = &'o Object>) -> Self {
        let pairs = objects.into_iter();
        Self(
            pairs
                .map(|object| (id(object.key()), Fingerprint::of(object).0))
                .collect(),
        )
    }

    /// What the object was.
    pub fn get(&self, key: &ObjectKey) -> Option<Fingerprint> {
        self.0.get(&id(key)).copied().map(Fingerprint)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Hexadecimal digits, sixteen and eight for each object.
impl Serialize for Fingerprints {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut text = String::with_capacity(self.0.len() * 24);
        for (key, content) in &self.0 {
            write!(text, "{key:016x}{content:08x}").expect("invariant: a string takes all text");
        }
        serializer.serialize_str(&text)
    }
}

impl<'de> Deserialize<'de> for Fingerprints {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let damaged = || D::Error::custom("the originals' fingerprints are not whole");
        if !text.is_ascii() || text.len() % 24 != 0 {
            return Err(damaged());
        }
        let pairs = (0..text.len()).step_by(24).map(|at| {
            let key = u64::from_str_radix(&text[at..at + 16], 16).ok()?;
            let content = u32::from_str_radix(&text[at + 16..at + 24], 16).ok()?;
            Some((key, content))
        });
        pairs.collect::<Option<_>>().map(Self).ok_or_else(damaged)
    }
}

fn id(key: &ObjectKey) -> u64 {
    let ObjectKey {
        group,
        kind,
        namespace,
        name,
    } = key;
    let parts = [group, kind, namespace, name].map(String::as_str);
    let hash = hash(&parts.join("\n"));
    let first = hash.first_chunk().expect("invariant: a digest is longer");
    u64::from_be_bytes(*first)
}

fn hash(text: &str) -> [u8; 32] {
    Sha256::digest(text.as_bytes()).into()
}
