//! Looks up the index images of operator catalogs.

use std::collections::BTreeMap;

use api::hypershift::v1beta1::HostedControlPlane;
use control_plane_component::release::CatalogImage;
use control_plane_component::settings::Pairs;
use futures::future::join_all;
use payload::{Error, PullSecret, Reason, Reference, Releases};
use support::error::chain;

use crate::components::catalogs::{Catalog, index};

/// How to look up images.
pub(super) struct Lookup<'a> {
    pub(super) releases: Releases,
    pub(super) credentials: &'a PullSecret,
    /// Registries that this operator replaces.
    pub(super) overrides: &'a Pairs,
}

// === impl Lookup ===

impl Lookup<'_> {
    /// The index images of all catalogs for a version, or why they are unknown.
    pub(super) async fn all(
        &self,
        hcp: &HostedControlPlane,
        version: &str,
    ) -> BTreeMap<String, Result<CatalogImage, String>> {
        let found = Catalog::ALL.map(|catalog| async move {
            let candidates = index::candidates(hcp, version, catalog);
            let digest = async |image: &str| {
                let digest = self.releases.digest(image, self.credentials).await?;
                Ok(digest.as_str().to_owned())
            };
            let found = search(&candidates, digest).await;
            let found = found.map(|(image, digest)| self.catalog_image(image, &digest));
            (catalog.name().to_owned(), found)
        });
        join_all(found).await.into_iter().collect()
    }

    fn catalog_image(&self, image: &str, digest: &str) -> CatalogImage {
        let tagged = index::replaced(self.overrides, image);
        let repository = tagged.parse::<Reference>().map(|it| it.repository());
        let pinned = repository.map(|repository| format!("{repository}@{digest}"));
        CatalogImage {
            pinned: pinned.unwrap_or_else(|_| tagged.clone()),
            tagged,
        }
    }
}

/// Returns the first image that exists, and its digest. Only an image that the registry denies is skipped: while it does
/// not answer, an older version would be a wrong one.
async fn search<'a>(
    candidates: &'a [String],
    digest: impl AsyncFn(&str) -> Result<String, Error>,
) -> Result<(&'a str, String), String> {
    let mut denied = None;
    for image in candidates {
        match digest(image).await {
            Ok(digest) => return Ok((image, digest)),
            Err(error) if is_denied(&error) => denied = Some(error),
            Err(error) => return Err(chain(&error)),
        }
    }
    let last = denied.map(|error| format!(": {}", chain(&error)));
    Err(format!(
        "no registry has it for the last {} versions{}",
        index::VERSIONS,
        last.unwrap_or_default()
    ))
}

/// Whether the registry has no such image for this user. Some registries say that to everyone who may not read it.
fn is_denied(error: &Error) -> bool {
    matches!(
        error.kind(),
        Reason::NotFound | Reason::Unauthorized | Reason::PullSecretMissing
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_latest_existing_index_is_found() {
        let candidates = ["a:v4.18", "b:v4.18", "a:v4.17"].map(str::to_owned);
        let not_found = Some(Reason::NotFound);
        for (reasons, expected) in [
            ([None, None, None], Ok("a:v4.18")),
            ([not_found, None, None], Ok("b:v4.18")),
            ([not_found, Some(Reason::Unauthorized), None], Ok("a:v4.17")),
            ([Some(Reason::Unreachable), None, None], Err("a:v4.18")),
            ([not_found; 3], Err("for the last 4 versions")),
        ] {
            let digest = async |image: &str| {
                let at = candidates.iter().position(|it| it == image).unwrap();
                match reasons[at] {
                    Some(reason) => Err(Error::new(image, reason, "no")),
                    None => Ok("sha256:0".to_owned()),
                }
            };
            let found = search(&candidates, digest).await;
            match expected {
                Ok(image) => assert_eq!(found, Ok((image, "sha256:0".to_owned()))),
                Err(part) => assert!(found.clone().unwrap_err().contains(part), "{found:?}"),
            }
        }
    }
}
