//! Other places for images: mirrors, which hold copies, and overrides, which replace a registry altogether.

use api::hypershift::v1beta1::image_content_source::ImageContentSource;

/// Where copies of repositories are: tried in order, before the place that an image names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Mirrors(Vec<(String, Vec<String>)>);

/// Registries or repositories that are replaced by others, whatever the image.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Overrides(Vec<(String, String)>);

// === impl Mirrors ===

impl Mirrors {
    /// Mirrors as a HostedCluster lists them.
    pub fn of(sources: &[ImageContentSource]) -> Self {
        let pair = |source: &ImageContentSource| (source.source.clone(), source.mirrors.clone());
        Self(sources.iter().map(pair).collect())
    }

    /// Mirrors by what they mirror.
    pub fn new(sources: impl IntoIterator<Item = (String, Vec<String>)>) -> Self {
        Self(sources.into_iter().collect())
    }

    /// These, and after them others.
    #[must_use]
    pub fn then(mut self, others: &Self) -> Self {
        self.0.extend(others.0.iter().cloned());
        self
    }

    /// Where copies of an image may be, in the order in which they are tried.
    pub fn of_image(&self, image: &str) -> Vec<String> {
        let longest = self.0.iter().filter(|(source, _)| covers(source, image));
        let mut matching: Vec<_> = longest.collect();
        // The one that says most about the image comes first; what was listed first among equals.
        matching.sort_by_key(|(source, _)| std::cmp::Reverse(source.len()));
        let mut places: Vec<String> = Vec::new();
        for (source, mirrors) in matching {
            for mirror in mirrors {
                let place = moved(image, source, mirror);
                if place != image && !places.contains(&place) {
                    places.push(place);
                }
            }
        }
        places
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

    /// Where an image is after the replacement that says most about it.
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
