//! What a scrape reads, and which metrics pages for people name: for tests.

use prometheus_client::registry::Registry;

/// What a scrape reads.
pub(crate) fn of(registry: &Registry) -> String {
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, registry).unwrap();
    text
}

/// The names of all metrics that a scrape reads.
pub(crate) fn names(text: &str) -> impl Iterator<Item = &str> {
    let types = text.lines().filter_map(|line| line.strip_prefix("# TYPE "));
    types.map(|rest| rest.split(' ').next().unwrap())
}

/// The metrics with a prefix that pages name: alerts and runbooks.
pub(crate) fn named<'a>(pages: &[&'a str], prefix: &str) -> Vec<&'a str> {
    let words = pages
        .iter()
        .flat_map(|page| page.split(|c: char| !c.is_ascii_alphanumeric() && c != '_'));
    words.filter(|word| word.starts_with(prefix)).collect()
}
