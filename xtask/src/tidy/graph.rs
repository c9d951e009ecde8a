//! What `deny.toml` says of the crates that we depend on, held without its tool: versions, licences, sources.

use std::collections::{BTreeMap, BTreeSet};

/// A crate that is built for Linux.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Crate {
    name: String,
    version: String,
    license: String,
    /// Where it is from, if not from the registry: a directory, or a URL.
    place: Option<String>,
}

/// What `deny.toml` allows.
#[derive(Debug, Default, PartialEq)]
struct Allowed {
    /// `name@version`, the version as far as it is said.
    skip: Vec<String>,
    deny: Vec<String>,
    licenses: Vec<String>,
}

/// What the graph has and may not have, and what `deny.toml` allows without need. A line of the graph is a crate as
/// `cargo tree` writes it, a bar, and its licence.
pub(super) fn findings(graph: &str, deny: &str) -> Vec<String> {
    let allowed = Allowed::read(deny);
    let lines: BTreeSet<&str> = graph
        .lines()
        .map(|line| line.trim_end_matches(" (*)"))
        .collect();
    let crates: Vec<Crate> = lines.into_iter().filter_map(Crate::read).collect();
    let mut findings = versions(&crates, &allowed);
    for one in &crates {
        let Crate {
            name,
            version,
            license,
            place,
        } = one;
        if allowed.deny.contains(name) {
            findings.push(format!("Cargo.lock: {name} is banned by deny.toml"));
        }
        if place.as_ref().is_some_and(|place| place.contains("://")) {
            findings.push(format!(
                "Cargo.lock: {name} {version} is not from crates.io"
            ));
        }
        if !is_licensed(license, &allowed.licenses) {
            findings.push(format!(
                "Cargo.lock: {name} {version} has the licence {license:?}, which deny.toml does not allow"
            ));
        }
    }
    findings
}

/// Crates of several versions without a line that says why, and lines that are not needed any more.
fn versions(crates: &[Crate], allowed: &Allowed) -> Vec<String> {
    let mut versions: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for one in crates {
        versions.entry(&one.name).or_default().insert(&one.version);
    }
    let skipped = |name: &str, version: &str| {
        let mut skips = allowed.skip.iter().filter_map(|it| it.split_once('@'));
        skips.any(|(crate_, of)| crate_ == name && is_of(version, of))
    };
    let mut findings = Vec::new();
    for (name, all) in &versions {
        let rest: Vec<_> = all
            .iter()
            .filter(|it| !skipped(name, it))
            .copied()
            .collect();
        if rest.len() > 1 {
            let rest = rest.join(" and ");
            findings.push(format!(
                "Cargo.lock: {name} is there as {rest}: have one of them, or say in deny.toml who needs the older one"
            ));
        }
    }
    let needless = allowed.skip.iter().filter(|skip| {
        let (name, of) = skip.split_once('@').unwrap_or((skip, ""));
        let all = versions.get(name);
        all.is_none_or(|all| all.len() < 2 || !all.iter().any(|it| is_of(it, of)))
    });
    findings.extend(needless.map(|skip| format!("deny.toml: {skip} is not needed any more")));
    findings
}

/// Whether a version is one of `0.8` or `1`.
fn is_of(version: &str, of: &str) -> bool {
    let rest = version.strip_prefix(of);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// Whether an expression of licences can be fulfilled with those that are allowed.
fn is_licensed(expression: &str, allowed: &[String]) -> bool {
    let spaced = expression
        .replace('/', " OR ")
        .replace('(', " ( ")
        .replace(')', " ) ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut rest = words.as_slice();
    let licensed = either(&mut rest, allowed);
    licensed && rest.is_empty() && !words.is_empty()
}

fn either(rest: &mut &[&str], allowed: &[String]) -> bool {
    let mut good = both(rest, allowed);
    while let ["OR", tail @ ..] = rest {
        *rest = tail;
        good |= both(rest, allowed);
    }
    good
}

fn both(rest: &mut &[&str], allowed: &[String]) -> bool {
    let mut good = one(rest, allowed);
    while let ["AND", tail @ ..] = rest {
        *rest = tail;
        good &= one(rest, allowed);
    }
    good
}

fn one(rest: &mut &[&str], allowed: &[String]) -> bool {
    let (name, tail) = match *rest {
        ["(", tail @ ..] => {
            *rest = tail;
            let good = either(rest, allowed);
            // What is not closed is no licence.
            let closed = matches!(rest, [")", ..]);
            *rest = rest.get(1..).unwrap_or_default();
            return good && closed;
        }
        [name, "WITH", exception, tail @ ..] => (format!("{name} WITH {exception}"), tail),
        [name, tail @ ..] => ((*name).to_owned(), tail),
        [] => return false,
    };
    *rest = tail;
    allowed.contains(&name)
}

// === impl Crate ===

impl Crate {
    fn read(line: &str) -> Option<Self> {
        let (id, license) = line.split_once('|')?;
        let mut words = id.split_whitespace();
        let (name, version) = (words.next()?, words.next()?.strip_prefix('v')?);
        // Macros are marked, too.
        let place = words.find(|word| *word != "(proc-macro)");
        Some(Self {
            name: name.to_owned(),
            version: version.to_owned(),
            license: license.to_owned(),
            place: place.map(str::to_owned),
        })
    }
}

// === impl Allowed ===

impl Allowed {
    /// Reads the lists of `deny.toml`, which have an item a line.
    fn read(text: &str) -> Self {
        let mut read = Self::default();
        let mut list = "";
        for line in text.lines().map(str::trim) {
            if let Some((name, "[")) = line.split_once(" = ") {
                list = name;
            } else if line == "]" {
                list = "";
            }
            let quoted = line.split('"').nth(1).map(str::to_owned);
            match list {
                "skip" if line.starts_with('{') => read.skip.extend(quoted),
                "deny" if line.starts_with('{') => read.deny.extend(quoted),
                "allow" if line.starts_with('"') => read.licenses.extend(quoted),
                _ => {}
            }
        }
        read
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DENY: &str = r#"
[bans]
deny = [
    { crate = "ring", reason = "one is enough" },
]
skip = [
    { crate = "a@0.8", reason = "b needs it" },
]
[licenses]
allow = [
    "Apache-2.0 WITH LLVM-exception",
    "MIT",
]
"#;

    #[test]
    fn forbidden_dependencies_are_found() {
        let good =
            "a v0.8.1|MIT\na v0.9.0 (proc-macro)|MIT\nown v0.0.0 (/own)|MIT\na v0.9.0|MIT (*)\n";
        assert_eq!(findings(good, DENY), [""; 0]);
        for (bad, words) in [
            ("a v0.10.0|MIT", "a is there as 0.10.0 and 0.9.0"),
            ("ring v1.0.0|MIT", "ring is banned"),
            ("b v1.0.0|GPL-3.0", "licence \"GPL-3.0\""),
            (
                "b v1.0.0 (https://example.com/b#1)|MIT",
                "not from crates.io",
            ),
        ] {
            let found = findings(&format!("{good}{bad}"), DENY);
            assert!(found.len() == 1 && found[0].contains(words), "{found:?}");
        }
        let found = findings("a v0.9.0|MIT", DENY);
        assert_eq!(found, ["deny.toml: a@0.8 is not needed any more"]);
    }

    #[test]
    fn licences_are_read_as_expressions() {
        let allowed = Allowed::read(DENY).licenses;
        for (expression, expected) in [
            ("MIT", true),
            ("GPL-3.0 OR MIT", true),
            ("GPL-3.0/MIT", true),
            ("GPL-3.0 AND MIT", false),
            ("(GPL-3.0 OR MIT) AND MIT", true),
            ("(GPL-3.0 OR BSD) AND MIT", false),
            ("Apache-2.0 WITH LLVM-exception OR GPL-3.0", true),
            ("Apache-2.0", false),
            ("(MIT", false),
            ("", false),
        ] {
            assert_eq!(is_licensed(expression, &allowed), expected, "{expression}");
        }
    }
}
