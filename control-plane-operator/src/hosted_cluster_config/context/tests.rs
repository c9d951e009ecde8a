use serde_json::json;
use support::testing::{Answer, Expect, Scenario};

use super::*;

/// Agent clusters have Machines, although their control plane has platform None.
#[tokio::test]
async fn machines_are_watched_where_they_can_exist() {
    let machine = machines::resource(api::group::CapiTypes::Private);
    let path = format!("/apis/{}", machine.api_version);
    let list = json!({ "groupVersion": machine.api_version, "resources": [] });
    for (platform, answer, expected) in [
        ("AWS", None, true),
        ("IBMCloud", None, false),
        ("None", Some(Answer::ok(&list)), true),
        ("None", Some(Answer::error(404, "NotFound")), false),
    ] {
        let requested = answer.map(|answer| Expect::get(&path).answer(answer));
        let scenario = Scenario::new(requested);
        let found = may_have_machines(platform, &scenario.client(), &machine).await;
        assert_eq!(found, expected, "{platform}");
        scenario.finish();
    }
}

#[test]
fn control_planes_of_other_releases_are_skipped() {
    let found = json!({ "metadata": { "name": "a" }, "spec": { "releaseImage": "new" } });
    let found: DynamicObject = serde_json::from_value(found).unwrap();
    for (release, expected) in [(Some("new"), true), (Some("old"), false), (None, true)] {
        assert_eq!(is_of_release(&found, release), expected, "{release:?}");
    }
}
