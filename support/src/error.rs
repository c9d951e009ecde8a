//! How a program ends: exit codes, and an error with its causes on one line.

use std::error::Error;
use std::fmt::Write as _;

/// Exit code for a command line or configuration that must be changed.
pub const USAGE: u8 = 64;
/// Exit code for everything else.
pub const RUNTIME: u8 = 1;

/// An error with its causes, on one line.
pub fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        if let Some(kube::Error::Api(status)) = error.downcast_ref() {
            // What the API server said; the client would add the whole status to it.
            let _ = write!(text, ": {} ({})", status.message, status.code);
            break;
        }
        let message = error.to_string();
        // Wrappers often repeat their cause.
        if !text.ends_with(&message) {
            let _ = write!(text, ": {message}");
        }
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("cannot read the lease")]
    struct Outer(#[source] std::fmt::Error);

    #[derive(Debug, thiserror::Error)]
    #[error("cannot list machines")]
    struct Denied(#[source] kube::Error);

    #[test]
    fn the_servers_own_words_are_enough() {
        let status = kube::core::Status::failure("machines is forbidden", "Forbidden");
        let error = Denied(kube::Error::Api(Box::new(status.with_code(403))));
        assert_eq!(
            chain(&error),
            "cannot list machines: machines is forbidden (403)"
        );
    }

    #[test]
    fn causes_follow_what_they_cause() {
        let text = chain(&Outer(std::fmt::Error));
        assert!(text.starts_with("cannot read the lease: "), "{text}");
    }
}
