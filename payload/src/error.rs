//! Why an image could not be read, and what to do about it.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use support::reconcile::{Report, Retry};

/// Why an image could not be read. Names the image; never contains a credential or a registry's response body.
#[derive(Debug, Clone)]
pub struct Error {
    image: String,
    reason: Reason,
    detail: String,
    source: Option<Arc<dyn std::error::Error + Send + Sync>>,
    retry_after: Option<Duration>,
}

/// The longest time until a caller retries an image that is being read.
const LONGEST_RETRY: Duration = Duration::from_secs(15);

/// The reason of a failure, as a closed set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reason {
    /// The image reference is malformed.
    InvalidReference,
    /// More mirrors apply to the image than are tried.
    TooManyMirrors,
    /// The pull secret cannot be read.
    InvalidPullSecret,
    /// The registry requires authentication, and the pull secret has no entry for it.
    PullSecretMissing,
    /// The registry rejected the credentials of the pull secret.
    Unauthorized,
    /// The registry has no such image.
    NotFound,
    /// The registry could not be reached, or is temporarily unavailable.
    Unreachable,
    /// The registry broke a time limit or sent too little.
    TooSlow,
    /// The image is being read in the background.
    InProgress,
    /// The image is not a release image.
    NotAPayload,
    /// The content does not match its digest, or its format.
    Corrupt,
    /// The image exceeds a size limit.
    TooLarge,
}

// === impl Error ===

impl Error {
    /// An error about `image`. `detail` is a clause that follows a colon.
    pub fn new(image: impl Into<String>, reason: Reason, detail: impl Into<String>) -> Self {
        Self {
            image: image.into(),
            reason,
            detail: detail.into(),
            source: None,
            retry_after: None,
        }
    }

    /// Adds the cause.
    pub fn caused_by(
        mut self,
        source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        self.source = Some(Arc::from(source.into()));
        self
    }

    /// The image is being read in the background, for this time already: the caller returns later.
    pub(crate) fn in_progress(image: &str, since: Duration) -> Self {
        let detail = "the registry has not delivered it yet; it is read in the background";
        Self::new(image, Reason::InProgress, detail).retried_after(since)
    }

    /// The image is read after others of its namespace: the caller returns, and starts the read when it is its turn.
    pub(crate) fn queued(image: &str, since: Duration, running: usize) -> Self {
        let detail = format!("it is read after {running} other images of its namespace");
        Self::new(image, Reason::InProgress, detail).retried_after(since)
    }

    /// The longer it takes already, the later the caller returns.
    pub(crate) fn retried_after(self, since: Duration) -> Self {
        Self {
            retry_after: Some(since.min(LONGEST_RETRY)),
            ..self
        }
    }

    /// When to retry an image that is being read: the longer it takes, the later.
    pub fn retry_after(&self) -> Option<Duration> {
        self.retry_after
    }

    /// Names the image that was requested, where it was read from another place.
    pub(crate) fn about(self, image: &str) -> Self {
        if self.image == image {
            return self;
        }
        if self.image.is_empty() {
            let image = image.to_owned();
            return Self { image, ..self };
        }
        let detail = match self.image.split_once('@').or(image.split_once('@')) {
            // The same image, with the digest that its tag has.
            Some((place, _)) if image.starts_with(place) => self.detail,
            _ => format!("{} (as {})", self.detail, self.image),
        };
        Self {
            image: image.to_owned(),
            detail,
            ..self
        }
    }

    /// The image, as it was requested.
    pub fn image(&self) -> &str {
        &self.image
    }

    /// The cause of a failure.
    pub fn kind(&self) -> Reason {
        self.reason
    }

    /// The reason of a condition such as `ValidReleaseImage`: one of those that clients already wait for.
    pub fn condition_reason(&self) -> &'static str {
        match self.reason {
            Reason::InvalidPullSecret | Reason::PullSecretMissing => "SecretNotFound",
            Reason::InvalidReference
            | Reason::TooManyMirrors
            | Reason::Unauthorized
            | Reason::NotFound
            | Reason::Unreachable
            | Reason::TooSlow
            | Reason::NotAPayload
            | Reason::Corrupt
            | Reason::TooLarge => "InvalidImage",
            Reason::InProgress => "ReadInProgress",
        }
    }

    /// Whether it may go away by itself.
    pub fn is_transient(&self) -> bool {
        matches!(
            self.reason,
            Reason::Unreachable | Reason::TooSlow | Reason::InProgress
        )
    }

    /// Whether the image is being read in the background: nothing is known about it yet.
    pub fn is_in_progress(&self) -> bool {
        self.reason == Reason::InProgress
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "failed to read image {}: {}", self.image, self.detail)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        let source = self.source.as_deref()?;
        Some(source)
    }
}

impl Report for Error {
    fn reason(&self) -> &'static str {
        self.reason.as_str()
    }

    fn retry(&self) -> Retry {
        Retry::Backoff
    }
}

// === impl Reason ===

impl Reason {
    /// The reason in metrics and Events.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::InvalidReference => "InvalidReference",
            Self::TooManyMirrors => "TooManyMirrors",
            Self::InvalidPullSecret => "InvalidPullSecret",
            Self::PullSecretMissing => "PullSecretMissing",
            Self::Unauthorized => "Unauthorized",
            Self::NotFound => "NotFound",
            Self::Unreachable => "Unreachable",
            Self::TooSlow => "TooSlow",
            Self::InProgress => "ReadInProgress",
            Self::NotAPayload => "NotAPayload",
            Self::Corrupt => "Corrupt",
            Self::TooLarge => "TooLarge",
        }
    }
}
