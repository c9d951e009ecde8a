//! The identities of a cluster's components: names, documents and members of policies. Pure.

use serde_json::{Value, json};

use super::components::Component;
use super::jwks::Jwks;
use super::scope::Scope;
use crate::Usage;

/// Where pools are, in a project.
const POOLS: &str = "locations/global/workloadIdentityPools";
/// Who tokens of service accounts of a hosted cluster are for.
const AUDIENCE: &str = "openshift";
/// What a token says of whom it is for becomes who makes calls.
const MAPPING: (&str, &str) = ("google.subject", "assertion.sub");

/// A pool or a provider: what exists under its name is brought in line with it.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) noun: &'static str,
    pub(super) id: String,
    /// The URL of the entry.
    pub(super) url: String,
    /// The URL that it is created with.
    pub(super) create_url: String,
    /// What it should be like.
    pub(super) body: Value,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    Pool,
    Provider {
        /// The keys that it should have; without them, the issuer publishes some.
        jwks: Option<Jwks>,
    },
}

/// The issuer of the tokens: that of the flag, or a name that needs no server because keys are uploaded.
pub(crate) fn issuer_of(scope: &Scope, url: Option<&str>) -> Result<String, Usage> {
    let Some(url) = url else {
        return Ok(format!("https://hypershift-{}-oidc", scope.infra_id));
    };
    let rest = url.strip_prefix("https://").unwrap_or_default();
    let is_odd = |c: char| c.is_whitespace() || c.is_control() || matches!(c, '?' | '#' | '@');
    if rest.is_empty() || rest.ends_with('/') || rest.contains(is_odd) {
        return Err(Usage::new(&format!(
            "--oidc-issuer-url {url:?}: write https://HOST or https://HOST/PATH, without a slash at the end"
        )));
    }
    Ok(url.to_owned())
}

/// The pool that trusts the tokens.
pub(super) fn pool(scope: &Scope) -> Entry {
    let id = pool_id(scope);
    Entry {
        noun: "workload identity pool",
        url: scope.iam(&format!("{POOLS}/{id}")),
        create_url: scope.iam(&format!("{POOLS}?workloadIdentityPoolId={id}")),
        body: json!({ "displayName": id, "description": scope.description(), "disabled": false }),
        kind: Kind::Pool,
        id,
    }
}

/// The provider in the pool: who issues tokens, and the keys that verify them. Without keys, the issuer publishes them.
pub(super) fn provider(scope: &Scope, issuer: &str, jwks: Option<&Jwks>) -> Entry {
    let id = provider_id(scope);
    let providers = format!("{POOLS}/{}/providers", pool_id(scope));
    let (subject, claim) = MAPPING;
    Entry {
        noun: "workload identity provider",
        url: scope.iam(&format!("{providers}/{id}")),
        create_url: scope.iam(&format!("{providers}?workloadIdentityPoolProviderId={id}")),
        body: json!({
            "displayName": id,
            "description": scope.description(),
            "disabled": false,
            "attributeMapping": { subject: claim },
            "oidc": {
                "issuerUri": issuer,
                "allowedAudiences": [AUDIENCE],
                "jwksJson": jwks.map(Jwks::text).unwrap_or_default(),
            },
        }),
        kind: Kind::Provider {
            jwks: jwks.cloned(),
        },
        id,
    }
}

pub(super) fn pool_id(scope: &Scope) -> String {
    scope.named("wi-pool")
}

pub(super) fn provider_id(scope: &Scope) -> String {
    scope.named("k8s-provider")
}

/// The provider, as tokens are exchanged for it.
pub(super) fn provider_audience(scope: &Scope, number: &str) -> String {
    let (pool, provider) = (pool_id(scope), provider_id(scope));
    format!("//iam.googleapis.com/projects/{number}/{POOLS}/{pool}/providers/{provider}")
}

/// ID of a component's service account.
pub(super) fn account_id(scope: &Scope, component: &Component) -> String {
    scope.named(component.name)
}

/// E-mail address of a component's service account.
pub(super) fn email(scope: &Scope, component: &Component) -> String {
    let id = account_id(scope, component);
    format!("{id}@{}.iam.gserviceaccount.com", scope.project)
}

/// The URL of a service account.
pub(super) fn account_url(scope: &Scope, email: &str) -> String {
    scope.iam(&format!("serviceAccounts/{email}"))
}

/// The document that creates a component's service account.
pub(super) fn account_body(scope: &Scope, component: &Component) -> Value {
    json!({
        "accountId": account_id(scope, component),
        "serviceAccount": {
            "displayName": component.title,
            "description": scope.description(),
        },
    })
}

/// A service account, as policies name it.
pub(super) fn account_member(email: &str) -> String {
    format!("serviceAccount:{email}")
}

/// The service accounts of the hosted cluster that act as a component, as policies name them.
pub(super) fn subjects(scope: &Scope, number: &str, component: &Component) -> Vec<String> {
    let pool = pool_id(scope);
    let begin = format!("principal://iam.googleapis.com/projects/{number}/{POOLS}/{pool}/subject");
    let subjects = component.subjects.iter();
    subjects
        .map(|(namespace, name)| format!("{begin}/system:serviceaccount:{namespace}:{name}"))
        .collect()
}

// === impl Entry ===

impl Entry {
    /// The fields of an existing entry that differ from ours, as a mask of an update. Empty if none does.
    pub(super) fn differences(&self, found: &Value) -> Vec<&'static str> {
        let mut fields = Vec::new();
        if found["disabled"] == true {
            fields.push("disabled");
        }
        let Kind::Provider { jwks } = &self.kind else {
            return fields;
        };
        let (ours, theirs) = (&self.body["oidc"], &found["oidc"]);
        let keys = theirs["jwksJson"].as_str().unwrap_or_default();
        let has_keys = match jwks {
            Some(jwks) => jwks.is_same(keys),
            None => keys.trim().is_empty(),
        };
        for (field, is_same) in [
            (
                "attribute_mapping",
                self.body["attributeMapping"] == found["attributeMapping"],
            ),
            ("oidc.issuer_uri", ours["issuerUri"] == theirs["issuerUri"]),
            (
                "oidc.allowed_audiences",
                ours["allowedAudiences"] == theirs["allowedAudiences"],
            ),
            ("oidc.jwks_json", has_keys),
        ] {
            if !is_same {
                fields.push(field);
            }
        }
        fields
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scope() -> Scope {
        Scope::new("a-x1", "project-1").unwrap()
    }

    #[test]
    fn issuers_are_urls_that_tokens_can_name() {
        let expected = "https://hypershift-a-x1-oidc";
        assert_eq!(issuer_of(&scope(), None).unwrap(), expected);
        for (url, expected) in [
            ("https://issuer.example.com", true),
            ("https://issuer.example.com/a", true),
            ("https://issuer.example.com/a/", false),
            ("http://issuer.example.com", false),
            ("https://", false),
            ("https://a b", false),
            ("https://a?b=c", false),
            ("", false),
        ] {
            assert_eq!(issuer_of(&scope(), Some(url)).is_ok(), expected, "{url}");
        }
    }

    #[test]
    fn only_what_differs_is_updated() {
        let jwks = Jwks::parse(r#"{"keys": [{"kty": "RSA", "n": "a"}]}"#).unwrap();
        let with_keys = provider(&scope(), "https://i", Some(&jwks));
        let without = provider(&scope(), "https://i", None);
        assert_eq!(with_keys.differences(&with_keys.body), [""; 0]);
        assert_eq!(without.differences(&without.body), [""; 0]);
        assert_eq!(without.differences(&with_keys.body), ["oidc.jwks_json"]);
        assert_eq!(with_keys.differences(&without.body), ["oidc.jwks_json"]);
        let mut found = with_keys.body.clone();
        found["oidc"]["jwksJson"] = json!("{\"keys\":[{\"n\":\"a\",\"kty\":\"RSA\"}]}\n");
        assert_eq!(with_keys.differences(&found), [""; 0]);
        found["disabled"] = json!(true);
        found["oidc"]["issuerUri"] = json!("https://j");
        assert_eq!(
            with_keys.differences(&found),
            ["disabled", "oidc.issuer_uri"]
        );
        let all = [
            "attribute_mapping",
            "oidc.issuer_uri",
            "oidc.allowed_audiences",
            "oidc.jwks_json",
        ];
        assert_eq!(with_keys.differences(&json!({})), all);
        // Fields with their default are left out of responses.
        assert_eq!(pool(&scope()).differences(&json!({})), [""; 0]);
        assert_eq!(
            pool(&scope()).differences(&json!({ "disabled": true })),
            ["disabled"]
        );
    }
}
