//! Templates of OpenShift and Helm charts: what they leave open, and that filled in they are what is rendered.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::{IMAGES, data, objects, private, render, rendered, text};

/// Flags of an installation whose Templates and charts leave much open.
const OPEN: [&str; 14] = [
    "--assume=monitoring,routes,legacy",
    "--replicas=3",
    "--oidc-storage-provider-s3-bucket-name=documents",
    "--oidc-storage-provider-s3-region=eu-west-1",
    "--oidc-storage-provider-s3-secret=bucket",
    "--private-platform=AWS",
    "--aws-private-region=eu-west-2",
    "--aws-private-secret=links",
    "--external-dns-provider=aws",
    "--external-dns-secret=dns",
    "--external-dns-domain-filter=clusters.example.com",
    "--external-dns-image=registry.example.com/external-dns:v1",
    "--external-dns-txt-owner-id=management-1",
    "--additional-operator-env-vars=REGISTRY_OVERRIDES=a=b",
];

/// With the defaults of its parameters, a Template is what is rendered without it.
#[test]
fn a_template_has_the_same_objects() {
    let flags = [&OPEN[..], &["--render-sensitive"][..]].concat();
    let expected = objects(&rendered(&flags));
    let text = rendered(&[&flags[..], &["--template"][..]].concat());
    let templates = objects(&text);
    let [template] = &templates[..] else {
        panic!("one Template, not {text}");
    };
    assert_eq!(template["kind"], "Template");
    let mut text = template["objects"].to_string();
    let parameters = template["parameters"].as_array().expect("parameters");
    for parameter in parameters {
        let of = |field: &str| parameter[field].as_str().expect(field).to_owned();
        let (name, value) = (of("name"), of("value"));
        let before = text.clone();
        text = text.replace(&format!("\"${{{{{name}}}}}\""), &value);
        text = text.replace(&format!("${{{name}}}"), &value);
        assert_ne!(before, text, "{name} is not used");
    }
    let filled: Vec<Value> = serde_json::from_str(&text).expect("JSON");
    assert_eq!(filled, expected);
    let refused = render(&["--template"]);
    assert_eq!(
        refused.status.code(),
        Some(64),
        "without --render-sensitive"
    );
}

/// The templates of a chart as Helm fills them in.
fn filled(text: &str, namespace: &str, values: &Value) -> String {
    let mut rest = text;
    let mut filled = String::new();
    while let Some((before, after)) = rest.split_once("{{ ") {
        let (expression, after) = after.split_once(" }}").expect("it ends");
        filled.push_str(before);
        rest = after;
        let text = match expression {
            "`{{`" => "{{",
            ".Release.Namespace" => namespace,
            value => {
                let pointer = value.strip_prefix(".Values").expect(value);
                let found = values.pointer(&pointer.replace('.', "/"));
                found.and_then(Value::as_str).expect(value)
            }
        };
        filled.push_str(text);
    }
    filled + rest
}

/// With the defaults of its values, a chart is what is rendered, without the Namespace.
#[test]
fn a_chart_has_the_same_objects() {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("install-chart");
    // What an earlier run left may be of another version.
    drop(fs::remove_dir_all(&directory));
    let secret = format!("--pull-secret={}", data("pull-secret.json"));
    let flags = [&OPEN[..], &[secret.as_str()][..]].concat();
    let output = Command::new(env!("CARGO_BIN_EXE_hypershift"))
        .args(["install", "helm"])
        .args(IMAGES)
        .args(private())
        .args(&flags)
        .arg(format!("--output-dir={}", directory.display()))
        .env_remove("KUBECONFIG")
        .output()
        .expect("the binary runs");
    assert_eq!(text(&output), "");
    let read = |path: PathBuf| fs::read_to_string(path).expect("it can be read");
    let of = |part: &str| {
        let files = fs::read_dir(directory.join(part)).expect("a directory");
        let files = files.map(|file| read(file.expect("a file").path()));
        files.collect::<Vec<_>>()
    };
    let chart = objects(&read(directory.join("Chart.yaml"))).remove(0);
    assert_eq!(chart["name"], "hypershift-operator");
    let values = objects(&read(directory.join("values.yaml"))).remove(0);
    assert_eq!(values["oidc"]["s3"]["credsSecret"], "bucket");
    let templates = of("templates").into_iter();
    let templates = templates.map(|text| filled(&text, "hypershift", &values));
    let made: Vec<Value> = of("crds")
        .into_iter()
        .chain(templates)
        .map(|text| objects(&text).remove(0))
        .collect();
    let flags = [&flags[..], &["--render-sensitive"][..]].concat();
    let expected = objects(&rendered(&flags)).into_iter();
    let expected: Vec<Value> = expected.filter(|it| it["kind"] != "Namespace").collect();
    assert_eq!(made.len(), expected.len());
    for object in expected {
        assert!(made.contains(&object), "{object}");
    }
    let secret = directory.join("templates/secret-pull-secret.yaml");
    let permissions = fs::metadata(secret).expect("it is there").permissions();
    let bits = std::os::unix::fs::PermissionsExt::mode(&permissions);
    assert_eq!(bits & 0o077, 0, "others can read the Secret");
}
