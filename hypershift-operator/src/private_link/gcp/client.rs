//! The client of Google Cloud, with the credentials of this operator.

use support::google_cloud::Credentials;
use support::rest;

/// The client.
pub(super) type Client = rest::Client<Credentials>;

/// A client with the credentials of the environment: a file, or those of the machine.
pub(super) fn connect() -> Result<Client, rest::Error> {
    Ok(rest::Client::new(Credentials::find(&variable)?))
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}
