//! Why a release could not be read, and what there is to do about it.

use std::fmt;
use std::sync::Arc;

use support::reconcile::{Report, Retry};

/// Why an image could not be read. Names the image, and never holds a credential or what a registry answered at length.
#[derive(Debug, Clone)]
pub struct Error {
    image: String,
    reason: Reason,
    detail: String,
    source: Option<Arc<dyn std::error::Error + Send + Sync>>,
}

/// Whose fault it is, as a closed set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reason {
    /// The reference to the image is none.
    InvalidReference,
    /// The pull secret cannot be read.
    InvalidPullSecret,
    /// The registry wants to know who asks, and the pull secret has no entry for it.
    PullSecretMissing,
    /// The registry refused whom the pull secret names.
    Unauthorized,
    /// The registry has no such image.
    NotFound,
    /// The registry could not be reached, or could not answer for now.
    Unreachable,
    /// The image is not that of a release.
    NotAPayload,
    /// What came is not what its digest says, or not what its format says.
    Corrupt,
    /// The image has more than is ever read of one.
    TooLarge,
}

// === impl Error ===

impl Error {
    /// What is wrong with `image`: a clause that follows a colon.
    pub fn new(image: impl Into<String>, reason: Reason, detail: impl Into<String>) -> Self {
        Self {
            image: image.into(),
            reason,
            detail: detail.into(),
            source: None,
        }
    }

    /// The same, with what caused it.
    pub fn caused_by(
        mut self,
        source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        self.source = Some(Arc::from(source.into()));
        self
    }

    /// The same about the image that was asked for, when it was looked for at another place.
    pub(crate) fn about(self, image: &str) -> Self {
        if self.image == image {
            return self;
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

    /// The image, as it was asked for.
    pub fn image(&self) -> &str {
        &self.image
    }

    /// Whose fault it is.
    pub fn kind(&self) -> Reason {
        self.reason
    }

    /// What a condition such as `ValidReleaseImage` gives as its reason: one of those that people already wait for.
    pub fn condition_reason(&self) -> &'static str {
        match self.reason {
            Reason::InvalidPullSecret | Reason::PullSecretMissing => "SecretNotFound",
            Reason::InvalidReference
            | Reason::Unauthorized
            | Reason::NotFound
            | Reason::Unreachable
            | Reason::NotAPayload
            | Reason::Corrupt
            | Reason::TooLarge => "InvalidImage",
        }
    }

    /// Whether it may pass without anybody doing anything.
    pub fn is_transient(&self) -> bool {
        self.reason == Reason::Unreachable
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot read the image {}: {}", self.image, self.detail)
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
    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::InvalidReference => "InvalidReference",
            Self::InvalidPullSecret => "InvalidPullSecret",
            Self::PullSecretMissing => "PullSecretMissing",
            Self::Unauthorized => "Unauthorized",
            Self::NotFound => "NotFound",
            Self::Unreachable => "Unreachable",
            Self::NotAPayload => "NotAPayload",
            Self::Corrupt => "Corrupt",
            Self::TooLarge => "TooLarge",
        }
    }
}
