//! Other places for images: mirrors, which hold copies, and overrides, which replace a registry altogether.

use std::collections::HashSet;

use api::hypershift::v1beta1::image_content_source::ImageContentSource;

/// The most mirrors of one image: while it is read, each of them may cost a request, and a tenant chooses their number.
pub(crate) const MIRRORS_OF_IMAGE: usize = 32;

/// Where copies of repositories are: tried in order, before the place that an image names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Mirrors(Vec<(String, Vec<String>)>);

/// Registries or repositories that are replaced by others, whatever the image.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Overrides(Vec<(String, String)>);

/// An image has more mirrors than are tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "more than {MIRRORS_OF_IMAGE} mirrors apply to it: remove mirrors of its registry or repository from spec.imageContentSources"
)]
pub struct TooManyMirrors;

// === impl Mirrors ===

impl Mirrors {
    /// Mirrors as a HostedCluster lists them.
    pub fn of(sources: &[ImageContentSource]) -> Self {
        let pair = |source: &ImageContentSource| (source.source.clone(), source.mirrors.clone());
        Self(sources.iter().map(pair).collect())
    }

    /// Mirrors by source.
    pub fn new(sources: impl IntoIterator<Item = (String, Vec<String>)>) -> Self {
        Self(sources.into_iter().collect())
    }

    /// The pairs, for a flag of another program: `source=mirror,...`.
    pub fn as_flag(&self) -> String {
        let pairs = self.0.iter().flat_map(|(source, mirrors)| {
            let pair = move |mirror| format!("{source}={mirror}");
            mirrors.iter().map(pair)
        });
        pairs.collect::<Vec<_>>().join(",")
    }

    /// These mirrors, followed by others.
    #[must_use]
    pub fn then(mut self, others: &Self) -> Self {
        self.0.extend(others.0.iter().cloned());
        self
    }

    /// Where copies of an image may be, in the order in which they are tried.
    ///
    /// Fails as soon as there are too many: an API object has room for 65,025 mirrors of one image.
    pub fn of_image(&self, image: &str) -> Result<Vec<String>, TooManyMirrors> {
        let longest = self.0.iter().filter(|(source, _)| covers(source, image));
        let mut matching: Vec<_> = longest.collect();
        // The most specific mirror is first; equally specific ones keep their order.
        matching.sort_by_key(|(source, _)| std::cmp::Reverse(source.len()));
        let mut places = Vec::new();
        let mut seen = HashSet::from([image.to_owned()]);
        for (source, mirrors) in matching {
            for mirror in mirrors {
                let place = moved(image, source, mirror);
                if seen.contains(&place) {
                    continue;
                }
                if places.len() == MIRRORS_OF_IMAGE {
                    return Err(TooManyMirrors);
                }
                seen.insert(place.clone());
                places.push(place);
            }
        }
        Ok(places)
    }
}

// === impl Overrides ===

impl Overrides {
    /// Replacements, as pairs of what is replaced and by what.
    pub fn new(pairs: impl IntoIterator<Item = (String, String)>) -> Self {
        Self(pairs.into_iter().collect())
    }

    /// Whether nothing is replaced.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The image after the most specific replacement.
    pub fn apply(&self, image: &str) -> String {
        let matching = self.0.iter().filter(|(source, _)| covers(source, image));
        match matching.max_by_key(|(source, _)| source.len()) {
            Some((source, target)) => moved(image, source, target),
            None => image.to_owned(),
        }
    }

    /// The pairs, for a flag of another program: `source=target,...`.
    pub fn as_flag(&self) -> String {
        let pairs = self
            .0
            .iter()
            .map(|(source, target)| format!("{source}={target}"));
        pairs.collect::<Vec<_>>().join(",")
    }
}

/// Whether an image is in a registry or repository: a name ends where a path, a tag or a digest begins.
fn covers(source: &str, image: &str) -> bool {
    let source = source.trim_end_matches('/');
    !source.is_empty()
        && image
            .strip_prefix(source)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', ':', '@']))
}

fn moved(image: &str, source: &str, target: &str) -> String {
    let rest = &image[source.trim_end_matches('/').len()..];
    format!("{}{rest}", target.trim_end_matches('/'))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn mirrors(sources: &[(&str, &[&str])]) -> Mirrors {
        let sources = sources.iter().map(|(source, mirrors)| ImageContentSource {
            source: (*source).to_owned(),
            mirrors: mirrors.iter().map(|&mirror| mirror.to_owned()).collect(),
        });
        Mirrors::of(&sources.collect::<Vec<_>>())
    }

    fn overrides(pairs: &[(&str, &str)]) -> Overrides {
        let pairs = pairs.iter().map(|&(a, b)| (a.to_owned(), b.to_owned()));
        Overrides::new(pairs)
    }

    #[test]
    fn mirrors_are_ordered_with_the_most_specific_first() {
        let mirrors = mirrors(&[
            ("a.example.com", &["m1.example.com", "m2.example.com/x"]),
            (
                "a.example.com/ocp/release",
                &["m3.example.com/release", "a.example.com/ocp/release"],
            ),
            ("b.example.com", &["m4.example.com"]),
        ]);
        let places = |image: &str| mirrors.of_image(image).unwrap();
        assert_eq!(
            places("a.example.com/ocp/release@sha256:1"),
            [
                "m3.example.com/release@sha256:1",
                "m1.example.com/ocp/release@sha256:1",
                "m2.example.com/x/ocp/release@sha256:1",
            ]
        );
        assert_eq!(
            places("a.example.com/ocp/release-dev:1"),
            [
                "m1.example.com/ocp/release-dev:1",
                "m2.example.com/x/ocp/release-dev:1"
            ]
        );
        assert!(places("c.example.com/a").is_empty());
        let flag = mirrors.as_flag();
        let pairs = flag.split(',').filter_map(|pair| pair.split_once('='));
        let pairs = pairs.map(|(source, mirror)| (source.to_owned(), vec![mirror.to_owned()]));
        let again = Mirrors::new(pairs);
        let image = "a.example.com/ocp/release@sha256:1";
        assert_eq!(again.of_image(image), mirrors.of_image(image));
    }

    /// Check T22.
    #[test]
    fn the_mirrors_of_an_image_are_limited() {
        let image = "a.example.com/ocp/release@sha256:1";
        let sources = |count: usize, mirrors: usize, first: fn(usize) -> usize| {
            let source = move |number: usize| {
                let mirrors =
                    (0..mirrors).map(|mirror| format!("m{}.example.com", first(number) + mirror));
                ("a.example.com".to_owned(), mirrors.collect())
            };
            Mirrors::new((0..count).map(source))
        };
        for (name, mirrors, expected) in [
            (
                "as many as an object may have",
                sources(255, 255, |it| it * 255),
                Err(TooManyMirrors),
            ),
            (
                "one too many",
                sources(1, MIRRORS_OF_IMAGE + 1, |_| 0),
                Err(TooManyMirrors),
            ),
            (
                "the most",
                sources(1, MIRRORS_OF_IMAGE, |_| 0),
                Ok(MIRRORS_OF_IMAGE),
            ),
            (
                "the most, repeated",
                sources(255, MIRRORS_OF_IMAGE, |_| 0),
                Ok(MIRRORS_OF_IMAGE),
            ),
        ] {
            assert_eq!(
                mirrors.of_image(image).map(|it| it.len()),
                expected,
                "{name}"
            );
            assert_eq!(mirrors.of_image("b.example.com/a:1"), Ok(vec![]), "{name}");
        }
    }

    /// All places of an image, in order, without repetition.
    fn unlimited(mirrors: &Mirrors, image: &str) -> Vec<String> {
        let covering = mirrors.0.iter().filter(|(source, _)| covers(source, image));
        let mut covering: Vec<_> = covering.collect();
        covering.sort_by_key(|(source, _)| std::cmp::Reverse(source.len()));
        let mut places = Vec::new();
        for (source, mirrors) in covering {
            for mirror in mirrors {
                let place = moved(image, source, mirror);
                if place != image && !places.contains(&place) {
                    places.push(place);
                }
            }
        }
        places
    }

    #[test]
    fn the_most_specific_override_applies() {
        let overrides = overrides(&[
            ("a.example.com", "b.example.com"),
            ("a.example.com/x/", "c.example.com/y/"),
            ("registry", "override"),
        ]);
        for (image, expected) in [
            ("a.example.com/z:1", "b.example.com/z:1"),
            ("a.example.com/x/z:1", "c.example.com/y/z:1"),
            ("a.example.com/xy:1", "b.example.com/xy:1"),
            ("a.example.com:5000/z:1", "b.example.com:5000/z:1"),
            ("registry/z", "override/z"),
            ("a.example.community/z", "a.example.community/z"),
            (
                "z.example.com/a.example.com/z",
                "z.example.com/a.example.com/z",
            ),
        ] {
            assert_eq!(overrides.apply(image), expected, "{image}");
        }
        assert_eq!(
            overrides.as_flag(),
            "a.example.com=b.example.com,a.example.com/x/=c.example.com/y/,registry=override"
        );
    }

    proptest! {
        #[test]
        fn mirrors_are_tried_once_and_in_order(
            sources in prop::collection::vec(
                ("[ab](/[ab]){0,2}/?", prop::collection::vec("[abc](/[ab]){0,2}/?", 0..8)),
                0..8,
            ),
            image in "[ab](/[ab]){0,3}",
        ) {
            let mirrors = Mirrors::new(sources);
            let places = unlimited(&mirrors, &image);
            let expected = (places.len() <= MIRRORS_OF_IMAGE).then_some(places).ok_or(TooManyMirrors);
            prop_assert_eq!(mirrors.of_image(&image), expected);
        }

        #[test]
        fn image_references_round_trip(path in "[a-z]{1,5}(/[a-z]{1,5}){0,2}(:[a-z]{1,3})?") {
            let there = overrides(&[("a.example.com/x", "b.example.com/y/z")]);
            let back = overrides(&[("b.example.com/y/z", "a.example.com/x")]);
            let image = format!("a.example.com/x/{path}");
            let moved = there.apply(&image);
            prop_assert_ne!(&moved, &image);
            prop_assert_eq!(back.apply(&moved), image);
        }
    }
}
