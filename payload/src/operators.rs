//! Which image replaces a release's own control-plane-operator: a table by platform and version, in the format of
//! HyperShift.
//!
//! ```yaml
//! platforms:
//!   aws:
//!     overrides:
//!     - version: 4.14.9
//!       cpoImage: registry.example.com/control-plane-operator@sha256:...
//! ```

use std::collections::BTreeMap;

use api::hypershift::v1beta1::platform::PlatformType;
use serde::Deserialize;
use serde::de::IgnoredAny;
use sha2::{Digest as _, Sha256};

use crate::reference::Reference;
use crate::version::Version;

/// The platforms, as the table names them.
const PLATFORMS: [&str; 9] = [
    "agent",
    "aws",
    "azure",
    "gcp",
    "ibmcloud",
    "kubevirt",
    "none",
    "openstack",
    "powervs",
];

/// Images of the control-plane-operator, by platform and version.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OperatorOverrides(BTreeMap<(String, String), String>);

/// An invalid table.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidOverrides {
    /// The format is invalid.
    #[error(
        "it is not of the form platforms: {{aws: {{overrides: [{{version: 4.14.9, cpoImage: IMAGE}}]}}}}: {0}"
    )]
    Form(String),
    /// The platform is unknown.
    #[error("platforms.{0} is not a platform: choose from {known}", known = PLATFORMS.join(", "))]
    Platform(String),
    /// A version that no release has.
    #[error(
        "{field}.version is {given:?}, which is not the version of a release: write it whole, such as 4.14.9"
    )]
    Version {
        /// Which entry.
        field: String,
        /// What it says.
        given: String,
    },
    /// A version with two images.
    #[error("{field}.version is {given}, and so is that of an entry before it: leave one of them")]
    Twice {
        /// Which entry.
        field: String,
        /// What it says.
        given: String,
    },
    /// The image reference is invalid.
    #[error(
        "{field}.cpoImage is {given:?}, which names no image: write REGISTRY/NAME:TAG or REGISTRY/NAME@DIGEST"
    )]
    Image {
        /// Which entry.
        field: String,
        /// What it says.
        given: String,
    },
}

/// The file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    platforms: BTreeMap<String, Platform>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Platform {
    #[serde(default)]
    overrides: Vec<Entry>,
    /// For tests of users of the table.
    #[serde(default, rename = "testing")]
    _testing: Option<IgnoredAny>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    version: String,
    #[serde(rename = "cpoImage")]
    image: String,
}

// === impl OperatorOverrides ===

impl OperatorOverrides {
    /// Reads a table in YAML.
    pub fn parse(yaml: &str) -> Result<Self, InvalidOverrides> {
        let file: File = serde_saphyr::from_str(yaml)
            .map_err(|error| InvalidOverrides::Form(error.to_string()))?;
        let mut table = BTreeMap::new();
        for (platform, Platform { overrides, .. }) in file.platforms {
            if !PLATFORMS.contains(&platform.as_str()) {
                return Err(InvalidOverrides::Platform(platform));
            }
            for (index, entry) in overrides.into_iter().enumerate() {
                let field = format!("platforms.{platform}.overrides[{index}]");
                add(&mut table, &platform, entry, field)?;
            }
        }
        Ok(Self(table))
    }

    /// Equal for equal tables: it is in a pod template, so that a changed table restarts the operator.
    pub fn hash(&self) -> String {
        let mut hash = Sha256::new();
        for ((platform, version), image) in &self.0 {
            hash.update(format!("{platform} {version} {image}\n"));
        }
        format!("{:x}", hash.finalize())[..16].to_owned()
    }

    /// The image for a release on a platform.
    pub fn image(&self, platform: PlatformType, version: &Version) -> Option<&str> {
        let key = (name(platform).to_owned(), version.to_string());
        self.0.get(&key).map(String::as_str)
    }
}

fn add(
    table: &mut BTreeMap<(String, String), String>,
    platform: &str,
    entry: Entry,
    field: String,
) -> Result<(), InvalidOverrides> {
    let Entry { version, image } = entry;
    if version.parse::<Version>().is_err() {
        let given = version;
        return Err(InvalidOverrides::Version { field, given });
    }
    if image.parse::<Reference>().is_err() {
        let given = image;
        return Err(InvalidOverrides::Image { field, given });
    }
    let key = (platform.to_owned(), version.clone());
    match table.insert(key, image) {
        None => Ok(()),
        Some(_) => Err(InvalidOverrides::Twice {
            field,
            given: version,
        }),
    }
}

fn name(platform: PlatformType) -> &'static str {
    match platform {
        PlatformType::Agent => "agent",
        PlatformType::Aws => "aws",
        PlatformType::Azure => "azure",
        PlatformType::Gcp => "gcp",
        PlatformType::IbmCloud => "ibmcloud",
        PlatformType::KubeVirt => "kubevirt",
        PlatformType::None => "none",
        PlatformType::OpenStack => "openstack",
        PlatformType::PowerVs => "powervs",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "
platforms:
  aws:
    overrides:
    - version: 4.14.9
      cpoImage: registry.example.com/control-plane-operator:for-4.14
    - version: 4.15.0-rc.1
      cpoImage: registry.example.com/control-plane-operator@sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855
    testing:
      latest: registry.example.com/release:4.15.1
      runTests: true
  none:
    overrides:
    - version: 4.14.9
      cpoImage: registry.example.com/another:v1
  azure: {}
";

    #[test]
    fn an_image_is_for_one_version_on_one_platform() {
        let table = OperatorOverrides::parse(TABLE).unwrap();
        let image = |platform, version: &str| table.image(platform, &version.parse().unwrap());
        for (platform, version, expected) in [
            (
                PlatformType::Aws,
                "4.14.9",
                Some("control-plane-operator:for-4.14"),
            ),
            (
                PlatformType::Aws,
                "4.15.0-rc.1",
                Some("control-plane-operator@sha256:e3b0c442"),
            ),
            (PlatformType::Aws, "4.14.10", None),
            (PlatformType::Aws, "4.15.0", None),
            (PlatformType::None, "4.14.9", Some("another:v1")),
            (PlatformType::Azure, "4.14.9", None),
            (PlatformType::KubeVirt, "4.14.9", None),
        ] {
            let found = image(platform, version);
            match expected {
                None => assert_eq!(found, None, "{platform:?} {version}"),
                Some(part) => {
                    assert!(
                        found.unwrap().contains(part),
                        "{platform:?} {version}: {found:?}"
                    );
                }
            }
        }
    }

    #[test]
    fn equal_tables_have_equal_hashes() {
        let hash = |yaml: &str| OperatorOverrides::parse(yaml).unwrap().hash();
        assert_eq!(hash(TABLE), hash(&format!("# said again\n{TABLE}")));
        assert_ne!(hash(TABLE), hash(&TABLE.replace("4.14.9", "4.14.8")));
        assert_ne!(
            hash(TABLE),
            hash(&TABLE.replace("another:v1", "another:v2"))
        );
    }

    #[test]
    fn invalid_tables_are_refused_with_the_field() {
        let entry = |version: &str, image: &str| {
            format!(
                "platforms: {{aws: {{overrides: [{{version: '4.14.1', cpoImage: registry.example.com/a:b}}, {{version: '{version}', cpoImage: '{image}'}}]}}}}"
            )
        };
        for (yaml, expected) in [
            (String::new(), "it is not of the form"),
            ("platforms: [aws]".to_owned(), "it is not of the form"),
            ("platform: {}".to_owned(), "it is not of the form"),
            (
                "platforms: {aws: {override: []}}".to_owned(),
                "it is not of the form",
            ),
            (
                "platforms: {AWS: {}}".to_owned(),
                "platforms.AWS is not a platform: choose from agent, aws",
            ),
            (
                entry("4.14", "registry.example.com/a:b"),
                "platforms.aws.overrides[1].version is \"4.14\"",
            ),
            (
                entry("4.14.1", "registry.example.com/a:c"),
                "platforms.aws.overrides[1].version is 4.14.1, and so is",
            ),
            (
                entry("4.14.2", ""),
                "platforms.aws.overrides[1].cpoImage is \"\"",
            ),
            (entry("4.14.2", "two words"), "names no image"),
        ] {
            let error = OperatorOverrides::parse(&yaml).unwrap_err().to_string();
            assert!(error.contains(expected), "{yaml}: {error}");
        }
    }
}
