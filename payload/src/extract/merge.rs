//! Merges what layers have, from the top down: the image as a container sees it. Pure.

use std::collections::{BTreeMap, BTreeSet};

use super::{Found, Hidden, Pattern, Stored, is_below};

/// The most links in a row that are followed.
const MOST_HOPS: usize = 8;

/// The wanted files of the layers so far.
#[derive(Debug, Default)]
pub(crate) struct Merge {
    files: BTreeMap<String, Stored>,
    links: BTreeMap<String, String>,
    /// Paths that are removed from the layers below, with everything below them.
    removed: BTreeSet<String>,
    /// Directories that are emptied in the layers below.
    emptied: BTreeSet<String>,
}

/// What the links of an image lead to.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Links {
    /// All that can be followed were: these are the files.
    Followed(BTreeMap<String, Stored>),
    /// Wanted files are links to these paths, which have to be read, too.
    Open(Vec<Pattern>),
}

// === impl Merge ===

impl Merge {
    /// Adds the next layer below.
    pub(crate) fn add(&mut self, layer: Found) {
        let Found {
            mut files,
            mut links,
            hidden,
        } = layer;
        files.retain(|path, _| !self.is_hidden(path) && !self.is_directory(path));
        links.retain(|path, _| !self.is_hidden(path) && !self.is_directory(path));
        self.files.extend(files);
        self.links.extend(links);
        for hidden in hidden {
            match hidden {
                Hidden::Tree(path) => self.removed.insert(path),
                Hidden::Below(directory) => self.emptied.insert(directory),
            };
        }
    }

    /// Whether layers below cannot change what the image has at a pattern.
    pub(crate) fn is_decided(&self, pattern: &Pattern) -> bool {
        if pattern.is_tree {
            return self.emptied.contains(&pattern.path) || self.is_hidden(&pattern.path);
        }
        self.is_hidden(&pattern.path)
    }

    /// Follows links among the files, for a caller that wants these patterns.
    pub(crate) fn follow(self, wanted: &[Pattern]) -> Links {
        let Self { files, links, .. } = self;
        let mut all = files.clone();
        let mut open = Vec::new();
        for path in links.keys() {
            match end(path, &files, &links) {
                Ok(stored) => {
                    all.insert(path.clone(), stored.clone());
                }
                // A link below a directory may lead anywhere; it is not a file that was requested by name.
                Err(Some(target)) if wanted.contains(&Pattern::file(path.as_str())) => {
                    let pattern = Pattern::file(target);
                    if !wanted.contains(&pattern) && !open.contains(&pattern) {
                        open.push(pattern);
                    }
                }
                Err(_) => {}
            }
        }
        if open.is_empty() {
            return Links::Followed(all);
        }
        Links::Open(open)
    }

    /// Whether the layers so far have something else at this path, or above it. An image chooses how many paths it has, so
    /// the time depends on the length of this one only.
    fn is_hidden(&self, path: &str) -> bool {
        let mut at = path;
        loop {
            if self.files.contains_key(at)
                || self.links.contains_key(at)
                || self.removed.contains(at)
            {
                return true;
            }
            let Some((directory, _)) = at.rsplit_once('/') else {
                return self.emptied.contains("");
            };
            if self.emptied.contains(directory) {
                return true;
            }
            at = directory;
        }
    }

    /// Whether the layers so far have files below this path.
    fn is_directory(&self, path: &str) -> bool {
        let below = format!("{path}/");
        let file = self.files.range(below.clone()..).next().map(|(at, _)| at);
        let link = self.links.range(below..).next().map(|(at, _)| at);
        [file, link]
            .into_iter()
            .flatten()
            .any(|at| is_below(at, path))
    }
}

/// The file at the end of a link; else the path that is not known, if the links do not go round in circles.
fn end<'a>(
    path: &str,
    files: &'a BTreeMap<String, Stored>,
    links: &'a BTreeMap<String, String>,
) -> Result<&'a Stored, Option<&'a str>> {
    let Some(mut target) = links.get(path) else {
        return Err(None);
    };
    for _ in 0..MOST_HOPS {
        if let Some(stored) = files.get(target) {
            return Ok(stored);
        }
        match links.get(target) {
            Some(next) => target = next,
            None => return Err(Some(target.as_str())),
        }
    }
    Err(None)
}
