//! Platforms of the technology preview.

use api::features::FeatureSet;
use api::group::CapiTypes;
use serde_json::json;

use crate::facts::fixture;
use crate::hosted_cluster::validate::{Finding, validate};

#[test]
fn platforms_of_the_preview_need_its_feature_set() {
    let platform = json!({ "type": "OpenStack", "openstack": {
        "identityRef": { "name": "one-cloud", "cloudName": "openstack" },
    } });
    let mut cluster = fixture::hosted_cluster("none");
    cluster.spec.platform = serde_json::from_value(platform).unwrap();
    let mut facts = fixture::facts(cluster, CapiTypes::Private);
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
