//! HTTP CONNECT as a client, over a stream that is open already: the frontend protocol of konnectivity-server, and that
//! of HTTP proxies.

use std::io;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

/// Maximum size of the head of a response.
const MAX_HEAD: usize = 16 * 1024;
/// Maximum size of the text of a failure.
const MAX_TEXT: usize = 1024;
/// How long to wait for the rest of that text.
const TEXT_TIMEOUT: Duration = Duration::from_secs(1);
/// Characters of the text that are reported.
const SHOWN_TEXT: usize = 300;

/// A CONNECT request.
#[derive(Debug)]
pub(crate) struct Request {
    /// The target, `HOST:PORT`.
    pub(crate) target: String,
    /// Header `Host`.
    pub(crate) host: String,
    /// Header `Proxy-Authorization`.
    pub(crate) authorization: Option<Authorization>,
}

/// Credentials for a proxy. Their text is never shown.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Authorization(String);

/// A CONNECT request failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// The stream failed.
    #[error("the connection failed")]
    Io(#[from] io::Error),
    /// The stream ended.
    #[error("it closed the connection without a complete response")]
    Ended,
    /// The head of the response exceeds the limit.
    #[error("the head of its response exceeds {MAX_HEAD} bytes")]
    TooLarge,
    /// The response is not HTTP/1.
    #[error("it does not respond in HTTP/1")]
    Malformed,
    /// Bytes follow the head of the response, before anything was sent.
    #[error("it sent data together with the head of its response")]
    EarlyData,
    /// The request was refused.
    #[error("it responded with status {status}{text}")]
    Status {
        status: u16,
        /// The body: empty, or a colon and the first line.
        text: String,
    },
}

/// The head of a response, as far as it has arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Head {
    Incomplete,
    Complete {
        status: u16,
        /// Where the body begins.
        body: usize,
    },
}

/// Sends the request. After success the stream is connected to the target.
pub(crate) async fn connect<S>(stream: &mut S, request: &Request) -> Result<(), Error>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    stream.write_all(request.head().as_bytes()).await?;
    stream.flush().await?;
    let mut received = Vec::new();
    let (status, body) = loop {
        match parse(&received)? {
            Head::Complete { status, body } => break (status, body),
            Head::Incomplete => {}
        }
        if read(stream, &mut received).await? == 0 {
            return Err(Error::Ended);
        }
    };
    if status != 200 {
        let text = failure_text(stream, received.split_off(body)).await;
        return Err(Error::Status { status, text });
    }
    if received.len() > body {
        return Err(Error::EarlyData);
    }
    Ok(())
}

async fn read<S: AsyncRead + Unpin>(stream: &mut S, received: &mut Vec<u8>) -> io::Result<usize> {
    let mut chunk = [0; 2048];
    let length = stream.read(&mut chunk).await?;
    received.extend_from_slice(&chunk[..length]);
    Ok(length)
}

fn parse(received: &[u8]) -> Result<Head, Error> {
    let limited = &received[..received.len().min(MAX_HEAD)];
    let end = limited.windows(4).position(|bytes| bytes == b"\r\n\r\n");
    let Some(end) = end else {
        if received.len() >= MAX_HEAD {
            return Err(Error::TooLarge);
        }
        return Ok(Head::Incomplete);
    };
    Ok(Head::Complete {
        status: status(&received[..end]).ok_or(Error::Malformed)?,
        body: end + 4,
    })
}

/// The status of `HTTP/1.1 200 Connection Established`.
fn status(head: &[u8]) -> Option<u16> {
    let line = head.split(|byte| *byte == b'\r').next()?;
    let line = std::str::from_utf8(line).ok()?;
    let mut words = line.split(' ');
    let version = words.next()?.strip_prefix("HTTP/1.")?;
    let status = words.next()?;
    let is_number =
        |text: &str, length| text.len() == length && text.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number(version, 1) || !is_number(status, 3) {
        return None;
    }
    status.parse().ok()
}

/// Reads the body of a refusal, which has the cause. Servers close the connection after it, or send nothing more.
async fn failure_text<S: AsyncRead + Unpin>(stream: &mut S, mut body: Vec<u8>) -> String {
    let reading = async {
        while body.len() < MAX_TEXT {
            if !matches!(read(stream, &mut body).await, Ok(1..)) {
                break;
            }
        }
    };
    // What has arrived by then is enough.
    let _ = tokio::time::timeout(TEXT_TIMEOUT, reading).await;
    shown(&body)
}

fn shown(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    let line = text.trim_start().lines().next().unwrap_or_default();
    let line: String = line
        .chars()
        .filter(|c| !c.is_control())
        .take(SHOWN_TEXT)
        .collect();
    if line.is_empty() {
        return line;
    }
    format!(": {line}")
}

// === impl Request ===

impl Request {
    fn head(&self) -> String {
        let Self {
            target,
            host,
            authorization,
        } = self;
        let mut head = format!("CONNECT {target} HTTP/1.1\r\nHost: {host}\r\n");
        if let Some(Authorization(value)) = authorization {
            head += "Proxy-Authorization: ";
            head += value;
            head += "\r\n";
        }
        head + "\r\n"
    }
}

// === impl Authorization ===

impl Authorization {
    /// The value of a header `Proxy-Authorization`, which has no line breaks.
    pub(crate) fn new(value: String) -> Self {
        Self(value)
    }

    /// The value.
    pub(crate) fn value(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Debug for Authorization {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Authorization")
    }
}

// === impl Error ===

impl Error {
    /// The status of a refusal.
    pub(crate) fn status(&self) -> Option<u16> {
        match self {
            Self::Status { status, .. } => Some(*status),
            Self::Io(_) | Self::Ended | Self::TooLarge | Self::Malformed | Self::EarlyData => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tokio::io::duplex;

    use super::*;

    fn request() -> Request {
        Request {
            target: "10.0.0.1:443".to_owned(),
            host: "quay.io".to_owned(),
            authorization: None,
        }
    }

    /// Sends a request to a server that responds with these pieces and closes the connection.
    async fn exchange(pieces: &[&[u8]]) -> (Result<(), Error>, String) {
        let (mut client, mut server) = duplex(64 * 1024);
        let serve = async move {
            let mut asked = Vec::new();
            while !asked.ends_with(b"\r\n\r\n") {
                asked.push(server.read_u8().await.unwrap());
            }
            for piece in pieces {
                // A client that has seen enough closes the connection.
                let _ = server.write_all(piece).await;
                tokio::task::yield_now().await;
            }
            String::from_utf8(asked).unwrap()
        };
        let asking = async {
            let result = connect(&mut client, &request()).await;
            drop(client);
            result
        };
        tokio::join!(asking, serve)
    }

    fn shown_result(result: &Result<(), Error>) -> String {
        match result {
            Ok(()) => "connected".to_owned(),
            Err(error) => error.to_string(),
        }
    }

    #[tokio::test]
    async fn responses_are_understood() {
        const OK: &str = "HTTP/1.1 200 Connection Established\r\n\r\n";
        let long = format!("HTTP/1.1 200 OK\r\nX: {}\r\n\r\n", "a".repeat(MAX_HEAD));
        let fits = "a".repeat(MAX_HEAD - "HTTP/1.1 200 OK\r\nX: \r\n\r\n".len());
        let fits = format!("HTTP/1.1 200 OK\r\nX: {fits}\r\n\r\n");
        for (response, expected) in [
            (OK, "connected"),
            ("HTTP/1.0 200 OK\r\nVia: a\r\n\r\n", "connected"),
            ("HTTP/1.1 200\r\n\r\n", "connected"),
            (&fits, "connected"),
            (&long, "the head of its response exceeds 16384 bytes"),
            (
                "HTTP/1.1 200 OK\r\n\r\nSSH-2.0-x\r\n",
                "it sent data together with the head of its response",
            ),
            (
                "HTTP/1.1 405 Method Not Allowed\r\n\r\nthis proxy only supports CONNECT\n",
                "it responded with status 405: this proxy only supports CONNECT",
            ),
            (
                "HTTP/1.1 500 Internal Server Error\r\n\r\ncurrently no tunnels available: none",
                "it responded with status 500: currently no tunnels available: none",
            ),
            (
                "HTTP/1.1 502 Bad Gateway\r\n\r\n\r\nconnection\x1b refused\r\nsecond",
                "it responded with status 502: connection refused",
            ),
            (
                "HTTP/1.1 504 Gateway Timeout\r\nContent-Length: 0\r\n\r\n",
                "it responded with status 504",
            ),
            (
                "HTTP/1.1 204 No Content\r\n\r\n",
                "it responded with status 204",
            ),
            (
                "HTTP/1.1 200 OK\r\n",
                "it closed the connection without a complete response",
            ),
            ("", "it closed the connection without a complete response"),
            ("HTTP/2 200 OK\r\n\r\n", "it does not respond in HTTP/1"),
            ("HTTP/1.1 2x0 OK\r\n\r\n", "it does not respond in HTTP/1"),
            ("HTTP/1.1 +20 OK\r\n\r\n", "it does not respond in HTTP/1"),
            ("\r\n\r\n", "it does not respond in HTTP/1"),
            ("\u{16}\u{3}\u{1}\r\n\r\n", "it does not respond in HTTP/1"),
        ] {
            let (result, asked) = exchange(&[response.as_bytes()]).await;
            assert_eq!(shown_result(&result), expected, "{response:.60}");
            assert_eq!(
                asked,
                "CONNECT 10.0.0.1:443 HTTP/1.1\r\nHost: quay.io\r\n\r\n"
            );
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_text_of_a_refusal_is_not_awaited_for_long() {
        let (mut client, mut server) = duplex(1024);
        server
            .write_all(b"HTTP/1.1 502 Bad Gateway\r\n\r\nrefu")
            .await
            .unwrap();
        let begun = tokio::time::Instant::now();
        let error = connect(&mut client, &request()).await.unwrap_err();
        assert_eq!(error.to_string(), "it responded with status 502: refu");
        assert_eq!(begun.elapsed(), TEXT_TIMEOUT);
    }

    #[tokio::test]
    async fn endless_texts_are_cut() {
        let text = "a".repeat(100 * MAX_TEXT);
        let response = format!("HTTP/1.1 502 Bad Gateway\r\n\r\n{text}");
        let mut stream = tokio::io::join(response.as_bytes(), tokio::io::sink());
        let error = connect(&mut stream, &request()).await.unwrap_err();
        assert!(error.to_string().len() < 2 * SHOWN_TEXT);
    }

    #[test]
    fn credentials_are_sent_and_not_shown() {
        let request = Request {
            authorization: Some(Authorization::new("Basic c2VjcmV0".to_owned())),
            ..request()
        };
        let head = request.head();
        assert!(head.ends_with("\r\nProxy-Authorization: Basic c2VjcmV0\r\n\r\n"));
        assert!(!format!("{request:?}").contains("c2VjcmV0"));
    }

    proptest! {
        /// How a response is split does not matter.
        #[test]
        fn any_split_is_the_same_response(
            cut in prop::collection::vec(1_usize..40, 0..5),
            body in "[a-z]{0,20}",
            status in prop::sample::select(vec![200_u16, 500, 502]),
        ) {
            let response = format!("HTTP/1.1 {status} X\r\nA: b\r\n\r\n{body}");
            let mut rest = response.as_bytes();
            let mut pieces = Vec::new();
            for length in cut {
                let (piece, tail) = rest.split_at(length.min(rest.len()));
                pieces.push(piece);
                rest = tail;
            }
            pieces.push(rest);
            let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
            let (whole, _) = runtime.block_on(exchange(&[response.as_bytes()]));
            let (split, _) = runtime.block_on(exchange(&pieces));
            // Data after the head may arrive after the tunnel is established.
            if status != 200 || body.is_empty() {
                prop_assert_eq!(shown_result(&whole), shown_result(&split));
            }
        }

        /// Whatever a server sends is a response or an error.
        #[test]
        fn any_response_is_handled(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let _ = parse(&bytes);
            let _ = shown(&bytes);
        }
    }
}
