//! TLS versions and ciphers of components, from the TLS profile of the API server's configuration.

use api::hypershift::v1beta1::HostedControlPlaneSpec;
use api::hypershift::v1beta1::configuration::api_server::{
    CustomTlsProfile, TlsProfileType, TlsVersion,
};

/// Ciphers of the default profile, Intermediate: OpenSSL names and IANA names.
const INTERMEDIATE: [(&str, &str); 6] = [
    (
        "ECDHE-ECDSA-AES128-GCM-SHA256",
        "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
    ),
    (
        "ECDHE-RSA-AES128-GCM-SHA256",
        "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
    ),
    (
        "ECDHE-ECDSA-AES256-GCM-SHA384",
        "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
    ),
    (
        "ECDHE-RSA-AES256-GCM-SHA384",
        "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
    ),
    (
        "ECDHE-ECDSA-CHACHA20-POLY1305",
        "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
    ),
    (
        "ECDHE-RSA-CHACHA20-POLY1305",
        "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256",
    ),
];
/// Additional ciphers of the profile Old, as far as all components support them.
const OLD: [(&str, &str); 4] = [
    (
        "ECDHE-ECDSA-AES128-SHA",
        "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA",
    ),
    ("ECDHE-RSA-AES128-SHA", "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA"),
    (
        "ECDHE-ECDSA-AES256-SHA",
        "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA",
    ),
    ("ECDHE-RSA-AES256-SHA", "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA"),
];

/// TLS version and ciphers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tls {
    version: TlsVersion,
    /// IANA names. Empty if the TLS version has fixed ciphers.
    pub ciphers: Vec<&'static str>,
}

// === impl Tls ===

impl Tls {
    /// Returns the profile of a hosted control plane.
    pub fn of(spec: &HostedControlPlaneSpec) -> Self {
        let configuration = spec.configuration.as_ref();
        let profile = configuration
            .and_then(|configuration| configuration.api_server.as_ref())
            .and_then(|api_server| api_server.tls_security_profile.as_ref());
        let custom = profile.and_then(|profile| profile.custom.as_ref());
        match (profile.and_then(|profile| profile.type_), custom) {
            (Some(TlsProfileType::Old), _) => Self {
                version: TlsVersion::Tls10,
                ciphers: iana(&INTERMEDIATE).chain(iana(&OLD)).collect(),
            },
            (Some(TlsProfileType::Modern), _) => Self {
                version: TlsVersion::Tls13,
                ciphers: Vec::new(),
            },
            (Some(TlsProfileType::Custom), Some(custom)) => Self::custom(custom),
            (Some(TlsProfileType::Intermediate | TlsProfileType::Custom) | None, _) => Self {
                version: TlsVersion::Tls12,
                ciphers: iana(&INTERMEDIATE).collect(),
            },
        }
    }

    fn custom(profile: &CustomTlsProfile) -> Self {
        let version = profile.min_tls_version.unwrap_or(TlsVersion::Tls12);
        let known = || INTERMEDIATE.iter().chain(&OLD);
        let ciphers = profile.ciphers.iter().filter_map(|requested| {
            known()
                .find(|(openssl, iana)| requested == openssl || requested == iana)
                .map(|(_, iana)| *iana)
        });
        Self {
            version,
            ciphers: match version {
                TlsVersion::Tls13 => Vec::new(),
                TlsVersion::Tls10 | TlsVersion::Tls11 | TlsVersion::Tls12 => ciphers.collect(),
            },
        }
    }

    /// Minimum version in Kubernetes notation: `VersionTLS12`.
    pub fn version(&self) -> &'static str {
        match self.version {
            TlsVersion::Tls10 => "VersionTLS10",
            TlsVersion::Tls11 => "VersionTLS11",
            TlsVersion::Tls12 => "VersionTLS12",
            TlsVersion::Tls13 => "VersionTLS13",
        }
    }

    /// Minimum version in etcd notation: `TLS1.2`. etcd supports only 1.2 and 1.3.
    pub fn etcd_version(&self) -> &'static str {
        match self.version {
            TlsVersion::Tls10 | TlsVersion::Tls11 | TlsVersion::Tls12 => "TLS1.2",
            TlsVersion::Tls13 => "TLS1.3",
        }
    }

    /// The flags of most components: minimum version, and the ciphers if they are configurable.
    pub fn flags(&self) -> Vec<String> {
        let version = format!("--tls-min-version={}", self.version());
        let ciphers = self.cipher_flag("--tls-cipher-suites");
        [version].into_iter().chain(ciphers).collect()
    }

    /// The flag with the ciphers, if they are configurable.
    pub fn cipher_flag(&self, flag: &str) -> Option<String> {
        (!self.ciphers.is_empty()).then(|| format!("{flag}={}", self.ciphers.join(",")))
    }
}

fn iana(table: &'static [(&str, &'static str)]) -> impl Iterator<Item = &'static str> {
    table.iter().map(|(_, iana)| *iana)
}
