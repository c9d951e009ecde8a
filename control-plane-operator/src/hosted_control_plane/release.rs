//! The releases of a hosted control plane: that of its components, and that of the cluster.

use std::sync::Arc;

use control_plane_component::settings::Settings;
use control_plane_component::{Context, Objects, Release};
use payload::{PullSecret, Releases};

use api::hypershift::v1beta1::HostedControlPlane;

/// Reads releases.
pub(super) struct Reader {
    releases: Releases,
}

/// Both releases.
#[derive(Debug, Clone)]
pub(super) struct Pair {
    pub(super) control_plane: Release,
    pub(super) user: Release,
}

/// A release cannot be had: why, in words for a condition.
#[derive(Debug, Clone)]
pub(super) struct Unavailable {
    pub(super) reason: &'static str,
    pub(super) message: String,
}

// === impl Reader ===

impl Reader {
    pub(super) fn new(releases: Releases) -> Self {
        Self { releases }
    }

    /// Looks both up, with the cluster's own pull secret. What was read once is kept.
    pub(super) async fn read(
        &self,
        hcp: &HostedControlPlane,
        objects: &Objects,
        settings: &Settings,
    ) -> Result<Pair, Unavailable> {
        let name = &hcp.spec.pull_secret.name;
        let credentials = objects
            .secret_value(name, ".dockerconfigjson")
            .ok_or_else(|| Unavailable {
                reason: "SecretNotFound",
                message: format!("Secret {name} is not there, or has no key .dockerconfigjson"),
            })?;
        let credentials = PullSecret::parse(&credentials).map_err(|error| Unavailable {
            reason: "InvalidConfiguration",
            message: format!("Secret {name} cannot be used: {error}"),
        })?;
        let user = &hcp.spec.release_image;
        let own = hcp
            .spec
            .control_plane_release_image
            .as_ref()
            .unwrap_or(user);
        let control_plane = get(&self.releases, own, &credentials).await?;
        let user = get(&self.releases.for_user(), user, &credentials).await?;
        let with_overrides = |release: &payload::Release| {
            Release::from(release).with_overrides(&settings.own_image, &settings.image_overrides)
        };
        Ok(Pair {
            control_plane: with_overrides(&control_plane),
            user: with_overrides(&user),
        })
    }
}

async fn get(
    releases: &Releases,
    image: &str,
    credentials: &PullSecret,
) -> Result<Arc<payload::Release>, Unavailable> {
    releases
        .get(image, credentials)
        .await
        .map_err(|error| Unavailable {
            reason: error.condition_reason(),
            message: support::error::chain(&error),
        })
}

/// Images that components name and the release does not have.
pub(super) fn missing_images(
    context: &Context<'_>,
    problems: &[(&'static str, control_plane_component::Error)],
) -> Option<String> {
    let names = problems.iter().filter_map(|(_, error)| match error {
        control_plane_component::Error::MissingImage { name, .. } => Some(name.as_str()),
        _ => None,
    });
    let mut names: Vec<_> = names.collect();
    names.sort_unstable();
    names.dedup();
    (!names.is_empty()).then(|| {
        format!(
            "release {} has no image for {}",
            context.release.version,
            names.join(", ")
        )
    })
}
