//! Reads from the API server with the pod's own account.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use pod_tools::tls;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

/// For one request.
const PATIENCE: Duration = Duration::from_secs(10);
const ACCOUNT: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
const SERVER: &str = "kubernetes.default.svc";

/// The object at a path.
pub(crate) async fn get(path: &str) -> Result<Value, String> {
    let text = text_of(path).await?;
    serde_json::from_str(&text).map_err(|error| format!("{path}: {error}"))
}

/// The text at a path.
pub(crate) async fn text_of(path: &str) -> Result<String, String> {
    match timeout(PATIENCE, exchange(path)).await {
        Ok(outcome) => outcome.map_err(|error| format!("{path}: {error}")),
        Err(_) => Err(format!("{path}: no answer in time")),
    }
}

async fn exchange(path: &str) -> Result<String, String> {
    let token = std::fs::read_to_string(format!("{ACCOUNT}/token")).map_err(text)?;
    let stream = TcpStream::connect((SERVER, 443)).await.map_err(text)?;
    let name = ServerName::try_from(SERVER).map_err(text)?;
    let connector = TlsConnector::from(client()?);
    let mut stream = connector.connect(name, stream).await.map_err(text)?;
    // Version 1.0, so that the response is not sent in pieces.
    let request =
        format!("GET {path} HTTP/1.0\r\nHost: {SERVER}\r\nAuthorization: Bearer {token}\r\n\r\n");
    stream.write_all(request.as_bytes()).await.map_err(text)?;
    let mut said = Vec::new();
    if let Err(error) = stream.read_to_end(&mut said).await
        && said.is_empty()
    {
        return Err(text(error));
    }
    let end = said.windows(4).position(|end| end == b"\r\n\r\n");
    let end = end.ok_or("the answer has no end of its head")?;
    let head = String::from_utf8_lossy(&said[..end]);
    if head.split(' ').nth(1) != Some("200") {
        return Err(head.lines().next().unwrap_or_default().to_owned());
    }
    Ok(String::from_utf8_lossy(&said[end + 4..]).into_owned())
}

fn client() -> Result<Arc<ClientConfig>, String> {
    let mut roots = RootCertStore::empty();
    let path = format!("{ACCOUNT}/ca.crt");
    for root in tls::certificates(Path::new(&path)).map_err(text)? {
        roots.add(root).map_err(text)?;
    }
    let config = ClientConfig::builder()
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(Arc::new(config))
}

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}
