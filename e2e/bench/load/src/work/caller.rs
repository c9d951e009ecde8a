//! Requests with the names that a target expects, and their expected responses.

use std::ops::ControlFlow;

use anyhow::Result;

use crate::body::Pattern;
use crate::fixture::Fixture;
use crate::http1::{Connection, LARGE};
use crate::upstream::read_token;
use crate::wire::{Call, Target};

/// One connection that repeats one call.
#[derive(Debug)]
pub(super) struct Caller {
    connection: Connection,
    request: Vec<u8>,
    expected: Pattern,
}

// === impl Caller ===

impl Caller {
    /// Connects.
    pub(super) fn open(target: &Target, call: Call) -> Result<Self> {
        let fixture = Fixture::new(target.spelling);
        Ok(Self {
            connection: Connection::open(target, LARGE)?,
            request: request(target, &fixture, call)?,
            expected: fixture.response(call),
        })
    }

    /// Sends the request and compares the response.
    pub(super) fn call(&mut self) -> Result<()> {
        self.connection.call(&self.request, &self.expected)
    }
}

/// Fails unless a GET of `path` returns 200.
pub(super) fn succeeds(target: &Target, path: &str) -> Result<()> {
    let mut connection = Connection::open(target, LARGE)?;
    connection.send(get(target, path)?.as_bytes())?;
    connection.response(|_| Ok(ControlFlow::Continue(())))
}

/// The text of a GET.
pub(super) fn get(target: &Target, path_and_query: &str) -> Result<String> {
    Ok(format!("{}\r\n", head(target, "GET", path_and_query)?))
}

fn request(target: &Target, fixture: &Fixture, call: Call) -> Result<Vec<u8>> {
    let text = match call {
        Call::Get => get(target, &fixture.machine_path())?,
        Call::List { bytes } => get(
            target,
            &format!("{}?limit={}", fixture.machines(), Fixture::items_of(bytes)),
        )?,
        Call::Patch => {
            let body = fixture.patch();
            let head = head(target, "PATCH", &fixture.machine_path())?;
            let types = "Content-Type: application/merge-patch+json\r\n";
            let mut text =
                format!("{head}{types}Content-Length: {}\r\n\r\n", body.len()).into_bytes();
            text.extend_from_slice(&body);
            return Ok(text);
        }
    };
    Ok(text.into_bytes())
}

/// A request's first lines, as the managers send them, without the empty line.
fn head(target: &Target, method: &str, path_and_query: &str) -> Result<String> {
    let authorization = match &target.credentials {
        Some(credentials) => format!(
            "Authorization: Bearer {}\r\n",
            read_token(&credentials.token)?
        ),
        None => String::new(),
    };
    Ok(format!(
        "{method} {path_and_query} HTTP/1.1\r\nHost: {}\r\nUser-Agent: manager/v1.13.4 (linux/amd64)\r\n\
         Accept: application/json, */*\r\n{authorization}",
        target.address
    ))
}
