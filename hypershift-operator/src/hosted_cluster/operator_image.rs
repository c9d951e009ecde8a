//! Which image the control-plane-operator of a cluster has: pure.
//!
//! The one that the cluster's annotation names comes first. On private types follow the table of overrides, the release's
//! own if its labels say that it knows private types, and the image that this operator was given. On standard types every
//! release's own does.

use std::collections::BTreeMap;

use api::annotations::cluster::{
    CONTROL_PLANE_OPERATOR_IMAGE, CONTROL_PLANE_OPERATOR_IMAGE_LABELS,
};
use api::group::Side;
use api::hypershift::v1beta1::HostedCluster;
use payload::{Capabilities, Capability, MissingImage, Release, Version};

use super::facts::{Facts, Labels};
use crate::config::Images;

/// The release's name for the control-plane-operator.
const IMAGE: &str = "hypershift";

/// What decides.
pub(crate) struct Question<'a> {
    pub(crate) cluster: &'a HostedCluster,
    pub(crate) side: Side,
    /// The release of the control plane, if it could be read.
    pub(crate) release: Option<&'a Release>,
    /// What this operator was given.
    pub(crate) images: &'a Images,
}

/// An image, as far as it can be told before labels are read.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Candidate {
    /// It is this one, whatever its labels are.
    Chosen(String),
    /// It is the release's, if that knows private types.
    IfItKnows {
        /// The release's.
        released: String,
        version: Version,
        /// What takes its place, if anything does.
        otherwise: Option<String>,
    },
}

/// Why there is none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Unfit {
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
    Old { version: Version, image: String },
    /// Nobody knows when it was made.
    #[error(
        "it cannot be told whether the control-plane-operator of release {version} ({image}) knows private Cluster API \
         types: its labels cannot be read: {why}: see that the pull secret and the mirrors lead to it, or name another \
         image for {version} in the table of --control-plane-operator-overrides"
    )]
    Unknown {
        version: Version,
        image: String,
        why: String,
    },
}

/// The image.
pub(crate) fn operator_image(facts: &Facts) -> Result<String, Unfit> {
    candidate(&Question::of(facts))?.settled(&facts.released_operator)
}

/// Whether an operator can be on private types.
pub(crate) fn knows(capabilities: &Capabilities) -> bool {
    capabilities.has(Capability::PrivateTypes)
}

/// What it comes down to.
pub(crate) fn candidate(question: &Question<'_>) -> Result<Candidate, Unfit> {
    let annotations = question.annotations();
    let annotated = CONTROL_PLANE_OPERATOR_IMAGE.get(annotations).ok().flatten();
    if let Some(image) = annotated {
        return Ok(Candidate::Chosen(image));
    }
    let release = question.release.ok_or(Unfit::NoRelease)?;
    let version = &release.version;
    let images = question.images;
    let otherwise = images.control_plane_operator.clone();
    if question.side == Side::Standard {
        let released = release.component(IMAGE).map(str::to_owned);
        return released
            .or_else(|missing| otherwise.ok_or(missing))
            .map(Candidate::Chosen)
            .map_err(Unfit::Missing);
    }
    let platform = question.cluster.spec.platform.type_;
    if let Some(image) = images.operator_overrides.image(platform, version) {
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

// === impl Candidate ===

impl Candidate {
    /// The image, with the labels of the release's own.
    pub(crate) fn settled(self, released_operator: &Labels) -> Result<String, Unfit> {
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
                // What may be either is replaced by nothing: a registry that is away for a while must not roll it.
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
    pub(crate) fn of(facts: &'a Facts) -> Self {
        Self {
            cluster: &facts.cluster,
            side: facts.capi.side(),
            release: facts.operated().read(),
            images: &facts.images,
        }
    }

    /// Labels that somebody says the image has.
    pub(crate) fn annotated_labels(&self) -> Option<BTreeMap<String, String>> {
        let labels = CONTROL_PLANE_OPERATOR_IMAGE_LABELS.get(self.annotations());
        labels.ok().flatten()
    }

    fn annotations(&self) -> &'a BTreeMap<String, String> {
        static NONE: BTreeMap<String, String> = BTreeMap::new();
        self.cluster.metadata.annotations.as_ref().unwrap_or(&NONE)
    }
}

#[cfg(test)]
mod tests;
