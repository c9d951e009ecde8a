//! OpenShift's configuration file of the API server and of the controller manager, as flags of upstream.

use std::path::Path;

use serde_json::{Map, Value, json};

use crate::flags::Flags;

/// Sections that duplicate flags, or that upstream does not support.
const READ: [&str; 9] = [
    "kind",
    "apiVersion",
    "servingInfo",
    "corsAllowedOrigins",
    "admission",
    "servicesSubnet",
    "servicesNodePortRange",
    "serviceAccountPublicKeyFiles",
    "apiServerArguments",
];

/// Reads a file, which is YAML or JSON.
pub(crate) fn parse(text: &str) -> Result<Value, String> {
    serde_saphyr::from_str(text).map_err(|error| error.to_string())
}

/// Its flags. What needs a file of upstream's own form is written to `directory`.
pub(crate) fn flags(
    config: &Value,
    directory: &Path,
    notes: &mut Vec<String>,
) -> Result<Flags, String> {
    let mut flags = Flags::default();
    serving(&config["servingInfo"], &mut flags);
    if config["corsAllowedOrigins"].is_array() {
        flags.add(
            "cors-allowed-origins",
            &texts(&config["corsAllowedOrigins"]).join(","),
        );
    }
    for (section, flag) in [
        ("servicesSubnet", "service-cluster-ip-range"),
        ("servicesNodePortRange", "service-node-port-range"),
    ] {
        add_text(&mut flags, flag, &config[section]);
    }
    for file in texts(&config["serviceAccountPublicKeyFiles"]) {
        flags.add("service-account-key-file", file);
    }
    for arguments in ["apiServerArguments", "extendedArguments"] {
        for (name, values) in object(&config[arguments]) {
            for value in texts(values) {
                flags.add(name, value);
            }
        }
    }
    if let Some(file) = admission(&config["admission"]["pluginConfig"], directory)? {
        flags.add("admission-control-config-file", &file);
    }
    notes.extend(unread(config));
    Ok(flags)
}

fn serving(info: &Value, flags: &mut Flags) {
    if let Some((address, port)) = info["bindAddress"]
        .as_str()
        .and_then(|address| address.rsplit_once(':'))
    {
        flags.add("bind-address", address);
        flags.add("secure-port", port);
    }
    for (field, flag) in [
        ("certFile", "tls-cert-file"),
        ("keyFile", "tls-private-key-file"),
        ("minTLSVersion", "tls-min-version"),
    ] {
        add_text(flags, flag, &info[field]);
    }
    let suites = texts(&info["cipherSuites"]);
    if !suites.is_empty() {
        flags.add("tls-cipher-suites", &suites.join(","));
    }
    for pair in info["namedCertificates"].as_array().into_iter().flatten() {
        let text = |field: &str| pair[field].as_str().unwrap_or_default();
        let mut value = format!("{},{}", text("certFile"), text("keyFile"));
        let names = texts(&pair["names"]);
        if !names.is_empty() {
            value = format!("{value}:{}", names.join(","));
        }
        flags.add("tls-sni-cert-key", &value);
    }
}

/// Writes the configuration of upstream's own admission plugins; gives where it is.
fn admission(plugins: &Value, directory: &Path) -> Result<Option<String>, String> {
    let plugins: Vec<Value> = object(plugins)
        .filter(|(name, plugin)| !name.contains('/') && plugin["configuration"].is_object())
        .map(|(name, plugin)| json!({ "name": name, "configuration": plugin["configuration"] }))
        .collect();
    if plugins.is_empty() {
        return Ok(None);
    }
    let config = json!({
        "apiVersion": "apiserver.config.k8s.io/v1",
        "kind": "AdmissionConfiguration",
        "plugins": plugins,
    });
    let path = directory.join("admission.json");
    let path = path.to_string_lossy().into_owned();
    std::fs::write(&path, config.to_string()).map_err(|error| format!("{path}: {error}"))?;
    Ok(Some(path))
}

/// Sections with something in them that are not turned into flags.
fn unread(config: &Value) -> impl Iterator<Item = String> {
    object(config)
        .filter(|(name, value)| {
            !READ.contains(&name.as_str()) && *name != "extendedArguments" && says_something(value)
        })
        .map(|(name, _)| format!("the section {name} of the configuration"))
}

fn says_something(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(value) => *value,
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => items.iter().any(says_something),
        Value::Object(fields) => fields.values().any(says_something),
    }
}

fn add_text(flags: &mut Flags, name: &str, value: &Value) {
    if let Some(value) = value.as_str().filter(|value| !value.is_empty()) {
        flags.add(name, value);
    }
}

fn texts(value: &Value) -> Vec<&str> {
    let items = value.as_array().into_iter().flatten();
    items.filter_map(Value::as_str).collect()
}

fn object(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flat_map(Map::iter)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn translated(config: &Value) -> (Vec<String>, Vec<String>) {
        let mut notes = Vec::new();
        let flags = flags(config, &std::env::temp_dir(), &mut notes).unwrap();
        (flags.line().collect(), notes)
    }

    #[test]
    fn the_api_servers_file_becomes_flags() {
        let config = parse(
            r#"
            kind: KubeAPIServerConfig
            servingInfo:
              bindAddress: 0.0.0.0:6443
              certFile: /s/tls.crt
              keyFile: /s/tls.key
              minTLSVersion: VersionTLS12
              cipherSuites: [A, B]
              namedCertificates:
              - { certFile: /p.crt, keyFile: /p.key }
              - { certFile: /q.crt, keyFile: /q.key, names: [a.test, b.test] }
            corsAllowedOrigins: ["//localhost(:|$)"]
            servicesSubnet: 172.31.0.0/16
            serviceAccountPublicKeyFiles: [/sa.pub]
            auditConfig: { enabled: false, auditFilePath: "" }
            consolePublicURL: https://console.test
            apiServerArguments:
              etcd-servers: ["https://etcd:2379"]
              disable-admission-plugins: []
            "#,
        )
        .unwrap();
        let (flags, notes) = translated(&config);
        let expected = [
            "--bind-address=0.0.0.0",
            "--secure-port=6443",
            "--tls-cert-file=/s/tls.crt",
            "--tls-private-key-file=/s/tls.key",
            "--tls-min-version=VersionTLS12",
            "--tls-cipher-suites=A,B",
            "--tls-sni-cert-key=/p.crt,/p.key",
            "--tls-sni-cert-key=/q.crt,/q.key:a.test,b.test",
            "--cors-allowed-origins=//localhost(:|$)",
            "--service-cluster-ip-range=172.31.0.0/16",
            "--service-account-key-file=/sa.pub",
            "--etcd-servers=https://etcd:2379",
        ];
        assert_eq!(flags, expected);
        let reported = ["the section consolePublicURL of the configuration"];
        assert_eq!(notes, reported);
    }

    #[test]
    fn only_upstreams_admission_plugins_are_configured() {
        let config = json!({ "admission": { "pluginConfig": {
            "PodSecurity": { "location": "", "configuration": { "kind": "PodSecurityConfiguration" } },
            "network.openshift.io/ExternalIPRanger": { "configuration": { "kind": "X" } },
        } } });
        let (flags, _) = translated(&config);
        let path = flags[0]
            .strip_prefix("--admission-control-config-file=")
            .unwrap();
        let written: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
        assert_eq!(written["plugins"].as_array().unwrap().len(), 1);
        assert_eq!(written["plugins"][0]["name"], "PodSecurity");
    }

    #[test]
    fn the_controller_managers_file_becomes_flags() {
        let config = json!({ "extendedArguments": { "leader-elect": ["true"] } });
        assert_eq!(translated(&config).0, ["--leader-elect=true"]);
    }
}
