//! Serves health and metrics as the configuration file of the component says, with a certificate of its own.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use rcgen::{CertificateParams, KeyPair};
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::PrivatePkcs8KeyDer;
use rustls::version::{TLS12, TLS13};
use rustls::{ServerConfig, SupportedCipherSuite, SupportedProtocolVersion};
use serde::Deserialize;
use support::admin::{self, Admin};

use crate::error::{Failure, Usage};
use crate::https::{Handler, Peer};

/// How often files are compared whose change ends the program.
const COMPARE: Duration = Duration::from_secs(5);

/// Supported versions of TLS.
const BOTH: &[&SupportedProtocolVersion] = &[&TLS12, &TLS13];
const NEWEST: &[&SupportedProtocolVersion] = &[&TLS13];

/// `GenericControllerConfig`, as far as it is used.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Config {
    serving_info: ServingInfo,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ServingInfo {
    bind_address: String,
    bind_network: String,
    cipher_suites: Vec<String>,
    #[serde(rename = "minTLSVersion")]
    min_tls_version: String,
}

/// Files whose change ends the program, and their contents at its start.
pub(super) struct Watched(Vec<(PathBuf, Option<Vec<u8>>)>);

/// Answers probes and scrapes.
pub(super) struct Endpoints(pub(super) Admin);

// === impl Config ===

impl Config {
    /// Reads a file.
    pub(super) fn read(path: &Path) -> Result<Self, Usage> {
        let failed = |error: &dyn std::fmt::Display| Usage {
            message: format!("failed to read --config {}: {error}", path.display()),
        };
        let text = std::fs::read_to_string(path).map_err(|error| failed(&error))?;
        serde_saphyr::from_str(&text).map_err(|error| failed(&error))
    }

    /// The address to listen on.
    pub(super) fn address(&self) -> Result<SocketAddr, Usage> {
        let ServingInfo {
            bind_address,
            bind_network,
            ..
        } = &self.serving_info;
        let address: SocketAddr = bind_address.parse().map_err(|_| Usage {
            message: format!("servingInfo.bindAddress {bind_address:?} is not an address (for example 0.0.0.0:8443)"),
        })?;
        let fits = match bind_network.as_str() {
            "" | "tcp" => true,
            "tcp4" => address.is_ipv4(),
            "tcp6" => address.is_ipv6(),
            _ => false,
        };
        if fits {
            return Ok(address);
        }
        Err(Usage {
            message: format!(
                "servingInfo.bindNetwork {bind_network:?} does not match address {address}: use tcp, tcp4 or tcp6"
            ),
        })
    }

    /// TLS with a new certificate, which scrapers do not verify.
    pub(super) fn tls(&self) -> Result<ServerConfig, Failure> {
        let key = KeyPair::generate()?;
        let params = CertificateParams::new(vec!["control-plane-pki-operator".to_owned()])?;
        let certificate = params.self_signed(&key)?;
        let key = PrivatePkcs8KeyDer::from(key.serialize_der());
        let config = ServerConfig::builder_with_provider(Arc::new(self.provider()?))
            .with_protocol_versions(self.versions()?)
            .map_err(|error| Usage {
                message: format!(
                    "servingInfo.cipherSuites and servingInfo.minTLSVersion do not match: {error}"
                ),
            })?
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], key.into())?;
        Ok(config)
    }

    fn versions(&self) -> Result<&'static [&'static SupportedProtocolVersion], Usage> {
        match self.serving_info.min_tls_version.as_str() {
            // Earlier versions are not supported.
            "" | "VersionTLS10" | "VersionTLS11" | "VersionTLS12" => Ok(BOTH),
            "VersionTLS13" => Ok(NEWEST),
            other => Err(Usage {
                message: format!(
                    "servingInfo.minTLSVersion {other:?} is unknown (for example VersionTLS12)"
                ),
            }),
        }
    }

    /// The configured suites of TLS 1.2, as far as they are supported; those of TLS 1.3 cannot be configured.
    fn provider(&self) -> Result<CryptoProvider, Usage> {
        let mut provider = aws_lc_rs::default_provider();
        let names = &self.serving_info.cipher_suites;
        if names.is_empty() {
            return Ok(provider);
        }
        let is_13 = |suite: &SupportedCipherSuite| suite.tls13().is_some();
        let before = provider
            .cipher_suites
            .iter()
            .filter(|suite| !is_13(suite))
            .count();
        provider
            .cipher_suites
            .retain(|suite| is_13(suite) || names.contains(&name(*suite)));
        let after = provider
            .cipher_suites
            .iter()
            .filter(|suite| !is_13(suite))
            .count();
        if before > 0 && after == 0 {
            return Err(Usage {
                message: format!(
                    "servingInfo.cipherSuites has no supported suite: {}",
                    names.join(", ")
                ),
            });
        }
        Ok(provider)
    }
}

/// The name of a suite in configuration files.
fn name(suite: SupportedCipherSuite) -> String {
    format!("{:?}", suite.suite())
}

// === impl Watched ===

impl Watched {
    pub(super) fn new(files: &[PathBuf]) -> Self {
        Self(
            files
                .iter()
                .map(|path| (path.clone(), std::fs::read(path).ok()))
                .collect(),
        )
    }

    /// Completes when a file has changed, and returns it.
    pub(super) async fn changed(&self) -> &Path {
        let mut ticks = tokio::time::interval(COMPARE);
        loop {
            ticks.tick().await;
            let mut files = self.0.iter();
            if let Some((path, _)) =
                files.find(|(path, contents)| std::fs::read(path).ok() != *contents)
            {
                return path;
            }
        }
    }
}

// === impl Endpoints ===

impl Handler for Endpoints {
    async fn respond(&self, request: Request<Bytes>, _: Peer) -> Response<Full<Bytes>> {
        admin::answer(&self.0, &request)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(serving: &str) -> Config {
        serde_saphyr::from_str(&format!("servingInfo: {{ {serving} }}")).unwrap()
    }

    fn component() -> Config {
        let text = include_str!("../components/control_plane_pki_operator/assets/config.yaml");
        let config_map: serde_json::Value = serde_saphyr::from_str(text).unwrap();
        serde_saphyr::from_str(config_map["data"]["config.yaml"].as_str().unwrap()).unwrap()
    }

    #[test]
    fn the_configuration_of_the_component_is_accepted() {
        let config = component();
        assert_eq!(config.address().unwrap().to_string(), "0.0.0.0:8443");
        config.tls().unwrap();
    }

    #[test]
    fn invalid_configurations_are_rejected_with_their_field() {
        for (serving, field) in [
            ("bindAddress: '8443'", "bindAddress"),
            ("bindAddress: ''", "bindAddress"),
            (
                "bindAddress: '0.0.0.0:8443', bindNetwork: tcp6",
                "bindNetwork",
            ),
            (
                "bindAddress: '0.0.0.0:8443', bindNetwork: udp",
                "bindNetwork",
            ),
            (
                "bindAddress: '0.0.0.0:8443', minTLSVersion: TLS12",
                "minTLSVersion",
            ),
            (
                "bindAddress: '0.0.0.0:8443', cipherSuites: [TLS_RSA_WITH_AES_128_CBC_SHA]",
                "cipherSuites",
            ),
        ] {
            let config = config(serving);
            let problem = config.address().err().map(|error| error.to_string());
            let problem = problem.or_else(|| config.tls().err().map(|error| error.to_string()));
            assert!(
                problem.as_ref().is_some_and(|it| it.contains(field)),
                "{serving}: {problem:?}"
            );
        }
    }

    #[test]
    fn cipher_suites_are_those_of_the_configuration() {
        let suite = "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256";
        let provider = config(&format!("cipherSuites: [{suite}]"))
            .provider()
            .unwrap();
        let configured = provider
            .cipher_suites
            .iter()
            .filter(|it| it.tls13().is_none());
        let configured: Vec<_> = configured.map(|it| name(*it)).collect();
        assert_eq!(configured, [suite]);
        assert!(provider.cipher_suites.len() > 1);
        assert_eq!(
            config("minTLSVersion: VersionTLS13")
                .versions()
                .unwrap()
                .len(),
            1
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_changed_file_is_noticed() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("config");
        std::fs::write(&path, "a").unwrap();
        let watched = Watched::new(std::slice::from_ref(&path));
        let unchanged = tokio::time::timeout(COMPARE * 3, watched.changed()).await;
        assert!(unchanged.is_err());
        std::fs::write(&path, "b").unwrap();
        assert_eq!(watched.changed().await, path);
    }
}
