//! Nodes of a pool that selects no operating system.

use std::sync::Arc;

use api::features::FeatureSet;

use super::*;

/// Check O07: earlier versions gave all nodes of such pools RHEL 9, and recorded no stream.
#[test]
fn nodes_with_another_stream_than_the_default_are_kept() {
    for (image, expected) in [("CoreOS 9.6.1", true), ("CoreOS 10.1.1", false)] {
        let mut facts = facts();
        facts.features = FeatureSet::TechPreviewNoUpgrade;
        facts.release = Ok(Arc::new(fixtures::release("5.0.0")));
        facts.cluster_version = "5.0.0".parse().ok();
        let mut machine = fixtures::machine("one");
        machine.os_image = Some(image.to_owned());
        facts.machines = vec![machine];
        let data = first(&mut facts).data.as_mut().unwrap();
        data.insert("release-version".to_owned(), ByteString(b"5.0.0".to_vec()));
        let context = Context::of(&facts.cluster, &"5.0.0".parse().unwrap());
        let recorded = context.without_tls().fingerprint("");
        annotate_token(&mut facts, CONFIG_INPUTS.key(), &recorded);
        assert_eq!(kept(&facts).0, expected, "{image}");
    }
}
