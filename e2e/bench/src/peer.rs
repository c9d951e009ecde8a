//! Who is compared.

use serde::{Deserialize, Serialize};

/// A way from the client to the API server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Peer {
    /// No proxy: the client connects to the server with TLS.
    Direct,
    /// A relay that copies bytes.
    Relay,
    /// nginx as a reverse proxy.
    Nginx,
    /// `kubectl proxy`.
    KubectlProxy,
    /// Our proxy, rewriting.
    Ours,
}

// === impl Peer ===

impl Peer {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::Direct,
        Self::Relay,
        Self::Nginx,
        Self::KubectlProxy,
        Self::Ours,
    ];
    /// Those that are processes of their own.
    pub const PROXIES: [Self; 4] = [Self::Relay, Self::Nginx, Self::KubectlProxy, Self::Ours];
    /// Peers with a relevant cold start: programs that users run.
    pub const PROGRAMS: [Self; 3] = [Self::Nginx, Self::KubectlProxy, Self::Ours];

    /// The name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Direct => "direct",
            Self::Relay => "TCP relay",
            Self::Nginx => "nginx",
            Self::KubectlProxy => "kubectl proxy",
            Self::Ours => "ours",
        }
    }

    /// The name of its process's log.
    pub(super) fn log_name(self) -> &'static str {
        match self {
            Self::Direct => "direct",
            Self::Relay => "relay",
            Self::Nginx => "nginx",
            Self::KubectlProxy => "kubectl-proxy",
            Self::Ours => "capi-proxy",
        }
    }
}
