//! `hypershift install render`: the same bytes for the same arguments, as they are under `golden/install`.
//!
//! `UPDATE_GOLDEN=1 cargo test -p cli --test install_render` writes them again.

mod charts;
mod external_dns;
mod images;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use cli::crds::parse;
use serde_json::{Value, json};

const IMAGES: [&str; 2] = [
    "--hypershift-image=registry.example.com/hypershift-operator:v1",
    "--capi-proxy-image=registry.example.com/capi-proxy:v1",
];

const CONVERSION: [&str; 3] = [
    "--enable-conversion-webhook",
    "--conversion-backend=kubeadm-bootstrap=images.example.com/kubeadm-bootstrap-controller:v1",
    "--conversion-backend=core=images.example.com/cluster-api-controller:v1",
];

fn directory() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/tests"))
}

fn render(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_hypershift"))
        .args(["install", "render"])
        .args(IMAGES)
        .args(arguments)
        .env_remove("KUBECONFIG")
        .output()
        .expect("the binary runs")
}

fn text(output: &Output) -> String {
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout.clone()).expect("YAML is text")
}

fn data(name: &str) -> String {
    directory()
        .join("data/install")
        .join(name)
        .display()
        .to_string()
}

/// Stand-ins for Cluster API's CRDs: what is rendered depends on their names only.
fn crds() -> &'static Path {
    static FILE: OnceLock<PathBuf> = OnceLock::new();
    FILE.get_or_init(|| {
        let crds = [
            crd("", "Machine", "Namespaced"),
            crd("", "ClusterWide", "Cluster"),
            crd("infrastructure.", "AWSMachine", "Namespaced"),
        ];
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("install-crds.json");
        let list = json!({ "apiVersion": "v1", "kind": "List", "items": crds });
        fs::write(&path, list.to_string()).expect("it can be written");
        path
    })
}

/// Kinds of two versions: one that a backend converts, and one without a backend.
fn two_versions() -> PathBuf {
    let mut crds = [
        crd("", "Machine", "Namespaced"),
        crd("infrastructure.", "AWSMachine", "Namespaced"),
    ];
    for crd in &mut crds {
        let versions = &mut crd["spec"]["versions"];
        let mut old = versions[0].clone();
        old["name"] = json!("v1beta1");
        old["storage"] = json!(false);
        *versions = json!([old, versions[0]]);
    }
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("install-crds-of-two-versions.json");
    let list = json!({ "apiVersion": "v1", "kind": "List", "items": crds });
    fs::write(&path, list.to_string()).expect("it can be written");
    path
}

fn crd(prefix: &str, kind: &str, scope: &str) -> Value {
    let group = format!("{prefix}cluster.x-k8s.io");
    let plural = cli::crds::plural::plural(kind);
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": format!("{plural}.{group}"),
            "labels": { "cluster.x-k8s.io/v1beta2": "v1beta2" },
        },
        "spec": {
            "group": group,
            "scope": scope,
            "names": { "kind": kind, "plural": plural },
            "versions": [{
                "name": "v1beta2",
                "served": true,
                "storage": true,
                "schema": { "openAPIV3Schema": { "type": "object" } },
            }],
        },
    })
}

fn private() -> [String; 2] {
    [
        "--private-capi-types".to_owned(),
        format!("--private-crds-from=file={}", crds().display()),
    ]
}

fn rendered(arguments: &[&str]) -> String {
    let private = private();
    let mut all: Vec<&str> = private.iter().map(String::as_str).collect();
    all.extend(arguments);
    text(&render(&all))
}

fn compare(name: &str, actual: &str) {
    let path = directory().join("golden/install").join(name);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::create_dir_all(path.parent().expect("it has a directory")).expect("a directory");
        fs::write(&path, actual).expect("golden files can be written");
        return;
    }
    let expected = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        expected == actual,
        "{} differs: look at it after UPDATE_GOLDEN=1",
        path.display()
    );
}

fn objects(text: &str) -> Vec<Value> {
    let documents = parse("rendered", text).expect("what is rendered is YAML");
    documents.into_iter().map(|one| one.value).collect()
}

fn names(text: &str) -> BTreeSet<String> {
    objects(text)
        .iter()
        .map(|object| format!("{} {}", object["kind"], object["metadata"]["name"]).replace('"', ""))
        .collect()
}

#[test]
fn private_types() {
    compare("private.yaml", &rendered(&["--outputs=resources"]));
}

#[test]
fn standard_types() {
    compare("standard.yaml", &text(&render(&["--outputs=resources"])));
}

#[test]
fn all_options() {
    let (secret, bundle) = (data("pull-secret.json"), data("trusted.txt"));
    let text = rendered(&[
        "--outputs=resources",
        "--assume=monitoring,console,legacy",
        "--namespace=control-planes",
        "--image-pull-policy=Always",
        "--registry-overrides=registry.example.com=mirror.example.com/copy",
        "--replicas=1",
        &format!("--pull-secret={secret}"),
        &format!("--additional-trust-bundle={bundle}"),
        "--additional-operator-env-vars=HTTPS_PROXY=http://proxy.example.com:3128,METRICS_SET=All",
        "--platform-monitoring=OperatorOnly",
        "--monitoring-dashboards",
        "--enable-admin-rbac-generation",
        "--private-platform=AWS",
        "--aws-private-region=eu-west-1",
        "--aws-private-role-arn=arn:aws:iam::123456789012:role/private-links",
        "--render-sensitive",
    ]);
    compare("everything.yaml", &text);
}

#[test]
fn openshift_monitors_what_is_asked_for() {
    for (monitored, expected, watches) in [
        ("None", None, false),
        ("OperatorOnly", Some("Role"), false),
        ("All", Some("ClusterRole"), true),
    ] {
        let flag = format!("--platform-monitoring={monitored}");
        let objects = objects(&rendered(&["--outputs=resources", &flag]));
        let named = |kind: &str| {
            let mut objects = objects.iter().filter(|it| it["kind"] == kind);
            objects.find(|it| {
                let name = it["metadata"]["name"].as_str().unwrap_or_default();
                name.ends_with("prometheus-k8s")
            })
        };
        for kind in ["Role", "ClusterRole"] {
            assert_eq!(named(kind).is_some(), expected == Some(kind), "{monitored}");
            let binding = named(&format!("{kind}Binding"));
            assert_eq!(binding.is_some(), expected == Some(kind), "{monitored}");
        }
        let namespace = objects.iter().find(|it| it["kind"] == "Namespace");
        let labels = &namespace.expect("it is rendered")["metadata"]["labels"];
        let is_labeled = labels["openshift.io/cluster-monitoring"] == "true";
        assert_eq!(is_labeled, expected.is_some(), "{monitored}");
        let operator = objects.iter().find(|it| it["kind"] == "Deployment");
        let text = operator.expect("it is rendered").to_string();
        let argument = "--enable-ocp-cluster-monitoring";
        assert_eq!(text.contains(argument), watches, "{monitored}");
    }
}

/// What the conversion webhook adds to an installation: its objects, and the versions of the kinds that it converts.
/// Check C06.
#[test]
fn conversion_webhook_is_rendered() {
    let source = format!("--private-crds-from=file={}", two_versions().display());
    let render = |more: &[&str]| {
        let all = ["--private-capi-types", &source];
        let all: Vec<&str> = all.iter().chain(more).copied().collect();
        text(&render(&all))
    };
    let documents = |text: &str| text.split("---\n").map(str::to_owned).collect::<Vec<_>>();
    let without = documents(&render(&[]));
    let with = render(&CONVERSION);
    let added = documents(&with)
        .into_iter()
        .filter(|one| !without.contains(one));
    compare("conversion.yaml", &added.collect::<Vec<_>>().join("---\n"));
}

/// It would be another one each time, and its key would be shown.
/// Check C06.
#[test]
fn a_self_managed_certificate_is_not_rendered() {
    let private = private();
    let mut arguments: Vec<&str> = private.iter().map(String::as_str).collect();
    arguments.extend(CONVERSION);
    arguments.push("--conversion-certificates=self-managed");
    let output = render(&arguments);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(stderr.contains("--conversion-certificates"), "{stderr}");
    assert!(output.stdout.is_empty());
}

#[test]
fn the_same_arguments_give_the_same_bytes() {
    assert_eq!(rendered(&[]), rendered(&[]));
}

#[test]
fn flags_may_precede_the_verb() {
    let private = private();
    let output = Command::new(env!("CARGO_BIN_EXE_hypershift"))
        .arg("install")
        .args(&private)
        .args(IMAGES)
        .arg("render")
        .output()
        .expect("the binary runs");
    assert_eq!(text(&output), rendered(&[]));
}

#[test]
fn crds_are_our_own_and_the_private_ones() {
    let crds = names(&rendered(&["--outputs=crds"]));
    for name in [
        "nodepools.hypershift.openshift.io",
        "machines.cluster.hypershift.openshift.io",
        "awsmachines.infrastructure.cluster.hypershift.openshift.io",
    ] {
        assert!(
            crds.contains(&format!("CustomResourceDefinition {name}")),
            "{name}: {crds:?}"
        );
    }
    assert!(
        !format!("{crds:?}").contains("cluster.x-k8s.io"),
        "{crds:?}"
    );

    let standard = names(&text(&render(&["--outputs=crds"])));
    assert!(
        !format!("{standard:?}").contains("machines"),
        "{standard:?}"
    );

    let limited = names(&rendered(&["--outputs=crds", "--limit-crd-install=gcp"]));
    assert!(
        !format!("{limited:?}").contains("awsmachines"),
        "{limited:?}"
    );
}

#[test]
fn parts_add_up_to_the_whole() {
    let mut parts = names(&rendered(&["--outputs=crds"]));
    parts.extend(names(&rendered(&["--outputs=resources"])));
    assert_eq!(parts, names(&rendered(&["--outputs=all"])));
}

#[test]
fn secrets_are_rendered_only_on_request() {
    let flag = format!("--pull-secret={}", data("pull-secret.json"));
    let without = rendered(&["--outputs=resources", &flag]);
    assert!(!without.contains("kind: Secret"), "{without}");
    assert!(!without.contains("dockerconfigjson:"), "{without}");
    let with = rendered(&["--outputs=resources", &flag, "--render-sensitive"]);
    assert!(with.contains("kind: Secret"), "{with}");
}

#[test]
fn credentials_for_scaling_from_zero_are_mounted() {
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("install-aws-credentials");
    let profile = "[default]\naws_access_key_id = a\naws_secret_access_key = hunter2\n";
    fs::write(&file, profile).expect("it can be written");
    let creds = format!("--scale-from-zero-creds={}", file.display());
    let own = "hypershift-operator-scale-from-zero-credentials";
    for (source, secret, key) in [
        (&[creds.as_str()][..], own, "credentials"),
        (
            &[
                "--scale-from-zero-secret=aws",
                "--scale-from-zero-secret-key=ec2",
            ],
            "aws",
            "ec2",
        ),
    ] {
        let mut flags = vec![
            "--outputs=resources",
            "--assume=legacy",
            "--render-sensitive",
            "--scale-from-zero-provider=aws",
        ];
        flags.extend(source);
        let objects = objects(&rendered(&flags));
        let is_made = objects
            .iter()
            .any(|one| one["kind"] == "Secret" && one["metadata"]["name"] == secret);
        assert_eq!(is_made, secret == own, "{secret}");
        let deployments = objects.iter().filter(|one| one["kind"] == "Deployment");
        let mut operators = 0;
        for deployment in deployments {
            let pod = &deployment["spec"]["template"]["spec"];
            let volume = json!({
                "name": "scale-from-zero",
                "secret": {
                    "secretName": secret,
                    "items": [{ "key": key, "path": "credentials" }],
                },
            });
            assert_eq!(pod["volumes"], json!([volume]));
            let arguments = pod["containers"][0]["args"].as_array();
            let arguments = arguments.expect("it has arguments");
            let path = "--scale-from-zero-creds=/etc/hypershift/scale-from-zero/credentials";
            assert!(arguments.contains(&json!(path)), "{arguments:?}");
            operators += 1;
        }
        assert_eq!(operators, 2);
    }
}

#[test]
fn the_bucket_for_oidc_documents_is_published_and_mounted() {
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("install-oidc-credentials");
    let profile = "[default]\naws_access_key_id = a\naws_secret_access_key = hunter2\n";
    fs::write(&file, profile).expect("it can be written");
    let creds = format!("--oidc-storage-provider-s3-credentials={}", file.display());
    let role = "--oidc-storage-provider-s3-role-arn=arn:aws:iam::123456789012:role/oidc";
    let own = "hypershift-operator-oidc-provider-s3-credentials";
    for (source, secret, key, volumes) in [
        (&[creds.as_str()][..], own, "credentials", 1),
        (&[role], own, "credentials", 2),
        (
            &[
                "--oidc-storage-provider-s3-secret=bucket",
                "--oidc-storage-provider-s3-secret-key=writer",
            ],
            "bucket",
            "writer",
            1,
        ),
    ] {
        let mut flags = vec![
            "--outputs=resources",
            "--assume=legacy",
            "--render-sensitive",
            "--oidc-storage-provider-s3-bucket-name=documents",
            "--oidc-storage-provider-s3-region=eu-west-1",
        ];
        flags.extend(source);
        let objects = objects(&rendered(&flags));
        let named = |kind: &str, name: &str| {
            let mut objects = objects.iter();
            objects.find(|one| one["kind"] == kind && one["metadata"]["name"] == name)
        };
        let config =
            named("ConfigMap", "oidc-storage-provider-s3-config").expect("it is published");
        assert_eq!(config["metadata"]["namespace"], "kube-public");
        let expected = json!({ "name": "documents", "region": "eu-west-1" });
        assert_eq!(config["data"], expected);
        assert_eq!(named("Secret", secret).is_some(), secret == own, "{secret}");
        let deployments = objects.iter().filter(|one| one["kind"] == "Deployment");
        let mut operators = 0;
        for deployment in deployments {
            let pod = &deployment["spec"]["template"]["spec"];
            let items = json!([{ "key": key, "path": "credentials" }]);
            assert_eq!(pod["volumes"][0]["secret"]["secretName"], secret);
            assert_eq!(pod["volumes"][0]["secret"]["items"], items);
            let count = |list: &Value| list.as_array().map_or(0, Vec::len);
            assert_eq!(count(&pod["volumes"]), volumes, "{secret}");
            let container = &pod["containers"][0];
            assert_eq!(count(&container["volumeMounts"]), volumes, "{secret}");
            let arguments = container["args"].as_array().expect("it has arguments");
            for argument in [
                "--oidc-storage-provider-s3-bucket-name=documents",
                "--oidc-storage-provider-s3-region=eu-west-1",
                "--oidc-storage-provider-s3-credentials=/etc/hypershift/oidc-storage-provider-s3/credentials",
            ] {
                assert!(arguments.contains(&json!(argument)), "{arguments:?}");
            }
            operators += 1;
        }
        assert_eq!(operators, 2);
    }
}

#[test]
fn json_holds_the_same_objects() {
    let json = rendered(&["--format=json"]);
    let list: Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(list["items"], Value::from(objects(&rendered(&[]))));
}

#[test]
fn every_object_is_labeled_with_its_installation() {
    for object in objects(&rendered(&["--assume=monitoring,console,legacy"])) {
        let labels = &object["metadata"]["labels"];
        assert_eq!(
            labels["app.kubernetes.io/managed-by"], "hypershift-install",
            "{object:.200}"
        );
        assert_eq!(
            labels["hypershift.openshift.io/installation"], "hypershift",
            "{object:.200}"
        );
    }
}

/// The tests on a real API server run the operators with what this function gives, and show each right in use.
#[test]
fn operators_get_the_rights_that_they_are_tested_with() {
    let rendered = objects(&rendered(&["--outputs=resources", "--assume=legacy"]));
    for operator in ["operator", "operator-legacy"] {
        let tested = cli::install::rights_of(operator, "hypershift").expect("an operator");
        assert_eq!(tested.len(), 4, "{operator}");
        for object in tested {
            let same = rendered.iter().find(|one| {
                one["kind"] == object["kind"]
                    && one["metadata"]["name"] == object["metadata"]["name"]
            });
            let same = same.expect("it is rendered");
            for field in ["rules", "roleRef", "subjects"] {
                assert_eq!(same[field], object[field], "{object}");
            }
        }
    }
}

/// T17: a proxy beside an operator would lend the operator's cluster-wide permissions to everything on loopback.
#[test]
fn operators_have_no_proxy_sidecar() {
    let text = rendered(&[
        "--outputs=resources",
        "--assume=legacy,monitoring",
        "--additional-operator-env-vars=A=b",
    ]);
    let objects = objects(&text);
    let mut operators = 0;
    for object in &objects {
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        let is_alert = object["kind"] == "PrometheusRule";
        assert!(is_alert || !object.to_string().contains("9081"), "{object}");
        if object["kind"] == "Deployment" && name.starts_with("operator") {
            operators += 1;
            let pod = &object["spec"]["template"]["spec"];
            assert!(pod["initContainers"].is_null(), "{pod}");
            assert_eq!(pod["containers"].as_array().map(Vec::len), Some(1), "{pod}");
        }
    }
    assert_eq!(operators, 2);
}

/// T12: an operator that leaks ends by itself, and does not take its node with it.
#[test]
fn operators_have_a_memory_limit_above_their_request() {
    let mebibytes = |quantity: &Value| {
        let text = quantity.as_str().unwrap_or_default();
        let (number, unit) = text.split_at(text.len().saturating_sub(2));
        let number: u64 = number.parse().expect("a quantity in Mi or Gi");
        if unit == "Gi" { number * 1024 } else { number }
    };
    let objects = objects(&rendered(&["--outputs=resources", "--assume=legacy"]));
    let deployments = objects.iter().filter(|one| one["kind"] == "Deployment");
    let mut seen = 0;
    for deployment in deployments {
        let container = &deployment["spec"]["template"]["spec"]["containers"][0];
        let resources = &container["resources"];
        let limit = mebibytes(&resources["limits"]["memory"]);
        let request = mebibytes(&resources["requests"]["memory"]);
        // Half a gibibyte is what a migration beside a full cache of releases may take.
        assert!(limit >= 512 && limit > request, "{resources}");
        seen += 1;
    }
    assert_eq!(seen, 2);
}

#[test]
fn the_dashboard_shows_metrics_that_exist() {
    let root = directory().join("../..");
    let read = |path: &str| fs::read_to_string(root.join(path)).expect(path);
    let documented =
        ["metrics", "proxy", "conversion"].map(|name| read(&format!("docs/{name}.md")));
    let documented = documented.concat();
    let dashboard = read("manifests/install/dashboard.json");
    let mut seen = 0;
    for name in dashboard.split(|c: char| !c.is_ascii_alphanumeric() && c != '_') {
        let metric = name.trim_end_matches("_bucket").trim_end_matches("_total");
        if name.starts_with("hypershift_") {
            assert!(
                documented.contains(metric),
                "{name} is not a documented metric"
            );
            seen += 1;
        }
    }
    assert!(seen > 3, "{seen} metrics in the dashboard");
}

#[test]
fn usage_errors_are_reported_as_such() {
    let private = private();
    let table: [(&[&str], &str); 17] = [
        (&["--namespace=A"], "--namespace"),
        (&["--private-crds-from=cluster"], "--private-capi-types"),
        (
            &["--private-capi-types", "--private-crds-from=nowhere"],
            "--private-crds-from",
        ),
        (&["--registry-overrides=a"], "--registry-overrides"),
        (
            &[&private[0], &private[1], "--enable-conversion-webhook"],
            "--conversion-backend",
        ),
        (&["--replicas=0"], "--replicas"),
        (
            &["--scale-from-zero-provider=aws"],
            "--scale-from-zero-secret",
        ),
        (
            &["--scale-from-zero-secret=aws"],
            "--scale-from-zero-provider",
        ),
        (
            &["--oidc-storage-provider-s3-bucket-name=a"],
            "--oidc-storage-provider-s3-credentials",
        ),
        (
            &[
                "--oidc-storage-provider-s3-secret=a",
                "--oidc-storage-provider-s3-role-arn=b",
            ],
            "--oidc-storage-provider-s3-secret",
        ),
        (
            &["--oidc-storage-provider-s3-secret=a"],
            "--oidc-storage-provider-s3-bucket-name",
        ),
        (
            &[
                "--oidc-storage-provider-s3-secret=a",
                "--oidc-storage-provider-s3-region=eu-west-1",
                "--oidc-storage-provider-s3-bucket-name=a.b",
            ],
            "without dots",
        ),
        (
            &["--oidc-storage-provider-s3-role-arn=admin"],
            "is not the ARN of a role",
        ),
        (
            &[
                "--aws-operator-roles-file=roles.json",
                "--aws-private-role-arn=a",
            ],
            "--aws-private-role-arn",
        ),
        (&["--private-platform=AWS"], "--aws-private-region"),
        (
            &["--aws-private-region=eu-west-1"],
            "--private-platform=AWS",
        ),
        (
            &[
                "--private-platform=AWS",
                "--aws-private-region=eu-west-1",
                "--gcp-project=a",
            ],
            "--private-platform=GCP",
        ),
    ];
    for (arguments, flag) in table {
        let output = render(arguments);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(64), "{arguments:?}: {stderr}");
        assert!(stderr.contains(flag), "{arguments:?}: {stderr}");
    }
}

#[test]
fn tech_preview_has_its_crds_and_its_operator() {
    for (arguments, expected) in [(&[][..], false), (&["--tech-preview-no-upgrade"][..], true)] {
        let text = text(&render(arguments));
        for part in [
            "gcpprivateserviceconnects.hypershift.openshift.io",
            "release.openshift.io/feature-set",
            "HYPERSHIFT_FEATURESET",
        ] {
            assert_eq!(text.contains(part), expected, "{arguments:?}: {part}");
        }
    }
}
