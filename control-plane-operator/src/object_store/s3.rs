//! S3: uploads of one object, in parts if it is large.

#[cfg(test)]
mod tests;

use std::fmt::Write as _;
use std::path::Path;

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use jiff::Timestamp;
use support::aws::credentials::{self, Source, token_service};
use support::aws::{self, Credentials, Scope};
use support::xml;

use super::parts::Parts;
use super::{Error, Http, Variable, encoded};

pub(crate) use support::aws::endpoint;

/// Size of a part, in bytes. S3 accepts from 5 MiB to 5 GiB.
const PART: u64 = 16 << 20;
/// The most parts of an object that S3 accepts.
const MOST_PARTS: u64 = 10_000;
const SERVICE: &str = "s3";
/// Name of the session of a role.
const SESSION: &str = "etcd-backup";

/// Where an object is stored, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Bucket {
    pub(crate) name: String,
    pub(crate) region: String,
    /// ARN of the KMS key for encryption; none for the default of the bucket.
    pub(crate) kms_key: Option<String>,
    /// Tags of the object, encoded for a URL.
    pub(crate) tags: Option<String>,
    /// URL of another service with the same API, of `AWS_ENDPOINT_URL_S3` or `AWS_ENDPOINT_URL`.
    pub(crate) endpoint: Option<String>,
}

/// An upload to a bucket.
struct Upload<'a> {
    http: &'a Http,
    bucket: &'a Bucket,
    credentials: Credentials,
    key: &'a str,
}

/// Uploads a file and returns the URL of the object: `s3://BUCKET/KEY`.
pub(crate) async fn upload(
    http: &Http,
    bucket: &Bucket,
    credentials_file: Option<&Path>,
    file: &Path,
    key: &str,
    variable: Variable<'_>,
) -> Result<String, Error> {
    let mut parts = Parts::open(file, PART, MOST_PARTS)?;
    let source = source(credentials_file, variable)?;
    let sts = token_service(&bucket.region, variable);
    let upload = Upload {
        http,
        bucket,
        credentials: source.load(http, &sts, SESSION).await?,
        key,
    };
    upload.send(&mut parts).await?;
    Ok(format!("s3://{}/{key}", bucket.name))
}

/// Finds credentials: in the file, or in the environment as AWS's programs do.
fn source(file: Option<&Path>, variable: Variable<'_>) -> Result<Source, Error> {
    let found = match file {
        Some(file) => Some(credentials::of_file(file, variable)?),
        None => credentials::of_environment(variable)?,
    };
    // The author of a cluster may choose the role, and does not own the machine that would assume it.
    if matches!(found, Some(Source::Instance { .. })) {
        return Err(Error::Credentials(
            "credential_source = Ec2InstanceMetadata is not supported here: use keys, or web_identity_token_file".to_owned(),
        ));
    }
    found.ok_or_else(|| {
        Error::Credentials(
            "pass --credentials-file, or set AWS_ROLE_ARN and AWS_WEB_IDENTITY_TOKEN_FILE, AWS_ACCESS_KEY_ID and \
             AWS_SECRET_ACCESS_KEY, or AWS_SHARED_CREDENTIALS_FILE"
                .to_owned(),
        )
    })
}

// === impl Bucket ===

impl Bucket {
    /// The URL of an object.
    fn url(&self, key: &str) -> String {
        let bucket = aws::s3::Bucket {
            name: &self.name,
            region: &self.region,
            endpoint: self.endpoint.as_deref(),
        };
        bucket.url(key)
    }
}

// === impl Upload ===

impl Upload<'_> {
    async fn send(&self, parts: &mut Parts) -> Result<(), Error> {
        if parts.is_single() {
            let body = parts.next()?.unwrap_or_default();
            return self.request(Method::PUT, "", body).await.map(drop);
        }
        let begun = self.request(Method::POST, "uploads=", Bytes::new()).await?;
        let id = self.element(&begun, "UploadId")?;
        let sent = self.send_parts(&id, parts).await;
        if sent.is_err() {
            // Otherwise its parts stay, and cost. If this fails, too, the first error says why.
            let query = format!("uploadId={}", encoded(&id));
            drop(self.request(Method::DELETE, &query, Bytes::new()).await);
        }
        sent
    }

    async fn send_parts(&self, id: &str, parts: &mut Parts) -> Result<(), Error> {
        let id = encoded(id);
        let mut list = String::new();
        let mut number = 0;
        while let Some(part) = parts.next()? {
            number += 1;
            let query = format!("partNumber={number}&uploadId={id}");
            let sent = self.request(Method::PUT, &query, part).await?;
            let tag = sent.headers().get("etag").and_then(|tag| tag.to_str().ok());
            let tag = tag.ok_or_else(|| self.unexpected("it has no ETag"))?;
            // Writing to a String never fails.
            let _ = write!(
                list,
                "<Part><PartNumber>{number}</PartNumber><ETag>{}</ETag></Part>",
                xml::escaped(tag)
            );
        }
        let list = format!("<CompleteMultipartUpload>{list}</CompleteMultipartUpload>");
        let query = format!("uploadId={id}");
        let completed = self.request(Method::POST, &query, list.into()).await?;
        // The status is sent before the object is put together, so an error may follow it.
        let body = String::from_utf8_lossy(completed.body());
        if body.contains("<Error>") {
            return Err(self.refused(StatusCode::OK, &body));
        }
        Ok(())
    }

    /// Sends a signed request, and returns a response that is a success.
    async fn request(
        &self,
        method: Method,
        query: &str,
        body: Bytes,
    ) -> Result<Response<Bytes>, Error> {
        let url = self.bucket.url(self.key);
        let separator = if query.is_empty() { "" } else { "?" };
        let url = format!("{url}{separator}{query}");
        // What the object is like is said once: when it is sent, or when its upload begins.
        let is_first = query.is_empty() || query == "uploads=";
        let build = || {
            let mut request = Request::builder().method(method.clone()).uri(&url);
            if is_first {
                for (name, value) in self.properties() {
                    request = request.header(name, value);
                }
            }
            let mut request = request.body(body.clone())?;
            let scope = Scope {
                region: &self.bucket.region,
                service: SERVICE,
                time: Timestamp::now(),
            };
            aws::sign(&mut request, &self.credentials, &scope)?;
            Ok(request)
        };
        let response = self.http.send(build).await;
        let response = response.map_err(|source| Error::Http {
            what: self.what(),
            source,
        })?;
        if response.status().is_success() {
            return Ok(response);
        }
        let body = String::from_utf8_lossy(response.body());
        Err(self.refused(response.status(), &body))
    }

    /// Headers that describe the object.
    fn properties(&self) -> Vec<(&'static str, &str)> {
        let mut headers = Vec::new();
        if let Some(key) = &self.bucket.kms_key {
            headers.push(("x-amz-server-side-encryption", "aws:kms"));
            headers.push(("x-amz-server-side-encryption-aws-kms-key-id", key));
        }
        if let Some(tags) = &self.bucket.tags {
            headers.push(("x-amz-tagging", tags));
        }
        headers
    }

    fn what(&self) -> String {
        format!("s3://{}/{}", self.bucket.name, self.key)
    }

    fn element(&self, response: &Response<Bytes>, name: &str) -> Result<String, Error> {
        let body = String::from_utf8_lossy(response.body());
        let found = xml::text(&body, name).filter(|text| !text.is_empty());
        found.ok_or_else(|| self.unexpected(&format!("it has no {name}")))
    }

    fn unexpected(&self, problem: &str) -> Error {
        Error::Response {
            what: self.what(),
            problem: problem.to_owned(),
        }
    }

    fn refused(&self, status: StatusCode, body: &str) -> Error {
        let text = |name| xml::text(body, name).unwrap_or_default();
        Error::Refused {
            what: self.what(),
            status: status.as_u16(),
            code: text("Code"),
            message: text("Message"),
        }
    }
}
