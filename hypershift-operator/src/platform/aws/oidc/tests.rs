//! Documents, and what becomes of them in a bucket on loopback.

use std::path::Path;

use serde_json::json;
use support::testing::{HttpAnswer, HttpServer};

use super::*;

/// Made by openssl.
pub(crate) const KEY: &str = "-----BEGIN PUBLIC KEY-----
MIGfMA0GCSqGSIb3DQEBAQUAA4GNADCBiQKBgQC3PxkaOZ0mK++HlRtFIfkWv1yz
A8byi+CBIfG0U2SDL2dziG4Je2/QGD4NMxRp9Yw4i5f8RCpqMOkC5fcz0InDMJ0w
RZlrggSvfVs57FhmoDoZ69PVzTWinl6vmRSNHsSlnyqNzS85eBzsKp5eayO/R2ov
Ff4KAe55rqi6yy+zVQIDAQAB
-----END PUBLIC KEY-----
";
const ISSUER: &str = "https://documents.s3.us-east-1.amazonaws.com/one-x7k2p";
const OWNER: Owner<'_> = Owner {
    uid: "uid-1",
    infra_id: "one-x7k2p",
};
const PUT_KEYS: &str = "PUT /documents/one-x7k2p/openid/v1/jwks";
const GET_KEYS: &str = "GET /documents/one-x7k2p/openid/v1/jwks";
const DELETE_KEYS: &str = "DELETE /documents/one-x7k2p/openid/v1/jwks";
const PUT_DISCOVERY: &str = "PUT /documents/one-x7k2p/.well-known/openid-configuration";
const GET_DISCOVERY: &str = "GET /documents/one-x7k2p/.well-known/openid-configuration";
const DELETE_DISCOVERY: &str = "DELETE /documents/one-x7k2p/.well-known/openid-configuration";

const OK: HttpAnswer = (200, &[], "");
const EXISTS: HttpAnswer = (412, &[], "<Error><Code>PreconditionFailed</Code></Error>");
const OWN: HttpAnswer = (200, &[("x-amz-meta-owner", "uid-1")], "{}");
const OTHER: HttpAnswer = (200, &[("x-amz-meta-owner", "uid-2")], "{}");
/// Written by another operator, with this cluster's key, and with another one.
const SAME_KEY: HttpAnswer = (
    200,
    &[],
    "{\"keys\":[{\"kid\":\"_1XrkqhgouV4HaAwGztziJfbJCq832srSEV3smg-aqU\",\"kty\":\"RSA\"}]}",
);
const OTHER_KEY: HttpAnswer = (200, &[], "{\"keys\":[{\"kid\":\"other\"}]}");
const ABSENT: HttpAnswer = (404, &[], "<Error><Code>NoSuchKey</Code></Error>");
const NO_BUCKET: HttpAnswer = (404, &[], "<Error><Code>NoSuchBucket</Code></Error>");
const DENIED: HttpAnswer = (
    403,
    &[],
    "<Error><Code>AccessDenied</Code><Message>request 4711</Message></Error>",
);

fn documents() -> Documents {
    Documents::new(ISSUER, KEY).unwrap()
}

/// The credentials of a file, and a server in place of S3.
async fn store(directory: &Path, answers: &[HttpAnswer]) -> (Store, HttpServer) {
    let credentials = directory.join("credentials");
    let keys = "[default]\naws_access_key_id = AKIA\naws_secret_access_key = secret\n";
    std::fs::write(&credentials, keys).unwrap();
    let server = HttpServer::start(answers).await;
    let storage = OidcStorage {
        bucket: "documents".to_owned(),
        region: "us-east-1".to_owned(),
        credentials,
    };
    let endpoints = [Some(server.url.clone()), None];
    (Store::with_endpoints(storage, endpoints), server)
}

#[test]
fn documents_name_the_issuer_and_its_key() {
    let Documents { discovery, keys } = documents();
    assert_eq!(
        discovery,
        json!({
            "issuer": ISSUER,
            "jwks_uri": format!("{ISSUER}/openid/v1/jwks"),
            "response_types_supported": ["id_token"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": ["RS256"],
        })
    );
    assert_eq!(
        keys,
        json!({ "keys": [{
            "use": "sig",
            "kty": "RSA",
            "kid": "_1XrkqhgouV4HaAwGztziJfbJCq832srSEV3smg-aqU",
            "alg": "RS256",
            "n": "tz8ZGjmdJivvh5UbRSH5Fr9cswPG8ovggSHxtFNkgy9nc4huCXtv0Bg-DTMUafWMOIuX_EQqajDpAuX3M9CJwzCd\
                  MEWZa4IEr31bOexYZqA6GevT1c01op5er5kUjR7EpZ8qjc0vOXgc7CqeXmsjv0dqLxX-CgHuea6oussvs1U",
            "e": "AQAB",
        }]})
    );
    assert!(format!("{keys:#}").starts_with("{\n  \"keys\": ["));
    assert_eq!(Documents::new(ISSUER, "no key"), Err(InvalidKey));
}

#[tokio::test]
async fn documents_are_written_with_their_owner() {
    let directory = tempfile::tempdir().unwrap();
    let (store, server) = store(directory.path(), &[OK, OK]).await;
    assert_eq!(store.publish(OWNER, &documents()).await, Ok(()));
    assert_eq!(server.lines(), [PUT_KEYS, PUT_DISCOVERY]);
    for (index, document) in [&documents().keys, &documents().discovery]
        .iter()
        .enumerate()
    {
        let body: Value = serde_json::from_slice(&server.body(index)).unwrap();
        assert_eq!(body, **document);
        for (name, expected) in [
            ("x-amz-meta-owner", "uid-1"),
            ("if-none-match", "*"),
            ("content-type", "application/json"),
        ] {
            assert_eq!(server.header(index, name).as_deref(), Some(expected));
        }
        let authorization = server.header(index, "authorization").unwrap();
        assert!(
            authorization.contains("/us-east-1/s3/aws4_request"),
            "{authorization}"
        );
    }
}

#[tokio::test]
async fn documents_that_exist_are_replaced_by_their_owner_only() {
    let again: &[&str] = &[PUT_KEYS, GET_KEYS, PUT_KEYS, PUT_DISCOVERY];
    let refused: &[&str] = &[PUT_KEYS, GET_KEYS];
    let taken = "are those of another cluster with spec.infraID one-x7k2p: create this cluster again with another infraID";
    for (name, answers, lines, expected) in [
        ("its own", &[EXISTS, OWN, OK, OK][..], again, None),
        ("of its key", &[EXISTS, SAME_KEY, OK, OK], again, None),
        ("gone meanwhile", &[EXISTS, ABSENT, OK, OK], again, None),
        ("another's", &[EXISTS, OTHER], refused, Some(taken)),
        ("of another key", &[EXISTS, OTHER_KEY], refused, Some(taken)),
        (
            "the issuer is another's",
            &[OK, EXISTS, OTHER],
            &[PUT_KEYS, PUT_DISCOVERY, GET_DISCOVERY],
            Some(taken),
        ),
        (
            "no bucket",
            &[NO_BUCKET],
            &[PUT_KEYS],
            Some("S3 has no bucket documents. The administrator"),
        ),
        (
            "no permission",
            &[DENIED],
            &[PUT_KEYS],
            Some("S3 refuses it (AccessDenied): the administrator"),
        ),
    ] {
        let directory = tempfile::tempdir().unwrap();
        let (store, server) = store(directory.path(), answers).await;
        let published = store.publish(OWNER, &documents()).await;
        assert_eq!(server.lines(), lines, "{name}");
        match (published, expected) {
            (Ok(()), None) => {}
            (Err(problem), Some(expected)) => {
                assert!(problem.contains(expected), "{name}: {problem}");
                // What only administrators see is in the log.
                assert!(!problem.contains("4711"), "{name}: {problem}");
            }
            (found, _) => panic!("{name}: {found:?}"),
        }
    }
}

#[tokio::test]
async fn documents_are_deleted_by_their_owner_only() {
    let both: &[&str] = &[GET_DISCOVERY, DELETE_DISCOVERY, GET_KEYS, DELETE_KEYS];
    let none: &[&str] = &[GET_DISCOVERY, GET_KEYS];
    for (name, answers, lines, expected) in [
        ("its own", &[OWN, OK, OWN, OK][..], both, true),
        ("another's", &[OTHER, OTHER], none, true),
        ("not marked", &[SAME_KEY, SAME_KEY], none, true),
        ("gone", &[ABSENT, ABSENT], none, true),
        ("no bucket", &[NO_BUCKET, NO_BUCKET], none, true),
        ("no permission", &[DENIED], &[GET_DISCOVERY], false),
    ] {
        let directory = tempfile::tempdir().unwrap();
        let (store, server) = store(directory.path(), answers).await;
        let deleted = store.delete(OWNER).await;
        assert_eq!(deleted.is_ok(), expected, "{name}: {deleted:?}");
        assert_eq!(server.lines(), lines, "{name}");
    }
}

#[tokio::test]
async fn missing_credentials_are_not_shown() {
    let directory = tempfile::tempdir().unwrap();
    let (store, server) = store(directory.path(), &[]).await;
    std::fs::remove_file(directory.path().join("credentials")).unwrap();
    let problem = store.publish(OWNER, &documents()).await.unwrap_err();
    let path = directory.path().display().to_string();
    assert!(problem.contains("S3 could not be used"), "{problem}");
    assert!(!problem.contains(&path), "{problem}");
    assert_eq!(server.lines(), [""; 0]);
}
