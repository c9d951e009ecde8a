//! An API server on a socket that can fall silent: one reply for each request, each on a connection of its own.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// What a connection gets for its request.
#[derive(Debug, Clone)]
pub enum Reply {
    /// The request is read, and no byte comes back: packets are dropped after the request has left.
    Never,
    /// The head of an answer and the beginning of its body, and no more.
    Head,
    /// 200 with this object.
    Json(Value),
}

/// The server. It ends when this is dropped.
#[derive(Debug)]
pub struct TcpServer {
    url: String,
    connections: Arc<AtomicUsize>,
    serving: JoinHandle<()>,
}

// === impl TcpServer ===

impl TcpServer {
    /// Serves these replies in their order; later connections get the last one again.
    pub async fn start(replies: impl IntoIterator<Item = Reply>) -> Self {
        let replies: Vec<Reply> = replies.into_iter().collect();
        let listener = TcpListener::bind("127.0.0.1:0").await;
        let listener = listener.expect("invariant: loopback has free ports");
        let address = listener.local_addr();
        let address = address.expect("invariant: the listener is bound");
        let connections = Arc::new(AtomicUsize::new(0));
        Self {
            url: format!("http://{address}"),
            connections: Arc::clone(&connections),
            serving: tokio::spawn(serve(listener, replies, connections)),
        }
    }

    /// Where it listens.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Connections that were opened so far.
    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }
}

impl Drop for TcpServer {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn serve(listener: TcpListener, replies: Vec<Reply>, connections: Arc<AtomicUsize>) {
    // Open connections stay open, and silent.
    let mut open = Vec::new();
    while let Ok((mut stream, _)) = listener.accept().await {
        let number = connections.fetch_add(1, Ordering::SeqCst);
        let Some(reply) = replies.get(number).or(replies.last()) else {
            return;
        };
        if reply_to(&mut stream, reply).await.is_ok() {
            open.push(stream);
        }
    }
}

async fn reply_to(stream: &mut TcpStream, reply: &Reply) -> std::io::Result<()> {
    // One read is enough: requests of tests are small and arrive in one piece.
    let mut request = [0; 16 * 1024];
    if stream.read(&mut request).await? == 0 {
        return Ok(());
    }
    let text = match reply {
        Reply::Never => return Ok(()),
        Reply::Head => head(1000) + "{",
        Reply::Json(object) => {
            let body = object.to_string();
            head(body.len()) + &body
        }
    };
    stream.write_all(text.as_bytes()).await
}

fn head(length: usize) -> String {
    format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n"
    )
}
