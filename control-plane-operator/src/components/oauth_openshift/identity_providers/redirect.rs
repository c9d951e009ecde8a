//! Providers with login pages of their own, to which browsers are redirected.

use api::hypershift::v1beta1::configuration::oauth::identity_provider::directory::RequestHeaderIdentityProvider;
use api::hypershift::v1beta1::configuration::oauth::identity_provider::social::{
    GitHubIdentityProvider, GitLabIdentityProvider, GoogleIdentityProvider,
};
use serde_json::{Value, json};

use super::error::Refusal;
use super::files::{CLIENT_SECRET, Files};
use super::{Provider, required, text};

pub(super) fn github(
    section: &GitHubIdentityProvider,
    files: &mut Files<'_>,
) -> Result<Provider, Refusal> {
    let secret = files.secret(section.client_secret.as_ref(), CLIENT_SECRET)?;
    let mut config = json!({
        "clientID": required(section.client_id.as_ref(), "clientID")?,
        "clientSecret": { "file": secret },
        "organizations": section.organizations,
        "teams": section.teams,
        "hostname": text(section.hostname.as_ref()),
    });
    files.optional_ca(section.ca.as_ref(), &mut config)?;
    Ok(browsers("GitHubIdentityProvider", config))
}

pub(super) fn gitlab(
    section: &GitLabIdentityProvider,
    files: &mut Files<'_>,
) -> Result<Provider, Refusal> {
    let secret = files.secret(section.client_secret.as_ref(), CLIENT_SECRET)?;
    let mut config = json!({
        "url": required(section.url.as_ref(), "url")?,
        "clientID": required(section.client_id.as_ref(), "clientID")?,
        "clientSecret": { "file": secret },
        // Use OpenID Connect.
        "legacy": false,
    });
    files.optional_ca(section.ca.as_ref(), &mut config)?;
    Ok(Provider {
        challenge: true,
        ..browsers("GitLabIdentityProvider", config)
    })
}

pub(super) fn google(
    section: &GoogleIdentityProvider,
    files: &mut Files<'_>,
) -> Result<Provider, Refusal> {
    let secret = files.secret(section.client_secret.as_ref(), CLIENT_SECRET)?;
    let config = json!({
        "clientID": required(section.client_id.as_ref(), "clientID")?,
        "clientSecret": { "file": secret },
        "hostedDomain": text(section.hosted_domain.as_ref()),
    });
    Ok(browsers("GoogleIdentityProvider", config))
}

/// A proxy in front of the OAuth server. Without its CA, anyone could send its headers, so the CA is required.
pub(super) fn request_header(
    section: &RequestHeaderIdentityProvider,
    files: &mut Files<'_>,
) -> Result<Provider, Refusal> {
    let (login, challenge) = (
        text(section.login_url.as_ref()),
        text(section.challenge_url.as_ref()),
    );
    let authority = files.ca(section.ca.as_ref())?;
    if section.headers.is_empty() {
        return Err(Refusal::Field("headers"));
    }
    if login.is_empty() && challenge.is_empty() {
        return Err(Refusal::Field("loginURL or challengeURL"));
    }
    let config = json!({
        "loginURL": login,
        "challengeURL": challenge,
        "clientCA": authority,
        "clientCommonNames": section.client_common_names,
        "headers": section.headers,
        "preferredUsernameHeaders": section.preferred_username_headers,
        "nameHeaders": section.name_headers,
        "emailHeaders": section.email_headers,
    });
    Ok(Provider {
        challenge: !challenge.is_empty(),
        login: !login.is_empty(),
        ..browsers("RequestHeaderIdentityProvider", config)
    })
}

fn browsers(kind: &'static str, config: Value) -> Provider {
    Provider {
        kind,
        challenge: false,
        login: true,
        config,
    }
}
