//! The objects of default profiles, and reference facts.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::PathBuf;

use control_plane_operator::hosted_cluster_config::resources::desired::{LEGACY, Mode};
use serde_json::Value;

use crate::compare::{ALLOWED, described, differences, matches, of_profile, ours, theirs};
use crate::facts;
use crate::profiles::{PLATFORMS, Profile};

/// Numbers of objects of the profiles, in their order.
const COUNTS: [usize; 3] = [133, 123, 134];

#[test]
fn objects_of_default_profiles_match_reference_facts() {
    let theirs = theirs();
    let mut text = String::new();
    for ((name, platform), count) in PLATFORMS.into_iter().zip(COUNTS) {
        let (objects, errors) = Profile::new(platform).build();
        assert_eq!(errors, [], "{platform}");
        let expected = of_profile(&theirs, name);
        assert_eq!(expected.len(), count, "{platform}");
        let built: BTreeMap<_, _> = objects
            .iter()
            .filter(|(_, object)| object.mode != Mode::Delete)
            .map(|(step, object)| (facts::identity(&object.value), (*step, object)))
            .collect();
        let ids: BTreeSet<_> = built.keys().cloned().collect();
        for id in expected.symmetric_difference(&ids) {
            let _ = writeln!(text, "{platform}: {id} is only on one side");
        }
        for id in expected.intersection(&ids) {
            let (step, object) = built[id];
            let described = described(&theirs[id], platform);
            let ours = ours(step, object, &described);
            differences(id, &described, &ours, |_, _| false, &mut text);
        }
    }
    assert!(text.is_empty(), "\n{text}");
}

#[test]
fn deletions_match_reference_facts() {
    let theirs = theirs();
    let expected: BTreeSet<_> = theirs
        .iter()
        .filter(|(_, facts)| facts["@mode"] == "delete")
        .map(|(id, _)| id.clone())
        .collect();
    let profile = Profile::new("AWS");
    let (objects, _) = profile.build();
    let mut found: BTreeSet<_> = objects
        .iter()
        .filter(|(_, object)| object.mode == Mode::Delete)
        .map(|(_, object)| facts::identity(&object.value))
        .collect();
    let legacy = profile.legacy_objects();
    found.extend(legacy.iter().map(|object| facts::identity(&object.value)));
    let missing: Vec<_> = expected.difference(&found).collect();
    assert!(missing.is_empty(), "{missing:#?}");
    for (step, object) in objects {
        if let Some(facts) = theirs.get(&facts::identity(&object.value)) {
            assert_eq!(facts["@step"], step, "{}", object.key());
        }
    }
    for object in legacy {
        let id = facts::identity(&object.value);
        assert_eq!(theirs[&id]["@step"], LEGACY.number, "{id}");
    }
    // Objects that settings of the HostedCluster bring are deleted without these settings.
    assert!(expected.len() == 14 && found.len() == 14 + 7, "{found:#?}");
}

#[test]
fn differences_have_a_reason() {
    assert!(ALLOWED.iter().all(|(_, reason)| !reason.is_empty()));
    assert!(matches("a*c", "abbc") && matches("*", "") && !matches("a*c", "abcd"));
}

#[test]
#[ignore = "writes tests/guest/facts.txt from the description in the file GUEST_FACTS"]
fn write_facts() {
    let text = std::fs::read_to_string(std::env::var("GUEST_FACTS").unwrap()).unwrap();
    let entries: Vec<Value> = serde_json::from_str(&text).unwrap();
    let is_compared = |entry: &Value| {
        let of = ["resources", "globalps"]
            .iter()
            .any(|by| entry["by"] == *by);
        let present = entry["present"].as_object().into_iter().flatten();
        let is_present = present.into_iter().any(|(_, is)| *is == true);
        entry["cluster"] == "guest" && of && (is_present || entry["mode"] == "delete")
    };
    let lines = entries.iter().filter(|entry| is_compared(entry));
    let lines: Vec<_> = lines.flat_map(facts::described).collect();
    let header =
        "# Reference facts of objects in the hosted cluster, one per line: tests/guest/facts.rs.\n";
    let file = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/guest/facts.txt");
    std::fs::write(file, format!("{header}{}\n", lines.join("\n"))).unwrap();
}
