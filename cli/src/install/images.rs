//! The images that an installation runs: those that are given, or those of the release that this command is from.

use super::image_refs;
use crate::Usage;

/// An image that an installation needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Needed {
    /// The flag that names another one.
    flag: &'static str,
    /// The environment variable that does.
    variable: &'static str,
    /// Its tag in a list of images.
    pub(super) tag: &'static str,
    /// The one of this command's release. A build that is not of a release has none.
    released: Option<&'static str>,
}

/// The image of both operators.
pub(crate) const OPERATOR: Needed = Needed {
    flag: "--hypershift-image",
    variable: "HYPERSHIFT_IMAGE",
    tag: image_refs::OPERATOR,
    released: option_env!("HYPERSHIFT_RELEASE_OPERATOR_IMAGE"),
};

/// The image of the proxy.
pub(super) const PROXY: Needed = Needed {
    flag: "--capi-proxy-image",
    variable: "CAPI_PROXY_IMAGE",
    tag: image_refs::PROXY,
    released: option_env!("HYPERSHIFT_RELEASE_PROXY_IMAGE"),
};

// === impl Needed ===

impl Needed {
    /// The image of this command's release, if it is of one.
    pub(crate) fn released(self) -> Option<&'static str> {
        self.released.filter(|image| !image.trim().is_empty())
    }

    /// The image to run.
    pub(super) fn or_released(self, given: Option<&str>) -> Result<&str, Usage> {
        let Self {
            flag,
            variable,
            tag: _,
            released,
        } = self;
        let named = |image: &&str| !image.trim().is_empty();
        given.filter(named).or(released.filter(named)).ok_or_else(|| {
            Usage::new(&format!(
                "{flag} is needed, since this build of the command belongs to no release and knows no image: give \
                 {flag} IMAGE or set {variable}"
            ))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RELEASED: Needed = Needed {
        released: Some("registry.example.com/operator:v1"),
        ..OPERATOR
    };
    const OTHER: Needed = Needed {
        released: None,
        ..OPERATOR
    };

    #[test]
    fn a_released_command_knows_its_images() {
        let given = Some("mirror.example.com/operator:v2");
        for (image, given, expected) in [
            (RELEASED, None, Some("registry.example.com/operator:v1")),
            (
                RELEASED,
                Some(" "),
                Some("registry.example.com/operator:v1"),
            ),
            (RELEASED, given, given),
            (OTHER, given, given),
            (OTHER, None, None),
        ] {
            assert_eq!(image.or_released(given).ok(), expected, "{given:?}");
        }
        let error = OTHER.or_released(None).unwrap_err().to_string();
        for word in ["--hypershift-image", "HYPERSHIFT_IMAGE", "no release"] {
            assert!(error.contains(word), "{error}");
        }
    }
}
