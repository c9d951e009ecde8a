//! Azure Blob Storage: uploads of one block blob.

#[cfg(test)]
mod tests;

use std::fmt::Write as _;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::{HeaderValue, Request, Response, StatusCode, header};
use support::azure::Source;
use support::rest::TokenSource as _;
use support::xml;

use super::parts::Parts;
use super::{Error, Http, encoded, encoded_path};

/// Size of a block, in bytes.
const BLOCK: u64 = 4 << 20;
/// The most blocks of a blob that Azure accepts.
const MOST_BLOCKS: u64 = 50_000;
/// What tokens are for.
pub(crate) const SCOPE: &str = "https://storage.azure.com/.default";
/// The version of the API.
const VERSION: &str = "2023-11-03";

/// Where a blob is stored, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Container {
    pub(crate) account: String,
    pub(crate) name: String,
    /// The encryption scope; none for the default of the container.
    pub(crate) encryption_scope: Option<String>,
}

/// An upload to a container.
pub(super) struct Upload<'a> {
    pub(super) http: &'a Http,
    pub(super) container: &'a Container,
    /// URL of the account.
    pub(super) endpoint: &'a str,
    pub(super) token: &'a str,
    pub(super) key: &'a str,
}

/// Uploads a file and returns the URL of the blob. A blob that exists is not replaced.
pub(crate) async fn upload(
    http: &Http,
    container: &Container,
    source: &Source,
    file: &Path,
    key: &str,
) -> Result<String, Error> {
    let mut parts = Parts::open(file, BLOCK, MOST_BLOCKS)?;
    let endpoint = format!("https://{}.blob.core.windows.net", container.account);
    let token = source.load(http).await?.value;
    let upload = Upload {
        http,
        container,
        endpoint: &endpoint,
        token: &token,
        key,
    };
    upload.send(&mut parts).await?;
    Ok(upload.url())
}

// === impl Upload ===

impl Upload<'_> {
    pub(super) fn url(&self) -> String {
        let (endpoint, container) = (self.endpoint, &self.container.name);
        format!("{endpoint}/{container}/{}", encoded_path(self.key))
    }

    /// Sends the blocks and then their list, which makes them a blob. Without the list, Azure drops them after a week.
    pub(super) async fn send(&self, parts: &mut Parts) -> Result<(), Error> {
        let mut list = String::new();
        let mut number = 0;
        while let Some(block) = parts.next()? {
            // Identifiers of one blob have the same length.
            let id = STANDARD.encode(format!("{number:08}"));
            let query = format!("comp=block&blockid={}", encoded(&id));
            self.put(&query, block, None).await?;
            // Writing to a String never fails.
            let _ = write!(list, "<Latest>{id}</Latest>");
            number += 1;
        }
        let list =
            format!("<?xml version=\"1.0\" encoding=\"utf-8\"?><BlockList>{list}</BlockList>");
        let is_new = (header::IF_NONE_MATCH, HeaderValue::from_static("*"));
        self.put("comp=blocklist", list.into(), Some(is_new)).await
    }

    async fn put(
        &self,
        query: &str,
        body: Bytes,
        condition: Option<(header::HeaderName, HeaderValue)>,
    ) -> Result<(), Error> {
        let url = format!("{}?{query}", self.url());
        let build = || {
            let mut authorization = HeaderValue::try_from(format!("Bearer {}", self.token))?;
            authorization.set_sensitive(true);
            let mut request = Request::put(&url)
                .header(header::AUTHORIZATION, authorization)
                .header("x-ms-version", VERSION);
            if let Some(scope) = &self.container.encryption_scope {
                request = request.header("x-ms-encryption-scope", scope);
            }
            if let Some((name, value)) = &condition {
                request = request.header(name, value);
            }
            request.body(body.clone())
        };
        let response = self.http.send(build).await;
        let response = response.map_err(|source| Error::Http {
            what: self.url(),
            source,
        })?;
        if response.status() == StatusCode::CREATED {
            return Ok(());
        }
        Err(refused(self.url(), &response))
    }
}

/// The error of a response of the store.
fn refused(what: String, response: &Response<Bytes>) -> Error {
    let body = String::from_utf8_lossy(response.body());
    let text = |name| xml::text(&body, name).unwrap_or_default();
    let message = text("Message");
    Error::Refused {
        what,
        status: response.status().as_u16(),
        code: text("Code"),
        // The other lines have identifiers of the request.
        message: message.lines().next().unwrap_or_default().to_owned(),
    }
}
