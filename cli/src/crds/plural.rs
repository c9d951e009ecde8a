//! The plural of a kind, as stock controllers compute it.
//!
//! Cluster API finds the CRD of a reference by name, `<plural>.<group>`, and computes the plural with the English rules
//! of the Go library `github.com/gobuffalo/flect`. The tables beside this file are the rules of its v1.0.3 (MIT
//! licence) for lower-case words; a kind that is nothing but an acronym is outside of them.

/// A line of the table of irregular words.
struct Word {
    singular: &'static str,
    plural: &'static str,
    /// Counts only as a whole word, not as the end of a longer one.
    exact: bool,
    /// The plural is not recognised as one.
    one_way: bool,
}

/// The plural of `kind`, lower case.
///
/// ```
/// assert_eq!(cli::crds::plural::plural("IPAddress"), "ipaddresses");
/// assert_eq!(cli::crds::plural::plural("AWSClusterRoleIdentity"), "awsclusterroleidentities");
/// ```
pub fn plural(kind: &str) -> String {
    let word = kind.to_lowercase();
    irregular(&word)
        .or_else(|| by_ending(&word))
        .unwrap_or_else(|| regular(&word))
}

fn irregular(word: &str) -> Option<String> {
    words()
        .find(|entry| entry.singular == word)
        .map(|entry| entry.plural.to_owned())
        .or_else(|| {
            words()
                .any(|entry| !entry.one_way && entry.plural == word)
                .then(|| word.to_owned())
        })
}

fn by_ending(word: &str) -> Option<String> {
    // The library puts later words before earlier ones, and all words before the endings.
    let mut compounds: Vec<_> = words()
        .filter(|entry| !entry.exact)
        .map(|entry| (entry.singular, entry.plural))
        .collect();
    compounds.reverse();
    compounds
        .into_iter()
        .chain(endings())
        .find_map(|(singular, plural)| replace_ending(word, singular, plural))
}

fn replace_ending(word: &str, singular: &str, plural: &str) -> Option<String> {
    if word.ends_with(plural) {
        return Some(word.to_owned());
    }
    let stem = word.strip_suffix(singular)?;
    Some(format!("{stem}{plural}"))
}

fn regular(word: &str) -> String {
    if word.ends_with('s') {
        return word.to_owned();
    }
    format!("{word}s")
}

fn words() -> impl Iterator<Item = Word> {
    rows(include_str!("plural/words.txt")).map(|(singular, plural, line)| Word {
        singular,
        plural,
        exact: line.contains(" exact"),
        one_way: line.contains(" oneway"),
    })
}

fn endings() -> impl Iterator<Item = (&'static str, &'static str)> {
    rows(include_str!("plural/endings.txt")).map(|(singular, plural, _)| (singular, plural))
}

fn rows(text: &'static str) -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
    text.lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| {
            let mut fields = line.split(' ');
            Some((fields.next()?, fields.next()?, line))
        })
}

#[cfg(test)]
mod tests;
