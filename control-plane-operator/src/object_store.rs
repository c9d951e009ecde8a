//! Object stores that backups are uploaded to: S3 and Azure Blob Storage, over their HTTP APIs.
//!
//! ```text
//! file ──> parts ──> Http: sign or authorize, send, retry ──> S3 | Azure Blob Storage
//! ```
//!
//! [`parts`] decides without I/O, signatures are those of [`support::aws`], and tokens of [`support::azure`]. Nothing here deletes an object, and an
//! upload becomes visible as a whole or not at all.

pub(crate) mod azure;
mod parts;
pub(crate) mod s3;

use std::path::Path;

use jiff::Timestamp;
use support::aws::encoded;
use support::aws::s3::encoded_path;
use support::{aws, outbound, rest};

pub(crate) use support::aws::Variable;
pub(crate) use support::outbound::Http;

/// An upload failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("failed to read {path}")]
    File {
        path: String,
        source: std::io::Error,
    },
    #[error("failed to send {what}")]
    Http {
        what: String,
        source: outbound::Error,
    },
    /// The store refused a request. The message is that of the store.
    #[error("failed to send {what}: {status} {code}: {message}. {}", hint(*.status, .code))]
    Refused {
        what: String,
        status: u16,
        code: String,
        message: String,
    },
    #[error("failed to read the response of {what}: {problem}")]
    Response { what: String, problem: String },
    /// The credentials cannot be used.
    #[error("failed to find credentials: {0}")]
    Credentials(String),
    #[error(transparent)]
    Aws(#[from] aws::Error),
}

impl From<rest::Error> for Error {
    fn from(error: rest::Error) -> Self {
        match error {
            rest::Error::Http { what, source } => Self::Http { what, source },
            rest::Error::Refused {
                what,
                status,
                code,
                message,
            } => Self::Refused {
                what,
                status,
                code,
                message,
            },
            rest::Error::Response { what, problem } => Self::Response { what, problem },
            rest::Error::Credentials(problem) => Self::Credentials(problem),
        }
    }
}

/// What to do about a refusal.
fn hint(status: u16, code: &str) -> &'static str {
    match (status, code) {
        (_, "PermanentRedirect" | "AuthorizationHeaderMalformed") => {
            "Check that the region is that of the bucket"
        }
        (_, "NoSuchBucket" | "ContainerNotFound") => "Check the name of the bucket or container",
        (_, "BlobAlreadyExists") => "Choose another prefix",
        (400 | 401 | 403, _) => {
            "Check the credentials and their permissions: writing objects, and using the encryption key"
        }
        (429 | 500.., _) => "The store is overloaded or unavailable: try again",
        _ => "Check the flags for the store",
    }
}

/// The key of a snapshot: `<prefix>/<seconds since 1970><extension of the file>`.
pub(crate) fn key(prefix: &str, file: &Path, now: Timestamp) -> String {
    let extension = file.extension().unwrap_or_default().to_string_lossy();
    let dot = if extension.is_empty() { "" } else { "." };
    let prefix = prefix.trim_end_matches('/');
    format!("{prefix}/{}{dot}{extension}", now.as_second())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_have_the_time_and_the_extension() {
        let now = Timestamp::from_second(1_700_000_000).unwrap();
        for (prefix, file, expected) in [
            ("backups/a", "/tmp/snapshot.db", "backups/a/1700000000.db"),
            ("backups/a/", "snapshot.db.gz", "backups/a/1700000000.gz"),
            ("a", "/tmp/snapshot", "a/1700000000"),
        ] {
            assert_eq!(key(prefix, Path::new(file), now), expected);
        }
    }
}
