//! Which crate may depend on which.

use super::sources::Metadata;

/// What a crate may depend on within the workspace. A crate that is not listed may depend on anything but [`TOOLS`].
const ALLOWED: [(&str, &[&str]); 5] = [
    ("api", &[]),
    ("support", &["api"]),
    ("capi-proxy", &["api", "support"]),
    // Of the proxy only its list of places: what is a group in a body is decided once.
    ("migration", &["api", "capi-proxy", "support"]),
    ("payload", &["api", "support"]),
];
/// Crates that ship nothing: only they may depend on each other.
const TOOLS: [&str; 3] = ["e2e", "load", "xtask"];
/// Single arrows that may not be drawn.
const FORBIDDEN: [(&str, &str); 3] = [
    ("control-plane-operator", "hypershift-operator"),
    ("control-plane-operator", "cli"),
    ("hypershift-operator", "cli"),
];

/// The arrows that are drawn and may not be.
pub(super) fn findings(metadata: &Metadata) -> Vec<String> {
    let ours: Vec<&str> = metadata.packages.iter().map(|p| p.name.as_str()).collect();
    let mut findings = Vec::new();
    for package in &metadata.packages {
        for dependency in &package.dependencies {
            // Tests may look at more than what is shipped does.
            let shipped = dependency.kind.as_deref() != Some("dev");
            let (from, to) = (package.name.as_str(), dependency.name.as_str());
            if shipped && ours.contains(&to) && !may(from, to) {
                findings.push(format!(
                    "{from}/Cargo.toml: {from} may not depend on {to} (xtask/src/tidy/arrows.rs says what may)"
                ));
            }
        }
    }
    findings
}

fn may(from: &str, to: &str) -> bool {
    if TOOLS.contains(&from) {
        return true;
    }
    if TOOLS.contains(&to) || FORBIDDEN.contains(&(from, to)) {
        return false;
    }
    let allowed = ALLOWED.iter().find(|(name, _)| *name == from);
    allowed.is_none_or(|(_, allowed)| allowed.contains(&to))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrows_point_from_what_ships_to_what_it_stands_on() {
        for (from, to, expected) in [
            ("capi-proxy", "api", true),
            ("capi-proxy", "migration", false),
            ("api", "support", false),
            ("control-plane-operator", "hypershift-operator", false),
            ("hypershift-operator", "migration", true),
            ("cli", "e2e", false),
            ("e2e", "cli", true),
        ] {
            assert_eq!(may(from, to), expected, "{from} -> {to}");
        }
    }
}
