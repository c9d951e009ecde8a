//! Versions of releases, and how those of major version 5 line up with those of 4.

use std::fmt;
use std::str::FromStr;

/// The first minor version of 5 is what the 23rd of 4 would have been.
const MINOR_OF_5_0: u64 = 23;
/// Kubernetes 1.(x + 13) is in release 4.x.
const KUBERNETES_AHEAD: u64 = 13;

/// The version of a release, for example `4.22.3`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version(semver::Version);

/// A minor version, counted as one of major version 4: that of 4.23 and that of 5.0 are the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Minor(u64);

/// An invalid version.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{given:?} is not the version of a release: it should look like 4.22.3")]
pub struct InvalidVersion {
    given: String,
}

// === impl Version ===

impl Version {
    /// Its minor version, as it is compared.
    pub fn minor(&self) -> Minor {
        match self.0.major {
            5.. => Minor(
                (self.0.major - 5)
                    .saturating_mul(1000)
                    .saturating_add(MINOR_OF_5_0)
                    .saturating_add(self.0.minor),
            ),
            4 => Minor(self.0.minor),
            // Releases of 3 and before have nothing in common with those of today: older than all of them.
            _ => Minor(0),
        }
    }

    /// The minor version of Kubernetes in it.
    pub fn kubernetes(&self) -> semver::Version {
        self.minor().kubernetes()
    }

    /// The part after the minor version, in the order of releases of one minor version.
    pub(crate) fn patch(&self) -> (u64, &semver::Prerelease) {
        (self.0.patch, &self.0.pre)
    }

    /// The version itself.
    pub fn as_semver(&self) -> &semver::Version {
        &self.0
    }
}

impl FromStr for Version {
    type Err = InvalidVersion;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let version = semver::Version::parse(text);
        version.map(Self).map_err(|_| InvalidVersion {
            given: text.to_owned(),
        })
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

// === impl Minor ===

impl Minor {
    /// The oldest that is supported.
    pub const OLDEST: Self = Self(14);
    /// The newest that is supported: 5.1.
    pub const NEWEST: Self = Self(24);

    /// 4.`minor`, or what it is called since.
    pub const fn of_4(minor: u64) -> Self {
        Self(minor)
    }

    /// All that are supported, the newest first, under each of their names: `5.1`, `5.0`, `4.23`, `4.22` and so on.
    pub fn supported() -> Vec<String> {
        let (oldest, newest) = (Self::OLDEST.0, Self::NEWEST.0);
        let fives = (MINOR_OF_5_0..=newest).rev();
        let fours = (oldest..=MINOR_OF_5_0).rev();
        fives
            .map(|minor| format!("5.{}", minor - MINOR_OF_5_0))
            .chain(fours.map(|minor| format!("4.{minor}")))
            .collect()
    }

    /// Whether it is supported.
    pub fn is_supported(self) -> bool {
        (Self::OLDEST..=Self::NEWEST).contains(&self)
    }

    /// How many minor versions `other` is behind; nothing if it is ahead.
    pub fn behind(self, other: Self) -> Option<u64> {
        self.0.checked_sub(other.0)
    }

    /// The one that is `minors` older.
    pub(crate) fn back(self, minors: u64) -> Self {
        Self(self.0.saturating_sub(minors))
    }

    /// The Kubernetes that belongs to it, without a patch version.
    pub fn kubernetes(self) -> semver::Version {
        semver::Version::new(1, self.0.saturating_add(KUBERNETES_AHEAD), 0)
    }
}

impl fmt::Display for Minor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.checked_sub(MINOR_OF_5_0) {
            Some(minor) => write!(f, "5.{minor}"),
            None => write!(f, "4.{}", self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn version(text: &str) -> Version {
        text.parse().unwrap()
    }

    #[test]
    fn version_five_follows_version_four() {
        for (text, minor, kubernetes) in [
            ("4.14.0", 14, "1.27.0"),
            ("4.22.7", 22, "1.35.0"),
            ("4.23.0", 23, "1.36.0"),
            ("5.0.0-ec.3", 23, "1.36.0"),
            ("5.1.2", 24, "1.37.0"),
        ] {
            let version = version(text);
            assert_eq!(version.minor(), Minor(minor), "{text}");
            assert_eq!(version.kubernetes().to_string(), kubernetes, "{text}");
            assert_eq!(version.to_string(), text);
        }
    }

    #[test]
    fn supported_versions_are_listed_newest_first() {
        let supported = Minor::supported();
        assert_eq!(supported[..4], ["5.1", "5.0", "4.23", "4.22"]);
        assert_eq!(supported.last().unwrap(), "4.14");
        assert_eq!(supported.len(), 12);
        for name in supported {
            assert!(version(&format!("{name}.9")).minor().is_supported());
        }
        for beyond in ["4.13.58", "5.2.0", "3.11.0", "6.0.0", "4.25.0"] {
            assert!(!version(beyond).minor().is_supported(), "{beyond}");
        }
    }

    #[test]
    fn other_texts_are_refused() {
        for text in ["", "4.22", "v4.22.0", "4.22.0.1", "latest"] {
            let error = text.parse::<Version>().unwrap_err();
            assert!(error.to_string().contains("4.22.3"), "{text}: {error}");
        }
    }

    proptest! {
        #[test]
        fn newer_releases_never_have_an_older_minor(a in 4_u64..7, b in 4_u64..7, x in 0_u64..30, y in 0_u64..30) {
            // 4.24 and later never were: 5.1 took their place.
            prop_assume!((a > 4 || x <= 23) && (b > 4 || y <= 23));
            let (older, newer) = (version(&format!("{a}.{x}.0")), version(&format!("{b}.{y}.0")));
            if older <= newer {
                prop_assert!(older.minor() <= newer.minor());
            }
        }
    }
}
