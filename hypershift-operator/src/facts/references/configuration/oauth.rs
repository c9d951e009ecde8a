//! What the OAuth server and its identity providers refer to.

use api::hypershift::v1beta1::configuration::oauth::identity_provider::IdentityProvider;
use api::hypershift::v1beta1::configuration::oauth::identity_provider::directory::{
    BasicAuthIdentityProvider, HtpasswdIdentityProvider, KeystoneIdentityProvider,
    LdapIdentityProvider, RequestHeaderIdentityProvider,
};
use api::hypershift::v1beta1::configuration::oauth::identity_provider::social::{
    GitHubIdentityProvider, GitLabIdentityProvider, GoogleIdentityProvider, OpenIdIdentityProvider,
};
use api::hypershift::v1beta1::configuration::oauth::{OAuthConfiguration, OAuthTemplates};

use super::Collector;

// === impl Collector ===

impl Collector {
    pub(super) fn oauth(&mut self, oauth: &OAuthConfiguration) {
        let OAuthConfiguration {
            identity_providers,
            token_config: _,
            templates,
        } = oauth;
        for (index, provider) in identity_providers.iter().enumerate() {
            self.identity_provider(provider, &format!("oauth.identityProviders[{index}]"));
        }
        if let Some(OAuthTemplates {
            login,
            provider_selection,
            error,
        }) = templates
        {
            self.secret(login.as_ref(), "oauth.templates.login");
            let field = "oauth.templates.providerSelection";
            self.secret(provider_selection.as_ref(), field);
            self.secret(error.as_ref(), "oauth.templates.error");
        }
    }

    fn identity_provider(&mut self, provider: &IdentityProvider, at: &str) {
        let IdentityProvider {
            name: _,
            mapping_method: _,
            type_: _,
            basic_auth,
            github,
            gitlab,
            google,
            htpasswd,
            keystone,
            ldap,
            open_id,
            request_header,
        } = provider;
        if let Some(it) = basic_auth {
            self.basic_auth(it, at);
        }
        if let Some(it) = github {
            self.github(it, at);
        }
        if let Some(it) = gitlab {
            self.gitlab(it, at);
        }
        if let Some(it) = google {
            self.google(it, at);
        }
        if let Some(it) = htpasswd {
            self.htpasswd(it, at);
        }
        if let Some(it) = keystone {
            self.keystone(it, at);
        }
        if let Some(it) = ldap {
            self.ldap(it, at);
        }
        if let Some(it) = open_id {
            self.open_id(it, at);
        }
        if let Some(it) = request_header {
            self.request_header(it, at);
        }
    }

    fn basic_auth(&mut self, provider: &BasicAuthIdentityProvider, at: &str) {
        let BasicAuthIdentityProvider {
            url: _,
            ca,
            tls_client_cert,
            tls_client_key,
        } = provider;
        self.config_map(ca.as_ref(), &format!("{at}.basicAuth.ca"));
        let field = format!("{at}.basicAuth.tlsClientCert");
        self.secret(tls_client_cert.as_ref(), &field);
        let field = format!("{at}.basicAuth.tlsClientKey");
        self.secret(tls_client_key.as_ref(), &field);
    }

    fn github(&mut self, provider: &GitHubIdentityProvider, at: &str) {
        let GitHubIdentityProvider {
            client_id: _,
            client_secret,
            organizations: _,
            teams: _,
            hostname: _,
            ca,
        } = provider;
        self.secret(client_secret.as_ref(), &format!("{at}.github.clientSecret"));
        self.config_map(ca.as_ref(), &format!("{at}.github.ca"));
    }

    fn gitlab(&mut self, provider: &GitLabIdentityProvider, at: &str) {
        let GitLabIdentityProvider {
            client_id: _,
            client_secret,
            url: _,
            ca,
        } = provider;
        self.secret(client_secret.as_ref(), &format!("{at}.gitlab.clientSecret"));
        self.config_map(ca.as_ref(), &format!("{at}.gitlab.ca"));
    }

    fn google(&mut self, provider: &GoogleIdentityProvider, at: &str) {
        let GoogleIdentityProvider {
            client_id: _,
            client_secret,
            hosted_domain: _,
        } = provider;
        self.secret(client_secret.as_ref(), &format!("{at}.google.clientSecret"));
    }

    fn htpasswd(&mut self, provider: &HtpasswdIdentityProvider, at: &str) {
        let HtpasswdIdentityProvider { file_data } = provider;
        self.secret(file_data.as_ref(), &format!("{at}.htpasswd.fileData"));
    }

    fn keystone(&mut self, provider: &KeystoneIdentityProvider, at: &str) {
        let KeystoneIdentityProvider {
            domain_name: _,
            url: _,
            ca,
            tls_client_cert,
            tls_client_key,
        } = provider;
        self.config_map(ca.as_ref(), &format!("{at}.keystone.ca"));
        let field = format!("{at}.keystone.tlsClientCert");
        self.secret(tls_client_cert.as_ref(), &field);
        let field = format!("{at}.keystone.tlsClientKey");
        self.secret(tls_client_key.as_ref(), &field);
    }

    fn ldap(&mut self, provider: &LdapIdentityProvider, at: &str) {
        let LdapIdentityProvider {
            url: _,
            insecure: _,
            bind_dn: _,
            bind_password,
            ca,
            attributes: _,
        } = provider;
        self.secret(bind_password.as_ref(), &format!("{at}.ldap.bindPassword"));
        self.config_map(ca.as_ref(), &format!("{at}.ldap.ca"));
    }

    fn open_id(&mut self, provider: &OpenIdIdentityProvider, at: &str) {
        let OpenIdIdentityProvider {
            client_id: _,
            client_secret,
            ca,
            extra_scopes: _,
            extra_authorize_parameters: _,
            issuer: _,
            claims: _,
        } = provider;
        self.secret(client_secret.as_ref(), &format!("{at}.openID.clientSecret"));
        self.config_map(ca.as_ref(), &format!("{at}.openID.ca"));
    }

    fn request_header(&mut self, provider: &RequestHeaderIdentityProvider, at: &str) {
        let RequestHeaderIdentityProvider {
            login_url: _,
            challenge_url: _,
            ca,
            client_common_names: _,
            headers: _,
            preferred_username_headers: _,
            name_headers: _,
            email_headers: _,
        } = provider;
        self.config_map(ca.as_ref(), &format!("{at}.requestHeader.ca"));
    }
}
