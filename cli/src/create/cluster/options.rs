//! What a cluster is to be, once its arguments are checked and its files read.

use std::collections::BTreeMap;

use anyhow::Context;
use serde_json::Value;

use super::args::{CommonArgs, UpgradeType};
use super::platform::Parts;
use super::ssh_key::SshKey;
use crate::Usage;
use crate::create::text;

/// Longest name of a cluster, so that names made of it stay labels.
const LONGEST_NAME: usize = 63;
/// Bytes of a key for AES.
const KEY_BYTES: usize = 32;
/// Length of the random suffix of an infrastructure's name.
const SUFFIX: usize = 5;
/// Letters that look like no others, and make no words.
const LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";

/// What the cluster is to be.
pub(super) struct Options {
    pub(super) args: CommonArgs,
    /// Empty until the release stream was looked up, if no image is given.
    pub(super) release_image: String,
    pub(super) infra_id: String,
    pub(super) base_domain: String,
    pub(super) upgrade: UpgradeType,
    pub(super) pull_secret: String,
    /// The public SSH key.
    pub(super) ssh_key: Option<String>,
    /// Its private part, if it was made here.
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
    pub(super) fn resolve(args: &CommonArgs, parts: &Parts) -> anyhow::Result<Self> {
        check_name("--name", &args.name)?;
        check_name("--namespace", &args.namespace)?;
        check_networks(args)?;
        let infra_id = args.infra_id.clone().or(parts.infra_id.clone());
        let infra_id = match infra_id {
            Some(given) => given,
            None => made_infra_id(&args.name)?,
        };
        let control_plane = &args.control_plane;
        let (ssh_key, ssh_private_key) = ssh_key(args)?;
        let tolerations = control_plane
            .toleration
            .iter()
            .map(|text| text::toleration(text));
        Ok(Self {
            release_image: args.release_image.clone().unwrap_or_default(),
            infra_id,
            base_domain: args
                .base_domain
                .clone()
                .or(parts.base_domain.clone())
                .unwrap_or_default(),
            upgrade: args.node_upgrade_type.unwrap_or(parts.upgrade),
            pull_secret: text::pull_secret(&args.pull_secret)?,
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
            args: args.clone(),
        })
    }
}

/// A name that Kubernetes takes for a label.
fn check_name(flag: &str, name: &str) -> Result<(), Usage> {
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let outer = |end: Option<u8>| end.is_some_and(|byte| byte != b'-');
    let bytes = name.as_bytes();
    if bytes.iter().copied().all(inner)
        && outer(bytes.first().copied())
        && outer(bytes.last().copied())
        && bytes.len() <= LONGEST_NAME
    {
        return Ok(());
    }
    Err(Usage::new(&format!(
        "{flag} {name:?}: use lower-case letters, digits and dashes, at most {LONGEST_NAME}, with no dash at either end"
    )))
}

/// What flags cannot check one by one; the rest is the API server's business.
fn check_networks(args: &CommonArgs) -> Result<(), Usage> {
    use super::args::NetworkType;
    let network = &args.network;
    let other = network.network_type == NetworkType::Other;
    for (flag, given) in [
        ("--allocate-node-cidrs", network.allocate_node_cidrs),
        ("--disable-multi-network", network.disable_multi_network),
    ] {
        if given && !other {
            return Err(Usage::new(&format!("{flag} needs --network-type=Other")));
        }
    }
    if network.ovn_kubernetes_mtu.is_some() && network.network_type != NetworkType::OvnKubernetes {
        return Err(Usage::new(
            &"--ovn-kubernetes-mtu needs --network-type=OVNKubernetes",
        ));
    }
    Ok(())
}

/// The public SSH key, and its private part if it is made here.
fn ssh_key(args: &CommonArgs) -> anyhow::Result<(Option<String>, Option<String>)> {
    if args.generate_ssh {
        let key = SshKey::generate()?;
        return Ok((Some(key.public), Some(key.private)));
    }
    let path = args.ssh_key.as_deref();
    let given = path.map(|path| text::file("--ssh-key", path)).transpose()?;
    Ok((given, None))
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

fn made_infra_id(name: &str) -> anyhow::Result<String> {
    let letters = random(SUFFIX)?
        .into_iter()
        .map(|byte| char::from(LETTERS[usize::from(byte) % LETTERS.len()]));
    Ok(format!("{name}-{}", letters.collect::<String>()))
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

    #[test]
    fn names_are_labels() {
        for name in ["a", "a-1", &"x".repeat(63)] {
            check_name("--name", name).unwrap();
        }
        for name in ["", "A", "a.b", "-a", "a-", "ä", &"x".repeat(64)] {
            check_name("--name", name).unwrap_err();
        }
    }

    #[test]
    fn infrastructure_gets_a_name_of_its_own() {
        let [one, two] = [made_infra_id("a").unwrap(), made_infra_id("a").unwrap()];
        assert_ne!(one, two);
        check_name("--infra-id", &one).unwrap();
    }
}
