//! The managed service that the operators are part of, and how they read its certificates.

use clap::{Args, ValueEnum};

use crate::Usage;

/// The flags.
#[derive(Debug, Clone, Args)]
pub(super) struct ManagedServiceArgs {
    /// Managed service that the operators are part of
    #[arg(long, global = true, value_enum, value_name = "NAME")]
    managed_service: Option<Name>,

    /// Client ID of the identity that reads certificates of managed identities from Azure's key vaults. Required for hosted
    /// clusters with managed identities, whose authors choose the certificates (SECURITY.md)
    #[arg(long, global = true, value_name = "ID")]
    aro_hcp_key_vault_users_client_id: Option<String>,
}

/// A managed service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Name {
    /// Azure Red Hat OpenShift with hosted control planes
    #[value(name = "ARO-HCP")]
    AroHcp,
}

// === impl Name ===

impl Name {
    fn as_str(self) -> &'static str {
        match self {
            Self::AroHcp => "ARO-HCP",
        }
    }
}

// === impl ManagedServiceArgs ===

impl ManagedServiceArgs {
    /// Whether the operators are part of one.
    pub(super) fn is_given(&self) -> bool {
        self.managed_service.is_some()
    }

    /// Checks the flags. Returns variables of the operators' environment.
    pub(super) fn resolve(&self) -> Result<Vec<(&'static str, String)>, Usage> {
        let Self {
            managed_service,
            aro_hcp_key_vault_users_client_id: client_id,
        } = self;
        if let Some(client_id) = client_id.as_ref().filter(|it| !is_client_id(it)) {
            let message = format!(
                "--aro-hcp-key-vault-users-client-id {client_id:?} is not a client ID (for example \
                 00000000-0000-0000-0000-000000000000)"
            );
            return Err(Usage::new(&message));
        }
        let service = managed_service.map(|it| ("MANAGED_SERVICE", it.as_str().to_owned()));
        let client_id = client_id.clone();
        let client_id = client_id.map(|it| ("ARO_HCP_KEY_VAULT_USER_CLIENT_ID", it));
        Ok(service.into_iter().chain(client_id).collect())
    }
}

/// Whether a text is a UUID.
fn is_client_id(text: &str) -> bool {
    let lengths = text.split('-').map(str::len);
    lengths.eq([8, 4, 4, 4, 12]) && text.bytes().all(|it| it == b'-' || it.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_become_variables_of_the_operators() {
        let id = "01234567-89ab-cdef-0123-456789abcdef";
        for (service, client_id, expected) in [
            (None, None, Ok(vec![])),
            (
                Some(Name::AroHcp),
                Some(id),
                Ok(vec![
                    ("MANAGED_SERVICE", "ARO-HCP"),
                    ("ARO_HCP_KEY_VAULT_USER_CLIENT_ID", id),
                ]),
            ),
            (
                None,
                Some(id),
                Ok(vec![("ARO_HCP_KEY_VAULT_USER_CLIENT_ID", id)]),
            ),
            (None, Some(""), Err("\"\" is not a client ID")),
            (None, Some("a-b-c"), Err("\"a-b-c\" is not a client ID")),
            (
                None,
                Some("0123456g-89ab-cdef-0123-456789abcdef"),
                Err("is not a client ID"),
            ),
        ] {
            let args = ManagedServiceArgs {
                managed_service: service,
                aro_hcp_key_vault_users_client_id: client_id.map(str::to_owned),
            };
            match (args.resolve(), expected) {
                (Ok(found), Ok(expected)) => {
                    let found: Vec<_> = found.iter().map(|(k, v)| (*k, v.as_str())).collect();
                    assert_eq!(found, expected, "{client_id:?}");
                }
                (Err(error), Err(expected)) => {
                    let message = error.to_string();
                    assert!(message.contains(expected), "{message}");
                }
                (found, _) => panic!("{client_id:?}: {found:?}"),
            }
        }
    }
}
