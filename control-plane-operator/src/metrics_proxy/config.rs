//! The configuration: what is scraped, and how. It is read once, because new content rolls out new pods.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::error::Usage;

/// The configuration.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Config {
    pub(super) endpoint_resolver: EndpointResolver,
    components: Option<Vec<Component>>,
}

/// Where the endpoint resolver is.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct EndpointResolver {
    pub(super) url: String,
    /// The authority of its certificate.
    pub(super) ca_file: Option<PathBuf>,
}

/// A component to scrape.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Component {
    pub(super) name: String,
    /// Labels of its pods.
    #[serde(default)]
    pub(super) selector: BTreeMap<String, String>,
    pub(super) metrics_port: u16,
    #[serde(default = "path")]
    pub(super) metrics_path: String,
    #[serde(default)]
    pub(super) metrics_scheme: Scheme,
    pub(super) tls_server_name: Option<String>,
    pub(super) ca_file: Option<PathBuf>,
    pub(super) cert_file: Option<PathBuf>,
    pub(super) key_file: Option<PathBuf>,
    pub(super) metrics_job: Option<String>,
    pub(super) metrics_namespace: Option<String>,
    pub(super) metrics_service: Option<String>,
    pub(super) metrics_endpoint: Option<String>,
}

/// The protocol.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Scheme {
    Http,
    #[default]
    Https,
}

fn path() -> String {
    "/metrics".to_owned()
}

// === impl Config ===

impl Config {
    /// Reads the file.
    pub(super) fn read(path: &Path) -> Result<Self, Usage> {
        let unusable = |problem: String| Usage {
            message: format!("failed to use --config-file {}: {problem}", path.display()),
        };
        let text = std::fs::read_to_string(path).map_err(|error| unusable(error.to_string()))?;
        serde_saphyr::from_str(&text).map_err(|error| unusable(error.to_string()))
    }

    /// The component of this name.
    pub(super) fn component(&self, name: &str) -> Option<&Component> {
        let mut all = self.components.iter().flatten();
        all.find(|component| component.name == name)
    }
}

// === impl Scheme ===

impl Scheme {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
        }
    }
}
