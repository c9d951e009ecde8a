//! The parts of an Ignition document (specification 3) that make a worker of a machine.

use serde::Deserialize;

use crate::data_url;

/// A document. Fields that are not here are of no consequence to a machine of the testbed.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Document {
    pub(crate) ignition: Ignition,
    pub(crate) storage: Storage,
    pub(crate) systemd: Systemd,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Ignition {
    pub(crate) version: String,
    pub(crate) config: Config,
    pub(crate) security: Security,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Config {
    pub(crate) merge: Vec<Reference>,
}

/// Where another document is.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Reference {
    pub(crate) source: String,
    pub(crate) http_headers: Vec<Header>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Header {
    pub(crate) name: String,
    pub(crate) value: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Security {
    pub(crate) tls: Tls,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Tls {
    pub(crate) certificate_authorities: Vec<Contents>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Storage {
    pub(crate) directories: Vec<Directory>,
    pub(crate) files: Vec<File>,
    pub(crate) links: Vec<Link>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Directory {
    pub(crate) path: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct File {
    pub(crate) path: String,
    pub(crate) mode: Option<u64>,
    pub(crate) contents: Contents,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Contents {
    pub(crate) source: Option<String>,
    pub(crate) compression: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Link {
    pub(crate) path: String,
    pub(crate) target: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Systemd {
    pub(crate) units: Vec<Unit>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Unit {
    pub(crate) name: String,
    pub(crate) enabled: Option<bool>,
    pub(crate) contents: Option<String>,
    pub(crate) dropins: Vec<Part>,
}

/// A part of a unit, in a file of its own.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Part {
    pub(crate) name: String,
    pub(crate) contents: Option<String>,
}

// === impl Document ===

impl Document {
    /// Reads a document, and refuses what would be done otherwise than Ignition does it.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, String> {
        let document: Self = serde_json::from_slice(bytes)
            .map_err(|error| format!("this is no Ignition document: {error}"))?;
        if !document.ignition.version.starts_with("3.") {
            return Err(format!(
                "the document is of version {:?}, and only 3.x is understood",
                document.ignition.version
            ));
        }
        for file in &document.storage.files {
            if file
                .contents
                .compression
                .as_deref()
                .is_some_and(|kind| !kind.is_empty())
            {
                return Err(format!(
                    "{} is compressed, which is not understood",
                    file.path
                ));
            }
        }
        Ok(document)
    }

    /// Adds another document's parts. A file or unit that both have is the other's.
    pub(crate) fn add(&mut self, other: Self) {
        let Self {
            storage, systemd, ..
        } = other;
        self.storage.directories.extend(storage.directories);
        self.storage.files.extend(storage.files);
        self.storage.links.extend(storage.links);
        self.systemd.units.extend(systemd.units);
    }

    /// The authorities that it trusts, in PEM.
    pub(crate) fn authorities(&self) -> Result<Vec<Vec<u8>>, String> {
        let each = self.ignition.security.tls.certificate_authorities.iter();
        each.filter_map(|authority| authority.source.as_deref())
            .map(data_url::decode)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stub_names_its_source_headers_and_authority() {
        let stub = br#"{"ignition":{"version":"3.2.0","config":{"merge":[{"source":"https://i.test/ignition",
            "httpHeaders":[{"name":"Authorization","value":"Bearer x"}]}]},
            "security":{"tls":{"certificateAuthorities":[{"source":"data:text/plain;base64,Y2E="}]}}}}"#;
        let document = Document::parse(stub).unwrap();
        assert_eq!(document.authorities().unwrap(), [b"ca".to_vec()]);
        let reference = &document.ignition.config.merge[0];
        assert_eq!(reference.source, "https://i.test/ignition");
        assert_eq!(reference.http_headers[0].name, "Authorization");
    }

    #[test]
    fn other_documents_are_refused() {
        for wrong in [
            &b"#cloud-config"[..],
            br#"{"ignition":{"version":"2.2.0"}}"#,
            br#"{"ignition":{"version":"3.2.0"},"storage":{"files":[{"path":"/x","contents":{"compression":"gzip"}}]}}"#,
        ] {
            assert!(Document::parse(wrong).is_err());
        }
    }
}
