//! Signatures of images: which ones the container runtime requires, and where it looks for them.

use std::collections::{BTreeMap, BTreeSet};

use api::hypershift::v1beta1::image_content_source::ImageContentSource;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

use super::file::{PUBLIC, file};
use super::manifests::{InvalidConfig, Manifest};
use super::runtime::Mirror;

/// Path of the requirements.
const POLICY: &str = "/etc/containers/policy.json";
/// Path of the places where signatures are.
const PLACES: &str = "/etc/containers/registries.d/sigstore-registries.yaml";

/// Renders both files, if the pool has policies.
pub(super) fn config(
    policies: &[Manifest],
    cluster: &[ImageContentSource],
    pool: &[Mirror],
) -> Result<Vec<Value>, InvalidConfig> {
    let mut by_scope: BTreeMap<&str, Vec<Value>> = BTreeMap::new();
    for policy in policies {
        let requirement = requirement(policy)?;
        for scope in scopes(policy)? {
            let requirements = by_scope.entry(scope).or_default();
            if !requirements.contains(&requirement) {
                requirements.push(requirement.clone());
            }
        }
    }
    if by_scope.is_empty() {
        return Ok(Vec::new());
    }
    let mut places: BTreeSet<String> = by_scope.keys().map(|it| (*it).to_owned()).collect();
    for source in cluster.iter().chain(pool.iter().map(|it| &it.source)) {
        places.extend(by_scope.keys().flat_map(|scope| mirrored(scope, source)));
    }
    let signed = json!({ "use-sigstore-attachments": true });
    let places: Map<_, _> = places.into_iter().map(|it| (it, signed.clone())).collect();
    let anything = json!([{ "type": "insecureAcceptAnything" }]);
    let policy = json!({
        // Images that no policy is about.
        "default": anything,
        "transports": { "docker": by_scope, "docker-daemon": { "": anything } },
    });
    // JSON is YAML.
    let places = json!({ "docker": places });
    Ok(vec![
        file(POLICY, PUBLIC, format!("{policy:#}\n")),
        file(PLACES, PUBLIC, format!("{places:#}\n")),
    ])
}

/// Where images of this scope are pulled from if their source has mirrors: signatures are beside them.
fn mirrored(scope: &str, source: &ImageContentSource) -> Vec<String> {
    let mirrors = source.mirrors.iter();
    if below(&source.source, scope).is_some() {
        return mirrors.cloned().collect();
    }
    match below(scope, &source.source) {
        Some(rest) => mirrors.map(|mirror| format!("{mirror}{rest}")).collect(),
        None => Vec::new(),
    }
}

/// What is left of a name that is, or is below, another one.
fn below<'a>(name: &'a str, above: &str) -> Option<&'a str> {
    let rest = name.strip_prefix(above)?;
    (rest.is_empty() || rest.starts_with(['/', ':', '@'])).then_some(rest)
}

/// The registries, repositories or images that a policy is about.
fn scopes(policy: &Manifest) -> Result<Vec<&str>, InvalidConfig> {
    let field = "spec.scopes";
    let scopes = policy.spec["scopes"].as_array();
    let scopes: Vec<_> = scopes.into_iter().flatten().map(Value::as_str).collect();
    if scopes.is_empty() {
        return Err(policy.invalid(field, "add the registries or repositories of signed images"));
    }
    let is_plain = |it: &&str| !it.is_empty() && !it.contains(char::is_whitespace);
    let scopes = scopes.into_iter().map(|scope| {
        let scope = scope.filter(is_plain).ok_or_else(|| {
            policy.invalid(
                field,
                "use names of registries, repositories or images (for example images.example.com/team)",
            )
        })?;
        if scope.contains('*') {
            let problem = format!("wildcards such as {scope:?} are not supported: name each registry");
            return Err(policy.invalid(field, problem));
        }
        Ok(scope)
    });
    scopes.collect()
}

/// What a signature has to be like.
fn requirement(policy: &Manifest) -> Result<Value, InvalidConfig> {
    let (public, fulcio, pki) = (
        Field("/policy/rootOfTrust/publicKey"),
        Field("/policy/rootOfTrust/fulcioCAWithRekor"),
        Field("/policy/rootOfTrust/pki"),
    );
    let kind = "/policy/rootOfTrust/policyType";
    let mut requirement = match required(policy, kind)? {
        "PublicKey" => json!({
            "keyData": key(policy, &public.at("/keyData"))?,
            "rekorPublicKeyData": optional_key(policy, &public.at("/rekorKeyData"))?,
        }),
        "FulcioCAWithRekor" => json!({
            "fulcio": {
                "caData": key(policy, &fulcio.at("/fulcioCAData"))?,
                "oidcIssuer": required(policy, &fulcio.at("/fulcioSubject/oidcIssuer"))?,
                "subjectEmail": required(policy, &fulcio.at("/fulcioSubject/signedEmail"))?,
            },
            "rekorPublicKeyData": key(policy, &fulcio.at("/rekorKeyData"))?,
        }),
        "PKI" => {
            let subject = pki.at("/pkiCertificateSubject");
            let email = optional(policy, &format!("{subject}/email"));
            let hostname = optional(policy, &format!("{subject}/hostname"));
            if email.is_none() && hostname.is_none() {
                return Err(policy.invalid(&name(&subject), "add email or hostname"));
            }
            json!({ "pki": {
                "caRootsData": key(policy, &pki.at("/caRootsData"))?,
                "caIntermediatesData": optional_key(policy, &pki.at("/caIntermediatesData"))?,
                "subjectEmail": email,
                "subjectHostname": hostname,
            } })
        }
        _ => {
            let problem = "unknown type: use PublicKey, FulcioCAWithRekor or PKI";
            return Err(policy.invalid(&name(kind), problem));
        }
    };
    requirement["type"] = json!("sigstoreSigned");
    requirement["signedIdentity"] = identity(policy)?;
    Ok(without_nulls(requirement))
}

/// For which name a signature has to be.
fn identity(policy: &Manifest) -> Result<Value, InvalidConfig> {
    let kind = "/policy/signedIdentity/matchPolicy";
    let identity = Field("/policy/signedIdentity");
    Ok(match optional(policy, kind) {
        None | Some("MatchRepoDigestOrExact") => json!({ "type": "matchRepoDigestOrExact" }),
        Some("MatchRepository") => json!({ "type": "matchRepository" }),
        Some("ExactRepository") => json!({
            "type": "exactRepository",
            "dockerRepository": required(policy, &identity.at("/exactRepository/repository"))?,
        }),
        Some("RemapIdentity") => json!({
            "type": "remapIdentity",
            "prefix": required(policy, &identity.at("/remapIdentity/prefix"))?,
            "signedPrefix": required(policy, &identity.at("/remapIdentity/signedPrefix"))?,
        }),
        Some(_) => {
            let problem = "unknown policy: use MatchRepoDigestOrExact, MatchRepository, ExactRepository or RemapIdentity";
            return Err(policy.invalid(&name(kind), problem));
        }
    })
}

/// A section of `spec`, as JSON pointer.
#[derive(Debug, Clone, Copy)]
struct Field(&'static str);

// === impl Field ===

impl Field {
    fn at(self, rest: &str) -> String {
        format!("{}{rest}", self.0)
    }
}

/// The name of a field for people.
fn name(pointer: &str) -> String {
    format!("spec{}", pointer.replace('/', "."))
}

fn optional<'a>(policy: &'a Manifest, pointer: &str) -> Option<&'a str> {
    let text = policy.spec.pointer(pointer).and_then(Value::as_str);
    text.filter(|it| !it.is_empty())
}

fn required<'a>(policy: &'a Manifest, pointer: &str) -> Result<&'a str, InvalidConfig> {
    let text = optional(policy, pointer);
    text.ok_or_else(|| policy.invalid(&name(pointer), "it is required: add it"))
}

fn key<'a>(policy: &'a Manifest, pointer: &str) -> Result<&'a str, InvalidConfig> {
    let text = required(policy, pointer)?;
    match STANDARD.decode(text) {
        Ok(_) => Ok(text),
        Err(_) => Err(policy.invalid(&name(pointer), "use base64 of the PEM file")),
    }
}

fn optional_key<'a>(policy: &'a Manifest, pointer: &str) -> Result<Option<&'a str>, InvalidConfig> {
    match optional(policy, pointer) {
        Some(_) => key(policy, pointer).map(Some),
        None => Ok(None),
    }
}

/// The object without fields that are not set.
fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            let set = fields.into_iter().filter(|(_, value)| !value.is_null());
            Value::Object(
                set.map(|(key, value)| (key, without_nulls(value)))
                    .collect(),
            )
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            value
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ignition_server::payload::runtime::Pull;

    fn policy(spec: Value) -> Manifest {
        Manifest {
            kind: "ClusterImagePolicy".to_owned(),
            name: "p".to_owned(),
            spec,
        }
    }

    fn trusting(root: &Value, identity: &Value) -> Value {
        json!({
            "scopes": ["images.example.com/team"],
            "policy": { "rootOfTrust": root, "signedIdentity": identity },
        })
    }

    fn public() -> Value {
        json!({ "policyType": "PublicKey", "publicKey": { "keyData": "UEVN" } })
    }

    /// The contents of both files.
    fn rendered(
        policies: &[Manifest],
        cluster: &[ImageContentSource],
        pool: &[Mirror],
    ) -> (Value, Value) {
        let files = config(policies, cluster, pool).unwrap();
        assert_eq!(
            files.iter().map(|it| &it["path"]).collect::<Vec<_>>(),
            [POLICY, PLACES]
        );
        let content = |file: &Value| -> Value {
            let source = file["contents"]["source"].as_str().unwrap();
            let (_, data) = source.split_once(',').unwrap();
            serde_json::from_slice(&STANDARD.decode(data).unwrap()).unwrap()
        };
        (content(&files[0]), content(&files[1]))
    }

    /// Check F04.
    #[test]
    fn policies_become_requirements_of_the_container_runtime() {
        let exact = json!({ "matchPolicy": "ExactRepository", "exactRepository": { "repository": "a.example.com/b" } });
        let remap = json!({
            "matchPolicy": "RemapIdentity",
            "remapIdentity": { "prefix": "m.example.com", "signedPrefix": "a.example.com" },
        });
        let fulcio = json!({ "policyType": "FulcioCAWithRekor", "fulcioCAWithRekor": {
            "fulcioCAData": "Q0E=",
            "rekorKeyData": "UkU=",
            "fulcioSubject": { "oidcIssuer": "https://issuer.example.com", "signedEmail": "a@example.com" },
        } });
        let pki = json!({ "policyType": "PKI", "pki": {
            "caRootsData": "Q0E=",
            "pkiCertificateSubject": { "email": "a@example.com" },
        } });
        for (name, root, identity, expected) in [
            (
                "a key",
                public(),
                Value::Null,
                json!({ "keyData": "UEVN", "signedIdentity": { "type": "matchRepoDigestOrExact" } }),
            ),
            (
                "an exact repository",
                public(),
                exact,
                json!({
                    "keyData": "UEVN",
                    "signedIdentity": { "type": "exactRepository", "dockerRepository": "a.example.com/b" },
                }),
            ),
            (
                "another name",
                public(),
                remap,
                json!({ "keyData": "UEVN", "signedIdentity": {
                    "type": "remapIdentity", "prefix": "m.example.com", "signedPrefix": "a.example.com",
                } }),
            ),
            (
                "an authority",
                fulcio,
                json!({ "matchPolicy": "MatchRepository" }),
                json!({
                    "fulcio": {
                        "caData": "Q0E=",
                        "oidcIssuer": "https://issuer.example.com",
                        "subjectEmail": "a@example.com",
                    },
                    "rekorPublicKeyData": "UkU=",
                    "signedIdentity": { "type": "matchRepository" },
                }),
            ),
            (
                "certificates",
                pki,
                Value::Null,
                json!({
                    "pki": { "caRootsData": "Q0E=", "subjectEmail": "a@example.com" },
                    "signedIdentity": { "type": "matchRepoDigestOrExact" },
                }),
            ),
        ] {
            let (found, _) = rendered(&[policy(trusting(&root, &identity))], &[], &[]);
            let mut expected = expected;
            expected["type"] = json!("sigstoreSigned");
            let docker = &found["transports"]["docker"];
            assert_eq!(
                docker["images.example.com/team"],
                json!([expected]),
                "{name}"
            );
            assert_eq!(
                found["default"][0]["type"], "insecureAcceptAnything",
                "{name}"
            );
        }
    }

    #[test]
    fn policies_of_one_scope_all_hold() {
        let other = json!({ "policyType": "PublicKey", "publicKey": { "keyData": "T1RI" } });
        let policies =
            [public(), other, public()].map(|root| policy(trusting(&root, &Value::Null)));
        let (found, _) = rendered(&policies, &[], &[]);
        let requirements = &found["transports"]["docker"]["images.example.com/team"];
        assert_eq!(requirements.as_array().unwrap().len(), 2);
        assert_eq!(config(&[], &[], &[]), Ok(Vec::new()));
    }

    #[test]
    fn signatures_are_looked_for_at_mirrors_too() {
        let source = |source: &str, mirror: &str| ImageContentSource {
            source: source.to_owned(),
            mirrors: vec![mirror.to_owned()],
        };
        let cluster = [
            source("images.example.com/team/tools", "m.example.com/tools"),
            source("images.example.com", "m.example.com/all"),
            source("images.example.com/teams", "m.example.com/others"),
        ];
        let pool = [Mirror {
            source: source("images.example.com/team", "m.example.com/team"),
            pull: Pull::ByTag,
        }];
        let policies = [policy(trusting(&public(), &Value::Null))];
        let (_, found) = rendered(&policies, &cluster, &pool);
        let places = found["docker"].as_object().unwrap();
        let expected = [
            "images.example.com/team",
            "m.example.com/all/team",
            "m.example.com/team",
            "m.example.com/tools",
        ];
        assert_eq!(places.keys().collect::<Vec<_>>(), expected);
        assert!(
            places
                .values()
                .all(|it| it["use-sigstore-attachments"] == true)
        );
    }

    #[test]
    fn invalid_policies_name_the_field_and_not_the_content() {
        let scoped =
            |scopes: Value| json!({ "scopes": scopes, "policy": { "rootOfTrust": public() } });
        let root = |root: Value| trusting(&root, &Value::Null);
        for (spec, expected) in [
            (
                json!({}),
                "spec.policy.rootOfTrust.policyType: it is required",
            ),
            (
                root(json!({ "policyType": "hunter2" })),
                "spec.policy.rootOfTrust.policyType: unknown type",
            ),
            (
                root(json!({ "policyType": "PublicKey" })),
                "spec.policy.rootOfTrust.publicKey.keyData: it is required",
            ),
            (
                root(json!({ "policyType": "PublicKey", "publicKey": { "keyData": "-hunter2-" } })),
                "spec.policy.rootOfTrust.publicKey.keyData: use base64",
            ),
            (
                root(json!({ "policyType": "PKI", "pki": { "caRootsData": "Q0E=" } })),
                "spec.policy.rootOfTrust.pki.pkiCertificateSubject: add email or hostname",
            ),
            (
                trusting(&public(), &json!({ "matchPolicy": "hunter2" })),
                "spec.policy.signedIdentity.matchPolicy: unknown policy",
            ),
            (
                trusting(&public(), &json!({ "matchPolicy": "ExactRepository" })),
                "spec.policy.signedIdentity.exactRepository.repository: it is required",
            ),
            (scoped(json!([])), "spec.scopes: add the registries"),
            (scoped(json!(["a b"])), "spec.scopes: use names"),
            (scoped(json!([7])), "spec.scopes: use names"),
            (
                scoped(json!(["*.example.com"])),
                "spec.scopes: wildcards such as \"*.example.com\" are not supported",
            ),
        ] {
            let refused = config(&[policy(spec)], &[], &[]).unwrap_err().to_string();
            let expected = format!("ClusterImagePolicy p: {expected}");
            assert!(refused.starts_with(&expected), "{refused}");
            assert!(!refused.contains("hunter2"), "{refused}");
        }
    }
}
