//! Limits of reading: what a registry, a tenant and the memory of a process may take.

use std::fmt;
use std::time::Duration;

/// Limits of reading images. They bound what one slow registry costs those who do not use it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// How long a registry may take to respond to one request, and to send a document (a manifest, a configuration, a
    /// token) once it responds. It is also the window over which [`Limits::rate`] is measured.
    pub request: Duration,
    /// How long reading one image may take in all: every request, redirect, token, retry and layer of it.
    pub read: Duration,
    /// The least that a registry has to send of a layer, in bytes per second over a window.
    pub rate: u64,
    /// How many images one tenant may read at the same time. The others wait for their turn, without delaying other tenants.
    pub reads_per_tenant: usize,
    /// How long a reconcile waits for a read that is in progress, before it is requeued.
    pub wait: Duration,
    /// How much memory releases, labels and responses of registries may take, in bytes.
    pub memory: usize,
}

/// A limit that a registry broke.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Broken {
    /// It did not respond, or did not finish a document.
    Request(Duration),
    /// It sent too little of a layer.
    Rate { rate: u64, window: Duration },
    /// The image was not read in time.
    Read(Duration),
}

// === impl Limits ===

impl Limits {
    /// How long the error of a slow read is reported before the registry is read again.
    pub(crate) const RETRY_AFTER: Duration = Duration::from_mins(1);
    /// Layers that are downloaded at once by all tenants: each occupies a thread.
    pub(crate) const LAYERS_AT_ONCE: usize = 128;

    /// What has to arrive within one window.
    pub(crate) fn least_in_window(&self) -> u64 {
        let window = u64::try_from(self.request.as_millis()).unwrap_or(u64::MAX);
        self.rate.saturating_mul(window) / 1000
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            request: Duration::from_secs(30),
            read: Duration::from_mins(10),
            rate: 16 << 10,
            reads_per_tenant: 4,
            wait: Duration::from_secs(1),
            memory: 128 << 20,
        }
    }
}

// === impl Broken ===

impl Broken {
    /// The operator's flag that sets the limit.
    pub(crate) fn flag(&self) -> &'static str {
        match self {
            Self::Request(_) => "--registry-request-timeout",
            Self::Rate { .. } => "--registry-min-rate",
            Self::Read(_) => "--release-read-timeout",
        }
    }
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Request(limit) => write!(f, "did not respond completely within {limit:?}"),
            Self::Rate { rate, window } => {
                write!(f, "sent less than {rate} bytes per second over {window:?}")
            }
            Self::Read(limit) => write!(f, "did not deliver the image within {limit:?}"),
        }
    }
}

impl std::error::Error for Broken {}
