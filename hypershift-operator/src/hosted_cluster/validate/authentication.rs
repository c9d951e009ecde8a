//! OIDC authentication: settings that the API server of the guest would reject, and fields that the release
//! does not know yet.

mod expressions;

use std::collections::BTreeSet;

use api::hypershift::v1beta1::configuration::authentication::provider::OidcProvider;
use api::hypershift::v1beta1::configuration::authentication::{
    AuthenticationConfiguration, AuthenticationType,
};
use payload::{Minor, Version};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;

use super::Problems;
use crate::facts::Facts;
use crate::facts::references::CA_BUNDLE;

/// The field.
const FIELD: &str = "spec.configuration.authentication";

/// Something that not every release can do.
struct Feature {
    /// The field, within a provider.
    field: &'static str,
    /// Whether a provider uses it.
    is_used: fn(&OidcProvider) -> bool,
    /// The first release in which everybody has it.
    first: Option<Minor>,
    /// The first release that has it as a technology preview.
    preview: (Minor, &'static str),
}

/// The first release that takes tokens of OIDC providers.
const FIRST: Minor = Minor::of_4(15);

const MAPPINGS: &str = "ExternalOIDCWithUIDAndExtraClaimMappings";
const PARITY: &str = "ExternalOIDCWithUpstreamParity";

const FEATURES: [Feature; 7] = [
    Feature {
        field: "claimMappings.uid",
        is_used: |it| it.claim_mappings.uid.is_some(),
        first: Some(Minor::of_4(20)),
        preview: (Minor::of_4(19), MAPPINGS),
    },
    Feature {
        field: "claimMappings.extra",
        is_used: |it| !it.claim_mappings.extra.is_empty(),
        first: Some(Minor::of_4(20)),
        preview: (Minor::of_4(19), MAPPINGS),
    },
    Feature {
        field: "claimMappings.username.expression",
        is_used: |it| it.claim_mappings.username.expression.is_some(),
        first: None,
        preview: (Minor::of_4(22), PARITY),
    },
    Feature {
        field: "claimMappings.groups.expression",
        is_used: |it| {
            let groups = it.claim_mappings.groups.as_ref();
            groups.is_some_and(|groups| groups.expression.is_some())
        },
        first: None,
        preview: (Minor::of_4(22), PARITY),
    },
    Feature {
        field: "claimValidationRules[].cel",
        is_used: |it| it.claim_validation_rules.iter().any(|it| it.cel.is_some()),
        first: None,
        preview: (Minor::of_4(22), PARITY),
    },
    Feature {
        field: "userValidationRules",
        is_used: |it| !it.user_validation_rules.is_empty(),
        first: None,
        preview: (Minor::of_4(22), PARITY),
    },
    Feature {
        field: "issuer.discoveryURL",
        is_used: |it| it.issuer.discovery_url.is_some(),
        first: None,
        preview: (Minor::of_4(22), PARITY),
    },
];

/// Problems of the authentication settings.
pub(super) fn problems(facts: &Facts) -> Problems {
    let configuration = facts.cluster.spec.configuration.as_ref();
    let Some(authentication) = configuration.and_then(|it| it.authentication.as_ref()) else {
        return Problems::new();
    };
    if authentication.type_ != Some(AuthenticationType::Oidc) {
        return Problems::new();
    }
    let mut problems = webhook(authentication);
    problems.extend(release(facts));
    for (index, provider) in authentication.oidc_providers.iter().enumerate() {
        let field = format!("{FIELD}.oidcProviders[{index}]");
        problems.extend(issuer(facts, &field, provider));
        problems.extend(authorities(facts, &field, provider));
        problems.extend(claims(&field, provider));
        problems.extend(expressions::problems(&field, provider));
        problems.extend(features(facts, &field, provider));
    }
    problems
}

/// Webhook and OIDC authentication are mutually exclusive.
fn webhook(authentication: &AuthenticationConfiguration) -> Problems {
    if authentication.webhook_token_authenticator.is_none() {
        return Problems::new();
    }
    vec![format!(
        "{FIELD}.webhookTokenAuthenticator requires type None: remove it, or change the type"
    )]
}

fn release(facts: &Facts) -> Problems {
    match version(facts) {
        Some(version) if version.minor() < FIRST => vec![format!(
            "{FIELD}.type is OIDC, and release {version} does not support OIDC providers: use release {FIRST} or newer, or type IntegratedOAuth"
        )],
        Some(_) | None => Problems::new(),
    }
}

/// The version of the API server that will read it.
fn version(facts: &Facts) -> Option<&Version> {
    facts.operated().read().map(|release| &release.version)
}

/// The API server distinguishes its own tokens by their issuer.
fn issuer(facts: &Facts, field: &str, provider: &OidcProvider) -> Problems {
    let (url, own) = (&provider.issuer.issuer_url, &facts.cluster.spec.issuer_url);
    if url.is_empty() || url != own {
        return Problems::new();
    }
    vec![format!(
        "{field}.issuer.issuerURL is {url}, the same as spec.issuerURL, which identifies the cluster's own service accounts: set it to the issuer of the provider"
    )]
}

/// Whom the API server trusts to be the issuer.
fn authorities(facts: &Facts, field: &str, provider: &OidcProvider) -> Problems {
    let bundle = provider.issuer.issuer_certificate_authority.as_ref();
    let Some(name) = bundle.map(|it| &it.name).filter(|name| !name.is_empty()) else {
        return Problems::new();
    };
    let Some(map) = facts.config_map(name) else {
        // A missing ConfigMap is reported with all references.
        return Problems::new();
    };
    let text = map.data.as_ref().and_then(|data| data.get(CA_BUNDLE));
    let is_good = text.is_some_and(|text| is_bundle(text));
    if is_good {
        return Problems::new();
    }
    let namespace = &facts.id.namespace;
    vec![format!(
        "{field}.issuer.issuerCertificateAuthority names ConfigMap {namespace}/{name}, whose key {CA_BUNDLE} is missing or has no certificates: add them as PEM"
    )]
}

fn is_bundle(text: &str) -> bool {
    let mut certificates = CertificateDer::pem_slice_iter(text.as_bytes()).peekable();
    certificates.peek().is_some() && certificates.all(|it| it.is_ok())
}

/// Rules about claims that a schema cannot hold.
fn claims(field: &str, provider: &OidcProvider) -> Problems {
    let mut problems = unverified(field, provider);
    let capital = |key: &&String| key.chars().any(char::is_uppercase);
    let keys = provider.claim_mappings.extra.iter().map(|it| &it.key);
    problems.extend(keys.filter(capital).map(|key| {
        let small = key.to_lowercase();
        format!(
            "{field}.claimMappings.extra has the key {key}, which must be lower case: use {small}"
        )
    }));
    let rules = &provider.claim_validation_rules;
    let required = rules.iter().filter_map(|it| it.required_claim.as_ref());
    problems.extend(twice(required.map(|it| it.claim.as_str())).map(|claim| {
        format!(
            "{field}.claimValidationRules requires claim {claim} twice: remove one of the rules"
        )
    }));
    let expressions = rules.iter().filter_map(|it| it.cel.as_ref());
    problems.extend(
        twice(expressions.map(|it| it.expression.as_str())).map(|expression| {
            format!("{field}.claimValidationRules has the expression {expression:?} twice: remove one of the rules")
        }),
    );
    problems
}

/// Usernames from email addresses require verified addresses.
fn unverified(field: &str, provider: &OidcProvider) -> Problems {
    let name = provider.claim_mappings.username.expression.as_deref();
    let name = name.unwrap_or_default();
    let extra = provider.claim_mappings.extra.iter();
    let extra = extra.map(|it| it.value_expression.as_str());
    let rules = provider.claim_validation_rules.iter();
    let rules = rules.filter_map(|it| Some(it.cel.as_ref()?.expression.as_str()));
    let mut looked_at = extra.chain(rules).chain([name]);
    if !uses(name, "email") || looked_at.any(|it| uses(it, "email_verified")) {
        return Problems::new();
    }
    vec![format!(
        "{field}.claimMappings.username.expression uses claims.email, and no rule checks claims.email_verified: add \
         the claimValidationRule \"claims.email_verified == true\", or use another claim"
    )]
}

/// Whether an expression reads a claim: `claims.NAME`, or `claims.?NAME`.
fn uses(expression: &str, claim: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let after = expression.match_indices("claims.").map(|(at, found)| {
        let rest = &expression[at + found.len()..];
        rest.strip_prefix('?').unwrap_or(rest)
    });
    let mut after = after.filter_map(|rest| rest.strip_prefix(claim));
    after.any(|rest| !rest.starts_with(is_part))
}

/// Duplicates, each once.
fn twice<'a>(texts: impl Iterator<Item = &'a str>) -> impl Iterator<Item = &'a str> {
    let mut seen = BTreeSet::new();
    let again: BTreeSet<_> = texts.filter(|text| !seen.insert(*text)).collect();
    again.into_iter()
}

/// Fields that the release would ignore, although they restrict access.
fn features(facts: &Facts, field: &str, provider: &OidcProvider) -> Problems {
    let Some(version) = version(facts) else {
        return Problems::new();
    };
    let used = FEATURES.iter().filter(|it| (it.is_used)(provider));
    let unknown = used.filter(|it| !it.is_known(facts, version));
    unknown
        .map(|feature| {
            let Feature { field: part, .. } = feature;
            let way = feature.way();
            format!("{field}.{part} is not supported by release {version}: remove it, or {way}")
        })
        .collect()
}

// === impl Feature ===

impl Feature {
    fn is_known(&self, facts: &Facts, version: &Version) -> bool {
        let minor = version.minor();
        let (preview, gate) = self.preview;
        self.first.is_some_and(|first| minor >= first) || (minor >= preview && is_on(facts, gate))
    }

    /// How to get it.
    fn way(&self) -> String {
        let (preview, _) = self.preview;
        match self.first {
            Some(first) => format!("use release {first} or newer"),
            None => format!(
                "use release {preview} or newer with spec.configuration.featureGate.featureSet \
                 TechPreviewNoUpgrade"
            ),
        }
    }
}

/// Whether the cluster has features that are not on by default, and this among them.
fn is_on(facts: &Facts, gate: &str) -> bool {
    use api::hypershift::v1beta1::configuration::feature_gate::FeatureSet;

    let configuration = facts.cluster.spec.configuration.as_ref();
    let Some(gates) = configuration.and_then(|it| it.feature_gate.as_ref()) else {
        return false;
    };
    match gates.feature_set {
        Some(FeatureSet::TechPreviewNoUpgrade | FeatureSet::DevPreviewNoUpgrade) => true,
        Some(FeatureSet::CustomNoUpgrade) => {
            let custom = gates.custom_no_upgrade.as_ref();
            custom.is_some_and(|it| it.enabled.iter().any(|enabled| enabled == gate))
        }
        Some(_) | None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claims_are_matched_by_their_whole_name() {
        for (expression, expected) in [
            ("claims.email", true),
            ("claims.?email.orValue('')", true),
            ("has(claims.email) ? claims.email : claims.sub", true),
            ("claims.email_verified", false),
            ("claims.emails[0]", false),
            ("claims.sub + '@email'", false),
            ("", false),
        ] {
            assert_eq!(uses(expression, "email"), expected, "{expression}");
        }
    }

    #[test]
    fn duplicates_are_reported_once() {
        let found: Vec<_> = twice(["a", "b", "a", "c", "a"].into_iter()).collect();
        assert_eq!(found, ["a"]);
    }
}
