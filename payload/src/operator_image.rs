//! Which image the control-plane-operator of a hosted cluster runs, and whether that cluster can be on private types.
//!
//! The image in the cluster's annotation takes precedence. With private types, next are the table of overrides, the
//! release's own image if its labels say that it supports private types, and the image for all other releases. On
//! standard types every release runs its own.

use std::collections::BTreeMap;
use std::sync::Arc;

use api::annotations::cluster::{
    CONTROL_PLANE_OPERATOR_IMAGE, CONTROL_PLANE_OPERATOR_IMAGE_LABELS,
};
use api::group::CapiTypes;
use api::hypershift::v1beta1::HostedCluster;
use support::error::chain;

use crate::error::Reason;
use crate::mirrors::Mirrors;
use crate::operators::OperatorOverrides;
use crate::pull_secret::PullSecret;
use crate::release::{MissingImage, Release};
use crate::releases::Releases;
use crate::version::Version;
use crate::{Capabilities, Capability, Error};

/// The release's name for the control-plane-operator.
const IMAGE: &str = "hypershift";

/// Images of the control-plane-operator that the hypershift-operator is configured with.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OperatorImages {
    /// The image for releases with an own one that cannot be run.
    pub fallback: Option<String>,
    /// The images for single versions.
    pub overrides: Arc<OperatorOverrides>,
}

/// What decides about the image.
#[derive(Debug)]
pub struct Question<'a> {
    /// The hosted cluster.
    pub cluster: &'a HostedCluster,
    /// The types that it is on, or is to be on.
    pub capi_types: CapiTypes,
    /// The release of the control plane, if it could be read.
    pub release: Option<&'a Release>,
    /// What the hypershift-operator is configured with.
    pub images: &'a OperatorImages,
}

/// Labels of an image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Labels {
    /// They were read.
    Read(BTreeMap<String, String>),
    /// Why they could not be read.
    Unreadable(String),
}

/// An image, as far as it is decided before labels are read.
#[derive(Debug, PartialEq, Eq)]
pub enum Candidate {
    /// This one, whatever its labels are.
    Chosen(String),
    /// The release's, if that supports private types.
    IfItKnows {
        /// The release's.
        released: String,
        /// The version of the release.
        version: Version,
        /// What replaces it otherwise.
        otherwise: Option<String>,
    },
}

/// Why there is no image.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unfit {
    /// The release was not read.
    #[error("the release is not known")]
    NoRelease,
    /// The release lacks it, and nothing takes its place.
    #[error(
        "{0}, and nothing takes its place: start this operator with --control-plane-operator-image"
    )]
    Missing(#[from] MissingImage),
    /// It was made before there were private types.
    #[error(
        "the cluster is on private Cluster API types, or is to be, and the control-plane-operator of its release \
         {version} ({image}) knows nothing of them: it lacks the label {label}. Name an image that has it for {version} \
         in the table of --control-plane-operator-overrides, give this operator one for all such releases with \
         --control-plane-operator-image, or upgrade the cluster first",
        label = Capability::PrivateTypes.label()
    )]
    Old {
        /// The release.
        version: Version,
        /// The image that it has.
        image: String,
    },
    /// Its labels could not be read.
    #[error(
        "it is unknown whether the control-plane-operator of release {version} ({image}) supports private Cluster API \
         types: its labels cannot be read: {why}: see that the pull secret and the mirrors lead to it, or name another \
         image for {version} in the table of --control-plane-operator-overrides"
    )]
    Unknown {
        /// The release.
        version: Version,
        /// The image that it has.
        image: String,
        /// Why the labels could not be read.
        why: String,
    },
}

/// Whether a hosted cluster can be on private types.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Compatibility {
    /// There is an image of the control-plane-operator that supports them.
    Compatible,
    /// There is none, and why.
    Incompatible(String),
    /// The registry cannot be reached from here.
    Unknown(String),
}

/// Whether a control-plane-operator supports private types.
pub fn knows(capabilities: &Capabilities) -> bool {
    capabilities.has(Capability::PrivateTypes)
}

/// The reference of the release that the control plane runs: the one for the management side, if there is one.
pub fn operated_image(cluster: &HostedCluster) -> &str {
    let release = cluster.spec.control_plane_release.as_ref();
    &release.unwrap_or(&cluster.spec.release).image
}

/// Decides as far as the labels of the release's own image are not needed.
pub fn candidate(question: &Question<'_>) -> Result<Candidate, Unfit> {
    let annotations = question.annotations();
    let annotated = CONTROL_PLANE_OPERATOR_IMAGE.get(annotations).ok().flatten();
    if let Some(image) = annotated {
        return Ok(Candidate::Chosen(image));
    }
    let release = question.release.ok_or(Unfit::NoRelease)?;
    let version = &release.version;
    let images = question.images;
    let otherwise = images.fallback.clone();
    if question.capi_types == CapiTypes::Standard {
        let released = release.component(IMAGE).map(str::to_owned);
        return released
            .or_else(|missing| otherwise.ok_or(missing))
            .map(Candidate::Chosen)
            .map_err(Unfit::Missing);
    }
    let platform = question.cluster.spec.platform.type_;
    if let Some(image) = images.overrides.image(platform, version) {
        return Ok(Candidate::Chosen(image.to_owned()));
    }
    match (release.component(IMAGE), otherwise) {
        (Ok(released), otherwise) => Ok(Candidate::IfItKnows {
            released: released.to_owned(),
            version: version.clone(),
            otherwise,
        }),
        (Err(_), Some(image)) => Ok(Candidate::Chosen(image)),
        (Err(missing), None) => Err(Unfit::Missing(missing)),
    }
}

/// Reads the labels of the release's own image, if they decide whether it is run.
pub async fn released_labels(
    question: &Question<'_>,
    releases: &Releases,
    pull_secret: &PullSecret,
) -> Result<Option<BTreeMap<String, String>>, Error> {
    if let Some(labels) = question.annotated_labels() {
        return Ok(Some(labels));
    }
    let Ok(Candidate::IfItKnows { released, .. }) = candidate(question) else {
        return Ok(None);
    };
    let labels = releases.labels(&released, pull_secret).await?;
    Ok(Some(labels.as_ref().clone()))
}

// === impl Candidate ===

impl Candidate {
    /// The image, given the labels of the release's own.
    pub fn settled(self, released_operator: &Labels) -> Result<String, Unfit> {
        match self {
            Self::Chosen(image) => Ok(image),
            Self::IfItKnows {
                released,
                version,
                otherwise,
            } => match released_operator {
                Labels::Read(labels) if knows(&Capabilities::of_labels(labels)) => Ok(released),
                Labels::Read(_) => otherwise.ok_or(Unfit::Old {
                    version,
                    image: released,
                }),
                // An unreachable registry must not roll the Deployment: nothing replaces an image that may support them.
                Labels::Unreadable(why) => Err(Unfit::Unknown {
                    version,
                    image: released,
                    why: why.clone(),
                }),
            },
        }
    }
}

// === impl Question ===

impl<'a> Question<'a> {
    /// The labels that the cluster's annotation says the image has.
    pub fn annotated_labels(&self) -> Option<BTreeMap<String, String>> {
        let labels = CONTROL_PLANE_OPERATOR_IMAGE_LABELS.get(self.annotations());
        labels.ok().flatten()
    }

    fn annotations(&self) -> &'a BTreeMap<String, String> {
        static NONE: BTreeMap<String, String> = BTreeMap::new();
        self.cluster.metadata.annotations.as_ref().unwrap_or(&NONE)
    }
}

// === impl Compatibility ===

impl Compatibility {
    /// Reads the release of a hosted cluster and evaluates it as the operator does before a migration.
    pub async fn check(
        cluster: &HostedCluster,
        images: &OperatorImages,
        releases: &Releases,
        pull_secret: &PullSecret,
    ) -> Self {
        let mirrors = Mirrors::of(&cluster.spec.image_content_sources);
        let releases = releases.with_mirrors(&mirrors);
        let release = match releases.get(operated_image(cluster), pull_secret).await {
            Ok(release) => release,
            Err(error) => return Self::unreadable(&error),
        };
        let question = Question {
            cluster,
            capi_types: CapiTypes::Private,
            release: Some(&release),
            images,
        };
        let labels = match released_labels(&question, &releases, pull_secret).await {
            Ok(labels) => labels.unwrap_or_default(),
            Err(error) => return Self::unreadable(&error),
        };
        let image = candidate(&question).and_then(|it| it.settled(&Labels::Read(labels)));
        match image {
            Ok(_) => Self::Compatible,
            Err(unfit) => Self::Incompatible(unfit.to_string()),
        }
    }

    /// A registry may be unreachable from here only; every other error is the same everywhere.
    fn unreadable(error: &Error) -> Self {
        let why = chain(error);
        if error.kind() == Reason::Unreachable {
            Self::Unknown(why)
        } else {
            Self::Incompatible(why)
        }
    }
}
