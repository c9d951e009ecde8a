//! The network of the hosted cluster, seen from the control plane: what the proxies have in common.
//!
//! ```text
//!          proxy ──> dialer ──> route ─┬─> tunnel ──> konnectivity-server ──> agent ──> target
//!                      │               ├─> management cluster ──> target
//!                      v               └─> proxy of the management cluster ──> cloud API
//!                   resolver: Services, DNS of the hosted cluster, DNS of the management cluster
//! ```
//!
//! [`route`], [`resolver`], [`health`], [`bypass`], [`no_proxy`], [`proxies`] and [`target`] decide without I/O.

pub(crate) mod bypass;
pub(crate) mod connect;
pub(crate) mod credentials;
pub(crate) mod dialer;
pub(crate) mod dns;
pub(crate) mod guest;
pub(crate) mod health;
pub(crate) mod http_proxy;
pub(crate) mod no_proxy;
pub(crate) mod proxies;
pub(crate) mod relay;
pub(crate) mod resolver;
pub(crate) mod route;
pub(crate) mod server;
pub(crate) mod stream;
pub(crate) mod target;
#[cfg(test)]
pub(crate) mod testing;
pub(crate) mod tunnel;

use std::env;
use std::path::PathBuf;
use std::sync::Arc;

use crate::error::{Failure, Usage};
use bypass::CloudApis;
use credentials::{Credentials, Files};
use dialer::{Dialer, Network};
use guest::GuestApi;
use http_proxy::ProxyTls;
use no_proxy::NoProxy;
use proxies::{InvalidUrl, Proxies, ProxyUrl};
use resolver::{Family, Resolver, Settings};
use target::{Host, Target};
use tunnel::Tunnel;

/// Flags of both proxies.
#[derive(Debug, Clone, clap::Args)]
pub struct ProxyArgs {
    /// Accepted for compatibility; ignored.
    #[arg(value_name = "run", value_parser = ["run"], hide = true)]
    pub run: Option<String>,
    /// Host name of konnectivity-server. Its certificate must have this name.
    #[arg(long, value_name = "HOST", default_value = "konnectivity-server-local")]
    pub konnectivity_hostname: String,
    /// Port of konnectivity-server for clients.
    #[arg(long, value_name = "PORT", default_value_t = 8090)]
    pub konnectivity_port: u16,
    /// Port to serve the proxy on.
    #[arg(long, value_name = "PORT", default_value_t = 8090)]
    pub serving_port: u16,
    /// File with the authorities that konnectivity-server's certificate is verified with, PEM.
    #[arg(
        long,
        value_name = "FILE",
        default_value = "/etc/konnectivity/proxy-ca/ca.crt"
    )]
    pub ca_cert_path: PathBuf,
    /// File with the client certificate for konnectivity-server, PEM.
    #[arg(
        long,
        value_name = "FILE",
        default_value = "/etc/konnectivity/proxy-client/tls.crt"
    )]
    pub tls_cert_path: PathBuf,
    /// File with the key of the client certificate, PEM.
    #[arg(
        long,
        value_name = "FILE",
        default_value = "/etc/konnectivity/proxy-client/tls.key"
    )]
    pub tls_key_path: PathBuf,
    /// Connect to cloud APIs from the management cluster, through the proxy of the environment if there is one.
    #[arg(
        long,
        value_name = "BOOL",
        default_value_t = false,
        action = clap::ArgAction::Set,
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "true"
    )]
    pub connect_directly_to_cloud_apis: bool,
    /// Use IPv4 addresses of names.
    #[arg(
        long,
        value_name = "BOOL",
        default_value_t = false,
        action = clap::ArgAction::Set,
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "true"
    )]
    pub prefer_ipv4: bool,
    /// Kubeconfig of the hosted cluster, whose Services are resolved.
    #[arg(long, value_name = "FILE", env = "KUBECONFIG")]
    pub kubeconfig: Option<PathBuf>,
}

// === impl ProxyArgs ===

impl ProxyArgs {
    /// Which addresses are used.
    pub(crate) fn family(&self) -> Family {
        if self.prefer_ipv4 {
            return Family::Ipv4;
        }
        Family::Any
    }

    /// The dialer. Without settings, the other end of the tunnel resolves all names. `proxies` of the hosted cluster
    /// are no cloud APIs.
    pub(crate) async fn dialer(
        &self,
        resolver: Option<Settings>,
        proxies: &Proxies,
    ) -> Result<Dialer, Failure> {
        let files = Files {
            authorities: self.ca_cert_path.clone(),
            certificate: self.tls_cert_path.clone(),
            key: self.tls_key_path.clone(),
        };
        let tunnel = Arc::new(Tunnel::new(self.server()?, Credentials::load(files)?));
        let resolver = match resolver {
            None => None,
            Some(settings) => {
                let guest = GuestApi::load(self.kubeconfig()?).await?;
                let network = Network::new(guest, Arc::clone(&tunnel), settings.family);
                Some(Resolver::new(settings, network))
            }
        };
        Ok(Dialer {
            cloud_apis: self.cloud_apis(proxies),
            management: self.management_proxies()?,
            proxy_tls: ProxyTls::default(),
            resolver,
            tunnel,
        })
    }

    fn server(&self) -> Result<Target, Usage> {
        let host: Result<Host, _> = self.konnectivity_hostname.parse();
        let host = host.map_err(|error| Usage {
            message: format!(
                "--konnectivity-hostname {:?}: {error}",
                self.konnectivity_hostname
            ),
        })?;
        Ok(Target::new(host, self.konnectivity_port))
    }

    fn kubeconfig(&self) -> Result<PathBuf, Usage> {
        self.kubeconfig.clone().ok_or_else(|| Usage {
            message: "set --kubeconfig or KUBECONFIG to the kubeconfig of the hosted cluster"
                .to_owned(),
        })
    }

    /// The environment has no effect on programs that do not connect from the management cluster.
    fn management_proxies(&self) -> Result<Proxies, Usage> {
        if self.connect_directly_to_cloud_apis {
            return management_proxies(|name| env::var(name).ok());
        }
        Ok(Proxies::default())
    }

    fn cloud_apis(&self, proxies: &Proxies) -> CloudApis {
        if self.connect_directly_to_cloud_apis {
            return CloudApis::direct(proxies.hosts());
        }
        CloudApis::Tunnel
    }
}

/// The proxy of a flag or a variable. The error does not quote the URL, because it may have credentials.
pub(crate) fn proxy_url(source: &str, text: &str) -> Result<Option<ProxyUrl>, Usage> {
    ProxyUrl::read(text).map_err(|error: InvalidUrl| Usage {
        message: format!("{source}: {error}"),
    })
}

/// The proxies of the management cluster, from the environment.
fn management_proxies(variable: impl Fn(&str) -> Option<String>) -> Result<Proxies, Usage> {
    let read = |upper: &str| {
        let value = variable(upper).filter(|value| !value.is_empty());
        let value = value.or_else(|| variable(&upper.to_ascii_lowercase()));
        value.unwrap_or_default()
    };
    Ok(Proxies {
        http: None,
        https: proxy_url("HTTPS_PROXY", &read("HTTPS_PROXY"))?,
        no_proxy: NoProxy::new(&read("NO_PROXY")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proxies::Scheme;

    #[test]
    fn management_proxies_are_those_of_the_environment() {
        for (variables, expected) in [
            (vec![], None),
            (vec![("HTTPS_PROXY", "http://a:1")], Some("http://a:1")),
            (vec![("https_proxy", "http://a:1")], Some("http://a:1")),
            (
                vec![("HTTPS_PROXY", "http://a:1"), ("https_proxy", "http://b:1")],
                Some("http://a:1"),
            ),
            (vec![("HTTP_PROXY", "http://a:1")], None),
            (vec![("ALL_PROXY", "http://a:1")], None),
            (
                vec![
                    ("HTTPS_PROXY", "http://a:1"),
                    ("NO_PROXY", ".amazonaws.com"),
                ],
                None,
            ),
        ] {
            let variable = |name: &str| {
                let found = variables.iter().find(|(key, _)| *key == name);
                found.map(|(_, value)| (*value).to_owned())
            };
            let proxies = management_proxies(variable).unwrap();
            let target = Target::new("sts.amazonaws.com".parse().unwrap(), 443);
            let found = proxies
                .find(Scheme::Https, &target)
                .map(ToString::to_string);
            assert_eq!(found.as_deref(), expected, "{variables:?}");
        }
    }

    #[test]
    fn errors_do_not_quote_credentials() {
        let variable = |_: &str| Some("ftp://user:secret@proxy".to_owned());
        let error = management_proxies(variable).unwrap_err().to_string();
        assert!(error.starts_with("HTTPS_PROXY: expected"), "{error}");
        assert!(!error.contains("secret"), "{error}");
    }
}
