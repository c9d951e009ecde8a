//! Identity providers of the OAuth server: their configuration, and the files that they refer to.
//!
//! A provider that is invalid, or refers to a missing object, is omitted: the other ones work, and condition
//! `ValidIDPConfiguration` has the reason. Providers keep their index, so that the files of the others stay where
//! they are.

mod discovered;
mod error;
mod files;
mod openid;
mod password;
mod redirect;

use std::collections::{BTreeMap, BTreeSet};

use api::hypershift::v1beta1::configuration::oauth::identity_provider::IdentityProvider;
use control_plane_component::Context;
use k8s_openapi::api::core::v1::{Volume, VolumeMount};
use serde_json::{Value, json};

use super::config::requested;
pub(crate) use discovered::inquiries;
pub(super) use discovered::remember;
use error::Refusal;
use files::Files;

/// How an identity is mapped to a user, unless the provider sets it.
const MAPPING_METHOD: &str = "claim";
/// The longest list of problems: the API server limits messages of conditions to 32 KiB.
const MAX_MESSAGE: usize = 16 << 10;
const MAPPING_METHODS: [&str; 4] = ["add", MAPPING_METHOD, "generate", "lookup"];

/// All configured providers.
#[derive(Debug, Default)]
pub(super) struct Converted {
    /// Configuration of the valid ones.
    pub(super) providers: Vec<Value>,
    /// Volumes with their files.
    pub(super) volumes: Vec<Volume>,
    /// Mounts of the volumes.
    pub(super) mounts: Vec<VolumeMount>,
    /// The invalid ones, with the reason.
    problems: Vec<Problem>,
}

/// A provider that is not used.
#[derive(Debug, thiserror::Error)]
#[error("failed to apply IDP {name} config: {refusal}")]
struct Problem {
    name: String,
    refusal: Refusal,
}

/// Configuration of a provider, in the format of the OAuth server.
struct Provider {
    kind: &'static str,
    /// Whether it can log in clients without a browser.
    challenge: bool,
    /// Whether it can log in users of browsers.
    login: bool,
    config: Value,
}

/// Converts all providers.
pub(super) fn convert(context: &Context<'_>) -> Converted {
    let mut converted = Converted::default();
    let mut names = BTreeSet::new();
    for (index, provider) in configured(context).iter().enumerate() {
        let mut files = Files::new(context, index);
        let problem = match item(provider, &mut names, &mut files) {
            Ok(item) => {
                converted.providers.push(item);
                converted.volumes.extend(files.volumes);
                converted.mounts.extend(files.mounts);
                stale(context, provider)
            }
            Err(refusal) => Some(refusal),
        };
        converted.problems.extend(problem.map(|refusal| Problem {
            name: name(provider).to_owned(),
            refusal,
        }));
    }
    converted
}

/// A provider that is used, but did not respond lately.
fn stale(context: &Context<'_>, provider: &IdentityProvider) -> Option<Refusal> {
    let reason = context.infra.openid_failures.get(name(provider))?;
    let is_openid = provider.type_.as_deref() == Some("OpenID");
    is_openid.then(|| Refusal::Stale(reason.clone()))
}

/// The indices of providers with a name and a mapping method that are accepted, with their names.
fn valid_names<'a>(context: &Context<'a>) -> BTreeMap<usize, &'a str> {
    let mut names = BTreeSet::new();
    let providers = configured(context).iter().enumerate();
    providers
        .filter(|(_, provider)| identity(provider, &mut names).is_ok())
        .map(|(index, provider)| (index, name(provider)))
        .collect()
}

/// Validates all providers, for the condition `ValidIDPConfiguration`.
pub(crate) fn validate(context: &Context<'_>) -> Result<(), String> {
    let problems = convert(context).problems;
    if problems.is_empty() {
        return Ok(());
    }
    Err(format!(
        "failed to initialize identity providers: {}",
        listed(&problems)
    ))
}

/// The problems, as far as a condition may be long.
fn listed(problems: &[Problem]) -> String {
    let mut text = String::new();
    for (index, problem) in problems.iter().enumerate() {
        let problem = problem.to_string();
        if index > 0 {
            text += "; ";
        }
        if text.len() + problem.len() > MAX_MESSAGE {
            return format!("{text}and {} more", problems.len() - index);
        }
        text += &problem;
    }
    text
}

/// The providers of the guest.
pub(super) fn configured<'a>(context: &Context<'a>) -> &'a [IdentityProvider] {
    requested(context).map_or(&[], |oauth| oauth.identity_providers.as_slice())
}

fn name(provider: &IdentityProvider) -> &str {
    provider.name.as_deref().unwrap_or_default()
}

/// The name and the mapping method.
fn identity<'a>(
    provider: &'a IdentityProvider,
    names: &mut BTreeSet<&'a str>,
) -> Result<(&'a str, &'a str), Refusal> {
    let name = name(provider);
    if !is_valid_name(name) {
        return Err(Refusal::Name);
    }
    // Identities hold the name, so those of the second would be taken for those of the first.
    if !names.insert(name) {
        return Err(Refusal::Duplicate);
    }
    let method = provider.mapping_method.as_deref();
    let method = method
        .filter(|method| !method.is_empty())
        .unwrap_or(MAPPING_METHOD);
    if !MAPPING_METHODS.contains(&method) {
        return Err(Refusal::MappingMethod(method.to_owned()));
    }
    Ok((name, method))
}

/// Converts one provider.
fn item<'a>(
    provider: &'a IdentityProvider,
    names: &mut BTreeSet<&'a str>,
    files: &mut Files<'_>,
) -> Result<Value, Refusal> {
    let (name, method) = identity(provider, names)?;
    let Provider {
        kind,
        challenge,
        login,
        mut config,
    } = of_type(provider, files)?;
    config["kind"] = json!(kind);
    config["apiVersion"] = json!("osin.config.openshift.io/v1");
    Ok(json!({
        "name": name,
        "challenge": challenge,
        "login": login,
        "mappingMethod": method,
        "provider": config,
    }))
}

/// The name is a segment of URLs, and the first part of identities: `name:user`.
fn is_valid_name(name: &str) -> bool {
    !["", ".", ".."].contains(&name) && !name.contains(['/', '%', ':'])
}

/// Converts the section of the provider's type.
fn of_type(provider: &IdentityProvider, files: &mut Files<'_>) -> Result<Provider, Refusal> {
    let type_ = provider.type_.as_deref().unwrap_or_default();
    let missing = || Refusal::Section(type_.to_owned());
    match type_ {
        "BasicAuth" => {
            password::basic_auth(provider.basic_auth.as_ref().ok_or_else(missing)?, files)
        }
        "GitHub" => redirect::github(provider.github.as_ref().ok_or_else(missing)?, files),
        "GitLab" => redirect::gitlab(provider.gitlab.as_ref().ok_or_else(missing)?, files),
        "Google" => redirect::google(provider.google.as_ref().ok_or_else(missing)?, files),
        "HTPasswd" => password::htpasswd(provider.htpasswd.as_ref().ok_or_else(missing)?, files),
        "Keystone" => password::keystone(provider.keystone.as_ref().ok_or_else(missing)?, files),
        "LDAP" => password::ldap(provider.ldap.as_ref().ok_or_else(missing)?, files),
        "OpenID" => {
            let section = provider.open_id.as_ref().ok_or_else(missing)?;
            openid::convert(name(provider), section, files)
        }
        "RequestHeader" => {
            let section = provider.request_header.as_ref().ok_or_else(missing)?;
            redirect::request_header(section, files)
        }
        other => Err(Refusal::Type(other.to_owned())),
    }
}

/// A text that is required.
fn required(value: Option<&String>, field: &'static str) -> Result<String, Refusal> {
    let value = value.filter(|value| !value.is_empty());
    value.cloned().ok_or(Refusal::Field(field))
}

/// A text that may be absent.
fn text(value: Option<&String>) -> &str {
    value.map(String::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests;
