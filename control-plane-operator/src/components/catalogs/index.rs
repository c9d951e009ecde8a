//! Index images of the default catalogs: one for each minor version of OpenShift.

use api::hypershift::v1beta1::HostedControlPlane;
use control_plane_component::Context;
use control_plane_component::release::CatalogImage;
use control_plane_component::settings::Pairs;
use payload::{Overrides, Reference};

use super::Catalog;

/// Annotation: registries of the index images, as `source=mirror,...`.
pub(super) const REGISTRIES: &str = "hypershift.openshift.io/olm-catalogs-is-registry-overrides";
/// The registry of all catalogs, and the repository of its index images.
const HOST: &str = "registry.redhat.io";
const DEFAULT: &str = "registry.redhat.io/redhat";
/// The last version of OpenShift that has its own index.
const LATEST: (u64, u64) = (4, 22);
/// How many versions are looked up: an index may be published later than its release.
pub(crate) const VERSIONS: u64 = 4;

/// The images in which a catalog is looked up, best first.
pub(crate) fn candidates(hcp: &HostedControlPlane, version: &str, catalog: Catalog) -> Vec<String> {
    let registries = registries(hcp);
    let images = versions(version).flat_map(|(major, minor)| {
        let tag = format!("v{major}.{minor}");
        let images = registries.iter();
        images.map(move |registry| format!("{registry}/{}:{tag}", repository(catalog)))
    });
    // A registry that the annotation misspells is skipped.
    images
        .filter(|image| image.parse::<Reference>().is_ok())
        .collect()
}

/// The best image, assuming that it exists.
pub(super) fn first(context: &Context<'_>, catalog: Catalog) -> Option<CatalogImage> {
    let version = &context.user_release.version;
    let image = candidates(context.hcp, version, catalog)
        .into_iter()
        .next()?;
    let image = replaced(&context.settings.registry_overrides, &image);
    Some(CatalogImage {
        tagged: image.clone(),
        pinned: image,
    })
}

/// The image in the registry that the operator uses instead.
pub(crate) fn replaced(overrides: &Pairs, image: &str) -> String {
    Overrides::new(overrides.0.clone()).apply(image)
}

fn repository(catalog: Catalog) -> &'static str {
    match catalog {
        Catalog::Certified => "certified-operator-index",
        Catalog::Community => "community-operator-index",
        Catalog::RedHat => "redhat-operator-index",
    }
}

/// The minor versions to look up, latest first.
fn versions(version: &str) -> impl Iterator<Item = (u64, u64)> + use<> {
    let mut numbers = version.split('.').map(str::parse);
    let own = match (numbers.next(), numbers.next()) {
        (Some(Ok(major)), Some(Ok(minor))) => (major, minor),
        _ => LATEST,
    };
    let (major, latest) = own.min(LATEST);
    let earlier = latest.saturating_sub(VERSIONS - 1)..=latest;
    earlier.rev().map(move |minor| (major, minor))
}

/// The registries that the annotation names, else the default one.
fn registries(hcp: &HostedControlPlane) -> Vec<String> {
    let annotations = hcp.metadata.annotations.as_ref();
    let text = annotations.and_then(|all| all.get(REGISTRIES));
    let pairs = text.into_iter().flat_map(|text| text.split(','));
    let pairs = pairs.filter_map(|pair| pair.trim().split_once('='));
    let mirrors: Vec<_> = pairs
        .filter(|(_, mirror)| !mirror.is_empty())
        .filter_map(|(source, mirror)| match source {
            DEFAULT => Some(mirror.to_owned()),
            HOST if mirror.contains('/') => Some(mirror.to_owned()),
            HOST => Some(format!("{mirror}/redhat")),
            _ => None,
        })
        .collect();
    if mirrors.is_empty() {
        return vec![DEFAULT.to_owned()];
    }
    mirrors
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn images(annotation: Option<&str>, version: &str) -> Vec<String> {
        let text = include_str!(
            "../../../../control-plane-component/tests/data/base/hosted-control-plane.yaml"
        );
        let mut hcp: HostedControlPlane = serde_saphyr::from_str(text).unwrap();
        let annotations = annotation.map(|value| json!({ REGISTRIES: value }));
        hcp.metadata.annotations = serde_json::from_value(json!(annotations)).unwrap();
        candidates(&hcp, version, Catalog::RedHat)
    }

    #[test]
    fn versions_are_looked_up_from_the_release_downwards() {
        for (version, expected) in [
            ("4.18.7", &["v4.18", "v4.17", "v4.16", "v4.15"][..]),
            ("4.22.0-ec.1", &["v4.22", "v4.21", "v4.20", "v4.19"]),
            ("4.23.0", &["v4.22", "v4.21", "v4.20", "v4.19"]),
            ("5.0.1", &["v4.22", "v4.21", "v4.20", "v4.19"]),
            ("4.1.0", &["v4.1", "v4.0"]),
        ] {
            let expected: Vec<_> = expected
                .iter()
                .map(|tag| format!("registry.redhat.io/redhat/redhat-operator-index:{tag}"))
                .collect();
            assert_eq!(images(None, version), expected, "{version}");
        }
    }

    #[test]
    fn registries_are_replaced_by_annotation() {
        for (annotation, expected) in [
            ("", &["registry.redhat.io/redhat"][..]),
            (
                "registry.redhat.io/redhat=mirror.example.com/olm",
                &["mirror.example.com/olm"],
            ),
            (
                "registry.redhat.io/redhat=a.example.com,registry.redhat.io/redhat=b.example.com",
                &["a.example.com", "b.example.com"],
            ),
            (
                "registry.redhat.io=mirror.example.com",
                &["mirror.example.com/redhat"],
            ),
            (
                "registry.redhat.io=mirror.example.com/olm",
                &["mirror.example.com/olm"],
            ),
            (
                "quay.example.com=mirror.example.com",
                &["registry.redhat.io/redhat"],
            ),
            (
                "registry.redhat.io,registry.redhat.io=",
                &["registry.redhat.io/redhat"],
            ),
            ("registry.redhat.io= x y", &[]),
        ] {
            let found = images(Some(annotation), "4.0.1");
            let expected: Vec<_> = expected
                .iter()
                .map(|registry| format!("{registry}/redhat-operator-index:v4.0"))
                .collect();
            assert_eq!(found, expected, "{annotation}");
        }
    }
}
