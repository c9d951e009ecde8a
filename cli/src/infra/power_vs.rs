//! Infrastructure on Power VS of IBM Cloud: workspace, VPC and the transit gateway between them, and the API keys of
//! components.
//!
//! `scope`, `regions`, `policies`, `api` and `output` decide without I/O: what should exist, with names, tags and policies, and
//! what calls are like. `executor` and what is created and destroyed by it make the calls, through the trait
//! [`support::rest::Calls`].

mod api;
mod command;
mod create;
mod create_credentials;
mod create_gateway;
mod create_network;
mod create_workspace;
mod destroy;
mod destroy_network;
mod destroy_registry;
mod executor;
mod lookup;
mod output;
mod policies;
mod regions;
mod scope;
#[cfg(test)]
mod tests;

pub(crate) use command::{
    CreateInfraArgs, DestroyInfraArgs, ReuseArgs, Session, TransitArgs, UnneededArgs,
};
pub(crate) use create::Keys;
pub(crate) use output::Output;
pub(crate) use scope::{Place, Reused, Scope};

/// Region, zone, region of the VPC, and location of the transit gateway of clusters whose users name none.
pub(crate) const REGION: &str = "us-south";
