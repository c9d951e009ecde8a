//! `curl --insecure --fail [--silent] [--max-time SECONDS] [--output FILE] URL`: whether a GET over HTTPS is a success.
//!
//! Readiness checks of components call it. The certificate of the server is not verified, and the body is dropped.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use pod_tools::tls;
use rustls::ClientConfig;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{WebPkiSupportedAlgorithms, aws_lc_rs};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{DigitallySignedStruct, SignatureScheme};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

/// For one request.
const PATIENCE: Duration = Duration::from_secs(4);

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    tls::install_provider();
    let url = std::env::args().next_back().unwrap_or_default();
    let outcome = timeout(PATIENCE, status(&url)).await;
    match outcome {
        Ok(Ok(status)) if status.starts_with('2') => ExitCode::SUCCESS,
        Ok(Ok(status)) => failed(&url, &format!("answered {status}")),
        Ok(Err(error)) => failed(&url, &error.to_string()),
        Err(_) => failed(&url, "no answer in time"),
    }
}

fn failed(url: &str, reason: &str) -> ExitCode {
    eprintln!("curl: {url}: {reason}");
    // As the real program with --fail.
    ExitCode::from(22)
}

/// The status code of a GET.
async fn status(url: &str) -> std::io::Result<String> {
    let (host, port, path) =
        parts(url).ok_or_else(|| std::io::Error::other("expected https://HOST[:PORT]/PATH"))?;
    let stream = TcpStream::connect((host, port)).await?;
    let name = ServerName::try_from(host.to_owned()).map_err(std::io::Error::other)?;
    let mut stream = TlsConnector::from(client()).connect(name, stream).await?;
    let request = format!("GET {path} HTTP/1.0\r\nHost: {host}\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut line = [0; 64];
    let read = stream.read(&mut line).await?;
    let line = String::from_utf8_lossy(&line[..read]);
    Ok(line.split(' ').nth(1).unwrap_or_default().to_owned())
}

/// Host, port and path of an https URL.
fn parts(url: &str) -> Option<(&str, u16, &str)> {
    let rest = url.strip_prefix("https://")?;
    let (authority, path) = rest.split_at(rest.find('/')?);
    match authority.rsplit_once(':') {
        Some((host, port)) => Some((host, port.parse().ok()?, path)),
        None => Some((authority, 443, path)),
    }
}

fn client() -> Arc<ClientConfig> {
    let algorithms = aws_lc_rs::default_provider().signature_verification_algorithms;
    let config = ClientConfig::builder()
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Unverified(algorithms)))
        .with_no_client_auth();
    Arc::new(config)
}

/// Accepts every certificate.
#[derive(Debug)]
struct Unverified(WebPkiSupportedAlgorithms);

impl ServerCertVerifier for Unverified {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        rustls::crypto::verify_tls12_signature(message, certificate, signed, &self.0)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        rustls::crypto::verify_tls13_signature(message, certificate, signed, &self.0)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_parsed() {
        for (url, expected) in [
            (
                "https://kube-apiserver:6443/livez",
                Some(("kube-apiserver", 6443, "/livez")),
            ),
            ("https://api.test/x/y", Some(("api.test", 443, "/x/y"))),
            ("http://api.test/", None),
            ("https://api.test", None),
        ] {
            assert_eq!(parts(url), expected, "{url}");
        }
    }
}
