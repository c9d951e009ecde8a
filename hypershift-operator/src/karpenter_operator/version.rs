//! Which release the nodes of a class run: the one of the hosted cluster, or the version that the class names. Pure.

use api::hypershift::v1beta1::networking::NetworkType;
use api::hypershift::v1beta1::platform::PlatformType;
use payload::Version;
use payload::skew::{self, Limits};

use super::classes::{SUPPORTED_SKEW, Update, VERSION_RESOLVED};

/// The release that is to be found for a class.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Wanted {
    /// That of the hosted cluster.
    OfCluster,
    /// The one of this version.
    Version(Version),
}

/// The versions of a hosted cluster.
#[derive(Debug, Clone)]
pub(super) struct Cluster {
    /// The one of its release.
    pub(super) release: Version,
    /// The one that the control plane has rolled out.
    pub(super) completed: Option<Version>,
    pub(super) network: NetworkType,
}

/// What became of the version of a class.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Outcome {
    /// The class names none.
    NotSpecified,
    /// There is a release of this version.
    Resolved(String),
    /// There is none, or none is known.
    Failed(String),
}

/// What a class asks for. The error says what to change.
pub(super) fn wanted(version: Option<&str>, cluster: &Cluster) -> Result<Wanted, String> {
    let Some(text) = version.filter(|it| !it.is_empty()) else {
        return Ok(Wanted::OfCluster);
    };
    let version: Version = text
        .parse()
        .map_err(|error| format!("spec.version: {error}"))?;
    if version == cluster.release {
        return Ok(Wanted::OfCluster);
    }
    Ok(Wanted::Version(version))
}

/// Why nodes cannot have a version. `current` is the one that new nodes have now. A class without a version follows the
/// cluster, whatever it had before.
pub(super) fn refusal(
    wanted: &Wanted,
    current: Option<&Version>,
    cluster: &Cluster,
) -> Option<String> {
    let Wanted::Version(version) = wanted else {
        return None;
    };
    let control_plane = cluster.completed.as_ref().unwrap_or(&cluster.release);
    let of_cluster = skew::Cluster {
        network: cluster.network,
        platform: PlatformType::Aws,
        limits: Limits::Kept,
    };
    let allowed = skew::pool_may_have(version, current, control_plane, &of_cluster);
    let allowed = allowed.and_then(|()| skew::skew(version, control_plane));
    allowed.err().map(|refused| refused.to_string())
}

/// The conditions about the version of a class.
pub(super) fn updates(outcome: &Outcome, refusal: Option<&str>) -> [Update; 2] {
    let resolved = match outcome {
        Outcome::NotSpecified => {
            let message = "the nodes have the version of the hosted cluster";
            Update::new(VERSION_RESOLVED, true, "VersionNotSpecified", message)
        }
        Outcome::Resolved(image) => {
            let message = format!("the nodes have release {image}");
            Update::new(VERSION_RESOLVED, true, "VersionResolved", message)
        }
        Outcome::Failed(problem) => {
            Update::new(VERSION_RESOLVED, false, "ResolutionFailed", problem)
        }
    };
    let skew = match refusal {
        None => {
            let message = "the version is compatible with the control plane";
            Update::new(SUPPORTED_SKEW, true, "AsExpected", message)
        }
        Some(problem) => Update::new(SUPPORTED_SKEW, false, "UnsupportedSkew", problem),
    };
    [resolved, skew]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cluster(completed: &str) -> Cluster {
        Cluster {
            release: "4.20.3".parse().unwrap(),
            completed: Some(completed.parse().unwrap()),
            network: NetworkType::OvnKubernetes,
        }
    }

    #[test]
    fn a_class_has_the_release_of_the_cluster_or_its_own() {
        let own = |version: &str| Ok(Wanted::Version(version.parse().unwrap()));
        for (version, expected) in [
            (None, Ok(Wanted::OfCluster)),
            (Some(""), Ok(Wanted::OfCluster)),
            (Some("4.20.3"), Ok(Wanted::OfCluster)),
            (Some("4.20.1"), own("4.20.1")),
            (Some("4.20.0-rc.1"), own("4.20.0-rc.1")),
        ] {
            assert_eq!(wanted(version, &cluster("4.20.3")), expected, "{version:?}");
        }
        let problem = wanted(Some("4.20"), &cluster("4.20.3")).unwrap_err();
        assert!(problem.starts_with("spec.version: "), "{problem}");
    }

    #[test]
    fn versions_go_with_the_control_plane_and_not_back() {
        for (version, current, completed, expected) in [
            ("4.20.1", None, "4.20.3", None),
            ("4.18.9", None, "4.20.3", None),
            ("4.17.0", None, "4.20.3", None),
            (
                "4.16.0",
                None,
                "4.20.3",
                Some("more than 3 minor versions behind"),
            ),
            ("4.13.0", None, "4.14.0", Some("older than the oldest")),
            (
                "4.20.4",
                None,
                "4.20.3",
                Some("upgrade the control plane first"),
            ),
            // The control plane has not rolled out its release yet.
            (
                "4.20.2",
                None,
                "4.19.8",
                Some("upgrade the control plane first"),
            ),
            ("4.19.1", Some("4.20.1"), "4.20.3", Some("going back")),
            ("4.20.0", Some("4.20.1"), "4.20.3", None),
        ] {
            let wanted = Wanted::Version(version.parse().unwrap());
            let current: Option<Version> = current.map(|it| it.parse().unwrap());
            let found = refusal(&wanted, current.as_ref(), &cluster(completed));
            assert_eq!(found.is_some(), expected.is_some(), "{version}: {found:?}");
            let found = found.unwrap_or_default();
            assert!(found.contains(expected.unwrap_or_default()), "{found}");
        }
        let newer = "4.21.0".parse().unwrap();
        assert_eq!(
            refusal(&Wanted::OfCluster, Some(&newer), &cluster("4.20.3")),
            None
        );
    }

    #[test]
    fn conditions_say_what_became_of_the_version() {
        for (outcome, refusal, expected) in [
            (
                Outcome::NotSpecified,
                None,
                [(true, "VersionNotSpecified"), (true, "AsExpected")],
            ),
            (
                Outcome::Resolved("image".to_owned()),
                None,
                [(true, "VersionResolved"), (true, "AsExpected")],
            ),
            (
                Outcome::Failed("unknown".to_owned()),
                None,
                [(false, "ResolutionFailed"), (true, "AsExpected")],
            ),
            (
                Outcome::Resolved("image".to_owned()),
                Some("too old"),
                [(true, "VersionResolved"), (false, "UnsupportedSkew")],
            ),
        ] {
            let updates = updates(&outcome, refusal);
            let found = updates.each_ref().map(|it| (it.is_met, it.reason.as_str()));
            assert_eq!(found, expected, "{outcome:?}");
        }
    }
}
