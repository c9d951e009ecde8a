//! The tags of machines: those of the class, and those of the hosted cluster, which come first. Pure.

use std::collections::BTreeMap;

use api::hypershift::v1beta1::platform::aws::{AwsTagOverridePolicy, HostedClusterAwsResourceTag};

/// Keys that Karpenter sets itself, and by which it finds what it has made: it refuses a class that has one.
const RESTRICTED: [&str; 4] = [
    "eks:eks-cluster-name",
    "karpenter.k8s.aws/ec2nodeclass",
    "karpenter.sh/nodeclaim",
    "karpenter.sh/nodepool",
];
/// Prefixes of such keys, and of those that AWS sets.
const RESTRICTED_PREFIXES: [&str; 2] = ["kubernetes.io/cluster", "aws:"];

/// The tags of machines.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Tags {
    pub(super) all: BTreeMap<String, String>,
    /// Keys of the class for which the hosted cluster has another value, which takes precedence.
    pub(super) conflicts: Vec<String>,
}

/// Merges the tags of a class with those of its cluster.
pub(super) fn merged(
    class: &BTreeMap<String, String>,
    cluster: &[HostedClusterAwsResourceTag],
) -> Tags {
    let of_cluster = cluster.iter().filter(|tag| !is_restricted(&tag.key));
    let mut tags = Tags {
        all: of_cluster
            .map(|tag| (tag.key.clone(), tag.value.clone()))
            .collect(),
        conflicts: Vec::new(),
    };
    for (key, value) in class.iter().filter(|(key, _)| !is_restricted(key)) {
        let mut of_cluster = cluster.iter();
        let other = of_cluster.find(|other| other.key == *key);
        let is_free = other.is_none_or(|other| {
            other.value == *value || other.override_policy == Some(AwsTagOverridePolicy::Allow)
        });
        if is_free {
            tags.all.insert(key.clone(), value.clone());
        } else {
            tags.conflicts.push(key.clone());
        }
    }
    tags
}

fn is_restricted(key: &str) -> bool {
    RESTRICTED.contains(&key)
        || RESTRICTED_PREFIXES
            .iter()
            .any(|prefix| key.starts_with(prefix))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tag(
        key: &str,
        value: &str,
        policy: Option<AwsTagOverridePolicy>,
    ) -> HostedClusterAwsResourceTag {
        HostedClusterAwsResourceTag {
            key: key.to_owned(),
            value: value.to_owned(),
            override_policy: policy,
        }
    }

    #[test]
    fn tags_of_the_cluster_take_precedence_unless_it_allows_others() {
        let allow = Some(AwsTagOverridePolicy::Allow);
        for (name, class, cluster, expected, conflicts) in [
            ("of the class", ("a", "1"), vec![], vec![("a", "1")], vec![]),
            (
                "of both",
                ("a", "1"),
                vec![tag("b", "2", None)],
                vec![("a", "1"), ("b", "2")],
                vec![],
            ),
            (
                "the same",
                ("a", "1"),
                vec![tag("a", "1", None)],
                vec![("a", "1")],
                vec![],
            ),
            (
                "another value",
                ("a", "1"),
                vec![tag("a", "2", None)],
                vec![("a", "2")],
                vec!["a"],
            ),
            (
                "another value that is allowed",
                ("a", "1"),
                vec![tag("a", "2", allow)],
                vec![("a", "1")],
                vec![],
            ),
            (
                "restricted keys of the cluster",
                ("a", "1"),
                vec![
                    tag("kubernetes.io/cluster/one-x7k2p", "owned", None),
                    tag("karpenter.sh/nodepool", "x", None),
                ],
                vec![("a", "1")],
                vec![],
            ),
            (
                "restricted keys of the class",
                ("karpenter.sh/nodeclaim", "x"),
                vec![tag("b", "2", None)],
                vec![("b", "2")],
                vec![],
            ),
            ("keys of AWS", ("aws:name", "x"), vec![], vec![], vec![]),
        ] {
            let class = BTreeMap::from([(class.0.to_owned(), class.1.to_owned())]);
            let found = merged(&class, &cluster);
            let all = found
                .all
                .iter()
                .map(|(key, value)| (key.as_str(), value.as_str()));
            assert_eq!(all.collect::<Vec<_>>(), expected, "{name}");
            assert_eq!(found.conflicts, conflicts, "{name}");
        }
    }
}
