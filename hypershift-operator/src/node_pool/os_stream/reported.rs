//! The stream that nodes have, by the operating system that they report.

use api::features::FeatureSet;
use api::hypershift::v1beta1::node_pool::OsImageStream;

use super::Stream;
use crate::node_pool::facts::Facts;

/// What precedes the version in the name of the operating system.
const SYSTEM: &str = "CoreOS ";

/// The stream of most of the nodes, else the one that was reported before.
pub(crate) fn reported(facts: &Facts) -> Option<OsImageStream> {
    let status = facts.pool.status.as_ref();
    let before = status.and_then(|it| it.os_image_stream.clone());
    if !facts.features.includes(FeatureSet::TechPreviewNoUpgrade) {
        return before;
    }
    let images = facts
        .machines
        .iter()
        .filter_map(|it| it.os_image.as_deref());
    let streams: Vec<_> = images.map(of_image).collect();
    let count = |stream| streams.iter().filter(|it| **it == Some(stream)).count();
    let most = [Stream::Rhel9, Stream::Rhel10]
        .into_iter()
        .find(|stream| 2 * count(*stream) > streams.len());
    let most = most.map(|stream| OsImageStream {
        name: stream.name().to_owned(),
    });
    most.or(before)
}

/// The stream of an image, whose version begins with that of RHEL, or with that of the release as in `418.94`.
fn of_image(image: &str) -> Option<Stream> {
    let (_, version) = image.split_once(SYSTEM)?;
    let (major, _) = version.split_once('.')?;
    match major.parse::<u16>().ok()? {
        9 | 400..=499 => Some(Stream::Rhel9),
        10 | 500..=599 => Some(Stream::Rhel10),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node_pool::fixtures;

    #[test]
    fn images_name_their_stream() {
        for (image, expected) in [
            (
                "Red Hat Enterprise Linux CoreOS 418.94.202501 (Plow)",
                Some(Stream::Rhel9),
            ),
            (
                "Red Hat Enterprise Linux CoreOS 500.100.202611",
                Some(Stream::Rhel10),
            ),
            (
                "Red Hat Enterprise Linux CoreOS 9.6.20250523-0",
                Some(Stream::Rhel9),
            ),
            (
                "Red Hat Enterprise Linux CoreOS 10.1.20261102-0",
                Some(Stream::Rhel10),
            ),
            ("Red Hat Enterprise Linux CoreOS 8.6", None),
            ("Debian GNU/Linux 13", None),
            ("", None),
        ] {
            assert_eq!(of_image(image), expected, "{image}");
        }
    }

    #[test]
    fn the_stream_of_most_nodes_is_reported_and_stays() {
        let (nine, ten) = (Some("CoreOS 9.6.1"), Some("CoreOS 10.1.1"));
        let preview = FeatureSet::TechPreviewNoUpgrade;
        for (features, before, images, expected) in [
            (preview, None, vec![], None),
            (preview, None, vec![nine, nine, ten], Some("rhel-9")),
            (preview, Some("rhel-9"), vec![nine, ten], Some("rhel-9")),
            (
                preview,
                Some("rhel-9"),
                vec![ten, ten, nine],
                Some("rhel-10"),
            ),
            (preview, Some("rhel-10"), vec![], Some("rhel-10")),
            (preview, None, vec![ten, None], Some("rhel-10")),
            (preview, None, vec![ten, Some("Debian")], None),
            (FeatureSet::Default, None, vec![ten], None),
        ] {
            let mut facts = fixtures::facts();
            facts.features = features;
            let status = facts.pool.status.get_or_insert_default();
            status.os_image_stream = before.map(|name: &str| OsImageStream {
                name: name.to_owned(),
            });
            for image in &images {
                let mut machine = fixtures::machine("one");
                machine.os_image = image.map(str::to_owned);
                facts.machines.push(machine);
            }
            let found = reported(&facts).map(|it| it.name);
            assert_eq!(
                found.as_deref(),
                expected,
                "{features} {before:?} {images:?}"
            );
        }
    }
}
