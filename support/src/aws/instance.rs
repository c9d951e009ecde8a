//! Credentials of the machine that a program runs on, from the metadata service of EC2 (version 2).

use std::time::Duration;

use bytes::Bytes;
use http::{Request, StatusCode};
use serde_json::Value;
use tokio::time::timeout;

use super::Error;
use super::signature::Credentials;
use crate::outbound::{self, Http};

/// The metadata service.
pub(super) const SERVICE: &str = "http://169.254.169.254";
/// The variable with another one.
pub(super) const ENDPOINT: &str = "AWS_EC2_METADATA_SERVICE_ENDPOINT";
const ROLES: &str = "latest/meta-data/iam/security-credentials/";
/// Headers of the token by which requests prove that they are not forwarded.
const TOKEN: &str = "x-aws-ec2-metadata-token";
const TOKEN_LIFETIME: (&str, &str) = ("x-aws-ec2-metadata-token-ttl-seconds", "300");
/// How long all requests may take: without a route to the service, there is no answer at all.
const PATIENCE: Duration = Duration::from_secs(15);

/// The credentials of the role that the machine has.
pub(super) async fn credentials(http: &Http, service: &str) -> Result<Credentials, Error> {
    let asking = async {
        let token = token(http, service).await?;
        let roles = format!("{service}/{ROLES}");
        let names = get(http, &roles, &token).await?;
        let name = names.lines().map(str::trim).find(|name| !name.is_empty());
        let name = name.ok_or_else(|| unexpected(&roles, "the machine has no role"))?;
        let url = format!("{roles}{name}");
        parse(&get(http, &url, &token).await?).map_err(|problem| unexpected(&url, problem))
    };
    let no_answer = |_| Error::Http {
        what: format!(
            "requests for credentials of the machine (the limit of hops of its metadata service must be at least 2): {service}"
        ),
        source: outbound::Error::Timeout,
    };
    timeout(PATIENCE, asking).await.map_err(no_answer)?
}

async fn token(http: &Http, service: &str) -> Result<String, Error> {
    let url = format!("{service}/latest/api/token");
    let (name, value) = TOKEN_LIFETIME;
    let build = || Request::put(&url).header(name, value).body(Bytes::new());
    send(http, &url, build).await
}

async fn get(http: &Http, url: &str, token: &str) -> Result<String, Error> {
    let build = || Request::get(url).header(TOKEN, token).body(Bytes::new());
    send(http, url, build).await
}

async fn send(
    http: &Http,
    url: &str,
    build: impl Fn() -> http::Result<Request<Bytes>>,
) -> Result<String, Error> {
    let response = http.send(build).await.map_err(|source| Error::Http {
        what: format!("a request to {url}"),
        source,
    })?;
    match response.status() {
        status if status.is_success() => {
            let body = String::from_utf8_lossy(response.body());
            Ok(body.trim().to_owned())
        }
        StatusCode::NOT_FOUND => Err(unexpected(url, "the machine has no role")),
        // The body may have parts of credentials.
        status => Err(unexpected(url, &format!("the status is {status}"))),
    }
}

fn unexpected(url: &str, problem: &str) -> Error {
    Error::Response {
        what: format!("a request to {url}"),
        problem: problem.to_owned(),
    }
}

/// The credentials in a response. Its text is never shown.
fn parse(text: &str) -> Result<Credentials, &'static str> {
    let response: Value = serde_json::from_str(text).map_err(|_| "it is not JSON")?;
    let field = |name: &str| {
        let value = response[name].as_str().filter(|value| !value.is_empty());
        value.map(str::to_owned)
    };
    let keys = field("AccessKeyId").zip(field("SecretAccessKey"));
    let (access_key, secret_key) = keys.ok_or("it has no credentials")?;
    Ok(Credentials {
        access_key,
        secret_key,
        session_token: field("Token"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{HttpAnswer, HttpServer};

    const PARTIAL: &str = r#"{ "SecretAccessKey": "hunter2" }"#;
    const FOUND: &str =
        r#"{ "Code": "Success", "AccessKeyId": "a", "SecretAccessKey": "s", "Token": "t" }"#;

    #[tokio::test]
    async fn the_role_of_the_machine_is_found() {
        let answers: [HttpAnswer; 3] = [
            (200, &[], "token-1"),
            (200, &[], "nodes\n"),
            (200, &[], FOUND),
        ];
        let server = HttpServer::start(&answers).await;
        let found = credentials(&Http::new(), &server.url).await.unwrap();
        let expected = Credentials {
            access_key: "a".to_owned(),
            secret_key: "s".to_owned(),
            session_token: Some("t".to_owned()),
        };
        assert!(found == expected);
        let path = "/latest/meta-data/iam/security-credentials/";
        assert_eq!(
            server.lines(),
            [
                "PUT /latest/api/token".to_owned(),
                format!("GET {path}"),
                format!("GET {path}nodes"),
            ]
        );
        assert_eq!(server.header(2, TOKEN).as_deref(), Some("token-1"));
    }

    #[tokio::test]
    async fn problems_name_the_request_and_show_no_credentials() {
        let table: [(&[HttpAnswer], &str); 3] = [
            (&[(200, &[], "t"), (404, &[], "")], "has no role"),
            (&[(403, &[], "hunter2")], "403"),
            (
                &[(200, &[], "t"), (200, &[], "nodes"), (200, &[], PARTIAL)],
                "security-credentials/nodes: it has no credentials",
            ),
        ];
        for (answers, expected) in table {
            let server = HttpServer::start(answers).await;
            let error = credentials(&Http::new(), &server.url).await.unwrap_err();
            let message = error.to_string();
            assert!(message.contains(expected), "{message}");
            assert!(!message.contains("hunter2"), "{message}");
        }
    }
}
