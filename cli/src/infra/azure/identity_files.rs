//! Files with the identities of components, which `create iam azure` and other tools write.

use std::path::Path;

use anyhow::Context as _;
use api::hypershift::v1beta1::platform::azure::identity::{
    AzureControlPlaneManagedIdentities, AzureDataPlaneManagedIdentities, AzureWorkloadIdentities,
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::resource::is_uuid;
use super::roles::{DATA_PLANE, ROLES, Role};
use crate::Usage;
use crate::create::text;

const WORKLOAD: &str = "--workload-identities-file";
const MANAGED: &str = "--managed-identities-file";
const DATA: &str = "--data-plane-identities-file";
/// The field beside those of the HostedCluster.
pub(super) const KMS: &str = "kmsClientID";

/// Who components of a cluster are.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum IdentityFiles {
    /// Each component exchanges its token.
    Workload {
        /// Fields as in the HostedCluster.
        fields: Value,
        /// The client ID of the one that uses a key of a key vault.
        kms_client_id: Option<String>,
    },
    /// Certificates in a key vault. Fields as in the HostedCluster.
    Managed {
        control_plane: Value,
        data_plane: Value,
    },
}

/// Whether a cluster has an image registry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Registry {
    Enabled,
    Disabled,
}

/// An identity that gets a role.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Client {
    pub(super) role: &'static Role,
    pub(super) client_id: String,
}

// === impl IdentityFiles ===

impl IdentityFiles {
    /// Those of workload identities, or of the control plane and of nodes.
    pub(crate) fn read(
        workload: Option<&Path>,
        managed: Option<(&Path, &Path)>,
    ) -> anyhow::Result<Option<Self>> {
        if let Some((control_plane, data_plane)) = managed {
            return Self::managed(control_plane, data_plane).map(Some);
        }
        let Some(path) = workload else {
            return Ok(None);
        };
        Self::workload(parsed(WORKLOAD, path)?).map(Some)
    }

    /// The content of a file with workload identities.
    pub(crate) fn workload(mut fields: Value) -> anyhow::Result<Self> {
        let object = fields.as_object_mut();
        let kms = object.and_then(|fields| fields.shift_remove(KMS));
        let kms = kms.as_ref().and_then(Value::as_str);
        let kms = kms.filter(|id| !id.is_empty()).map(str::to_owned);
        valid::<AzureWorkloadIdentities>(WORKLOAD, &fields)?;
        Ok(Self::Workload {
            fields,
            kms_client_id: kms,
        })
    }

    fn managed(control_plane: &Path, data_plane: &Path) -> anyhow::Result<Self> {
        let mut of_control_plane: Value = parsed(MANAGED, control_plane)?;
        let identities = of_control_plane.as_object_mut().into_iter().flatten();
        for (name, identity) in identities {
            if name != "managedIdentitiesKeyVault" && identity.is_object() {
                identity["objectEncoding"] = json!("utf-8");
            }
        }
        valid::<AzureControlPlaneManagedIdentities>(MANAGED, &of_control_plane)?;
        let of_data_plane: Value = parsed(DATA, data_plane)?;
        valid::<AzureDataPlaneManagedIdentities>(DATA, &of_data_plane)?;
        Ok(Self::Managed {
            control_plane: of_control_plane,
            data_plane: of_data_plane,
        })
    }

    /// The identities that get roles.
    pub(super) fn clients(&self, registry: Registry) -> Result<Vec<Client>, Usage> {
        let mut clients = Vec::new();
        let (fields, data_plane) = match self {
            Self::Workload { fields, .. } => (fields, None),
            Self::Managed {
                control_plane,
                data_plane,
            } => (control_plane, Some(data_plane)),
        };
        let flag = if data_plane.is_some() {
            MANAGED
        } else {
            WORKLOAD
        };
        for role in ROLES.iter().filter(|role| is_needed(role, registry)) {
            let identity = &fields[role.field];
            // Files of clusters without private access may lack that of the control plane operator.
            if identity.is_null() && flag == WORKLOAD {
                continue;
            }
            clients.push(client(flag, role, &identity["clientID"])?);
        }
        if let Some(fields) = data_plane {
            for role in DATA_PLANE.iter().filter(|role| is_needed(role, registry)) {
                clients.push(client(DATA, role, &fields[role.field])?);
            }
        }
        Ok(clients)
    }

    /// The client IDs of workload identities, also of the one for encryption.
    pub(super) fn client_ids(&self) -> Vec<String> {
        let Self::Workload {
            fields,
            kms_client_id,
        } = self
        else {
            return Vec::new();
        };
        let identities = fields.as_object().into_iter().flatten();
        let ids = identities.filter_map(|(_, it)| it["clientID"].as_str().map(str::to_owned));
        ids.chain(kms_client_id.clone()).collect()
    }
}

/// Whether a role is assigned.
pub(super) fn is_needed(role: &Role, registry: Registry) -> bool {
    registry == Registry::Enabled || !role.is_of_registry()
}

fn client(flag: &str, role: &'static Role, id: &Value) -> Result<Client, Usage> {
    let id = id.as_str().unwrap_or_default();
    if !is_uuid(id) {
        return Err(Usage::new(&format!(
            "{flag}: the client ID of {} is {id:?}, which is not a UUID: correct it, since roles are assigned to it",
            role.field
        )));
    }
    Ok(Client {
        role,
        client_id: id.to_ascii_lowercase(),
    })
}

fn parsed<T: DeserializeOwned>(flag: &str, path: &Path) -> anyhow::Result<T> {
    let text = text::file(flag, path)?;
    serde_saphyr::from_str(&text).with_context(|| {
        format!(
            "{flag} {}: this is not what is expected there",
            path.display()
        )
    })
}

/// Checks that all fields are there.
fn valid<T: DeserializeOwned>(flag: &str, fields: &Value) -> anyhow::Result<()> {
    let read = serde_json::from_value::<T>(fields.clone());
    read.map(drop)
        .with_context(|| format!("{flag}: an identity is missing or incomplete"))
}
