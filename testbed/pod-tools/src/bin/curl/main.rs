//! `curl [OPTION...] https://HOST[:PORT]/PATH`: one request, with those options of the real program that scripts of
//! components and of the hosted cluster use.
//!
//! Readiness checks of components call it, and the connection checker. Failures have the real program's exit status.

mod args;
mod unverified;

use std::io::{Error, Result, Write as _};
use std::process::ExitCode;
use std::sync::Arc;

use args::{Args, Target};
use pod_tools::tls;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

/// Exit status: the command line is wrong.
const USAGE: u8 = 2;
/// Exit status: there is no connection.
const NOT_CONNECTED: u8 = 7;
/// Exit status: the server says that it has failed, and `--fail` is given.
const FAILED: u8 = 22;
/// Exit status: time is over.
const TIMED_OUT: u8 = 28;
/// What is printed as the status of a request without an answer.
const NO_STATUS: &str = "000";

/// An answer.
struct Answer {
    status: String,
    body: Vec<u8>,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    tls::install_provider();
    let args = match Args::parse(std::env::args().skip(1)) {
        Ok(args) => args,
        Err(error) => {
            eprintln!("curl: {error}");
            return ExitCode::from(USAGE);
        }
    };
    let outcome = match timeout(args.max_time, exchange(&args)).await {
        Ok(Ok(answer)) => report(&args, &answer),
        Ok(Err(error)) => Err((NOT_CONNECTED, error.to_string())),
        Err(_) => Err((TIMED_OUT, "no answer in time".to_owned())),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err((status, problem)) => {
            if status != FAILED {
                print!("{}", args.summary(NO_STATUS));
            }
            if !args.is_silent {
                eprintln!("curl: {}: {problem}", args.target);
            }
            ExitCode::from(status)
        }
    }
}

/// Writes what was answered to where the options say.
fn report(args: &Args, answer: &Answer) -> std::result::Result<(), (u8, String)> {
    let Answer { status, body } = answer;
    let is_success = status.starts_with(['2', '3']);
    if is_success || !args.must_succeed {
        let written = match &args.output {
            Some(path) => std::fs::write(path, body),
            None => std::io::stdout().write_all(body),
        };
        written.map_err(|error| (NOT_CONNECTED, error.to_string()))?;
    }
    print!("{}", args.summary(status));
    if args.must_succeed && !is_success {
        return Err((FAILED, format!("answered {status}")));
    }
    Ok(())
}

async fn exchange(args: &Args) -> Result<Answer> {
    let Target { host, port, .. } = &args.target;
    let connecting = TcpStream::connect((host.as_str(), *port));
    let stream = timeout(args.connect_timeout, connecting)
        .await
        .map_err(|_| Error::other("no connection in time"))??;
    let name = ServerName::try_from(host.clone()).map_err(Error::other)?;
    let connector = TlsConnector::from(client(args)?);
    let mut stream = connector.connect(name, stream).await?;
    stream.write_all(args.request().as_bytes()).await?;
    let mut said = Vec::new();
    match stream.read_to_end(&mut said).await {
        // Many a server closes without a word.
        Err(error) if said.is_empty() => return Err(error),
        Ok(_) | Err(_) => {}
    }
    answer(&said).ok_or_else(|| Error::other("this is no answer of HTTP"))
}

fn client(args: &Args) -> Result<Arc<ClientConfig>> {
    if args.is_insecure {
        return Ok(unverified::client());
    }
    let mut roots = RootCertStore::empty();
    if let Some(path) = &args.authority {
        for root in tls::certificates(path)? {
            roots.add(root).map_err(Error::other)?;
        }
    }
    let config = ClientConfig::builder()
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(Arc::new(config))
}

/// Reads status and body.
fn answer(said: &[u8]) -> Option<Answer> {
    let end = said.windows(4).position(|end| end == b"\r\n\r\n")?;
    let head = String::from_utf8_lossy(&said[..end]);
    let status = head.split(' ').nth(1)?.to_owned();
    let body = said[end + 4..].to_vec();
    Some(Answer { status, body })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn status_and_body_of_an_answer_are_read() {
        let found = answer(b"HTTP/1.1 503 Service Unavailable\r\nA: b\r\n\r\nno\r\n\r\n").unwrap();
        assert_eq!(found.status, "503");
        assert_eq!(found.body, b"no\r\n\r\n");
        assert!(answer(b"HTTP/1.1 200 OK\r\n").is_none());
    }
}
