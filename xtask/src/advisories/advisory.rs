//! One advisory: a Markdown file that begins with a block of TOML, of which a few keys matter here.

use semver::{Version, VersionReq};

/// A known vulnerability of a crate.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Advisory {
    pub(super) id: String,
    pub(super) title: String,
    /// Versions that have been fixed.
    pub(super) patched: Vec<String>,
    /// Versions that never had it.
    pub(super) unaffected: Vec<String>,
    /// Withdrawn, or a notice such as "unmaintained": not a vulnerability.
    pub(super) is_notice: bool,
}

// === impl Advisory ===

impl Advisory {
    /// Reads a file of the database. What has no identifier is none.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (_, rest) = text.split_once("```toml")?;
        let (toml, markdown) = rest.split_once("```")?;
        let title = markdown
            .lines()
            .find_map(|line| line.strip_prefix("# "))
            .unwrap_or("no title");
        Some(Self {
            id: strings(toml, "id").into_iter().next()?,
            title: title.trim().to_owned(),
            patched: strings(toml, "patched"),
            unaffected: strings(toml, "unaffected"),
            is_notice: has(toml, "withdrawn") || has(toml, "informational"),
        })
    }

    /// Whether a version has the vulnerability. Ranges that cannot be read exclude nothing.
    pub(super) fn affects(&self, version: &Version) -> bool {
        let excluded = self.patched.iter().chain(&self.unaffected);
        let matches =
            |range: &String| VersionReq::parse(range).is_ok_and(|range| range.matches(version));
        !self.is_notice && !excluded.into_iter().any(matches)
    }
}

/// What follows `key =`, up to the end of the value.
fn value<'a>(toml: &'a str, key: &str) -> Option<&'a str> {
    let mut rest = toml;
    while let Some(at) = rest.find(key) {
        let starts_line = rest[..at].chars().next_back().is_none_or(|c| c == '\n');
        let after = &rest[at + key.len()..];
        if starts_line && let Some(value) = after.trim_start_matches(' ').strip_prefix('=') {
            return Some(value.trim_start());
        }
        rest = after;
    }
    None
}

fn has(toml: &str, key: &str) -> bool {
    value(toml, key).is_some()
}

/// The strings of a value: one, or those of a list, which may go over several lines.
fn strings(toml: &str, key: &str) -> Vec<String> {
    let Some(value) = value(toml, key) else {
        return Vec::new();
    };
    let end = if value.starts_with('[') { ']' } else { '\n' };
    let value = value.split(end).next().unwrap_or_default();
    let quoted = value.split('"').skip(1).step_by(2);
    quoted.map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"```toml
[advisory]
id = "RUSTSEC-2026-0042"
package = "bytes"
date = "2026-01-01"
url = "https://example.com/id"

[versions]
patched = [
    ">= 1.4.2, < 2.0.0",
    ">= 2.1.0",
]
unaffected = ["< 1.2.0"]
```

# Integer overflow in `reserve`

Text.
"#;

    #[test]
    fn versions_are_affected_between_the_ranges() {
        let advisory = Advisory::parse(TEXT).unwrap();
        assert_eq!(advisory.id, "RUSTSEC-2026-0042");
        assert_eq!(advisory.title, "Integer overflow in `reserve`");
        for (version, expected) in [
            ("1.1.9", false),
            ("1.2.0", true),
            ("1.4.1", true),
            ("1.4.2", false),
            ("2.0.0", true),
            ("2.1.0", false),
        ] {
            let version = Version::parse(version).unwrap();
            assert_eq!(advisory.affects(&version), expected, "{version}");
        }
    }

    #[test]
    fn notices_and_withdrawn_advisories_affect_nothing() {
        for line in [
            "withdrawn = \"2026-02-01\"",
            "informational = \"unmaintained\"",
        ] {
            let text = TEXT.replace("date = \"2026-01-01\"", line);
            let advisory = Advisory::parse(&text).unwrap();
            assert!(!advisory.affects(&Version::new(1, 2, 0)), "{line}");
        }
    }

    #[test]
    fn without_fixed_versions_all_are_affected() {
        let text = "```toml\nid = \"X\"\n[versions]\npatched = []\n```\n";
        let advisory = Advisory::parse(text).unwrap();
        assert!(advisory.affects(&Version::new(9, 9, 9)));
        assert_eq!(Advisory::parse("no advisory"), None);
    }
}
