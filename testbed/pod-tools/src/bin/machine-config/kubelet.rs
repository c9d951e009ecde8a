//! The kubelet: what `KubeletConfigs` and the cluster's TLS profile change of its configuration.

use serde_json::{Map, Value, json};

use crate::Result;
use crate::ignition::file;
use crate::manifests::{Manifest, text};

/// Its configuration.
pub(crate) const CONFIG: &str = "/etc/kubernetes/kubelet.conf";
/// Variables of its unit.
const ENVIRONMENT: &str = "/etc/kubernetes/kubelet-config-env";
/// Whether the machine computes what it reserves for the system.
const SIZING: &str = "/etc/node-sizing-enabled.env";
/// Fields that the cluster sets.
const FIXED: [&str; 3] = ["clusterDNS", "clusterDomain", "staticPodPath"];
/// Fields of a KubeletConfig's spec.
const FIELDS: [&str; 5] = [
    "autoSizingReserved",
    "kubeletConfig",
    "logLevel",
    "machineConfigPoolSelector",
    "tlsSecurityProfile",
];

/// The files that differ from the template's, whose configuration is `original`.
pub(crate) fn files(
    original: &str,
    api_server: &Manifest,
    users: &[&Manifest],
) -> Result<Vec<Value>> {
    let cluster = tls(api_server)?;
    if users.is_empty() && cluster.is_null() {
        return Ok(Vec::new());
    }
    let mut config: Value = serde_json::from_str(original)
        .map_err(|error| format!("the template of {CONFIG} is not JSON: {error}"))?;
    overlay(&mut config, cluster);
    let mut files = Vec::new();
    for user in users {
        check(user)?;
        overlay(&mut config, tls(user)?);
        overlay(&mut config, user.spec()["kubeletConfig"].clone());
        files.extend(environment(user)?);
    }
    files.insert(0, file(CONFIG, 0o644, &format!("{config:#}\n")));
    Ok(files)
}

/// Merges objects; other values, and lists, are replaced.
fn overlay(base: &mut Value, over: Value) {
    match (base, over) {
        (_, Value::Null) => {}
        (Value::Object(base), Value::Object(over)) => {
            for (field, value) in over {
                overlay(base.entry(field).or_insert(Value::Null), value);
            }
        }
        (base, over) => *base = over,
    }
}

fn check(user: &Manifest) -> Result<()> {
    let mut fields = user.spec().as_object().into_iter().flat_map(Map::keys);
    if let Some(field) = fields.find(|field| !FIELDS.contains(&field.as_str())) {
        let problem = "unknown field of KubeletConfig: remove it";
        return Err(user.invalid(&format!("spec.{field}"), problem));
    }
    match &user.spec()["kubeletConfig"] {
        Value::Null => Ok(()),
        Value::Object(fields) => {
            let fixed = FIXED.into_iter().find(|field| fields.contains_key(*field));
            fixed.map_or(Ok(()), |field| {
                let field = format!("spec.kubeletConfig.{field}");
                Err(user.invalid(&field, "set by the cluster: remove it"))
            })
        }
        _ => Err(user.invalid("spec.kubeletConfig", "use an object")),
    }
}

/// The fields that a TLS profile sets, or nothing without one. Ciphers of the cluster's profile have the names of OpenSSL,
/// which the kubelet does not know, and are left out.
fn tls(owner: &Manifest) -> Result<Value> {
    let profile = &owner.spec()["tlsSecurityProfile"];
    if profile.is_null() {
        return Ok(Value::Null);
    }
    let custom = &profile["custom"];
    let version = match text(profile, "/type") {
        "Old" => "VersionTLS10",
        "" | "Intermediate" => "VersionTLS12",
        "Modern" => "VersionTLS13",
        "Custom" => text(custom, "/minTLSVersion"),
        other => {
            let problem =
                format!("unknown TLS profile {other:?}: use Old, Intermediate, Modern or Custom");
            return Err(owner.invalid("spec.tlsSecurityProfile.type", problem));
        }
    };
    let ciphers = custom["ciphers"].as_array().into_iter().flatten();
    let is_known = |cipher: &&Value| cipher.as_str().is_some_and(|name| name.starts_with("TLS_"));
    let ciphers: Vec<_> = ciphers.filter(is_known).collect();
    if ciphers.is_empty() {
        return Ok(json!({ "tlsMinVersion": version }));
    }
    Ok(json!({ "tlsMinVersion": version, "tlsCipherSuites": ciphers }))
}

/// The files for fields that are not part of the kubelet's configuration.
fn environment(user: &Manifest) -> Result<Vec<Value>> {
    let mut files = Vec::new();
    match &user.spec()["logLevel"] {
        Value::Null => {}
        Value::Number(level) => {
            let variable = format!("KUBELET_LOG_LEVEL={level}\n");
            files.push(file(ENVIRONMENT, 0o644, &variable));
        }
        _ => return Err(user.invalid("spec.logLevel", "use a number from 1 to 10")),
    }
    if let Some(is_enabled) = user.spec()["autoSizingReserved"].as_bool() {
        let variable = format!("NODE_SIZING_ENABLED={is_enabled}\n");
        files.push(file(SIZING, 0o644, &variable));
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ignition::content;

    const ORIGINAL: &str = r#"{"maxPods":250,"systemReserved":{"cpu":"500m","memory":"1Gi"},"tlsMinVersion":"VersionTLS12"}"#;

    fn manifest(kind: &str, spec: &Value) -> Manifest {
        Manifest::of(json!({ "kind": kind, "metadata": { "name": "k" }, "spec": spec }))
    }

    fn rendered(api_server: &Value, users: &[Value]) -> Result<Vec<Value>> {
        let users: Vec<_> = users
            .iter()
            .map(|spec| manifest("KubeletConfig", spec))
            .collect();
        let users: Vec<_> = users.iter().collect();
        files(ORIGINAL, &manifest("APIServer", api_server), &users)
    }

    #[test]
    fn users_change_fields_and_keep_the_others() {
        let user = json!({
            "logLevel": 4,
            "autoSizingReserved": true,
            "kubeletConfig": { "maxPods": 100, "systemReserved": { "memory": "2Gi" } },
        });
        let modern = json!({ "tlsSecurityProfile": { "type": "Modern" } });
        let files = rendered(&modern, &[user]).unwrap();
        let contents: Vec<_> = files.iter().map(|file| content(file).unwrap()).collect();
        let config: Value = serde_json::from_str(&contents[0]).unwrap();
        let expected = json!({
            "maxPods": 100,
            "systemReserved": { "cpu": "500m", "memory": "2Gi" },
            "tlsMinVersion": "VersionTLS13",
        });
        assert_eq!(config, expected);
        let others = ["KUBELET_LOG_LEVEL=4\n", "NODE_SIZING_ENABLED=true\n"];
        assert_eq!(contents[1..], others);
        assert_eq!(rendered(&json!({}), &[]), Ok(Vec::new()));
    }

    #[test]
    fn profiles_set_the_version_and_known_ciphers() {
        for (profile, expected) in [
            (
                json!({ "type": "Old" }),
                json!({ "tlsMinVersion": "VersionTLS10" }),
            ),
            (json!({}), json!({ "tlsMinVersion": "VersionTLS12" })),
            (
                json!({ "type": "Custom", "custom": { "minTLSVersion": "VersionTLS11", "ciphers": ["TLS_AES_128_GCM_SHA256", "ECDHE-RSA-AES128-GCM-SHA256"] } }),
                json!({ "tlsMinVersion": "VersionTLS11", "tlsCipherSuites": ["TLS_AES_128_GCM_SHA256"] }),
            ),
        ] {
            let owner = manifest("APIServer", &json!({ "tlsSecurityProfile": profile }));
            assert_eq!(tls(&owner), Ok(expected));
        }
        assert_eq!(tls(&manifest("APIServer", &json!({}))), Ok(Value::Null));
    }

    #[test]
    fn invalid_fields_are_refused_by_name() {
        for (spec, expected) in [
            (json!({ "kubelet": {} }), "spec.kubelet: "),
            (json!({ "kubeletConfig": 1 }), "spec.kubeletConfig: "),
            (
                json!({ "kubeletConfig": { "clusterDNS": ["192.0.2.1"] } }),
                "spec.kubeletConfig.clusterDNS: ",
            ),
            (json!({ "logLevel": "high" }), "spec.logLevel: "),
            (
                json!({ "tlsSecurityProfile": { "type": "New" } }),
                "spec.tlsSecurityProfile.type: ",
            ),
        ] {
            let error = rendered(&json!({}), &[spec]).unwrap_err();
            assert!(
                error.starts_with(&format!("KubeletConfig k: {expected}")),
                "{error}"
            );
        }
    }
}
