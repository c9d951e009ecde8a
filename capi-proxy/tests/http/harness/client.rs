//! A client that sends raw bytes and parses responses strictly.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UnixStream};
use tokio::time::timeout;

use super::{Proxy, TIMEOUT};

/// One connection.
pub(crate) struct Client {
    stream: Stream,
    buffer: Vec<u8>,
}

enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

/// A response, whole or only its head.
#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

/// Sends a request on its own connection.
pub(crate) async fn get(proxy: &Proxy, path: &str) -> Response {
    proxy.connect().await.get(path).await
}

// === impl Client ===

impl Client {
    pub(crate) async fn connect(address: &str) -> Self {
        if let Some(path) = address.strip_prefix("unix:") {
            let stream = UnixStream::connect(path).await.unwrap();
            return Self {
                stream: Stream::Unix(stream),
                buffer: Vec::new(),
            };
        }
        Self::try_connect(address).await.expect("a listener")
    }

    /// A connection over TCP, if it is accepted.
    pub(crate) async fn try_connect(address: &str) -> Option<Self> {
        let stream = TcpStream::connect(address).await.ok()?;
        stream.set_nodelay(true).ok()?;
        Some(Self {
            stream: Stream::Tcp(stream),
            buffer: Vec::new(),
        })
    }

    /// Sends bytes. A peer that does not read them is not a failure here.
    pub(crate) async fn send(&mut self, bytes: impl AsRef<[u8]>) {
        let bytes = bytes.as_ref();
        let _ = match &mut self.stream {
            Stream::Tcp(stream) => stream.write_all(bytes).await,
            Stream::Unix(stream) => stream.write_all(bytes).await,
        };
    }

    /// Sends a request without a body.
    pub(crate) async fn ask(&mut self, path: &str) {
        self.send(format!(
            "GET {path} HTTP/1.1\r\nhost: localhost\r\naccept: application/json\r\n\r\n"
        ))
        .await;
    }

    /// Sends a request without a body, reads the response.
    pub(crate) async fn get(&mut self, path: &str) -> Response {
        self.ask(path).await;
        self.response().await
    }

    /// Sends a request with a body, and the headers `more`, each with its line end; reads the response.
    pub(crate) async fn write(
        &mut self,
        method: &str,
        path: &str,
        more: &str,
        body: &[u8],
    ) -> Response {
        let length = body.len();
        self.send(format!(
            "{method} {path} HTTP/1.1\r\nhost: localhost\r\n{more}content-length: {length}\r\n\r\n"
        ))
        .await;
        self.send(body).await;
        self.response().await
    }

    /// Creates an object.
    pub(crate) async fn post(&mut self, path: &str, body: &str) -> Response {
        self.write(
            "POST",
            path,
            "content-type: application/json\r\n",
            body.as_bytes(),
        )
        .await
    }

    /// Reads a whole response.
    pub(crate) async fn response(&mut self) -> Response {
        let mut response = self.head().await;
        response.body = self.body(&response).await.expect("a whole body");
        response
    }

    /// Reads the head of a response.
    pub(crate) async fn head(&mut self) -> Response {
        let head = self.try_head().await;
        head.unwrap_or_else(|| {
            panic!(
                "no response, but {:?}",
                String::from_utf8_lossy(&self.buffer)
            )
        })
    }

    /// Reads the head of a response, if one arrives.
    pub(crate) async fn try_head(&mut self) -> Option<Response> {
        let end = loop {
            if let Some(end) = self
                .buffer
                .windows(4)
                .position(|window| window == b"\r\n\r\n")
            {
                break end + 4;
            }
            if !self.more().await {
                return None;
            }
        };
        let head = String::from_utf8(self.buffer.drain(..end).collect()).unwrap();
        let mut lines = head.split("\r\n");
        let status = lines
            .next()
            .unwrap()
            .split(' ')
            .nth(1)
            .unwrap()
            .parse()
            .unwrap();
        let headers = lines.filter_map(|line| line.split_once(": "));
        let headers = headers
            .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
            .collect();
        Some(Response {
            status,
            headers,
            body: Vec::new(),
        })
    }

    /// Reads the body behind `head`; `None` when it is cut.
    pub(crate) async fn body(&mut self, head: &Response) -> Option<Vec<u8>> {
        if let Some(length) = head.header("content-length") {
            let length = length.parse().unwrap();
            while self.buffer.len() < length {
                if !self.more().await {
                    return None;
                }
            }
            return Some(self.buffer.drain(..length).collect());
        }
        let mut body = Vec::new();
        if head.header("transfer-encoding") != Some("chunked") {
            return Some(body);
        }
        loop {
            let chunk = self.chunk().await?;
            if chunk.is_empty() {
                return Some(body);
            }
            body.extend(chunk);
        }
    }

    /// Reads a chunk; an empty one is the end, and `None` a cut.
    pub(crate) async fn chunk(&mut self) -> Option<Vec<u8>> {
        let end = loop {
            if let Some(end) = self.buffer.windows(2).position(|window| window == b"\r\n") {
                break end;
            }
            if !self.more().await {
                return None;
            }
        };
        let size =
            usize::from_str_radix(std::str::from_utf8(&self.buffer[..end]).unwrap(), 16).unwrap();
        while self.buffer.len() < end + 2 + size + 2 {
            if !self.more().await {
                return None;
            }
        }
        let chunk = self.buffer[end + 2..end + 2 + size].to_vec();
        self.buffer.drain(..end + 2 + size + 2);
        Some(chunk)
    }

    /// Reads chunks until `count` lines are there.
    pub(crate) async fn lines(&mut self, count: usize) -> String {
        let mut text = String::new();
        while text.matches('\n').count() < count {
            let chunk = self.chunk().await.expect("the stream continues");
            assert!(!chunk.is_empty(), "the stream ended after {text:?}");
            text.push_str(std::str::from_utf8(&chunk).unwrap());
        }
        text
    }

    /// Waits for the end of the connection; returns what was received before.
    pub(crate) async fn end(&mut self) -> Vec<u8> {
        while self.more().await {}
        std::mem::take(&mut self.buffer)
    }

    /// Reads exactly that many bytes.
    pub(crate) async fn exactly(&mut self, count: usize) -> Vec<u8> {
        while self.buffer.len() < count {
            assert!(self.more().await, "the connection ended");
        }
        self.buffer.drain(..count).collect()
    }

    /// Whether nothing is received for a short time.
    pub(crate) async fn is_silent(&mut self, time: Duration) -> bool {
        self.buffer.is_empty() && timeout(time, self.more()).await.is_err()
    }

    /// Reads more; false at the end of the connection, however it ends.
    async fn more(&mut self) -> bool {
        let read = match &mut self.stream {
            Stream::Tcp(stream) => timeout(TIMEOUT, stream.read_buf(&mut self.buffer)).await,
            Stream::Unix(stream) => timeout(TIMEOUT, stream.read_buf(&mut self.buffer)).await,
        };
        matches!(read.expect("a response in time"), Ok(1..))
    }
}

// === impl Response ===

impl Response {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(found, _)| found == name)
            .map(|(_, value)| value.as_str())
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.body.clone()).unwrap()
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    /// That it is an error of this code which a Kubernetes client understands; its message.
    #[track_caller]
    pub(crate) fn refusal(&self, code: u16) -> String {
        assert_eq!(self.status, code, "{}", String::from_utf8_lossy(&self.body));
        let status = self.json();
        assert_eq!(
            (&status["kind"], &status["apiVersion"]),
            (&"Status".into(), &"v1".into())
        );
        assert_eq!(
            (&status["status"], &status["code"]),
            (&"Failure".into(), &code.into())
        );
        status["message"].as_str().unwrap().to_owned()
    }
}
