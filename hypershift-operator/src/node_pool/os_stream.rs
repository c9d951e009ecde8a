//! The operating system stream of a pool's nodes: which one they have, and whether it is in the hash. Pure.
//!
//! The field that selects it is part of the API's technology preview, so only the CRD of that preview has it. Without
//! the preview, nodes stay on RHEL 9; with it and without the field, they keep the stream that they have, and new pools
//! get the default of the release.

mod reported;

use std::sync::Arc;

use api::conditions::{PoolCondition, Status};
use api::features::FeatureSet;
use payload::{Release, Version};
use serde_json::Value;

use super::conditions::Conditions;
use super::config::{Config, Sources};
use super::facts::Facts;
use super::validate::kept;
pub(crate) use reported::reported;

/// The first major version whose nodes have RHEL 10 by default.
const FIRST_RHEL_10: u64 = 5;

/// An operating system stream.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Stream {
    #[default]
    Rhel9,
    Rhel10,
}

/// The stream of a pool.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Resolved {
    pub(crate) stream: Stream,
    /// What it adds to the input of hashes. Nothing for the default of the release: selecting that replaces no node.
    pub(crate) entry: &'static str,
}

/// Why a pool cannot have the stream that it selects.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Refused {
    #[error(
        "spec.osImageStream.name is {name:?}, which is not a known stream: use rhel-9 or rhel-10"
    )]
    Unknown { name: String },
    #[error(
        "stream rhel-10 requires a release of version 5.0 or later, and spec.release has {version}: set \
         spec.osImageStream.name to rhel-9, or upgrade the NodePool"
    )]
    Release { version: Version },
    #[error(
        "stream rhel-10 does not have the container runtime runc, which a ContainerRuntimeConfig in spec.config selects. \
         Remove defaultRuntime from it, or set spec.osImageStream.name to rhel-9"
    )]
    Runtime,
}

/// Records the stream of the pool in its configuration, and returns the release with the boot images of that stream.
/// Nothing if the pool cannot have it: then a condition has the reason.
pub(crate) fn select(
    facts: &Facts,
    release: &Arc<Release>,
    config: &mut Config,
    conditions: &mut Conditions,
) -> Option<Arc<Release>> {
    match resolve(facts, &release.version, &config.raw) {
        Ok(resolved) => config.os = resolved,
        Err(refused) => {
            let about = PoolCondition::ValidMachineConfig;
            let message = kept(facts, &refused.to_string());
            conditions.set(about, Status::False, "ValidationFailed", message);
            return None;
        }
    }
    match release.with_stream(config.os.stream.name()) {
        Ok(release) => Some(release),
        Err(missing) => {
            let about = PoolCondition::ValidPlatformImage;
            let message = format!("{missing}: set spec.osImageStream.name to one of them");
            conditions.set(about, Status::False, "InvalidImage", kept(facts, &message));
            None
        }
    }
}

/// The release with the boot images of the stream that a pool selects, whether it can have it or not.
pub(crate) fn with_selected(facts: &Facts, release: &Arc<Release>) -> Option<Arc<Release>> {
    let name = match &facts.pool.spec.os_image_stream {
        Some(selected) => selected.name.as_str(),
        None => unselected(facts, &release.version, &manifests(facts)).name(),
    };
    release.with_stream(name).ok()
}

/// The manifests that may select a container runtime. Nothing if they are invalid.
fn manifests(facts: &Facts) -> String {
    let sources = Sources {
        own: &facts.own,
        core: &[],
        tuning: &facts.tuning,
        made: &[],
    };
    sources.join().map(|it| it.raw).unwrap_or_default()
}

/// The stream of a pool that selects none.
fn unselected(facts: &Facts, version: &Version, config: &str) -> Stream {
    let known = reported(facts).and_then(|it| Stream::parse(&it.name));
    match known {
        Some(stream) => stream,
        None if has_streams(facts) => default(has_rhel_10(version), uses_runc(config)),
        None => Stream::default(),
    }
}

/// Whether the API has streams.
fn has_streams(facts: &Facts) -> bool {
    facts.features.includes(FeatureSet::TechPreviewNoUpgrade)
}

/// The stream of a pool of this release with this configuration: all manifests as one text.
fn resolve(facts: &Facts, version: &Version, config: &str) -> Result<Resolved, Refused> {
    let stream = match &facts.pool.spec.os_image_stream {
        Some(selected) => Stream::parse(&selected.name).ok_or_else(|| Refused::Unknown {
            name: selected.name.clone(),
        })?,
        None if !has_streams(facts) && reported(facts).is_none() => return Ok(Resolved::default()),
        None => unselected(facts, version, config),
    };
    let (has_rhel_10, uses_runc) = (has_rhel_10(version), uses_runc(config));
    let version = version.clone();
    match stream {
        Stream::Rhel10 if !has_rhel_10 => Err(Refused::Release { version }),
        Stream::Rhel10 if uses_runc => Err(Refused::Runtime),
        Stream::Rhel9 | Stream::Rhel10 => {
            let default = default(has_rhel_10, uses_runc);
            let entry = if stream == default { "" } else { stream.name() };
            Ok(Resolved { stream, entry })
        }
    }
}

fn has_rhel_10(version: &Version) -> bool {
    version.as_semver().major >= FIRST_RHEL_10
}

/// The stream of a release where users can select one, and do not.
fn default(has_rhel_10: bool, uses_runc: bool) -> Stream {
    if has_rhel_10 && !uses_runc {
        return Stream::Rhel10;
    }
    Stream::Rhel9
}

/// Whether a ContainerRuntimeConfig selects runc.
fn uses_runc(config: &str) -> bool {
    let manifests = config.split("\n---\n").map(serde_json::from_str::<Value>);
    manifests.filter_map(Result::ok).any(|manifest| {
        let runtime = &manifest["spec"]["containerRuntimeConfig"]["defaultRuntime"];
        manifest["kind"] == "ContainerRuntimeConfig" && runtime == "runc"
    })
}

// === impl Stream ===

impl Stream {
    /// As the API and releases name it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Rhel9 => "rhel-9",
            Self::Rhel10 => "rhel-10",
        }
    }

    fn parse(name: &str) -> Option<Self> {
        [Self::Rhel9, Self::Rhel10]
            .into_iter()
            .find(|stream| stream.name() == name)
    }
}

#[cfg(test)]
mod tests {
    use api::conditions::find;
    use api::hypershift::v1beta1::node_pool::OsImageStream;
    use payload::boot_images::Streams;
    use serde_json::json;

    use super::*;
    use crate::node_pool::config::{Content, Source, Sources};
    use crate::node_pool::fixtures;

    /// The configuration of a pool with such a ContainerRuntimeConfig.
    fn config(runtime: &str) -> String {
        let text = format!(
            "apiVersion: machineconfiguration.openshift.io/v1\nkind: ContainerRuntimeConfig\nmetadata: {{name: a}}\nspec:\n  \
             containerRuntimeConfig: {{defaultRuntime: {runtime}}}\n---\napiVersion: machineconfiguration.openshift.io/v1\n\
             kind: MachineConfig\nmetadata: {{name: b}}\nspec: {{}}\n"
        );
        let own = [Source {
            name: "own".to_owned(),
            content: Content::Text(text),
        }];
        let sources = Sources {
            own: &own,
            core: &[],
            tuning: &[],
            made: &[],
        };
        sources.join().unwrap().raw
    }

    #[test]
    fn the_stream_depends_on_the_release_and_the_runtime() {
        let (crun, runc) = (config("crun"), config("runc"));
        let (nine, ten) = ("rhel-9", "rhel-10");
        for (selected, version, config, expected) in [
            // Without the preview, nodes keep their operating system.
            (None, "4.22.0", &crun, Ok((nine, ""))),
            (None, "5.0.0", &crun, Ok((nine, ""))),
            (None, "5.0.0", &runc, Ok((nine, ""))),
            // The default of the release is not in the hash.
            (Some(nine), "4.22.0", &crun, Ok((nine, ""))),
            (Some(ten), "5.0.0", &crun, Ok((ten, ""))),
            (Some(ten), "5.1.3", &crun, Ok((ten, ""))),
            (Some(nine), "5.0.0", &runc, Ok((nine, ""))),
            // Another one is.
            (Some(nine), "5.0.0", &crun, Ok((nine, nine))),
            // Releases and runtimes without RHEL 10.
            (
                Some(ten),
                "4.23.9",
                &crun,
                Err("requires a release of version 5.0 or later, and spec.release has 4.23.9"),
            ),
            (
                Some(ten),
                "5.0.0",
                &runc,
                Err("does not have the container runtime runc"),
            ),
            (
                Some("rhel-11"),
                "5.0.0",
                &crun,
                Err("\"rhel-11\", which is not a known stream"),
            ),
        ] {
            let mut facts = fixtures::facts();
            facts.pool.spec.os_image_stream = selected.map(|name| OsImageStream {
                name: name.to_owned(),
            });
            let version = version.parse().unwrap();
            let found = resolve(&facts, &version, config);
            let found = found.map(|it| (it.stream.name(), it.entry));
            let found = found.map_err(|refused| refused.to_string());
            let name = format!("{selected:?} {version}");
            match (found, expected) {
                (Err(message), Err(expected)) => {
                    assert!(message.contains(expected), "{name}: {message}");
                }
                (found, expected) => assert_eq!(found, expected.map_err(str::to_owned), "{name}"),
            }
        }
    }

    #[test]
    fn without_a_selection_nodes_keep_their_stream_or_get_the_default() {
        let (crun, runc) = (config("crun"), config("runc"));
        let (nine, ten) = ("rhel-9", "rhel-10");
        for (status, version, config, expected) in [
            (None, "4.22.0", &crun, Some((nine, ""))),
            (None, "5.0.0", &crun, Some((ten, ""))),
            (None, "5.0.0", &runc, Some((nine, ""))),
            // A pool that was upgraded.
            (Some(nine), "4.22.0", &crun, Some((nine, ""))),
            (Some(nine), "5.0.0", &crun, Some((nine, nine))),
            (Some(ten), "5.0.0", &crun, Some((ten, ""))),
            (Some(ten), "5.0.0", &runc, None),
            (Some(ten), "4.23.0", &crun, None),
            (Some("other"), "5.0.0", &crun, Some((ten, ""))),
        ] {
            let mut facts = fixtures::facts();
            facts.features = FeatureSet::TechPreviewNoUpgrade;
            let before = facts.pool.status.get_or_insert_default();
            before.os_image_stream = status.map(|name| OsImageStream {
                name: name.to_owned(),
            });
            let version = version.parse().unwrap();
            let found = resolve(&facts, &version, config).ok();
            let found = found.map(|it| (it.stream.name(), it.entry));
            assert_eq!(found, expected, "{status:?} {version}");
        }
    }

    #[test]
    fn only_another_stream_than_the_default_changes_hashes() {
        let own: [Source; 0] = [];
        let sources = Sources {
            own: &own,
            core: &[],
            tuning: &[],
            made: &[],
        };
        let mut config = sources.join().unwrap();
        let context = crate::node_pool::config::Context::default();
        let before = config.hashes(&context);
        config.os.stream = Stream::Rhel10;
        assert_eq!(config.hashes(&context), before);
        config.os.entry = "rhel-9";
        let after = config.hashes(&context);
        assert_ne!(after.with_version, before.with_version);
        assert_ne!(after.without_version, before.without_version);
    }

    #[test]
    fn machines_boot_the_images_of_the_stream() {
        let stream = |name: &str| json!({ "stream": name });
        let named = json!({ "rhel-9": stream("nine"), "rhel-10": stream("ten") }).to_string();
        let nine = json!({ "rhel-9": stream("nine") }).to_string();
        let image = PoolCondition::ValidPlatformImage;
        for (name, version, selected, streams, expected) in [
            ("no streams", "5.0.0", Some("rhel-10"), None, Ok("single")),
            ("unset", "5.0.0", None, Some(&named), Ok("nine")),
            (
                "selected",
                "5.0.0",
                Some("rhel-10"),
                Some(&named),
                Ok("ten"),
            ),
            (
                "too old",
                "4.22.0",
                Some("rhel-10"),
                Some(&named),
                Err((PoolCondition::ValidMachineConfig, "ValidationFailed")),
            ),
            (
                "absent",
                "5.0.0",
                Some("rhel-10"),
                Some(&nine),
                Err((image, "InvalidImage")),
            ),
        ] {
            let mut facts = fixtures::facts();
            facts.pool.spec.os_image_stream = selected.map(|name| OsImageStream {
                name: name.to_owned(),
            });
            let mut map = json!({ "data": { "stream": stream("single").to_string() } });
            if let Some(streams) = streams {
                map["data"]["streams"] = json!(streams);
            }
            let streams = Streams::parse(&map.to_string()).unwrap();
            let release = Arc::new(fixtures::release(version).with_boot_images(streams));
            let mut joined = Config {
                raw: config("crun"),
                os: Resolved::default(),
            };
            let mut conditions = Conditions::new(Vec::new(), Some(3), facts.now);
            let found = select(&facts, &release, &mut joined, &mut conditions);
            if found.is_some() {
                assert_eq!(with_selected(&facts, &release), found, "{name}");
            }
            let booted = found.map(|it| it.boot_images.as_ref().unwrap().stream.clone());
            assert_eq!(booted.as_deref(), expected.ok(), "{name}");
            if let Err((about, reason)) = expected {
                let condition = find(conditions.list(), about).unwrap();
                assert_eq!(condition.reason.as_deref(), Some(reason), "{name}");
            }
        }
    }
}
