//! Credentials of all kinds, and what is requested with them.

use std::collections::BTreeMap;

use aws_lc_rs::encoding::{AsDer as _, Pkcs8V1Der};
use aws_lc_rs::rsa::{KeyPair, KeySize};
use aws_lc_rs::signature::{KeyPair as _, RSA_PKCS1_2048_8192_SHA256, UnparsedPublicKey};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use serde_json::{Value, json};

use super::*;
use crate::testing::HttpServer;

const TOKEN: &str = r#"{"access_token": "t1", "expires_in": 3599}"#;

/// A key, and its PEM.
fn key() -> (KeyPair, String) {
    let pair = KeyPair::generate(KeySize::Rsa2048).unwrap();
    let der: Pkcs8V1Der<'_> = pair.as_der().unwrap();
    let der: &[u8] = der.as_ref();
    let text = STANDARD.encode(der);
    let begin = ["-----BEGIN", "PRIVATE KEY-----"].join(" ");
    let end = ["-----END", "PRIVATE KEY-----"].join(" ");
    (pair, format!("{begin}\n{text}\n{end}\n"))
}

fn parsed(document: &Value) -> Credentials {
    let (source, quota_project) = file::parse(&document.to_string()).unwrap();
    Credentials {
        source,
        quota_project,
    }
}

/// The pairs of a form.
fn form(body: &[u8]) -> BTreeMap<String, String> {
    form_urlencoded::parse(body).into_owned().collect()
}

#[tokio::test]
async fn a_service_account_signs_for_its_token() {
    let server = HttpServer::start(&[(200, &[], TOKEN)]).await;
    let (pair, pem) = key();
    let token_url = format!("{}/token", server.url);
    let credentials = parsed(&json!({
        "type": "service_account", "client_email": "a@p.iam.gserviceaccount.com", "private_key": pem,
        "private_key_id": "k1", "token_uri": token_url,
    }));
    let token = credentials.load(&Http::new()).await.unwrap();
    assert_eq!(
        (token.value.as_str(), token.valid_for.as_secs()),
        ("t1", 3599)
    );
    assert_eq!(server.lines(), ["POST /token"]);
    let form = form(&server.body(0));
    assert_eq!(
        form["grant_type"],
        "urn:ietf:params:oauth:grant-type:jwt-bearer"
    );
    let (signed, signature) = form["assertion"].rsplit_once('.').unwrap();
    let part = |text: &str| {
        let bytes = URL_SAFE_NO_PAD.decode(text).unwrap();
        serde_json::from_slice::<Value>(&bytes).unwrap()
    };
    let (head, claims) = signed.split_once('.').unwrap();
    assert_eq!(
        part(head),
        json!({ "alg": "RS256", "typ": "JWT", "kid": "k1" })
    );
    let claims = part(claims);
    assert_eq!(claims["iss"], "a@p.iam.gserviceaccount.com");
    assert_eq!(claims["aud"], token_url);
    assert_eq!(claims["scope"], SCOPE);
    let seconds = claims["exp"].as_i64().unwrap() - claims["iat"].as_i64().unwrap();
    assert_eq!(seconds, 3600);
    let public = UnparsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, pair.public_key());
    let signature = URL_SAFE_NO_PAD.decode(signature).unwrap();
    public.verify(signed.as_bytes(), &signature).unwrap();
    assert!(!format!("{credentials:?}").contains(&pem[40..80]));
}

#[tokio::test]
async fn a_user_refreshes_a_token() {
    let server = HttpServer::start(&[(200, &[], TOKEN)]).await;
    let credentials = parsed(&json!({
        "type": "authorized_user", "client_id": "c", "client_secret": "s3cret", "refresh_token": "r3fresh",
        "token_uri": format!("{}/token", server.url), "quota_project_id": "quota",
    }));
    assert_eq!(credentials.quota_project(), Some("quota"));
    assert_eq!(credentials.load(&Http::new()).await.unwrap().value, "t1");
    let form = form(&server.body(0));
    let expected = [
        ("client_id", "c"),
        ("client_secret", "s3cret"),
        ("grant_type", "refresh_token"),
        ("refresh_token", "r3fresh"),
    ];
    assert!(
        form.iter()
            .map(|(key, value)| (key.as_str(), value.as_str()))
            .eq(expected)
    );
    let shown = format!("{credentials:?}");
    assert!(
        !shown.contains("s3cret") && !shown.contains("r3fresh"),
        "{shown}"
    );
}

#[tokio::test]
async fn a_token_of_a_provider_is_exchanged_and_stands_for_a_service_account() {
    let later = r#"{"accessToken": "t2", "expireTime": "2999-01-01T00:00:00Z"}"#;
    let server = HttpServer::start(&[(200, &[], TOKEN), (200, &[], later)]).await;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("token");
    fs::write(&path, "subject\n").unwrap();
    let credentials = parsed(&json!({
        "type": "external_account", "audience": "//iam.googleapis.com/x",
        "subject_token_type": "urn:ietf:params:oauth:token-type:jwt",
        "token_url": format!("{}/v1/token", server.url),
        "service_account_impersonation_url": format!("{}/a:generateAccessToken", server.url),
        "credential_source": { "file": path, "format": { "type": "text" } },
    }));
    let token = credentials.load(&Http::new()).await.unwrap();
    assert_eq!(token.value, "t2");
    assert!(token.valid_for.as_secs() > 1_000_000);
    assert_eq!(
        server.lines(),
        ["POST /v1/token", "POST /a:generateAccessToken"]
    );
    let form = form(&server.body(0));
    assert_eq!(form["audience"], "//iam.googleapis.com/x");
    assert_eq!(form["subject_token"], "subject");
    assert_eq!(
        form["subject_token_type"],
        "urn:ietf:params:oauth:token-type:jwt"
    );
    assert_eq!(form["scope"], SCOPE);
    assert_eq!(
        server.header(1, "authorization").as_deref(),
        Some("Bearer t1")
    );
    let sent: Value = serde_json::from_slice(&server.body(1)).unwrap();
    assert_eq!(sent["scope"], json!([SCOPE]));
}

#[tokio::test]
async fn a_machine_asks_its_metadata_server() {
    let server = HttpServer::start(&[(200, &[], TOKEN)]).await;
    let host = server.url.strip_prefix("http://").unwrap().to_owned();
    let variable = |name: &str| (name == "GCE_METADATA_HOST").then(|| host.clone());
    let credentials = Credentials::find(&variable).unwrap();
    assert_eq!(credentials.load(&Http::new()).await.unwrap().value, "t1");
    let path = "GET /computeMetadata/v1/instance/service-accounts/default/token";
    assert_eq!(server.lines(), [path]);
    assert_eq!(
        server.header(0, "metadata-flavor").as_deref(),
        Some("Google")
    );
    // Without an answer left it is no metadata server.
    let error = credentials.load(&Http::new()).await.unwrap_err();
    assert!(
        error.to_string().contains("GOOGLE_APPLICATION_CREDENTIALS"),
        "{error}"
    );
    assert!(error.is_denied());
}

#[tokio::test]
async fn refused_credentials_are_an_error_that_no_repetition_changes() {
    let refusal = r#"{"error": "invalid_grant", "error_description": "expired"}"#;
    let server = HttpServer::start(&[(400, &[], refusal), (200, &[], "{}")]).await;
    let credentials = parsed(&json!({
        "type": "authorized_user", "client_id": "c", "client_secret": "s3cret", "refresh_token": "r",
        "token_uri": format!("{}/token", server.url),
    }));
    for words in ["invalid_grant: expired", "has no token"] {
        let error = credentials.load(&Http::new()).await.unwrap_err();
        assert!(
            error.is_denied() && error.to_string().contains(words),
            "{error}"
        );
        assert!(!error.to_string().contains("s3cret"), "{error}");
    }
}

#[test]
fn credentials_are_found_where_google_programs_find_them() {
    let directory = tempfile::tempdir().unwrap();
    let home = directory.path().to_str().unwrap().to_owned();
    let user = directory.path().join(".config/gcloud");
    fs::create_dir_all(&user).unwrap();
    let document = |client: &str| {
        json!({ "type": "authorized_user", "client_id": client, "client_secret": "s", "refresh_token": "r" })
            .to_string()
    };
    fs::write(user.join(USER_FILE), document("of-user")).unwrap();
    fs::write(directory.path().join(USER_FILE), document("of-config")).unwrap();
    let named = directory.path().join("named.json");
    fs::write(&named, document("named")).unwrap();
    let named = named.to_str().unwrap().to_owned();
    for (variables, expected) in [
        (vec![("HOME", home.clone())], "of-user"),
        (
            vec![("HOME", home.clone()), ("CLOUDSDK_CONFIG", home.clone())],
            "of-config",
        ),
        (
            vec![("HOME", home), ("GOOGLE_APPLICATION_CREDENTIALS", named)],
            "named",
        ),
        (
            vec![("HOME", "/no/such/directory".to_owned())],
            METADATA_SERVER,
        ),
        (vec![], METADATA_SERVER),
    ] {
        let variables: BTreeMap<_, _> = variables.into_iter().collect();
        let variable = |name: &str| variables.get(name).cloned();
        let found = format!("{:?}", Credentials::find(&variable).unwrap());
        assert!(found.contains(&format!("\"{expected}\"")), "{found}");
    }
    let variable = |name: &str| {
        let missing = "/no/such/file.json";
        (name == "GOOGLE_APPLICATION_CREDENTIALS").then(|| missing.to_owned())
    };
    let error = Credentials::find(&variable).unwrap_err().to_string();
    assert!(error.contains("/no/such/file.json"), "{error}");
}

#[test]
fn damaged_files_are_refused_without_their_text() {
    let external = |source: Value| {
        json!({
            "type": "external_account", "audience": "a", "subject_token_type": "t", "token_url": "u",
            "credential_source": source,
        })
    };
    for (document, words) in [
        (json!("s3cret"), "its type"),
        (json!({ "type": "gdch" }), "write credentials of type"),
        (
            json!({ "type": "service_account", "client_email": "a", "private_key": "s3cret" }),
            "no RSA key",
        ),
        (
            json!({ "type": "authorized_user", "client_id": "c", "client_secret": "s3cret" }),
            "it has no refresh_token",
        ),
        (external(json!({ "url": "http://a" })), "are not supported"),
        (
            external(json!({ "file": "f", "format": { "type": "xml" } })),
            "neither text nor json",
        ),
        (
            external(json!({ "file": "f", "format": { "type": "json" } })),
            "subject_token_field_name",
        ),
    ] {
        let problem = file::parse(&document.to_string()).unwrap_err();
        assert!(problem.contains(words), "{problem}");
        assert!(!problem.contains("s3cret"), "{problem}");
    }
    assert_eq!(file::parse("s3cret").unwrap_err(), "it is not JSON");
}
