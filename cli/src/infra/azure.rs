//! Infrastructure on Azure: resource groups, network, egress and private DNS zone of a cluster, the identities of its
//! components, and their roles.
//!
//! `scope`, `resource`, `network`, `components`, `roles` and `operation` decide without I/O: what should exist, with names and
//! tags, whose something is, and what responses mean. `executor` and what is created and destroyed by it make the calls,
//! through the trait [`support::rest::Calls`]: that of `client` sends them to Azure.

mod account;
mod assign_roles;
mod client;
mod command;
mod components;
mod create;
mod create_identity;
mod create_network;
mod destroy_groups;
mod destroy_identity;
mod executor;
mod found;
mod identity_files;
mod network;
mod operation;
mod pass;
mod resource;
mod roles;
mod scope;
#[cfg(test)]
mod tests;

pub(crate) use account::Account;
pub(crate) use client::Azure;
pub(crate) use command::{
    AzureNetworkArgs, CreateIamArgs, CreateInfraArgs, DestroyIamArgs, DestroyInfraArgs, registry,
    role_set,
};
pub(crate) use create::{CreateRequest, Identities};
pub(crate) use create_identity::IdentityRequest;
pub(crate) use create_network::NetworkOutput;
pub(crate) use destroy_groups::DestroyRequest;
pub(crate) use executor::Executor;
pub(crate) use found::NetworkRequest;
pub(crate) use identity_files::IdentityFiles;
pub(crate) use resource::{ResourceId, check_subnet};
pub(crate) use roles::Groups;
pub(crate) use scope::Scope;

/// The region of clusters whose users name none.
pub(crate) const LOCATION: &str = "eastus";
