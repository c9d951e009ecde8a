//! What the components of the default operator catalogs share: when they run, and which image they serve.
//!
//! ```text
//! annotations with images ──────────> this image
//! ImageStream served ───────────────> ImageStream `catalogs` ── trigger ──> image of the Deployment
//! neither ──> index of the version ─> its digest
//! ```

pub(crate) mod index;

use api::hypershift::v1beta1::HostedControlPlane;
use control_plane_component::release::CatalogImage;
use control_plane_component::{Component, Context, Error, Result, Workload};
use serde_json::{Value, json};

use super::{edit, olm};

/// Annotation of a Deployment: its images follow those of an ImageStream.
const TRIGGERS: &str = "image.openshift.io/triggers";
const IMAGE_STREAM_GROUP: &str = "image.openshift.io";
/// Containers that run the catalog's image: one copies its content, and one serves it.
const CONTAINERS: [&str; 2] = ["extract-content", "registry"];
const BY_DIGEST: &str = "@sha256:";

/// A default catalog.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Catalog {
    /// Operators that Red Hat certified.
    Certified,
    /// Operators of the community.
    Community,
    /// Operators of Red Hat.
    RedHat,
}

// === impl Catalog ===

impl Catalog {
    /// All of them, sorted by name.
    pub(crate) const ALL: [Self; 3] = [Self::Certified, Self::Community, Self::RedHat];

    /// Its name: of its Service, and of its tag of the ImageStream.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Certified => "certified-operators",
            Self::Community => "community-operators",
            Self::RedHat => "redhat-operators",
        }
    }

    fn component(self) -> &'static str {
        match self {
            Self::Certified => "certified-operators-catalog",
            Self::Community => "community-operators-catalog",
            Self::RedHat => "redhat-operators-catalog",
        }
    }

    /// Annotation: the image instead of the one of the release.
    fn annotation(self) -> &'static str {
        match self {
            Self::Certified => "hypershift.openshift.io/certified-operators-catalog-image",
            Self::Community => "hypershift.openshift.io/community-operators-catalog-image",
            Self::RedHat => "hypershift.openshift.io/redhat-operators-catalog-image",
        }
    }

    /// The image of the annotation.
    fn overridden(self, hcp: &HostedControlPlane) -> Option<&str> {
        let image = hcp.metadata.annotations.as_ref()?.get(self.annotation())?;
        Some(image.as_str()).filter(|image| !image.is_empty())
    }
}

/// Adds what all catalogs have.
pub(super) fn common(component: Component, catalog: Catalog) -> Component {
    component
        .depends_on(&["openshift-apiserver"])
        .enabled_if(is_enabled)
        .adapt(move |context, workload| adapt(context, workload, catalog))
}

fn is_enabled(context: &Context<'_>) -> bool {
    runs(context.hcp)
}

/// Whether the default catalogs run in the control plane.
pub(crate) fn runs(hcp: &HostedControlPlane) -> bool {
    let hub = hcp
        .spec
        .configuration
        .as_ref()
        .and_then(|configuration| configuration.operatorhub.as_ref());
    let is_disabled = hub.and_then(|hub| hub.disable_all_default_sources) == Some(true);
    !is_disabled && olm::are_catalogs_in_control_plane(&hcp.spec)
}

/// Whether images of index versions are needed: annotations replace them.
pub(crate) fn needs_index(hcp: &HostedControlPlane) -> bool {
    let mut all = Catalog::ALL.into_iter();
    runs(hcp) && all.any(|catalog| catalog.overridden(hcp).is_none())
}

fn adapt(context: &Context<'_>, workload: &mut Workload, catalog: Catalog) -> Result<()> {
    let chosen = match overridden(context, catalog)? {
        Some(image) => Some(image.to_owned()),
        None if serves_image_streams(context) => {
            if let Some(image) = triggered(context, catalog) {
                set_image(workload, &image)?;
            }
            None
        }
        None => Some(indexed(context, catalog)?.pinned),
    };
    let Some(image) = chosen else {
        return Ok(());
    };
    if let Some(annotations) = &mut workload.metadata().annotations {
        annotations.remove(TRIGGERS);
    }
    set_image(workload, &image)
}

fn set_image(workload: &mut Workload, image: &str) -> Result<()> {
    let pod = edit::pod(workload);
    for name in CONTAINERS {
        edit::container(pod, name)?.image = Some(image.to_owned());
    }
    Ok(())
}

/// The image of the annotation. Either all catalogs have one or none, and only a digest states what is run.
fn overridden<'a>(context: &Context<'a>, catalog: Catalog) -> Result<Option<&'a str>> {
    let images = Catalog::ALL.map(|other| other.overridden(context.hcp));
    if images.iter().all(Option::is_none) {
        return Ok(None);
    }
    for (other, image) in Catalog::ALL.into_iter().zip(images) {
        let problem = match image {
            Some(image) if image.contains(BY_DIGEST) => continue,
            Some(_) => "name the image by its digest: repository@sha256:...",
            None => "set the annotations of all three default catalogs, or none",
        };
        return Err(Error::Invalid {
            field: other.annotation().to_owned(),
            value: image.unwrap_or_default().to_owned(),
            hint: problem.to_owned(),
        });
    }
    Ok(catalog.overridden(context.hcp))
}

fn serves_image_streams(context: &Context<'_>) -> bool {
    let mut served = context.settings.served_groups.iter();
    served.any(|group| group == IMAGE_STREAM_GROUP)
}

/// The image that the trigger wrote into the Deployment. Without it, each reconcile would undo the trigger.
fn triggered(context: &Context<'_>, catalog: Catalog) -> Option<String> {
    let live = context
        .objects
        .get("apps", "Deployment", catalog.component())?;
    let image = live.pointer("/spec/template/spec/containers/0/image")?;
    image.as_str().map(str::to_owned)
}

/// The index image of the catalog. Without a lookup, as in the renderer, it is the one of the release's version.
fn indexed(context: &Context<'_>, catalog: Catalog) -> Result<CatalogImage> {
    match context.user_release.catalogs.get(catalog.name()) {
        Some(Ok(image)) => Ok(image.clone()),
        Some(Err(problem)) => Err(Error::missing(
            format!("catalog {}", catalog.name()),
            format!("an index image: {problem}"),
        )),
        None => index::first(context, catalog).ok_or_else(|| Error::Invalid {
            field: index::REGISTRIES.to_owned(),
            value: context
                .annotation(index::REGISTRIES)
                .unwrap_or_default()
                .to_owned(),
            hint: "write registry.redhat.io/redhat=<mirror>".to_owned(),
        }),
    }
}

/// Whether the catalogs' images come from an ImageStream.
pub(super) fn is_streamed(context: &Context<'_>) -> bool {
    Catalog::RedHat.overridden(context.hcp).is_none()
}

/// Sets a tag for each catalog, which the image controller of the management cluster imports regularly.
pub(super) fn stream(context: &Context<'_>, stream: &mut Value) -> Result<()> {
    let tags = Catalog::ALL.map(|catalog| {
        let image = indexed(context, catalog)?;
        Ok(json!({
            "name": catalog.name(),
            "from": { "kind": "DockerImage", "name": image.tagged },
            "importPolicy": { "scheduled": true, "importMode": "PreserveOriginal" },
            "referencePolicy": { "type": "Local" },
        }))
    });
    let tags: Vec<Value> = tags.into_iter().collect::<Result<_>>()?;
    stream["spec"]["tags"] = json!(tags);
    Ok(())
}
