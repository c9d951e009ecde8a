//! `OpenID` providers. Their endpoints are in their discovery document, or in an annotation.

use api::hypershift::v1beta1::configuration::oauth::identity_provider::social::{
    OpenIdClaims, OpenIdIdentityProvider,
};
use control_plane_component::Context;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::error::Refusal;
use super::files::{CLIENT_SECRET, Files};
use super::{Provider, required, text};

/// Prefix of annotations that override endpoints and claims of a provider.
const OVERRIDES: &str = "idpoverrides.hypershift.openshift.io/";
/// The claim that identifies a user.
const SUBJECT: &str = "sub";

/// The annotation of a provider.
#[derive(Debug, Deserialize)]
pub(super) struct Override {
    #[serde(default)]
    pub(super) urls: Urls,
    #[serde(default)]
    claims: Claims,
    pub(super) challenge: Option<bool>,
}

/// What does not depend on the endpoints.
pub(super) struct Valid {
    client_id: String,
    /// Path of the client's secret.
    client_secret: String,
    /// Path of the provider's authorities.
    authority: Option<String>,
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Urls {
    authorize: String,
    pub(super) token: String,
    user_info: String,
}

/// Names of claims; the first that is present counts.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Claims {
    id: Vec<String>,
    preferred_username: Vec<String>,
    name: Vec<String>,
    email: Vec<String>,
    groups: Vec<String>,
}

pub(super) fn convert(
    name: &str,
    section: &OpenIdIdentityProvider,
    files: &mut Files<'_>,
) -> Result<Provider, Refusal> {
    let Valid {
        client_id,
        client_secret,
        authority,
    } = validate(section, files)?;
    let (urls, claims, challenge) = endpoints(name, section, files)?;
    let mut config = json!({
        "clientID": client_id,
        "clientSecret": { "file": client_secret },
        "extraScopes": section.extra_scopes,
        "extraAuthorizeParameters": section.extra_authorize_parameters,
        "urls": urls,
        "claims": claims,
    });
    if let Some(file) = authority {
        config["ca"] = json!(file);
    }
    Ok(Provider {
        kind: "OpenIDIdentityProvider",
        challenge,
        login: true,
        config,
    })
}

/// Validates everything but the endpoints.
pub(super) fn validate(
    section: &OpenIdIdentityProvider,
    files: &mut Files<'_>,
) -> Result<Valid, Refusal> {
    required(section.issuer.as_ref(), "issuer")?;
    Ok(Valid {
        client_id: required(section.client_id.as_ref(), "clientID")?,
        client_secret: files.secret(section.client_secret.as_ref(), CLIENT_SECRET)?,
        authority: files.optional_ca_path(section.ca.as_ref())?,
    })
}

/// The endpoints, the claims, and whether passwords can be verified without a browser.
fn endpoints(
    name: &str,
    section: &OpenIdIdentityProvider,
    files: &Files<'_>,
) -> Result<(Value, Value, bool), Refusal> {
    let discovered = files.context.infra.openid.get(name);
    let challenge = discovered.is_some_and(|discovered| discovered.challenge);
    if let Some(own) = overridden(name, files.context) {
        let challenge = own.challenge.unwrap_or(challenge);
        return Ok((json!(own.urls), json!(own.claims), challenge));
    }
    let issuer = text(section.issuer.as_ref());
    let discovered = discovered.ok_or_else(|| {
        let issuer = issuer.to_owned();
        match files.context.infra.openid_failures.get(name) {
            Some(reason) => Refusal::Undiscoverable {
                issuer,
                reason: reason.clone(),
            },
            None => Refusal::Undiscovered(issuer),
        }
    })?;
    let urls = Urls {
        authorize: discovered.authorize.clone(),
        token: discovered.token.clone(),
        user_info: discovered.user_info.clone(),
    };
    let claims = Claims::from(section.claims.clone().unwrap_or_default());
    Ok((json!(urls), json!(claims), challenge))
}

/// The provider's annotation. An invalid one is ignored.
pub(super) fn overridden(name: &str, context: &Context<'_>) -> Option<Override> {
    let text = context.annotation(&format!("{OVERRIDES}{name}"))?;
    serde_json::from_str(text).ok()
}

impl From<OpenIdClaims> for Claims {
    fn from(claims: OpenIdClaims) -> Self {
        let OpenIdClaims {
            preferred_username,
            name,
            email,
            groups,
        } = claims;
        Self {
            id: vec![SUBJECT.to_owned()],
            preferred_username,
            name,
            email,
            groups,
        }
    }
}
