//! The three programs after one another, as the ignition server of a control plane runs them.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::*;
use crate::manifests::{entries, write};
use crate::server::Server;

const VERSION: &str = "4.22.0";
/// The files with the configuration of the cluster.
const CONFIG: [(&str, &str); 15] = [
    ("root-ca.crt", "-----BEGIN CERTIFICATE-----\nROOT\n"),
    ("signer-ca.crt", "-----BEGIN CERTIFICATE-----\nCLIENTS\n"),
    (
        "cluster-dns-02-config.yaml",
        "{kind: DNS, metadata: {name: cluster}, spec: {baseDomain: one.example.com}}",
    ),
    (
        "cluster-infrastructure-02-config.yaml",
        "{kind: Infrastructure, metadata: {name: cluster}, status: {platformStatus: {type: AWS}}}",
    ),
    (
        "cluster-network-02-config.yaml",
        "{kind: Network, metadata: {name: cluster}, spec: {serviceNetwork: [172.31.0.0/16]}}",
    ),
    (
        "cluster-proxy-01-config.yaml",
        "{kind: Proxy, metadata: {name: cluster}, spec: {httpProxy: 'http://proxy.example.com:3128'}, \
         status: {httpProxy: 'http://proxy.example.com:3128', noProxy: '.svc,172.31.0.0/16'}}",
    ),
    ("install-config.yaml", "{controlPlane: {replicas: 1}}"),
    (
        "pull-secret.yaml",
        "{kind: Secret, metadata: {name: pull-secret}, type: kubernetes.io/dockerconfigjson, \
         data: {.dockerconfigjson: eyJhdXRocyI6e319}}",
    ),
    (
        "user-ca-bundle-config.yaml",
        "{kind: ConfigMap, metadata: {name: user-ca-bundle}, data: {ca-bundle.crt: \"CA OF THE COMPANY\\n\"}}",
    ),
    (
        "image-references",
        r#"{"kind":"ImageStream","metadata":{"name":"4.22.0"},"spec":{"tags":[
        {"name":"machine-config-operator","from":{"kind":"DockerImage","name":"images.example.com/mco@sha256:1"}},
        {"name":"rhel-coreos","from":{"kind":"DockerImage","name":"images.example.com/os@sha256:9"}}]}}"#,
    ),
    (
        "cluster-apiserver-config.yaml",
        "{kind: APIServer, metadata: {name: cluster}, spec: {}}",
    ),
    (
        "image-config.yaml",
        "{kind: Image, metadata: {name: cluster}, spec: {}}",
    ),
    ("master.machineconfigpool.yaml", ""),
    ("worker.machineconfigpool.yaml", ""),
    (
        "99_feature-gate.yaml",
        "{kind: FeatureGate, metadata: {name: cluster}, status: {featureGates: [{version: 4.22.0}]}}",
    ),
];
/// Files that are no input of the operator: they are copied for the controller.
const OF_CONTROLLER: [&str; 3] = [
    "99_feature-gate.yaml",
    "cluster-apiserver-config.yaml",
    "image-config.yaml",
];
/// The pool's own configuration.
const CUSTOM: &str = r#"---
kind: MachineConfig
metadata: {name: 99-second, labels: {machineconfiguration.openshift.io/role: worker}}
spec:
  kernelArguments: [audit=1]
  config:
    ignition: {version: 3.2.0}
    storage: {files: [{path: /etc/motd, mode: 420, contents: {source: "data:,second"}}]}
---
kind: MachineConfig
metadata: {name: 50-first, labels: {machineconfiguration.openshift.io/role: worker}}
spec:
  kernelArguments: [nosmt]
  extensions: [usbguard]
  config:
    ignition: {version: 3.4.0}
    passwd: {users: [{name: core, sshAuthorizedKeys: ["ssh-ed25519 BBBB b@example.com"]}]}
    storage: {files: [{path: /etc/motd, mode: 384, contents: {source: "data:,first"}}]}
    systemd: {units: [{name: kubelet.service, dropins: [{name: 50-more.conf, contents: "[Service]\n"}]}]}
---
kind: MachineConfig
metadata: {name: 30-fips, labels: {machineconfiguration.openshift.io/role: worker}}
spec: {fips: true, config: {ignition: {version: 3.2.0}}}
---
kind: MachineConfig
metadata: {name: 99-worker-ssh, labels: {machineconfiguration.openshift.io/role: worker}}
spec:
  config:
    ignition: {version: 3.2.0}
    passwd: {users: [{name: core, sshAuthorizedKeys: ["ssh-ed25519 AAAA a@example.com"]}]}
---
kind: KubeletConfig
metadata: {name: small}
spec:
  machineConfigPoolSelector: {matchLabels: {machineconfiguration.openshift.io/mco-built-in: ""}}
  logLevel: 4
  kubeletConfig: {cgroupDriver: cgroupfs, maxPods: 100, systemReserved: {memory: 2Gi}}
---
kind: ContainerRuntimeConfig
metadata: {name: pids}
spec:
  machineConfigPoolSelector: {matchLabels: {machineconfiguration.openshift.io/mco-built-in: ""}}
  containerRuntimeConfig: {pidsLimit: 2048, logSizeMax: 50Mi}
---
kind: ImageTagMirrorSet
metadata: {name: tags}
spec: {imageTagMirrors: [{source: images.example.com/tools, mirrors: [mirror.example.com/tools]}]}
"#;

/// One run, in a directory of its own.
struct Run(TempDir);

// === impl Run ===

impl Run {
    fn new() -> Self {
        let run = Self(tempfile::tempdir().unwrap());
        for (name, text) in CONFIG {
            run.write(&format!("config/{name}"), text);
        }
        for pool in ["master", "worker"] {
            let object = json!({
                "kind": "MachineConfigPool",
                "metadata": {
                    "name": pool,
                    "labels": { "machineconfiguration.openshift.io/mco-built-in": "" },
                },
                "spec": { "machineConfigSelector": {
                    "matchLabels": { "machineconfiguration.openshift.io/role": "worker" },
                } },
            });
            let name = format!("config/{pool}.machineconfigpool.yaml");
            run.write(&name, &object.to_string());
        }
        run.write("mcc/custom.yaml", CUSTOM);
        run.write("mcs/kubeconfig", "kind: Config\n");
        let templates = Path::new(env!("CARGO_MANIFEST_DIR")).join("../src/payload/templates");
        copy(&templates, &run.path("mcc/etc/mcc/templates"));
        run
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        write(&self.path(name), text).unwrap();
    }

    /// A command line, with `@` for the directory.
    fn args(&self, flags: &[&str]) -> Vec<String> {
        let directory = self.0.path().display().to_string();
        let flags = flags.iter().map(|flag| flag.replace('@', &directory));
        ["bootstrap".to_owned()].into_iter().chain(flags).collect()
    }

    fn operator_args(&self) -> Vec<String> {
        self.args(&[
            "--root-ca=@/config/root-ca.crt",
            "--kube-ca=@/config/signer-ca.crt",
            "--infra-config-file=@/config/cluster-infrastructure-02-config.yaml",
            "--network-config-file=@/config/cluster-network-02-config.yaml",
            "--proxy-config-file=@/config/cluster-proxy-01-config.yaml",
            "--config-file=@/config/install-config.yaml",
            "--dns-config-file=@/config/cluster-dns-02-config.yaml",
            "--pull-secret=@/config/pull-secret.yaml",
            "--dest-dir=@/mco",
            "--additional-trust-bundle-config-file=@/config/user-ca-bundle-config.yaml",
            "--release-image=images.example.com/release:4.22.0",
            "--image-references=@/config/image-references",
            "--payload-version=4.22.0",
        ])
    }

    /// What is between the operator and the controller.
    fn copy(&self) {
        copy(&self.path("mco/bootstrap/manifests"), &self.path("mcc"));
        let pools = ["master", "worker"].map(|pool| format!("{pool}.machineconfigpool.yaml"));
        let others = OF_CONTROLLER.map(str::to_owned);
        for name in pools.iter().chain(&others) {
            let to = self.path("mcc").join(name);
            fs::copy(self.path("config").join(name), to).unwrap();
        }
    }

    fn controller_args(&self, version: &str) -> Vec<String> {
        self.args(&[
            "--manifest-dir=@/mcc",
            "--templates=@/mcc/etc/mcc/templates",
            "--pull-secret=@/mcc/machineconfigcontroller-pull-secret",
            "--dest-dir=@/mcs",
            &format!("--payload-version={version}"),
        ])
    }

    fn server_args(&self) -> Vec<String> {
        self.args(&[
            "--server-basedir=@/mcs",
            "--bootstrap-kubeconfig=@/mcs/kubeconfig",
            "--cert=@/tls.crt",
            "--key=@/tls.key",
            "--secure-port=22625",
            "--insecure-port=22626",
        ])
    }

    /// What the server serves for a pool.
    fn served(&self, pool: &str) -> Result<Value> {
        Server::new(&server::parse(self.server_args())?)?.config(pool)
    }
}

/// Copies a directory.
fn copy(from: &Path, to: &Path) {
    for path in entries(from).unwrap() {
        let to = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy(&path, &to);
        } else {
            fs::create_dir_all(to.parent().unwrap()).unwrap();
            fs::copy(&path, &to).unwrap();
        }
    }
}

/// The document as text: files, then units. Objects are sorted, since their order depends on the features of a build.
fn readable(config: &Value) -> String {
    let mut text = format!("ignition {}\n", config["ignition"]);
    let _ = writeln!(text, "users {}", sorted(&config["passwd"]["users"]));
    for file in config["storage"]["files"].as_array().unwrap() {
        let mode = file["mode"].as_u64().unwrap();
        let _ = writeln!(text, "\n=== {} {mode:04o}", file["path"].as_str().unwrap());
        text += content(file["contents"]["source"].as_str().unwrap()).trim_end();
        text += "\n";
    }
    for unit in config["systemd"]["units"].as_array().unwrap() {
        let _ = writeln!(text, "\n=== {} enabled={}", unit["name"], unit["enabled"]);
        text += unit["contents"].as_str().unwrap_or_default();
        for part in unit["dropins"].as_array().into_iter().flatten() {
            let contents = part["contents"].as_str().unwrap();
            let _ = write!(text, "--- {}\n{contents}", part["name"]);
        }
    }
    text
}

fn content(source: &str) -> String {
    let (kind, data) = source.split_once(',').unwrap();
    let text = if kind.ends_with(";base64") {
        String::from_utf8(STANDARD.decode(data).unwrap()).unwrap()
    } else {
        data.to_owned()
    };
    match serde_json::from_str::<Value>(&text) {
        Ok(value @ Value::Object(_)) => without_hash(&format!("{:#}", sorted(&value))),
        _ => text,
    }
}

fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let mut fields: Vec<_> = fields.iter().collect();
            fields.sort_by_key(|(name, _)| *name);
            let fields = fields.into_iter();
            fields
                .map(|(name, value)| (name.clone(), sorted(value)))
                .collect()
        }
        Value::Array(items) => items.iter().map(sorted).collect(),
        other => other.clone(),
    }
}

/// The name of the rendered MachineConfig has a hash of its content.
fn without_hash(text: &str) -> String {
    let prefix = "rendered-master-";
    match text.split_once(prefix) {
        Some((before, after)) => format!("{before}{prefix}HASH{}", &after[32..]),
        None => text.to_owned(),
    }
}

fn golden(text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/machine-config.txt");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        write(&path, text).unwrap();
    }
    let expected = fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(
        text,
        expected,
        "{}: rewrite it with UPDATE_GOLDEN=1",
        path.display()
    );
}

#[test]
fn programs_are_found_by_their_names() {
    for (called, expected) in [
        ("/usr/bin/machine-config-operator", Some(Program::Operator)),
        ("bin/machine-config-controller", Some(Program::Controller)),
        (
            "/tmp/a.b/machine-config-server.rhel9",
            Some(Program::Server),
        ),
        ("/usr/bin/machine-config", None),
        ("", None),
    ] {
        assert_eq!(Program::named(called), expected, "{called}");
    }
}

#[test]
fn a_worker_is_configured_by_all_three() {
    let run = Run::new();
    operator::bootstrap(run.operator_args()).unwrap();
    run.copy();
    controller::bootstrap(run.controller_args(VERSION)).unwrap();
    let master = run.served("master").unwrap();
    golden(&readable(&master));
    let files = |config: Value| config["storage"]["files"].as_array().map(Vec::len);
    assert_eq!(files(run.served("worker").unwrap()), files(master));
}

#[test]
fn pools_of_the_operator_are_not_those_of_a_hosted_cluster() {
    let run = Run::new();
    operator::bootstrap(run.operator_args()).unwrap();
    run.copy();
    // What happens when the operator's manifests are copied last.
    copy(&run.path("mco/bootstrap/manifests"), &run.path("mcc"));
    controller::bootstrap(run.controller_args(VERSION)).unwrap();
    let text = readable(&run.served("master").unwrap());
    assert!(
        text.contains("=== /etc/kubernetes/control-plane-machine"),
        "{text}"
    );
    assert!(!text.contains("kubelet.conf 0644"), "{text}");
}

#[test]
fn the_operator_needs_its_flags_and_files() {
    let run = Run::new();
    let args = run.operator_args();
    for (index, arg) in args.iter().enumerate().skip(1) {
        let mut others = args.clone();
        others.remove(index);
        let (flag, _) = arg.split_once('=').unwrap();
        let error = operator::bootstrap(others).unwrap_err();
        assert_eq!(error, format!("flag {flag} is missing"));
    }
    let optional = ["user-ca-bundle-config.yaml"];
    for (name, text) in CONFIG {
        let path = run.path(&format!("config/{name}"));
        let is_input = args.iter().any(|arg| arg.ends_with(name)) && !optional.contains(&name);
        fs::remove_file(&path).unwrap();
        let outcome = operator::bootstrap(args.clone());
        run.write(&format!("config/{name}"), text);
        let expected = format!("failed to read {}", path.display());
        match outcome {
            Ok(()) => assert!(!is_input, "{name}"),
            Err(error) => assert!(is_input && error.starts_with(&expected), "{name}: {error}"),
        }
    }
}

#[test]
fn the_operator_refuses_inputs_by_name() {
    for (name, text, expected) in [
        ("root-ca.crt", "ROOT\n", "no certificate in it"),
        (
            "cluster-infrastructure-02-config.yaml",
            "{kind: Infrastructure, metadata: {name: cluster}}",
            "Infrastructure cluster: status.platformStatus.type: ",
        ),
        (
            "cluster-infrastructure-02-config.yaml",
            "{kind: Infrastructure, metadata: {name: cluster}, status: {platformStatus: {type: Azure}}}",
            "flag --cloud-config-file is missing",
        ),
        (
            "cluster-dns-02-config.yaml",
            "{kind: Network}",
            "its kind is \"Network\" in place of DNS",
        ),
        (
            "image-references",
            "{kind: ImageStream, metadata: {name: 4.22.0}, spec: {tags: [{name: machine-config-operator}]}}",
            "ImageStream 4.22.0: spec.tags: no tag rhel-coreos",
        ),
        (
            "user-ca-bundle-config.yaml",
            "{kind: ConfigMap, metadata: {name: user-ca-bundle}}",
            "ConfigMap user-ca-bundle: data.ca-bundle.crt: ",
        ),
    ] {
        let run = Run::new();
        run.write(&format!("config/{name}"), text);
        let error = operator::bootstrap(run.operator_args()).unwrap_err();
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn the_controller_needs_what_is_written_before_it() {
    let feature_gate = "99_feature-gate.yaml";
    for (missing, expected) in [
        (
            "machineconfigcontroller-controllerconfig.yaml",
            "the manifests have no ControllerConfig: ",
        ),
        ("machineconfigcontroller-pull-secret", "failed to read "),
        (feature_gate, "the manifests have no FeatureGate: "),
        (
            "cluster-apiserver-config.yaml",
            "the manifests have no APIServer: ",
        ),
        ("image-config.yaml", "the manifests have no Image: "),
        ("etc/mcc/templates", "failed to read "),
    ] {
        let run = Run::new();
        operator::bootstrap(run.operator_args()).unwrap();
        run.copy();
        let path = run.path("mcc").join(missing);
        fs::rename(&path, run.path("removed")).unwrap();
        let error = controller::bootstrap(run.controller_args(VERSION)).unwrap_err();
        assert!(error.starts_with(expected), "{missing}: {error}");
    }
}

#[test]
fn the_controller_refuses_inputs_by_name() {
    for (name, text, expected) in [
        (
            "99_osimagestream.yaml",
            "{kind: OSImageStream, metadata: {name: cluster}, spec: {defaultStream: rhel-10}}",
            "the release has no image rhel-coreos-10",
        ),
        (
            "99_osimagestream.yaml",
            "{kind: OSImageStream, metadata: {name: cluster}}",
            "OSImageStream cluster: spec.defaultStream: ",
        ),
        (
            "custom.yaml",
            "{kind: MachineConfig, metadata: {name: a, labels: {machineconfiguration.openshift.io/role: worker}}, spec: {config: {}}}",
            "MachineConfig a: spec.config.ignition.version: ",
        ),
        ("custom.yaml", "hunter2: [\n", "custom.yaml: invalid YAML"),
    ] {
        let run = Run::new();
        operator::bootstrap(run.operator_args()).unwrap();
        run.copy();
        run.write(&format!("mcc/{name}"), text);
        let error = controller::bootstrap(run.controller_args(VERSION)).unwrap_err();
        assert!(error.contains(expected), "{error}");
        assert!(!error.contains("hunter2"), "{error}");
    }
    let run = Run::new();
    operator::bootstrap(run.operator_args()).unwrap();
    run.copy();
    let error = controller::bootstrap(run.controller_args("4.23.0")).unwrap_err();
    assert!(
        error
            .starts_with("FeatureGate cluster: status.featureGates: no features of version 4.23.0"),
        "{error}"
    );
}

#[test]
fn the_server_needs_its_flags_and_files() {
    let run = Run::new();
    let args = run.server_args();
    for (index, arg) in args.iter().enumerate().skip(1) {
        let mut others = args.clone();
        others.remove(index);
        let (flag, _) = arg.split_once('=').unwrap();
        let error = server::parse(others).unwrap_err();
        assert_eq!(error, format!("flag {flag} is missing"));
    }
    // The controller has not run yet.
    let error = run.served("master").unwrap_err();
    assert!(error.contains("mcs/machine-pools/master.yaml"), "{error}");
    fs::remove_file(run.path("mcs/kubeconfig")).unwrap();
    let error = run.served("master").unwrap_err();
    assert!(error.contains("mcs/kubeconfig"), "{error}");
}
