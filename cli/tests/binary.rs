//! The binary from outside: exit statuses, and which stream carries what.

use std::{
    io::Write,
    process::{Command, Output, Stdio},
};

const CRD: &str = "\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: machines.cluster.x-k8s.io}
spec:
  group: cluster.x-k8s.io
  names: {kind: Machine, plural: machines}
  scope: Namespaced
  versions: [{name: v1beta2, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
";

fn hypershift(arguments: &[&str], input: &str) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_hypershift"))
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary starts");
    let mut stdin = child.stdin.take().expect("standard input is a pipe");
    // A command that reads nothing may have ended already.
    drop(stdin.write_all(input.as_bytes()));
    drop(stdin);
    child.wait_with_output().expect("the binary ends")
}

#[test]
fn exit_statuses_distinguish_failures_from_usage_errors() {
    let derive = ["crds", "derive", "--from-file", "-"];
    let table: [(&[&str], &str, i32); 8] = [
        (&derive, CRD, 0),
        (&["--help"], "", 0),
        (&["--version"], "", 0),
        (&["completions", "bash"], "", 0),
        (&derive, "kind: [", 1),
        (&["crds", "derive", "--from-file", "/does/not/exist"], "", 1),
        (&["crds", "derive"], "", 64),
        (
            &["crds", "derive", "--from-url", "http://example.com/"],
            "",
            64,
        ),
    ];
    for (arguments, input, expected) in table {
        let output = hypershift(arguments, input);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(
            output.status.code(),
            Some(expected),
            "{arguments:?}: {stderr}"
        );
        assert_eq!(
            expected == 0,
            !output.stdout.is_empty(),
            "{arguments:?}: {stderr}"
        );
    }
}

#[test]
fn output_and_remarks_go_to_different_streams() {
    let output = hypershift(&["crds", "derive", "--from-file", "-"], CRD);
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert!(
        stdout.starts_with("apiVersion: apiextensions.k8s.io/v1\n"),
        "{stdout}"
    );
    assert!(
        stdout.contains("name: machines.cluster.hypershift.openshift.io"),
        "{stdout}"
    );
    assert_eq!(
        String::from_utf8_lossy(&output.stderr),
        "derived 1 private CRDs\n"
    );

    let quiet = hypershift(&["crds", "derive", "--quiet", "--from-file", "-"], CRD);
    assert_eq!(quiet.stdout, output.stdout);
    assert_eq!(String::from_utf8_lossy(&quiet.stderr), "");
}

#[test]
fn errors_name_the_object_and_the_chain_of_causes_once() {
    let input = CRD.replace("plural: machines", "plural: machinen");
    let output = hypershift(&["crds", "derive", "--from-file", "-"], &input);
    let stderr = String::from_utf8_lossy(&output.stderr);
    let mut lines = stderr.lines();
    assert_eq!(
        lines.next(),
        Some(
            "error: standard input, document 1: CustomResourceDefinition machines.cluster.x-k8s.io cannot be derived"
        )
    );
    let cause = lines.next().unwrap_or_default();
    assert!(
        cause.starts_with("  because its plural is machinen"),
        "{stderr}"
    );
    assert_eq!(lines.next(), None, "{stderr}");
}

#[test]
fn hcp_prints_a_cluster_without_secrets_and_without_a_cluster() {
    let data = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/create");
    let secret = format!("--pull-secret={data}/pull-secret.json");
    let usual = [
        "create",
        "cluster",
        "none",
        "--name=a",
        "--release-image=registry.example.com/release:1",
        "--external-api-server-address=192.0.2.1",
        "--render",
    ];
    let hcp = |more: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_hcp"))
            .args(usual)
            .args(more)
            .output()
            .expect("the binary starts");
        (
            output.status.code(),
            String::from_utf8_lossy(&output.stdout).into_owned(),
            String::from_utf8_lossy(&output.stderr).into_owned(),
        )
    };
    let (status, text, _) = hcp(&[&secret]);
    assert_eq!(status, Some(0));
    assert!(text.contains("kind: HostedCluster") && text.contains("kind: NodePool"));
    assert!(!text.contains("kind: Secret"), "{text}");
    let (_, text, _) = hcp(&[&secret, "--render-sensitive"]);
    assert!(text.contains("kind: Secret"), "{text}");

    let (status, _, said) = hcp(&[]);
    assert_eq!(status, Some(64), "{said}");
    let (status, _, said) = hcp(&["--pull-secret=/does/not/exist"]);
    assert_eq!(status, Some(1));
    assert!(
        said.contains("cannot read /does/not/exist, named by --pull-secret"),
        "{said}"
    );
}
