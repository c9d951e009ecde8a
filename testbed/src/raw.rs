//! An HTTP client that adds nothing, retries nothing and hides nothing: for tests that look at every byte.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use bytes::{Bytes, BytesMut};
use http::{HeaderMap, HeaderValue, Request, StatusCode, header};
use http_body_util::BodyExt;
use kube::client::Body;
use rustls::pki_types::{CertificateDer, pem::PemObject};

/// How long a server may take to accept a connection.
const CONNECT_WITHIN: Duration = Duration::from_secs(5);

/// One server, as one user or as none.
#[derive(Clone)]
pub struct RawClient {
    client: kube::Client,
    server: String,
    authorization: Option<HeaderValue>,
}

/// A response whose body has not been read yet. Dropping it closes its connection.
#[derive(Debug)]
pub struct Response {
    /// The status code.
    pub status: StatusCode,
    /// The headers, as received.
    pub headers: HeaderMap,
    body: Body,
}

/// The lines of a response that is still being sent.
#[derive(Debug)]
pub struct Lines {
    response: Response,
    buffer: BytesMut,
}

// === impl RawClient ===

impl std::fmt::Debug for RawClient {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Without the credentials.
        f.debug_struct("RawClient")
            .field("server", &self.server)
            .finish_non_exhaustive()
    }
}

impl RawClient {
    /// The server at the URL `server`; with TLS, its certificate is of `authority`.
    pub fn new(server: &str, authority: Option<&Path>) -> Result<Self> {
        let url = server
            .parse()
            .with_context(|| format!("{server:?} is not a URL"))?;
        let mut config = kube::Config::new(url);
        config.default_retry = false;
        config.connect_timeout = Some(CONNECT_WITHIN);
        config.root_cert = authority.map(certificate).transpose()?.map(|one| vec![one]);
        let client = kube::Client::try_from(config)
            .with_context(|| format!("cannot make a client of {server}"))?;
        Ok(Self {
            client,
            server: server.to_owned(),
            authorization: None,
        })
    }

    /// The same server with a bearer token in each request.
    pub fn with_token(&self, token: &str) -> Result<Self> {
        let mut value = HeaderValue::try_from(format!("Bearer {token}"))
            .context("the token does not fit into a header")?;
        value.set_sensitive(true);
        Ok(Self {
            authorization: Some(value),
            ..self.clone()
        })
    }

    /// The server's URL.
    pub fn server(&self) -> &str {
        &self.server
    }

    /// Sends a request once.
    pub async fn send(&self, mut request: Request<Vec<u8>>) -> Result<Response> {
        let context = format!("{} {} at {}", request.method(), request.uri(), self.server);
        if let Some(authorization) = &self.authorization {
            let headers = request.headers_mut();
            headers.insert(header::AUTHORIZATION, authorization.clone());
        }
        let response = self.client.send(request.map(Body::from)).await;
        let (parts, body) = response.context(context)?.into_parts();
        Ok(Response {
            status: parts.status,
            headers: parts.headers,
            body,
        })
    }

    /// Sends a GET request.
    pub async fn get(&self, path: &str) -> Result<Response> {
        let request = Request::get(path)
            .body(Vec::new())
            .with_context(|| format!("{path:?} is not a path"))?;
        self.send(request).await
    }
}

// === impl Response ===

impl Response {
    /// The next piece of the body; nothing at its end. A body that is cut off is an error.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>> {
        while let Some(frame) = self.body.frame().await {
            let frame =
                frame.map_err(|error| anyhow::anyhow!("the response was truncated: {error}"))?;
            if let Ok(data) = frame.into_data() {
                return Ok(Some(data));
            }
        }
        Ok(None)
    }

    /// The whole body.
    pub async fn bytes(mut self) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        while let Some(chunk) = self.chunk().await? {
            bytes.extend_from_slice(&chunk);
        }
        Ok(bytes)
    }

    /// The body line by line, as it arrives.
    pub fn lines(self) -> Lines {
        Lines {
            response: self,
            buffer: BytesMut::new(),
        }
    }
}

// === impl Lines ===

impl Lines {
    /// The next line with its end; nothing when the body has ended. A body that is cut off is an error.
    pub async fn next(&mut self) -> Result<Option<Bytes>> {
        let mut searched = 0;
        loop {
            let end = self.buffer[searched..]
                .iter()
                .position(|&byte| byte == b'\n');
            if let Some(end) = end {
                return Ok(Some(self.buffer.split_to(searched + end + 1).freeze()));
            }
            searched = self.buffer.len();
            match self.response.chunk().await? {
                Some(chunk) => self.buffer.extend_from_slice(&chunk),
                None => return Ok(None),
            }
        }
    }

    /// What has come of a line that has not ended.
    pub fn unfinished(&self) -> &[u8] {
        &self.buffer
    }
}

/// The first certificate of a PEM file.
pub(crate) fn certificate(path: &Path) -> Result<Vec<u8>> {
    let certificate = CertificateDer::from_pem_file(path)
        .with_context(|| format!("no certificate in {}", path.display()))?;
    Ok(certificate.to_vec())
}
