//! The images of the containers of a backup Job: of this operator, of the release, and of the annotations of the HostedCluster.
//!
//! The administrator may choose the control-plane-operator. Otherwise, the images are those of the HostedCluster, for which
//! the tenant policy decides who may choose them, and not those of the HostedControlPlane, to which programs of the control
//! plane write.

use k8s_openapi::api::core::v1::Secret;
use payload::operator_image::{Labels, Question, candidate, operated_image, released_labels};
use payload::{Mirrors, PullSecret, Release, Releases, pull_secret};
use support::error::chain;

use super::job::Images;
use super::observe::Cluster;
use crate::context::Context;
use crate::error::Error;

/// The release's name for etcd.
const ETCD: &str = "etcd";

/// Why there are no images.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum NoImages {
    /// It may go away by itself.
    Waiting(String),
    /// The HostedCluster has to be changed.
    Failed(String),
}

/// The images.
pub(super) async fn images(
    cluster: &Cluster,
    ctx: &Context,
) -> Result<Result<Images, NoImages>, Error> {
    let spec = &cluster.hosted.spec;
    let (namespace, name) = (&cluster.id.namespace, &spec.pull_secret.name);
    let secret = ctx.get::<Secret>(namespace, name).await?;
    let json = secret
        .and_then(|it| it.data)
        .and_then(|mut it| it.remove(pull_secret::KEY));
    let Some(json) = json else {
        return Ok(Err(NoImages::Failed(format!(
            "pull secret {namespace}/{name} of HostedCluster {} does not exist, or has no key {}: create it",
            cluster.id,
            pull_secret::KEY
        ))));
    };
    let pull_secret = match PullSecret::parse(&json.0) {
        Ok(pull_secret) => pull_secret,
        Err(error) => {
            return Ok(Err(NoImages::Failed(format!(
                "failed to read Secret {namespace}/{name}: {error}"
            ))));
        }
    };
    Ok(of_release(cluster, &pull_secret, ctx).await)
}

async fn of_release(
    cluster: &Cluster,
    pull_secret: &PullSecret,
    ctx: &Context,
) -> Result<Images, NoImages> {
    let hosted = &cluster.hosted;
    let mirrors = Mirrors::of(&hosted.spec.image_content_sources);
    let releases = ctx.releases.for_tenant(&cluster.id.namespace);
    let releases = releases.with_mirrors(&mirrors);
    let release = releases.get(operated_image(hosted), pull_secret).await;
    let release = release.map_err(|error| NoImages::of(&error))?;
    let operator = match &ctx.images.operator.fallback {
        // The administrator's image needs no trust in the release.
        Some(image) => image.clone(),
        None => of_operator(cluster, &release, &releases, pull_secret, ctx).await?,
    };
    let etcd = release.component(ETCD);
    let etcd = etcd.map_err(|missing| NoImages::Failed(missing.to_string()))?;
    Ok(Images {
        operator,
        etcd: etcd.to_owned(),
    })
}

/// The image of the control-plane-operator, as in the control plane.
async fn of_operator(
    cluster: &Cluster,
    release: &Release,
    releases: &Releases,
    pull_secret: &PullSecret,
    ctx: &Context,
) -> Result<String, NoImages> {
    let question = Question {
        cluster: &cluster.hosted,
        capi_types: cluster.types,
        release: Some(release),
        images: &ctx.images.operator,
    };
    let labels = match released_labels(&question, releases, pull_secret).await {
        Ok(labels) => Labels::Read(labels.unwrap_or_default()),
        Err(error) if error.is_transient() => return Err(NoImages::of(&error)),
        Err(error) => Labels::Unreadable(chain(&error)),
    };
    let image = candidate(&question).and_then(|it| it.settled(&labels));
    image.map_err(|unfit| {
        NoImages::Failed(format!("no image of the control-plane-operator: {unfit}"))
    })
}

// === impl NoImages ===

impl NoImages {
    fn of(error: &payload::Error) -> Self {
        if error.is_in_progress() {
            return Self::Waiting(format!("Waiting for image {} to be read", error.image()));
        }
        if error.is_transient() {
            return Self::Waiting(format!("Waiting for the release: {}", chain(error)));
        }
        Self::Failed(chain(error))
    }
}
