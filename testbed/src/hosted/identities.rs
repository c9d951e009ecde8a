//! What things are by their names: whether they are still the same ones.

use std::collections::BTreeMap;

use anyhow::{Result, ensure};
use serde_json::Value;

use super::{Cluster, Guest};

/// Identities by names.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Identities(BTreeMap<String, String>);

// === impl Identities ===

impl Identities {
    /// A cluster's nodes, and the instances that they are.
    pub async fn of_workers(cluster: &Cluster<'_>, guest: &Guest) -> Result<Self> {
        let mut all = Self::default();
        for node in guest.nodes().await? {
            all.add("node", &node, node["metadata"]["uid"].to_string());
        }
        for instance in cluster.instances().await? {
            let identity = format!("{} {}", instance.state, instance.address);
            all.0.insert(format!("instance {}", instance.id), identity);
        }
        Ok(all)
    }

    /// Takes down an object of some kind.
    pub fn add(&mut self, kind: &str, object: &Value, identity: String) {
        let name = format!("{kind} {}", object["metadata"]["name"]);
        self.0.insert(name, identity);
    }

    /// Fails with all that was changed since, is gone or is new.
    pub fn are_the_same(&self, now: &Self) -> Result<()> {
        let before = self.0.iter();
        let changed: Vec<_> = before
            .filter(|(name, before)| now.0.get(*name) != Some(before))
            .map(|(name, before)| format!("{name}: {before} -> {:?}", now.0.get(name)))
            .collect();
        let names = now.0.keys();
        let new: Vec<_> = names.filter(|name| !self.0.contains_key(*name)).collect();
        ensure!(
            changed.is_empty() && new.is_empty(),
            "changed are {changed:#?}, new are {new:?}"
        );
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn changed_missing_and_new_things_are_reported() {
        let of = |things: &[(&str, &str)]| {
            let mut all = Identities::default();
            for (name, identity) in things {
                let object = json!({ "metadata": { "name": name } });
                all.add("pod", &object, (*identity).to_owned());
            }
            all
        };
        let before = of(&[("a", "1"), ("b", "2")]);
        before.are_the_same(&of(&[("b", "2"), ("a", "1")])).unwrap();
        for (now, reported) in [
            (of(&[("a", "1"), ("b", "3")]), "pod \\\"b\\\": 2 -> Some"),
            (of(&[("a", "1")]), "pod \\\"b\\\": 2 -> None"),
            (
                of(&[("a", "1"), ("b", "2"), ("c", "3")]),
                "new are [\"pod \\\"c",
            ),
        ] {
            let error = before.are_the_same(&now).unwrap_err().to_string();
            assert!(error.contains(reported), "{error}");
        }
    }
}
