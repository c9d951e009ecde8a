//! Uploads and tokens, with a server on loopback.

use support::testing::{HttpAnswer, HttpServer};

use super::token::{AuthType, Proof, Source};
use super::*;

const TOKEN: HttpAnswer = (200, &[], "{\"access_token\":\"a\"}");
const CREATED: HttpAnswer = (201, &[], "");

fn container() -> Container {
    Container {
        account: "account".to_owned(),
        name: "backups".to_owned(),
        encryption_scope: None,
    }
}

async fn upload(server: &HttpServer, container: &Container, size: u64) -> Result<(), Error> {
    drop(rustls::crypto::aws_lc_rs::default_provider().install_default());
    let file = tempfile::NamedTempFile::new().unwrap();
    file.as_file().set_len(size).unwrap();
    let http = Http::new();
    let upload = Upload {
        http: &http,
        container,
        endpoint: &server.url,
        token: "secret",
        key: "a/1.db",
    };
    upload
        .send(&mut Parts::open(file.path(), BLOCK, MOST_BLOCKS)?)
        .await
}

#[tokio::test]
async fn blobs_are_sent_in_blocks_and_then_listed() {
    let server = HttpServer::start(&[CREATED, CREATED, CREATED]).await;
    let container = Container {
        encryption_scope: Some("scope".to_owned()),
        ..container()
    };
    upload(&server, &container, BLOCK + 1).await.unwrap();
    let blob = "/backups/a/1.db";
    assert_eq!(
        server.lines(),
        [
            format!("PUT {blob}?comp=block&blockid=MDAwMDAwMDA%3D"),
            format!("PUT {blob}?comp=block&blockid=MDAwMDAwMDE%3D"),
            format!("PUT {blob}?comp=blocklist"),
        ]
    );
    assert_eq!(
        (server.body(0).len() as u64, server.body(1).len()),
        (BLOCK, 1)
    );
    let list = String::from_utf8(server.body(2).to_vec()).unwrap();
    let expected =
        "<BlockList><Latest>MDAwMDAwMDA=</Latest><Latest>MDAwMDAwMDE=</Latest></BlockList>";
    assert!(list.ends_with(expected), "{list}");
    for index in 0..3 {
        let header = |name| server.header(index, name);
        assert_eq!(header("authorization").as_deref(), Some("Bearer secret"));
        assert_eq!(header("x-ms-encryption-scope").as_deref(), Some("scope"));
        let condition = (index == 2).then_some("*");
        assert_eq!(header("if-none-match").as_deref(), condition);
    }
}

#[tokio::test]
async fn a_blob_that_exists_is_not_replaced() {
    let exists =
        "<Error><Code>BlobAlreadyExists</Code><Message>It exists.\nRequestId:1</Message></Error>";
    let server = HttpServer::start(&[CREATED, (409, &[], exists)]).await;
    let error = upload(&server, &container(), 1)
        .await
        .unwrap_err()
        .to_string();
    let expected = "/backups/a/1.db: 409 BlobAlreadyExists: It exists.. Choose another prefix";
    assert!(error.ends_with(expected), "{error}");
    let denied = HttpServer::start(&[(403, &[], "")]).await;
    let error = upload(&denied, &container(), 1)
        .await
        .unwrap_err()
        .to_string();
    assert!(error.contains("Check the credentials"), "{error}");
    assert!(!error.contains("secret"), "{error}");
    assert_eq!(denied.lines().len(), 1);
}

fn application(authority: &str, proof: Proof) -> Source {
    Source::Application {
        authority: authority.to_owned(),
        tenant: "t".to_owned(),
        client: "c".to_owned(),
        proof,
    }
}

#[test]
fn credentials_are_found_in_a_file_or_in_the_environment() {
    let directory = tempfile::tempdir().unwrap();
    let file = |name: &str, content: &str| {
        let path = directory.path().join(name);
        std::fs::write(&path, content).unwrap();
        path
    };
    let complete = file(
        "complete",
        "{\"subscriptionId\":\"s\",\"tenantId\":\"t\",\"clientId\":\"c\",\"clientSecret\":\"x\"}",
    );
    let partial = file("partial", "{\"tenantId\":\"t\",\"clientId\":\"c\"}");
    let empty = file("empty", "\n");
    let pkcs12 = file(
        "pkcs12",
        "{\"tenant_id\":\"t\",\"client_id\":\"c\",\"client_secret\":\"MIIB\"}",
    );
    let public = "https://login.microsoftonline.com";
    let secret = || Proof::Secret("x".to_owned());
    let identity = [("AZURE_TENANT_ID", "t"), ("AZURE_CLIENT_ID", "c")];
    let with = |more: &[(&'static str, &'static str)]| [&identity, more].concat();
    let machine = |client: Option<&str>| Source::Machine {
        metadata: "http://169.254.169.254/metadata/identity/oauth2/token".to_owned(),
        client: client.map(str::to_owned),
    };
    let (secrets, managed) = (AuthType::ClientSecret, AuthType::ManagedIdentity);
    for (name, path, auth_type, variables, expected) in [
        (
            "a file",
            Some(&complete),
            secrets,
            vec![],
            Ok(application(public, secret())),
        ),
        (
            "another cloud",
            Some(&complete),
            secrets,
            vec![("AZURE_AUTHORITY_HOST", "https://login.microsoftonline.us/")],
            Ok(application("https://login.microsoftonline.us", secret())),
        ),
        (
            "an incomplete file",
            Some(&partial),
            secrets,
            vec![],
            Err("expected JSON with tenantId"),
        ),
        (
            "another file",
            Some(&complete),
            managed,
            vec![],
            Err("expected JSON with tenant_id"),
        ),
        (
            "PKCS #12",
            Some(&pkcs12),
            managed,
            vec![],
            Err("PKCS #12 is not supported"),
        ),
        (
            "a token file",
            Some(&empty),
            secrets,
            with(&[("AZURE_FEDERATED_TOKEN_FILE", "/token")]),
            Ok(application(public, Proof::TokenFile("/token".into()))),
        ),
        (
            "a secret first",
            None,
            secrets,
            with(&[
                ("AZURE_FEDERATED_TOKEN_FILE", "/token"),
                ("AZURE_CLIENT_SECRET", "x"),
            ]),
            Ok(application(public, secret())),
        ),
        ("a machine", None, managed, vec![], Ok(machine(None))),
        (
            "one of several identities",
            None,
            managed,
            with(&[]),
            Ok(machine(Some("c"))),
        ),
    ] {
        let variable = |name: &str| {
            let found = variables.iter().find(|(key, _)| *key == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        let found = token::source(path.map(std::path::PathBuf::as_path), auth_type, &variable);
        match (found, expected) {
            (Ok(found), Ok(expected)) => assert!(found == expected, "{name}: {found:?}"),
            (Err(error), Err(text)) => {
                let error = error.to_string();
                assert!(error.contains(text), "{name}: {error}");
            }
            (found, _) => panic!("{name}: {found:?}"),
        }
    }
}

#[tokio::test]
async fn tokens_are_requested_with_each_proof() {
    drop(rustls::crypto::aws_lc_rs::default_provider().install_default());
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("token");
    std::fs::write(&file, "federated\n").unwrap();
    let server = HttpServer::start(&[TOKEN; 3]).await;
    let http = Http::new();
    let client_secret = application(&server.url, Proof::Secret("x y".to_owned()));
    let federated = application(&server.url, Proof::TokenFile(file));
    let machine = Source::Machine {
        metadata: format!("{}/metadata", server.url),
        client: Some("c".to_owned()),
    };
    for source in [client_secret, federated, machine] {
        assert_eq!(source.load(&http).await.unwrap(), "a", "{source:?}");
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
    let refused = "{\"error\":\"invalid_client\",\"error_description\":\"AADSTS7000215: Invalid secret.\\r\\nTrace\"}";
    let server = HttpServer::start(&[(401, &[], refused)]).await;
    let source = application(&server.url, Proof::Secret("x".to_owned()));
    let error = source.load(&http).await.unwrap_err().to_string();
    assert!(
        error.contains("401 invalid_client: AADSTS7000215: Invalid secret.. Check"),
        "{error}"
    );
}

/// The signature is verified with the public key of the certificate.
#[test]
fn certificates_sign_tokens() {
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;
    use rcgen::{CertificateParams, KeyPair, PKCS_RSA_SHA256};

    let key = KeyPair::generate_for(&PKCS_RSA_SHA256).unwrap();
    let certificate = CertificateParams::new(Vec::new())
        .unwrap()
        .self_signed(&key)
        .unwrap();
    let pem = format!("{}{}", certificate.pem(), key.serialize_pem());
    for text in [pem.clone(), STANDARD.encode(&pem)] {
        let certificate = assertion::Certificate::read(&text).unwrap();
        let token = assertion::token(&certificate, "c", "https://a/token", 1000, "id").unwrap();
        let (signed, signature) = token.rsplit_once('.').unwrap();
        let (head, claims) = signed.split_once('.').unwrap();
        let json = |text: &str| -> serde_json::Value {
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
        let public = aws_lc_rs::signature::UnparsedPublicKey::new(
            &aws_lc_rs::signature::RSA_PSS_2048_8192_SHA256,
            rcgen::PublicKeyData::der_bytes(&key),
        );
        let signature = URL_SAFE_NO_PAD.decode(signature).unwrap();
        public.verify(signed.as_bytes(), &signature).unwrap();
        assert!(public.verify(b"other", &signature).is_err());
    }
    for text in ["", "MIIB", certificate.pem().as_str()] {
        assert!(assertion::Certificate::read(text).is_err(), "{text}");
    }
}
