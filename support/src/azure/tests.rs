//! Credentials and tokens, with a server on loopback.

use aws_lc_rs::encoding::{AsDer as _, Pkcs8V1Der};
use aws_lc_rs::rsa::{KeyPair, KeySize};
use aws_lc_rs::signature::{KeyPair as _, RSA_PSS_2048_8192_SHA256, UnparsedPublicKey};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};

use super::*;
use crate::testing::{HttpAnswer, HttpServer};

const SCOPE: &str = "https://storage.azure.com/.default";
const PUBLIC: &str = "https://login.microsoftonline.com";
const TOKEN: HttpAnswer = (200, &[], "{\"access_token\":\"a\",\"expires_in\":3599}");

fn application(authority: &str, proof: Proof) -> Source {
    Source {
        identity: Identity::Application {
            authority: authority.to_owned(),
            tenant: "t".to_owned(),
            client: "c".to_owned(),
            proof,
        },
        scope: SCOPE.to_owned(),
    }
}

fn machine(metadata: &str, client: Option<&str>) -> Source {
    Source {
        identity: Identity::Machine {
            metadata: metadata.to_owned(),
            client: client.map(str::to_owned),
        },
        scope: SCOPE.to_owned(),
    }
}

fn secret() -> Proof {
    Proof::Secret("x".to_owned())
}

/// Name, content of the file, its type, variables, and what is found or a part of the error.
type Row<'a> = (
    &'a str,
    Option<&'a str>,
    AuthType,
    &'a [(&'a str, &'a str)],
    Result<Source, &'a str>,
);

#[test]
fn credentials_are_found_in_a_file_or_in_the_environment() {
    let complete =
        "{\"subscriptionId\":\"s\",\"tenantId\":\"t\",\"clientId\":\"c\",\"clientSecret\":\"x\"}";
    let partial = "{\"tenantId\":\"t\",\"clientId\":\"c\"}";
    let pkcs12 = "{\"tenant_id\":\"t\",\"client_id\":\"c\",\"client_secret\":\"MIIB\"}";
    let (secrets, managed) = (AuthType::ClientSecret, AuthType::ManagedIdentity);
    let identity = [("AZURE_TENANT_ID", "t"), ("AZURE_CLIENT_ID", "c")];
    let with_token = [
        identity[0],
        identity[1],
        ("AZURE_FEDERATED_TOKEN_FILE", "/token"),
    ];
    let with_both = [
        identity[0],
        identity[1],
        with_token[2],
        ("AZURE_CLIENT_SECRET", "x"),
    ];
    let other_cloud = [("AZURE_AUTHORITY_HOST", "https://login.microsoftonline.us/")];
    let by_token = || Proof::TokenFile("/token".into());
    let rows: [Row<'_>; 9] = [
        (
            "a file",
            Some(complete),
            secrets,
            &[],
            Ok(application(PUBLIC, secret())),
        ),
        (
            "another cloud",
            Some(complete),
            secrets,
            &other_cloud,
            Ok(application("https://login.microsoftonline.us", secret())),
        ),
        (
            "an incomplete file",
            Some(partial),
            secrets,
            &[],
            Err("expected JSON with tenantId"),
        ),
        (
            "another file",
            Some(complete),
            managed,
            &[],
            Err("expected JSON with tenant_id"),
        ),
        (
            "PKCS #12",
            Some(pkcs12),
            managed,
            &[],
            Err("PKCS #12 is not supported"),
        ),
        (
            "an empty file",
            Some("\n"),
            secrets,
            &with_token,
            Ok(application(PUBLIC, by_token())),
        ),
        (
            "a secret first",
            None,
            secrets,
            &with_both,
            Ok(application(PUBLIC, secret())),
        ),
        ("a machine", None, managed, &[], Ok(machine(METADATA, None))),
        (
            "one of several identities",
            None,
            managed,
            &identity,
            Ok(machine(METADATA, Some("c"))),
        ),
    ];
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("credentials");
    for (name, content, auth_type, variables, expected) in rows {
        let variable = |name: &str| {
            let found = variables.iter().find(|(key, _)| *key == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        let file = content.map(|content| {
            fs::write(&path, content).unwrap();
            path.as_path()
        });
        match (source(file, auth_type, SCOPE, &variable), expected) {
            (Ok(found), Ok(expected)) => assert!(found == expected, "{name}: {found:?}"),
            (Err(error), Err(text)) => {
                let error = error.to_string();
                assert!(error.contains(text), "{name}: {error}");
            }
            (found, _) => panic!("{name}: {found:?}"),
        }
    }
    let missing = source(Some(Path::new("/no/such/file")), secrets, SCOPE, &|_| None);
    let error = missing.unwrap_err().to_string();
    assert!(error.contains("failed to read /no/such/file"), "{error}");
}

#[tokio::test]
async fn tokens_are_requested_with_each_proof() {
    drop(rustls::crypto::aws_lc_rs::default_provider().install_default());
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("token");
    fs::write(&file, "federated\n").unwrap();
    let server = HttpServer::start(&[TOKEN; 3]).await;
    let http = Http::new();
    let client_secret = Source::of_secret(&server.url, "t", "c", "x y", SCOPE);
    let federated = application(&server.url, Proof::TokenFile(file));
    let machine = machine(&format!("{}/metadata", server.url), Some("c"));
    for source in [client_secret, federated, machine] {
        let token = source.load(&http).await.unwrap();
        assert_eq!(token.value, "a", "{source:?}");
        assert_eq!(token.valid_for.as_secs(), 3599, "{source:?}");
        assert!(!format!("{source:?}").contains("x y"), "{source:?}");
    }
    let body = |index| String::from_utf8(server.body(index).to_vec()).unwrap();
    let common = "grant_type=client_credentials&scope=https%3A%2F%2Fstorage.azure.com%2F.default&client_id=c";
    assert_eq!(body(0), format!("{common}&client_secret=x+y"));
    let assertion =
        "client_assertion_type=urn%3Aietf%3Aparams%3Aoauth%3Aclient-assertion-type%3Ajwt-bearer";
    assert_eq!(
        body(1),
        format!("{common}&{assertion}&client_assertion=federated")
    );
    let resource = "resource=https%3A%2F%2Fstorage.azure.com%2F&client_id=c";
    let expected = [
        "POST /t/oauth2/v2.0/token".to_owned(),
        "POST /t/oauth2/v2.0/token".to_owned(),
        format!("GET /metadata?api-version=2018-02-01&{resource}"),
    ];
    assert_eq!(server.lines(), expected);
    assert_eq!(server.header(2, "metadata").as_deref(), Some("true"));
}

#[tokio::test]
async fn refused_requests_have_the_reason_and_no_secret() {
    drop(rustls::crypto::aws_lc_rs::default_provider().install_default());
    let refused = "{\"error\":\"invalid_client\",\"error_description\":\"AADSTS7000215: Invalid secret.\\r\\nTrace\"}";
    let server = HttpServer::start(&[(401, &[], refused), (200, &[], "{}")]).await;
    let source = Source::of_secret(&server.url, "t", "c", "s3cret", SCOPE);
    let http = Http::new();
    let error = source.load(&http).await.unwrap_err();
    assert!(error.is_denied());
    let error = error.to_string();
    let expected = "401 invalid_client: AADSTS7000215: Invalid secret.";
    assert!(error.ends_with(expected), "{error}");
    let empty = source.load(&http).await.unwrap_err().to_string();
    assert!(empty.contains("no access_token"), "{empty}");
    assert!(!error.contains("s3cret") && !empty.contains("s3cret"));
}

#[test]
fn tokens_of_unknown_validity_are_used_once() {
    for (expires_in, expected) in [
        (serde_json::json!(60), 60),
        (serde_json::json!("60"), 60),
        (serde_json::json!("soon"), 0),
        (Value::Null, 0),
    ] {
        assert_eq!(valid_for(&expires_in).as_secs(), expected, "{expires_in}");
    }
}

#[test]
fn clouds_differ_in_their_endpoints() {
    for (name, management) in [
        ("AzurePublicCloud", Some("https://management.azure.com")),
        (
            "AzureUSGovernmentCloud",
            Some("https://management.usgovcloudapi.net"),
        ),
        (
            "AzureChinaCloud",
            Some("https://management.chinacloudapi.cn"),
        ),
        ("AzureBleuCloud", Some("https://management.sovcloud-api.fr")),
        ("AzureGermanCloud", None),
    ] {
        let found = Cloud::of_name(name).map(|cloud| cloud.endpoints().management);
        assert_eq!(found, management, "{name}");
    }
    let public = Cloud::Public.endpoints();
    assert_eq!(public.authority, PUBLIC);
    assert_eq!(
        public.management_scope(),
        "https://management.azure.com/.default"
    );
    let source = Source::of_secret(PUBLIC, "t", "c", "x", SCOPE).for_scope(&public.graph_scope());
    assert_eq!(source.scope, "https://graph.microsoft.com/.default");
}

fn pem(label: &str, der: &[u8]) -> String {
    let body = STANDARD.encode(der);
    format!("-----BEGIN {label}-----\n{body}\n-----END {label}-----\n")
}

/// The signature is verified with the public key. Nothing reads the certificate, so any bytes serve as one.
#[test]
fn certificates_sign_tokens() {
    let key = KeyPair::generate(KeySize::Rsa2048).unwrap();
    let certificate = pem("CERTIFICATE", b"certificate");
    let der: Pkcs8V1Der<'_> = key.as_der().unwrap();
    let private = pem("PRIVATE KEY", der.as_ref());
    let public: &[u8] = key.public_key().as_ref();
    let both = format!("{certificate}{private}");
    for text in [both.clone(), STANDARD.encode(&both)] {
        let certificate = Certificate::read(&text).unwrap();
        let token = assertion::token(&certificate, "c", "https://a/token", 1000, "id").unwrap();
        let (signed, signature) = token.rsplit_once('.').unwrap();
        let (head, claims) = signed.split_once('.').unwrap();
        let json = |text: &str| -> Value {
            serde_json::from_slice(&URL_SAFE_NO_PAD.decode(text).unwrap()).unwrap()
        };
        assert_eq!(json(head)["alg"], "PS256");
        let claims = json(claims);
        assert_eq!(
            (&claims["iss"], &claims["aud"]),
            (&"c".into(), &"https://a/token".into())
        );
        assert_eq!(
            (&claims["nbf"], &claims["exp"]),
            (&1000.into(), &1600.into())
        );
        let verifier = UnparsedPublicKey::new(&RSA_PSS_2048_8192_SHA256, public);
        let signature = URL_SAFE_NO_PAD.decode(signature).unwrap();
        verifier.verify(signed.as_bytes(), &signature).unwrap();
        assert!(verifier.verify(b"other", &signature).is_err());
    }
    for text in ["", "MIIB", certificate.as_str()] {
        assert!(Certificate::read(text).is_err(), "{text}");
    }
}
