//! Paths in Markdown exist: the targets of relative links, and what backticks name as a source or by a top-level directory.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;

use crate::sources;

/// What links and paths may lead to.
#[derive(Debug, Default)]
struct Targets<'f> {
    /// The tracked files, and the directories that they are in.
    paths: BTreeSet<&'f str>,
    /// The anchors of each page's headings.
    anchors: BTreeMap<&'f str, BTreeSet<String>>,
}

/// The links and paths that lead nowhere.
pub(super) fn findings(files: &[String]) -> Result<Vec<String>> {
    let pages = files.iter().filter(|file| sources::is_markdown(file));
    let pages = pages.map(|page| Ok((page.as_str(), sources::read(page)?)));
    let pages: Vec<_> = pages.collect::<Result<_>>()?;
    let targets = Targets::of(files, &pages);
    let mut findings = Vec::new();
    for (page, text) in &pages {
        let missing = targets.missing(page, text).into_iter();
        findings
            .extend(missing.map(|(line, path)| format!("{page}:{line}: {path} does not exist")));
    }
    Ok(findings)
}

// === impl Targets ===

impl<'f> Targets<'f> {
    fn of(files: &'f [String], pages: &[(&'f str, String)]) -> Self {
        let mut paths = BTreeSet::from([""]);
        for file in files {
            let directories = file.match_indices('/').map(|(at, _)| &file[..at]);
            paths.extend(directories.chain([file.as_str()]));
        }
        let anchors = pages.iter().map(|(page, text)| (*page, anchors(text)));
        let anchors = anchors.collect();
        Self { paths, anchors }
    }

    /// Line numbers from one, and the paths of a page that do not exist.
    fn missing<'t>(&self, page: &str, text: &'t str) -> Vec<(usize, &'t str)> {
        let lines = prose(text);
        let missing = lines.map(|(number, line)| (number, self.missing_in(page, line)));
        let missing =
            missing.flat_map(|(number, paths)| paths.into_iter().map(move |it| (number, it)));
        missing.collect()
    }

    fn missing_in<'t>(&self, page: &str, line: &'t str) -> Vec<&'t str> {
        let mut missing = Vec::new();
        for (index, part) in line.split('`').enumerate() {
            if index % 2 == 1 {
                missing.extend(Some(part).filter(|code| !self.has_code(page, code)));
            } else {
                missing.extend(links(part).filter(|link| !self.has_link(page, link)));
            }
        }
        missing
    }

    /// Whether a relative link leads to a file or directory, and to a heading, if it names one.
    fn has_link(&self, page: &str, link: &str) -> bool {
        let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
        let target = if path.is_empty() {
            page.to_owned()
        } else {
            resolve(page, path)
        };
        let anchors = self.anchors.get(target.as_str());
        self.has(&target) && (anchor.is_empty() || anchors.is_none_or(|it| it.contains(anchor)))
    }

    /// Whether code names a path that exists, or no path. Pages shorten the paths of sources where their directory is
    /// clear.
    fn has_code(&self, page: &str, code: &str) -> bool {
        let is_path = |c: char| c.is_ascii_alphanumeric() || "_./-".contains(c);
        let is_source = sources::is_rust(code);
        let first = code.split_once('/').map(|(first, _)| first);
        let is_named = is_source || first.is_some_and(|it| !it.is_empty() && self.has(it));
        if !is_named || !code.chars().all(is_path) {
            return true;
        }
        let ends = |path: &&str| path.strip_suffix(code).is_some_and(|it| it.ends_with('/'));
        self.has(code.trim_end_matches('/'))
            || self.has(&resolve(page, code))
            || (is_source && self.paths.iter().any(ends))
    }

    fn has(&self, path: &str) -> bool {
        self.paths.contains(path)
    }
}

/// The lines outside of code blocks, which are examples, with their numbers from one.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut is_code = false;
    let lines = text.lines().enumerate();
    lines.filter_map(move |(index, line)| {
        if line.trim_start().starts_with("```") {
            is_code = !is_code;
            return None;
        }
        (!is_code).then_some((index + 1, line))
    })
}

/// The anchors of headings, as GitHub makes them.
fn anchors(text: &str) -> BTreeSet<String> {
    let headings = prose(text).filter(|(_, line)| line.starts_with('#'));
    let titles = headings.map(|(_, line)| line.trim_start_matches('#').trim().to_lowercase());
    let is_kept = |c: &char| c.is_alphanumeric() || "-_ ".contains(*c);
    titles
        .map(|title| title.chars().filter(is_kept).collect::<String>())
        .map(|title| title.replace(' ', "-"))
        .collect()
}

/// The relative targets of links.
fn links(text: &str) -> impl Iterator<Item = &str> {
    let targets = text.split("](").skip(1);
    let targets = targets.filter_map(|rest| Some(rest.split_once(')')?.0));
    targets.filter(|target| !target.contains(':'))
}

/// A path relative to a page, from the root of the workspace.
fn resolve(page: &str, path: &str) -> String {
    let mut parts: Vec<_> = page.split('/').collect();
    parts.pop();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    parts.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn missing(page: &str, text: &str) -> Vec<(usize, String)> {
        let files = [
            "README.md",
            "api/src/group.rs",
            "docs/operator.md",
            "migration/src/lib.rs",
            "operator/src/migration/control.rs",
        ];
        let files = files.map(str::to_owned);
        let operator = "# Operator\n## The `start` of it\n```\n# no heading\n```\n";
        let pages = [
            ("README.md", "# Project\n".to_owned()),
            ("docs/operator.md", operator.to_owned()),
        ];
        let missing = Targets::of(&files, &pages).missing(page, text).into_iter();
        missing
            .map(|(line, path)| (line, path.to_owned()))
            .collect()
    }

    fn check(page: &str, line: &str, expected: &[&str]) {
        let expected: Vec<_> = expected.iter().map(|it| (1, (*it).to_owned())).collect();
        assert_eq!(missing(page, line), expected, "{page}: {line}");
    }

    #[test]
    fn links_lead_to_files_directories_and_headings() {
        let (top, below) = ("README.md", "docs/operator.md");
        for (page, line, expected) in [
            (
                top,
                "[a](docs/operator.md) [b](docs) [`c`](#project)",
                &[][..],
            ),
            (top, "[`a`](docs/gone.md#start)", &["docs/gone.md#start"]),
            (top, "[a](docs/operator.md#the-start-of-it)", &[]),
            (
                top,
                "[a](#gone), [b](docs/operator.md#no-heading)",
                &["#gone", "docs/operator.md#no-heading"],
            ),
            (below, "[a](../README.md) [b](operator.md) [c](..)", &[]),
            (below, "[a](README.md)", &["README.md"]),
            (
                top,
                "[a](https://example.com/x) [b](mailto:a@example.com)",
                &[],
            ),
            (top, "`[a-z](gone.md)`", &[]),
        ] {
            check(page, line, expected);
        }
    }

    #[test]
    fn paths_in_backticks_exist() {
        for (line, expected) in [
            (
                "`api/src/group.rs`, `group.rs`, `api/src/`, `docs`",
                &[][..],
            ),
            ("`migration/control.rs` of the operator", &[]),
            ("`api/src/gone.rs`", &["api/src/gone.rs"]),
            ("`gone.rs`, `up.rs`", &["gone.rs", "up.rs"]),
            ("`docs/gone/`", &["docs/gone/"]),
            ("`clusters/a-b`, `/livez`, `api::group`, `docs/*.md`", &[]),
        ] {
            check("README.md", line, expected);
        }
    }

    #[test]
    fn code_blocks_are_not_checked() {
        let text = "```\n[a](gone.md) `gone.rs`\n```\n\n`gone.rs`\n";
        assert_eq!(missing("README.md", text), [(5, "gone.rs".to_owned())]);
    }
}
