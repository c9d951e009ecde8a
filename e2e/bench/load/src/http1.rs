//! A small blocking HTTP/1.1 client: one connection, one request at a time, nothing between the clock and the socket.

mod head;

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::ops::ControlFlow;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use rustls::pki_types::ServerName;
use rustls::{ClientConnection, StreamOwned};

use crate::body::Pattern;
use crate::tls;
use crate::wire::Target;
use head::{Framing, Head};

/// How long a peer may be silent in the middle of a response.
const SILENCE: Duration = Duration::from_secs(30);
/// The buffer of a connection that is there to be fast.
pub const LARGE: usize = 64 * 1024;
/// The buffer of one that is only held.
pub const SMALL: usize = 4 * 1024;

/// An open connection.
#[derive(Debug)]
pub struct Connection {
    stream: Stream,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
}

#[derive(Debug)]
enum Stream {
    Plain(TcpStream),
    Tls(Box<StreamOwned<ClientConnection, TcpStream>>),
}

// === impl Stream ===

impl Stream {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        match self {
            Self::Plain(stream) => stream.read(into),
            Self::Tls(stream) => stream.read(into),
        }
    }

    fn write_all(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        match self {
            Self::Plain(stream) => stream.write_all(bytes),
            Self::Tls(stream) => stream.write_all(bytes).and_then(|()| stream.flush()),
        }
    }
}

// === impl Connection ===

impl Connection {
    /// Connects; with TLS where the target has credentials.
    pub fn open(target: &Target, buffer: usize) -> Result<Self> {
        let address = target.address;
        let stream =
            TcpStream::connect(address).with_context(|| format!("cannot connect to {address}"))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(SILENCE))?;
        let stream = match &target.credentials {
            None => Stream::Plain(stream),
            Some(credentials) => {
                let name = ServerName::from(address.ip());
                let session = ClientConnection::new(tls::client(&credentials.authority)?, name)
                    .context("cannot begin a TLS session")?;
                Stream::Tls(Box::new(StreamOwned::new(session, stream)))
            }
        };
        Ok(Self {
            stream,
            buffer: vec![0; buffer],
            start: 0,
            end: 0,
        })
    }

    /// Sends a request and compares the response's body.
    pub fn call(&mut self, request: &[u8], expected: &Pattern) -> Result<()> {
        let mut comparison = expected.compare();
        self.send(request)?;
        self.response(|piece| comparison.feed(piece).map(ControlFlow::Continue))?;
        comparison.end()
    }

    /// Sends a request.
    pub fn send(&mut self, request: &[u8]) -> Result<()> {
        self.stream
            .write_all(request)
            .context("cannot send the request")
    }

    /// Reads a response with status 200 and hands its body to `sink` as it arrives, until the end or until `sink` has
    /// had enough. After the latter the connection cannot be used for another request.
    pub fn response(&mut self, sink: impl FnMut(&[u8]) -> Result<ControlFlow<()>>) -> Result<()> {
        let head = self.head()?;
        if head.status != 200 {
            let start = String::from_utf8_lossy(self.filled()).into_owned();
            bail!("the response is {} instead of 200: {start}", head.status);
        }
        match head.framing {
            Framing::Length(length) => self.sized(length, sink).map(drop),
            Framing::Chunked => self.chunked(sink),
        }
    }

    fn filled(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    /// Reads more bytes behind those that are there.
    fn fill(&mut self) -> Result<()> {
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        } else if self.end == self.buffer.len() {
            self.buffer.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
        if self.end == self.buffer.len() {
            bail!(
                "a header or a chunk's size is longer than {} bytes",
                self.buffer.len()
            );
        }
        loop {
            match self.stream.read(&mut self.buffer[self.end..]) {
                Ok(0) => bail!("the connection ended in the middle of a response"),
                Ok(count) => {
                    self.end += count;
                    return Ok(());
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error)
                    if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) =>
                {
                    bail!("nothing arrived for {} s", SILENCE.as_secs())
                }
                Err(error) => return Err(error).context("failed to read the response"),
            }
        }
    }

    /// Reads up to and with `end`; gives how many bytes that is.
    fn until(&mut self, end: &[u8]) -> Result<usize> {
        loop {
            if let Some(at) = self
                .filled()
                .windows(end.len())
                .position(|window| window == end)
            {
                return Ok(at + end.len());
            }
            self.fill()?;
        }
    }

    fn head(&mut self) -> Result<Head> {
        let length = self.until(b"\r\n\r\n")?;
        let head = Head::parse(&self.filled()[..length])?;
        self.start += length;
        Ok(head)
    }

    /// Hands over `length` bytes.
    fn sized(
        &mut self,
        mut length: u64,
        mut sink: impl FnMut(&[u8]) -> Result<ControlFlow<()>>,
    ) -> Result<ControlFlow<()>> {
        while length > 0 {
            if self.start == self.end {
                self.fill()?;
            }
            let count = usize::try_from(length)
                .unwrap_or(usize::MAX)
                .min(self.end - self.start);
            let piece = &self.buffer[self.start..self.start + count];
            self.start += count;
            length -= count as u64;
            if sink(piece)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    fn chunked(&mut self, mut sink: impl FnMut(&[u8]) -> Result<ControlFlow<()>>) -> Result<()> {
        loop {
            let line = self.until(b"\r\n")?;
            let size = head::chunk_size(&self.filled()[..line])?;
            self.start += line;
            if size == 0 {
                return self.trailer();
            }
            if self.sized(size, &mut sink)?.is_break() {
                return Ok(());
            }
            self.line_end()?;
        }
    }

    /// The line's end behind a chunk.
    fn line_end(&mut self) -> Result<()> {
        if self.until(b"\r\n")? != 2 {
            bail!("a chunk is longer than its size says");
        }
        self.start += 2;
        Ok(())
    }

    /// The lines behind the last chunk, up to an empty one.
    fn trailer(&mut self) -> Result<()> {
        loop {
            let line = self.until(b"\r\n")?;
            self.start += line;
            if line == 2 {
                return Ok(());
            }
        }
    }
}

#[cfg(test)]
mod tests;
