//! OIDC authentication: which settings are rejected, and which are not.

use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::{Value, json};

use super::{Change, edit, facts};
use crate::facts::fixture;
use crate::facts::references::references;
use crate::facts::{Facts, Found, ReleaseIs};
use crate::hosted_cluster::validate::{Finding, validate};

/// A release of another version.
fn release_is(facts: &mut Facts, version: &str) {
    let mut release = fixture::release();
    release.version = version.parse().unwrap();
    facts.release = ReleaseIs::Read(release.into());
}

/// One OIDC provider, with more of its fields.
fn tokens(facts: &mut Facts, more: &Value) {
    let mut provider = json!({
        "name": "sso",
        "issuer": { "issuerURL": "https://sso.example.com", "audiences": ["guest"] },
        "claimMappings": { "username": { "claim": "sub" } },
    });
    json_patch::merge(&mut provider, more);
    let authentication =
        json!({ "authentication": { "type": "OIDC", "oidcProviders": [provider] } });
    edit(facts, "/configuration", authentication);
}

/// User names by an expression, in a release that can have them.
fn expression(facts: &mut Facts, text: &str) {
    release_is(facts, "4.22.0");
    let name = json!({ "claim": null, "expression": text });
    tokens(facts, &json!({ "claimMappings": { "username": name } }));
    preview(facts);
}

/// Features that are not on by default are on.
fn preview(facts: &mut Facts) {
    let mut configuration = serde_json::to_value(&facts.cluster.spec.configuration).unwrap();
    configuration["featureGate"] = json!({ "featureSet": "TechPreviewNoUpgrade" });
    edit(facts, "/configuration", configuration);
}

fn bundle(text: &str) -> Found {
    let data = [("ca-bundle.crt".to_owned(), text.to_owned())];
    Found::ConfigMap(Box::new(ConfigMap {
        data: Some(data.into()),
        ..ConfigMap::default()
    }))
}

/// Has the provider be trusted by a bundle that was found.
fn trusts(facts: &mut Facts, found: Found) {
    let issuer = json!({ "issuer": { "issuerCertificateAuthority": { "name": "sso-ca" } } });
    tokens(facts, &issuer);
    let mut all = references(&facts.cluster).into_iter();
    let reference = all.find(|it| it.name == "sso-ca").unwrap();
    facts.referenced.push((reference, found));
}

#[test]
fn oidc_settings_are_validated_like_the_guest_api_server() {
    let table: [(&str, Change, &str); 17] = [
        (
            "the issuer of service accounts",
            |it| {
                let url = "https://kubernetes.default.svc";
                tokens(it, &json!({ "issuer": { "issuerURL": url } }));
            },
            "issuerURL is https://kubernetes.default.svc, the same as spec.issuerURL",
        ),
        (
            "a webhook beside it",
            |it| {
                tokens(it, &json!({}));
                let mut configuration =
                    serde_json::to_value(&it.cluster.spec.configuration).unwrap();
                let webhook = json!({ "kubeConfig": { "name": "webhook" } });
                configuration["authentication"]["webhookTokenAuthenticator"] = webhook;
                edit(it, "/configuration", configuration);
            },
            ".webhookTokenAuthenticator requires type None",
        ),
        (
            "authorities without the key",
            |it| trusts(it, Found::ConfigMap(Box::default())),
            "names ConfigMap clusters/sso-ca, whose key ca-bundle.crt is missing or has no certificates",
        ),
        (
            "authorities that are none",
            |it| trusts(it, bundle("trust me")),
            "add them as PEM",
        ),
        (
            "authorities of which one is cut off",
            |it| {
                let whole = crate::hosted_cluster::build::webhook_tls(2030).unwrap();
                let whole = String::from_utf8(whole.data.unwrap()["tls.crt"].0.clone()).unwrap();
                trusts(
                    it,
                    bundle(&format!("{whole}-----BEGIN CERTIFICATE-----\nMIIB")),
                );
            },
            "add them as PEM",
        ),
        (
            "an unverified email address",
            |it| {
                release_is(it, "4.22.0");
                let name = json!({ "claim": null, "expression": "claims.email" });
                tokens(it, &json!({ "claimMappings": { "username": name } }));
                preview(it);
            },
            "add the claimValidationRule \"claims.email_verified == true\"",
        ),
        (
            "a key in capitals",
            |it| {
                let extra =
                    json!([{ "key": "example.com/Team", "valueExpression": "claims.team" }]);
                tokens(it, &json!({ "claimMappings": { "extra": extra } }));
            },
            "extra has the key example.com/Team, which must be lower case: use example.com/team",
        ),
        (
            "a claim that is required twice",
            |it| {
                let rule = |value: &str| {
                    let required = json!({ "claim": "hd", "requiredValue": value });
                    json!({ "type": "RequiredClaim", "requiredClaim": required })
                };
                tokens(
                    it,
                    &json!({ "claimValidationRules": [rule("a"), rule("b")] }),
                );
            },
            "requires claim hd twice: remove one of the rules",
        ),
        (
            "an expression that comes twice",
            |it| {
                release_is(it, "4.22.0");
                let cel = json!({ "expression": "claims.hd == 'a'", "message": "no" });
                let rule = json!({ "type": "CEL", "cel": cel });
                tokens(it, &json!({ "claimValidationRules": [rule, rule] }));
                preview(it);
            },
            "has the expression \"claims.hd == 'a'\" twice",
        ),
        (
            "an expression that cannot be parsed",
            |it| expression(it, "claims.email.split('@'"),
            "oidcProviders[0].claimMappings.username.expression is not a valid CEL expression: line 1, column",
        ),
        (
            "an expression with another variable",
            |it| expression(it, "claim.sub"),
            "oidcProviders[0].claimMappings.username.expression uses claim, which is not defined: use the variable claims",
        ),
        (
            "a rule about users with the variable of rules about tokens",
            |it| {
                release_is(it, "4.22.0");
                let rule = json!({ "expression": "claims.sub != 'root'", "message": "no" });
                tokens(it, &json!({ "userValidationRules": [rule] }));
                preview(it);
            },
            "oidcProviders[0].userValidationRules[0].expression uses claims, which is not defined: use the variable user",
        ),
        (
            "a release that knows no providers",
            |it| {
                release_is(it, "4.14.9");
                tokens(it, &json!({}));
            },
            "release 4.14.9 does not support OIDC providers: use release 4.15 or newer, or type IntegratedOAuth",
        ),
        (
            "a UID in a release that makes none",
            |it| {
                release_is(it, "4.19.2");
                tokens(
                    it,
                    &json!({ "claimMappings": { "uid": { "claim": "oid" } } }),
                );
            },
            "oidcProviders[0].claimMappings.uid is not supported by release 4.19.2: remove it, or use release 4.20 or newer",
        ),
        (
            "a rule about users in a release that would ignore it",
            |it| {
                release_is(it, "4.21.0");
                let rule = json!({ "expression": "!user.username.startsWith('system:')", "message": "no" });
                tokens(it, &json!({ "userValidationRules": [rule] }));
                preview(it);
            },
            "userValidationRules is not supported by release 4.21.0: remove it, or use release 4.22 or newer with",
        ),
        (
            "a document elsewhere, without the feature",
            |it| {
                release_is(it, "4.22.0");
                let url = "https://sso.example.com/elsewhere";
                tokens(it, &json!({ "issuer": { "discoveryURL": url } }));
            },
            "issuer.discoveryURL is not supported by release 4.22.0: remove it, or use release 4.22 or newer with \
             spec.configuration.featureGate.featureSet TechPreviewNoUpgrade",
        ),
        (
            "the release of the control plane counts",
            |it| {
                let mut release = fixture::release();
                release.version = "4.19.2".parse().unwrap();
                it.control_plane_release = Some(ReleaseIs::Read(release.into()));
                let extra =
                    json!([{ "key": "example.com/team", "valueExpression": "claims.team" }]);
                tokens(it, &json!({ "claimMappings": { "extra": extra } }));
            },
            "claimMappings.extra is not supported by release 4.19.2",
        ),
    ];
    for (name, change, expected) in table {
        let finding = validate(&facts("none", change)).configuration;
        let Finding::Bad { reason, message } = finding else {
            unreachable!("{name}: {finding:?}");
        };
        assert_eq!(reason, "InvalidConfiguration", "{name}");
        assert!(message.contains(expected), "{name}: {message}");
    }
}

#[test]
fn oidc_features_depend_on_the_release() {
    let table: [(&str, Change); 8] = [
        ("a claim", |it| tokens(it, &json!({}))),
        ("no users", |it| {
            let none = json!({ "authentication": { "type": "OIDC" } });
            edit(it, "/configuration", none);
        }),
        ("another way, with leftovers", |it| {
            tokens(
                it,
                &json!({ "issuer": { "issuerURL": "https://kubernetes.default.svc" } }),
            );
            let mut configuration = serde_json::to_value(&it.cluster.spec.configuration).unwrap();
            configuration["authentication"]["type"] = json!("None");
            edit(it, "/configuration", configuration);
        }),
        ("a UID", |it| {
            tokens(
                it,
                &json!({ "claimMappings": { "uid": { "claim": "oid" } } }),
            );
        }),
        ("a UID, early", |it| {
            release_is(it, "4.19.2");
            tokens(
                it,
                &json!({ "claimMappings": { "uid": { "claim": "oid" } } }),
            );
            preview(it);
        }),
        ("an address that is verified", |it| {
            release_is(it, "4.22.0");
            let cel =
                json!({ "expression": "claims.?email_verified.orValue(false)", "message": "no" });
            tokens(
                it,
                &json!({
                    "claimMappings": { "username": { "claim": null, "expression": "claims.email" } },
                    "claimValidationRules": [{ "type": "CEL", "cel": cel }],
                }),
            );
            preview(it);
        }),
        ("an expression", |it| {
            expression(it, "claims.?upn.orValue(claims.sub)");
        }),
        ("authorities", |it| {
            let whole = crate::hosted_cluster::build::webhook_tls(2030).unwrap();
            let whole = String::from_utf8(whole.data.unwrap()["tls.crt"].0.clone()).unwrap();
            trusts(it, bundle(&whole));
        }),
    ];
    for (name, change) in table {
        let finding = validate(&facts("none", change)).configuration;
        assert!(finding.is_good(), "{name}: {finding:?}");
    }
}
