//! Registries: mirrors, what the cluster's Image blocks or trusts, and policies for signatures of images.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::{Map, Value, json};

use crate::Result;
use crate::ignition::file;
use crate::manifests::{Manifest, text};

const REGISTRIES: &str = "/etc/containers/registries.conf.d/50-mirrors.conf";
const POLICY: &str = "/etc/containers/policy.json";
/// Where signatures are looked for.
const SIGNATURES: &str = "/etc/containers/registries.d/sigstore-registries.yaml";
/// The version of a `ClusterImagePolicy`: its earlier one was never served by a release that has this one.
const POLICY_API: &str = "config.openshift.io/v1";

/// What is known of a registry, or of a repository.
#[derive(Debug, Default)]
struct Registry {
    is_insecure: bool,
    is_blocked: bool,
    mirrors: Vec<(String, &'static str)>,
}

/// The files of all registries.
pub(crate) fn files(image: &Manifest, manifests: &[Manifest]) -> Result<Vec<Value>> {
    let mut registries: BTreeMap<String, Registry> = BTreeMap::new();
    let sources = &image.spec()["registrySources"];
    for name in texts(&sources["insecureRegistries"]) {
        registries.entry(name).or_default().is_insecure = true;
    }
    for name in texts(&sources["blockedRegistries"]) {
        registries.entry(name).or_default().is_blocked = true;
    }
    for manifest in manifests {
        add_mirrors(manifest, &mut registries)?;
    }
    let mut files = Vec::new();
    if !registries.is_empty() {
        let sections: String = registries.iter().map(Registry::section).collect();
        files.push(file(REGISTRIES, 0o644, &sections));
    }
    files.extend(policies(manifests)?);
    Ok(files)
}

fn add_mirrors(manifest: &Manifest, registries: &mut BTreeMap<String, Registry>) -> Result<()> {
    let (list, pull) = match manifest.kind.as_str() {
        "ImageTagMirrorSet" => ("imageTagMirrors", "tag-only"),
        "ImageDigestMirrorSet" => ("imageDigestMirrors", "digest-only"),
        "ImageContentSourcePolicy" => ("repositoryDigestMirrors", "digest-only"),
        _ => return Ok(()),
    };
    let entries = manifest.spec()[list].as_array();
    for entry in entries.into_iter().flatten() {
        let source = text(entry, "/source");
        if source.is_empty() {
            let field = format!("spec.{list}");
            return Err(manifest.invalid(&field, "an entry has no source: add it"));
        }
        let known = &mut registries.entry(source.to_owned()).or_default().mirrors;
        for mirror in texts(&entry["mirrors"]) {
            if !known.contains(&(mirror.clone(), pull)) {
                known.push((mirror, pull));
            }
        }
    }
    Ok(())
}

/// What the runtime accepts of the scopes of each `ClusterImagePolicy`, if there is one.
fn policies(manifests: &[Manifest]) -> Result<Vec<Value>> {
    let policies = manifests
        .iter()
        .filter(|manifest| manifest.kind == "ClusterImagePolicy");
    let mut scopes = Map::new();
    let mut signatures = Map::new();
    for policy in policies {
        if policy.api_version() != POLICY_API {
            let problem = format!(
                "{:?} is not supported: use {POLICY_API}",
                policy.api_version()
            );
            return Err(policy.invalid("apiVersion", problem));
        }
        let requirement = requirement(policy)?;
        for scope in texts(&policy.spec()["scopes"]) {
            signatures.insert(scope.clone(), json!({ "use-sigstore-attachments": true }));
            let requirements = scopes.entry(scope).or_insert_with(|| json!([]));
            if let Some(requirements) = requirements.as_array_mut() {
                requirements.push(requirement.clone());
            }
        }
    }
    if scopes.is_empty() {
        return Ok(Vec::new());
    }
    let policy = json!({
        "default": [{ "type": "insecureAcceptAnything" }],
        "transports": { "docker": scopes },
    });
    // JSON is YAML.
    let signatures = json!({ "docker": signatures });
    Ok(vec![
        file(POLICY, 0o644, &format!("{policy:#}\n")),
        file(SIGNATURES, 0o644, &format!("{signatures:#}\n")),
    ])
}

fn requirement(policy: &Manifest) -> Result<Value> {
    let policy_spec = &policy.spec()["policy"];
    let root = &policy_spec["rootOfTrust"];
    let mut requirement = match text(root, "/policyType") {
        "PublicKey" => json!({ "keyData": root["publicKey"]["keyData"] }),
        "FulcioCAWithRekor" => {
            let fulcio = &root["fulcioCAWithRekor"];
            json!({
                "fulcio": {
                    "caData": fulcio["fulcioCAData"],
                    "oidcIssuer": fulcio["fulcioSubject"]["oidcIssuer"],
                    "subjectEmail": fulcio["fulcioSubject"]["signedEmail"],
                },
                "rekorPublicKeyData": fulcio["rekorKeyData"],
            })
        }
        other => {
            let problem = format!("{other:?} is not supported: use PublicKey or FulcioCAWithRekor");
            return Err(policy.invalid("spec.policy.rootOfTrust.policyType", problem));
        }
    };
    requirement["type"] = json!("sigstoreSigned");
    requirement["signedIdentity"] = identity(&policy_spec["signedIdentity"]);
    Ok(requirement)
}

/// Which name a signature is for.
fn identity(identity: &Value) -> Value {
    match text(identity, "/matchPolicy") {
        "MatchRepository" => json!({ "type": "matchRepository" }),
        "ExactRepository" => {
            let repository = &identity["exactRepository"]["repository"];
            json!({ "type": "exactRepository", "dockerRepository": repository })
        }
        "RemapIdentity" => {
            let remap = &identity["remapIdentity"];
            let (prefix, signed) = (&remap["prefix"], &remap["signedPrefix"]);
            json!({ "type": "remapIdentity", "prefix": prefix, "signedPrefix": signed })
        }
        _ => json!({ "type": "matchRepoDigestOrExact" }),
    }
}

fn texts(list: &Value) -> Vec<String> {
    let entries = list.as_array().into_iter().flatten();
    let entries = entries.filter_map(Value::as_str);
    entries.map(str::to_owned).collect()
}

// === impl Registry ===

impl Registry {
    /// Its section of the file.
    fn section((name, registry): (&String, &Self)) -> String {
        // A string of JSON is one of TOML.
        let quoted = |text: &str| Value::from(text).to_string();
        let mut lines = format!("[[registry]]\nlocation = {}\n", quoted(name));
        if registry.is_insecure {
            lines.push_str("insecure = true\n");
        }
        if registry.is_blocked {
            lines.push_str("blocked = true\n");
        }
        for (mirror, pull) in &registry.mirrors {
            let _ = writeln!(lines, "[[registry.mirror]]\nlocation = {}", quoted(mirror));
            let _ = writeln!(lines, "pull-from-mirror = {}", quoted(pull));
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ignition::content;

    fn manifest(api: &str, kind: &str, spec: &Value) -> Manifest {
        let object =
            json!({ "apiVersion": api, "kind": kind, "metadata": { "name": "a" }, "spec": spec });
        Manifest::of(object)
    }

    fn config(kind: &str, spec: &Value) -> Manifest {
        manifest(POLICY_API, kind, spec)
    }

    fn policy(root: &Value) -> Value {
        json!({ "scopes": ["images.example.com/a"], "policy": { "rootOfTrust": root } })
    }

    fn contents(image: &Value, manifests: &[Manifest]) -> Result<Vec<String>> {
        let files = files(&config("Image", image), manifests)?;
        Ok(files.iter().map(|file| content(file).unwrap()).collect())
    }

    #[test]
    fn mirrors_of_a_source_are_joined() {
        let mirror =
            |mirror: &str| json!([{ "source": "images.example.com/a", "mirrors": [mirror] }]);
        let manifests = [
            config(
                "ImageDigestMirrorSet",
                &json!({ "imageDigestMirrors": mirror("m.example.com/1") }),
            ),
            config(
                "ImageTagMirrorSet",
                &json!({ "imageTagMirrors": mirror("m.example.com/2") }),
            ),
            manifest(
                "operator.openshift.io/v1alpha1",
                "ImageContentSourcePolicy",
                &json!({ "repositoryDigestMirrors": mirror("m.example.com/1") }),
            ),
            config("KubeletConfig", &json!({})),
        ];
        let sources = json!({ "registrySources": {
            "insecureRegistries": ["insecure.example.com"], "blockedRegistries": ["blocked.example.com"],
        } });
        let expected = "[[registry]]\nlocation = \"blocked.example.com\"\nblocked = true\n\
            [[registry]]\nlocation = \"images.example.com/a\"\n\
            [[registry.mirror]]\nlocation = \"m.example.com/1\"\npull-from-mirror = \"digest-only\"\n\
            [[registry.mirror]]\nlocation = \"m.example.com/2\"\npull-from-mirror = \"tag-only\"\n\
            [[registry]]\nlocation = \"insecure.example.com\"\ninsecure = true\n";
        assert_eq!(
            contents(&sources, &manifests),
            Ok(vec![expected.to_owned()])
        );
        assert_eq!(contents(&json!({}), &[]), Ok(Vec::new()));
        let wrong = config(
            "ImageTagMirrorSet",
            &json!({ "imageTagMirrors": [{ "mirrors": [] }] }),
        );
        let error = contents(&json!({}), &[wrong]).unwrap_err();
        assert!(
            error.starts_with("ImageTagMirrorSet a: spec.imageTagMirrors: "),
            "{error}"
        );
    }

    #[test]
    fn signatures_are_required_of_the_scopes_of_policies() {
        let root = json!({ "policyType": "PublicKey", "publicKey": { "keyData": "a2V5" } });
        let manifests = [config("ClusterImagePolicy", &policy(&root))];
        let written = contents(&json!({}), &manifests).unwrap();
        let read = |text: &str| serde_json::from_str::<Value>(text).unwrap();
        let expected = json!([{
            "type": "sigstoreSigned",
            "keyData": "a2V5",
            "signedIdentity": { "type": "matchRepoDigestOrExact" },
        }]);
        assert_eq!(
            read(&written[0])["transports"]["docker"]["images.example.com/a"],
            expected
        );
        let registries =
            json!({ "docker": { "images.example.com/a": { "use-sigstore-attachments": true } } });
        assert_eq!(read(&written[1]), registries);
    }

    #[test]
    fn other_policies_are_refused() {
        let root = json!({ "policyType": "PublicKey" });
        let old = "config.openshift.io/v1alpha1";
        for (policy, expected) in [
            (
                manifest(old, "ClusterImagePolicy", &policy(&root)),
                "apiVersion: ",
            ),
            (
                config(
                    "ClusterImagePolicy",
                    &policy(&json!({ "policyType": "PKI" })),
                ),
                "spec.policy.rootOfTrust.policyType: ",
            ),
        ] {
            let error = contents(&json!({}), &[policy]).unwrap_err();
            assert!(
                error.starts_with(&format!("ClusterImagePolicy a: {expected}")),
                "{error}"
            );
        }
    }
}
