//! Complete documents against golden files, and tables of rejected configurations.

use std::fmt::Write as _;
use std::path::PathBuf;

use api::hypershift::v1beta1::image_content_source::ImageContentSource;
use api::hypershift::v1beta1::platform::PlatformType;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::*;

fn facts(platform: PlatformType) -> Facts {
    Facts {
        platform,
        bootstrap_kubeconfig: b"kind: Config\n".to_vec(),
        kubelet_ca: "CA OF THE KUBELETS' CLIENTS\n".to_owned(),
        cluster_dns: vec!["172.31.0.10".parse().unwrap()],
        pull_secret: br#"{"auths":{}}"#.to_vec(),
        ssh_keys: Vec::new(),
        trust_bundle: None,
        proxy: None,
        mirrors: Vec::new(),
        taints: Vec::new(),
    }
}

fn full() -> Facts {
    Facts {
        ssh_keys: vec!["ssh-ed25519 AAAA a@example.com".to_owned()],
        trust_bundle: Some("CA OF THE COMPANY\n".to_owned()),
        proxy: Some(Proxy {
            http: "http://proxy.example.com:3128".to_owned(),
            https: "http://proxy.example.com:3128".to_owned(),
            direct: vec![".svc".to_owned(), "172.31.0.0/16".to_owned()],
        }),
        mirrors: vec![ImageContentSource {
            source: "images.example.com/release".to_owned(),
            mirrors: vec!["mirror.example.com/release".to_owned()],
        }],
        taints: vec![json!({ "key": "gpu", "value": "true", "effect": "NoSchedule" })],
        ..facts(PlatformType::Aws)
    }
}

/// Human-readable text: files, then units.
fn readable(ignition: &Value) -> String {
    let mut text = format!("ignition {}\n", ignition["ignition"]);
    let _ = writeln!(text, "users {}", ignition["passwd"]["users"]);
    for file in ignition["storage"]["files"].as_array().unwrap() {
        let mode = file["mode"].as_u64().unwrap_or_default();
        let _ = writeln!(text, "\n=== {} {mode:04o}", file["path"].as_str().unwrap());
        text += content(file["contents"]["source"].as_str().unwrap()).trim_end();
        text += "\n";
    }
    for unit in ignition["systemd"]["units"].as_array().unwrap() {
        let _ = writeln!(text, "\n=== {} enabled={}", unit["name"], unit["enabled"]);
        text += unit["contents"].as_str().unwrap_or_default();
        for part in unit["dropins"].as_array().into_iter().flatten() {
            let _ = write!(
                text,
                "--- {}\n{}",
                part["name"],
                part["contents"].as_str().unwrap()
            );
        }
    }
    text
}

fn content(source: &str) -> String {
    let (_, data) = source.split_once(',').unwrap();
    if !source.contains(";base64,") {
        return data.to_owned();
    }
    String::from_utf8(STANDARD.decode(data).unwrap()).unwrap()
}

fn golden(name: &str, text: &str) {
    let path =
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("tests/data/ignition/{name}.txt"));
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(
        text,
        expected,
        "{}: rewrite it with UPDATE_GOLDEN=1",
        path.display()
    );
}

const POOL: &str = r#"---
apiVersion: machineconfiguration.openshift.io/v1
kind: MachineConfig
metadata: {name: 99-second}
spec:
  kernelArguments: []
  kernelType: default
  fips: false
  config:
    ignition: {version: 3.2.0}
    storage: {files: [{path: /etc/motd, mode: 420, contents: {source: "data:,second"}}]}
---
apiVersion: machineconfiguration.openshift.io/v1
kind: MachineConfig
metadata: {name: 50-first}
spec:
  config:
    ignition: {version: 3.4.0}
    passwd: {users: [{name: core, sshAuthorizedKeys: ["ssh-ed25519 BBBB b@example.com"]}]}
    storage: {files: [{path: /etc/motd, mode: 384, contents: {source: "data:,first"}}]}
    systemd: {units: [{name: kubelet.service, dropins: [{name: 50-more.conf, contents: "[Service]\n"}]}]}
---
apiVersion: machineconfiguration.openshift.io/v1
kind: KubeletConfig
metadata: {name: small}
spec:
  logLevel: 4
  kubeletConfig:
    cgroupDriver: cgroupfs
    maxPods: 100
    systemReserved: {memory: 2Gi}
---
apiVersion: machineconfiguration.openshift.io/v1
kind: ContainerRuntimeConfig
metadata: {name: pids}
spec: {containerRuntimeConfig: {pidsLimit: 2048, logSizeMax: 50Mi}}
---
apiVersion: config.openshift.io/v1
kind: ImageTagMirrorSet
metadata: {name: tags}
spec: {imageTagMirrors: [{source: images.example.com/tools, mirrors: [mirror.example.com/tools]}]}
"#;

#[test]
fn minimal_worker_matches_golden_file() {
    let ignition = render(&facts(PlatformType::Agent), "").unwrap();
    golden("plain", &readable(&ignition));
}

#[test]
fn full_worker_matches_golden_file() {
    let ignition = render(&full(), POOL).unwrap();
    golden("everything", &readable(&ignition));
}

#[test]
fn payloads_are_deterministic() {
    let text = || render(&full(), POOL).unwrap().to_string();
    assert_eq!(text(), text());
    let shuffled: Vec<_> = POOL.trim_start_matches("---\n").rsplit("---\n").collect();
    let shuffled = render(&full(), &shuffled.join("---\n")).unwrap();
    assert_eq!(shuffled.to_string(), text());
}

#[test]
fn pools_can_override_the_cgroup_driver() {
    let ignition = render(&facts(PlatformType::None), POOL).unwrap();
    let files = ignition["storage"]["files"].as_array().unwrap();
    let kubelet = files
        .iter()
        .find(|file| file["path"] == "/etc/kubernetes/kubelet.conf");
    let text = content(kubelet.unwrap()["contents"]["source"].as_str().unwrap());
    let config: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(config["cgroupDriver"], "cgroupfs");
    // Other fields keep their defaults.
    assert_eq!(
        config["systemReserved"],
        json!({ "cpu": "500m", "ephemeral-storage": "1Gi", "memory": "2Gi" })
    );
}

#[test]
fn invalid_configs_are_rejected_by_name_and_field() {
    let machine =
        |spec: &str| format!("kind: MachineConfig\nmetadata: {{name: 50-x}}\nspec: {spec}\n");
    let config = |rest: &str| {
        machine(&format!(
            "{{config: {{ignition: {{version: 3.2.0}}, {rest}}}}}"
        ))
    };
    let kubelet =
        |spec: &str| format!("kind: KubeletConfig\nmetadata: {{name: k}}\nspec: {spec}\n");
    for (text, expected) in [
        (machine("{config: {ignition: {version: 2.2.0}}}"), "MachineConfig 50-x: spec.config.ignition.version: \"2.2.0\""),
        (machine("{config: {}}"), "MachineConfig 50-x: spec.config.ignition.version"),
        (machine("{config: []}"), "MachineConfig 50-x: spec.config: use"),
        (machine("{confg: {}}"), "MachineConfig 50-x: spec.confg: "),
        (machine("{fips: true, config: {ignition: {version: 3.2.0}}}"), "MachineConfig 50-x: spec.fips: FIPS mode is not supported by this release, "),
        (machine("{kernelArguments: [nosmt]}"), "MachineConfig 50-x: spec.kernelArguments: not supported by this release, "),
        (machine("{kernelType: realtime}"), "MachineConfig 50-x: spec.kernelType: not supported by this release, "),
        (machine("{extensions: [usbguard]}"), "MachineConfig 50-x: spec.extensions: not supported by this release, "),
        (machine("{osImageURL: images.example.com/os}"), "MachineConfig 50-x: spec.osImageURL: not supported by this release, "),
        ("apiVersion: config.openshift.io/v1\nkind: ClusterImagePolicy\nmetadata: {name: p}\nspec: {}\n".to_owned(), "ClusterImagePolicy p: spec.policy.rootOfTrust.policyType: it is required: add"),
        (config("kernelArguments: {}"), "MachineConfig 50-x: spec.config.kernelArguments: "),
        (config("storage: {trees: []}"), "MachineConfig 50-x: spec.config.storage.trees: "),
        (config("storage: {files: [{path: etc/a}]}"), "MachineConfig 50-x: spec.config.storage.files[0].path: "),
        (config("storage: {files: [{path: /a/../b}]}"), "MachineConfig 50-x: spec.config.storage.files[0].path: "),
        (config("storage: {files: [{path: /a, mode: 70000}]}"), "MachineConfig 50-x: spec.config.storage.files[0].mode: "),
        (config("storage: {files: [{path: /a, contents: {source: hello}}]}"), "MachineConfig 50-x: spec.config.storage.files[0].contents.source: "),
        (config("systemd: {units: [{name: a}]}"), "MachineConfig 50-x: spec.config.systemd.units[0].name: "),
        (kubelet("{kubeletConfig: {clusterDNS: [1.2.3.4]}}"), "KubeletConfig k: spec.kubeletConfig.clusterDNS: "),
        (kubelet("{kubeletConfig: 1}"), "KubeletConfig k: spec.kubeletConfig: "),
        (kubelet("{logLevel: high}"), "KubeletConfig k: spec.logLevel: "),
        (kubelet("{kubelet: {}}"), "KubeletConfig k: spec.kubelet: "),
        (kubelet("{tlsSecurityProfile: {type: New}}"), "KubeletConfig k: spec.tlsSecurityProfile.type: "),
        ("kind: ContainerRuntimeConfig\nmetadata: {name: c}\nspec: {containerRuntimeConfig: {overlaySize: 1G}}\n".to_owned(), "ContainerRuntimeConfig c: spec.containerRuntimeConfig.overlaySize: "),
        ("kind: ConfigMap\nmetadata: {name: c}\n".to_owned(), "ConfigMap c: kind: "),
        ("a: [\n".to_owned(), "the pool's configuration: document: "),
    ] {
        let refused = render(&facts(PlatformType::None), &text).unwrap_err();
        assert!(refused.to_string().starts_with(expected), "{text}\n{refused}");
    }
}

#[test]
fn errors_never_quote_file_contents() {
    for text in [
        "kind: MachineConfig\nmetadata: {name: a}\nspec: {config: {ignition: {version: 3.2.0}, storage: {files: [{path: /a, contents: {source: hunter2}}]}}}\n",
        "password: [hunter2\n",
    ] {
        let refused = render(&facts(PlatformType::None), text).unwrap_err();
        assert!(!refused.to_string().contains("hunter2"), "{refused}");
    }
}

#[test]
fn cluster_dns_is_the_tenth_address() {
    for (network, expected) in [
        ("172.31.0.0/16", Some("172.31.0.10")),
        ("fd02::/112", Some("fd02::a")),
        ("172.31.0.0", None),
        ("x/16", None),
    ] {
        let address = cluster_dns(network).map(|address| address.to_string());
        assert_eq!(address.as_deref(), expected, "{network}");
    }
}
