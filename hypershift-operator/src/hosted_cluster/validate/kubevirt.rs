//! KubeVirt of the infrastructure cluster: whether it is installed and recent enough.

use std::fmt;

use api::annotations::node_pool::ALLOW_UNSUPPORTED_KUBEVIRT_RHCOS_VARIANTS;

use super::Problems;
use crate::facts::{Facts, Virtualization};
use crate::platform::kubevirt::infrastructure::external;

/// The oldest supported KubeVirt.
const KUBEVIRT: Version = Version(1, 0, 0);
/// The oldest Kubernetes that it may run on.
const KUBERNETES: Version = Version(1, 27, 0);

/// Major, minor and patch. A release candidate counts as its release.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Version(u64, u64, u64);

/// Problems of the infrastructure cluster, and of what is generated for the cluster.
pub(super) fn problems(facts: &Facts) -> Problems {
    let mut problems = versions(facts);
    problems.extend(facts.no_base_domain.clone());
    problems.extend(facts.no_encryption_key.clone());
    problems
}

fn versions(facts: &Facts) -> Problems {
    let Some(found) = &facts.virtualization else {
        return Problems::new();
    };
    let place = place(facts);
    match found {
        Virtualization::Unusable(why) => vec![format!(
            "spec.platform.kubevirt.credentials.infraKubeConfigSecret: the kubeconfig of {} {why}",
            secret(facts)
        )],
        Virtualization::Unreachable(why) => vec![format!(
            "failed to get the versions of {place}: {why}: check that its API server is reachable and accepts the credentials"
        )],
        Virtualization::Absent | Virtualization::Found { .. } if allows_any_version(facts) => {
            Problems::new()
        }
        Virtualization::Absent => vec![format!(
            "{place} has no KubeVirt: install KubeVirt {KUBEVIRT} or newer there, or name another cluster in \
             spec.platform.kubevirt.credentials.infraKubeConfigSecret when the cluster is created"
        )],
        Virtualization::Found {
            kubernetes,
            kubevirt,
        } => [
            too_old(&place, "KubeVirt", kubevirt, KUBEVIRT),
            too_old(&place, "Kubernetes", kubernetes, KUBERNETES),
        ]
        .concat(),
    }
}

/// Whether an annotation skips the check of versions. Its value decides, other than on a NodePool.
fn allows_any_version(facts: &Facts) -> bool {
    let key = ALLOW_UNSUPPORTED_KUBEVIRT_RHCOS_VARIANTS.key();
    facts.annotations().get(key).is_some_and(|it| it == "true")
}

/// The infrastructure cluster, as text for messages.
fn place(facts: &Facts) -> String {
    match external(facts) {
        None => "the management cluster, which runs the virtual machines (spec.platform.kubevirt),"
            .to_owned(),
        Some(_) => format!(
            "the infrastructure cluster of {} (spec.platform.kubevirt.credentials.infraKubeConfigSecret)",
            secret(facts)
        ),
    }
}

fn secret(facts: &Facts) -> String {
    let (name, key) = external(facts).unwrap_or_default();
    format!("Secret {}/{name}, key {key},", facts.id.namespace)
}

fn too_old(place: &str, what: &str, found: &str, oldest: Version) -> Problems {
    match Version::read(found) {
        Some(version) if version >= oldest => Problems::new(),
        Some(_) => vec![format!(
            "{place} has {what} {found}: update it to {oldest} or newer"
        )],
        None => vec![format!(
            "{place} reports version {found:?} of {what}, which is not a valid version: {oldest} or newer is required"
        )],
    }
}

// === impl Version ===

impl Version {
    /// Parses versions as reported by servers: `v1.27.3`, `1.0.0-rc.1`, `v1.31.2+vendor`.
    fn read(text: &str) -> Option<Self> {
        let text = text.strip_prefix('v').unwrap_or(text);
        let numbers = text.split(['-', '+']).next()?;
        let mut numbers = numbers.split('.').map(|part| part.parse::<u64>().ok());
        let (major, minor) = (numbers.next()??, numbers.next()??);
        let patch = numbers.next().unwrap_or(Some(0))?;
        numbers
            .next()
            .is_none()
            .then_some(Self(major, minor, patch))
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.0, self.1, self.2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn server_versions_are_parsed() {
        for (text, expected) in [
            ("v1.27.0", Some(Version(1, 27, 0))),
            ("1.0.0", Some(Version(1, 0, 0))),
            ("v1.0.0-rc.1", Some(Version(1, 0, 0))),
            ("v1.31.2+k3s1", Some(Version(1, 31, 2))),
            ("v1.27", Some(Version(1, 27, 0))),
            ("v0.59.2-99-gabcdef", Some(Version(0, 59, 2))),
            ("", None),
            ("devel", None),
            ("v1", None),
            ("v1.2.3.4", None),
            ("v1.x.0", None),
        ] {
            assert_eq!(Version::read(text), expected, "{text}");
        }
    }
}
