//! Users made from the claims of tokens.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::schema::{list_map, rule};

/// How a user of Kubernetes is made from the claims of a token.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TokenClaimMappings {
    /// The user's name.
    pub username: UsernameClaimMapping,
    /// The user's groups. Without it the user has none but those of Kubernetes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub groups: Option<PrefixedClaimMapping>,
    /// The user's UID. Without it, it is the claim `sub`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uid: Option<TokenClaimOrExpressionMapping>,
    /// Further attributes of the user, by CEL expressions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32), transform = list_map(["key"]))]
    pub extra: Vec<ExtraMapping>,
}

/// How a user's name is made from the claims of a token.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(
    transform = rule(
        "has(self.claim) != has(self.expression)",
        "give either claim or expression; exactly one of them"
    ),
    transform = rule(
        "!has(self.expression) || self.expression.size() == 0 || \
         !has(self.prefixPolicy) || self.prefixPolicy != 'Prefix'",
        "an expression makes the whole name; remove prefixPolicy Prefix and let the expression add \
         the prefix"
    ),
    transform = rule(
        "(has(self.prefixPolicy) && self.prefixPolicy == 'Prefix') ? \
         has(self.prefix) && self.prefix.prefixString.size() > 0 : !has(self.prefix)",
        "prefix is required with prefixPolicy Prefix and not allowed otherwise; add it, remove it \
         or correct prefixPolicy"
    ),
)]
pub struct UsernameClaimMapping {
    /// Claim that has the name, for example `email`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub claim: Option<String>,
    /// CEL expression that makes the name; the claims are in `claims`, for example `claims.sub +
    /// '@example.com'`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 1024))]
    pub expression: Option<String>,
    /// Whether the name has a prefix.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prefix_policy: Option<UsernamePrefixPolicy>,
    /// The prefix, when `prefixPolicy` is `Prefix`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prefix: Option<UsernamePrefix>,
}

/// A prefix of user names.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UsernamePrefix {
    /// The prefix, for example `oidc:`.
    #[schemars(length(min = 1))]
    pub prefix_string: String,
}

/// How a user's groups are made from the claims of a token.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(
    transform = rule(
        "!has(self.expression) || self.expression.size() == 0 || \
         !has(self.prefix) || self.prefix.size() == 0",
        "an expression makes the whole names of groups; remove prefix and let the expression add \
         it"
    ),
    transform = rule(
        "!has(self.claim) || self.claim.size() == 0 || !has(self.expression)",
        "give either claim or expression, not both"
    ),
)]
pub struct PrefixedClaimMapping {
    /// Claim that has the groups: a list, or one text with commas.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 256))]
    pub claim: Option<String>,
    /// CEL expression that makes the groups, a text or a list; the claims are in `claims`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 1024))]
    pub expression: Option<String>,
    /// Prefix of each group of `claim`, for example `oidc:`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prefix: Option<String>,
}

/// How a user's UID is made from the claims of a token.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(
    transform = rule(
        "has(self.claim) != has(self.expression)",
        "give either claim or expression; exactly one of them"
    ),
)]
pub struct TokenClaimOrExpressionMapping {
    /// Claim that has the UID.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub claim: Option<String>,
    /// CEL expression that makes the UID; the claims are in `claims`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 1024))]
    pub expression: Option<String>,
}

/// How a further attribute of a user is made from the claims of a token.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExtraMapping {
    /// Key of the attribute: a domain of your own, a slash and a path, for example
    /// `example.com/team`.
    #[schemars(
        length(min = 1, max = 510),
        transform = rule(
            "self.matches('/')",
            "key must be a domain, a slash and a path, such as example.com/team"
        ),
        transform = rule(
            "self.split('/', \
             2)[0].matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",
            "what stands before the first slash must be a domain in lower case, such as \
             example.com"
        ),
        transform = rule(
            "self.split('/', 2)[0].size() < 254",
            "the domain before the first slash must have 253 characters at most"
        ),
        transform = rule(
            "!self.startsWith('kubernetes.io/') && self != 'kubernetes.io'",
            "kubernetes.io is reserved; use a domain of your own"
        ),
        transform = rule(
            "!self.split('/', 2)[0].matches('[.]kubernetes[.]io$')",
            "domains below kubernetes.io are reserved; use a domain of your own"
        ),
        transform = rule(
            "!self.startsWith('k8s.io/') && self != 'k8s.io'",
            "k8s.io is reserved; use a domain of your own"
        ),
        transform = rule(
            "!self.split('/', 2)[0].matches('[.]k8s[.]io$')",
            "domains below k8s.io are reserved; use a domain of your own"
        ),
        transform = rule(
            "!self.startsWith('openshift.io/') && self != 'openshift.io'",
            "openshift.io is reserved; use a domain of your own"
        ),
        transform = rule(
            "!self.split('/', 2)[0].matches('[.]openshift[.]io$')",
            "domains below openshift.io are reserved; use a domain of your own"
        ),
        transform = rule(
            r"self.split('/', 2)[1].matches(r'[-A-Za-z0-9/._~%!$&\x27()*+;=:]+')",
            "what follows the first slash must be a path with at least one character that URLs \
             take"
        ),
        transform = rule(
            "self.split('/', 2)[1].size() < 257",
            "what follows the first slash must have 256 characters at most"
        ),
    )]
    pub key: String,
    /// CEL expression that makes the value, a text or a list; the claims are in `claims`. If it
    /// gives nothing, the user lacks the attribute.
    #[schemars(length(min = 1, max = 1024))]
    pub value_expression: String,
}

/// A condition that the claims of a token must meet.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(
    transform = rule(
        "(has(self.type) && self.type == 'CEL') == has(self.cel)",
        "cel is required with type CEL and not allowed otherwise; add it, remove it or correct \
         type"
    ),
    transform = rule(
        "(has(self.type) && self.type == 'RequiredClaim') == has(self.requiredClaim)",
        "requiredClaim is required with type RequiredClaim and not allowed otherwise; add it, \
         remove it or correct type"
    ),
)]
pub struct TokenClaimValidationRule {
    /// What kind of condition it is.
    #[serde(rename = "type")]
    pub type_: TokenValidationRuleType,
    /// The claim and its value, when `type` is `RequiredClaim`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub required_claim: Option<TokenRequiredClaim>,
    /// The CEL expression, when `type` is `CEL`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cel: Option<TokenClaimValidationCelRule>,
}

/// A claim that a token must have.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TokenRequiredClaim {
    /// Name of the claim. Its value must be a text.
    #[schemars(length(min = 1))]
    pub claim: String,
    /// The value that it must have.
    #[schemars(length(min = 1))]
    pub required_value: String,
}

/// A condition in CEL.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TokenClaimValidationCelRule {
    /// Expression that is true for tokens to accept; the claims are in `claims`.
    #[schemars(length(min = 1, max = 1024))]
    pub expression: String,
    /// The message for users with a token that is not accepted.
    #[schemars(length(min = 1, max = 256))]
    pub message: String,
}

/// A condition that a user must meet.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TokenUserValidationRule {
    /// CEL expression that is true for users to accept; the user is in `user`, for example
    /// `!user.username.startsWith('system:')`.
    #[schemars(length(min = 1, max = 1024))]
    pub expression: String,
    /// The message for users who are not accepted.
    #[schemars(length(min = 1, max = 256))]
    pub message: String,
}

/// Whether user names have a prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum UsernamePrefixPolicy {
    /// The issuer's URL and a `#`, unless the name is the claim `email`.
    #[serde(rename = "")]
    Unset,
    /// None.
    NoPrefix,
    /// The one that is given.
    Prefix,
}

/// A kind of condition on tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum TokenValidationRuleType {
    /// A claim has a certain value.
    RequiredClaim,
    /// A CEL expression is true.
    #[serde(rename = "CEL")]
    Cel,
}
