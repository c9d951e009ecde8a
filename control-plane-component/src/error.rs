//! Errors of rendering a component.

/// Result of rendering.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error of rendering a component. It is reported in the component's condition and retried.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// An embedded manifest does not have the expected type.
    #[error("manifest {file} of component {component} is not a {kind}")]
    Manifest {
        /// The component.
        component: &'static str,
        /// The file.
        file: String,
        /// The expected kind.
        kind: &'static str,
        /// The parse error.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The release does not contain an image.
    #[error(
        "release {release} has no image {name}: use a release that contains it, or set it in annotation \
         hypershift.openshift.io/image-overrides"
    )]
    MissingImage {
        /// The release's version.
        release: String,
        /// The image's name.
        name: String,
    },
    /// An input of the component does not exist yet.
    #[error("waiting for {object} with {what}")]
    Missing {
        /// Kind and name.
        object: String,
        /// The required content.
        what: String,
    },
    /// An object of the management cluster's administrator has invalid content.
    #[error("failed to parse {object}: write {expected}")]
    Unreadable {
        /// Kind, name and key.
        object: String,
        /// What it should contain.
        expected: &'static str,
        /// The parse error.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The hosted control plane has an invalid value.
    #[error("invalid value {value:?} for {field}: {hint}")]
    Invalid {
        /// The field or annotation.
        field: String,
        /// The value.
        value: String,
        /// How to fix it.
        hint: String,
    },
    /// A component that uses Cluster API is not a Deployment, so a migration could not stop it.
    #[error("component {component} uses Cluster API and is a {kind}: make it a Deployment")]
    CapiWithoutDeployment {
        /// The component.
        component: &'static str,
        /// The workload's kind.
        kind: &'static str,
    },
    /// The proxy sidecar cannot be added.
    #[error("failed to add the proxy sidecar")]
    Sidecar(#[from] super::sidecar::SidecarError),
}

impl Error {
    /// Creates an error for a missing input.
    pub fn missing(object: impl Into<String>, what: impl Into<String>) -> Self {
        Self::Missing {
            object: object.into(),
            what: what.into(),
        }
    }
}
