//! Uploads, with a server on loopback.

use support::testing::{HttpAnswer, HttpServer};

use super::*;

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

#[tokio::test]
async fn refused_tokens_say_what_to_check() {
    drop(rustls::crypto::aws_lc_rs::default_provider().install_default());
    let refused = "{\"error\":\"invalid_client\",\"error_description\":\"AADSTS7000215: Invalid secret.\\r\\nTrace\"}";
    let server = HttpServer::start(&[(401, &[], refused)]).await;
    let source = Source::of_secret(&server.url, "t", "c", "s3cret", SCOPE);
    let file = tempfile::NamedTempFile::new().unwrap();
    file.as_file().set_len(1).unwrap();
    let uploaded = super::upload(&Http::new(), &container(), &source, file.path(), "a/1.db").await;
    let error = uploaded.unwrap_err().to_string();
    let expected = "401 invalid_client: AADSTS7000215: Invalid secret.. Check the credentials";
    assert!(error.contains(expected), "{error}");
    assert!(!error.contains("s3cret"), "{error}");
}
