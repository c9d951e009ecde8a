//! Uploads to a server on loopback. `e2e` has those to a fake AWS.

use support::testing::HttpServer;
use tempfile::TempDir;

use super::*;

/// A file of this size, the store, and a role's token.
struct Fixture {
    directory: TempDir,
    bucket: Bucket,
    url: String,
}

impl Fixture {
    fn new(size: u64, server: &HttpServer) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let file = std::fs::File::create(directory.path().join("snapshot.db")).unwrap();
        file.set_len(size).unwrap();
        std::fs::write(directory.path().join("token"), "t\n").unwrap();
        let bucket = Bucket {
            name: "backups".to_owned(),
            region: "eu-west-1".to_owned(),
            kms_key: None,
            tags: None,
            endpoint: Some(server.url.clone()),
        };
        Self {
            directory,
            bucket,
            url: server.url.clone(),
        }
    }

    async fn upload(&self, with_role: bool) -> Result<String, Error> {
        drop(rustls::crypto::aws_lc_rs::default_provider().install_default());
        let token = self.directory.path().join("token").display().to_string();
        let variable = |name: &str| {
            let value = match (name, with_role) {
                ("AWS_ROLE_ARN", true) => "arn:aws:iam::1:role/backup",
                ("AWS_WEB_IDENTITY_TOKEN_FILE", true) => &token,
                ("AWS_ENDPOINT_URL", _) => &self.url,
                ("AWS_ACCESS_KEY_ID" | "AWS_SECRET_ACCESS_KEY", false) => "k",
                _ => return None,
            };
            Some(value.to_owned())
        };
        let file = self.directory.path().join("snapshot.db");
        let (http, key) = (Http::new(), "a/1.db");
        upload(&http, &self.bucket, None, &file, key, &variable).await
    }
}

#[tokio::test]
async fn small_files_are_one_request_with_the_properties() {
    let server = HttpServer::start(&[(200, &[], "")]).await;
    let mut fixture = Fixture::new(10, &server);
    fixture.bucket.kms_key = Some("arn:aws:kms:eu-west-1:1:key/k".to_owned());
    fixture.bucket.tags = Some("a=b&c=d".to_owned());
    assert_eq!(fixture.upload(false).await.unwrap(), "s3://backups/a/1.db");
    assert_eq!(server.lines(), ["PUT /backups/a/1.db"]);
    assert_eq!(server.body(0).len(), 10);
    for (name, expected) in [
        ("x-amz-server-side-encryption", "aws:kms"),
        (
            "x-amz-server-side-encryption-aws-kms-key-id",
            "arn:aws:kms:eu-west-1:1:key/k",
        ),
        ("x-amz-tagging", "a=b&c=d"),
    ] {
        assert_eq!(server.header(0, name).as_deref(), Some(expected));
    }
    let authorization = server.header(0, "authorization").unwrap();
    assert!(
        authorization.contains("/eu-west-1/s3/aws4_request"),
        "{authorization}"
    );
}

const BEGUN: &str =
    "<InitiateMultipartUploadResult><UploadId>u&amp;1</UploadId></InitiateMultipartUploadResult>";

#[tokio::test]
async fn large_files_are_sent_in_parts() {
    let server = HttpServer::start(&[
        (200, &[], BEGUN),
        (200, &[("etag", "\"one\"")], ""),
        // A transient failure is retried.
        (503, &[], "<Error><Code>SlowDown</Code></Error>"),
        (200, &[("etag", "\"two\"")], ""),
        (200, &[], "<CompleteMultipartUploadResult/>"),
    ])
    .await;
    let fixture = Fixture::new(PART + 1, &server);
    fixture.upload(false).await.unwrap();
    let key = "/backups/a/1.db";
    assert_eq!(
        server.lines(),
        [
            format!("POST {key}?uploads="),
            format!("PUT {key}?partNumber=1&uploadId=u%261"),
            format!("PUT {key}?partNumber=2&uploadId=u%261"),
            format!("PUT {key}?partNumber=2&uploadId=u%261"),
            format!("POST {key}?uploadId=u%261"),
        ]
    );
    assert_eq!(
        (server.body(1).len() as u64, server.body(3).len()),
        (PART, 1)
    );
    let list = String::from_utf8(server.body(4).to_vec()).unwrap();
    let expected = "<CompleteMultipartUpload>\
                    <Part><PartNumber>1</PartNumber><ETag>\"one\"</ETag></Part>\
                    <Part><PartNumber>2</PartNumber><ETag>\"two\"</ETag></Part>\
                    </CompleteMultipartUpload>";
    assert_eq!(list, expected);
}

#[tokio::test]
async fn failed_uploads_are_aborted() {
    let denied =
        "<Error><Code>AccessDenied</Code><Message>no kms:GenerateDataKey</Message></Error>";
    for (name, answers, expected) in [
        (
            "a part",
            vec![
                (200, &[] as &[_], BEGUN),
                (403, &[], denied),
                (204, &[], ""),
            ],
            "403 AccessDenied: no kms:GenerateDataKey. Check the credentials",
        ),
        (
            "an error after the status",
            vec![
                (200, &[] as &[_], BEGUN),
                (200, &[("etag", "1")], ""),
                (200, &[("etag", "2")], ""),
                (
                    200,
                    &[],
                    "<Error><Code>InternalError</Code><Message>again</Message></Error>",
                ),
                (204, &[], ""),
            ],
            "200 InternalError: again",
        ),
        (
            "a part without a tag",
            vec![(200, &[] as &[_], BEGUN), (200, &[], ""), (204, &[], "")],
            "it has no ETag",
        ),
    ] {
        let server = HttpServer::start(&answers).await;
        let fixture = Fixture::new(PART + 1, &server);
        let error = fixture.upload(false).await.unwrap_err().to_string();
        assert!(
            error.contains("s3://backups/a/1.db") && error.contains(expected),
            "{name}: {error}"
        );
        let last = server.lines().pop().unwrap();
        assert_eq!(last, "DELETE /backups/a/1.db?uploadId=u%261", "{name}");
    }
}

#[tokio::test]
async fn a_role_gets_credentials_for_its_token() {
    let issued = "<Credentials><AccessKeyId>ASIA</AccessKeyId><SecretAccessKey>s</SecretAccessKey>\
                  <SessionToken>session+/=</SessionToken></Credentials>";
    let server = HttpServer::start(&[(200, &[], issued), (200, &[], "")]).await;
    let fixture = Fixture::new(1, &server);
    fixture.upload(true).await.unwrap();
    assert_eq!(server.lines(), ["POST /", "PUT /backups/a/1.db"]);
    let form = String::from_utf8(server.body(0).to_vec()).unwrap();
    assert!(
        form.contains("RoleArn=arn%3Aaws%3Aiam%3A%3A1%3Arole%2Fbackup&"),
        "{form}"
    );
    assert!(form.ends_with("&WebIdentityToken=t"), "{form}");
    let token = server.header(1, "x-amz-security-token");
    assert_eq!(token.as_deref(), Some("session+/="));
    let expired = "<Error><Code>ExpiredTokenException</Code><Message>expired</Message></Error>";
    let server = HttpServer::start(&[(400, &[], expired)]).await;
    let error = Fixture::new(1, &server)
        .upload(true)
        .await
        .unwrap_err()
        .to_string();
    let expected = "AssumeRoleWithWebIdentity for arn:aws:iam::1:role/backup: 400 ExpiredTokenException: expired";
    assert!(error.contains(expected), "{error}");
    assert_eq!(server.lines().len(), 1);
}

#[test]
fn urls_follow_region_and_name() {
    for (name, region, expected) in [
        (
            "a",
            "us-east-1",
            "https://a.s3.us-east-1.amazonaws.com/k/1.db",
        ),
        (
            "a.b",
            "us-east-1",
            "https://s3.us-east-1.amazonaws.com/a.b/k/1.db",
        ),
        (
            "a",
            "cn-north-1",
            "https://a.s3.cn-north-1.amazonaws.com.cn/k/1.db",
        ),
        (
            "a",
            "us-gov-west-1",
            "https://a.s3.us-gov-west-1.amazonaws.com/k/1.db",
        ),
    ] {
        let bucket = Bucket {
            name: name.to_owned(),
            region: region.to_owned(),
            kms_key: None,
            tags: None,
            endpoint: None,
        };
        assert_eq!(bucket.url("k/1.db"), expected);
    }
}

/// Its author would choose a role that trusts the nodes of the management cluster.
#[test]
fn credentials_of_the_machine_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("credentials");
    let profile =
        "[default]\nrole_arn = arn:aws:iam::1:role/a\ncredential_source = Ec2InstanceMetadata\n";
    std::fs::write(&file, profile).unwrap();
    let error = source(Some(&file), &|_| None).unwrap_err().to_string();
    assert!(error.contains("web_identity_token_file"), "{error}");
}
