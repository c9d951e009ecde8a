//! Merges Ignition documents: list entries are matched by key, and the later one takes precedence.

use serde_json::{Map, Value};

/// The field that identifies the entries of a list.
const KEYS: [(&str, &str); 14] = [
    ("ignition.config.merge", "source"),
    ("ignition.security.tls.certificateAuthorities", "source"),
    ("passwd.groups", "name"),
    ("passwd.users", "name"),
    ("storage.directories", "path"),
    ("storage.disks", "device"),
    ("storage.disks.partitions", "label"),
    ("storage.files", "path"),
    ("storage.filesystems", "device"),
    ("storage.links", "path"),
    ("storage.luks", "name"),
    ("storage.raid", "name"),
    ("systemd.units", "name"),
    ("systemd.units.dropins", "name"),
];
/// Objects that are replaced instead of merged, because their fields belong together.
const REPLACED: [&str; 2] = ["storage.files.contents", "ignition.config.replace"];
/// Lists that share the path namespace.
const PATHS: [&str; 3] = ["files", "directories", "links"];

/// Merges `over` into `base`.
pub(super) fn merge(base: &mut Value, over: Value) {
    remove_conflicting_paths(base, &over);
    merge_at("", base, over);
}

/// Removes entries whose path the later document uses in another list.
fn remove_conflicting_paths(base: &mut Value, over: &Value) {
    for list in PATHS {
        for other in PATHS.into_iter().filter(|other| *other != list) {
            let taken = paths(over, other);
            let found = base.pointer_mut(&format!("/storage/{list}"));
            if let Some(entries) = found.and_then(Value::as_array_mut) {
                entries.retain(|entry| !taken.contains(&entry["path"].as_str()));
            }
        }
    }
}

fn paths<'a>(document: &'a Value, list: &str) -> Vec<Option<&'a str>> {
    let entries = document["storage"][list].as_array();
    let entries = entries.into_iter().flatten();
    entries.map(|entry| entry["path"].as_str()).collect()
}

fn merge_at(path: &str, base: &mut Value, over: Value) {
    match (base, over) {
        (Value::Object(base), Value::Object(over)) if !REPLACED.contains(&path) => {
            merge_fields(path, base, over);
        }
        (Value::Array(base), Value::Array(over)) => merge_lists(path, base, over),
        (base, over) => *base = over,
    }
}

fn merge_fields(path: &str, base: &mut Map<String, Value>, over: Map<String, Value>) {
    for (field, value) in over {
        if value.is_null() {
            continue;
        }
        let inner = match path {
            "" => field.clone(),
            _ => format!("{path}.{field}"),
        };
        merge_at(&inner, base.entry(field).or_insert(Value::Null), value);
    }
}

fn merge_lists(path: &str, base: &mut Vec<Value>, over: Vec<Value>) {
    let key = KEYS.iter().find(|(list, _)| *list == path).map(|it| it.1);
    for entry in over {
        let same = match key {
            Some(key) => base.iter_mut().find(|known| known[key] == entry[key]),
            None => base.iter_mut().find(|known| **known == entry),
        };
        match same {
            Some(known) => merge_at(path, known, entry),
            None => base.push(entry),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn merged(base: &Value, over: Value) -> Value {
        let mut merged = base.clone();
        merge(&mut merged, over);
        merged
    }

    #[test]
    fn entries_with_the_same_key_are_merged() {
        for (name, base, over, expected) in [
            (
                "files by path; contents replaced",
                json!({ "storage": { "files": [{ "path": "/a", "mode": 420, "contents": { "source": "data:,1", "compression": "gzip" } }] } }),
                json!({ "storage": { "files": [{ "path": "/a", "contents": { "source": "data:,2" } }, { "path": "/b" }] } }),
                json!({ "storage": { "files": [{ "path": "/a", "mode": 420, "contents": { "source": "data:,2" } }, { "path": "/b" }] } }),
            ),
            (
                "a file takes the place of a link",
                json!({ "storage": { "links": [{ "path": "/a", "target": "/b" }, { "path": "/c", "target": "/d" }] } }),
                json!({ "storage": { "files": [{ "path": "/a" }] } }),
                json!({ "storage": { "links": [{ "path": "/c", "target": "/d" }], "files": [{ "path": "/a" }] } }),
            ),
            (
                "units by name; drop-ins by theirs",
                json!({ "systemd": { "units": [{ "name": "a.service", "contents": "1", "dropins": [{ "name": "x", "contents": "1" }] }] } }),
                json!({ "systemd": { "units": [{ "name": "a.service", "enabled": false, "dropins": [{ "name": "x", "contents": "2" }, { "name": "y" }] }] } }),
                json!({ "systemd": { "units": [{ "name": "a.service", "contents": "1", "enabled": false, "dropins": [{ "name": "x", "contents": "2" }, { "name": "y" }] }] } }),
            ),
            (
                "keys of a user are joined",
                json!({ "passwd": { "users": [{ "name": "core", "sshAuthorizedKeys": ["a"] }] } }),
                json!({ "passwd": { "users": [{ "name": "core", "sshAuthorizedKeys": ["b", "a"] }] } }),
                json!({ "passwd": { "users": [{ "name": "core", "sshAuthorizedKeys": ["a", "b"] }] } }),
            ),
            (
                "what is null is not there",
                json!({ "storage": { "files": [{ "path": "/a", "mode": 420 }] } }),
                json!({ "storage": { "files": [{ "path": "/a", "mode": null }], "links": null } }),
                json!({ "storage": { "files": [{ "path": "/a", "mode": 420 }] } }),
            ),
        ] {
            assert_eq!(merged(&base, over), expected, "{name}");
        }
    }

    #[test]
    fn merging_is_idempotent() {
        let base = json!({ "storage": { "files": [{ "path": "/a" }] } });
        let over = json!({
            "storage": { "files": [{ "path": "/a", "mode": 1 }, { "path": "/b" }] },
            "systemd": { "units": [{ "name": "a.service" }] },
        });
        let once = merged(&base, over.clone());
        assert_eq!(merged(&once, over), once);
    }
}
