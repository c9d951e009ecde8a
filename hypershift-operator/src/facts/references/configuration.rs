//! What `spec.configuration` refers to: pure.
//!
//! Every part is destructured without `..`: a field that is added to the API does not compile here until someone has
//! decided whether it names a Secret or a `ConfigMap`.

mod oauth;

use api::hypershift::v1beta1::configuration::ClusterConfiguration;
use api::hypershift::v1beta1::configuration::api_server::{
    ApiServerConfiguration, ApiServerNamedServingCert, ApiServerServingCerts,
};
use api::hypershift::v1beta1::configuration::authentication::provider::{
    OidcClientConfig, OidcProvider, TokenIssuer,
};
use api::hypershift::v1beta1::configuration::authentication::{
    AuthenticationConfiguration, DeprecatedWebhookTokenAuthenticator, WebhookTokenAuthenticator,
};
use api::hypershift::v1beta1::configuration::image::ImageConfiguration;
use api::hypershift::v1beta1::configuration::ingress::{ComponentRoute, IngressConfiguration};
use api::hypershift::v1beta1::configuration::proxy::ProxyConfiguration;
use api::hypershift::v1beta1::configuration::scheduler::SchedulerConfiguration;
use api::hypershift::v1beta1::references::NameReference;

use super::{Kind, Purpose, Reference};

/// Where references are collected.
pub(super) struct Collector {
    found: Vec<Reference>,
}

/// The references, each object once.
pub(super) fn references(configuration: &ClusterConfiguration) -> Vec<Reference> {
    let mut collector = Collector { found: Vec::new() };
    collector.configuration(configuration);
    let mut found = collector.found;
    found.sort();
    found.dedup_by(|one, other| (one.kind, &one.name) == (other.kind, &other.name));
    found
}

// === impl Collector ===

impl Collector {
    fn add(&mut self, kind: Kind, reference: Option<&NameReference>, field: &str) {
        let Some(NameReference { name }) = reference else {
            return;
        };
        if name.is_empty() {
            return;
        }
        self.found.push(Reference {
            purpose: Purpose::Configuration,
            kind,
            name: name.clone(),
            field: format!("spec.configuration.{field}"),
            keys: Vec::new(),
        });
    }

    pub(super) fn secret(&mut self, reference: Option<&NameReference>, field: &str) {
        self.add(Kind::Secret, reference, field);
    }

    pub(super) fn config_map(&mut self, reference: Option<&NameReference>, field: &str) {
        self.add(Kind::ConfigMap, reference, field);
    }

    fn configuration(&mut self, configuration: &ClusterConfiguration) {
        let ClusterConfiguration {
            api_server,
            authentication,
            feature_gate: _,
            image,
            ingress,
            network: _,
            oauth,
            operatorhub: _,
            scheduler,
            proxy,
        } = configuration;
        if let Some(it) = api_server {
            self.api_server(it);
        }
        if let Some(it) = authentication {
            self.authentication(it);
        }
        if let Some(it) = image {
            self.image(it);
        }
        if let Some(it) = ingress {
            self.ingress(it);
        }
        if let Some(it) = oauth {
            self.oauth(it);
        }
        if let Some(it) = scheduler {
            self.scheduler(it);
        }
        if let Some(it) = proxy {
            self.proxy(it);
        }
    }

    fn api_server(&mut self, api_server: &ApiServerConfiguration) {
        let ApiServerConfiguration {
            serving_certs,
            client_ca,
            additional_cors_allowed_origins: _,
            encryption: _,
            tls_security_profile: _,
            tls_adherence: _,
            audit: _,
        } = api_server;
        if let Some(ApiServerServingCerts { named_certificates }) = serving_certs {
            for (index, certificate) in named_certificates.iter().enumerate() {
                let ApiServerNamedServingCert {
                    names: _,
                    serving_certificate,
                } = certificate;
                let field =
                    format!("apiServer.servingCerts.namedCertificates[{index}].servingCertificate");
                self.secret(serving_certificate.as_ref(), &field);
            }
        }
        self.config_map(client_ca.as_ref(), "apiServer.clientCA");
    }

    fn authentication(&mut self, authentication: &AuthenticationConfiguration) {
        let AuthenticationConfiguration {
            type_: _,
            oauth_metadata,
            webhook_token_authenticator,
            webhook_token_authenticators,
            service_account_issuer: _,
            oidc_providers,
        } = authentication;
        self.config_map(oauth_metadata.as_ref(), "authentication.oauthMetadata");
        if let Some(WebhookTokenAuthenticator { kube_config }) = webhook_token_authenticator {
            let field = "authentication.webhookTokenAuthenticator.kubeConfig";
            self.secret(Some(kube_config), field);
        }
        for (index, webhook) in webhook_token_authenticators.iter().enumerate() {
            let DeprecatedWebhookTokenAuthenticator { kube_config } = webhook;
            let field = format!("authentication.webhookTokenAuthenticators[{index}].kubeConfig");
            self.secret(kube_config.as_ref(), &field);
        }
        for (index, provider) in oidc_providers.iter().enumerate() {
            self.oidc_provider(provider, &format!("authentication.oidcProviders[{index}]"));
        }
    }

    fn oidc_provider(&mut self, provider: &OidcProvider, field: &str) {
        let OidcProvider {
            name: _,
            issuer,
            oidc_clients,
            claim_mappings: _,
            claim_validation_rules: _,
            user_validation_rules: _,
        } = provider;
        let TokenIssuer {
            issuer_url: _,
            audiences: _,
            issuer_certificate_authority,
            discovery_url: _,
        } = issuer;
        let ca = format!("{field}.issuer.issuerCertificateAuthority");
        self.config_map(issuer_certificate_authority.as_ref(), &ca);
        for (index, client) in oidc_clients.iter().enumerate() {
            let OidcClientConfig {
                component_name: _,
                component_namespace: _,
                client_id: _,
                client_secret,
                extra_scopes: _,
            } = client;
            let field = format!("{field}.oidcClients[{index}].clientSecret");
            self.secret(client_secret.as_ref(), &field);
        }
    }

    fn image(&mut self, image: &ImageConfiguration) {
        let ImageConfiguration {
            allowed_registries_for_import: _,
            external_registry_hostnames: _,
            additional_trusted_ca,
            registry_sources: _,
        } = image;
        self.config_map(additional_trusted_ca.as_ref(), "image.additionalTrustedCA");
    }

    fn ingress(&mut self, ingress: &IngressConfiguration) {
        let IngressConfiguration {
            domain: _,
            apps_domain: _,
            component_routes,
            required_hsts_policies: _,
            load_balancer: _,
        } = ingress;
        for (index, route) in component_routes.iter().enumerate() {
            let ComponentRoute {
                namespace: _,
                name: _,
                hostname: _,
                serving_cert_key_pair_secret,
            } = route;
            let field = format!("ingress.componentRoutes[{index}].servingCertKeyPairSecret");
            self.secret(serving_cert_key_pair_secret.as_ref(), &field);
        }
    }

    fn scheduler(&mut self, scheduler: &SchedulerConfiguration) {
        let SchedulerConfiguration {
            policy,
            profile: _,
            profile_customizations: _,
            default_node_selector: _,
            masters_schedulable: _,
        } = scheduler;
        self.config_map(policy.as_ref(), "scheduler.policy");
    }

    fn proxy(&mut self, proxy: &ProxyConfiguration) {
        let ProxyConfiguration {
            http_proxy: _,
            https_proxy: _,
            no_proxy: _,
            readiness_endpoints: _,
            trusted_ca,
        } = proxy;
        self.config_map(trusted_ca.as_ref(), "proxy.trustedCA");
    }
}
