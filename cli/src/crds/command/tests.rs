//! The command line of `crds derive`, run in this process.

use std::fs;

use clap::Parser;

use crate::{Cli, Usage};

const MACHINES: &str = "\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: machines.cluster.x-k8s.io
spec:
  group: cluster.x-k8s.io
  names: {kind: Machine, plural: machines}
  scope: Namespaced
  versions:
  - {name: v1beta1, served: true, storage: false, schema: {openAPIV3Schema: {type: object}}}
  - {name: v1beta2, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {}}}}
";

fn run(arguments: &[&str]) -> anyhow::Result<()> {
    let prefix = ["hypershift", "crds", "derive", "--quiet"];
    let cli = Cli::try_parse_from(prefix.iter().chain(arguments))?;
    crate::run(cli)
}

#[test]
fn writes_a_file_for_each_crd() {
    let directory = tempfile::tempdir().unwrap();
    let input = directory.path().join("in.yaml");
    fs::write(&input, MACHINES).unwrap();
    let (input, output) = (input.to_str().unwrap(), directory.path().join("out"));
    let common = [
        "--from-file",
        input,
        "--format",
        "json",
        "--output",
        output.to_str().unwrap(),
    ];
    run(&[&common[..], &["--versions", "storage"]].concat()).unwrap();
    let name = "machines.cluster.hypershift.openshift.io.json";
    let text = fs::read_to_string(output.join(name)).unwrap();
    assert!(
        text.contains("\"v1beta2\"") && !text.contains("\"v1beta1\""),
        "{text}"
    );

    let refused = run(&common).unwrap_err();
    assert!(
        format!("{refused:#}").contains("--versions storage"),
        "{refused:#}"
    );
}

#[test]
fn a_ca_file_ends_up_in_the_stanza() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    fs::write(path("in.yaml"), MACHINES).unwrap();
    let pem = rcgen::generate_simple_self_signed(Vec::new())
        .unwrap()
        .cert
        .pem();
    fs::write(path("ca.pem"), pem).unwrap();
    run(&[
        "--from-file",
        &path("in.yaml"),
        "--conversion",
        "webhook=ns/shim:8443",
        "--conversion-ca",
        &path("ca.pem"),
        "--output",
        &path("out"),
    ])
    .unwrap();
    let text =
        fs::read_to_string(path("out/machines.cluster.hypershift.openshift.io.yaml")).unwrap();
    for expected in [
        "caBundle: LS0t",
        "port: 8443",
        "name: v1beta1",
        "name: v1beta2",
    ] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
}

#[test]
fn arguments_that_make_no_sense_together_are_wrong_usage() {
    let table: [&[&str]; 6] = [
        &["--from-file", "x", "--conversion-ca", "ca.pem"],
        &["--from-url", "http://example.com/crds.yaml"],
        &["--from-url", "ftp://example.com"],
        &["--from-url", "https://user:password@example.com"],
        &[
            "--from-file",
            "x",
            "--group-pair",
            "cluster.x-k8s.io=a.example.com",
        ],
        &[
            "--from-file",
            "x",
            "--group-pair",
            "a.example.com=b.example.com",
            "--group-pair",
            "b.example.com=c.example.com",
        ],
    ];
    for arguments in table {
        let error = run(arguments).unwrap_err();
        assert!(error.is::<Usage>(), "{arguments:?}: {error:#}");
        assert!(!error.to_string().contains("password"), "{error:#}");
    }
}

#[test]
fn arguments_that_are_wrong_alone_are_refused_by_the_parser() {
    let table: [&[&str]; 6] = [
        &[],
        &["--from-file", "x", "--conversion", "webhook"],
        &["--from-file", "x", "--versions", "newest"],
        &["--from-file", "x", "--contract-label", "a=b"],
        &["--from-file", "x", "--kubeconfig", "k"],
        &["--from-module", "example.com/unpinned"],
    ];
    for arguments in table {
        let error = run(arguments).unwrap_err();
        let error = error
            .downcast_ref::<clap::Error>()
            .expect("an error of the parser");
        assert!(error.use_stderr(), "{arguments:?}");
    }
}

/// Each command in the help's examples is one that the parser takes.
#[test]
fn examples_in_the_help_parse() {
    let joined = super::EXAMPLES.replace("\\\n", " ");
    let examples: Vec<_> = joined
        .lines()
        .filter_map(|line| line.trim().strip_prefix("hypershift "))
        .map(|line| line.split('|').next().unwrap_or_default())
        .collect();
    assert_eq!(examples.len(), 4);
    for example in examples {
        let words = ["hypershift"].into_iter().chain(example.split_whitespace());
        assert!(Cli::try_parse_from(words).is_ok(), "{example}");
    }
}
