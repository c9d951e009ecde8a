//! Infrastructure on Google Cloud: the network of a cluster, and the identities of its components.
//!
//! `scope`, `network`, `components`, `identity`, `jwks` and `policy` decide without I/O: what should exist, with names,
//! descriptions, roles and members, and what requests are like. `executor` and what is created and destroyed by it make the
//! calls, through the trait [`support::rest::Calls`]: that of `client` sends them to Google Cloud.
//!
//! Networks have no labels: the description of each resource says whose it is.

mod client;
mod command;
mod components;
mod create_identity;
mod create_network;
mod destroy_identity;
mod destroy_network;
mod executor;
mod identity;
mod jwks;
mod network;
mod policies;
mod policy;
mod scope;
#[cfg(test)]
mod tests;

pub(crate) use client::{GoogleCloud, connect};
pub(crate) use command::{CreateIamArgs, CreateInfraArgs, DestroyIamArgs, DestroyInfraArgs};
pub(crate) use components::COMPONENTS;
pub(crate) use create_identity::{IdentityOutput, IdentityRequest};
pub(crate) use create_network::NetworkOutput;
pub(crate) use executor::Executor;
pub(crate) use identity::issuer_of;
pub(crate) use jwks::Jwks;
pub(crate) use network::{NetworkRequest, check_region};
pub(crate) use scope::{LONGEST_WITH_IDENTITIES, Scope};

/// The address range of subnets whose users name none.
pub(crate) const CIDR: &str = "10.0.0.0/24";
