//! Whether a control plane has published all that the configuration of its pools begins with. Pure.
//!
//! While something is missing, this operator would render it itself, and what is published later may have another text,
//! which is another configuration for all nodes.

use api::hypershift::v1beta1::hosted_cluster::HostedCluster;
use payload::{Capabilities, Capability};

use super::config::Source;

/// FIPS mode and the SSH key, which are published without being set, too.
const ALWAYS: usize = 2;

/// What is waited for: nothing once all ConfigMaps are there, or if it is not known that there will be any.
pub(crate) fn missing(
    core: &[Source],
    cluster: &HostedCluster,
    capabilities: &Capabilities,
) -> Option<String> {
    let expected = expected(cluster, capabilities)?;
    let found = core.len();
    (found < expected).then(|| {
        format!(
            "Waiting for the control plane to publish what all nodes have in common: it has {found} of {expected} \
             ConfigMaps with the label hypershift.openshift.io/core-ignition-config"
        )
    })
}

/// How many there will be. Earlier versions of this project's control-plane-operator publish none and have neither label,
/// and nothing is known of one without labels.
fn expected(cluster: &HostedCluster, capabilities: &Capabilities) -> Option<usize> {
    let load_balancer = if capabilities.has(Capability::SkipsHaproxy) {
        0
    } else if capabilities.has(Capability::Subcommands) {
        1
    } else {
        return None;
    };
    let mirrors = usize::from(!cluster.spec.image_content_sources.is_empty());
    Some(ALWAYS + load_balancer + mirrors)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use api::hypershift::v1beta1::image_content_source::ImageContentSource;

    use super::*;
    use crate::node_pool::config::Content;
    use crate::node_pool::fixtures;

    #[test]
    fn pools_wait_for_what_their_control_plane_publishes() {
        use Capability::{PrivateTypes, SkipsHaproxy, Subcommands};
        for (name, capabilities, has_mirrors, found, expected) in [
            ("none of two", vec![SkipsHaproxy], false, 0, Some("0 of 2")),
            ("all", vec![SkipsHaproxy], false, 2, None),
            ("more, of the user", vec![SkipsHaproxy], false, 5, None),
            ("mirrors", vec![SkipsHaproxy], true, 2, Some("2 of 3")),
            (
                "an earlier release",
                vec![Subcommands],
                false,
                2,
                Some("2 of 3"),
            ),
            ("all of it", vec![Subcommands], true, 4, None),
            (
                "a current release",
                vec![Subcommands, SkipsHaproxy],
                false,
                2,
                None,
            ),
            (
                "an earlier one of this project",
                vec![PrivateTypes],
                true,
                0,
                None,
            ),
            ("no labels", vec![], false, 0, None),
        ] {
            let labels = capabilities.iter().map(|it| it.label());
            let labels: BTreeMap<_, _> = labels.map(|it| (it, "true".to_owned())).collect();
            let mut cluster = fixtures::cluster();
            if has_mirrors {
                cluster.spec.image_content_sources = vec![ImageContentSource {
                    source: "registry.example.com/a".to_owned(),
                    mirrors: vec!["images.example.com/a".to_owned()],
                }];
            }
            let core: Vec<_> = (0..found)
                .map(|index| Source {
                    name: index.to_string(),
                    content: Content::Empty,
                })
                .collect();
            let waits = missing(&core, &cluster, &Capabilities::of_labels(&labels));
            assert_eq!(waits.is_some(), expected.is_some(), "{name}: {waits:?}");
            let message = waits.unwrap_or_default();
            assert!(message.contains(expected.unwrap_or_default()), "{message}");
        }
        let unknown = Capabilities::unknown();
        assert_eq!(missing(&[], &fixtures::cluster(), &unknown), None);
    }
}
