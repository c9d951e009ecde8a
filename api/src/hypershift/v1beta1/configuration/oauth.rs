//! The OAuth server of OpenShift.

pub mod identity_provider;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::hypershift::v1beta1::configuration::oauth::identity_provider::IdentityProvider;
use crate::hypershift::v1beta1::references::NameReference;
use crate::schema::{atomic_list, rule};

/// The OAuth server of OpenShift.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(
    transform = rule(
        "!has(self.tokenConfig) || !has(self.tokenConfig.accessTokenInactivityTimeout) || \
         duration(self.tokenConfig.accessTokenInactivityTimeout) >= duration('300s')",
        "tokens must be good for at least 300 seconds of inactivity; set \
         tokenConfig.accessTokenInactivityTimeout to 300s or more, or remove it"
    ),
)]
pub struct OAuthConfiguration {
    /// Where the passwords of users are verified. With none, only the administrator that the cluster
    /// is created with can log in.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(transform = atomic_list)]
    pub identity_providers: Vec<IdentityProvider>,
    /// How long tokens are good.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token_config: Option<TokenConfig>,
    /// Pages of your own for the login.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub templates: Option<OAuthTemplates>,
}

/// How long tokens are good.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TokenConfig {
    /// Seconds after which a token ends in any case. Without a value it is a day.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub access_token_max_age_seconds: Option<i32>,
    /// Time after which an unused token expires, as a duration such as `10m`, 300s or longer.
    /// Without a value it does not end.
    /// Clients can have times of their own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub access_token_inactivity_timeout: Option<String>,
    /// Deprecated, has no effect; `accessTokenInactivityTimeout` has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub access_token_inactivity_timeout_seconds: Option<i32>,
}

/// Pages for the login.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OAuthTemplates {
    /// Secret with the template of the login page, under the key
    /// `login.html`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub login: Option<NameReference>,
    /// Secret with the template of the page that lets users choose an identity provider, under the
    /// key `providers.html`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider_selection: Option<NameReference>,
    /// Secret with the template of the page that shows an error, under the key `errors.html`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<NameReference>,
}
