//! Pods satisfy the pod security standard `restricted` where no security context constraints complete them.

use api::group::CapiTypes;
use control_plane_operator::components;
use control_plane_operator::render::Input;
use serde_json::{Value, json};
use support::testing::restricted_violations;

use crate::variants::changed;

/// Control planes that differ in their pods.
pub(crate) fn variants() -> Vec<(&'static str, Input)> {
    let platform = |platform: &str| changed(&[("/spec/platform/type", json!(platform))]);
    let policy = |policy: &str| {
        let path = "/spec/controllerAvailabilityPolicy";
        changed(&[(path, json!(policy))])
    };
    let mut private = policy("HighlyAvailable");
    private.settings.capi_types = CapiTypes::Private;
    private.settings.capi_proxy_image = Some("images.example.com/proxy".to_owned());
    vec![
        ("base", changed(&[])),
        ("highly available", policy("HighlyAvailable")),
        ("single replica", policy("SingleReplica")),
        ("private", private),
        ("none", platform("None")),
        ("agent", platform("Agent")),
    ]
}

/// The spec of an object's pods, if it has some.
fn pod(object: &Value) -> Option<&Value> {
    [
        "/spec/template/spec",
        "/spec/jobTemplate/spec/template/spec",
    ]
    .into_iter()
    .filter_map(|path| object.pointer(path))
    .find(|pod| pod["containers"].is_array())
}

/// Check T05.
#[test]
fn pods_of_all_components_satisfy_the_restricted_standard() {
    for (name, mut input) in variants() {
        input.settings.uid = Some(1001);
        let mut pods = 0;
        for component in components::all() {
            for file in input.component(component).unwrap() {
                let Some(pod) = pod(&file.object) else {
                    continue;
                };
                pods += 1;
                let found = restricted_violations(pod);
                assert!(found.is_empty(), "{name}: {}: {found:?}", file.path);
            }
        }
        assert!(pods >= 10, "{name}: {pods}");
    }
}
