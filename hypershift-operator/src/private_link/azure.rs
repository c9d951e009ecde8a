//! Private link services of private clusters on Azure, in the resource group of the management cluster: one for each internal
//! load balancer, which the subscription of the cluster may connect to.
//!
//! ```text
//! Service ── its address, its UID ──> frontend of a load balancer ──> private link service ── NAT subnet
//! ```

mod client;
mod plan;
mod provider;
mod service;
#[cfg(test)]
mod tests;

pub(super) use provider::{CONTROL_PLANE_FINALIZER, KIND, Provider};
