//! The releases of a hosted control plane: of its components, and of the cluster.

use std::sync::Arc;

use control_plane_component::settings::Settings;
use control_plane_component::{Context, Objects, Release};
use payload::{PullSecret, Releases};

use api::hypershift::v1beta1::HostedControlPlane;

use super::catalogs;
use crate::components::catalogs::needs_index;

/// Catalogs are looked up in the background, like images of a tenant: their registry must not delay the control plane.
const CATALOGS: &str = "operator catalogs";

/// Reads releases.
pub(super) struct Reader {
    releases: Releases,
}

/// Both releases.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ReleasePair {
    pub(super) control_plane: Release,
    pub(super) user: Release,
}

/// A release is unavailable: reason and message for a condition.
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

    /// Reads both releases with the cluster's pull secret. Releases are cached.
    pub(super) async fn read(
        &self,
        hcp: &HostedControlPlane,
        objects: &Objects,
        settings: &Settings,
    ) -> Result<ReleasePair, Unavailable> {
        let name = &hcp.spec.pull_secret.name;
        let credentials = objects
            .secret_value(name, ".dockerconfigjson")
            .ok_or_else(|| Unavailable {
                reason: "SecretNotFound",
                message: format!("Waiting for Secret {name} with key .dockerconfigjson"),
            })?;
        let credentials = PullSecret::parse(&credentials).map_err(|error| Unavailable {
            reason: "InvalidConfiguration",
            message: format!("Invalid Secret {name}: {error}"),
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
        let mut user = with_overrides(&user);
        if needs_index(hcp) {
            let lookup = catalogs::Lookup {
                releases: self.releases.for_tenant(CATALOGS),
                credentials: &credentials,
                overrides: &settings.registry_overrides,
            };
            user.catalogs = lookup.all(hcp, &user.version).await;
        }
        Ok(ReleasePair {
            control_plane: with_overrides(&control_plane),
            user,
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

/// Returns a message about images that the release does not contain, if any.
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
            "Release {} has no image {}",
            context.release.version,
            names.join(", ")
        )
    })
}
