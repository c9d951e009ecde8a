//! What requests to services of AWS have in common: credentials, signatures, endpoints, errors.
//!
//! [`signature`] and the profiles of files decide without I/O; [`credentials`] reads files, and asks the token service.

mod client;
pub mod credentials;
mod element;
mod instance;
pub mod oidc;
mod profile;
pub mod query;
mod retry;
pub mod rsa;
pub mod s3;
mod service;
pub mod signature;

use std::fmt::Write as _;

use bytes::Bytes;
use http::{Response, StatusCode};

use crate::outbound;
use crate::xml;

pub use client::{Client, Rest};
pub use credentials::Source;
pub use element::Element;
pub use query::{Query, Signer};
pub use retry::{Retry, is_throttled};
pub use service::{EC2, ELB, ELB_V2, IAM, RAM, ROUTE53, S3, STS, Service};
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

// === impl Error ===

impl Error {
    /// The code of a refusal, such as `InvalidVpcID.NotFound`. Empty for other errors, and for a response without a body.
    pub fn code(&self) -> &str {
        match self {
            Self::Refused { code, .. } => code,
            _ => "",
        }
    }

    /// The status of a refusal.
    pub fn status(&self) -> Option<u16> {
        match self {
            Self::Refused { status, .. } => Some(*status),
            _ => None,
        }
    }

    /// Whether there were too many requests: this one had no effect.
    pub fn is_throttled(&self) -> bool {
        matches!(self, Self::Refused { status, code, .. } if *status == 429 || is_throttled(code))
    }

    /// Whether the request may have had its effect although no response says so.
    pub fn is_uncertain(&self) -> bool {
        match self {
            Self::Http { source, .. } => matches!(
                source,
                outbound::Error::Connection(_)
                    | outbound::Error::Body(_)
                    | outbound::Error::Timeout
            ),
            Self::Refused { status, .. } => *status >= 500 && !self.is_throttled(),
            _ => false,
        }
    }

    /// Whether credentials are invalid or lack a permission, which no repetition changes.
    pub fn is_denied(&self) -> bool {
        match self {
            Self::Credentials(_) | Self::File { .. } => true,
            Self::Refused { status, code, .. } => {
                *status == 401 || *status == 403 || DENIED.contains(&code.as_str())
            }
            _ => false,
        }
    }
}

/// Codes of refused credentials that have status 400.
const DENIED: [&str; 5] = [
    "ExpiredToken",
    "InvalidAccessKeyId",
    "InvalidClientTokenId",
    "OptInRequired",
    "UnauthorizedOperation",
];

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

/// A text as a part of a path or of a query, as signatures need it; a slash is encoded, too.
pub fn encoded(text: &str) -> String {
    text.bytes().fold(String::new(), |mut encoded, byte| {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            // Writing to a String never fails.
            let _ = write!(encoded, "%{byte:02X}");
        }
        encoded
    })
}

/// The partition of a region, the second part of its ARNs.
pub fn partition(region: &str) -> &'static str {
    match region {
        region if region.starts_with("cn-") => "aws-cn",
        region if region.starts_with("us-gov-") => "aws-us-gov",
        region if region.starts_with("us-isob-") => "aws-iso-b",
        region if region.starts_with("us-iso-") => "aws-iso",
        _ => "aws",
    }
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

/// The error of a response whose body is a document in JSON: the code is in a header, followed by details after a colon.
fn refused_in_json(what: String, response: &Response<Bytes>) -> Error {
    let header = response.headers().get("x-amzn-errortype");
    let header = header.and_then(|value| value.to_str().ok());
    let code = header.and_then(|value| value.split(':').next());
    let body: serde_json::Value = serde_json::from_slice(response.body()).unwrap_or_default();
    let fields = ["message", "Message"];
    let message = fields.iter().find_map(|field| body[*field].as_str());
    Error::Refused {
        what,
        status: response.status().as_u16(),
        code: code.unwrap_or_default().trim().to_owned(),
        message: message.unwrap_or_default().to_owned(),
    }
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
    fn texts_are_encoded_and_regions_have_partitions() {
        assert_eq!(encoded("a b/*.~é"), "a%20b%2F%2A.~%C3%A9");
        for (region, expected) in [
            ("eu-west-1", "aws"),
            ("cn-north-1", "aws-cn"),
            ("us-gov-west-1", "aws-us-gov"),
            ("us-iso-east-1", "aws-iso"),
            ("us-isob-east-1", "aws-iso-b"),
        ] {
            assert_eq!(partition(region), expected, "{region}");
        }
    }

    /// Throttled, uncertain, denied.
    #[test]
    fn refusals_differ_in_what_may_have_happened() {
        for (status, code, expected) in [
            (400, "Throttling", [true, false, false]),
            (503, "RequestLimitExceeded", [true, false, false]),
            (429, "", [true, false, false]),
            (500, "InternalError", [false, true, false]),
            (400, "DependencyViolation", [false, false, false]),
            (403, "AccessDenied", [false, false, true]),
            (400, "ExpiredToken", [false, false, true]),
        ] {
            let error = Error::Refused {
                what: String::new(),
                status,
                code: code.to_owned(),
                message: String::new(),
            };
            let found = [
                error.is_throttled(),
                error.is_uncertain(),
                error.is_denied(),
            ];
            assert_eq!(found, expected, "{status} {code}");
            assert_eq!((error.code(), error.status()), (code, Some(status)));
        }
    }

    #[test]
    fn refusals_in_json_have_their_code_in_a_header() {
        let response = |code: &str, body: &'static str| {
            let response = Response::builder()
                .status(400)
                .header("x-amzn-errortype", code);
            response.body(Bytes::from_static(body.as_bytes())).unwrap()
        };
        for (code, body, expected) in [
            (
                "UnknownResourceException:http://internal/",
                r#"{"message": "no share"}"#,
                ("UnknownResourceException", "no share"),
            ),
            ("Throttled", "no JSON", ("Throttled", "")),
        ] {
            let error = refused_in_json("GetResourceShares".to_owned(), &response(code, body));
            assert_eq!(error.code(), expected.0, "{body}");
            assert!(error.to_string().contains(expected.1), "{error}");
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
