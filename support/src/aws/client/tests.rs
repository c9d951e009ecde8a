//! What is sent, what is sent again, and what is not.

use std::sync::{Arc, Mutex as StdMutex};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use super::*;
use crate::aws::Retry;

/// A service whose pauses are short.
fn quick(service: Service) -> Service {
    Service {
        retry: Retry {
            attempts: 4,
            longest: Duration::from_millis(1),
        },
        ..service
    }
}

/// Serves the responses, each on a connection of its own, and returns the requests.
async fn serve(responses: Vec<(u16, &'static str)>) -> (Client, Arc<StdMutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let requests = Arc::new(StdMutex::new(Vec::new()));
    let seen = Arc::clone(&requests);
    tokio::spawn(async move {
        for (status, body) in responses {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut bytes = vec![0; 8192];
            let mut length = 0;
            while !is_whole(&bytes[..length]) {
                length += stream.read(&mut bytes[length..]).await.unwrap();
            }
            let text = String::from_utf8_lossy(&bytes[..length]).into_owned();
            seen.lock().unwrap().push(text);
            let response = format!(
                "HTTP/1.1 {status} X\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
                body.len()
            );
            stream.write_all(response.as_bytes()).await.unwrap();
        }
    });
    let source = Source::Static(Credentials {
        access_key: "a".to_owned(),
        secret_key: "s".to_owned(),
        session_token: None,
    });
    let variable = |name: &str| (name == "AWS_ENDPOINT_URL").then(|| url.clone());
    let client = Client::new(source, None, "eu-west-1", "test", &variable);
    (client, requests)
}

/// Whether the body has the length that the head says.
fn is_whole(bytes: &[u8]) -> bool {
    let text = String::from_utf8_lossy(bytes);
    let Some((head, body)) = text.split_once("\r\n\r\n") else {
        return false;
    };
    let length = head
        .to_lowercase()
        .split("content-length: ")
        .nth(1)
        .and_then(|rest| rest.split("\r\n").next()?.parse().ok());
    body.len() >= length.unwrap_or(0)
}

#[tokio::test]
async fn requests_are_repeated_if_that_does_no_harm() {
    let throttled = "<Error><Code>RequestLimitExceeded</Code><Message>slow</Message></Error>";
    let broken = "<Error><Code>InternalError</Code><Message>no</Message></Error>";
    for (name, responses, repeatable, expected) in [
        (
            "throttled",
            vec![(503, throttled), (400, throttled), (200, "<a/>")],
            false,
            Ok(3),
        ),
        ("read", vec![(500, broken), (200, "<a/>")], true, Ok(2)),
        ("written", vec![(500, broken)], false, Err(1)),
        ("too often", vec![(500, broken); 4], true, Err(4)),
        (
            "refused",
            vec![(403, "<Error><Code>AccessDenied</Code></Error>")],
            true,
            Err(1),
        ),
    ] {
        let (client, requests) = serve(responses).await;
        let service = quick(EC2);
        let sent = client
            .query(&service, "CreateVpc", &[], repeatable)
            .await
            .is_ok();
        let count = requests.lock().unwrap().len();
        assert_eq!(
            if sent { Ok(count) } else { Err(count) },
            expected,
            "{name}"
        );
    }
}

#[tokio::test]
async fn requests_have_their_path_and_a_signature_of_their_service() {
    let (client, requests) = serve(vec![(200, ""), (200, "")]).await;
    let rest = Rest {
        method: Method::PUT,
        path: "/bucket".to_owned(),
        query: "tagging=".to_owned(),
        content_type: Some("application/xml"),
        body: "<Tagging/>".to_owned(),
    };
    client
        .rest(&S3, "PutBucketTagging", &rest, true)
        .await
        .unwrap();
    let rest = Rest {
        method: Method::DELETE,
        path: "/2013-04-01/hostedzone/Z1".to_owned(),
        query: String::new(),
        content_type: None,
        body: String::new(),
    };
    client
        .rest(&ROUTE53, "DeleteHostedZone", &rest, true)
        .await
        .unwrap();
    let requests = requests.lock().unwrap().join("\n").to_lowercase();
    for expected in [
        "put /bucket?tagging= http/1.1",
        "x-amz-checksum-sha256: ",
        "/eu-west-1/s3/aws4_request",
        "delete /2013-04-01/hostedzone/z1 http/1.1",
        "/us-east-1/route53/aws4_request",
    ] {
        assert!(requests.contains(expected), "{expected}: {requests}");
    }
}
