//! Ignition files and units.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

/// Mode of files that all users can read.
pub(super) const PUBLIC: u32 = 0o644;
/// Mode of files with secrets: only root can read them.
pub(super) const PRIVATE: u32 = 0o600;

/// A systemd unit, or drop-ins for one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Unit {
    name: String,
    contents: Option<String>,
    drop_ins: Vec<(String, String)>,
}

/// Creates a file.
pub(super) fn file(path: &str, mode: u32, content: impl AsRef<[u8]>) -> Value {
    json!({
        "path": path,
        "mode": mode,
        "overwrite": true,
        "contents": { "source": data_url(content.as_ref()) },
    })
}

/// Encodes content as a data URL.
pub(super) fn data_url(content: &[u8]) -> String {
    format!(
        "data:text/plain;charset=utf-8;base64,{}",
        STANDARD.encode(content)
    )
}

// === impl Unit ===

impl Unit {
    pub(super) fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            contents: None,
            drop_ins: Vec::new(),
        }
    }

    /// Sets the content of the unit, and enables it.
    pub(super) fn with_contents(mut self, contents: &str) -> Self {
        self.contents = Some(contents.to_owned());
        self
    }

    pub(super) fn with_drop_in(mut self, name: &str, contents: &str) -> Self {
        self.drop_ins.push((name.to_owned(), contents.to_owned()));
        self
    }
}

impl From<Unit> for Value {
    fn from(unit: Unit) -> Self {
        let mut value = json!({ "name": unit.name });
        if let Some(contents) = unit.contents {
            value["contents"] = json!(contents);
            value["enabled"] = json!(true);
        }
        if !unit.drop_ins.is_empty() {
            let drop_ins = unit.drop_ins.into_iter();
            value["dropins"] = drop_ins
                .map(|(name, contents)| json!({ "name": name, "contents": contents }))
                .collect();
        }
        value
    }
}
