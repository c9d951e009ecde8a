//! The OAuth server, the operator of break-glass certificates and the storage version migrator: how input changes them.

use std::collections::BTreeMap;

use control_plane_component::facts::{Endpoint, Infra, OpenIdEndpoints};
use control_plane_component::render::{Rendered, render};
use control_plane_component::{Context, Predicates};
use control_plane_operator::components;
use control_plane_operator::render::Input;
use serde_json::{Value, json};

use crate::variants::changed;

const OAUTH: &str = "oauth-openshift";
const PKI: &str = "control-plane-pki-operator";
const MIGRATOR: &str = "kube-storage-version-migrator";
/// Pod spec in an object whose lists are indexed by name.
const POD: &str = "/spec/template/spec";
const SERVER: &str = "/spec/template/spec/containers/oauth-openshift";

/// Changes of the hosted control plane (JSON pointer and value), a JSON pointer into an object, and its value.
type Row<'a> = (&'a [(&'a str, Value)], &'a str, Value);

/// Component, changes of the hosted control plane, and whether the component runs.
type Runs<'a> = (&'a str, &'a [(&'a str, Value)], bool);

fn infra() -> Infra {
    let endpoint = |host: &str, port| Endpoint {
        host: host.to_owned(),
        port,
    };
    let openid = OpenIdEndpoints {
        authorize: "https://sso.example.com/authorize".to_owned(),
        token: "https://sso.example.com/token".to_owned(),
        user_info: String::new(),
        challenge: true,
    };
    Infra {
        api: endpoint("api.example.com", 6443),
        oauth: endpoint("fd00::7", 443),
        openid: [("sso".to_owned(), openid)].into(),
        ..Infra::default()
    }
}

/// Renders a component.
fn rendered(input: &Input, component: &str) -> Rendered {
    let infra = infra();
    let context = Context {
        hcp: &input.hosted_control_plane,
        release: &input.release,
        user_release: &input.release,
        infra: &infra,
        objects: &input.objects,
        settings: &input.settings,
        predicates: input.predicates,
    };
    let mut all = components::all().iter();
    let component = all.find(|other| other.name == component).unwrap();
    render(component, &context).unwrap()
}

fn objects(input: &Input, component: &str) -> Vec<Value> {
    rendered(input, component).objects().cloned().collect()
}

fn object(input: &Input, component: &str, kind: &str, name: &str) -> Value {
    let mut all = objects(input, component).into_iter();
    let found = all.find(|object| object["kind"] == kind && object["metadata"]["name"] == name);
    found.unwrap_or_default()
}

/// Returns the Deployment; lists of named items are indexed by name.
fn deployment(input: &Input, component: &str) -> Value {
    by_name(object(input, component, "Deployment", component))
}

fn by_name(value: Value) -> Value {
    let name = |item: &Value| item["name"].as_str().map(str::to_owned);
    match value {
        Value::Object(fields) => fields
            .into_iter()
            .map(|(key, value)| (key, by_name(value)))
            .collect(),
        Value::Array(items) if !items.is_empty() && items.iter().all(|it| name(it).is_some()) => {
            let items = items.into_iter();
            items
                .map(|item| (name(&item).unwrap(), by_name(item)))
                .collect()
        }
        Value::Array(items) => items.into_iter().map(by_name).collect(),
        value => value,
    }
}

fn config(input: &Input, component: &str, name: &str) -> Value {
    let map = object(input, component, "ConfigMap", name);
    serde_saphyr::from_str(map["data"]["config.yaml"].as_str().unwrap()).unwrap()
}

/// Compares rows with the object of their input.
fn compare(rows: &[Row<'_>], object: impl Fn(&Input) -> Value) {
    for (changes, pointer, expected) in rows {
        let object = object(&changed(changes));
        let found = object.pointer(pointer).unwrap_or(&Value::Null);
        assert_eq!(found, expected, "{changes:?}: {pointer}");
    }
}

fn configuration(section: &str, value: Value) -> Value {
    Value::from_iter([(section.to_owned(), value)])
}

fn oauth(value: Value) -> (&'static str, Value) {
    ("/spec/configuration", configuration("oauth", value))
}

fn server(value: Value) -> (&'static str, Value) {
    ("/spec/configuration", configuration("apiServer", value))
}

fn tls(type_: &str) -> (&'static str, Value) {
    server(json!({ "tlsSecurityProfile": { "type": type_ } }))
}

fn platform(type_: &str) -> (&'static str, Value) {
    ("/spec/platform/type", json!(type_))
}

fn annotation(key: &str, value: &str) -> (&'static str, Value) {
    ("/metadata/annotations", json!({ key: value }))
}

fn named() -> (&'static str, Value) {
    let certificate = |name: &str, secret: &str| json!({ "names": [name], "servingCertificate": { "name": secret } });
    server(json!({ "servingCerts": { "namedCertificates": [
        certificate("a.example.com", "cert-a"), certificate("b.example.com", "cert-b"),
    ] } }))
}

#[test]
fn server_config_follows_the_input() {
    let tokens = |value: Value| oauth(json!({ "tokenConfig": value }));
    let custom = || {
        server(
            json!({ "tlsSecurityProfile": { "type": "Custom", "custom": {
            "ciphers": ["ECDHE-RSA-AES128-GCM-SHA256", "unknown"], "minTLSVersion": "VersionTLS11",
        } } }),
        )
    };
    let dns_name = || ("/spec/kubeAPIServerDNSName", json!("my.example.com"));
    let login = "oauth.hypershift.openshift.io/login-url-override";
    let age = "/oauthConfig/tokenConfig/accessTokenMaxAgeSeconds";
    let timeout = "/oauthConfig/tokenConfig/accessTokenInactivityTimeout";
    let version = "/servingInfo/minTLSVersion";
    let ciphers = "/servingInfo/cipherSuites";
    let (first, second) = (
        "/servingInfo/namedCertificates/0",
        "/servingInfo/namedCertificates/1",
    );
    let rows: &[Row<'_>] = &[
        (&[], age, json!(86400)),
        (
            &[tokens(json!({ "accessTokenMaxAgeSeconds": 600 }))],
            age,
            json!(600),
        ),
        (
            &[tokens(json!({ "accessTokenMaxAgeSeconds": 0 }))],
            age,
            json!(86400),
        ),
        (
            &[tokens(json!({ "accessTokenMaxAgeSeconds": -1 }))],
            age,
            json!(86400),
        ),
        (&[], timeout, Value::Null),
        (
            &[tokens(json!({ "accessTokenInactivityTimeout": "10m0s" }))],
            timeout,
            json!("10m0s"),
        ),
        (&[], version, json!("VersionTLS12")),
        (&[tls("Modern")], version, json!("VersionTLS13")),
        (&[tls("Modern")], ciphers, Value::Null),
        (&[tls("Old")], version, json!("VersionTLS10")),
        (&[custom()], version, json!("VersionTLS11")),
        (
            &[custom()],
            ciphers,
            json!(["TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"]),
        ),
        (&[], "/servingInfo/namedCertificates", Value::Null),
        (
            &[named()],
            first,
            json!({
                "names": ["a.example.com"],
                "certFile": "/etc/kubernetes/certs/named-1/tls.crt",
                "keyFile": "/etc/kubernetes/certs/named-1/tls.key",
            }),
        ),
        (
            &[named()],
            &format!("{second}/certFile"),
            json!("/etc/kubernetes/certs/named-2/tls.crt"),
        ),
        (
            &[],
            "/oauthConfig/masterURL",
            json!("https://oauth-openshift.hcp-namespace.svc.cluster.local:6443"),
        ),
        (
            &[],
            "/oauthConfig/masterPublicURL",
            json!("https://[fd00::7]:443"),
        ),
        (
            &[],
            "/oauthConfig/loginURL",
            json!("https://api.example.com:6443"),
        ),
        (
            &[dns_name()],
            "/oauthConfig/loginURL",
            json!("https://my.example.com:6443"),
        ),
        (
            &[dns_name(), annotation(login, "https://login.example.com")],
            "/oauthConfig/loginURL",
            json!("https://login.example.com"),
        ),
        (&[], "/oauthConfig/identityProviders", json!([])),
        (
            &[oauth(json!({}))],
            "/oauthConfig/identityProviders",
            json!([]),
        ),
    ];
    compare(rows, |input| config(input, OAUTH, OAUTH));
}

#[test]
fn server_pods_follow_the_input() {
    let own = "kube-apiserver,audit-webhook,oauth-openshift.hcp-namespace.svc.cluster.local";
    let ibm = format!("{own},iam.cloud.ibm.com,iam.test.cloud.ibm.com");
    let webhook = || ("/spec/auditWebhook", json!({ "name": "hook" }));
    let no_audit = || server(json!({ "audit": { "profile": "None" } }));
    let templates = || {
        let name = |name: &str| json!({ "name": name });
        oauth(json!({ "templates": {
            "login": name("my-login"), "providerSelection": name("my-providers"), "error": name("my-error"),
        } }))
    };
    let single = || ("/spec/controllerAvailabilityPolicy", json!("SingleReplica"));
    let at = |path: &str| format!("{SERVER}/{path}");
    let volume = |name: &str| format!("{POD}/volumes/{name}/secret/secretName");
    let no_proxy = at("env/NO_PROXY/value");
    let rows: &[Row<'_>] = &[
        (&[], &no_proxy, json!(own)),
        (&[platform("IBMCloud")], &no_proxy, json!(ibm)),
        (&[], &at("args/7"), Value::Null),
        (
            &[webhook()],
            &at("args/7"),
            json!("--audit-webhook-config-file=/etc/kubernetes/auditwebhook/webhook-kubeconfig"),
        ),
        (
            &[webhook()],
            &at("args/8"),
            json!("--audit-webhook-mode=batch"),
        ),
        (
            &[webhook()],
            &at("args/9"),
            json!("--audit-webhook-initial-backoff=5s"),
        ),
        (
            &[webhook()],
            &at("volumeMounts/oauth-audit-webhook/mountPath"),
            json!("/etc/kubernetes/auditwebhook"),
        ),
        (&[webhook()], &volume("oauth-audit-webhook"), json!("hook")),
        (
            &[("/spec/auditWebhook", json!({ "name": "" }))],
            &volume("oauth-audit-webhook"),
            Value::Null,
        ),
        (
            &[],
            &format!("{POD}/containers/audit-logs/name"),
            json!("audit-logs"),
        ),
        (
            &[no_audit()],
            &format!("{POD}/containers/audit-logs"),
            Value::Null,
        ),
        (
            &[no_audit()],
            &at("args/5"),
            json!("--audit-log-path=/var/run/kubernetes/audit.log"),
        ),
        (&[named()], &volume("named-cert-1"), json!("cert-a")),
        (&[named()], &volume("named-cert-2"), json!("cert-b")),
        (
            &[named()],
            &at("volumeMounts/named-cert-2/mountPath"),
            json!("/etc/kubernetes/certs/named-2"),
        ),
        (&[], &volume("named-cert-1"), Value::Null),
        (&[templates()], &volume("login-template"), json!("my-login")),
        (
            &[templates()],
            &volume("providers-template"),
            json!("my-providers"),
        ),
        (&[templates()], &volume("error-template"), json!("my-error")),
        (
            &[templates()],
            &at("volumeMounts/error-template/mountPath"),
            json!("/etc/kubernetes/secrets/templates/error"),
        ),
        (
            &[oauth(json!({ "templates": { "login": { "name": "" } } }))],
            &volume("login-template"),
            json!("oauth-openshift-default-login-template"),
        ),
        (
            &[],
            &format!("{POD}/containers/konnectivity-proxy-https/args/1"),
            json!("--serving-port=8092"),
        ),
        (
            &[],
            &format!("{POD}/initContainers/availability-prober/command/3"),
            json!("https://kube-apiserver:6443/readyz"),
        ),
        (
            &[platform("IBMCloud")],
            &format!("{POD}/initContainers/availability-prober/command/3"),
            json!("https://kube-apiserver:2040/readyz"),
        ),
        (&[], "/spec/replicas", json!(3)),
        (&[single()], "/spec/replicas", json!(1)),
    ];
    compare(rows, |input| deployment(input, OAUTH));
}

#[test]
fn audit_profile_is_that_of_the_api_server() {
    let profile = |name: &str| server(json!({ "audit": { "profile": name } }));
    let rows: &[Row<'_>] = &[
        (&[], "/data/profile", json!("Default")),
        (
            &[profile("AllRequestBodies")],
            "/data/profile",
            json!("AllRequestBodies"),
        ),
        (&[profile("None")], "/data/profile", json!("None")),
    ];
    let audit = |input: &Input| object(input, OAUTH, "ConfigMap", "oauth-openshift-audit");
    compare(rows, audit);
    let policy = |input: &Input| audit(input)["data"]["policy.yaml"].clone();
    assert_eq!(policy(&changed(&[profile("None")])), policy(&changed(&[])));
}

#[test]
fn pods_restart_after_a_change_of_the_kubeadmin_password() {
    let key = "hypershift.openshift.io/kubeadmin-secret-hash";
    for (annotations, expected) in [
        (None, Value::Null),
        (Some(json!({})), json!("")),
        (Some(json!({ key: "hash" })), json!("hash")),
    ] {
        let mut input = changed(&[]);
        if let Some(annotations) = annotations {
            input.objects.insert(json!({
                "apiVersion": "v1", "kind": "Secret",
                "metadata": { "name": "kubeadmin-password", "annotations": annotations },
            }));
        }
        let deployment = deployment(&input, OAUTH);
        assert_eq!(
            deployment["spec"]["template"]["metadata"]["annotations"][key],
            expected
        );
    }
}

/// Check T16: values of users are texts of the configuration, and no further settings.
#[test]
fn values_of_users_inject_no_settings() {
    let evil = "x\"\ngrantConfig: { method: auto }\n# ";
    let login = "oauth.hypershift.openshift.io/login-url-override";
    let input = with_objects(&[
        annotation(login, evil),
        oauth(json!({
            "tokenConfig": { "accessTokenInactivityTimeout": evil },
            "identityProviders": [{ "name": evil.replace(':', ""), "type": "HTPasswd", "htpasswd": {
                "fileData": { "name": "users" },
            } }],
        })),
    ]);
    let config = config(&input, OAUTH, OAUTH);
    let oauth = &config["oauthConfig"];
    assert_eq!(config["grantConfig"], Value::Null);
    assert_eq!(oauth["grantConfig"]["method"], "deny");
    assert_eq!(oauth["loginURL"], evil);
    assert_eq!(oauth["tokenConfig"]["accessTokenInactivityTimeout"], evil);
    assert_eq!(oauth["identityProviders"][0]["name"], evil.replace(':', ""));
}

/// Returns the input with the objects that identity providers refer to.
fn with_objects(changes: &[(&str, Value)]) -> Input {
    let mut input = changed(changes);
    let authority = rcgen::generate_simple_self_signed(["ca".to_owned()]).unwrap();
    input.objects.insert(json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "authority" },
        "data": { "ca.crt": authority.cert.pem() },
    }));
    for (name, key) in [
        ("users", "htpasswd"),
        ("client", "clientSecret"),
        ("bind", "bindPassword"),
        ("cert", "tls.crt"),
        ("key", "tls.key"),
    ] {
        input.objects.insert(json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": { "name": name }, "data": { key: "YQ==" },
        }));
    }
    input
}

fn reference(name: &str) -> Value {
    json!({ "name": name })
}

/// Path of a file of the first provider.
fn secret_file(field: &str, key: &str) -> String {
    format!("/etc/oauth/idp/idp_secret_0_{field}/{key}")
}

/// Section of the API, challenge and login, and the provider's configuration.
type Provider = (&'static str, &'static str, Value, (bool, bool), Value);

fn providers_with_passwords() -> [Provider; 4] {
    let ca = "/etc/oauth/idp/idp_cm_0_ca/ca.crt";
    let (cert, key) = (
        secret_file("tls-client-cert", "tls.crt"),
        secret_file("tls-client-key", "tls.key"),
    );
    let tls = |section: Value| {
        let mut section = section;
        section["ca"] = reference("authority");
        section["tlsClientCert"] = reference("cert");
        section["tlsClientKey"] = reference("key");
        section
    };
    [
        (
            "BasicAuth",
            "basicAuth",
            tls(json!({ "url": "https://basic.example.com" })),
            (true, true),
            json!({
                "kind": "BasicAuthPasswordIdentityProvider", "url": "https://basic.example.com",
                "ca": ca, "certFile": cert, "keyFile": key,
            }),
        ),
        (
            "HTPasswd",
            "htpasswd",
            json!({ "fileData": reference("users") }),
            (true, true),
            json!({ "kind": "HTPasswdPasswordIdentityProvider", "file": secret_file("file-data", "htpasswd") }),
        ),
        (
            "Keystone",
            "keystone",
            tls(json!({ "url": "https://keystone.example.com", "domainName": "default" })),
            (true, true),
            json!({
                "kind": "KeystonePasswordIdentityProvider", "url": "https://keystone.example.com",
                "domainName": "default", "useKeystoneIdentity": true, "ca": ca, "certFile": cert, "keyFile": key,
            }),
        ),
        (
            "LDAP",
            "ldap",
            json!({
                "url": "ldaps://ldap.example.com/o=x?uid", "bindDN": "cn=reader", "insecure": false,
                "bindPassword": reference("bind"), "ca": reference("authority"),
                "attributes": { "id": ["dn"], "preferredUsername": ["uid"], "name": ["cn"], "email": ["mail"] },
            }),
            (true, true),
            json!({
                "kind": "LDAPPasswordIdentityProvider", "url": "ldaps://ldap.example.com/o=x?uid",
                "bindDN": "cn=reader", "insecure": false,
                "bindPassword": { "file": secret_file("bind-password", "bindPassword") }, "ca": ca,
                "attributes": { "id": ["dn"], "preferredUsername": ["uid"], "name": ["cn"], "email": ["mail"] },
            }),
        ),
    ]
}

fn providers_of_browsers() -> [Provider; 5] {
    let ca = "/etc/oauth/idp/idp_cm_0_ca/ca.crt";
    let client = json!({ "file": secret_file("client-secret", "clientSecret") });
    let headers = json!({
        "loginURL": "https://login.example.com?${query}", "headers": ["X-User"],
        "clientCommonNames": ["proxy"], "preferredUsernameHeaders": ["X-Name"], "nameHeaders": ["X-Full"],
        "emailHeaders": ["X-Mail"],
    });
    let (mut section, mut proxied) = (headers.clone(), headers);
    section["ca"] = reference("authority");
    proxied["kind"] = json!("RequestHeaderIdentityProvider");
    proxied["clientCA"] = json!(ca);
    proxied["challengeURL"] = json!("");
    [
        (
            "GitHub",
            "github",
            json!({
                "clientID": "id", "clientSecret": reference("client"), "organizations": ["org"],
                "hostname": "git.example.com", "ca": reference("authority"),
            }),
            (false, true),
            json!({
                "kind": "GitHubIdentityProvider", "clientID": "id", "clientSecret": client,
                "organizations": ["org"], "teams": [], "hostname": "git.example.com", "ca": ca,
            }),
        ),
        (
            "GitLab",
            "gitlab",
            json!({ "url": "https://gitlab.example.com", "clientID": "id", "clientSecret": reference("client") }),
            (true, true),
            json!({
                "kind": "GitLabIdentityProvider", "url": "https://gitlab.example.com", "clientID": "id",
                "clientSecret": client, "legacy": false,
            }),
        ),
        (
            "Google",
            "google",
            json!({ "clientID": "id", "clientSecret": reference("client"), "hostedDomain": "example.com" }),
            (false, true),
            json!({
                "kind": "GoogleIdentityProvider", "clientID": "id", "clientSecret": client,
                "hostedDomain": "example.com",
            }),
        ),
        (
            "OpenID",
            "openID",
            json!({
                "clientID": "id", "clientSecret": reference("client"), "issuer": "https://sso.example.com",
                "ca": reference("authority"), "extraScopes": ["email"],
                "extraAuthorizeParameters": { "prompt": "login" },
                "claims": { "preferredUsername": ["login"], "groups": ["roles"] },
            }),
            (true, true),
            json!({
                "kind": "OpenIDIdentityProvider", "clientID": "id", "clientSecret": client, "ca": ca,
                "extraScopes": ["email"], "extraAuthorizeParameters": { "prompt": "login" },
                "urls": {
                    "authorize": "https://sso.example.com/authorize", "token": "https://sso.example.com/token",
                    "userInfo": "",
                },
                "claims": {
                    "id": ["sub"], "preferredUsername": ["login"], "name": [], "email": [], "groups": ["roles"],
                },
            }),
        ),
        (
            "RequestHeader",
            "requestHeader",
            section,
            (false, true),
            proxied,
        ),
    ]
}

fn provider(type_: &str, field: &str, section: &Value) -> Value {
    json!({ "name": "sso", "type": type_, field: section })
}

#[test]
fn each_type_of_identity_provider_is_converted() {
    for (type_, field, section, (challenge, login), mut expected) in providers_with_passwords()
        .into_iter()
        .chain(providers_of_browsers())
    {
        expected["apiVersion"] = json!("osin.config.openshift.io/v1");
        let providers = json!({ "identityProviders": [provider(type_, field, &section)] });
        let input = with_objects(&[oauth(providers)]);
        let found = config(&input, OAUTH, OAUTH)["oauthConfig"]["identityProviders"].clone();
        let expected = json!([{
            "name": "sso", "challenge": challenge, "login": login, "mappingMethod": "claim",
            "provider": expected,
        }]);
        assert_eq!(found, expected, "{type_}");
        let pods = deployment(&input, OAUTH);
        for path in paths(&found) {
            assert!(is_mounted(&pods, &path), "{type_}: {path}");
        }
    }
}

/// All paths of files of identity providers.
fn paths(value: &Value) -> Vec<String> {
    match value {
        Value::String(text) if text.starts_with("/etc/oauth/idp/") => vec![text.clone()],
        Value::Array(items) => items.iter().flat_map(paths).collect(),
        Value::Object(fields) => fields.values().flat_map(paths).collect(),
        _ => Vec::new(),
    }
}

/// Whether the file's directory is the mount path of a volume of the pod.
fn is_mounted(deployment: &Value, path: &str) -> bool {
    let (directory, _) = path.rsplit_once('/').unwrap();
    let mounts = deployment
        .pointer(&format!("{SERVER}/volumeMounts"))
        .unwrap();
    let mut mounts = mounts.as_object().unwrap().iter();
    let mount = mounts.find(|(_, mount)| mount["mountPath"] == directory);
    mount.is_some_and(|(volume, _)| {
        deployment
            .pointer(&format!("{POD}/volumes/{volume}"))
            .is_some()
    })
}

#[test]
fn optional_files_of_identity_providers_are_omitted() {
    for (type_, field, section, (challenge, login), expected) in [
        (
            "BasicAuth",
            "basicAuth",
            json!({ "url": "u", "ca": reference("") }),
            (true, true),
            json!({ "url": "u" }),
        ),
        (
            "LDAP",
            "ldap",
            json!({ "url": "u", "insecure": true }),
            (true, true),
            json!({ "url": "u", "insecure": true }),
        ),
        (
            "RequestHeader",
            "requestHeader",
            json!({ "challengeURL": "u", "ca": reference("authority"), "headers": ["X"] }),
            (true, false),
            json!({ "challengeURL": "u", "loginURL": "" }),
        ),
    ] {
        let providers = json!({ "identityProviders": [provider(type_, field, &section)] });
        let input = with_objects(&[oauth(providers)]);
        let found = &config(&input, OAUTH, OAUTH)["oauthConfig"]["identityProviders"][0];
        assert_eq!(found["challenge"], challenge, "{type_}");
        assert_eq!(found["login"], login, "{type_}");
        for (key, value) in expected.as_object().unwrap() {
            assert_eq!(found["provider"][key], *value, "{type_}: {key}");
        }
        for absent in ["ca", "certFile", "keyFile", "bindPassword"] {
            assert_eq!(found["provider"][absent], Value::Null, "{type_}: {absent}");
        }
    }
}

#[test]
fn annotation_overrides_endpoints_of_an_identity_provider() {
    let section = json!({ "clientID": "id", "clientSecret": reference("client"), "issuer": "https://sso.example.com" });
    let urls = json!({ "authorize": "https://a.example.com", "token": "https://t.example.com", "userInfo": "" });
    let discovered = json!("https://sso.example.com/authorize");
    for (text, authorize, challenge) in [
        (
            json!({ "urls": urls, "claims": { "id": ["oid"] } }).to_string(),
            &urls["authorize"],
            true,
        ),
        (
            json!({ "urls": urls, "challenge": false }).to_string(),
            &urls["authorize"],
            false,
        ),
        ("{".to_owned(), &discovered, true),
    ] {
        let input = with_objects(&[
            annotation("idpoverrides.hypershift.openshift.io/sso", &text),
            oauth(json!({ "identityProviders": [provider("OpenID", "openID", &section)] })),
        ]);
        let found = &config(&input, OAUTH, OAUTH)["oauthConfig"]["identityProviders"][0];
        assert_eq!(found["provider"]["urls"]["authorize"], *authorize, "{text}");
        assert_eq!(found["challenge"], challenge, "{text}");
        let id = if text.contains("oid") {
            json!(["oid"])
        } else {
            json!([])
        };
        if *authorize != discovered {
            assert_eq!(found["provider"]["claims"]["id"], id, "{text}");
        }
    }
}

#[test]
fn files_of_identity_providers_are_numbered_and_sorted() {
    let file = |name: &str| json!({ "name": name, "type": "HTPasswd", "htpasswd": { "fileData": reference("users") } });
    let keystone = json!({ "name": "k", "type": "Keystone", "mappingMethod": "lookup", "keystone": {
        "url": "https://k.example.com", "domainName": "d", "tlsClientCert": reference("cert"),
        "tlsClientKey": reference("key"), "ca": reference("authority"),
    } });
    let input = with_objects(&[oauth(json!({ "identityProviders": [keystone, file("f")] }))]);
    let pods = object(&input, OAUTH, "Deployment", OAUTH);
    let names = |list: &Value| {
        let names = list.as_array().unwrap().iter();
        let names = names.map(|item| item["name"].as_str().unwrap().to_owned());
        names
            .filter(|name| name.starts_with("idp-"))
            .collect::<Vec<_>>()
    };
    let pod = &pods["spec"]["template"]["spec"];
    let volumes = [
        "idp-cm-0-ca",
        "idp-secret-0-tls-client-cert",
        "idp-secret-0-tls-client-key",
        "idp-secret-1-file-data",
    ];
    assert_eq!(names(&pod["volumes"]), volumes);
    assert_eq!(names(&pod["containers"][0]["volumeMounts"]), volumes);
    let pods = deployment(&input, OAUTH);
    let mode = pods.pointer(&format!(
        "{POD}/volumes/idp-secret-1-file-data/secret/defaultMode"
    ));
    assert_eq!(mode, Some(&json!(0o640)));
    let found = &config(&input, OAUTH, OAUTH)["oauthConfig"]["identityProviders"];
    assert_eq!(found[0]["mappingMethod"], "lookup");
    assert_eq!(
        found[1]["provider"]["file"],
        "/etc/oauth/idp/idp_secret_1_file-data/htpasswd"
    );
}

#[test]
fn components_run_only_where_they_are_needed() {
    let authentication = |type_: &str| {
        (
            "/spec/configuration",
            json!({ "authentication": { "type": type_ } }),
        )
    };
    let encryption = || {
        (
            "/spec/secretEncryption",
            json!({ "type": "aescbc", "aescbc": { "activeKey": { "name": "k" } } }),
        )
    };
    let disable = || annotation("hypershift.openshift.io/disable-pki-reconciliation", "true");
    let rows: [Runs<'_>; 14] = [
        (OAUTH, &[], true),
        (OAUTH, &[authentication("")], true),
        (OAUTH, &[authentication("None")], true),
        (OAUTH, &[authentication("IntegratedOAuth")], true),
        (OAUTH, &[authentication("OIDC")], false),
        (OAUTH, &[platform("IBMCloud")], true),
        (PKI, &[], true),
        (PKI, &[disable()], false),
        (PKI, &[platform("None")], true),
        (MIGRATOR, &[], false),
        (MIGRATOR, &[encryption()], true),
        (MIGRATOR, &[encryption(), platform("Azure")], true),
        (MIGRATOR, &[encryption(), platform("IBMCloud")], false),
        (MIGRATOR, &[encryption(), platform("PowerVS")], false),
    ];
    for (component, changes, expected) in rows {
        let mut input = changed(changes);
        input.predicates = Predicates::Evaluated;
        let runs = !objects(&input, component).is_empty();
        assert_eq!(runs, expected, "{component}: {changes:?}");
    }
}

/// Its program is in this operator's image, unless the image is overridden.
#[test]
fn pki_operator_runs_from_the_image_of_this_operator() {
    let path = "/spec/template/spec/containers/control-plane-pki-operator/image";
    let other = (
        "controlplane-pki-operator".to_owned(),
        "images.example.com/pki".to_owned(),
    );
    for (overrides, expected) in [
        (BTreeMap::new(), "images.example.com/cpo"),
        (BTreeMap::from([other]), "images.example.com/pki"),
    ] {
        let mut input = changed(&[]);
        input.release = input
            .release
            .with_overrides("images.example.com/cpo", &overrides);
        let found = deployment(&input, PKI);
        assert_eq!(found.pointer(path), Some(&json!(expected)));
    }
}

#[test]
fn pki_operator_gets_the_proxy_of_this_operator() {
    let env = "/spec/template/spec/containers/control-plane-pki-operator/env";
    let url = "http://proxy.example.com:3128";
    let mut input = changed(&[]);
    let absent = deployment(&input, PKI);
    assert_eq!(absent.pointer(&format!("{env}/HTTPS_PROXY")), None);
    input.settings.proxy.https = Some(url.to_owned());
    input.settings.proxy.exempt = vec![".internal".to_owned()];
    let proxied = deployment(&input, PKI);
    for (name, expected) in [
        ("HTTPS_PROXY", url),
        ("NO_PROXY", ".internal,kube-apiserver"),
    ] {
        let found = proxied.pointer(&format!("{env}/{name}/value"));
        assert_eq!(found, Some(&json!(expected)), "{name}");
    }
}

/// Selectors are immutable.
#[test]
fn pki_operator_of_an_old_release_is_replaced() {
    for (label, expected) in [("name", 1), ("app", 0)] {
        let mut input = changed(&[]);
        input.objects.insert(json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": PKI },
            "spec": { "selector": { "matchLabels": { label: PKI } } },
        }));
        let rendered = rendered(&input, PKI);
        assert_eq!(rendered.deletions.len(), expected, "{label}");
        assert!(rendered.workload.is_some(), "{label}");
    }
}

#[test]
fn pki_operator_follows_the_input() {
    let container = "/spec/template/spec/containers/control-plane-pki-operator";
    let at = |path: &str| format!("{container}/{path}");
    let image = || {
        annotation(
            "hypershift.openshift.io/control-plane-priority-class",
            "mine",
        )
    };
    let rows: &[Row<'_>] = &[
        (
            &[],
            &at("env/HOSTED_CONTROL_PLANE_NAME/value"),
            json!("hcp"),
        ),
        (
            &[("/metadata/name", json!("other"))],
            &at("env/HOSTED_CONTROL_PLANE_NAME/value"),
            json!("other"),
        ),
        (&[], &at("env/CERT_ROTATION_SCALE/value"), json!("0s")),
        (
            &[],
            &format!("{POD}/automountServiceAccountToken"),
            json!(true),
        ),
        (&[], "/spec/replicas", json!(1)),
        (
            &[],
            &format!("{POD}/priorityClassName"),
            json!("hypershift-control-plane"),
        ),
        (
            &[image()],
            &format!("{POD}/priorityClassName"),
            json!("mine"),
        ),
    ];
    compare(rows, |input| deployment(input, PKI));
    let rows: &[Row<'_>] = &[
        (&[], "/servingInfo/bindAddress", json!("0.0.0.0:8443")),
        (&[], "/servingInfo/bindNetwork", json!("tcp4")),
        (&[], "/servingInfo/minTLSVersion", json!("VersionTLS12")),
        (
            &[],
            "/servingInfo/cipherSuites/5",
            json!("TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256"),
        ),
        (
            &[tls("Modern")],
            "/servingInfo/minTLSVersion",
            json!("VersionTLS13"),
        ),
        (&[tls("Modern")], "/servingInfo/cipherSuites", Value::Null),
    ];
    compare(rows, |input| {
        config(input, PKI, "control-plane-pki-operator-config")
    });
}

#[test]
fn the_pki_operator_has_the_length_of_a_day() {
    let mut input = changed(&[]);
    input.settings.cert_rotation_scale = Some("1h".to_owned());
    let found = deployment(&input, PKI);
    let pointer = format!("{POD}/containers/{PKI}/env/CERT_ROTATION_SCALE/value");
    assert_eq!(found.pointer(&pointer), Some(&json!("1h")));
}

#[test]
fn storage_version_migrator_follows_the_input() {
    let container = "/spec/template/spec/containers/migrator";
    let rows: &[Row<'_>] = &[
        (&[], "/spec/replicas", json!(1)),
        (
            &[],
            &format!("{container}/args/2"),
            json!("--kubeconfig=/etc/kubernetes/kubeconfig"),
        ),
        (
            &[],
            &format!("{POD}/volumes/kubeconfig/secret/secretName"),
            json!("service-network-admin-kubeconfig"),
        ),
        (
            &[],
            &format!("{POD}/automountServiceAccountToken"),
            json!(false),
        ),
        (
            &[("/spec/nodeSelector", json!({ "role": "infra" }))],
            &format!("{POD}/nodeSelector/role"),
            json!("infra"),
        ),
    ];
    compare(rows, |input| deployment(input, MIGRATOR));
}
