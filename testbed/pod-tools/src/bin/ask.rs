//! `ask URL`: polls a server on plain HTTP, and prints a line whenever its responses change.
//!
//! After SIGTERM, it continues for a while, as a controller does that has work in hand, and fails if it is then left without
//! responses. Its result is in the container's termination message.

use std::process::ExitCode;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::{Instant, sleep, timeout};

/// Between two questions.
const INTERVAL: Duration = Duration::from_millis(100);
/// For one response.
const PATIENCE: Duration = Duration::from_secs(2);
/// How long it continues after SIGTERM.
const LAST_WORK: Duration = Duration::from_secs(3);
/// Where Kubernetes reads a container's termination message.
const TERMINATION_MESSAGE: &str = "/dev/termination-log";

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let url = std::env::args().nth(1).unwrap_or_default();
    let Some((address, path)) = parse(&url) else {
        eprintln!("usage: ask http://ADDRESS:PORT/PATH");
        return ExitCode::from(64);
    };
    match run(address, path).await {
        Ok(0) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// The address and the path of a URL.
fn parse(url: &str) -> Option<(&str, &str)> {
    let rest = url.strip_prefix("http://")?;
    Some(rest.split_at(rest.find('/')?))
}

/// Polls until the end; returns how often there was no response after SIGTERM.
async fn run(address: &str, path: &str) -> std::io::Result<u32> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut known = String::new();
    let mut end = None;
    let (mut responses, mut failures) = (0_u32, 0_u32);
    while end.is_none_or(|end| Instant::now() < end) {
        let (line, good) = match ask(address, path).await {
            Ok(status) => (format!("answered {status}"), status == "200"),
            Err(error) => (format!("failed: {error}"), false),
        };
        if end.is_some() {
            responses += u32::from(good);
            failures += u32::from(!good);
        }
        if line != known {
            println!("{line}");
            known = line;
        }
        tokio::select! {
            () = sleep(INTERVAL) => {}
            _ = terminate.recv() => end = Some(Instant::now() + LAST_WORK),
        }
    }
    let message = format!("{responses} responses and {failures} failures after the signal");
    println!("{message}");
    std::fs::write(TERMINATION_MESSAGE, message)?;
    Ok(failures)
}

/// The status code of one response.
async fn ask(address: &str, path: &str) -> std::io::Result<String> {
    let exchange = async {
        let mut stream = TcpStream::connect(address).await?;
        let request =
            format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await?;
        let mut response = String::new();
        stream.read_to_string(&mut response).await?;
        let status = response.split(' ').nth(1).unwrap_or("nothing");
        Ok(status.to_owned())
    };
    match timeout(PATIENCE, exchange).await {
        Ok(outcome) => outcome,
        Err(_) => Err(std::io::Error::other("no response in time")),
    }
}
