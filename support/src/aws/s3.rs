//! Objects in a bucket of S3 that are written, read and deleted as a whole.

use bytes::Bytes;
use http::{HeaderName, Method, Request, Response, StatusCode, header};
use jiff::Timestamp;

use super::signature::{Credentials, Scope, sign};
use super::{Error, domain, encoded, refused};
use crate::outbound::Http;

const SERVICE: &str = "s3";
/// Metadata of an object: who has written it.
const OWNER: HeaderName = HeaderName::from_static("x-amz-meta-owner");
/// What a precondition says that does not hold.
const EXISTS: StatusCode = StatusCode::PRECONDITION_FAILED;

/// A bucket.
#[derive(Debug, Clone, Copy)]
pub struct Bucket<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its region.
    pub region: &'a str,
    /// URL of another service with the same API, without a slash at the end.
    pub endpoint: Option<&'a str>,
}

/// A bucket, and who uses it.
#[derive(Debug, Clone, Copy)]
pub struct Objects<'a> {
    /// The client.
    pub http: &'a Http,
    /// The bucket.
    pub bucket: Bucket<'a>,
    /// The credentials.
    pub credentials: &'a Credentials,
}

/// An object as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stored {
    /// Who has written it, if that was recorded.
    pub owner: Option<String>,
    /// Its bytes.
    pub body: Bytes,
}

/// What there is before an object is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Before {
    /// Nothing: otherwise it is not written.
    Nothing,
    /// Whatever it is.
    Anything,
}

// === impl Bucket ===

impl Bucket<'_> {
    /// The URL of an object. Names with a dot are no label below the domain of the certificate.
    pub fn url(&self, key: &str) -> String {
        let (name, key) = (self.name, encoded_path(key));
        let service = format!("s3.{}.{}", self.region, domain(self.region));
        match self.endpoint {
            Some(endpoint) => format!("{endpoint}/{name}/{key}"),
            None if name.contains('.') => format!("https://{service}/{name}/{key}"),
            None => format!("https://{name}.{service}/{key}"),
        }
    }
}

// === impl Objects ===

impl Objects<'_> {
    /// Writes an object of JSON. Returns whether it was written: if there is one where nothing is to be, it is not.
    pub async fn put(
        &self,
        key: &str,
        owner: &str,
        body: &str,
        before: Before,
    ) -> Result<bool, Error> {
        let mut headers = vec![(header::CONTENT_TYPE, "application/json"), (OWNER, owner)];
        if before == Before::Nothing {
            headers.push((header::IF_NONE_MATCH, "*"));
        }
        let body = Bytes::copy_from_slice(body.as_bytes());
        let response = self.request(&Method::PUT, key, &headers, body).await?;
        if response.status() == EXISTS && before == Before::Nothing {
            return Ok(false);
        }
        self.accepted(&Method::PUT, key, response).map(|_| true)
    }

    /// An object, if it exists.
    pub async fn get(&self, key: &str) -> Result<Option<Stored>, Error> {
        let response = self.request(&Method::GET, key, &[], Bytes::new()).await?;
        if response.status() == StatusCode::NOT_FOUND && !is_bucket_missing(&response) {
            return Ok(None);
        }
        let response = self.accepted(&Method::GET, key, response)?;
        let owner = response.headers().get(OWNER);
        let owner = owner.and_then(|it| it.to_str().ok()).map(str::to_owned);
        let body = response.into_body();
        Ok(Some(Stored { owner, body }))
    }

    /// Deletes an object, if it exists.
    pub async fn delete(&self, key: &str) -> Result<(), Error> {
        let method = Method::DELETE;
        let response = self.request(&method, key, &[], Bytes::new()).await?;
        self.accepted(&method, key, response).map(drop)
    }

    async fn request(
        &self,
        method: &Method,
        key: &str,
        headers: &[(HeaderName, &str)],
        body: Bytes,
    ) -> Result<Response<Bytes>, Error> {
        let url = self.bucket.url(key);
        let build = || {
            let mut request = Request::builder().method(method.clone()).uri(&url);
            for (name, value) in headers {
                request = request.header(name, *value);
            }
            let mut request = request.body(body.clone())?;
            let scope = Scope {
                region: self.bucket.region,
                service: SERVICE,
                time: Timestamp::now(),
            };
            sign(&mut request, self.credentials, &scope)?;
            Ok(request)
        };
        let sent = self.http.send(build).await;
        sent.map_err(|source| Error::Http {
            what: self.what(method, key),
            source,
        })
    }

    fn accepted(
        &self,
        method: &Method,
        key: &str,
        response: Response<Bytes>,
    ) -> Result<Response<Bytes>, Error> {
        if response.status().is_success() {
            return Ok(response);
        }
        let body = String::from_utf8_lossy(response.body());
        Err(refused(self.what(method, key), response.status(), &body))
    }

    fn what(&self, method: &Method, key: &str) -> String {
        format!("{method} s3://{}/{key}", self.bucket.name)
    }
}

/// Whether there is no bucket, and not only no object.
fn is_bucket_missing(response: &Response<Bytes>) -> bool {
    String::from_utf8_lossy(response.body()).contains("<Code>NoSuchBucket</Code>")
}

/// Encodes a key for the path of a URL: slashes stay.
pub fn encoded_path(key: &str) -> String {
    let segments = key.split('/').map(encoded);
    segments.collect::<Vec<_>>().join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_encoded_for_urls() {
        for (key, expected) in [
            ("a/b.db", "a/b.db"),
            ("a b/c+d", "a%20b/c%2Bd"),
            ("it's(1)!*", "it%27s%281%29%21%2A"),
            ("ä", "%C3%A4"),
        ] {
            assert_eq!(encoded_path(key), expected);
        }
    }

    #[test]
    fn objects_have_urls_below_their_bucket() {
        let bucket = |name, region, endpoint| Bucket {
            name,
            region,
            endpoint,
        };
        for (bucket, expected) in [
            (
                bucket("documents", "eu-west-1", None),
                "https://documents.s3.eu-west-1.amazonaws.com/a/b",
            ),
            (
                bucket("documents", "cn-north-1", None),
                "https://documents.s3.cn-north-1.amazonaws.com.cn/a/b",
            ),
            (
                bucket("with.dots", "eu-west-1", None),
                "https://s3.eu-west-1.amazonaws.com/with.dots/a/b",
            ),
            (
                bucket("documents", "eu-west-1", Some("http://127.0.0.1:1")),
                "http://127.0.0.1:1/documents/a/b",
            ),
        ] {
            assert_eq!(bucket.url("a/b"), expected);
        }
    }
}
