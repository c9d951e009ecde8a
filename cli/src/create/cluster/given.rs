//! What flags leave to a Secret of the management cluster.

use std::fmt;

use crate::infra::aws::SecretValues;

/// What a Secret has in place of flags. Its values are never shown.
#[derive(Clone, Default)]
pub(super) struct Given {
    pub(super) base_domain: Option<String>,
    /// The text of a `.dockerconfigjson`, and what it is called in errors.
    pub(super) pull_secret: Option<(String, String)>,
    /// The public SSH key, and its private part if it is known.
    pub(super) ssh_key: Option<(String, Option<String>)>,
    /// Credentials of AWS.
    pub(super) credentials: Option<SecretValues>,
}

impl fmt::Debug for Given {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Given")
            .field("base_domain", &self.base_domain)
            .field("credentials", &self.credentials)
            .finish_non_exhaustive()
    }
}
