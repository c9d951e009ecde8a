//! Which configurations are accepted, and what changes their hashes.

use super::*;

fn machine_config(name: &str) -> String {
    format!(
        "apiVersion: machineconfiguration.openshift.io/v1\nkind: MachineConfig\nmetadata: {{name: {name}}}\nspec: {{}}\n"
    )
}

fn kubelet_config(name: &str) -> String {
    machine_config(name).replace("MachineConfig", "KubeletConfig")
}

fn source(name: &str, text: &str) -> Source {
    Source {
        name: name.to_owned(),
        content: Content::Text(text.to_owned()),
    }
}

fn join(own: &[Source], core: &[Source]) -> Result<Config, Refused> {
    let made = [Manifest::machine_config("20-made", &json!({}))];
    let sources = Sources {
        own,
        core,
        tuning: &[],
        made: &made,
    };
    sources.join()
}

#[test]
fn the_order_of_sources_does_not_matter() {
    let (a, b) = (
        source("a", &machine_config("m1")),
        source("b", &machine_config("m2")),
    );
    let one = join(&[a.clone(), b.clone()], &[]).unwrap();
    assert_eq!(one, join(&[b.clone(), a.clone()], &[]).unwrap());
    assert_eq!(one, join(&[b], &[a]).unwrap());
    assert_eq!(one.raw.split("\n---\n").count(), 3);
}

#[test]
fn every_invalid_config_is_reported_with_a_fix() {
    let missing = Source {
        name: "gone".to_owned(),
        content: Content::Missing,
    };
    let empty = Source {
        name: "empty".to_owned(),
        content: Content::Empty,
    };
    for (name, own, expected) in [
        (
            "missing",
            vec![missing.clone()],
            "ConfigMap gone does not exist",
        ),
        (
            "no key",
            vec![empty.clone()],
            "ConfigMap empty has no key config",
        ),
        ("two mistakes", vec![missing, empty], "; ConfigMap empty"),
        (
            "another kind",
            vec![source("a", "kind: Pod")],
            "ConfigMap a: document 1 is of kind",
        ),
        (
            "twice the same",
            vec![
                source("a", &machine_config("m1")),
                source("b", &machine_config("m1")),
            ],
            "MachineConfig m1 is defined more than once",
        ),
        (
            "a name that is taken",
            vec![source("a", &machine_config("20-made"))],
            "MachineConfig 20-made is defined more than once",
        ),
        (
            "two kubelets",
            vec![
                source("a", &kubelet_config("m1")),
                source("b", &kubelet_config("m2")),
            ],
            "several are given (m1, m2): merge them",
        ),
    ] {
        let found = join(&own, &[]).unwrap_err().to_string();
        assert!(found.contains(expected), "{name}: {found}");
    }
}

/// Check T22.
#[test]
fn configs_that_are_too_large_are_not_parsed() {
    // It is no YAML either, which is not reported: it is not read.
    let filled = |name: &str, size: usize| source(name, &"[".repeat(size));
    let half = MOST_BYTES / 2;
    let refused = join(&[filled("a", half), filled("b", half + 1)], &[]).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "the ConfigMaps have 2097153 bytes of configuration together, and at most 2097152 are supported. The largest is \
         ConfigMap b with 1048577 bytes: make it smaller"
    );
    let core = join(&[filled("a", half)], &[filled("core", half + 1)]);
    assert!(core.unwrap_err().to_string().contains("ConfigMap core"));
    let comment = |name: &str| {
        let config = machine_config(name);
        let rest = "#".repeat(half - config.len());
        source(name, &format!("{config}{rest}"))
    };
    assert!(join(&[comment("a"), comment("b")], &[]).is_ok());
}

#[test]
fn core_manifests_come_before_generated_ones() {
    let core = format!(
        "{}  x: 1\n",
        machine_config("20-made").replace("spec: {}", "spec:")
    );
    let joined = join(&[], &[source("core", &core)]).unwrap();
    assert!(joined.raw.contains(r#""spec":{"x":1}"#), "{}", joined.raw);
    assert!(!joined.raw.contains("---"), "{}", joined.raw);
}

fn context() -> Context {
    Context {
        version: "4.22.0".to_owned(),
        pull_secret: "pull-secret".to_owned(),
        trust_bundle: String::new(),
        global: r#"{"proxy":{"httpProxy":"http://proxy.example.com"}}"#.to_owned(),
        tls: None,
    }
}

#[test]
fn hashes_change_with_their_inputs() {
    let config = join(&[source("a", &machine_config("m1"))], &[]).unwrap();
    let other = join(&[source("a", &machine_config("m2"))], &[]).unwrap();
    let before = config.hashes(&context());
    let version = Context {
        version: "4.22.1".to_owned(),
        ..context()
    };
    let pull_secret = Context {
        pull_secret: "other".to_owned(),
        ..context()
    };
    let trust_bundle = Context {
        trust_bundle: "bundle".to_owned(),
        ..context()
    };
    let global = Context {
        global: String::new(),
        ..context()
    };
    let tls = |tls: &str| Context {
        tls: Some(tls.to_owned()),
        ..context()
    };
    for (name, after, with, without) in [
        ("nothing", config.hashes(&context()), false, false),
        ("configuration", other.hashes(&context()), true, true),
        ("release", config.hashes(&version), true, false),
        ("pull secret", config.hashes(&pull_secret), true, true),
        ("trust bundle", config.hashes(&trust_bundle), true, true),
        ("cluster's settings", config.hashes(&global), true, false),
        ("TLS profile", config.hashes(&tls("{}\n")), true, false),
        ("default TLS profile", config.hashes(&tls("")), false, false),
    ] {
        assert_eq!(before.with_version != after.with_version, with, "{name}");
        assert_eq!(
            before.without_version != after.without_version,
            without,
            "{name}"
        );
    }
}

/// A changed value here rolls out all nodes of all clusters, so it must be intended.
/// Check O07.
#[test]
fn hashes_are_stable_across_releases() {
    let config = join(&[source("a", &machine_config("m1"))], &[]).unwrap();
    let Hashes {
        with_version,
        without_version,
    } = config.hashes(&context());
    assert_eq!(
        (with_version.as_str(), without_version.as_str()),
        ("e3bde141", "ace24d88")
    );
}

/// Another value here rolls out all nodes whose names of objects were kept, so it must be intended.
/// Check O07.
#[test]
fn inputs_outside_of_manifests_are_recorded() {
    let config = join(&[source("a", &machine_config("m1"))], &[]).unwrap();
    assert_eq!(config.fingerprint(&context()), "c499e8a8");
    let mut other_stream = config.clone();
    other_stream.os.entry = "rhel-9";
    let changed = |change: fn(&mut Context)| {
        let mut context = context();
        change(&mut context);
        config.fingerprint(&context)
    };
    for (name, after, expected) in [
        (
            "release",
            changed(|it| it.version = "4.22.1".to_owned()),
            false,
        ),
        (
            "pull secret",
            changed(|it| it.pull_secret = "other".to_owned()),
            true,
        ),
        (
            "trust bundle",
            changed(|it| it.trust_bundle = "bundle".to_owned()),
            true,
        ),
        (
            "cluster's settings",
            changed(|it| it.global = String::new()),
            true,
        ),
        // It differs from what versions of this operator recorded that did not read TLS profiles.
        (
            "default TLS profile",
            changed(|it| it.tls = Some(String::new())),
            true,
        ),
        ("stream", other_stream.fingerprint(&context()), true),
    ] {
        assert_eq!(after != config.fingerprint(&context()), expected, "{name}");
    }
}

#[test]
fn unset_fields_are_pruned_from_global_config() {
    assert_eq!(
        pruned(json!({ "proxy": { "httpProxy": "", "readinessEndpoints": [] }, "image": null })),
        Value::Null
    );
    assert_eq!(
        pruned(json!({ "proxy": { "httpProxy": "a", "x": {} } })),
        json!({ "proxy": { "httpProxy": "a" } })
    );
}

#[test]
fn nodes_follow_the_tls_profile_from_4_23_on() {
    let custom =
        json!({ "type": "Custom", "custom": { "ciphers": ["ECDHE-RSA-AES128-GCM-SHA256"] } });
    let custom_text =
        "{\"custom\":{\"ciphers\":[\"ECDHE-RSA-AES128-GCM-SHA256\"]},\"type\":\"Custom\"}\n";
    for (version, profile, expected) in [
        ("4.22.9", json!({ "type": "Modern" }), None),
        ("4.23.0", Value::Null, Some("")),
        ("4.23.0", json!({}), Some("")),
        (
            "4.23.0",
            json!({ "type": "Intermediate", "intermediate": {} }),
            Some(""),
        ),
        (
            "4.23.0",
            json!({ "type": "Modern", "modern": {} }),
            Some("{\"type\":\"Modern\"}\n"),
        ),
        (
            "4.23.0-ec.1",
            json!({ "type": "Old" }),
            Some("{\"type\":\"Old\"}\n"),
        ),
        ("5.0.0", custom, Some(custom_text)),
    ] {
        let mut cluster = crate::node_pool::fixtures::cluster();
        let configuration = json!({ "apiServer": { "tlsSecurityProfile": profile } });
        cluster.spec.configuration = serde_json::from_value(configuration).unwrap();
        let context = Context::of(&cluster, &version.parse().unwrap());
        assert_eq!(context.tls.as_deref(), expected, "{version} {profile}");
        assert_eq!(context.global, "", "{version} {profile}");
        assert_eq!(context.without_tls().tls, None);
    }
}
