use super::*;

fn control_plane(disabled: &[&str]) -> DynamicObject {
    serde_json::from_value(json!({
        "apiVersion": "hypershift.openshift.io/v1beta1", "kind": "HostedControlPlane",
        "metadata": { "name": "hcp", "namespace": "ns", "uid": "u" },
        "spec": { "capabilities": { "disabled": disabled } },
    }))
    .unwrap()
}

fn source(data: &Value) -> ConfigMap {
    serde_json::from_value(json!({ "metadata": { "name": "s" }, "data": data })).unwrap()
}

fn certificate(name: &str) -> String {
    let made = rcgen::generate_simple_self_signed([name.to_owned()]).unwrap();
    // Lines end like those of the copies.
    bundle_text(&parse_bundle(&made.cert.pem()))
}

fn now() -> Timestamp {
    "2030-01-01T00:00:00Z".parse().unwrap()
}

fn change(data: Option<&Value>, live: Option<&Value>, at: Timestamp) -> Result<Change, String> {
    let source = data.map(source);
    let live = live.map(|it| serde_json::from_value(it.clone()).unwrap());
    let changed = COPIES[0].change(source.as_ref(), live.as_ref(), &control_plane(&[]), at);
    changed.map_err(|error| error.to_string())
}

/// The copy that is written for a bundle.
fn copy(bundle: &str) -> Value {
    let data = json!({ "ca-bundle.crt": bundle });
    match change(Some(&data), None, now()).unwrap() {
        Change::Apply(value) => value,
        other => panic!("{other:?}"),
    }
}

#[test]
fn authorities_are_copied_under_their_names() {
    let bundle = certificate("a");
    let data = json!({ "ca-bundle.crt": bundle, "other": "x" });
    let copies = COPIES.each_ref().map(|copy| {
        let change = copy.change(Some(&source(&data)), None, &control_plane(&[]), now());
        let Ok(Change::Apply(value)) = change else {
            panic!("{change:?}");
        };
        assert_eq!(value["metadata"]["ownerReferences"][0]["uid"], "u");
        (value["metadata"]["name"].clone(), value["data"].clone())
    });
    let expected = [
        (
            json!("service-serving-ca"),
            json!({ "service-ca.crt": bundle }),
        ),
        (
            json!("observed-default-ingress-cert"),
            json!({ "ca.crt": bundle }),
        ),
    ];
    assert_eq!(copies, expected);
}

#[test]
fn copies_follow_capabilities() {
    let needed = |disabled: &[&str]| {
        let hcp = control_plane(disabled);
        COPIES.each_ref().map(|copy| copy.is_needed(&hcp))
    };
    assert_eq!(needed(&[]), [true, true]);
    assert_eq!(needed(&["Ingress"]), [true, false]);
    assert_eq!(needed(&["Console"]), [true, true]);
}

#[test]
fn copies_have_certificates_only() {
    let (one, other) = (certificate("a"), certificate("b"));
    let invalid = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    let key = "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n";
    let found = copy(&format!("# text\n{one}{invalid}{key}{other}text"));
    assert_eq!(found["data"]["service-ca.crt"], format!("{one}{other}"));
    for (bundle, expected) in [
        ("text".to_owned(), "no certificate"),
        (String::new(), "no certificate"),
        (invalid.to_owned(), "no certificate"),
        (
            format!("{one}{}", "a".repeat(LIMIT)),
            "more than 262144 bytes",
        ),
    ] {
        let data = json!({ "ca-bundle.crt": bundle });
        let error = change(Some(&data), Some(&copy(&one)), now()).unwrap_err();
        assert!(error.contains(expected), "{error}");
    }
}

/// Each change restarts kube-controller-manager, and users of the hosted cluster make it.
#[test]
fn copies_change_at_most_once_per_interval() {
    let (one, other) = (certificate("a"), certificate("b"));
    let live = copy(&one);
    let mut unknown = live.clone();
    unknown["metadata"]["annotations"] = Value::Null;
    let same = json!({ "ca-bundle.crt": format!("# a comment\n{one}") });
    let changed = json!({ "ca-bundle.crt": other });
    let second = Duration::from_secs(1);
    for (name, data, live, at, expected) in [
        ("same", Some(&same), &live, now(), "none"),
        ("same, later", Some(&same), &live, now() + INTERVAL, "none"),
        ("changed", Some(&changed), &live, now(), "defer"),
        (
            "changed, early",
            Some(&changed),
            &live,
            now() + INTERVAL - second,
            "defer",
        ),
        (
            "changed, later",
            Some(&changed),
            &live,
            now() + INTERVAL,
            "apply",
        ),
        (
            "clock set back",
            Some(&changed),
            &live,
            now() - second,
            "apply",
        ),
        (
            "written by an earlier release",
            Some(&changed),
            &unknown,
            now(),
            "apply",
        ),
        ("removed", None, &live, now(), "defer"),
        ("removed, later", None, &live, now() + INTERVAL, "delete"),
        (
            "without the key",
            Some(&json!({})),
            &live,
            now() + INTERVAL,
            "delete",
        ),
    ] {
        let found = match change(data, Some(live), at).unwrap() {
            Change::None => "none",
            Change::Defer => "defer",
            Change::Apply(_) => "apply",
            Change::Delete => "delete",
        };
        assert_eq!(found, expected, "{name}");
    }
    assert_eq!(change(None, None, now()), Ok(Change::None));
}
