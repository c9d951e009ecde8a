//! Keeps the names that a pool's objects have while what they stand for stays the same.
//!
//! Names contain hashes, and another name replaces machines. Another operator, or another version of this one, writes the
//! same configuration as another text, and so calls it something else. This module compares what the text says:
//!
//! - The machines have the user data and the template that their MachineDeployment or MachineSet names.
//! - The token's Secret of that user data has the configuration that it leads to, and the release.
//! - The template has the settings of the machines.
//!
//! If these say what is desired, the desired objects get the names that there are. All of these objects are in the control
//! plane's namespace, where authors of NodePools write nothing. Annotations of the NodePool, which they do write, decide
//! nothing here unless there are no machines to replace.
//!
//! The names of the pull secret and of the trust bundle, and the cluster's proxy, image and TLS settings, are in the hash and
//! not in these objects. This operator records them in the token's Secret ([`CONFIG_INPUTS`]). Where another one made
//! the Secret, they count as unchanged the first time: they are the author's own settings.

mod content;
mod template;

use api::annotations::node_pool::{
    CONFIG_INPUTS, CURRENT_CONFIG, CURRENT_CONFIG_VERSION, NODE_POOL, TOKEN_EXPIRATION,
};
use k8s_openapi::api::core::v1::Secret;

use super::config::{Config, Context, Hashes};
use super::facts::Facts;
use super::observed::Workload;
use super::secrets;
use crate::names::node_pool as names;
use crate::platform::machines;
pub(crate) use template::template;

/// Keys of a token's Secret: the release's version, the hash of the content of the trust bundle, and the stream of the
/// operating system.
const VERSION: &str = "release-version";
const BUNDLE_HASH: &str = "additional-trust-bundle-hash";
const STREAM: &str = "os-stream";

/// The configuration and its hashes: those that the machines have if they are the same, else new ones.
pub(crate) fn keep(facts: &Facts, config: Config, context: &Context) -> (Config, Hashes) {
    let hashes = config.hashes(context);
    let Some((secret, hash)) = current(facts) else {
        return (config, hashes);
    };
    if hash == hashes.with_version || !has_inputs(facts, secret, &config, context) {
        return (config, hashes);
    }
    match secrets::config(secret) {
        Some(raw) if content::is_same(&raw, &config.raw) => {
            let without_version = recorded(facts, hash).unwrap_or(hashes.without_version);
            let hashes = Hashes {
                with_version: hash.to_owned(),
                without_version,
            };
            // Later comparisons are with what the machines got, too, and not with something similar.
            (Config { raw, ..config }, hashes)
        }
        Some(_) | None => (config, hashes),
    }
}

/// The token's Secret of the configuration that the machines have, and its hash.
fn current(facts: &Facts) -> Option<(&Secret, &str)> {
    let mut tokens = facts.tokens.iter().filter_map(|secret| {
        let name = secret.metadata.name.as_deref()?;
        let (_, hash) = name.rsplit_once('-')?;
        let is_its_name = names::token(facts.name(), hash) == name;
        (is_its_name && is_usable(facts, secret)).then_some((secret, hash))
    });
    tokens.find(|(_, hash)| has(facts, hash))
}

/// Whether the machines have the configuration with this hash.
fn has(facts: &Facts, hash: &str) -> bool {
    if let Some(workload) = workload(facts) {
        return workload.user_data == names::user_data(facts.name(), hash);
    }
    let platform = facts.pool.spec.platform.type_;
    // Another controller has the machines, and follows the annotation.
    machines::template_kind(facts.capi(), platform).is_none()
        && facts.annotation(CURRENT_CONFIG_VERSION.key()) == Some(hash)
}

/// The workload, if it is the pool's and stays.
fn workload(facts: &Facts) -> Option<&Workload> {
    let reference = names::reference(&facts.pool);
    let workload = facts.workload.as_ref().filter(|it| !it.is_deleting)?;
    let owner = workload.annotations.get(NODE_POOL.key());
    owner
        .is_none_or(|owner| *owner == reference)
        .then_some(workload)
}

/// Whether a Secret is the pool's and stays. One that expires is of an older configuration.
fn is_usable(facts: &Facts, secret: &Secret) -> bool {
    let metadata = &secret.metadata;
    let annotations = metadata.annotations.as_ref();
    metadata.deletion_timestamp.is_none()
        && annotations.is_some_and(|it| {
            it.get(NODE_POOL.key()) == Some(&names::reference(&facts.pool))
                && !it.contains_key(TOKEN_EXPIRATION.key())
        })
}

/// Whether everything that a hash covers is as desired, apart from the manifests.
fn has_inputs(facts: &Facts, secret: &Secret, config: &Config, context: &Context) -> bool {
    if secrets::text(secret, VERSION).as_ref() != Some(&context.version) {
        return false;
    }
    let stream = secrets::text(secret, STREAM).filter(|it| !it.is_empty());
    let is_stream = |it: &str| it == config.os.stream.name();
    if !stream.as_deref().is_none_or(is_stream) {
        return false;
    }
    let annotations = secret.metadata.annotations.as_ref();
    let Some(recorded) = annotations.and_then(|it| it.get(CONFIG_INPUTS.key())) else {
        // Names are unknown, but not whether there was a trust bundle.
        return had_bundle(secret).is_none_or(|had| had == facts.trust_bundle.is_some());
    };
    // Earlier versions did not record a stream that nothing selected, which the Secret has, nor the TLS profile, which
    // counts as unchanged the first time.
    let earlier = context.without_tls();
    let unselected = stream.map(|_| "");
    let mut streams = [Some(config.os.entry), unselected].into_iter().flatten();
    streams.any(|os| {
        let recordings = [context, &earlier].map(|it| it.fingerprint(os));
        recordings.contains(recorded)
    })
}

/// Whether there was a trust bundle, if the Secret says.
fn had_bundle(secret: &Secret) -> Option<bool> {
    let hash = secrets::text(secret, BUNDLE_HASH)?;
    Some(!hash.is_empty() && hash != names::hash(b""))
}

/// The hash without the release, as it was recorded when the machines got this configuration.
fn recorded(facts: &Facts, hash: &str) -> Option<String> {
    let is_current = facts.annotation(CURRENT_CONFIG_VERSION.key()) == Some(hash);
    let recorded = facts.annotation(CURRENT_CONFIG.key());
    recorded.filter(|_| is_current).map(str::to_owned)
}

#[cfg(test)]
mod tests;
