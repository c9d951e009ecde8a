//! The conversion stanza of a private CRD.

use std::{fmt, str::FromStr};

use base64::{Engine, engine::general_purpose::STANDARD};
use rustls::pki_types::{CertificateDer, pem::PemObject};
use serde_json::{Value, json};

/// Path under which the conversion webhook answers.
const WEBHOOK_PATH: &str = "/convert";
/// Port of a Service when none is given; the API server's own default.
const DEFAULT_PORT: u16 = 443;

/// How objects stored at one version are served at another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Conversion {
    /// Not at all: only `apiVersion` changes.
    None,
    /// By a webhook behind a Service.
    Webhook(Webhook),
}

/// A conversion webhook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Webhook {
    namespace: String,
    service: String,
    port: u16,
    ca_bundle: Option<String>,
}

/// A text that names no conversion.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not a conversion: write none or webhook=NAMESPACE/SERVICE[:PORT]")]
pub struct InvalidConversion {
    text: String,
}

/// A CA that no API server would take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "it holds no PEM certificates: name the file of the authority that signed the webhook's certificate"
)]
pub struct InvalidCa;

// === impl Conversion ===

impl FromStr for Conversion {
    type Err = InvalidConversion;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text == "none" {
            return Ok(Self::None);
        }
        text.strip_prefix("webhook=")
            .and_then(Webhook::parse)
            .map(Self::Webhook)
            .ok_or_else(|| InvalidConversion {
                text: text.to_owned(),
            })
    }
}

impl fmt::Display for Conversion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("none"),
            Self::Webhook(hook) => {
                write!(
                    f,
                    "webhook={}/{}:{}",
                    hook.namespace, hook.service, hook.port
                )
            }
        }
    }
}

impl Conversion {
    /// The stanza as it stands in a CRD's `spec.conversion`.
    pub(super) fn stanza(&self) -> Value {
        match self {
            Self::None => json!({"strategy": "None"}),
            Self::Webhook(hook) => json!({
                "strategy": "Webhook",
                "webhook": {
                    "clientConfig": hook.client_config(),
                    "conversionReviewVersions": ["v1"],
                },
            }),
        }
    }
}

// === impl Webhook ===

impl Webhook {
    /// Has the API server trust these PEM certificates, and no others, when it calls the webhook.
    pub fn with_ca(mut self, pem: &[u8]) -> Result<Self, InvalidCa> {
        let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
        if certificates.map_err(|_| InvalidCa)?.is_empty() {
            return Err(InvalidCa);
        }
        self.ca_bundle = Some(STANDARD.encode(pem));
        Ok(self)
    }

    fn parse(text: &str) -> Option<Self> {
        let (namespace, rest) = text.split_once('/')?;
        let (service, port) = match rest.split_once(':') {
            Some((service, port)) => (service, port.parse().ok().filter(|port| *port != 0)?),
            None => (rest, DEFAULT_PORT),
        };
        (is_label(namespace) && is_label(service)).then(|| Self {
            namespace: namespace.to_owned(),
            service: service.to_owned(),
            port,
            ca_bundle: None,
        })
    }

    fn client_config(&self) -> Value {
        let mut config = json!({
            "service": {
                "namespace": self.namespace,
                "name": self.service,
                "path": WEBHOOK_PATH,
                "port": self.port,
            },
        });
        if let Some(ca) = &self.ca_bundle {
            config["caBundle"] = ca.clone().into();
        }
        config
    }
}

/// A DNS label, which names of namespaces and Services are.
fn is_label(text: &str) -> bool {
    (1..=63).contains(&text.len())
        && text
            .bytes()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
        && !text.starts_with('-')
        && !text.ends_with('-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_it_writes() {
        for (text, written) in [
            ("none", "none"),
            ("webhook=hypershift/shim", "webhook=hypershift/shim:443"),
            (
                "webhook=hypershift/shim:8443",
                "webhook=hypershift/shim:8443",
            ),
        ] {
            let conversion: Conversion = text.parse().unwrap();
            assert_eq!(conversion.to_string(), written);
            assert_eq!(written.parse::<Conversion>().unwrap(), conversion);
        }
    }

    #[test]
    fn refuses_half_webhooks() {
        for text in [
            "",
            "None",
            "webhook",
            "webhook=",
            "webhook=a",
            "webhook=/b",
            "webhook=a/",
            "webhook=a/b:0",
            "webhook=a/b:x",
            "webhook=a/b/c",
            "webhook=A/b",
            "webhook=-a/b",
        ] {
            assert!(text.parse::<Conversion>().is_err(), "{text}");
        }
    }

    #[test]
    fn the_stanza_names_service_path_and_ca() {
        let Conversion::Webhook(hook) = "webhook=ns/svc".parse().unwrap() else {
            panic!("not a webhook");
        };
        let pem = rcgen::generate_simple_self_signed(Vec::new())
            .unwrap()
            .cert
            .pem();
        let stanza = Conversion::Webhook(hook.with_ca(pem.as_bytes()).unwrap()).stanza();
        assert_eq!(
            stanza,
            json!({
                "strategy": "Webhook",
                "webhook": {
                    "clientConfig": {
                        "service": {"namespace": "ns", "name": "svc", "path": "/convert", "port": 443},
                        "caBundle": STANDARD.encode(pem),
                    },
                    "conversionReviewVersions": ["v1"],
                },
            })
        );
    }

    #[test]
    fn a_ca_is_made_of_certificates() {
        let Conversion::Webhook(hook) = "webhook=ns/svc".parse().unwrap() else {
            panic!("not a webhook");
        };
        let key = rcgen::KeyPair::generate().unwrap().serialize_pem();
        for pem in ["", "PEM", "-----BEGIN CERTIFICATE-----\n", &key] {
            assert_eq!(hook.clone().with_ca(pem.as_bytes()), Err(InvalidCa));
        }
    }
}
