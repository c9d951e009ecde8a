//! Fetching another document over HTTPS, once.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::{CertificateDer, ServerName, pem::PemObject};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use crate::document::Reference;

/// For one attempt.
const PATIENCE: Duration = Duration::from_secs(30);
/// What is accepted, as Ignition says it.
const ACCEPT: &str = "application/vnd.coreos.ignition+json;version=3.2.0, */*;q=0.1";

/// The body of a response that is a success. The reason of a failure names no header, which may be a token.
pub(crate) async fn get(reference: &Reference, authorities: &[Vec<u8>]) -> Result<Vec<u8>, String> {
    let source = &reference.source;
    match timeout(PATIENCE, exchange(reference, authorities)).await {
        Ok(outcome) => outcome.map_err(|error| format!("{source}: {error}")),
        Err(_) => Err(format!("{source}: no answer in time")),
    }
}

async fn exchange(reference: &Reference, authorities: &[Vec<u8>]) -> Result<Vec<u8>, String> {
    let (host, port, path) = parts(&reference.source)?;
    let stream = TcpStream::connect((host, port)).await.map_err(text)?;
    let name = ServerName::try_from(host.to_owned()).map_err(text)?;
    let connector = TlsConnector::from(client(authorities)?);
    let mut stream = connector.connect(name, stream).await.map_err(text)?;
    // Version 1.0, so that the response is not sent in pieces.
    let mut request = format!("GET {path} HTTP/1.0\r\nHost: {host}\r\nAccept: {ACCEPT}\r\n");
    for header in &reference.http_headers {
        let value = header.value.as_deref().unwrap_or_default();
        let _ = write!(request, "{}: {value}\r\n", header.name);
    }
    request.push_str("\r\n");
    stream.write_all(request.as_bytes()).await.map_err(text)?;
    let mut response = Vec::new();
    match stream.read_to_end(&mut response).await {
        Ok(_) => {}
        // Many a server closes without a word.
        Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => {}
        Err(error) => return Err(text(error)),
    }
    body(&response).map(<[u8]>::to_vec)
}

/// Host, port and path of an https URL.
fn parts(url: &str) -> Result<(&str, u16, &str), String> {
    let rest = url
        .strip_prefix("https://")
        .ok_or("only https is understood")?;
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let path = if path.is_empty() { "/" } else { path };
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) => (host, port.parse().map_err(text)?),
        None => (authority, 443),
    };
    Ok((host, port, path))
}

fn client(authorities: &[Vec<u8>]) -> Result<Arc<ClientConfig>, String> {
    let mut roots = RootCertStore::empty();
    for pem in authorities {
        for certificate in CertificateDer::pem_slice_iter(pem) {
            roots.add(certificate.map_err(text)?).map_err(text)?;
        }
    }
    let config = ClientConfig::builder()
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(Arc::new(config))
}

fn body(response: &[u8]) -> Result<&[u8], String> {
    let end = response
        .windows(4)
        .position(|end| end == b"\r\n\r\n")
        .ok_or("the answer has no end of its head")?;
    let head = String::from_utf8_lossy(&response[..end]).into_owned();
    let status = head.lines().next().unwrap_or_default().to_owned();
    if status.split(' ').nth(1) != Some("200") {
        return Err(format!("answered {status:?}"));
    }
    Ok(&response[end + 4..])
}

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_parsed() {
        for (url, expected) in [
            ("https://i.test/ignition", ("i.test", 443, "/ignition")),
            ("https://192.0.2.1:30443/x/y", ("192.0.2.1", 30443, "/x/y")),
            ("https://i.test", ("i.test", 443, "/")),
        ] {
            assert_eq!(parts(url).unwrap(), expected);
        }
        assert!(parts("http://i.test/").is_err());
    }

    #[test]
    fn only_success_has_a_body() {
        assert_eq!(body(b"HTTP/1.1 200 OK\r\nA: b\r\n\r\n{}").unwrap(), b"{}");
        let error = body(b"HTTP/1.1 511 Network Authentication Required\r\n\r\n");
        assert!(error.unwrap_err().contains("511"));
    }
}
