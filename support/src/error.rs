//! Exit codes of programs, and errors with their causes on one line.

use std::error::Error;
use std::fmt::Write as _;

/// Exit code for a usage error: the command line or the configuration must change.
pub const USAGE: u8 = 64;
/// Exit code for all other errors.
pub const RUNTIME: u8 = 1;

/// An error with its causes, on one line.
pub fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        #[cfg(feature = "kube")]
        if let Some(kube::Error::Api(status)) = error.downcast_ref() {
            // The message of the API server; the client would add the whole status to it.
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
    #[error("failed to get Lease")]
    struct Outer(#[source] std::fmt::Error);

    #[cfg(feature = "kube")]
    #[derive(Debug, thiserror::Error)]
    #[error("failed to list machines")]
    struct Denied(#[source] kube::Error);

    #[cfg(feature = "kube")]
    #[test]
    fn api_errors_show_the_message_of_the_server() {
        let status = kube::core::Status::failure("machines is forbidden", "Forbidden");
        let error = Denied(kube::Error::Api(Box::new(status.with_code(403))));
        assert_eq!(
            chain(&error),
            "failed to list machines: machines is forbidden (403)"
        );
    }

    #[test]
    fn causes_follow_the_error() {
        let text = chain(&Outer(std::fmt::Error));
        assert!(text.starts_with("failed to get Lease: "), "{text}");
    }
}
