//! Every check that the product is held to is named in a test: by its number in a name (`r01_...`) or in a comment (R01).

use anyhow::Result;

use super::sources;

/// The families of checks and how many each has: rewriting, security, streaming, faults, operators,
/// migrations, conversion.
const FAMILIES: [(char, usize); 7] = [
    ('R', 34),
    ('S', 20),
    ('W', 11),
    ('F', 8),
    ('O', 8),
    ('M', 20),
    ('C', 7),
];

/// The checks that no test names.
pub(super) fn findings(files: &[String]) -> Result<Vec<String>> {
    let mut text = String::new();
    for file in files {
        // This crate's own rules name numbers without testing anything.
        if sources::is_rust(file) && !file.starts_with("xtask/") {
            text.push_str(&sources::read(file)?);
        }
    }
    let missing: Vec<_> = all().filter(|number| !names(&text, number)).collect();
    Ok(match missing.as_slice() {
        [] => Vec::new(),
        missing => vec![format!("no test names {}", missing.join(", "))],
    })
}

fn all() -> impl Iterator<Item = String> {
    FAMILIES
        .into_iter()
        .flat_map(|(family, count)| (1..=count).map(move |number| format!("{family}{number:02}")))
}

/// Whether the number stands in the text as a word, or as a part of a name between underscores.
fn names(text: &str, number: &str) -> bool {
    [number.to_owned(), number.to_lowercase()]
        .iter()
        .any(|spelling| {
            text.match_indices(spelling.as_str()).any(|(at, _)| {
                let before = text[..at].chars().next_back();
                let after = text[at + spelling.len()..].chars().next();
                let apart = |c: Option<char>| c.is_none_or(|c| !c.is_ascii_alphanumeric());
                apart(before) && apart(after)
            })
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_count_as_words_and_in_names() {
        for (text, expected) in [
            ("fn r26_r27_look_alikes()", true),
            ("// R26: look-alikes", true),
            ("(R26, R27)", true),
            ("0xr26f", false),
            ("r260", false),
        ] {
            assert_eq!(names(text, "R26"), expected, "{text}");
        }
    }

    #[test]
    fn the_families_are_complete() {
        let all: Vec<_> = all().collect();
        assert_eq!(all.len(), 108);
        assert!(all.contains(&"F08".to_owned()));
    }
}
