//! A client of D-Bus: as much of the protocol as calls with strings and their responses need.
//!
//! The format of messages is that of the D-Bus specification, version 0.38. Messages are little-endian, as all programs of
//! a node send them.

use std::collections::VecDeque;
use std::io;
use std::os::unix::fs::MetadataExt as _;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

use crate::hex;

/// The largest message that is read. Those of systemd have some hundred bytes.
const LARGEST_MESSAGE: usize = 1 << 20;
/// The longest line of the authentication.
const LONGEST_LINE: usize = 512;
/// The most signals that wait for a reader.
const MOST_SIGNALS: usize = 1024;
/// The part of a header before its fields.
const FIXED_HEADER: usize = 16;
const LITTLE_ENDIAN: u8 = b'l';
const VERSION: u8 = 1;

// Fields of a header.
const PATH: u8 = 1;
const INTERFACE: u8 = 2;
const MEMBER: u8 = 3;
const ERROR_NAME: u8 = 4;
const REPLY_SERIAL: u8 = 5;
const DESTINATION: u8 = 6;
const SENDER: u8 = 7;
const SIGNATURE: u8 = 8;

/// A connection to a bus.
pub(super) struct Connection<S> {
    stream: S,
    serial: u32,
    /// Signals that arrived while a response was awaited.
    signals: VecDeque<Message>,
}

/// A method call whose arguments are strings.
#[derive(Debug, Clone, Copy)]
pub(super) struct Call<'a> {
    pub(super) destination: &'a str,
    pub(super) path: &'a str,
    pub(super) interface: &'a str,
    pub(super) member: &'a str,
    pub(super) arguments: &'a [&'a str],
}

/// What a message is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Call,
    Response,
    Error,
    Signal,
}

/// A message that was received.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Message {
    pub(super) kind: Kind,
    pub(super) serial: u32,
    pub(super) reply_serial: u32,
    pub(super) member: String,
    pub(super) sender: String,
    /// Types of the body.
    pub(super) signature: String,
    error_name: String,
    body: Vec<u8>,
}

/// The connection failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    #[error("the connection failed")]
    Io(#[from] io::Error),
    #[error("the bus does not accept this user")]
    Rejected,
    #[error("{member} failed with {name}: {text}")]
    Call {
        member: String,
        name: String,
        text: String,
    },
    #[error("a message is malformed: {0}")]
    Malformed(&'static str),
}

/// Reads values in order; each is aligned to its size.
#[derive(Debug)]
pub(super) struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

/// Writes values in order.
#[derive(Debug, Default)]
struct Writer(Vec<u8>);

// === impl Connection ===

impl<S: AsyncRead + AsyncWrite + Unpin> Connection<S> {
    /// Authenticates as the user of this process, and registers at the bus.
    pub(super) async fn open(mut stream: S) -> Result<Self, Error> {
        let user = std::fs::metadata("/proc/self")?.uid().to_string();
        let user = hex::encode(user.as_bytes());
        let request = format!("\0AUTH EXTERNAL {user}\r\n");
        stream.write_all(request.as_bytes()).await?;
        if !line(&mut stream).await?.starts_with("OK ") {
            return Err(Error::Rejected);
        }
        stream.write_all(b"BEGIN\r\n").await?;
        let mut connection = Self {
            stream,
            serial: 0,
            signals: VecDeque::new(),
        };
        let hello = Call {
            destination: "org.freedesktop.DBus",
            path: "/org/freedesktop/DBus",
            interface: "org.freedesktop.DBus",
            member: "Hello",
            arguments: &[],
        };
        connection.call(&hello).await?;
        Ok(connection)
    }

    /// Calls a method and returns its response.
    pub(super) async fn call(&mut self, call: &Call<'_>) -> Result<Message, Error> {
        self.serial += 1;
        self.stream.write_all(&call.encode(self.serial)).await?;
        self.stream.flush().await?;
        loop {
            let message = self.receive().await?;
            match message.kind {
                Kind::Signal if self.signals.len() < MOST_SIGNALS => {
                    self.signals.push_back(message);
                }
                Kind::Response if message.reply_serial == self.serial => return Ok(message),
                Kind::Error if message.reply_serial == self.serial => {
                    let text = if message.signature.starts_with('s') {
                        message.body().string()?
                    } else {
                        String::new()
                    };
                    return Err(Error::Call {
                        member: call.member.to_owned(),
                        name: message.error_name,
                        text,
                    });
                }
                Kind::Signal | Kind::Response | Kind::Error | Kind::Call => {}
            }
        }
    }

    /// The next signal.
    pub(super) async fn signal(&mut self) -> Result<Message, Error> {
        if let Some(signal) = self.signals.pop_front() {
            return Ok(signal);
        }
        loop {
            let message = self.receive().await?;
            if message.kind == Kind::Signal {
                return Ok(message);
            }
        }
    }

    /// The next message.
    pub(super) async fn receive(&mut self) -> Result<Message, Error> {
        let mut bytes = vec![0; FIXED_HEADER];
        self.stream.read_exact(&mut bytes).await?;
        let rest = Message::rest(&bytes)?;
        bytes.resize(FIXED_HEADER + rest, 0);
        self.stream.read_exact(&mut bytes[FIXED_HEADER..]).await?;
        Message::decode(&bytes)
    }

    /// Sends bytes as they are.
    #[cfg(test)]
    pub(super) async fn send(&mut self, bytes: &[u8]) -> Result<(), Error> {
        Ok(self.stream.write_all(bytes).await?)
    }
}

async fn line<S: AsyncRead + Unpin>(stream: &mut S) -> Result<String, Error> {
    let mut line = Vec::new();
    while !line.ends_with(b"\r\n") {
        if line.len() == LONGEST_LINE {
            return Err(Error::Malformed("a line of the authentication is too long"));
        }
        line.push(stream.read_u8().await?);
    }
    String::from_utf8(line).map_err(|_| Error::Malformed("the authentication is not text"))
}

// === impl Call ===

impl Call<'_> {
    /// The message.
    pub(super) fn encode(&self, serial: u32) -> Vec<u8> {
        let mut body = Writer::default();
        for argument in self.arguments {
            body.string(argument);
        }
        let types = "s".repeat(self.arguments.len());
        let fields = [
            (PATH, 'o', self.path),
            (INTERFACE, 's', self.interface),
            (MEMBER, 's', self.member),
            (DESTINATION, 's', self.destination),
            (SIGNATURE, 'g', types.as_str()),
        ];
        encode(Kind::Call, serial, &fields, None, &body.0)
    }
}

/// A message with these fields.
pub(super) fn encode(
    kind: Kind,
    serial: u32,
    fields: &[(u8, char, &str)],
    reply_serial: Option<u32>,
    body: &[u8],
) -> Vec<u8> {
    let mut writer = Writer::default();
    writer.0.extend([LITTLE_ENDIAN, kind.code(), 0, VERSION]);
    writer.number(length(body.len()));
    writer.number(serial);
    // The length of the fields is known at the end.
    writer.number(0);
    for (code, type_, value) in fields.iter().filter(|(_, _, value)| !value.is_empty()) {
        writer.field(*code, *type_);
        match type_ {
            'g' => writer.signature(value),
            _ => writer.string(value),
        }
    }
    if let Some(serial) = reply_serial {
        writer.field(REPLY_SERIAL, 'u');
        writer.number(serial);
    }
    let end = length(writer.0.len() - FIXED_HEADER);
    writer.0[12..FIXED_HEADER].copy_from_slice(&end.to_le_bytes());
    writer.align(8);
    writer.0.extend_from_slice(body);
    writer.0
}

/// A length in a message.
fn length(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}

// === impl Kind ===

impl Kind {
    fn code(self) -> u8 {
        match self {
            Self::Call => 1,
            Self::Response => 2,
            Self::Error => 3,
            Self::Signal => 4,
        }
    }

    fn of(code: u8) -> Result<Self, Error> {
        match code {
            1 => Ok(Self::Call),
            2 => Ok(Self::Response),
            3 => Ok(Self::Error),
            4 => Ok(Self::Signal),
            _ => Err(Error::Malformed("unknown kind")),
        }
    }
}

// === impl Message ===

impl Message {
    /// How many bytes follow the first part of a header.
    fn rest(header: &[u8]) -> Result<usize, Error> {
        let mut reader = Reader {
            bytes: header,
            at: 4,
        };
        if header[0] != LITTLE_ENDIAN {
            return Err(Error::Malformed("it is not little-endian"));
        }
        let body = reader.number()? as usize;
        reader.number()?;
        let fields = reader.number()? as usize;
        if body > LARGEST_MESSAGE || fields > LARGEST_MESSAGE {
            return Err(Error::Malformed("it is too large"));
        }
        Ok(fields.next_multiple_of(8) + body)
    }

    /// Reads a whole message.
    pub(super) fn decode(bytes: &[u8]) -> Result<Self, Error> {
        let mut reader = Reader { bytes, at: 4 };
        reader.number()?;
        let serial = reader.number()?;
        let end = FIXED_HEADER + reader.number()? as usize;
        let mut message = Self {
            kind: Kind::of(bytes[1])?,
            serial,
            reply_serial: 0,
            member: String::new(),
            sender: String::new(),
            signature: String::new(),
            error_name: String::new(),
            body: Vec::new(),
        };
        while reader.at < end {
            reader.align(8);
            let code = reader.byte()?;
            match (code, reader.signature()?.as_str()) {
                (MEMBER, "s") => message.member = reader.string()?,
                (SENDER, "s") => message.sender = reader.string()?,
                (ERROR_NAME, "s") => message.error_name = reader.string()?,
                (SIGNATURE, "g") => message.signature = reader.signature()?,
                (REPLY_SERIAL, "u") => message.reply_serial = reader.number()?,
                (_, "u") => drop(reader.number()?),
                (_, "s" | "o") => drop(reader.string()?),
                (_, "g") => drop(reader.signature()?),
                _ => return Err(Error::Malformed("unknown type of a field")),
            }
        }
        reader.align(8);
        let body = bytes.get(reader.at..);
        message.body = body.ok_or(Error::Malformed("it ends early"))?.to_vec();
        Ok(message)
    }

    /// Reads its body.
    pub(super) fn body(&self) -> Reader<'_> {
        Reader {
            bytes: &self.body,
            at: 0,
        }
    }
}

// === impl Reader ===

impl<'a> Reader<'a> {
    fn align(&mut self, to: usize) {
        self.at = self.at.next_multiple_of(to);
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], Error> {
        let end = self.at.checked_add(length);
        let taken = end.and_then(|end| self.bytes.get(self.at..end));
        let taken = taken.ok_or(Error::Malformed("it ends early"))?;
        self.at += length;
        Ok(taken)
    }

    fn byte(&mut self) -> Result<u8, Error> {
        Ok(self.take(1)?[0])
    }

    /// A number of 32 bits.
    pub(super) fn number(&mut self) -> Result<u32, Error> {
        self.align(4);
        let mut bytes = [0; 4];
        bytes.copy_from_slice(self.take(4)?);
        Ok(u32::from_le_bytes(bytes))
    }

    /// A string, or the path of an object.
    pub(super) fn string(&mut self) -> Result<String, Error> {
        let length = self.number()? as usize;
        self.text(length)
    }

    fn signature(&mut self) -> Result<String, Error> {
        let length = self.byte()?;
        self.text(length.into())
    }

    fn text(&mut self, length: usize) -> Result<String, Error> {
        let text = std::str::from_utf8(self.take(length)?).map(str::to_owned);
        self.take(1)?;
        text.map_err(|_| Error::Malformed("a string is not UTF-8"))
    }
}

// === impl Writer ===

impl Writer {
    fn align(&mut self, to: usize) {
        self.0.resize(self.0.len().next_multiple_of(to), 0);
    }

    fn number(&mut self, number: u32) {
        self.align(4);
        self.0.extend(number.to_le_bytes());
    }

    fn string(&mut self, text: &str) {
        self.number(length(text.len()));
        self.0.extend(text.bytes());
        self.0.push(0);
    }

    fn signature(&mut self, text: &str) {
        self.0.push(u8::try_from(text.len()).unwrap_or(u8::MAX));
        self.0.extend(text.bytes());
        self.0.push(0);
    }

    /// The beginning of a field: its code and the type of its value.
    fn field(&mut self, code: u8, type_: char) {
        self.align(8);
        self.0.push(code);
        self.signature(&type_.to_string());
    }
}

/// The body of a message with these numbers and strings, for tests.
#[cfg(test)]
pub(super) fn body(number: Option<u32>, strings: &[&str]) -> Vec<u8> {
    let mut writer = Writer::default();
    if let Some(number) = number {
        writer.number(number);
    }
    for text in strings {
        writer.string(text);
    }
    writer.0
}
