//! What cargo reports about the programs that it has built.

use std::collections::HashMap;
use std::path::PathBuf;

use anyhow::{Context, Result};
use serde_json::Value;

/// Programs by name.
#[derive(Debug)]
pub(super) struct Built(HashMap<String, PathBuf>);

// === impl Built ===

impl Built {
    /// Reads cargo's messages: one JSON object a line.
    pub(super) fn read(messages: &str) -> Self {
        Self(messages.lines().filter_map(program).collect())
    }

    /// Where a program is.
    pub(super) fn path(&self, name: &str) -> Result<PathBuf> {
        let path = self.0.get(name).cloned();
        path.with_context(|| {
            format!(
                "failed to find the program {name} that cargo built: add it to testbed/src/cargo.rs"
            )
        })
    }
}

fn program(message: &str) -> Option<(String, PathBuf)> {
    let message: Value = serde_json::from_str(message).ok()?;
    let target = &message["target"];
    let path = PathBuf::from(message["executable"].as_str()?);
    (target["kind"][0] == "bin").then_some((target["name"].as_str()?.to_owned(), path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_programs_are_found_by_name() {
        let messages = r#"{"target":{"kind":["bin"],"name":"hcp"},"executable":"/t/hcp"}
{"target":{"kind":["example"],"name":"codegen"},"executable":"/t/examples/codegen"}
{"target":{"kind":["lib"],"name":"api"},"executable":null}
not a message"#;
        let built = Built::read(messages);
        assert_eq!(built.path("hcp").unwrap(), PathBuf::from("/t/hcp"));
        assert!(built.path("codegen").is_err() && built.path("api").is_err());
    }
}
