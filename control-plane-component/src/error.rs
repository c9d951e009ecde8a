//! Why a component cannot be rendered.

/// The result of rendering.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a component cannot be rendered. The component's condition reports it, and it is retried.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// An embedded manifest is not what the code takes it for.
    #[error("manifest {file} of component {component} is not a {kind}")]
    Manifest {
        /// The component.
        component: &'static str,
        /// The file.
        file: String,
        /// The kind that it should have.
        kind: &'static str,
        /// What is wrong with it.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The release lacks an image.
    #[error(
        "the release {release} has no image {name}: use a release that has it, or name one by the annotation \
         hypershift.openshift.io/image-overrides"
    )]
    MissingImage {
        /// The release's version.
        release: String,
        /// The image's name.
        name: String,
    },
    /// Something that the component is made from is not there yet.
    #[error("{object} is not there yet, or lacks {what}")]
    Missing {
        /// Kind and name.
        object: String,
        /// What is looked for in it.
        what: String,
    },
    /// The hosted control plane asks for what cannot be done.
    #[error("{field} is {value:?}: {way_out}")]
    Invalid {
        /// The field or annotation.
        field: String,
        /// What is given.
        value: String,
        /// What is allowed.
        way_out: String,
    },
    /// A migration could not stop the component.
    #[error("component {component} uses Cluster API and is a {kind}: make it a Deployment")]
    CapiWithoutDeployment {
        /// The component.
        component: &'static str,
        /// The kind of its workload.
        kind: &'static str,
    },
    /// The proxy cannot be put beside a controller.
    #[error("the proxy cannot be added")]
    Sidecar(#[from] super::sidecar::SidecarError),
}

impl Error {
    /// Something is not there yet.
    pub fn missing(object: impl Into<String>, what: impl Into<String>) -> Self {
        Self::Missing {
            object: object.into(),
            what: what.into(),
        }
    }
}
