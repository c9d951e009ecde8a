//! What is asked of a provider.

use control_plane_component::facts::OpenIdEndpoints;
use sha2::{Digest as _, Sha256};

/// A provider whose endpoints are needed.
#[derive(Clone)]
pub(crate) struct Inquiry {
    /// Its name, unique in its hosted cluster.
    pub(crate) name: String,
    pub(crate) source: Source,
    pub(crate) client_id: String,
    pub(crate) client_secret: Vec<u8>,
    /// UID and resource version of the Secret.
    pub(crate) secret_version: String,
    /// Whether to find out if it verifies passwords.
    pub(crate) needs_probe: bool,
    /// Its authorities, PEM. Empty if the system's are trusted only.
    pub(crate) authorities: Vec<u8>,
    /// The endpoints that were known before this operator started.
    pub(crate) earlier: Option<OpenIdEndpoints>,
}

/// Where the endpoints are from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Source {
    /// The discovery document of an issuer.
    Issuer(String),
    /// An annotation; this is the URL that issues tokens.
    Annotation(String),
}

/// A hash of everything that affects the response.
pub(super) type Fingerprint = [u8; 32];

// === impl Inquiry ===

impl Inquiry {
    /// The hash of everything that affects the endpoints or the probe.
    pub(super) fn fingerprint(&self) -> Fingerprint {
        let Self {
            name: _,
            source,
            client_id,
            client_secret: _,
            secret_version,
            needs_probe,
            authorities,
            earlier: _,
        } = self;
        let (kind, url) = match source {
            Source::Issuer(url) => ("issuer", url),
            Source::Annotation(url) => ("annotation", url),
        };
        let authorities = Sha256::digest(authorities);
        let needs_probe = needs_probe.to_string();
        let texts: [&[u8]; 6] = [
            kind.as_bytes(),
            url.as_bytes(),
            client_id.as_bytes(),
            secret_version.as_bytes(),
            needs_probe.as_bytes(),
            &authorities,
        ];
        let mut hash = Sha256::new();
        for text in texts {
            // With its length, so that texts cannot be moved from one to the next.
            hash.update(text.len().to_be_bytes());
            hash.update(text);
        }
        hash.finalize().into()
    }
}

impl std::fmt::Debug for Inquiry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Inquiry")
            .field("name", &self.name)
            .field("source", &self.source)
            .finish_non_exhaustive()
    }
}
