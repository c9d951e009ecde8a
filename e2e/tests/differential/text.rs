//! What programs print, without the differences that may be.

use crate::differential::allowed::{Normalizer, is_age, is_time, without_numbers};

/// Takes the allowed differences out of a program's output. Columns are joined by one space, since their width follows
/// the ages and the versions in them.
pub(crate) fn normalized(text: &str, server: &str, directory: &str) -> String {
    let text = text
        .replace(server, "<server>")
        .replace(directory, "<directory>");
    let text = Normalizer::default().without_uids(&text);
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

fn line(line: &str) -> String {
    let indent = &line[..line.len() - line.trim_start().len()];
    let mut words: Vec<String> = line.split_whitespace().map(word).collect();
    if let Some(at) = version_at(&words) {
        words[at] = without_numbers(&words[at]);
    }
    // The head of a difference: a file and its time.
    if matches!(words.first().map(String::as_str), Some("---" | "+++")) {
        words.truncate(2);
    }
    format!("{indent}{}", words.join(" "))
}

fn word(word: &str) -> String {
    let bare = word.trim_matches(['"', ',', '(', ')']);
    if is_age(bare) || is_time(bare) {
        return word.replace(bare, "<time>");
    }
    // Directories of kubectl diff.
    if ["LIVE-", "MERGED-"].iter().any(|name| word.contains(name)) {
        return without_numbers(word);
    }
    word.to_owned()
}

/// Where a line has a resource version.
fn version_at(words: &[String]) -> Option<usize> {
    let words: Vec<&str> = words
        .iter()
        .map(|word| word.trim_matches(['"', ':']))
        .collect();
    match words.as_slice() {
        ["resourceVersion", _, ..] => Some(1),
        ["Resource", "Version", _, ..] => Some(2),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_all_but_allowed_differences() {
        for (text, expected) in [
            ("NAME   AGE\nm      5s", "NAME AGE\nm <time>"),
            ("  resourceVersion: \"123\"", "  resourceVersion: \"#\""),
            (
                "    \"resourceVersion\": \"123\",",
                "    \"resourceVersion\": \"#\",",
            ),
            ("Resource Version:  123", "Resource Version: #"),
            (
                "  creationTimestamp: \"2026-01-02T03:04:05Z\"",
                "  creationTimestamp: \"<time>\"",
            ),
            (
                "Normal  R  2s (x3 over 5m)  src",
                "Normal R <time> (x3 over <time>) src",
            ),
            (
                "--- /t/LIVE-12/a\t2026-01-01 1:2",
                "--- <directory>/LIVE-#/a",
            ),
            ("at http://x:1/apis", "at <server>/apis"),
            ("replicas: 123", "replicas: 123"),
        ] {
            assert_eq!(normalized(text, "http://x:1", "/t"), expected, "{text}");
        }
    }
}
