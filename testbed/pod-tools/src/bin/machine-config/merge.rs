//! Merging of Ignition documents: list entries are matched by their key, and the later document takes precedence.

use serde_json::Value;

/// Lists whose entries have a key, and the key.
const KEYS: [(&str, &str); 8] = [
    ("passwd.groups", "name"),
    ("passwd.users", "name"),
    ("storage.directories", "path"),
    ("storage.files", "path"),
    ("storage.filesystems", "device"),
    ("storage.links", "path"),
    ("systemd.units", "name"),
    ("systemd.units.dropins", "name"),
];
/// The contents of a file are replaced as a whole: a compression belongs to its source.
const REPLACED: &str = "storage.files.contents";
/// Lists of which each path is in one only.
const PATHS: [&str; 3] = ["directories", "files", "links"];

/// Merges a document into another one.
pub(crate) fn merge(base: &mut Value, over: Value) {
    for list in PATHS {
        let entries = base.pointer_mut(&format!("/storage/{list}"));
        if let Some(entries) = entries.and_then(Value::as_array_mut) {
            entries.retain(|entry| !is_in_other_list(&over, list, &entry["path"]));
        }
    }
    merge_at("", base, over);
}

fn is_in_other_list(document: &Value, list: &str, path: &Value) -> bool {
    let others = PATHS.into_iter().filter(|other| *other != list);
    let mut entries = others.filter_map(|other| document["storage"][other].as_array());
    entries.any(|entries| entries.iter().any(|entry| entry["path"] == *path))
}

fn merge_at(path: &str, base: &mut Value, over: Value) {
    match (base, over) {
        (Value::Object(base), Value::Object(over)) if path != REPLACED => {
            for (field, value) in over.into_iter().filter(|(_, value)| !value.is_null()) {
                let inner = match path {
                    "" => field.clone(),
                    _ => format!("{path}.{field}"),
                };
                merge_at(&inner, base.entry(field).or_insert(Value::Null), value);
            }
        }
        (Value::Array(base), Value::Array(over)) => {
            let key = KEYS.iter().find(|(list, _)| *list == path);
            for entry in over {
                let same = base.iter_mut().find(|known| match key {
                    Some((_, key)) => known[*key] == entry[*key],
                    None => **known == entry,
                });
                match same {
                    Some(known) => merge_at(path, known, entry),
                    None => base.push(entry),
                }
            }
        }
        (base, over) => *base = over,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_later_document_takes_precedence() {
        for (name, base, over, expected) in [
            (
                "files by path, with whole contents",
                json!({ "storage": { "files": [{ "path": "/a", "mode": 420, "contents": { "source": "data:,1", "compression": "gzip" } }] } }),
                json!({ "storage": { "files": [{ "path": "/a", "contents": { "source": "data:,2" } }, { "path": "/b" }] } }),
                json!({ "storage": { "files": [{ "path": "/a", "mode": 420, "contents": { "source": "data:,2" } }, { "path": "/b" }] } }),
            ),
            (
                "a file takes the place of a link",
                json!({ "storage": { "links": [{ "path": "/a" }, { "path": "/b" }], "files": [] } }),
                json!({ "storage": { "files": [{ "path": "/a" }] } }),
                json!({ "storage": { "links": [{ "path": "/b" }], "files": [{ "path": "/a" }] } }),
            ),
            (
                "units and their drop-ins by name",
                json!({ "systemd": { "units": [{ "name": "a", "dropins": [{ "name": "x", "contents": "1" }] }] } }),
                json!({ "systemd": { "units": [{ "name": "a", "contents": "c", "dropins": [{ "name": "x", "contents": "2" }, { "name": "y" }] }] } }),
                json!({ "systemd": { "units": [{ "name": "a", "contents": "c", "dropins": [{ "name": "x", "contents": "2" }, { "name": "y" }] }] } }),
            ),
            (
                "keys of a user are added once",
                json!({ "passwd": { "users": [{ "name": "core", "sshAuthorizedKeys": ["a"] }] } }),
                json!({ "passwd": { "users": [{ "name": "core", "sshAuthorizedKeys": ["b", "a"] }] } }),
                json!({ "passwd": { "users": [{ "name": "core", "sshAuthorizedKeys": ["a", "b"] }] } }),
            ),
        ] {
            let mut merged = base;
            merge(&mut merged, over);
            assert_eq!(merged, expected, "{name}");
        }
    }
}
