//! `OpenID` providers whose endpoints are discovered: what is asked of them, and what is remembered of the responses.

use std::collections::BTreeMap;

use api::hypershift::v1beta1::configuration::oauth::identity_provider::IdentityProvider;
use control_plane_component::Context;
use control_plane_component::facts::OpenIdEndpoints;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use serde::{Deserialize, Serialize};

use super::super::NAME;
use super::files::{CLIENT_SECRET, Files};
use super::{configured, name, openid, text, valid_names};
use crate::openid::{Inquiry, Source};

/// Annotation of the configuration: endpoints by provider. After a restart, the operator has them without a request: an
/// upgrade would otherwise render the configuration without these providers first.
const ENDPOINTS: &str = "hypershift.openshift.io/openid-endpoints";

/// Endpoints of an issuer.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Remembered {
    issuer: String,
    authorize: String,
    token: String,
    user_info: String,
    challenge: bool,
}

/// The providers whose endpoints are needed. Those that are refused for another reason are not asked.
pub(crate) fn inquiries(context: &Context<'_>) -> Vec<Inquiry> {
    let remembered = remembered(context);
    let names = valid_names(context);
    let providers = configured(context).iter().enumerate();
    let providers = providers.filter(|(index, _)| names.contains_key(index));
    providers
        .filter_map(|(index, provider)| inquiry(context, index, provider, &remembered))
        .collect()
}

fn inquiry(
    context: &Context<'_>,
    index: usize,
    provider: &IdentityProvider,
    remembered: &BTreeMap<String, Remembered>,
) -> Option<Inquiry> {
    let is_openid = provider.type_.as_deref() == Some("OpenID");
    let section = provider.open_id.as_ref().filter(|_| is_openid)?;
    let mut files = Files::new(context, index);
    openid::validate(section, &mut files).ok()?;
    let overridden = openid::overridden(name(provider), context);
    let needs_probe = overridden
        .as_ref()
        .is_none_or(|own| own.challenge.is_none());
    let issuer = text(section.issuer.as_ref());
    let source = match overridden {
        Some(own) if needs_probe => Source::Annotation(own.urls.token),
        // Nothing is unknown.
        Some(_) => return None,
        None => Source::Issuer(issuer.to_owned()),
    };
    let secret = context
        .objects
        .secret(&section.client_secret.as_ref()?.name)?;
    let earlier = remembered.get(name(provider));
    let earlier = earlier.filter(|earlier| source == Source::Issuer(earlier.issuer.clone()));
    Some(Inquiry {
        name: name(provider).to_owned(),
        client_id: text(section.client_id.as_ref()).to_owned(),
        secret_version: version(&secret),
        client_secret: secret.data?.remove(CLIENT_SECRET.key())?.0,
        needs_probe,
        authorities: files.authorities,
        earlier: earlier.map(Remembered::endpoints),
        source,
    })
}

fn version(secret: &Secret) -> String {
    let metadata = &secret.metadata;
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    format!(
        "{}/{}",
        text(&metadata.uid),
        text(&metadata.resource_version)
    )
}

/// The endpoints in the live configuration. An invalid annotation is ignored.
fn remembered(context: &Context<'_>) -> BTreeMap<String, Remembered> {
    let live = context.objects.config_map(NAME);
    let annotations = live.and_then(|live| live.metadata.annotations);
    let text = annotations.and_then(|mut annotations| annotations.remove(ENDPOINTS));
    let endpoints = text.and_then(|text| serde_json::from_str(&text).ok());
    endpoints.unwrap_or_default()
}

/// Sets the annotation of the configuration, if endpoints are known.
pub(in super::super) fn remember(context: &Context<'_>, config_map: &mut ConfigMap) {
    let known = configured(context).iter().filter_map(|provider| {
        let issuer = provider.open_id.as_ref()?.issuer.clone()?;
        let endpoints = context.infra.openid.get(name(provider))?;
        // Those of an annotation have no other URL.
        let is_discovered = !endpoints.authorize.is_empty();
        is_discovered.then(|| (name(provider), Remembered::new(issuer, endpoints)))
    });
    let known: BTreeMap<_, _> = known.collect();
    if known.is_empty() {
        return;
    }
    let text = serde_json::to_string(&known).unwrap_or_default();
    let annotations = config_map.metadata.annotations.get_or_insert_default();
    annotations.insert(ENDPOINTS.to_owned(), text);
}

// === impl Remembered ===

impl Remembered {
    fn new(issuer: String, endpoints: &OpenIdEndpoints) -> Self {
        let OpenIdEndpoints {
            authorize,
            token,
            user_info,
            challenge,
        } = endpoints.clone();
        Self {
            issuer,
            authorize,
            token,
            user_info,
            challenge,
        }
    }

    fn endpoints(&self) -> OpenIdEndpoints {
        OpenIdEndpoints {
            authorize: self.authorize.clone(),
            token: self.token.clone(),
            user_info: self.user_info.clone(),
            challenge: self.challenge,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::tests::{openid, secret, with, with_infra};
    use super::*;

    fn endpoints() -> OpenIdEndpoints {
        OpenIdEndpoints {
            authorize: "https://sso.example.com/auth".to_owned(),
            token: "https://sso.example.com/token".to_owned(),
            user_info: String::new(),
            challenge: true,
        }
    }

    fn annotated(mut provider: Value, text: &str) -> (Value, Value) {
        provider["name"] = json!("sso");
        (
            provider,
            json!({ "idpoverrides.hypershift.openshift.io/sso": text }),
        )
    }

    #[test]
    fn valid_openid_providers_are_asked() {
        let client = || secret("client", "clientSecret");
        let mut duplicate = openid();
        duplicate["openID"]["issuer"] = json!("https://other.example.com");
        let mut without_id = openid();
        without_id["openID"]["clientID"] = json!("");
        let mut ca = openid();
        ca["openID"]["ca"] = json!({ "name": "absent" });
        let mut method = openid();
        method["mappingMethod"] = json!("replace");
        for (providers, objects, expected) in [
            (
                json!([openid()]),
                vec![client()],
                vec!["https://sso.example.com"],
            ),
            (
                json!([openid(), duplicate]),
                vec![client()],
                vec!["https://sso.example.com"],
            ),
            (json!([openid()]), vec![], vec![]),
            (json!([without_id]), vec![client()], vec![]),
            (json!([ca]), vec![client()], vec![]),
            (json!([method]), vec![client()], vec![]),
        ] {
            let found = with(&providers, &objects, inquiries);
            let expected: Vec<_> = expected
                .into_iter()
                .map(|issuer| Source::Issuer(issuer.to_owned()))
                .collect();
            let sources: Vec<_> = found.iter().map(|it| it.source.clone()).collect();
            assert_eq!(sources, expected, "{providers}");
            for inquiry in found {
                assert_eq!(inquiry.client_secret, b"a");
                assert!(inquiry.needs_probe && inquiry.earlier.is_none());
            }
        }
    }

    #[test]
    fn an_annotation_replaces_discovery_and_may_replace_the_probe() {
        let token = "https://t.example.com";
        let urls = json!({ "authorize": "https://a.example.com", "token": token });
        let asked = Source::Annotation(token.to_owned());
        let issuer = Source::Issuer("https://sso.example.com".to_owned());
        for (text, expected) in [
            (json!({ "urls": urls }).to_string(), Some(asked)),
            (
                json!({ "urls": urls, "challenge": false }).to_string(),
                None,
            ),
            ("{".to_owned(), Some(issuer)),
        ] {
            let (provider, annotations) = annotated(openid(), &text);
            let objects = [secret("client", "clientSecret")];
            let found = with_infra(
                &json!([provider]),
                &annotations,
                &objects,
                &control_plane_component::facts::Infra::default(),
                inquiries,
            );
            let found: Vec<_> = found.into_iter().map(|it| it.source).collect();
            assert_eq!(found, Vec::from_iter(expected), "{text}");
        }
    }

    /// After a restart of this operator, the OAuth server keeps its providers.
    #[test]
    fn discovered_endpoints_are_remembered_for_their_issuer() {
        let infra = control_plane_component::facts::Infra {
            openid: [("sso".to_owned(), endpoints())].into(),
            ..Default::default()
        };
        let none = json!({});
        let mut config_map = ConfigMap::default();
        let client = secret("client", "clientSecret");
        with_infra(
            &json!([openid()]),
            &none,
            std::slice::from_ref(&client),
            &infra,
            |context| {
                remember(context, &mut config_map);
            },
        );
        config_map.metadata.name = Some(NAME.to_owned());
        let mut live = json!(config_map);
        live["apiVersion"] = json!("v1");
        live["kind"] = json!("ConfigMap");
        let mut moved = openid();
        moved["openID"]["issuer"] = json!("https://other.example.com");
        let mut invalid = live.clone();
        invalid["metadata"]["annotations"][ENDPOINTS] = json!("[");
        for (provider, live, expected) in [
            (openid(), live.clone(), Some(endpoints())),
            (moved, live, None),
            (openid(), invalid, None),
        ] {
            let objects = [client.clone(), live];
            let found = with(&json!([provider]), &objects, inquiries);
            assert_eq!(found[0].earlier, expected, "{provider}");
        }
    }
}
