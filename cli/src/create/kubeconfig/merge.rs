//! Several kubeconfigs as one, with a context for each: pure.

use serde_json::{Value, json};

/// A kubeconfig, and the name that its context shall have.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) name: String,
    pub(super) kubeconfig: Value,
}

/// One kubeconfig with the current context of each; the first is current.
pub(super) fn merge(entries: &[Entry]) -> Value {
    let clusters = entries.iter().map(
        |entry| json!({ "name": entry.name, "cluster": entry.current("clusters", "cluster") }),
    );
    let users = entries
        .iter()
        .map(|entry| json!({ "name": entry.user(), "user": entry.current("users", "user") }));
    let contexts = entries.iter().map(|entry| {
        json!({
            "name": entry.name,
            "context": { "cluster": entry.name, "user": entry.user(), "namespace": "default" },
        })
    });
    json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": clusters.collect::<Vec<_>>(),
        "users": users.collect::<Vec<_>>(),
        "contexts": contexts.collect::<Vec<_>>(),
        "current-context": entries.first().map(|entry| &entry.name),
    })
}

// === impl Entry ===

impl Entry {
    fn user(&self) -> String {
        format!("{}-admin", self.name)
    }

    /// The cluster or the user of the current context.
    fn current(&self, list: &str, part: &str) -> &Value {
        let current = &self.kubeconfig["current-context"];
        let context = named(&self.kubeconfig["contexts"], current);
        &named(&self.kubeconfig[list], &context["context"][part])[part]
    }
}

fn named<'v>(list: &'v Value, name: &Value) -> &'v Value {
    let mut entries = list.as_array().into_iter().flatten();
    entries
        .find(|entry| entry["name"] == *name)
        .unwrap_or(&Value::Null)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(name: &str) -> Entry {
        Entry {
            name: name.to_owned(),
            kubeconfig: json!({
                "clusters": [
                    { "name": "other", "cluster": { "server": "https://other.example.com" } },
                    { "name": "cluster", "cluster": { "server": format!("https://{name}.example.com") } },
                ],
                "users": [{ "name": "admin", "user": { "token": name } }],
                "contexts": [{ "name": "admin", "context": { "cluster": "cluster", "user": "admin" } }],
                "current-context": "admin",
            }),
        }
    }

    #[test]
    fn each_cluster_has_a_context_of_its_name() {
        let merged = merge(&[entry("a"), entry("b")]);
        assert_eq!(merged["current-context"], "a");
        for (index, name) in ["a", "b"].into_iter().enumerate() {
            let server = format!("https://{name}.example.com");
            assert_eq!(merged["clusters"][index]["cluster"]["server"], server);
            assert_eq!(
                merged["users"][index],
                json!({ "name": format!("{name}-admin"), "user": { "token": name } })
            );
            assert_eq!(
                merged["contexts"][index]["context"],
                json!({ "cluster": name, "user": format!("{name}-admin"), "namespace": "default" })
            );
        }
    }
}
