//! What is written about an infrastructure: the file of `--infra-json`. It has API keys.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::time::Instant;

use anyhow::{Context as _, bail};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::executor::{Made, text};
use super::policies::Credentials;
use super::scope::Scope;
use crate::infra::private_file::{self, is_regular};

/// What there is. Fields of what does not exist yet are empty. There is no `Debug`, because of the API keys.
#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Output {
    pub(crate) id: String,
    pub(crate) region: String,
    pub(crate) zone: String,
    pub(crate) vpc_region: String,
    #[serde(rename = "accountID")]
    pub(crate) account_id: String,
    pub(crate) base_domain: String,
    pub(crate) cis_crn: String,
    #[serde(rename = "cisDomainID")]
    pub(crate) cis_domain_id: String,
    pub(crate) resource_group: String,
    #[serde(rename = "cloudInstanceID")]
    pub(crate) cloud_instance_id: String,
    pub(crate) dhcp_subnet: String,
    #[serde(rename = "dhcpSubnetID")]
    pub(crate) dhcp_subnet_id: String,
    pub(crate) vpc_name: String,
    pub(crate) vpc_subnet_name: String,
    pub(crate) stats: Stats,
    /// Complete Secrets.
    pub(crate) secrets: BTreeMap<String, Value>,
    /// Components whose API keys were requested and not written down yet: if they have any, these are lost.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub(crate) pending_keys: BTreeSet<String>,
}

/// How long things have taken, and their states.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Stats {
    pub(crate) vpc: Stat,
    pub(crate) vpc_subnet: Stat,
    pub(crate) cloud_instance: Stat,
    pub(crate) dhcp_service: Stat,
    pub(crate) transit_gateway_state: Stat,
}

/// How long one thing has taken, and its state.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Stat {
    pub(crate) duration: String,
    pub(crate) status: String,
}

/// The Secret with an API key.
pub(super) fn secret(scope: &Scope, namespace: &str, credentials: Credentials, key: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": format!("{}-{}", scope.name, credentials.suffix()),
            "namespace": namespace,
        },
        "type": "Opaque",
        "stringData": {
            "ibmcloud_api_key": key,
            "ibm-credentials.env": format!("IBMCLOUD_AUTHTYPE=iam\nIBMCLOUD_APIKEY={key}"),
        },
    })
}

// === impl Output ===

impl Output {
    /// What is known before anything is looked for.
    pub(crate) fn new(scope: &Scope) -> Self {
        let place = scope.place.clone();
        Self {
            id: scope.infra_id.clone(),
            region: place.region,
            zone: place.zone,
            vpc_region: place.vpc_region,
            base_domain: scope.domain.base.clone(),
            resource_group: place.resource_group,
            ..Self::default()
        }
    }

    /// The same with the Secrets of a file, if there is one: it may have the only copy of API keys.
    pub(super) fn continued(scope: &Scope, path: Option<&Path>) -> anyhow::Result<Self> {
        let mut output = Self::new(scope);
        if let Some(path) = path.filter(|path| is_regular(path)) {
            let earlier = Self::read(path)?;
            if earlier.id != output.id {
                bail!(
                    "--output-file {} describes infrastructure {}, not {}: nothing was changed. Name another file",
                    path.display(),
                    earlier.id,
                    output.id
                );
            }
            output.secrets = earlier.secrets;
            output.pending_keys = earlier.pending_keys;
        }
        Ok(output)
    }

    /// Reads a file that this or upstream has written.
    pub(super) fn read(path: &Path) -> anyhow::Result<Self> {
        let read = fs::read_to_string(path);
        let text = read.with_context(|| format!("failed to read {}", path.display()))?;
        // Without the parser's message, which may quote a secret.
        serde_json::from_str(&text).map_err(|error| {
            anyhow::anyhow!(
                "{}, line {}: this is not what create infra powervs writes",
                path.display(),
                error.line()
            )
        })
    }

    /// Writes a file that only its owner may read; on Windows, it has the permissions of its directory. An interruption
    /// leaves the file as it was.
    pub(super) fn write(&self, path: &Path) -> anyhow::Result<()> {
        private_file::write(path, &self.text()?)
    }

    /// Writes what is known so far to a file that a later run can continue with. What cannot be read again is written once, at
    /// the end.
    pub(super) fn record(&self, path: Option<&Path>) -> anyhow::Result<()> {
        match path.filter(|path| is_regular(path) || !path.exists()) {
            Some(path) => self.write(path),
            None => Ok(()),
        }
    }

    /// As a document.
    pub(super) fn text(&self) -> anyhow::Result<String> {
        let mut text = serde_json::to_string_pretty(self)?;
        text.push('\n');
        Ok(text)
    }

    /// The Secret of a component, if it is known.
    pub(super) fn secret(&self, credentials: Credentials) -> Option<&Value> {
        let secret = self.secrets.get(credentials.field());
        secret.filter(|secret| secret.is_object())
    }

    pub(super) fn set_secret(&mut self, credentials: Credentials, secret: Value) {
        self.secrets.insert(credentials.field().to_owned(), secret);
        self.pending_keys.remove(credentials.field());
    }

    /// Notes that a component gets a new API key. The Secret with an earlier one is of no use any more.
    pub(super) fn expect_key(&mut self, credentials: Credentials) {
        self.secrets.remove(credentials.field());
        self.pending_keys.insert(credentials.field().to_owned());
    }

    /// Whether a run was interrupted before it could write down the API key of a component.
    pub(super) fn is_pending(&self, credentials: Credentials) -> bool {
        self.pending_keys.contains(credentials.field())
    }
}

// === impl Stat ===

impl Stat {
    /// Of something in a state.
    pub(super) fn of(state: &Value) -> Self {
        Self {
            status: text(state).to_owned(),
            ..Self::default()
        }
    }

    /// With the time since a beginning, if it is new.
    pub(super) fn since(self, begin: Instant, made: &Made) -> Self {
        if !made.is_new {
            return self;
        }
        let seconds = begin.elapsed().as_secs_f64();
        Self {
            duration: format!("{seconds:.3}s"),
            ..self
        }
    }
}

impl Default for Stat {
    fn default() -> Self {
        Self {
            duration: "0s".to_owned(),
            status: String::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::super::scope::tests::scope;
    use super::*;

    #[test]
    fn the_file_is_for_its_owner_and_keeps_secrets() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("infra.json");
        let scope_a = scope("a-x1", "a");
        let mut output = Output::continued(&scope_a, Some(path.as_path())).unwrap();
        let written = secret(&scope_a, "clusters", Credentials::Ingress, "key");
        output.set_secret(Credentials::Ingress, written.clone());
        fs::write(&path, output.text().unwrap()).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        output.write(&path).unwrap();
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let next = Output::continued(&scope_a, Some(path.as_path())).unwrap();
        assert_eq!(next.secret(Credentials::Ingress), Some(&written));
        assert_eq!(next.secret(Credentials::Storage), None);
        // An interruption is noted with what is left of the Secrets.
        let mut replacing = next.clone();
        replacing.expect_key(Credentials::Ingress);
        replacing.record(Some(path.as_path())).unwrap();
        let interrupted = Output::continued(&scope_a, Some(path.as_path())).unwrap();
        assert!(interrupted.is_pending(Credentials::Ingress));
        assert_eq!(interrupted.secret(Credentials::Ingress), None);
        replacing.set_secret(Credentials::Ingress, written.clone());
        assert!(!replacing.is_pending(Credentials::Ingress));
        // What is no file is written once.
        replacing.record(Some(Path::new("/dev/null"))).unwrap();
        replacing.record(None).unwrap();
        let other = Output::continued(&scope("b-x2", "b"), Some(path.as_path()));
        let error = other.err().unwrap().to_string();
        assert!(error.contains("describes infrastructure a-x1"), "{error}");
        fs::write(&path, "{\"id\": key}").unwrap();
        let error = Output::continued(&scope_a, Some(path.as_path()))
            .err()
            .unwrap();
        let error = format!("{error:#}");
        assert!(
            error.contains("line 1") && !error.contains("key"),
            "{error}"
        );
    }

    #[test]
    fn fields_are_those_of_upstream() {
        let output = Output::new(&scope("a-x1", "a"));
        let value = serde_json::to_value(&output).unwrap();
        let mut fields: Vec<_> = value.as_object().unwrap().keys().cloned().collect();
        fields.sort();
        let expected = [
            "accountID",
            "baseDomain",
            "cisCrn",
            "cisDomainID",
            "cloudInstanceID",
            "dhcpSubnet",
            "dhcpSubnetID",
            "id",
            "region",
            "resourceGroup",
            "secrets",
            "stats",
            "vpcName",
            "vpcRegion",
            "vpcSubnetName",
            "zone",
        ];
        assert_eq!(fields, expected);
        assert_eq!(value["stats"]["vpcSubnet"]["duration"], "0s");
        let written = r#"{ "id": "a", "secrets": { "IngressOperator": null } }"#;
        let read: Output = serde_json::from_str(written).unwrap();
        assert_eq!(read.secret(Credentials::Ingress), None);
    }
}
