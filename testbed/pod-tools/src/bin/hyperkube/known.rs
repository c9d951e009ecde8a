//! What an upstream program knows, by its own help.

use std::collections::BTreeSet;

/// Flags and feature gates of a program.
#[derive(Debug, Default)]
pub(crate) struct Known {
    flags: BTreeSet<String>,
    gates: BTreeSet<String>,
}

// === impl Known ===

impl Known {
    /// Reads what `--help` prints.
    pub(crate) fn parse(help: &str) -> Self {
        Self {
            flags: help.lines().filter_map(flag).map(str::to_owned).collect(),
            gates: help.lines().filter_map(gate).map(str::to_owned).collect(),
        }
    }

    pub(crate) fn has_flag(&self, name: &str) -> bool {
        self.flags.contains(name)
    }

    /// Whether a feature gate may be set. Help is silent about those that can no longer be changed.
    pub(crate) fn has_gate(&self, name: &str) -> bool {
        self.gates.contains(name)
    }
}

/// The flag that a line begins with: `  --name type   text` or `  -n, --name type   text`.
fn flag(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let at = if line.starts_with("--") {
        0
    } else if line.starts_with('-') {
        line.find(", --")? + 2
    } else {
        return None;
    };
    let name = &line[at + 2..];
    let end = name.find(|c: char| !c.is_ascii_alphanumeric() && c != '-');
    Some(&name[..end.unwrap_or(name.len())])
}

/// The feature gate that a line offers: `component:Name=true|false (BETA - default=true)`.
fn gate(line: &str) -> Option<&str> {
    let name = &line[..line.find("=true|false")?];
    name.rsplit([' ', '\t', ':']).next()
}

#[cfg(test)]
mod tests {
    use super::*;

    const HELP: &str = "\
Generic flags:

      --feature-gates mapStringBool          A set of key=value pairs. Options are:
                kube:APIResponseCompression=true|false (BETA - default=true)
                AllAlpha=true|false (ALPHA - default=false)
      --etcd-servers strings                 List of etcd servers
  -v, --v Level                              number for the log level verbosity
      text --not-a-flag
";

    #[test]
    fn flags_and_gates_are_read_from_help() {
        let known = Known::parse(HELP);
        for name in ["feature-gates", "etcd-servers", "v"] {
            assert!(known.has_flag(name), "{name}");
        }
        assert!(!known.has_flag("not-a-flag"));
        assert!(known.has_gate("APIResponseCompression") && known.has_gate("AllAlpha"));
        assert!(!known.has_gate("kube:APIResponseCompression") && !known.has_gate("Example"));
    }
}
