//! Nodes that follow the TLS profile of the cluster.

use std::sync::Arc;

use super::*;

/// A pool of another operator with a release.
fn of_release(version: &str) -> Facts {
    let mut facts = facts();
    facts.release = Ok(Arc::new(fixtures::release(version)));
    facts.cluster_version = version.parse().ok();
    let data = first(&mut facts).data.as_mut().unwrap();
    let value = ByteString(version.as_bytes().to_vec());
    data.insert("release-version".to_owned(), value);
    facts
}

fn select(facts: &mut Facts, profile: &str) {
    let api_server = json!({ "tlsSecurityProfile": { "type": profile } });
    let configuration = json!({ "apiServer": api_server });
    facts.cluster.spec.configuration = serde_json::from_value(configuration).unwrap();
}

/// What versions of this operator recorded that left the TLS profile out.
fn earlier_inputs(facts: &Facts) -> String {
    let mut conditions = Conditions::new(Vec::new(), Some(3), facts.now);
    let (found, _) = validate::validate(facts, &mut conditions);
    let version = &found.release.as_ref().unwrap().version;
    let context = Context::of(&facts.cluster, version).without_tls();
    found.config.unwrap().fingerprint(&context)
}

/// Check O07.
#[test]
fn tls_profiles_count_as_unchanged_the_first_time() {
    let mut facts = of_release("4.23.0");
    select(&mut facts, "Modern");
    assert_eq!(kept(&facts), (true, true), "of another operator");
    let inputs = earlier_inputs(&facts);
    annotate_token(&mut facts, CONFIG_INPUTS.key(), &inputs);
    assert_eq!(kept(&facts), (true, true), "of an earlier version");
    recorded(&mut facts);
    assert_eq!(kept(&facts), (true, true), "recorded");
    select(&mut facts, "Old");
    assert_eq!(kept(&facts), (false, true), "changed");
}

#[test]
fn later_changes_of_the_tls_profile_replace_nodes() {
    for (version, before, after, expected) in [
        ("4.22.0", "Intermediate", "Modern", true),
        ("4.23.0", "Intermediate", "Modern", false),
        ("4.23.0", "Modern", "Intermediate", false),
        ("4.23.0", "Modern", "Modern", true),
    ] {
        let mut facts = of_release(version);
        select(&mut facts, before);
        recorded(&mut facts);
        select(&mut facts, after);
        let name = format!("{version} {before} {after}");
        assert_eq!(kept(&facts), (expected, true), "{name}");
    }
}
