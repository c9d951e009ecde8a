//! Providers of each type that are refused: for each of their references, for their name, and for their mapping method.

use super::*;

/// The provider that is used beside the refused one.
const KEPT: &str = "kept";
/// What is refused: a missing object and a missing key of each of 17 references, 7 bundles without a certificate, and the
/// name and the mapping method of 9 types.
const ROWS: usize = 17 + 17 + 7 + 9 + 9;

/// A field that refers to an object, and what the object must have.
#[derive(Clone, Copy)]
struct Reference {
    field: &'static str,
    kind: &'static str,
    key: &'static str,
}

const REFERENCES: [Reference; 6] = [
    reference("bindPassword", "Secret", "bindPassword"),
    reference("ca", "ConfigMap", "ca.crt"),
    reference("clientSecret", "Secret", "clientSecret"),
    reference("fileData", "Secret", "htpasswd"),
    reference("tlsClientCert", "Secret", "tls.crt"),
    reference("tlsClientKey", "Secret", "tls.key"),
];

const fn reference(field: &'static str, kind: &'static str, key: &'static str) -> Reference {
    Reference { field, kind, key }
}

/// What is wrong with an object.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Fault {
    Absent,
    NoKey,
    NotPem,
}

/// A provider that is refused.
struct Row {
    what: String,
    providers: [Value; 2],
    objects: Vec<Value>,
    /// The index of the refused one.
    index: usize,
    reason: String,
}

// === impl Reference ===

impl Reference {
    /// The name of its object.
    fn name(self) -> String {
        format!("the-{}", self.field.to_lowercase())
    }

    fn object(self, authority: &str, fault: Option<Fault>) -> Option<Value> {
        let key = match fault {
            Some(Fault::Absent) => return None,
            Some(Fault::NoKey) => "other",
            Some(Fault::NotPem) | None => self.key,
        };
        let text = match fault {
            Some(Fault::NotPem) => "certificate",
            _ => authority,
        };
        Some(match self.kind {
            "Secret" => secret(&self.name(), key),
            _ => config_map(&self.name(), key, text),
        })
    }

    fn reason(self, fault: Fault) -> String {
        let Self { kind, key, .. } = self;
        let name = self.name();
        match fault {
            Fault::Absent => format!("{kind} {name} does not exist: create it"),
            Fault::NoKey => format!("{kind} {name} has no key {key}: add it"),
            Fault::NotPem => format!("key {key} of {kind} {name} has no certificate in PEM format"),
        }
    }
}

/// A provider with these references.
fn provider(type_: &str, field: &str, references: &[&str], section: &Value) -> Value {
    let mut section = section.clone();
    for field in references {
        let reference = REFERENCES.iter().find(|it| it.field == *field).unwrap();
        section[field] = json!({ "name": reference.name() });
    }
    json!({ "name": "sso", "type": type_, field: section })
}

/// A valid provider of each type, with all references that the type can have.
fn providers() -> [Value; 9] {
    let tls = ["ca", "tlsClientCert", "tlsClientKey"];
    let client = ["ca", "clientSecret"];
    let basic = json!({ "url": "https://a" });
    let github = json!({ "clientID": "id", "hostname": "a" });
    let gitlab = json!({ "clientID": "id", "url": "https://a" });
    let google = json!({ "clientID": "id" });
    let keystone = json!({ "url": "https://a", "domainName": "a" });
    let ldap = json!({ "url": "ldaps://a" });
    let openid = json!({ "clientID": "id", "issuer": "https://a" });
    let proxy = json!({ "loginURL": "https://a", "headers": ["X-User"] });
    [
        provider("BasicAuth", "basicAuth", &tls, &basic),
        provider("GitHub", "github", &client, &github),
        provider("GitLab", "gitlab", &client, &gitlab),
        provider("Google", "google", &["clientSecret"], &google),
        provider("HTPasswd", "htpasswd", &["fileData"], &json!({})),
        provider("Keystone", "keystone", &tls, &keystone),
        provider("LDAP", "ldap", &["bindPassword", "ca"], &ldap),
        provider("OpenID", "openID", &client, &openid),
        provider("RequestHeader", "requestHeader", &["ca"], &proxy),
    ]
}

/// The objects of all references, one of them with a fault.
fn referenced(authority: &str, fault: Option<(&'static str, Fault)>) -> Vec<Value> {
    let fault = |it: &Reference| fault.filter(|(field, _)| *field == it.field);
    let objects = REFERENCES.iter();
    let objects = objects.filter_map(|it| it.object(authority, fault(it).map(|(_, fault)| fault)));
    objects.chain([secret("users", "htpasswd")]).collect()
}

/// The references of a provider.
fn references_of(provider: &Value) -> impl Iterator<Item = Reference> {
    let mut fields = provider.as_object().unwrap().values();
    let section = fields.find_map(Value::as_object).unwrap().clone();
    REFERENCES
        .into_iter()
        .filter(move |it| section.contains_key(it.field))
}

/// The faults of the objects of a provider.
fn with_faults(authority: &str, provider: &Value) -> Vec<Row> {
    let mut rows = Vec::new();
    for it in references_of(provider) {
        let not_pem = (it.kind == "ConfigMap").then_some(Fault::NotPem);
        for fault in [Fault::Absent, Fault::NoKey].into_iter().chain(not_pem) {
            rows.push(Row {
                what: format!("{} {}: {fault:?}", provider["type"], it.field),
                providers: [provider.clone(), htpasswd(KEPT, "users")],
                objects: referenced(authority, Some((it.field, fault))),
                index: 0,
                reason: it.reason(fault),
            });
        }
    }
    rows
}

/// The name of another provider, and a mapping method that does not exist.
fn with_bad_identity(authority: &str, provider: &Value) -> [Row; 2] {
    let (mut duplicate, mut mapped) = (provider.clone(), provider.clone());
    duplicate["name"] = json!(KEPT);
    mapped["mappingMethod"] = json!("replace");
    let row = |what: &str, providers, index, reason: &str| Row {
        what: format!("{}: {what}", provider["type"]),
        providers,
        objects: referenced(authority, None),
        index,
        reason: reason.to_owned(),
    };
    [
        row(
            "name",
            [htpasswd(KEPT, "users"), duplicate],
            1,
            "an earlier identity provider has the same name: rename one of them",
        ),
        row(
            "mapping method",
            [mapped, htpasswd(KEPT, "users")],
            0,
            "invalid mappingMethod \"replace\": set add, claim, generate or lookup",
        ),
    ]
}

/// Calls a function with the context of providers whose endpoints are known.
fn discovered<T>(providers: &Value, objects: &[Value], call: impl FnOnce(&Context<'_>) -> T) -> T {
    let endpoints = OpenIdEndpoints {
        authorize: "https://a/authorize".to_owned(),
        ..OpenIdEndpoints::default()
    };
    let infra = Infra {
        openid: ["sso", KEPT]
            .map(|name| (name.to_owned(), endpoints.clone()))
            .into(),
        ..Infra::default()
    };
    with_infra(providers, &json!({}), objects, &infra, call)
}

/// It is reported with the reason, it has no configuration and no files, and the other one has both.
fn is_refused(row: &Row) {
    let Row { what, index, .. } = row;
    discovered(&json!(row.providers), &row.objects, |context| {
        let name = row.providers[*index]["name"].as_str().unwrap();
        let expected = format!("failed to apply IDP {name} config: {}", row.reason);
        let message = validate(context).unwrap_err();
        assert!(message.contains(&expected), "{what}: {message}");
        assert_eq!(
            message.matches("failed to apply").count(),
            1,
            "{what}: {message}"
        );
        let converted = convert(context);
        let kept: Vec<_> = converted.providers.iter().map(|it| &it["name"]).collect();
        assert_eq!(kept, [KEPT], "{what}");
        let kind = &converted.providers[0]["provider"]["kind"];
        assert_eq!(kind, "HTPasswdPasswordIdentityProvider", "{what}");
        let file = format!("idp-secret-{}-file-data", 1 - index);
        let volumes: Vec<_> = converted.volumes.iter().map(|it| &it.name).collect();
        assert_eq!(volumes, [&file], "{what}");
        let mounts: Vec<_> = converted.mounts.iter().map(|it| &it.name).collect();
        assert_eq!(mounts, [&file], "{what}");
    });
}

#[test]
fn providers_of_each_type_are_refused_alone() {
    let authority = rcgen::generate_simple_self_signed(["ca".to_owned()]).unwrap();
    let authority = authority.cert.pem();
    let mut rows = Vec::new();
    for provider in providers() {
        // Nothing else is wrong.
        let both = json!([provider, htpasswd(KEPT, "users")]);
        let objects = referenced(&authority, None);
        let outcome = discovered(&both, &objects, validate);
        assert_eq!(outcome, Ok(()), "{}", provider["type"]);
        rows.extend(with_faults(&authority, &provider));
        rows.extend(with_bad_identity(&authority, &provider));
    }
    assert_eq!(rows.len(), ROWS);
    rows.iter().for_each(is_refused);
}
