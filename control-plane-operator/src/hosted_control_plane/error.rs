//! Why a pass could not be gone through to its end. It is tried again.

/// Why a pass failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    #[error(transparent)]
    Apply(#[from] support::apply::Error),
    #[error("cannot list Secrets of namespace {namespace}")]
    List {
        namespace: String,
        source: kube::Error,
    },
    #[error("certificates cannot be made")]
    Certificates(#[from] crate::pki::Error),
    #[error("the thread that makes certificates has ended")]
    Thread(#[from] tokio::task::JoinError),
    #[error("cannot write to HostedControlPlane {object}")]
    Write { object: String, source: kube::Error },
}
