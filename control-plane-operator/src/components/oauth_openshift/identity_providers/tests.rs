//! Refused identity providers, and the condition that reports them.

mod refusals;

use api::hypershift::v1beta1::HostedControlPlane;
use control_plane_component::facts::{Infra, OpenIdEndpoints};
use control_plane_component::settings::Settings;
use control_plane_component::{Objects, Predicates, Release};

use super::*;

const INPUT: &str = include_str!(
    "../../../../../control-plane-component/tests/data/base/hosted-control-plane.yaml"
);

/// Calls a function with the context of these providers and objects.
pub(super) fn with<T>(
    providers: &Value,
    objects: &[Value],
    call: impl FnOnce(&Context<'_>) -> T,
) -> T {
    with_infra(providers, &json!({}), objects, &Infra::default(), call)
}

/// The same with annotations of the hosted control plane, and with facts.
pub(super) fn with_infra<T>(
    providers: &Value,
    annotations: &Value,
    objects: &[Value],
    infra: &Infra,
    call: impl FnOnce(&Context<'_>) -> T,
) -> T {
    let mut hcp: HostedControlPlane = serde_saphyr::from_str(INPUT).unwrap();
    let configuration = json!({ "oauth": { "identityProviders": providers } });
    hcp.spec.configuration = serde_json::from_value(configuration).unwrap();
    hcp.metadata.annotations = serde_json::from_value(annotations.clone()).unwrap();
    let release = Release::default();
    call(&Context {
        hcp: &hcp,
        release: &release,
        user_release: &release,
        infra,
        objects: &objects.iter().cloned().collect::<Objects>(),
        settings: &Settings::new("own"),
        predicates: Predicates::Evaluated,
    })
}

fn htpasswd(name: &str, secret: &str) -> Value {
    json!({ "name": name, "type": "HTPasswd", "htpasswd": { "fileData": { "name": secret } } })
}

fn ldap(ca: &str) -> Value {
    json!({ "name": "ldap", "type": "LDAP", "ldap": { "url": "ldaps://ldap.example.com", "ca": { "name": ca } } })
}

pub(super) fn openid() -> Value {
    json!({ "name": "sso", "type": "OpenID", "openID": {
        "clientID": "cluster", "clientSecret": { "name": "client" }, "issuer": "https://sso.example.com",
    } })
}

pub(super) fn secret(name: &str, key: &str) -> Value {
    json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": name }, "data": { key: "YQ==" } })
}

fn config_map(name: &str, key: &str, text: &str) -> Value {
    json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name }, "data": { key: text } })
}

fn objects() -> Vec<Value> {
    let authority = rcgen::generate_simple_self_signed(["ca".to_owned()]).unwrap();
    let block = "-----BEGIN CERTIFICATE-----\nYQ==\n-----END CERTIFICATE-----\n";
    vec![
        secret("users", "htpasswd"),
        secret("other-key", "users"),
        secret("client", "clientSecret"),
        json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "empty" }, "data": { "clientSecret": "" },
        }),
        config_map("ca", "ca.crt", &authority.cert.pem()),
        config_map("no-key", "ca-bundle.crt", block),
        config_map("no-pem", "ca.crt", "certificate"),
        config_map("no-certificate", "ca.crt", block),
    ]
}

#[test]
fn invalid_providers_are_refused_with_the_reason() {
    let named = |name: &str| htpasswd(name, "users");
    let mut mapped = named("file");
    mapped["mappingMethod"] = json!("replace");
    let mut without = named("file");
    without["htpasswd"] = Value::Null;
    let of_type = |type_: &str| json!({ "name": "x", "type": type_ });
    let client = json!({ "name": "git", "type": "GitHub", "github": { "clientID": "cluster" } });
    let section = |type_: &str, field: &str, section: &Value| json!({ "name": "x", "type": type_, field: section });
    let client_secret = json!({ "name": "client" });
    let proxy = json!({ "name": "proxy", "type": "RequestHeader", "requestHeader": { "headers": ["X-User"] } });
    for (provider, reason) in [
        (htpasswd("file", "absent"), "Secret absent does not exist"),
        (
            htpasswd("file", "other-key"),
            "Secret other-key has no key htpasswd",
        ),
        (htpasswd("file", ""), "fileData is required"),
        (client, "clientSecret is required"),
        (
            proxy,
            "ca is required: set it to the name of a ConfigMap with key ca.crt",
        ),
        (ldap("absent"), "ConfigMap absent does not exist"),
        (ldap("no-key"), "ConfigMap no-key has no key ca.crt"),
        (
            ldap("no-pem"),
            "key ca.crt of ConfigMap no-pem has no certificate in PEM format",
        ),
        (
            ldap("no-certificate"),
            "ConfigMap no-certificate has no certificate in PEM format",
        ),
        (
            mapped,
            "invalid mappingMethod \"replace\": set add, claim, generate or lookup",
        ),
        (named(""), "invalid name"),
        (named("a/b"), "invalid name"),
        (named("a:b"), "invalid name"),
        (
            without,
            "type HTPasswd was specified, but its configuration is missing",
        ),
        (
            of_type("Kerberos"),
            "the identity provider type 'Kerberos' is not supported",
        ),
        (
            of_type(""),
            "the identity provider type '' is not supported",
        ),
        (
            openid(),
            "waiting for the discovery document of issuer https://sso.example.com",
        ),
        (
            section(
                "OpenID",
                "openID",
                &json!({ "clientID": "a", "clientSecret": client_secret }),
            ),
            "issuer is required",
        ),
        (
            section(
                "OpenID",
                "openID",
                &json!({ "issuer": "https://a", "clientSecret": client_secret }),
            ),
            "clientID is required",
        ),
        (
            section(
                "OpenID",
                "openID",
                &json!({
                    "issuer": "https://a", "clientID": "a", "clientSecret": { "name": "empty" },
                }),
            ),
            "key clientSecret of Secret empty is empty",
        ),
        (
            section(
                "GitLab",
                "gitlab",
                &json!({ "clientID": "a", "clientSecret": client_secret }),
            ),
            "url is required",
        ),
        (
            section(
                "Google",
                "google",
                &json!({ "clientSecret": client_secret }),
            ),
            "clientID is required",
        ),
        (
            section("BasicAuth", "basicAuth", &json!({})),
            "url is required",
        ),
        (
            section("Keystone", "keystone", &json!({ "url": "https://a" })),
            "domainName is required",
        ),
        (
            section("LDAP", "ldap", &json!({ "url": "" })),
            "url is required",
        ),
        (
            section(
                "BasicAuth",
                "basicAuth",
                &json!({ "url": "https://a", "tlsClientCert": client_secret }),
            ),
            "tlsClientCert and tlsClientKey belong together",
        ),
        (
            section(
                "RequestHeader",
                "requestHeader",
                &json!({ "loginURL": "https://a", "ca": { "name": "ca" } }),
            ),
            "headers is required",
        ),
        (
            section(
                "RequestHeader",
                "requestHeader",
                &json!({ "headers": ["X-User"], "ca": { "name": "ca" } }),
            ),
            "loginURL or challengeURL is required",
        ),
    ] {
        let message = with(&json!([provider]), &objects(), validate).unwrap_err();
        let start = "failed to initialize identity providers: failed to apply IDP ";
        assert!(message.starts_with(start), "{message}");
        assert!(message.contains(reason), "{reason}: {message}");
    }
}

#[test]
fn the_second_provider_of_a_name_is_refused() {
    let providers = json!([htpasswd("file", "users"), htpasswd("file", "users")]);
    with(&providers, &objects(), |context| {
        let message = validate(context).unwrap_err();
        assert!(
            message.contains("IDP file config: an earlier identity provider"),
            "{message}"
        );
        assert_eq!(convert(context).providers.len(), 1);
    });
}

#[test]
fn a_refused_provider_keeps_its_index_and_mounts_nothing() {
    let providers = json!([
        ldap("no-pem"),
        htpasswd("file", "users"),
        htpasswd("gone", "absent"),
    ]);
    with(&providers, &objects(), |context| {
        let converted = convert(context);
        let file = &converted.providers[0]["provider"]["file"];
        assert_eq!(file, "/etc/oauth/idp/idp_secret_1_file-data/htpasswd");
        let volumes: Vec<_> = converted
            .volumes
            .iter()
            .map(|it| it.name.as_str())
            .collect();
        assert_eq!(volumes, ["idp-secret-1-file-data"]);
        let message = validate(context).unwrap_err();
        assert!(
            message.contains("IDP ldap") && message.contains("; failed to apply IDP gone"),
            "{message}"
        );
    });
}

#[test]
fn messages_about_many_providers_are_limited() {
    let providers: Vec<_> = (0..1000)
        .map(|number| htpasswd(&format!("file-{number}"), "absent"))
        .collect();
    let message = with(&json!(providers), &[], validate).unwrap_err();
    assert!(message.len() < 17 << 10, "{}", message.len());
    assert!(
        message.contains("IDP file-0 ") && message.ends_with(" more"),
        "{message}"
    );
}

/// A short outage of a provider must not restart the OAuth server without it.
#[test]
fn failed_discovery_is_reported_and_known_endpoints_are_kept() {
    let known = OpenIdEndpoints {
        authorize: "https://sso.example.com/auth".to_owned(),
        ..OpenIdEndpoints::default()
    };
    let failures = [("sso".to_owned(), "no response".to_owned())];
    for (openid_endpoints, count, expected) in [
        (
            vec![],
            0,
            "IDP sso config: failed to discover the endpoints of issuer https://sso.example.com: no response",
        ),
        (
            vec![("sso".to_owned(), known)],
            1,
            "IDP sso config: using the endpoints that are known from before: no response",
        ),
    ] {
        let infra = Infra {
            openid: openid_endpoints.into_iter().collect(),
            openid_failures: failures.clone().into(),
            ..Infra::default()
        };
        with_infra(
            &json!([openid()]),
            &json!({}),
            &objects(),
            &infra,
            |context| {
                assert_eq!(convert(context).providers.len(), count);
                let message = validate(context).unwrap_err();
                assert!(message.ends_with(expected), "{message}");
            },
        );
    }
}

#[test]
fn valid_providers_and_no_providers_are_accepted() {
    for providers in [json!([]), json!([htpasswd("file", "users")])] {
        assert_eq!(with(&providers, &objects(), validate), Ok(()));
    }
}

/// The message is in a condition that users read.
#[test]
fn contents_of_secrets_are_not_reported() {
    let mut broken = objects();
    broken.push(json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "absent" },
        "data": { "users": "c2VjcmV0" },
    }));
    let message = with(&json!([htpasswd("file", "absent")]), &broken, validate).unwrap_err();
    assert!(
        !message.contains("c2VjcmV0") && !message.contains("secret\""),
        "{message}"
    );
}
