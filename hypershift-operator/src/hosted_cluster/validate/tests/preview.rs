//! Platforms of the technology preview.

use api::features::FeatureSet;
use api::group::CapiTypes;

use crate::facts::fixture;
use crate::hosted_cluster::validate::{Finding, validate};

#[test]
fn platforms_of_the_preview_need_its_feature_set() {
    let mut facts = fixture::facts(fixture::hosted_cluster("openstack"), CapiTypes::Private);
    let Finding::Bad { reason, message } = validate(&facts).supported else {
        unreachable!("the operator has the default feature set");
    };
    assert_eq!(reason, "UnsupportedHostedCluster");
    assert!(
        message.contains("platform OpenStack") && message.contains("--tech-preview-no-upgrade"),
        "{message}"
    );
    facts.cloud.features = FeatureSet::TechPreviewNoUpgrade;
    assert!(matches!(validate(&facts).supported, Finding::Good));
}
