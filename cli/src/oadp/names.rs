//! Names of objects of Velero. Pure, but for the random suffix.

use uuid::Uuid;

use crate::create::text::is_name;

/// Velero puts names of its objects into labels, whose values have at most so many characters.
const LONGEST: usize = 63;
/// Length of a suffix.
const SUFFIX: usize = 6;

/// A name that users give: a DNS subdomain with at most [`LONGEST`] characters.
pub(super) fn checked(name: &str) -> Result<String, String> {
    if name.len() > LONGEST {
        return Err(format!(
            "it has {} characters: use at most {LONGEST}",
            name.len()
        ));
    }
    if !name.split('.').all(is_name) {
        return Err(
            "use lower-case letters, digits and dashes, and dots between such parts; each part begins and ends with a \
             letter or a digit"
                .to_owned(),
        );
    }
    Ok(name.to_owned())
}

/// A name for an object of a hosted cluster that ends with a suffix.
pub(super) fn of_cluster(namespace: &str, name: &str, suffix: &str) -> String {
    let base: String = format!("{name}-{namespace}")
        .chars()
        .take(LONGEST - SUFFIX - 1)
        .collect();
    let base = base.trim_end_matches(['-', '.']);
    format!("{base}-{suffix}")
}

/// A suffix that differs each time.
pub(super) fn random() -> String {
    digits(Uuid::new_v4())
}

/// A suffix that is always the same for a hosted cluster.
pub(super) fn stable(namespace: &str, name: &str) -> String {
    let whole = format!("{namespace}/{name}");
    digits(Uuid::new_v5(&Uuid::NAMESPACE_DNS, whole.as_bytes()))
}

fn digits(uuid: Uuid) -> String {
    uuid.simple().to_string().chars().take(SUFFIX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_dns_subdomains_that_fit_into_labels() {
        let longest = "x".repeat(LONGEST);
        let longer = "x".repeat(LONGEST + 1);
        for (name, expected) in [
            ("a", true),
            ("nightly-1.a", true),
            (longest.as_str(), true),
            (longer.as_str(), false),
            ("", false),
            ("A", false),
            ("a_b", false),
            ("-a", false),
            ("a.", false),
            ("a..b", false),
            ("a/b", false),
        ] {
            assert_eq!(checked(name).is_ok(), expected, "{name}");
        }
    }

    #[test]
    fn names_of_clusters_are_shortened_and_stay_valid() {
        assert_eq!(of_cluster("clusters", "a", "012abc"), "a-clusters-012abc");
        let dots = format!("{}.a", "x".repeat(55));
        for cluster in [&"x".repeat(80), &dots] {
            let name = of_cluster("clusters", cluster, &random());
            assert!(name.len() <= LONGEST, "{name}");
            checked(&name).unwrap();
        }
        assert_ne!(random(), random());
    }

    #[test]
    fn stable_suffixes_distinguish_clusters() {
        assert_eq!(stable("clusters", "a"), stable("clusters", "a"));
        assert_ne!(stable("clusters-a", "b"), stable("clusters", "a-b"));
        assert_eq!(stable("clusters", "a").len(), SUFFIX);
    }
}
