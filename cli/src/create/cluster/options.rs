//! What a cluster is to be, once its arguments are checked and its files read.

use std::collections::BTreeMap;

use anyhow::Context;
use serde_json::Value;

use super::args::{CommonArgs, UpgradeType};
use super::checks::check;
use super::platform::Parts;
use super::values::Availability;
use crate::Usage;
use crate::create::ssh_key::SshKey;
use crate::create::text;
use crate::program::Program;

/// Bytes of a key for AES.
const KEY_BYTES: usize = 32;
/// Length of the random suffix of an infrastructure's name.
pub(super) const SUFFIX: usize = 5;
/// Longest part of the cluster's name in that of its infrastructure: names of load balancers are short.
const LONGEST_PREFIX: usize = 21;
/// The release stream of `hcp` on clouds.
const STREAM: &str = "4-stable-multi";
/// Letters that look like no others, and make no words.
const LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";

/// What the cluster is to be.
pub(super) struct Options {
    pub(super) args: CommonArgs,
    /// Empty until the release stream was looked up, if no image is given.
    pub(super) release_image: String,
    /// The stream to look up, if no image is given.
    pub(super) release_stream: Option<String>,
    pub(super) availability: Availability,
    pub(super) infra_id: String,
    pub(super) base_domain: String,
    pub(super) upgrade: UpgradeType,
    pub(super) pull_secret: String,
    /// The public SSH key.
    pub(super) ssh_key: Option<String>,
    /// Its private part, if it was made here or is in a Secret.
    pub(super) ssh_private_key: Option<String>,
    pub(super) trust_bundle: Option<String>,
    pub(super) image_content_sources: Option<Value>,
    pub(super) annotations: BTreeMap<String, String>,
    pub(super) labels: BTreeMap<String, String>,
    pub(super) node_selector: BTreeMap<String, String>,
    pub(super) pods_labels: BTreeMap<String, String>,
    pub(super) tolerations: Vec<Value>,
    /// A key that Secrets are encrypted with.
    pub(super) encryption_key: Vec<u8>,
}

// === impl Options ===

impl Options {
    /// Checks arguments and reads the files that they name.
    pub(super) fn resolve(
        args: &CommonArgs,
        parts: &Parts,
        program: Program,
    ) -> anyhow::Result<Self> {
        check(args)?;
        let infra_id = args.infra_id.clone().or(parts.infra_id.clone());
        let infra_id = match infra_id {
            Some(given) => given,
            None => made_infra_id(&args.name, LONGEST_PREFIX)?,
        };
        let control_plane = &args.control_plane;
        let (ssh_key, ssh_private_key) = ssh_key(args)?;
        let tolerations = control_plane
            .toleration
            .iter()
            .map(|text| text::toleration(text));
        Ok(Self {
            release_image: args.release_image.clone().unwrap_or_default(),
            release_stream: stream(args, parts, program)?,
            availability: args
                .control_plane_availability_policy
                .unwrap_or(match program {
                    Program::Hypershift => Availability::SingleReplica,
                    Program::Hcp => Availability::HighlyAvailable,
                }),
            infra_id,
            base_domain: args
                .base_domain
                .clone()
                .or(parts.base_domain.clone())
                .unwrap_or_default(),
            upgrade: args.node_upgrade_type.unwrap_or(parts.upgrade),
            pull_secret: pull_secret(args)?,
            ssh_key,
            ssh_private_key,
            trust_bundle: args
                .additional_trust_bundle
                .as_deref()
                .map(|path| text::file("--additional-trust-bundle", path))
                .transpose()?,
            image_content_sources: image_content_sources(args)?,
            annotations: annotations(args)?,
            labels: text::pairs("--labels", &args.labels)?,
            node_selector: text::pairs("--node-selector", &control_plane.node_selector)?,
            pods_labels: text::pairs("--pods-labels", &control_plane.pods_labels)?,
            tolerations: tolerations.collect::<Result<_, _>>()?,
            encryption_key: random(KEY_BYTES)?,
            args: CommonArgs {
                arch: parts.arch.unwrap_or(args.arch),
                ..args.clone()
            },
        })
    }
}

/// The release stream to look up. There is neither an empty image nor a webhook that chooses one.
fn stream(args: &CommonArgs, parts: &Parts, program: Program) -> Result<Option<String>, Usage> {
    if args.release_image.is_some() {
        return Ok(None);
    }
    if let Some(stream) = &args.release_stream {
        return Ok(Some(stream.clone()));
    }
    let on_cloud = matches!(parts.platform["type"].as_str(), Some("AWS" | "Azure"));
    if program == Program::Hcp && on_cloud {
        return Ok(Some(STREAM.to_owned()));
    }
    Err(Usage::new(
        &"name the release with --release-image, or its stream with --release-stream, for example 4-stable-multi",
    ))
}

/// The credentials of the release's registry.
fn pull_secret(args: &CommonArgs) -> anyhow::Result<String> {
    if let Some(path) = &args.pull_secret {
        return text::pull_secret(path);
    }
    let Some((name, text)) = &args.given.pull_secret else {
        return Err(Usage::new(&"--pull-secret is needed").into());
    };
    text::checked_pull_secret(name, text)
}

/// The public SSH key, and its private part if it is made here or in a Secret.
fn ssh_key(args: &CommonArgs) -> anyhow::Result<(Option<String>, Option<String>)> {
    if args.generate_ssh {
        let key = SshKey::generate()?;
        return Ok((Some(key.public), Some(key.private)));
    }
    if let Some(path) = args.ssh_key.as_deref() {
        return Ok((Some(text::file("--ssh-key", path)?), None));
    }
    let (public, private) = args.given.ssh_key.clone().unzip();
    Ok((public, private.flatten()))
}

fn annotations(args: &CommonArgs) -> Result<BTreeMap<String, String>, Usage> {
    let mut annotations = text::pairs("--annotations", &args.annotations)?;
    if let Some(image) = &args.control_plane_operator_image {
        let key = api::annotations::cluster::CONTROL_PLANE_OPERATOR_IMAGE.key();
        annotations.insert(key.to_owned(), image.clone());
    }
    Ok(annotations)
}

fn image_content_sources(args: &CommonArgs) -> anyhow::Result<Option<Value>> {
    let Some(path) = &args.image_content_sources else {
        return Ok(None);
    };
    let flag = "--image-content-sources";
    let text = text::file(flag, path)?;
    let sources: Value = serde_saphyr::from_str(&text)
        .with_context(|| format!("{flag} {}: this is not YAML", path.display()))?;
    let listed = sources
        .as_array()
        .is_some_and(|list| list.iter().all(|item| item["source"].is_string()));
    if !listed {
        let message = format!(
            "{flag} {}: write a list of items with source and mirrors",
            path.display()
        );
        return Err(Usage::new(&message).into());
    }
    Ok(Some(sources))
}

/// A name for an infrastructure: at most so much of the cluster's name, and a random suffix.
pub(super) fn made_infra_id(name: &str, longest_prefix: usize) -> anyhow::Result<String> {
    let letters = random(SUFFIX)?
        .into_iter()
        .map(|byte| char::from(LETTERS[usize::from(byte) % LETTERS.len()]));
    let prefix: String = name.chars().take(longest_prefix).collect();
    let prefix = prefix.trim_end_matches('-');
    Ok(format!("{prefix}-{}", letters.collect::<String>()))
}

/// Random bytes of a cryptographic generator.
fn random(count: usize) -> anyhow::Result<Vec<u8>> {
    let mut bytes = vec![0; count];
    rustls::crypto::aws_lc_rs::default_provider()
        .secure_random
        .fill(&mut bytes)
        .map_err(|_| {
            anyhow::anyhow!(
                "failed to generate a key: the operating system returned no random bytes"
            )
        })?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::create::cluster::checks::check_name;

    #[test]
    fn infrastructure_gets_a_name_of_its_own() {
        let made = |name: &str| made_infra_id(name, LONGEST_PREFIX).unwrap();
        let [one, two] = [made("a"), made("a")];
        assert_ne!(one, two);
        check_name("--infra-id", &one).unwrap();
        let long = made(&format!("{}-{}", "x".repeat(20), "y".repeat(20)));
        assert_eq!(long.len(), 20 + 1 + SUFFIX, "{long}");
    }
}
