//! Files and units in Ignition's form.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

/// Everybody may read it.
pub(super) const PUBLIC: u32 = 0o644;
/// It holds something that only root may know.
pub(super) const PRIVATE: u32 = 0o600;

/// A unit of systemd, or what is added to one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Unit {
    name: String,
    contents: Option<String>,
    drop_ins: Vec<(String, String)>,
}

/// A file with this content.
pub(super) fn file(path: &str, mode: u32, content: impl AsRef<[u8]>) -> Value {
    json!({
        "path": path,
        "mode": mode,
        "overwrite": true,
        "contents": { "source": data_url(content.as_ref()) },
    })
}

/// Content that comes with the document.
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

    /// The unit itself; it is started at boot.
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
