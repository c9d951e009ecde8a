//! Infrastructure on AWS: the network of a cluster, its hosted zones, the identities of its components, a bastion, and roles
//! of the operator and of this command.
//!
//! `network`, `bastion`, `proxy`, `instance`, `roles`, `scope`, `signing_key`, `issuer_recovery`, `kind`, `rest` and `ram`
//! decide without I/O: what should exist, with names, address ranges, tags and policies, and what calls are like. `executor`
//! and what is created and destroyed by it make the calls, through the trait [`call::Calls`]: that of `client` sends them to
//! AWS. `accounts` has an executor for each account of a shared VPC.

mod accounts;
mod bastion;
mod bastion_command;
mod bucket;
mod call;
mod cli_role;
mod client;
mod command;
mod create_bastion;
mod create_identity;
mod create_instance;
mod create_network;
mod create_proxy;
mod create_routes;
mod credentials;
mod destroy_bastion;
mod destroy_identity;
mod destroy_network;
mod destroy_vpc;
mod executor;
#[cfg(test)]
mod fake;
mod instance;
mod issuer_recovery;
mod kind;
mod named_role;
mod network;
mod operator_roles;
mod private_zones;
mod proxy;
mod ram;
mod recover_issuer;
mod recover_issuer_command;
mod rest;
mod role_commands;
mod roles;
mod scope;
mod secret;
mod share;
mod signing_key;
#[cfg(test)]
mod tests;
mod zones;

pub(crate) use accounts::Accounts;
pub(crate) use bastion_command::{CreateBastionArgs, DestroyBastionArgs};
pub(crate) use bucket::Issuer;
pub(crate) use call::{Call, Calls};
pub(crate) use client::Aws;
pub(crate) use command::{
    CreateIamArgs, CreateInfraArgs, DestroyIamArgs, DestroyInfraArgs, RoleArgs, VpcArgs, write,
};
pub(crate) use create_identity::{IdentityOutput, IdentityRequest};
pub(crate) use create_network::{NetworkOutput, NetworkRequest};
pub(crate) use credentials::{CredentialArgs, OwnerArgs};
pub(crate) use destroy_network::DestroyRequest;
pub(crate) use executor::Executor;
pub(crate) use proxy::PrivateKey;
pub(crate) use recover_issuer_command::RecoverIssuerArgs;
pub(crate) use role_commands::{CreateCliRoleArgs, CreateOperatorRolesArgs};
pub(crate) use roles::{Form, Resources};
pub(crate) use scope::{Scope, place};
pub(crate) use secret::{SecretArgs, SecretValues};
pub(crate) use signing_key::SigningKey;
pub(crate) use zones::Domain;

/// The region of clusters whose users name none.
pub(crate) const REGION: &str = "us-east-1";
