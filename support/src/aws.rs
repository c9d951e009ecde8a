//! What requests to services of AWS have in common: credentials, signatures, endpoints, errors.
//!
//! [`signature`] and the profiles of files decide without I/O; [`credentials`] reads files, and asks the token service.

pub mod credentials;
mod profile;
pub mod query;
pub mod signature;

use http::StatusCode;

use crate::outbound;
use crate::xml;

pub use credentials::Source;
pub use query::{Query, Signer};
pub use signature::{Credentials, Scope, sign};

/// A variable of the environment.
pub type Variable<'a> = &'a dyn Fn(&str) -> Option<String>;

/// A request failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file cannot be read.
    #[error("failed to read {path}")]
    File {
        /// Which file.
        path: String,
        /// Why.
        source: std::io::Error,
    },
    /// No response arrived.
    #[error("failed to send {what}")]
    Http {
        /// The request.
        what: String,
        /// Why.
        source: outbound::Error,
    },
    /// The service refused a request. The message is that of the service.
    #[error("failed to send {what}: {status} {code}: {message}. {}", hint(*.status))]
    Refused {
        /// The request.
        what: String,
        /// The status of the response.
        status: u16,
        /// The code of the error.
        code: String,
        /// What the service says.
        message: String,
    },
    /// The response has no use.
    #[error("failed to read the response of {what}: {problem}")]
    Response {
        /// The request.
        what: String,
        /// What is wrong with the response.
        problem: String,
    },
    /// The credentials cannot be used.
    #[error("failed to find credentials: {0}")]
    Credentials(String),
}

/// What to do about a refusal.
fn hint(status: u16) -> &'static str {
    match status {
        400 | 401 | 403 => "Check the credentials and their permissions",
        429 | 500.. => "The service is overloaded or unavailable: try again",
        _ => "Check the region and the endpoint",
    }
}

/// The URL of a service in the environment, if it is not AWS.
pub fn endpoint(service: &str, variable: Variable<'_>) -> Option<String> {
    let names = [
        format!("AWS_ENDPOINT_URL_{}", service.to_uppercase()),
        "AWS_ENDPOINT_URL".to_owned(),
    ];
    let found = names.iter().find_map(|name| variable(name));
    found.map(|url| url.trim_end_matches('/').to_owned())
}

/// The domain of AWS in a region.
pub fn domain(region: &str) -> &'static str {
    match region {
        region if region.starts_with("cn-") => "amazonaws.com.cn",
        region if region.starts_with("us-isob-") => "sc2s.sgov.gov",
        region if region.starts_with("us-iso-") => "c2s.ic.gov",
        _ => "amazonaws.com",
    }
}

/// Whether a text may be a region: it becomes a part of a host name.
pub fn is_region(text: &str) -> bool {
    let mut bytes = text.bytes();
    !text.is_empty() && bytes.all(|it| it.is_ascii_lowercase() || it.is_ascii_digit() || it == b'-')
}

/// The error of a response.
pub fn refused(what: String, status: StatusCode, body: &str) -> Error {
    let text = |name| xml::text(body, name).unwrap_or_default();
    Error::Refused {
        what,
        status: status.as_u16(),
        code: text("Code"),
        message: text("Message"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoints_of_the_environment_replace_those_of_aws() {
        let both = |name: &str| match name {
            "AWS_ENDPOINT_URL" => Some("http://127.0.0.1:1/".to_owned()),
            "AWS_ENDPOINT_URL_EC2" => Some("http://127.0.0.1:2".to_owned()),
            _ => None,
        };
        for (service, expected) in [("ec2", "http://127.0.0.1:2"), ("sts", "http://127.0.0.1:1")] {
            assert_eq!(endpoint(service, &both).as_deref(), Some(expected));
        }
        assert_eq!(endpoint("ec2", &|_| None), None);
    }

    #[test]
    fn regions_are_labels_of_host_names() {
        for (region, expected) in [
            ("eu-west-1", true),
            ("", false),
            ("a.example.com/", false),
            ("EU-WEST-1", false),
        ] {
            assert_eq!(is_region(region), expected, "{region}");
        }
    }

    #[test]
    fn a_refusal_says_what_the_service_says_and_what_to_do() {
        let body = "<Response><Errors><Error><Code>UnauthorizedOperation</Code><Message>no</Message></Error></Errors></Response>";
        let error = refused(
            "DescribeInstanceTypes".to_owned(),
            StatusCode::FORBIDDEN,
            body,
        );
        assert_eq!(
            error.to_string(),
            "failed to send DescribeInstanceTypes: 403 UnauthorizedOperation: no. \
             Check the credentials and their permissions"
        );
    }
}
