//! AutoNode: Karpenter on AWS.

use api::annotations::cluster::DISABLE_IGNITION_SERVER;
use api::hypershift::v1beta1::platform::PlatformType;

use super::Problems;
use crate::facts::{Facts, auto_node};

/// What this operator lacks for it.
pub(super) fn unsupported(facts: &Facts) -> Option<String> {
    let is_on = auto_node::karpenter(&facts.cluster).is_some();
    (is_on && facts.images.own.is_none()).then(|| {
        "spec.autoNode runs a program of the operator, whose image the operator does not know: run it with \
         --hypershift-operator-image, as `hypershift install` does"
            .to_owned()
    })
}

/// What is wrong with it.
pub(super) fn problems(facts: &Facts) -> Problems {
    let spec = &facts.cluster.spec;
    if spec.auto_node.is_none() {
        return Problems::new();
    }
    let mut problems = Problems::new();
    if spec.platform.type_ != PlatformType::Aws {
        problems.push(
            "spec.autoNode is for platform AWS, and the cluster is on another one: remove it"
                .to_owned(),
        );
    }
    if DISABLE_IGNITION_SERVER.is_set(facts.annotations()) {
        problems.push(format!(
            "spec.autoNode makes nodes that get their configuration from the ignition server, which annotation {} \
             disables: remove one of them",
            DISABLE_IGNITION_SERVER.key()
        ));
    }
    problems
}

#[cfg(test)]
mod tests {
    use api::group::CapiTypes;

    use super::*;
    use crate::facts::fixture;

    #[test]
    fn karpenter_needs_aws_and_an_ignition_server() {
        for (platform, is_disabled, expected) in [
            ("aws", false, None),
            ("aws", true, Some("disable-ignition-server")),
            ("none", false, Some("is for platform AWS")),
        ] {
            let mut cluster = fixture::hosted_cluster(platform);
            fixture::with_auto_node(&mut cluster);
            if is_disabled {
                let annotations = cluster.metadata.annotations.get_or_insert_default();
                annotations.insert(DISABLE_IGNITION_SERVER.key().to_owned(), String::new());
            }
            let facts = fixture::facts(cluster, CapiTypes::Private);
            let found = problems(&facts).join("; ");
            assert_eq!(found.is_empty(), expected.is_none(), "{found}");
            assert!(found.contains(expected.unwrap_or_default()), "{found}");
        }
    }

    #[test]
    fn karpenter_needs_the_image_of_the_operator() {
        let mut cluster = fixture::hosted_cluster("aws");
        let without = fixture::facts(cluster.clone(), CapiTypes::Private);
        fixture::with_auto_node(&mut cluster);
        let mut facts = fixture::facts(cluster, CapiTypes::Private);
        assert_eq!(unsupported(&facts), None);
        facts.images.own = None;
        let found = unsupported(&facts).unwrap();
        assert!(found.contains("--hypershift-operator-image"), "{found}");
        assert_eq!(unsupported(&without), None);
    }
}
