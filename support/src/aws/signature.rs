//! AWS Signature Version 4 of a request whose body is known. Pure.

use std::fmt::{self, Write as _};

use aws_lc_rs::hmac;
use bytes::Bytes;
use http::{HeaderName, HeaderValue, Request, header};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use sha2::{Digest as _, Sha256};

const ALGORITHM: &str = "AWS4-HMAC-SHA256";
const DATE: HeaderName = HeaderName::from_static("x-amz-date");
const CONTENT: HeaderName = HeaderName::from_static("x-amz-content-sha256");
const TOKEN: HeaderName = HeaderName::from_static("x-amz-security-token");

/// Credentials of AWS. Their text is never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    /// The identifier of the key.
    pub access_key: String,
    /// The key.
    pub secret_key: String,
    /// The token of temporary credentials.
    pub session_token: Option<String>,
}

/// What a signature is valid for.
#[derive(Debug, Clone, Copy)]
pub struct Scope<'a> {
    /// The region of the service.
    pub region: &'a str,
    /// The name of the service, such as `s3`.
    pub service: &'a str,
    /// When the request is sent.
    pub time: Timestamp,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Credentials")
    }
}

/// Adds the headers of a signature: over the method, the URL, all headers and the body. Path and query of the URL are
/// encoded already, and each parameter has a `=`.
pub fn sign(
    request: &mut Request<Bytes>,
    credentials: &Credentials,
    scope: &Scope<'_>,
) -> http::Result<()> {
    let time = scope.time.to_zoned(TimeZone::UTC);
    let time = time.strftime("%Y%m%dT%H%M%SZ").to_string();
    let body = hex(&Sha256::digest(request.body()));
    let authority = request.uri().authority().map(|it| it.as_str().to_owned());
    let headers = [
        (header::HOST, authority.unwrap_or_default()),
        (DATE, time.clone()),
        (CONTENT, body.clone()),
    ];
    for (name, value) in headers {
        request
            .headers_mut()
            .insert(name, HeaderValue::try_from(value)?);
    }
    if let Some(token) = &credentials.session_token {
        let mut token = HeaderValue::try_from(token)?;
        token.set_sensitive(true);
        request.headers_mut().insert(TOKEN, token);
    }
    let (signed, canonical) = canonical(request, &body);
    let day = &time[..8];
    let scope = [day, scope.region, scope.service, "aws4_request"];
    let digest = hex(&Sha256::digest(canonical));
    let text = format!("{ALGORITHM}\n{time}\n{}\n{digest}", scope.join("/"));
    let secret = format!("AWS4{}", credentials.secret_key).into_bytes();
    let key = scope.iter().fold(secret, |key, part| mac(&key, part));
    let authorization = format!(
        "{ALGORITHM} Credential={}/{},SignedHeaders={signed},Signature={}",
        credentials.access_key,
        scope.join("/"),
        hex(&mac(&key, &text)),
    );
    let mut authorization = HeaderValue::try_from(authorization)?;
    authorization.set_sensitive(true);
    request
        .headers_mut()
        .insert(header::AUTHORIZATION, authorization);
    Ok(())
}

/// The names of the signed headers, and the text that stands for the request.
fn canonical(request: &Request<Bytes>, body: &str) -> (String, String) {
    let mut headers: Vec<_> = request
        .headers()
        .iter()
        .map(|(name, value)| (name.as_str(), String::from_utf8_lossy(value.as_bytes())))
        .collect();
    headers.sort();
    let names: Vec<_> = headers.iter().map(|(name, _)| *name).collect();
    let names = names.join(";");
    let lines = headers.iter();
    let lines: Vec<_> = lines
        .map(|(name, value)| format!("{name}:{}\n", value.trim()))
        .collect();
    let headers = lines.concat();
    let mut query: Vec<_> = request
        .uri()
        .query()
        .unwrap_or_default()
        .split('&')
        .collect();
    query.sort_unstable();
    let (method, path, query) = (request.method(), request.uri().path(), query.join("&"));
    let canonical = format!("{method}\n{path}\n{query}\n{headers}\n{names}\n{body}");
    (names, canonical)
}

/// The bytes in lower case, two digits each.
fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a String never fails.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn mac(key: &[u8], text: &str) -> Vec<u8> {
    let key = hmac::Key::new(hmac::HMAC_SHA256, key);
    hmac::sign(&key, text.as_bytes()).as_ref().to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The examples of "Authenticating Requests: Using the Authorization Header" in the reference of Amazon S3.
    #[test]
    fn signatures_equal_those_of_the_reference() {
        let credentials = Credentials {
            access_key: "AKIAIOSFODNN7EXAMPLE".to_owned(),
            secret_key: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY".to_owned(),
            session_token: None,
        };
        let scope = Scope {
            region: "us-east-1",
            service: "s3",
            time: "2013-05-24T00:00:00Z".parse().unwrap(),
        };
        for (method, path, headers, body, expected) in [
            (
                "GET",
                "/test.txt",
                vec![("range", "bytes=0-9")],
                "",
                "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41",
            ),
            (
                "PUT",
                "/test%24file.text",
                vec![
                    ("date", "Fri, 24 May 2013 00:00:00 GMT"),
                    ("x-amz-storage-class", "REDUCED_REDUNDANCY"),
                ],
                "Welcome to Amazon S3.",
                "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd",
            ),
            (
                "GET",
                "/?lifecycle=",
                vec![],
                "",
                "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543",
            ),
            (
                "GET",
                "/?prefix=J&max-keys=2",
                vec![],
                "",
                "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7",
            ),
        ] {
            let uri = format!("https://examplebucket.s3.amazonaws.com{path}");
            let mut request = Request::builder().method(method).uri(uri);
            for (name, value) in headers {
                request = request.header(name, value);
            }
            let mut request = request.body(Bytes::from(body)).unwrap();
            sign(&mut request, &credentials, &scope).unwrap();
            let found = request.headers()[header::AUTHORIZATION].to_str().unwrap();
            assert!(
                found.ends_with(&format!("Signature={expected}")),
                "{method} {path}: {found}"
            );
        }
    }

    #[test]
    fn tokens_are_signed_and_secrets_are_not_shown() {
        let credentials = Credentials {
            access_key: "a".to_owned(),
            secret_key: "secret".to_owned(),
            session_token: Some("token".to_owned()),
        };
        let scope = Scope {
            region: "eu-west-1",
            service: "s3",
            time: Timestamp::UNIX_EPOCH,
        };
        let mut request = Request::get("https://a.example.com:8443/k")
            .body(Bytes::new())
            .unwrap();
        sign(&mut request, &credentials, &scope).unwrap();
        let authorization = &request.headers()[header::AUTHORIZATION];
        let signed = "SignedHeaders=host;x-amz-content-sha256;x-amz-date;x-amz-security-token,";
        assert!(authorization.to_str().unwrap().contains(signed));
        assert_eq!(request.headers()[header::HOST], "a.example.com:8443");
        let shown = format!("{credentials:?} {:?}", request.headers());
        assert!(
            !shown.contains("secret") && !shown.contains("\"token\""),
            "{shown}"
        );
    }
}
