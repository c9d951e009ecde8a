//! Feature sets of the API: which fields and kinds its definitions have.
//!
//! There is one set of Rust types. `schema::tech_preview` marks what only [`FeatureSet::TechPreviewNoUpgrade`] has, and
//! the definitions of the default set are made without it. This is about a management cluster; the feature set of a
//! hosted cluster is in its `spec.configuration.featureGate`.

use std::fmt;
use std::str::FromStr;

/// The environment variable with the name of an operator's feature set.
pub const FEATURE_SET_ENV: &str = "HYPERSHIFT_FEATURESET";

/// A feature set. A later one has everything of those before it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FeatureSet {
    /// What is supported.
    #[default]
    Default,
    /// Also the technology preview. Objects that use it are lost when the default set is installed again.
    TechPreviewNoUpgrade,
}

/// A name that no feature set has.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{name:?} is not a feature set: use Default or TechPreviewNoUpgrade")]
pub struct UnknownFeatureSet {
    /// The name.
    pub name: String,
}

// === impl FeatureSet ===

impl FeatureSet {
    /// All feature sets, the smallest first.
    pub const ALL: [Self; 2] = [Self::Default, Self::TechPreviewNoUpgrade];

    /// Its name in annotations and environment variables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Default => "Default",
            Self::TechPreviewNoUpgrade => "TechPreviewNoUpgrade",
        }
    }

    /// Whether it has everything of another one.
    pub fn includes(self, other: Self) -> bool {
        self >= other
    }
}

impl fmt::Display for FeatureSet {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

impl FromStr for FeatureSet {
    type Err = UnknownFeatureSet;

    fn from_str(name: &str) -> Result<Self, UnknownFeatureSet> {
        let found = Self::ALL.into_iter().find(|set| set.name() == name);
        found.ok_or_else(|| UnknownFeatureSet {
            name: name.to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_and_written() {
        for set in FeatureSet::ALL {
            assert_eq!(set.to_string().parse(), Ok(set));
        }
        for name in ["", "default", "CustomNoUpgrade"] {
            let refused = name.parse::<FeatureSet>().unwrap_err();
            assert_eq!(refused.name, name);
        }
    }

    #[test]
    fn a_later_set_includes_those_before_it() {
        let [default, preview] = FeatureSet::ALL;
        assert!(preview.includes(default) && preview.includes(preview));
        assert!(default.includes(default) && !default.includes(preview));
    }
}
