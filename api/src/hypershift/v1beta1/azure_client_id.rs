//! The client ID of an Azure identity.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::schema::rule;

/// The client (application) ID of an Azure identity: a UUID of 36 characters.
#[derive(
    Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(transparent)]
#[schemars(
    transform = rule(
        "self.matches('^[[:xdigit:]]{8}(-[[:xdigit:]]{4}){3}-[[:xdigit:]]{12}$')",
        r#"a client ID must be a UUID such as 00000000-0000-0000-0000-000000000000; take it from the identity's "client ID" in Azure"#
    ),
)]
pub struct AzureClientId(
    #[schemars(
        length(equal = 36),
        regex(pattern = "^[0-9a-fA-F]{8}-([0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}$")
    )]
    pub String,
);
